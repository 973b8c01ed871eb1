//! Makes a workload of a file's statements and directives.

use super::blocks::{Block, BlockKind};
use super::capture::{Gset, fill_captures};
use super::error::{LineError, SqlFileError};
use super::expression::{self, Names};
use super::lexer::{Item, Text, lex, name_at};
use super::{DIRECTIVES, LOCAL_ROWS_MAX, SqlOptions, WEIGHT_MAX};
use crate::distribution::Distribution;
use crate::expr::{Expr, Operator};
use crate::suggest::nearest_name;
use crate::workload::{
    LocalRows, Param, Protocol, Setup, Source, Statement, Step, Transaction, Variable, Workload,
};

pub(super) fn workload(name: &str, text: &str, options: &SqlOptions) -> Result<Workload, LineError> {
    let mut builder = Builder::new(name, options)?;
    for item in lex(text)? {
        match item {
            Item::Statement(statement) => builder.statement(statement, options)?,
            Item::Directive { line, name, arguments } => {
                if name != "gset" {
                    builder.begin_item()?;
                }
                builder.directive(line, &name, &arguments).map_err(|problem| LineError::at(line, problem))?;
            }
        }
    }
    let last_line = text.lines().count().max(1);
    builder.finish(last_line)
}

pub(super) struct Builder {
    pub(super) workload: Workload,
    /// Variables that have a value where the file is being read.
    pub(super) defined: Vec<u16>,
    /// Those that every transaction begins with.
    defined_before: Vec<u16>,
    /// What stands before the first `\transaction`, and so begins every one.
    before: Vec<Step>,
    section: Section,
    /// Steps of the blocks that are open, the innermost last; the first are the transaction's own.
    pub(super) open_steps: Vec<Vec<Step>>,
    pub(super) blocks: Vec<Block>,
    /// Directives that apply to the statement that follows.
    next: Next,
    /// Captures in the order of their statements.
    pub(super) captures: Vec<Gset>,
    /// Names that statements got by what they are, and their texts.
    pub(super) kinds: Vec<(String, String)>,
    /// The thing read last was a statement of this line, which a `\gset` may follow.
    pub(super) last_statement: bool,
    /// A statement that no `;` has ended.
    pub(super) unended: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// No `\transaction` so far.
    Whole,
    Transaction,
    Session,
    Setup,
}

#[derive(Default)]
struct Next {
    line: usize,
    kind: Option<String>,
    protocol: Option<Protocol>,
    local_rows: Option<LocalRows>,
}

impl Builder {
    fn new(name: &str, options: &SqlOptions) -> Result<Builder, LineError> {
        let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".sql");
        let workload = Workload {
            name: stem.to_string(),
            summary: format!("SQL from {name}"),
            tables: 0,
            rows: 1,
            distribution: Distribution::Uniform,
            transactions: vec![Transaction { name: stem.to_string(), weight: 1, steps: Vec::new() }],
            variables: Variable::predefined(),
            dictionaries: Vec::new(),
            session: Vec::new(),
            setup: None,
            retry_errors: options.retry_errors.clone(),
            rows_min: 1,
        };
        let mut builder = Builder {
            workload,
            defined: vec![0, 1],
            defined_before: Vec::new(),
            before: Vec::new(),
            section: Section::Whole,
            open_steps: vec![Vec::new()],
            blocks: Vec::new(),
            next: Next::default(),
            captures: Vec::new(),
            kinds: Vec::new(),
            last_statement: false,
            unended: None,
        };
        for (name, value) in &options.defines {
            if name.is_empty() || name_at(name) != name {
                return Err(LineError::at(0, SqlFileError::VariableName { name: name.clone() }));
            }
            let value = match (value.parse::<i64>(), value.parse::<f64>()) {
                (Ok(number), _) => Expr::Int(number),
                (_, Ok(number)) if number.is_finite() => Expr::Double(number),
                _ => Expr::Text(value.clone()),
            };
            builder.set(name, Source::Expr(value));
        }
        Ok(builder)
    }

    fn statement(&mut self, text: Text, options: &SqlOptions) -> Result<(), LineError> {
        self.begin_item()?;
        let statement = self.read_statement(&text, options)?;
        self.unended = (!text.ended).then_some(text.line);
        if self.section == Section::Setup {
            if !statement.params.is_empty() {
                return Err(LineError::at(text.line, SqlFileError::ParameterInSetup));
            }
            if let Some(setup) = &mut self.workload.setup {
                setup.statements.push(statement.sql);
            }
            return Ok(());
        }
        if self.section == Section::Session {
            if !statement.params.is_empty() {
                return Err(LineError::at(text.line, SqlFileError::ParameterInSession));
            }
            self.workload.session.push(statement.sql);
            return Ok(());
        }
        self.last_statement = true;
        self.push(Step::Send(statement));
        Ok(())
    }

    fn read_statement(&mut self, text: &Text, options: &SqlOptions) -> Result<Statement, LineError> {
        let mut params = Vec::new();
        let mut has_inline = false;
        for mark in &text.marks {
            let place = self.variable(&mark.name).map_err(|problem| LineError::at(mark.line, problem))?;
            has_inline |= mark.inline;
            params.push(if mark.inline { Param::Inline(place) } else { Param::Variable(place) });
        }
        let Next { kind, protocol, local_rows, .. } = std::mem::take(&mut self.next);
        let text_only = if text.multiple {
            Some("several statements that \\; joins")
        } else if has_inline {
            Some("a statement with {…} in it")
        } else if starts_with_words(&text.sql, &["load", "data"]) {
            Some("LOAD DATA")
        } else {
            None
        };
        if let (Some(what), Some(Protocol::Prepared)) = (text_only, protocol) {
            return Err(LineError::at(text.line, SqlFileError::CannotPrepare { what }));
        }
        let loads_local = starts_with_words(&text.sql, &["load", "data"])
            && text.sql.to_ascii_lowercase().split_whitespace().any(|word| word == "local");
        match (loads_local, &local_rows) {
            (true, None) => return Err(LineError::at(text.line, SqlFileError::NoLocalRows)),
            (false, Some(_)) => return Err(LineError::at(text.line, SqlFileError::NotLocalLoad)),
            _ => {}
        }
        let by_default = if params.is_empty() { Protocol::Text } else { Protocol::Prepared };
        let protocol = match text_only {
            Some(_) => Protocol::Text,
            None => protocol.or(options.protocol).unwrap_or(by_default),
        };
        let kind = kind.unwrap_or_else(|| self.derived_kind(&text.sql));
        Ok(Statement { kind, sql: text.sql.clone(), protocol, params, capture: None, local_rows })
    }

    fn directive(&mut self, line: usize, name: &str, arguments: &str) -> Result<(), SqlFileError> {
        if name == "gset" {
            return self.gset(arguments);
        }
        match name {
            "set" => {
                let variable = name_at(arguments);
                let value = arguments[variable.len()..].trim();
                if variable.is_empty() || value.is_empty() {
                    return Err(SqlFileError::SET);
                }
                if variable == "client_id" || variable == "row_count" {
                    return Err(SqlFileError::ReservedVariable { name: variable.to_string() });
                }
                let source = expression::source(value, self)?;
                self.set(variable, source);
            }
            "transaction" => self.transaction(arguments)?,
            "session" => {
                no_arguments(name, arguments)?;
                self.end_section()?;
                self.section = Section::Session;
            }
            "setup" => {
                let check = arguments.trim().trim_end_matches(';').to_string();
                if !starts_with_words(&check, &["select"]) || self.workload.setup.is_some() {
                    return Err(SqlFileError::SetupForm);
                }
                self.end_section()?;
                self.workload.setup = Some(Setup { statements: Vec::new(), check });
                self.section = Section::Setup;
            }
            "if" => {
                let condition = expression::expression(arguments, self)?;
                self.open(line, BlockKind::If { condition });
            }
            "elif" | "else" => self.otherwise(line, name, arguments)?,
            "endif" => self.end_if(arguments)?,
            "repeat" => {
                let times = expression::expression(arguments, self)?;
                self.open(line, BlockKind::Repeat { times });
            }
            "while" => {
                let condition = expression::expression(arguments, self)?;
                self.open(line, BlockKind::While { condition });
            }
            "endrepeat" | "endwhile" => self.end_loop(name, arguments)?,
            "sleep" => {
                let seconds = self.pause(arguments)?;
                self.push(Step::Pause { seconds });
            }
            "reconnect" => {
                no_arguments(name, arguments)?;
                self.push(Step::Reconnect);
            }
            "kind" | "text" | "prepared" | "rows" => {
                self.next.line = line;
                self.of_next(name, arguments)?;
            }
            "dictionary" => self.dictionary_of(arguments)?,
            _ => {
                let nearest = nearest_name(name, DIRECTIVES);
                return Err(SqlFileError::UnknownDirective { name: name.to_string(), nearest });
            }
        }
        Ok(())
    }

    /// Every statement and directive but `\gset` goes through here.
    fn begin_item(&mut self) -> Result<(), LineError> {
        self.last_statement = false;
        match self.unended.take() {
            Some(line) => Err(LineError::at(line, SqlFileError::UnendedStatement)),
            None => Ok(()),
        }
    }

    pub(super) fn push(&mut self, step: Step) {
        if let Some(steps) = self.open_steps.last_mut() {
            steps.push(step);
        }
    }

    fn set(&mut self, name: &str, source: Source) {
        let place = self.place_of(name);
        if !self.defined.contains(&place) {
            self.defined.push(place);
        }
        self.push(Step::Set { variable: place, source });
    }

    fn transaction(&mut self, arguments: &str) -> Result<(), SqlFileError> {
        let (name, weight) = match arguments.split_once('@') {
            Some((name, weight)) => (name.trim(), Some(weight.trim())),
            None => (arguments, None),
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(SqlFileError::TRANSACTION);
        }
        let weight = match weight.map(str::parse::<u32>) {
            None => 1,
            Some(Ok(weight)) if weight <= WEIGHT_MAX => weight,
            Some(_) => return Err(SqlFileError::Weight { transaction: name.to_string() }),
        };
        self.end_section()?;
        let transactions = &mut self.workload.transactions;
        if transactions.iter().any(|transaction| transaction.name == name) {
            return Err(SqlFileError::DuplicateTransaction { name: name.to_string() });
        }
        transactions.push(Transaction { name: name.to_string(), weight, steps: Vec::new() });
        self.section = Section::Transaction;
        self.open_steps = vec![self.before.clone()];
        self.defined.clone_from(&self.defined_before);
        Ok(())
    }

    /// Puts away what was read since the last `\transaction` or `\session`.
    fn end_section(&mut self) -> Result<(), SqlFileError> {
        if let Some(Block { line, kind }) = self.blocks.first() {
            let (begin, end) = (kind.begin(), kind.end());
            return Err(SqlFileError::BlockAcrossSections { begin, end, line: *line });
        }
        if self.next.is_something() {
            return Err(SqlFileError::NoNextStatement { line: self.next.line });
        }
        let steps = std::mem::replace(&mut self.open_steps, vec![Vec::new()]).remove(0);
        match self.section {
            Section::Whole => {
                if steps.iter().any(|step| !matches!(step, Step::Set { .. })) {
                    return Err(SqlFileError::OutsideTransaction);
                }
                self.before = steps;
                self.defined_before.clone_from(&self.defined);
                self.workload.transactions.clear();
            }
            Section::Transaction => {
                if let Some(transaction) = self.workload.transactions.last_mut() {
                    transaction.steps = steps;
                }
            }
            Section::Session | Section::Setup => {}
        }
        Ok(())
    }

    fn pause(&mut self, arguments: &str) -> Result<Expr, SqlFileError> {
        let (number, unit) = match arguments.rsplit_once(char::is_whitespace) {
            Some((number, unit @ ("us" | "ms" | "s"))) => (number, unit),
            _ => (arguments, "s"),
        };
        let number =
            expression::expression(number, self).map_err(|problem| SqlFileError::Pause { problem })?;
        let units_per_s = match unit {
            "us" => 1e6,
            "ms" => 1e3,
            _ => return Ok(number),
        };
        let right = Box::new(Expr::Double(units_per_s));
        Ok(Expr::Binary { operator: Operator::Divide, left: Box::new(number), right })
    }

    fn of_next(&mut self, name: &str, arguments: &str) -> Result<(), SqlFileError> {
        match name {
            "kind" => {
                if arguments.is_empty() || arguments.contains(char::is_whitespace) {
                    return Err(SqlFileError::KIND);
                }
                if arguments == "transaction" || arguments == "rollback" {
                    return Err(SqlFileError::ReservedKind { kind: arguments.to_string() });
                }
                self.next.kind = Some(arguments.to_string());
            }
            "rows" => {
                let (count, fields) = arguments.split_once(char::is_whitespace).ok_or(SqlFileError::ROWS)?;
                let rows = match count.parse::<u64>() {
                    Ok(rows) if (1..=LOCAL_ROWS_MAX).contains(&rows) => rows,
                    _ => return Err(SqlFileError::RowCount { count: count.to_string() }),
                };
                let fields = expression::sources(fields, self)?;
                self.next.local_rows = Some(LocalRows { rows, fields });
            }
            _ => {
                no_arguments(name, arguments)?;
                self.next.protocol = Some(if name == "text" { Protocol::Text } else { Protocol::Prepared });
            }
        }
        Ok(())
    }

    fn finish(mut self, last_line: usize) -> Result<Workload, LineError> {
        self.unended = None;
        let whole = self.section == Section::Whole;
        if whole {
            // All of the file is one transaction.
            self.section = Section::Transaction;
        }
        if let Some(Block { line, kind }) = self.blocks.first() {
            let (begin, end) = (kind.begin(), kind.end());
            return Err(LineError::at(*line, SqlFileError::UnclosedBlock { begin, end, line: *line }));
        }
        self.end_section().map_err(|problem| LineError::at(last_line, problem))?;
        let reserved: Vec<String> =
            self.workload.variables.iter().map(|variable| variable.name.clone()).collect();
        let mut captures = self.captures.into_iter();
        for transaction in &mut self.workload.transactions {
            fill_captures(&mut transaction.steps, &mut captures, &reserved);
        }
        let sends = |transaction: &Transaction| transaction.weight > 0 && does_something(&transaction.steps);
        if !self.workload.transactions.iter().any(sends) {
            return Err(LineError::at(last_line, SqlFileError::NothingToDo));
        }
        self.workload.settle_types();
        Ok(self.workload)
    }
}

impl Next {
    fn is_something(&self) -> bool {
        self.kind.is_some() || self.protocol.is_some() || self.local_rows.is_some()
    }
}

pub(super) fn no_arguments(name: &str, arguments: &str) -> Result<(), SqlFileError> {
    match arguments {
        "" => Ok(()),
        _ => Err(SqlFileError::NoArguments { directive: name.to_string(), arguments: arguments.to_string() }),
    }
}

/// Whether there is a statement, a pause or a new connection in them.
fn does_something(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Set { .. } => false,
        Step::If { then, otherwise, .. } => does_something(then) || does_something(otherwise),
        Step::Repeat { steps, .. } | Step::While { steps, .. } => does_something(steps),
        Step::Group(_) | Step::Send(_) | Step::Pause { .. } | Step::Reconnect => true,
    })
}

fn starts_with_words(sql: &str, words: &[&str]) -> bool {
    let mut begin = sql.split_whitespace();
    words.iter().all(|word| begin.next().is_some_and(|found| found.eq_ignore_ascii_case(word)))
}

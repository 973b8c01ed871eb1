//! Makes a workload of a file's statements and directives.

use super::blocks::{Block, BlockKind};
use super::capture::{Gset, fill_captures};
use super::expression::{self, Names};
use super::lexer::{Item, Text, lex, name_at};
use super::{SqlOptions, Wrong};
use crate::distribution::Distribution;
use crate::expr::{Expr, Operator};
use crate::suggest::nearest_name;
use crate::workload::{
    LocalRows, Param, Protocol, Setup, Source, Statement, Step, Transaction, Variable, Workload,
};

const DIRECTIVES: [&str; 20] = [
    "set",
    "transaction",
    "session",
    "setup",
    "if",
    "elif",
    "else",
    "endif",
    "repeat",
    "endrepeat",
    "while",
    "endwhile",
    "gset",
    "sleep",
    "reconnect",
    "kind",
    "text",
    "prepared",
    "rows",
    "dictionary",
];

/// Most rows that one LOAD DATA LOCAL may be given.
const LOCAL_ROWS_MAX: u64 = 1_000_000_000;
const WEIGHT_MAX: u32 = 1_000_000;

pub(super) fn workload(name: &str, text: &str, options: &SqlOptions) -> Result<Workload, Wrong> {
    let mut builder = Builder::new(name, options)?;
    for item in lex(text)? {
        match item {
            Item::Statement(statement) => builder.statement(statement, options)?,
            Item::Directive { line, name, arguments } => {
                if name != "gset" {
                    builder.begin_item()?;
                }
                builder.directive(line, &name, &arguments).map_err(|message| Wrong::at(line, message))?;
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
    /// What directives said of the statement that follows.
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
    /// No `\transaction` was seen.
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
    fn new(name: &str, options: &SqlOptions) -> Result<Builder, Wrong> {
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
                let message =
                    format!("'{name}' can't be a variable's name: give letters, digits and underscores");
                return Err(Wrong::at(0, message));
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

    fn statement(&mut self, text: Text, options: &SqlOptions) -> Result<(), Wrong> {
        self.begin_item()?;
        let statement = self.read_statement(&text, options)?;
        self.unended = (!text.ended).then_some(text.line);
        if self.section == Section::Setup {
            if !statement.params.is_empty() {
                return Err(Wrong::at(text.line, "a statement of \\setup is run once, without parameters"));
            }
            if let Some(setup) = &mut self.workload.setup {
                setup.statements.push(statement.sql);
            }
            return Ok(());
        }
        if self.section == Section::Session {
            if !statement.params.is_empty() {
                return Err(Wrong::at(
                    text.line,
                    "a statement of \\session is run once a connection, without parameters",
                ));
            }
            self.workload.session.push(statement.sql);
            return Ok(());
        }
        self.last_statement = true;
        self.push(Step::Send(statement));
        Ok(())
    }

    fn read_statement(&mut self, text: &Text, options: &SqlOptions) -> Result<Statement, Wrong> {
        let mut params = Vec::new();
        let mut has_inline = false;
        for mark in &text.marks {
            let place = self.variable(&mark.name).map_err(|message| Wrong::at(mark.line, message))?;
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
            return Err(Wrong::at(text.line, format!("{what} can't be prepared: leave out \\prepared")));
        }
        let loads_local = starts_with_words(&text.sql, &["load", "data"])
            && text.sql.to_ascii_lowercase().split_whitespace().any(|word| word == "local");
        match (loads_local, &local_rows) {
            (true, None) => {
                return Err(Wrong::at(
                    text.line,
                    "LOAD DATA LOCAL loads rows that are made up: say which, such as '-- \\rows 1000 :id, random_string('@@@@')' \
                     before it",
                ));
            }
            (false, Some(_)) => {
                return Err(Wrong::at(
                    text.line,
                    "\\rows is for a LOAD DATA LOCAL, which this statement is not",
                ));
            }
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

    fn directive(&mut self, line: usize, name: &str, arguments: &str) -> Result<(), String> {
        if name == "gset" {
            return self.gset(arguments);
        }
        match name {
            "set" => {
                let variable = name_at(arguments);
                let value = arguments[variable.len()..].trim();
                if variable.is_empty() || value.is_empty() {
                    return Err("\\set is written '\\set NAME EXPRESSION', such as \\set id random(1, 1000)"
                        .to_string());
                }
                if variable == "client_id" || variable == "row_count" {
                    return Err(format!(":{variable} is set by whyso: choose another name"));
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
                    return Err(
                        "\\setup is written once, with a SELECT that gives 1 where the tables are there, such as \\setup SELECT COUNT(*) = 1000 FROM t"
                            .to_string(),
                    );
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
                let nearest = match nearest_name(name, DIRECTIVES) {
                    Some(nearest) => format!(" (did you mean \\{nearest}?)"),
                    None => String::new(),
                };
                return Err(format!(
                    "there is no directive '\\{name}'{nearest}: the directives are \\{}",
                    DIRECTIVES.join(", \\")
                ));
            }
        }
        Ok(())
    }

    /// Every statement and directive but `\gset` goes through here.
    fn begin_item(&mut self) -> Result<(), Wrong> {
        self.last_statement = false;
        match self.unended.take() {
            Some(line) => Err(Wrong::at(line, "the statement that begins here has no end: end it with ;")),
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

    fn transaction(&mut self, arguments: &str) -> Result<(), String> {
        let (name, weight) = match arguments.split_once('@') {
            Some((name, weight)) => (name.trim(), Some(weight.trim())),
            None => (arguments, None),
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(
                "\\transaction is written '\\transaction NAME' or '\\transaction NAME@WEIGHT'".to_string()
            );
        }
        let weight = match weight.map(str::parse::<u32>) {
            None => 1,
            Some(Ok(weight)) if weight <= WEIGHT_MAX => weight,
            Some(_) => {
                return Err(format!("the weight of {name} must be a whole number from 0 to {WEIGHT_MAX}"));
            }
        };
        self.end_section()?;
        let transactions = &mut self.workload.transactions;
        if transactions.iter().any(|known| known.name == name) {
            return Err(format!("there is a transaction {name} already: give each its own name"));
        }
        transactions.push(Transaction { name: name.to_string(), weight, steps: Vec::new() });
        self.section = Section::Transaction;
        self.open_steps = vec![self.before.clone()];
        self.defined.clone_from(&self.defined_before);
        Ok(())
    }

    /// Puts away what was read since the last `\transaction` or `\session`.
    fn end_section(&mut self) -> Result<(), String> {
        if let Some(Block { line, kind }) = self.blocks.first() {
            return Err(format!("\\{} of line {line} has no {} before this", kind.begin(), kind.end()));
        }
        if self.next.is_something() {
            return Err(format!(
                "what line {} says of the next statement is followed by none",
                self.next.line
            ));
        }
        let steps = std::mem::replace(&mut self.open_steps, vec![Vec::new()]).remove(0);
        match self.section {
            Section::Whole => {
                if steps.iter().any(|step| !matches!(step, Step::Set { .. })) {
                    return Err("what stands before this belongs to no transaction: begin it with \\transaction NAME, or \
                                with \\session if it is to be run once a connection"
                        .to_string());
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

    fn pause(&mut self, arguments: &str) -> Result<Expr, String> {
        let (number, unit) = match arguments.rsplit_once(char::is_whitespace) {
            Some((number, unit @ ("us" | "ms" | "s"))) => (number, unit),
            _ => (arguments, "s"),
        };
        let wrong = |message: String| format!("\\sleep is written '\\sleep TIME [us|ms|s]': {message}");
        let number = expression::expression(number, self).map_err(wrong)?;
        let units_per_s = match unit {
            "us" => 1e6,
            "ms" => 1e3,
            _ => return Ok(number),
        };
        let right = Box::new(Expr::Double(units_per_s));
        Ok(Expr::Binary { operator: Operator::Divide, left: Box::new(number), right })
    }

    fn of_next(&mut self, name: &str, arguments: &str) -> Result<(), String> {
        match name {
            "kind" => {
                if arguments.is_empty() || arguments.contains(char::is_whitespace) {
                    return Err("\\kind is written '\\kind NAME', and the name is one word".to_string());
                }
                if arguments == "transaction" || arguments == "rollback" {
                    return Err(format!("results have a {arguments} of their own: choose another name"));
                }
                self.next.kind = Some(arguments.to_string());
            }
            "rows" => {
                let wrong = "\\rows is written '\\rows COUNT FIELD, FIELD, …'";
                let (count, fields) = arguments.split_once(char::is_whitespace).ok_or(wrong)?;
                let rows = match count.parse::<u64>() {
                    Ok(rows) if (1..=LOCAL_ROWS_MAX).contains(&rows) => rows,
                    _ => {
                        return Err(format!(
                            "{wrong}: the count is a number from 1 to {LOCAL_ROWS_MAX}, not '{count}'"
                        ));
                    }
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

    fn finish(mut self, last_line: usize) -> Result<Workload, Wrong> {
        self.unended = None;
        let whole = self.section == Section::Whole;
        if whole {
            // All of the file is one transaction.
            self.section = Section::Transaction;
        }
        self.end_section().map_err(|message| {
            let line = self.blocks.first().map_or(last_line, |block| block.line);
            Wrong::at(line, message.replace(" before this", ""))
        })?;
        let reserved: Vec<String> =
            self.workload.variables.iter().map(|variable| variable.name.clone()).collect();
        let mut captures = self.captures.into_iter();
        for transaction in &mut self.workload.transactions {
            fill_captures(&mut transaction.steps, &mut captures, &reserved);
        }
        let sends = |transaction: &Transaction| transaction.weight > 0 && does_something(&transaction.steps);
        if !self.workload.transactions.iter().any(sends) {
            return Err(Wrong::at(
                last_line,
                "there is nothing to do: give at least one statement, with a weight above 0",
            ));
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

pub(super) fn no_arguments(name: &str, arguments: &str) -> Result<(), String> {
    match arguments {
        "" => Ok(()),
        _ => Err(format!("\\{name} takes nothing after it, and '{arguments}' follows")),
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

//! Makes a workload of a file's statements and directives.

use super::expression::{self, Names};
use super::lexer::{Item, Text, lex, name_at};
use super::{SqlOptions, Wrong};
use crate::dictionary::{Dictionary, DictionarySource, DictionaryValues};
use crate::distribution::Distribution;
use crate::expr::{Expr, Operator, ValueType};
use crate::suggest::nearest_name;
use crate::workload::{
    Capture, LocalRows, Param, Protocol, Source, Statement, Step, Transaction, Variable, Workload,
};

const DIRECTIVES: [&str; 19] = [
    "set",
    "transaction",
    "session",
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
                builder.directive(line, &name, &arguments).map_err(|message| Wrong::at(line, message))?;
            }
        }
    }
    let last_line = text.lines().count().max(1);
    builder.finish(last_line)
}

struct Builder {
    workload: Workload,
    /// Variables that have a value where the file is being read.
    defined: Vec<u16>,
    /// Those that every transaction begins with.
    defined_before: Vec<u16>,
    /// What stands before the first `\transaction`, and so begins every one.
    before: Vec<Step>,
    section: Section,
    /// Steps of the blocks that are open, the innermost last; the first are the transaction's own.
    open_steps: Vec<Vec<Step>>,
    blocks: Vec<Block>,
    /// What directives said of the statement that follows.
    next: Next,
    /// Captures in the order of their statements.
    captures: Vec<Gset>,
    /// The thing read last was a statement of this line, which a `\gset` may follow.
    last_statement: bool,
    /// A statement that no `;` has ended.
    unended: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// No `\transaction` was seen.
    Whole,
    Transaction,
    Session,
}

struct Block {
    line: usize,
    kind: BlockKind,
}

enum BlockKind {
    If {
        condition: Expr,
    },
    /// `then`: what stands before it; `nested`: it is an `\elif`, whose own `\if` ends with the same `\endif`.
    Else {
        condition: Expr,
        then: Vec<Step>,
        nested: bool,
    },
    Repeat {
        times: Expr,
    },
    While {
        condition: Expr,
    },
}

#[derive(Default)]
struct Next {
    line: usize,
    kind: Option<String>,
    protocol: Option<Protocol>,
    local_rows: Option<LocalRows>,
}

struct Gset {
    prefix: String,
    columns: Vec<(String, u16)>,
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

    /// Such as "select_account"; another statement with the same words gets a number.
    fn derived_kind(&self, sql: &str) -> String {
        let base = kind_of(sql);
        let is_free = |name: &str| {
            let in_blocks = self.open_steps.iter().flatten();
            let sent = in_blocks.filter_map(|step| match step {
                Step::Send(statement) => Some(statement),
                _ => None,
            });
            self.workload
                .statements()
                .into_iter()
                .chain(sent)
                .all(|known| known.kind != name || known.sql == sql)
        };
        let numbered = (2..).map(|number: u32| format!("{base}_{number}"));
        std::iter::once(base.clone()).chain(numbered).find(|name| is_free(name)).unwrap_or(base)
    }

    fn directive(&mut self, line: usize, name: &str, arguments: &str) -> Result<(), String> {
        if name == "gset" {
            return self.gset(arguments);
        }
        self.begin_item().map_err(|wrong| wrong.message)?;
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
            "transaction" => self.transaction(line, arguments)?,
            "session" => {
                no_arguments(name, arguments)?;
                self.end_section()?;
                self.section = Section::Session;
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

    fn push(&mut self, step: Step) {
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

    fn place_of(&mut self, name: &str) -> u16 {
        let variables = &mut self.workload.variables;
        let place = variables.iter().position(|variable| variable.name == name).unwrap_or_else(|| {
            variables.push(Variable { name: name.to_string(), value_type: ValueType::Int });
            variables.len() - 1
        });
        u16::try_from(place).unwrap_or(u16::MAX)
    }

    fn transaction(&mut self, line: usize, arguments: &str) -> Result<(), String> {
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
        let _ = line;
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
            Section::Session => {}
        }
        Ok(())
    }

    fn open(&mut self, line: usize, kind: BlockKind) {
        self.blocks.push(Block { line, kind });
        self.open_steps.push(Vec::new());
    }

    /// Closes the innermost block's steps.
    fn close(&mut self) -> Vec<Step> {
        self.open_steps.pop().unwrap_or_default()
    }

    fn otherwise(&mut self, line: usize, name: &str, arguments: &str) -> Result<(), String> {
        let Some(Block { kind: BlockKind::If { .. }, .. }) = self.blocks.last() else {
            return Err(format!("\\{name} follows no \\if"));
        };
        let nested = name == "elif";
        let next_condition = if nested {
            Some(expression::expression(arguments, self)?)
        } else {
            no_arguments(name, arguments)?;
            None
        };
        let then = self.close();
        if let Some(Block { line: begin, kind: BlockKind::If { condition } }) = self.blocks.pop() {
            self.open(begin, BlockKind::Else { condition, then, nested });
        }
        if let Some(condition) = next_condition {
            self.open(line, BlockKind::If { condition });
        }
        Ok(())
    }

    fn end_if(&mut self, arguments: &str) -> Result<(), String> {
        no_arguments("endif", arguments)?;
        if !matches!(
            self.blocks.last(),
            Some(Block { kind: BlockKind::If { .. } | BlockKind::Else { .. }, .. })
        ) {
            return Err("\\endif follows no \\if".to_string());
        }
        loop {
            let steps = self.close();
            match self.blocks.pop() {
                Some(Block { kind: BlockKind::If { condition }, .. }) => {
                    self.push(Step::If { condition, then: steps, otherwise: Vec::new() });
                }
                Some(Block { kind: BlockKind::Else { condition, then, .. }, .. }) => {
                    self.push(Step::If { condition, then, otherwise: steps });
                }
                _ => {}
            }
            if !matches!(self.blocks.last(), Some(Block { kind: BlockKind::Else { nested: true, .. }, .. })) {
                return Ok(());
            }
        }
    }

    fn end_loop(&mut self, name: &str, arguments: &str) -> Result<(), String> {
        no_arguments(name, arguments)?;
        let fits = match self.blocks.last() {
            Some(Block { kind: BlockKind::Repeat { .. }, .. }) => name == "endrepeat",
            Some(Block { kind: BlockKind::While { .. }, .. }) => name == "endwhile",
            _ => false,
        };
        if !fits {
            return Err(format!("\\{name} follows no \\{}", name.trim_start_matches("end")));
        }
        let steps = self.close();
        match self.blocks.pop().map(|block| block.kind) {
            Some(BlockKind::Repeat { times }) => self.push(Step::Repeat { times, steps }),
            Some(BlockKind::While { condition }) => self.push(Step::While { condition, steps }),
            _ => {}
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

    fn dictionary_of(&mut self, arguments: &str) -> Result<(), String> {
        let wrong =
            "\\dictionary is written '\\dictionary NAME file PATH' or '\\dictionary NAME query SELECT …'";
        let name = name_at(arguments);
        let rest = arguments[name.len()..].trim_start();
        let (how, what) = rest.split_once(char::is_whitespace).ok_or(wrong)?;
        let source = match (how, what.trim()) {
            (_, "") => return Err(wrong.to_string()),
            ("file", path) => DictionarySource::File(path.to_string()),
            ("query", sql) => DictionarySource::Query(sql.trim_end_matches(';').to_string()),
            _ => return Err(wrong.to_string()),
        };
        let name = name.to_ascii_lowercase();
        if name.is_empty() || self.workload.dictionaries.iter().any(|known| known.name == name) {
            return Err(if name.is_empty() {
                wrong.to_string()
            } else {
                format!("there is a dictionary {name} already")
            });
        }
        let values = DictionaryValues::Texts(Vec::new());
        self.workload.dictionaries.push(Dictionary { name, source, values });
        Ok(())
    }

    fn gset(&mut self, prefix: &str) -> Result<(), String> {
        self.unended = None;
        let follows = std::mem::take(&mut self.last_statement);
        let last = self.open_steps.last_mut().and_then(|steps| steps.last_mut());
        let Some(Step::Send(statement)) = last.filter(|_| follows) else {
            return Err("\\gset keeps the answer of a statement: put it right after one".to_string());
        };
        if name_at(prefix) != prefix {
            return Err(format!(
                "the prefix '{prefix}' can't begin a variable's name: give letters and underscores"
            ));
        }
        statement.capture = Some(Capture { columns: Vec::new(), reserved: Vec::new() });
        self.captures.push(Gset { prefix: prefix.to_string(), columns: Vec::new() });
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

impl Names for Builder {
    fn variable(&mut self, name: &str) -> Result<u16, String> {
        let known = self.workload.variables.iter().position(|variable| variable.name == name);
        if let Some(place) = known.and_then(|place| u16::try_from(place).ok())
            && self.defined.contains(&place)
        {
            return Ok(place);
        }
        // A name that nothing set may be a column of an answer before.
        let from_answer =
            self.captures_of_transaction().rev().find(|&i| name.starts_with(&self.captures[i].prefix));
        if let Some(i) = from_answer {
            let place = self.place_of(name);
            let column = name[self.captures[i].prefix.len()..].to_string();
            self.captures[i].columns.push((column, place));
            self.defined.push(place);
            return Ok(place);
        }
        let variables = &self.workload.variables;
        let defined = self.defined.iter().filter_map(|place| variables.get(usize::from(*place)));
        Err(match nearest_name(name, defined.map(|variable| variable.name.as_str())) {
            Some(nearest) => format!("':{name}' has no value (did you mean :{nearest}?)"),
            None => {
                format!("':{name}' has no value: set it above, such as '-- \\set {name} random(1, 1000)'")
            }
        })
    }

    fn dictionary(&mut self, name: &str) -> Result<u16, String> {
        let known = || self.workload.dictionaries.iter().map(|dictionary| dictionary.name.as_str());
        match known().position(|known| known == name) {
            Some(place) => Ok(u16::try_from(place).unwrap_or(u16::MAX)),
            None => Err(match nearest_name(name, known()) {
                Some(nearest) => format!("there is no dictionary '{name}' (did you mean {nearest}?)"),
                None => format!(
                    "there is no dictionary '{name}': give it above, such as '-- \\dictionary {name} file {name}.txt'"
                ),
            }),
        }
    }
}

impl Builder {
    /// Places of the captures that belong to statements of the transaction that is being read.
    fn captures_of_transaction(&self) -> std::ops::Range<usize> {
        let open = self.open_steps.iter().map(|steps| count_captures(steps)).sum::<usize>();
        let in_blocks: usize = self
            .blocks
            .iter()
            .map(|block| match &block.kind {
                BlockKind::Else { then, .. } => count_captures(then),
                _ => 0,
            })
            .sum();
        self.captures.len() - (open + in_blocks)..self.captures.len()
    }
}

impl BlockKind {
    fn begin(&self) -> &'static str {
        match self {
            BlockKind::If { .. } | BlockKind::Else { .. } => "if",
            BlockKind::Repeat { .. } => "repeat",
            BlockKind::While { .. } => "while",
        }
    }

    fn end(&self) -> &'static str {
        match self {
            BlockKind::If { .. } | BlockKind::Else { .. } => "\\endif",
            BlockKind::Repeat { .. } => "\\endrepeat",
            BlockKind::While { .. } => "\\endwhile",
        }
    }
}

impl Next {
    fn is_something(&self) -> bool {
        self.kind.is_some() || self.protocol.is_some() || self.local_rows.is_some()
    }
}

fn no_arguments(name: &str, arguments: &str) -> Result<(), String> {
    match arguments {
        "" => Ok(()),
        _ => Err(format!("\\{name} takes nothing after it, and '{arguments}' follows")),
    }
}

fn count_captures(steps: &[Step]) -> usize {
    steps
        .iter()
        .map(|step| match step {
            Step::Send(statement) => usize::from(statement.capture.is_some()),
            Step::If { then, otherwise, .. } => count_captures(then) + count_captures(otherwise),
            Step::Repeat { steps, .. } | Step::While { steps, .. } => count_captures(steps),
            _ => 0,
        })
        .sum()
}

/// Gives each capture, in the order of the statements, the columns that were asked for after it.
fn fill_captures(steps: &mut [Step], captures: &mut impl Iterator<Item = Gset>, variables: &[String]) {
    for step in steps {
        match step {
            Step::Send(Statement { capture: capture @ Some(_), .. }) => {
                let Some(Gset { prefix, columns }) = captures.next() else { return };
                let is_kept =
                    |name: &String| columns.iter().any(|(column, _)| *name == format!("{prefix}{column}"));
                let reserved = variables
                    .iter()
                    .filter(|name| !is_kept(name))
                    .filter_map(|name| name.strip_prefix(prefix.as_str()))
                    .filter(|column| !column.is_empty())
                    .map(str::to_string)
                    .collect();
                *capture = (!columns.is_empty()).then_some(Capture { columns, reserved });
            }
            Step::If { then, otherwise, .. } => {
                fill_captures(then, captures, variables);
                fill_captures(otherwise, captures, variables);
            }
            Step::Repeat { steps, .. } | Step::While { steps, .. } => {
                fill_captures(steps, captures, variables)
            }
            _ => {}
        }
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

/// The first word and the table or routine that it is about, such as "select_account", as far as the text tells.
fn kind_of(sql: &str) -> String {
    let words: Vec<String> = sql
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | ';' | '='))
        .filter(|word| !word.is_empty())
        .map(|word| word.trim_matches('`').to_ascii_lowercase())
        .collect();
    let Some(verb) = words.first() else { return "statement".to_string() };
    let is_name = |word: &&String| !name_at(word).is_empty();
    let after = |keyword: &str| words.iter().skip_while(|word| *word != keyword).nth(1).filter(is_name);
    let object = match verb.as_str() {
        "select" | "delete" | "with" => after("from"),
        "insert" | "replace" | "load" => {
            after("into").or_else(|| after("table")).filter(|word| *word != "table")
        }
        "update" | "call" | "set" => words.get(1).filter(is_name),
        _ => None,
    };
    let object = if verb == "load" { after("table") } else { object };
    let verb: String = verb.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let verb = if verb.is_empty() { "statement".to_string() } else { verb };
    match object {
        Some(name) => {
            let name = name.rsplit('.').next().unwrap_or(name).trim_matches('`');
            let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            format!("{verb}_{plain}")
        }
        None => verb,
    }
}

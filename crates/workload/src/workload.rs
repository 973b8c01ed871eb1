//! A workload as a value: which transactions there are, what each consists of, and how parameters are drawn.

use serde::{Deserialize, Serialize};

use crate::dictionary::{Dictionary, DictionaryValues, Order};
use crate::distribution::Distribution;
use crate::error::WorkloadError;
use crate::expr::{Expr, ValueType};
use crate::suggest::nearest_name;

/// What each user does, over and over. Nothing in here knows how it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Such as "oltp-read-write".
    pub name: String,
    /// One sentence on what it is for.
    pub summary: String,
    /// Number of sysbench's OLTP tables, `sbtest1` upwards, that it uses; 0 where it uses none.
    pub tables: u32,
    /// Rows that [`Param::Drawn`] is drawn from; in sysbench's tables, those that each was loaded with.
    pub rows: u64,
    /// How [`Param::Drawn`] row numbers are chosen.
    pub distribution: Distribution,
    /// Each transaction is one of these, drawn by their weights.
    pub transactions: Vec<Transaction>,
    /// What [`Step::Set`] and [`Capture`] fill, empty again at every transaction's begin. Where there are any, the first
    /// two are those of [`Variable::predefined`].
    pub variables: Vec<Variable>,
    pub dictionaries: Vec<Dictionary>,
    /// Statements that are run once on every connection, before it is used.
    pub session: Vec<String>,
    /// The data that it needs, where sysbench's tables are not what it runs on.
    pub setup: Option<Setup>,
    /// Server errors after which the transaction is rolled back and begun again with the same parameters.
    pub retry_errors: Vec<u16>,
    /// The fewest rows a table may have for the workload to mean what it says.
    pub rows_min: u64,
}

/// One kind of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    pub name: String,
    /// How often it is drawn, relative to the others; 0: never.
    pub weight: u32,
    pub steps: Vec<Step>,
}

/// What a transaction does next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Statements over sysbench's tables.
    Group(Group),
    Send(Statement),
    Set {
        /// Place in [`Workload::variables`].
        variable: u16,
        source: Source,
    },
    /// Sends nothing for this many seconds; negative ones and NULL count as 0.
    Pause {
        seconds: Expr,
    },
    /// Closes the connection and makes a new one.
    Reconnect,
    If {
        condition: Expr,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    Repeat {
        times: Expr,
        steps: Vec<Step>,
    },
    While {
        condition: Expr,
        steps: Vec<Step>,
    },
}

/// Statements that share one table, which is drawn uniformly for each transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// How many times the statements are run, one after the other; at least 1.
    pub repeat: u32,
    /// How many row numbers are drawn before each repetition, for [`Param::Drawn`]; at most [`DRAWS_MAX`].
    pub draws: u8,
    pub statements: Vec<Statement>,
}

/// Most row numbers that a group may draw.
pub const DRAWS_MAX: usize = 4;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Such as "point_select": what results are grouped by. Several statements may share a kind.
    pub kind: String,
    /// With `?` for parameters and [`TABLE_NUMBER`] for the number of the table.
    pub sql: String,
    pub protocol: Protocol,
    /// One for each `?`.
    pub params: Vec<Param>,
    /// What is stored of its answer.
    pub capture: Option<Capture>,
    /// What is sent when the server asks for the file of a LOAD DATA LOCAL.
    pub local_rows: Option<LocalRows>,
}

/// Stands for the table's number in [`Statement::sql`].
pub const TABLE_NUMBER: &str = "{table}";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Prepared once a connection and table, then executed.
    Prepared,
    /// Sent as text each time, with literals in place of the parameters.
    Text,
}

/// How one parameter gets its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Param {
    /// A row number that the group drew, by its position, plus a constant.
    Drawn {
        slot: u8,
        plus: i32,
    },
    /// Groups of eleven random digits with dashes between them, as in sysbench's `c` (10) and `pad` (5); at most
    /// [`DIGIT_GROUPS_MAX`].
    Digits {
        groups: u8,
    },
    Int(i32),
    /// Place in [`Workload::variables`]; sent as that variable's type.
    Variable(u16),
    /// The same as a part of the text, such as a table's number: a whole number in a [`Protocol::Text`] statement.
    Inline(u16),
}

/// Most groups that [`Param::Digits`] may have.
pub const DIGIT_GROUPS_MAX: usize = 10;

/// Something that a transaction remembers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    pub value_type: ValueType,
}

/// Place of the user's number among the variables; 0 in an open loop, where transactions belong to no user.
pub const CLIENT_ID: u16 = 0;
/// Place of the number of rows that the last statement returned or, where it returned none, affected.
pub const ROW_COUNT: u16 = 1;

impl Variable {
    /// The variables that are always there, in their places.
    pub fn predefined() -> Vec<Variable> {
        ["client_id", "row_count"]
            .into_iter()
            .map(|name| Variable { name: name.to_string(), value_type: ValueType::Int })
            .collect()
    }
}

/// Where a variable's value comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Expr(Expr),
    /// A text with a random digit for each `#` and a random small letter for each `@`.
    Template(String),
    Dictionary {
        /// Place in [`Workload::dictionaries`].
        dictionary: u16,
        order: Order,
    },
}

/// Columns of the first row of the first result; all NULL where there is no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Column name and place in [`Workload::variables`]. The answer has to have each.
    pub columns: Vec<(String, u16)>,
    /// Column names that the answer may not have, since a variable of that name holds something else.
    pub reserved: Vec<String>,
}

/// Generated lines: fields with tabs between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalRows {
    pub rows: u64,
    pub fields: Vec<Source>,
}

/// Statements that create and fill the tables that a workload brings along. They run once, in order, in an empty schema
/// of whyso's own. Run again, as after an interruption, they complete the same data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    pub statements: Vec<String>,
    /// A query that returns 1 once all is there. It returns something else, or fails because a table is missing, where
    /// the statements have to be run.
    pub check: String,
}

/// What a workload needs of the data that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirements<'w> {
    /// sysbench's OLTP tables `sbtest1` to this number; 0: none.
    pub tables: u32,
    /// Rows in each, at least: no fewer than the rows that it draws from, nor than one range.
    pub rows: u64,
    /// What has to be run where its own check finds the data missing.
    pub setup: Option<&'w Setup>,
}

impl Statement {
    /// Whether it names a table by number.
    pub fn is_per_table(&self) -> bool {
        self.sql.contains(TABLE_NUMBER)
    }

    /// The text for one table, from 1.
    pub fn sql_for_table(&self, table: u32) -> String {
        self.sql.replace(TABLE_NUMBER, &table.to_string())
    }
}

impl Workload {
    /// Tables and rows that it needs, and statements that make them where they are its own.
    pub fn requirements(&self) -> Requirements<'_> {
        let rows = if self.tables == 0 { 0 } else { self.rows.max(self.rows_min) };
        Requirements { tables: self.tables, rows, setup: self.setup.as_ref() }
    }

    /// Checks it against the data set that is there or is asked for.
    ///
    /// # Errors
    /// [`WorkloadError::DataTooSmall`] says what is needed.
    pub fn check_data(&self, have_tables: u32, have_rows: u64) -> Result<(), WorkloadError> {
        let Requirements { tables, rows, .. } = self.requirements();
        if have_tables >= tables && have_rows >= rows {
            return Ok(());
        }
        Err(WorkloadError::DataTooSmall { workload: self.name.clone(), tables, rows, have_tables, have_rows })
    }

    /// Hands over the values of one of its dictionaries; a file's lines, without their ends, or a query's first column.
    ///
    /// # Errors
    /// A name that no dictionary has, and a list without values.
    pub fn fill(&mut self, name: &str, values: Vec<Vec<u8>>) -> Result<(), WorkloadError> {
        match self.dictionaries.iter_mut().find(|dictionary| dictionary.name == name) {
            Some(dictionary) => {
                dictionary.fill(values)?;
                self.settle_types();
                Ok(())
            }
            None => Err(WorkloadError::UnknownDictionary {
                name: name.to_string(),
                nearest: nearest_name(name, self.dictionaries.iter().map(|d| d.name.as_str()))
                    .map(str::to_string),
            }),
        }
    }

    /// The names of those transactions that are ever drawn, in order; empty where that is one alone.
    pub fn transaction_kinds(&self) -> Vec<&str> {
        let drawn = self.transactions.iter().filter(|transaction| transaction.weight > 0);
        let names: Vec<&str> = drawn.map(|transaction| transaction.name.as_str()).collect();
        if names.len() > 1 { names } else { Vec::new() }
    }

    /// The kinds of its statements in order, each once.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for statement in self.statements() {
            if !kinds.contains(&statement.kind.as_str()) {
                kinds.push(&statement.kind);
            }
        }
        kinds
    }

    /// Every statement, in the order in which it is written: a branch's before those of its alternative.
    pub fn statements(&self) -> Vec<&Statement> {
        let mut statements = Vec::new();
        for transaction in &self.transactions {
            collect_statements(&transaction.steps, &mut statements);
        }
        statements
    }

    /// Statements that every transaction sends when nothing fails; `None` where that differs from one to the next.
    pub fn statements_per_transaction(&self) -> Option<u64> {
        let mut drawn = self.transactions.iter().filter(|transaction| transaction.weight > 0);
        let count = count_statements(&drawn.next()?.steps)?;
        drawn.all(|other| count_statements(&other.steps) == Some(count)).then_some(count)
    }

    /// Whether a transaction opens one on the server, which is what a rollback would have to end.
    pub fn opens_transaction(&self) -> bool {
        self.statements().iter().any(|statement| {
            let mut words = statement.sql.split_whitespace();
            let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            first.eq_ignore_ascii_case("begin")
                || first.eq_ignore_ascii_case("start") && second.eq_ignore_ascii_case("transaction")
        })
    }
}

fn collect_statements<'w>(steps: &'w [Step], into: &mut Vec<&'w Statement>) {
    for step in steps {
        match step {
            Step::Group(group) => into.extend(&group.statements),
            Step::Send(statement) => into.push(statement),
            Step::If { then, otherwise, .. } => {
                collect_statements(then, into);
                collect_statements(otherwise, into);
            }
            Step::Repeat { steps, .. } | Step::While { steps, .. } => collect_statements(steps, into),
            Step::Set { .. } | Step::Pause { .. } | Step::Reconnect => {}
        }
    }
}

fn count_statements(steps: &[Step]) -> Option<u64> {
    let mut count: u64 = 0;
    for step in steps {
        count = count.saturating_add(match step {
            Step::Group(group) => u64::from(group.repeat) * group.statements.len() as u64,
            Step::Send(_) => 1,
            Step::If { then, otherwise, .. } => {
                let of_then = count_statements(then)?;
                if count_statements(otherwise)? != of_then {
                    return None;
                }
                of_then
            }
            Step::Repeat { times: Expr::Int(times), steps } => {
                count_statements(steps)?.saturating_mul(u64::try_from(*times).unwrap_or(0))
            }
            Step::Repeat { steps, .. } | Step::While { steps, .. } => match count_statements(steps)? {
                0 => 0,
                _ => return None,
            },
            Step::Set { .. } | Step::Pause { .. } | Step::Reconnect => 0,
        });
    }
    Some(count)
}

impl Workload {
    /// Works out what each variable is sent as from all that is put into it. To be called again when a dictionary was
    /// filled, whose values may be numbers.
    pub(crate) fn settle_types(&mut self) {
        for variable in &mut self.variables {
            variable.value_type = ValueType::Int;
        }
        // A type only ever grows, from whole numbers over doubles to texts.
        for _ in 0..=2 * self.variables.len() {
            let mut variables = self.variables.clone();
            for transaction in &self.transactions {
                self.join_types(&transaction.steps, &mut variables);
            }
            if variables == self.variables {
                return;
            }
            self.variables = variables;
        }
    }

    fn join_types(&self, steps: &[Step], variables: &mut [Variable]) {
        for step in steps {
            match step {
                Step::Set { variable, source } => {
                    let value_type = self.type_of(source, variables);
                    join_type(variables, *variable, value_type);
                }
                Step::Send(Statement { capture: Some(capture), .. }) => {
                    for (_, variable) in &capture.columns {
                        join_type(variables, *variable, ValueType::Text);
                    }
                }
                Step::If { then, otherwise, .. } => {
                    self.join_types(then, variables);
                    self.join_types(otherwise, variables);
                }
                Step::Repeat { steps, .. } | Step::While { steps, .. } => self.join_types(steps, variables),
                _ => {}
            }
        }
    }

    fn type_of(&self, source: &Source, variables: &[Variable]) -> ValueType {
        match source {
            Source::Expr(expr) => expr.value_type(variables),
            Source::Template(_) => ValueType::Text,
            Source::Dictionary { dictionary, .. } => {
                match self.dictionaries.get(usize::from(*dictionary)).map(|dictionary| &dictionary.values) {
                    Some(DictionaryValues::Ints(_)) => ValueType::Int,
                    _ => ValueType::Text,
                }
            }
        }
    }
}

fn join_type(variables: &mut [Variable], place: u16, value_type: ValueType) {
    if let Some(variable) = variables.get_mut(usize::from(place)) {
        variable.value_type = variable.value_type.join(value_type);
    }
}

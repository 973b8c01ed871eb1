//! A workload as a value: what a transaction consists of, and how its parameters are drawn.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::error::WorkloadError;

/// What each user does, over and over. Nothing in here knows how it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Such as "oltp-read-write".
    pub name: String,
    /// One sentence on what it is for.
    pub summary: String,
    /// Number of tables, `sbtest1` upwards.
    pub tables: u32,
    /// Rows that each table was loaded with.
    pub rows: u64,
    /// How [`Param::Drawn`] row numbers are chosen.
    pub distribution: Distribution,
    /// The transaction, in order.
    pub groups: Vec<Group>,
    /// Server errors after which the transaction is rolled back and begun again with the same parameters.
    pub retry_errors: Vec<u16>,
    /// The fewest rows a table may have for the workload to mean what it says.
    pub rows_min: u64,
}

/// Statements that share one table, which is drawn uniformly once a transaction.
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
    /// Such as "point_select": what results are given by. Several statements may share a kind.
    pub kind: String,
    /// With `?` for parameters and [`TABLE_NUMBER`] for the number of the table.
    pub sql: String,
    pub protocol: Protocol,
    /// One for each `?`.
    pub params: Vec<Param>,
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
}

/// Most groups that [`Param::Digits`] may have.
pub const DIGIT_GROUPS_MAX: usize = 10;

/// What a workload needs of the data that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// sysbench's OLTP tables `sbtest1` to this number.
    pub tables: u32,
    /// Rows in each, at least: no fewer than the rows that it draws from, nor than one range.
    pub rows: u64,
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
    /// Tables and rows that it needs.
    pub fn requirements(&self) -> Requirements {
        Requirements { tables: self.tables, rows: self.rows.max(self.rows_min) }
    }

    /// Checks it against the data set that is there or is asked for.
    ///
    /// # Errors
    /// [`WorkloadError::DataTooSmall`] says what is needed.
    pub fn check_data(&self, have_tables: u32, have_rows: u64) -> Result<(), WorkloadError> {
        let Requirements { tables, rows } = self.requirements();
        if have_tables >= tables && have_rows >= rows {
            return Ok(());
        }
        Err(WorkloadError::DataTooSmall { workload: self.name.clone(), tables, rows, have_tables, have_rows })
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

    /// Every statement, in the order in which a transaction first comes to it.
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.groups.iter().flat_map(|group| group.statements.iter())
    }

    /// Statements that one transaction sends when nothing fails.
    pub fn statements_per_transaction(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.repeat) * group.statements.len() as u64).sum()
    }

    /// Whether the transaction opens one on the server, which is what a rollback would have to end.
    pub fn opens_transaction(&self) -> bool {
        self.statements().any(|statement| statement.sql.eq_ignore_ascii_case("BEGIN"))
    }

    /// The whole workload as text for people, several lines.
    pub fn describe(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.summary);
        let tables = if self.tables == 1 {
            "table sbtest1".to_string()
        } else {
            format!("tables sbtest1 to sbtest{}", self.tables)
        };
        let count = self.statements_per_transaction();
        let statements = if count == 1 { "1 statement".to_string() } else { format!("{count} statements") };
        let _ = writeln!(text, "  data          {tables}, {} rows each", self.rows);
        let _ = writeln!(text, "  row numbers   {}", self.distribution);
        let _ = writeln!(text, "  begun again   after the errors {:?}", self.retry_errors);
        let _ = writeln!(text, "  transaction   {statements}");
        for group in &self.groups {
            for statement in &group.statements {
                let repeat = if group.repeat == 1 { String::new() } else { format!("{} ×", group.repeat) };
                let _ = write!(
                    text,
                    "  {repeat:>7} {:<17} {}",
                    statement.kind,
                    statement.sql.replace(TABLE_NUMBER, "N")
                );
                if !statement.params.is_empty() {
                    let params: Vec<String> =
                        statement.params.iter().map(|param| param.to_string()).collect();
                    let _ = write!(text, "   ({})", params.join(", "));
                }
                if statement.protocol == Protocol::Text {
                    text.push_str("   as text");
                }
                text.push('\n');
            }
        }
        text
    }
}

impl std::fmt::Display for Param {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Param::Drawn { slot, plus: 0 } => write!(f, "row{}", slot + 1),
            Param::Drawn { slot, plus } => write!(f, "row{} + {plus}", slot + 1),
            Param::Digits { groups } => write!(f, "{groups} × 11 digits"),
            Param::Int(value) => write!(f, "{value}"),
        }
    }
}

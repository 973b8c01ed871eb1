//! A user's own SQL as a workload: a plain `.sql` file with directives in its comments, or one query.

mod blocks;
mod bounds;
mod build;
mod capture;
mod error;
mod expression;
mod kind;
mod lexer;
mod names;
mod reads;

pub use error::{ExpressionError, SqlFileError};
pub(crate) use reads::only_reads_rows;

use crate::error::WorkloadError;
use crate::sql::error::LineError;
use crate::workload::{Protocol, Statement, Step, Workload};

/// The directives that a SQL file may have, without their backslash.
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

/// Most rows of one LOAD DATA LOCAL.
const LOCAL_ROWS_MAX: u64 = 1_000_000_000;

/// Largest weight of a transaction.
const WEIGHT_MAX: u32 = 1_000_000;

/// What the command line sets for a SQL file, or a query.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlOptions {
    /// How statements are sent that say neither `\text` nor `\prepared`; `None`: prepared where they have parameters.
    pub protocol: Option<Protocol>,
    /// Variables that every transaction begins with, as pgbench's `-D name=value`. A value that is a number is one.
    pub defines: Vec<(String, String)>,
    /// Errors after which a transaction is rolled back and begun again; any other ends the level.
    pub retry_errors: Vec<u16>,
}

impl Default for SqlOptions {
    fn default() -> SqlOptions {
        SqlOptions { protocol: None, defines: Vec::new(), retry_errors: vec![1213, 1020, 1205] }
    }
}

impl Workload {
    /// The workload that a SQL file describes. `name` is that of the file, for messages and results; `text` its content.
    ///
    /// Without a directive, all statements together are one transaction. A value is written `:name` and sent as a
    /// parameter of a prepared statement; `{name}` puts a number into the text itself. Directives stand in comments
    /// (`-- \set id random(1, 1000)`) or, as in pgbench's files, bare at a line's begin:
    ///
    /// | directive | for |
    /// | --- | --- |
    /// | `\set NAME EXPRESSION` | a variable's value, of this transaction |
    /// | `\transaction NAME[@WEIGHT]` | the statements up to the next one are a transaction, drawn by its weight (1) |
    /// | `\session` | the statements up to the next transaction are run once per connection |
    /// | `\setup SELECT …` | the statements up to the next transaction make its tables, where that does not give 1 |
    /// | `\if CONDITION` … `\elif` … `\else` … `\endif` | branches |
    /// | `\repeat TIMES` … `\endrepeat`, `\while CONDITION` … `\endwhile` | loops |
    /// | `\gset [PREFIX]` | after a statement: the columns of its first row become variables; it is sent as text |
    /// | `\sleep TIME [us\|ms\|s]` | a pause |
    /// | `\reconnect` | a new connection |
    /// | `\kind NAME` | results of the next statement are given by this name |
    /// | `\text`, `\prepared` | how the next statement is sent |
    /// | `\rows COUNT FIELD, …` | what the next LOAD DATA LOCAL loads |
    /// | `\dictionary NAME file PATH`, `\dictionary NAME query SELECT …` | values for `random_from`, `next_from`, `unique_from` |
    ///
    /// # Errors
    /// [`WorkloadError::Sql`] names file and line, says what was expected, and the nearest word.
    ///
    /// ```
    /// use whyso_workload::{SqlOptions, Workload};
    ///
    /// let text = "-- \\set id random_zipfian(1, 100000, 0.9)\n\
    ///             SELECT balance FROM account WHERE id = :id;";
    /// let workload = Workload::from_sql_file("balance.sql", text, &SqlOptions::default())?;
    /// assert_eq!(workload.kinds(), ["select_account"]);
    /// assert!(workload.only_reads());
    ///
    /// let error = Workload::from_sql_file("balance.sql", "SELECT :id;\n-- \\sett id 1", &SqlOptions::default());
    /// assert!(error.unwrap_err().to_string().starts_with("balance.sql line 1: ':id' has no value"));
    /// # Ok::<(), whyso_workload::WorkloadError>(())
    /// ```
    pub fn from_sql_file(name: &str, text: &str, options: &SqlOptions) -> Result<Workload, WorkloadError> {
        build::workload(name, text, options).map_err(|LineError { line, problem }| WorkloadError::Sql {
            file: name.to_string(),
            line,
            problem,
        })
    }

    /// The workload that is one query, or several with `;` between them, over and over. A SET of session variables at its
    /// begin is run once per connection; one of `@variables` belongs to the transaction. Everything that a SQL file may
    /// say is understood.
    ///
    /// # Errors
    /// As for [`from_sql_file`](Workload::from_sql_file).
    pub fn from_query(text: &str, options: &SqlOptions) -> Result<Workload, WorkloadError> {
        let mut workload = Workload::from_sql_file("query", text, options)?;
        workload.summary = "a query of the user's own".to_string();
        if let [transaction] = workload.transactions.as_mut_slice() {
            let is_session = |step: &Step| matches!(step, Step::Send(statement) if statement.params.is_empty() && sets_session(&statement.sql));
            let count = transaction.steps.iter().take_while(|step| is_session(step)).count();
            // A query that only sets variables is what is to be measured.
            if count < transaction.steps.len() {
                for step in transaction.steps.drain(..count) {
                    if let Step::Send(Statement { sql, .. }) = step {
                        workload.session.push(sql);
                    }
                }
            }
        }
        Ok(workload)
    }

    /// Whether all that it sends only reads, as far as the texts show. Then it can be run in a READ ONLY session on any
    /// schema. What is not understood counts as writing.
    pub fn only_reads(&self) -> bool {
        self.first_write().is_none()
    }

    /// The first statement that may write, for messages.
    pub fn first_write(&self) -> Option<&str> {
        let session = self.session.iter().map(String::as_str);
        let statements = self.statements().into_iter().map(|statement| statement.sql.as_str());
        session.chain(statements).find(|sql| !reads::only_reads(sql))
    }
}

/// `SET sort_buffer_size = …`, and neither `SET @x = …` nor `SET STATEMENT … FOR …`, which MariaDB has.
fn sets_session(sql: &str) -> bool {
    let mut words = sql.split_whitespace();
    let sets = words.next().is_some_and(|word| word.eq_ignore_ascii_case("set"));
    let target = words.next().unwrap_or_default();
    let is_user_variable = target.starts_with('@') && !target.starts_with("@@");
    sets && !is_user_variable && !target.eq_ignore_ascii_case("statement")
}

#[cfg(test)]
mod tests;

//! What is wrong with an add-on.

use std::io;

use thiserror::Error;

/// Why an add-on can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AddOnError {
    /// What is wrong with the add-on of this name.
    #[error("the add-on {name}: {error}")]
    Named { name: String, error: Box<AddOnError> },
    #[error(
        "no add-on called {name} ships: {}`whyso add-on list` shows those that do; give a file's name with its .toml",
        suggestion(.nearest.as_deref())
    )]
    NotShipped { name: String, nearest: Option<String> },
    #[error("two add-ons are named {0}: rename one of them")]
    SameName(String),
    #[error("can't be read: {0}")]
    File(#[from] io::Error),
    #[error("is longer than 1 MiB, which no add-on's file is")]
    TooLong,
    #[error("is no TOML: {0}")]
    Toml(String),
    #[error(
        "name = {name:?} can't be a source's name: give at most {length_max} small letters, digits, - or _, a letter first"
    )]
    SourceName { name: String, length_max: usize },
    #[error("give either `command`, a list of words, or `sql`, a statement")]
    CommandOrSql,
    #[error("`{0}` is for programs: leave it out with `sql`")]
    ForPrograms(&'static str),
    #[error("nothing names the columns: give `header = true`, or a [[column]] for each")]
    NoColumns,
    #[error("instance = {0:?} names no [[column]]")]
    Instance(String),
    #[error("separator = \"\" separates nothing: leave it out for white space")]
    EmptySeparator,
    #[error("`command` must be a list of words, such as [\"vmstat\", \"1\"]")]
    Command,
    #[error("a word of `command` has a NUL byte in it, which no argument of a program can hold")]
    NulInCommand,
    #[error("columns are written as [[column]], each with its name")]
    ColumnForm,
    #[error("a [[column]]: {0}")]
    Column(Box<AddOnError>),
    #[error("two [[column]] are named {0:?}: a name is for one")]
    SameColumn(String),
    #[error("kind = {kind:?} of column {column:?} must be \"gauge\" or \"counter\"")]
    Kind { column: String, kind: String },
    #[error("`env` must be a table of texts, such as {{ LC_ALL = \"C\" }}")]
    Env,
    #[error("`env` has {0:?}, which no environment can hold")]
    EnvName(String),
    #[error("unknown key `{key}`{of}: {}", hint(.nearest.as_deref(), .keys))]
    UnknownKey { key: String, of: &'static str, nearest: Option<String>, keys: Vec<String> },
    #[error("`{key}` must be a text in quotes, and is {found}")]
    NoText { key: &'static str, found: &'static str },
    #[error("`{0}` is missing: give it as a text in quotes")]
    Missing(&'static str),
    #[error("`{key}` must be true or false, and is {found}")]
    NoFlag { key: &'static str, found: &'static str },
    #[error("`{key}` must be a whole number from {min} to {max}, and is {found}")]
    NoNumber { key: &'static str, min: u64, max: u64, found: String },
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// The header lacks a column that the file names.
    #[error("there is no column {name}: the header has {}", .header.join(", "))]
    MissingColumn { name: String, header: Vec<String> },
    /// Its source is not available here.
    #[error("{0}")]
    Absent(String),
    #[error("{source_name}: {why}")]
    Reading { source_name: String, why: String },
}

impl AddOnError {
    /// Returns whether the add-on or its name is wrong, rather than its reading having failed.
    pub fn is_wrong_use(&self) -> bool {
        !matches!(self, AddOnError::Absent(_) | AddOnError::Reading { .. })
    }

    /// Names the add-on that this is wrong with.
    pub(super) fn of(self, name: &str) -> AddOnError {
        AddOnError::Named { name: name.to_string(), error: Box::new(self) }
    }
}

/// Why a statement can't be an add-on's.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StatementError {
    #[error("`sql` reads nothing: give one statement that begins with {}", .0.join(", "))]
    ReadsNothing(&'static [&'static str]),
    #[error("`sql` has the word {0}: an add-on only reads, and takes no locks")]
    Refused(String),
    #[error("`sql` has a semicolon within it: give one statement")]
    Semicolon,
    #[error("`sql` has a comment that servers execute (/*!): write it out")]
    ExecutedComment,
    #[error("`sql` has a comment without an end")]
    OpenComment,
    #[error("`sql` has a {0} without its pair")]
    OpenQuote(char),
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("did you mean {nearest}? "))
}

fn hint(nearest: Option<&str>, keys: &[String]) -> String {
    nearest.map_or_else(
        || format!("the keys are {}", keys.join(", ")),
        |nearest| format!("did you mean `{nearest}`?"),
    )
}

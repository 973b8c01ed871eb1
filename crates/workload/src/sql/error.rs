//! What can be wrong in a SQL file, and in the expressions of its directives.

use thiserror::Error;

use super::bounds::{DEPTH_MAX, FUNCTIONS};
use super::{DIRECTIVES, LOCAL_ROWS_MAX, WEIGHT_MAX};

/// Why an expression, or a value of a directive, can't be read.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// Several values with commas between them, where one is expected.
    #[error("'{text}' is more than one value: give one")]
    SeveralValues { text: String },
    /// A `:` without a name after it.
    #[error("':' must be followed by a variable's name, such as :id")]
    NoVariableName,
    /// A character that begins nothing.
    #[error("'{character}' is not understood in '{text}'")]
    UnknownCharacter { character: char, text: String },
    /// A text whose closing quote is missing.
    #[error("a text has no end: close it with another '")]
    UnclosedText,
    /// A number that is neither an `i64` nor a finite `f64`.
    #[error("'{text}' is no number of 64 bits")]
    NumberTooLarge { text: String },
    /// Something other than what must follow. `found` is a word or a sign as messages show it.
    #[error("expected {expected} and found {found}")]
    Unexpected { expected: String, found: String },
    /// `random_string` without a text.
    #[error(
        "random_string takes a text with a # for each digit and an @ for each letter, such as random_string('###-@@@')"
    )]
    NoTemplate,
    /// A function of dictionaries without a dictionary's name.
    #[error("{function} takes a dictionary's name, such as {function}(names)")]
    NoDictionaryName { function: String },
    /// Parentheses and signs nested deeper than the bound.
    #[error("more than {DEPTH_MAX} levels of parentheses")]
    TooDeep,
    /// No function has this name.
    #[error("there is no function '{name}'{}: the functions are {}", nearest_function(.nearest), FUNCTIONS.join(", "))]
    UnknownFunction { name: String, nearest: Option<&'static str> },
    /// A word that is neither a function nor a constant.
    #[error("'{word}' is no value: a variable is written :{word}, a text '{word}'")]
    BareWord { word: String },
    /// A function of one value with another number of them.
    #[error("{function} takes one value and got {count}")]
    ArgumentCount { function: String, count: usize },
    /// A function that is a value of its own, used as a part of one.
    #[error("{function} stands alone in a \\set or \\rows, not inside an expression")]
    NotInExpression { function: String },
    /// A random function with the wrong arguments.
    #[error("{function} is written {example}")]
    RandomForm { function: String, example: &'static str },
    /// A range whose lower end is above its upper end.
    #[error("the range from {low} to {high} is empty: give the lower number first")]
    EmptyRange { low: i64, high: i64 },
    /// A distribution's parameter that is not a literal number.
    #[error("the {parameter} of {function} must be a number that is written out: {example}")]
    ParameterNotLiteral { parameter: &'static str, function: String, example: &'static str },
    /// A distribution's parameter outside its range.
    #[error("the {parameter} of {function} must be from {lowest} to {highest}, and is {value}")]
    ParameterRange { parameter: &'static str, function: String, lowest: f64, highest: f64, value: f64 },
    /// A variable that nothing before has set.
    #[error("':{name}' has no value{}", nearest_variable(.name, .nearest))]
    UnknownVariable { name: String, nearest: Option<String> },
    /// A dictionary that nothing before has declared.
    #[error("there is no dictionary '{name}'{}", nearest_dictionary(.name, .nearest))]
    UnknownDictionary { name: String, nearest: Option<String> },
}

/// What is wrong at a line of a SQL file.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SqlFileError {
    /// An expression of a directive, or a parameter of a statement.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// A variable defined from outside has a name that SQL files can't use.
    #[error("'{name}' can't be a variable's name: give letters, digits and underscores")]
    VariableName { name: String },
    /// A comment whose end is missing.
    #[error("the comment that begins here has no end: close it with */")]
    UnclosedComment,
    /// A literal or a quoted name whose end is missing.
    #[error("the {quote} that begins here has no end: close it with another {quote}")]
    UnclosedQuote { quote: char },
    /// A `?`, which has no name.
    #[error("'?' has no value: name the parameter, such as :id, and set it above with '-- \\set id …'")]
    NamelessParameter,
    /// A statement that no `;` ends.
    #[error("the statement that begins here has no end: end it with ;")]
    UnendedStatement,
    /// A parameter in a statement of `\setup`.
    #[error("a statement of \\setup is run once, without parameters")]
    ParameterInSetup,
    /// A parameter in a statement of `\session`.
    #[error("a statement of \\session is run once per connection, without parameters")]
    ParameterInSession,
    /// A statement that servers do not prepare.
    #[error("{what} can't be prepared: leave out \\prepared")]
    CannotPrepare { what: &'static str },
    /// A LOAD DATA LOCAL without `\rows`.
    #[error(
        "LOAD DATA LOCAL loads rows that are made up: say which, such as '-- \\rows 1000 :id, random_string('@@@@')' before it"
    )]
    NoLocalRows,
    /// `\rows` before another statement than LOAD DATA LOCAL.
    #[error("\\rows is for a LOAD DATA LOCAL, which this statement is not")]
    NotLocalLoad,
    /// No directive has this name.
    #[error("there is no directive '\\{name}'{}: the directives are \\{}", nearest_directive(.nearest), DIRECTIVES.join(", \\"))]
    UnknownDirective { name: String, nearest: Option<&'static str> },
    /// A directive that lacks what must follow it.
    #[error("\\{directive} is written {form}")]
    DirectiveForm { directive: &'static str, form: &'static str },
    /// A directive that takes no argument, with something after it.
    #[error("\\{directive} takes nothing after it, and '{arguments}' follows")]
    NoArguments { directive: String, arguments: String },
    /// A variable that whyso sets.
    #[error(":{name} is set by whyso: choose another name")]
    ReservedVariable { name: String },
    /// A `\setup` without its SELECT, or a second one.
    #[error(
        "\\setup is written once, with a SELECT that gives 1 where the tables are there, such as \\setup SELECT COUNT(*) = 1000 FROM t"
    )]
    SetupForm,
    /// A transaction's weight outside its range.
    #[error("the weight of {transaction} must be a whole number from 0 to {WEIGHT_MAX}")]
    Weight { transaction: String },
    /// Two transactions of one name.
    #[error("there is a transaction {name} already: give each its own name")]
    DuplicateTransaction { name: String },
    /// A block that is open where another section of the file begins.
    #[error("\\{begin} of line {line} has no {end} before this")]
    BlockAcrossSections { begin: &'static str, end: &'static str, line: usize },
    /// A block that is open at the file's end.
    #[error("\\{begin} of line {line} has no {end}")]
    UnclosedBlock { begin: &'static str, end: &'static str, line: usize },
    /// A directive for the next statement, after which there is none.
    #[error("what line {line} says of the next statement is followed by none")]
    NoNextStatement { line: usize },
    /// Statements before the first `\transaction`.
    #[error(
        "what stands before this belongs to no transaction: begin it with \\transaction NAME, or with \\session if it is to be \
         run once per connection"
    )]
    OutsideTransaction,
    /// A time of `\sleep` that can't be read.
    #[error("\\sleep is written '\\sleep TIME [us|ms|s]': {problem}")]
    Pause { problem: ExpressionError },
    /// A kind of the name that results use for something else.
    #[error("results have a {kind} of their own: choose another name")]
    ReservedKind { kind: String },
    /// A number of rows outside its range.
    #[error("\\rows is written {ROWS_FORM}: the count is a number from 1 to {LOCAL_ROWS_MAX}, not '{count}'")]
    RowCount { count: String },
    /// A file without a statement that is ever sent.
    #[error("there is nothing to do: give at least one statement, with a weight above 0")]
    NothingToDo,
    /// `\gset` where no statement is before it.
    #[error("\\gset keeps the answer of a statement: put it right after one")]
    NoStatementBefore,
    /// A prefix of `\gset` that is no begin of a name.
    #[error("the prefix '{prefix}' can't begin a variable's name: give letters and underscores")]
    Prefix { prefix: String },
    /// The end, or the other arm, of a block that was not begun.
    #[error("\\{directive} follows no \\{begin}")]
    NoBlock { directive: String, begin: String },
    /// Two dictionaries of one name.
    #[error("there is a dictionary {name} already")]
    DuplicateDictionary { name: String },
}

/// How `\rows` is written.
const ROWS_FORM: &str = "'\\rows COUNT FIELD, FIELD, …'";

impl SqlFileError {
    /// `\set` without a name or a value.
    pub(super) const SET: SqlFileError = SqlFileError::DirectiveForm {
        directive: "set",
        form: "'\\set NAME EXPRESSION', such as \\set id random(1, 1000)",
    };
    /// `\transaction` without a name.
    pub(super) const TRANSACTION: SqlFileError = SqlFileError::DirectiveForm {
        directive: "transaction",
        form: "'\\transaction NAME' or '\\transaction NAME@WEIGHT'",
    };
    /// `\kind` without a name.
    pub(super) const KIND: SqlFileError =
        SqlFileError::DirectiveForm { directive: "kind", form: "'\\kind NAME', and the name is one word" };
    /// `\rows` without a count or fields.
    pub(super) const ROWS: SqlFileError = SqlFileError::DirectiveForm { directive: "rows", form: ROWS_FORM };
    /// `\dictionary` without a name or a source.
    pub(super) const DICTIONARY: SqlFileError = SqlFileError::DirectiveForm {
        directive: "dictionary",
        form: "'\\dictionary NAME file PATH' or '\\dictionary NAME query SELECT …'",
    };
}

/// What is wrong, and at which line. Line 0 is for what is not in the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LineError {
    pub line: usize,
    pub problem: SqlFileError,
}

impl LineError {
    pub(super) fn at(line: usize, problem: impl Into<SqlFileError>) -> LineError {
        LineError { line, problem: problem.into() }
    }
}

fn nearest_function(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!(" (did you mean {nearest}?)"))
}

fn nearest_directive(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!(" (did you mean \\{nearest}?)"))
}

fn nearest_variable(name: &str, nearest: &Option<String>) -> String {
    match nearest {
        Some(nearest) => format!(" (did you mean :{nearest}?)"),
        None => format!(": set it above, such as '-- \\set {name} random(1, 1000)'"),
    }
}

fn nearest_dictionary(name: &str, nearest: &Option<String>) -> String {
    match nearest {
        Some(nearest) => format!(" (did you mean {nearest}?)"),
        None => format!(": give it above, such as '-- \\dictionary {name} file {name}.txt'"),
    }
}

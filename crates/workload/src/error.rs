use thiserror::Error;

use crate::sql::SqlFileError;

/// Why a workload could not be built, or does not fit its data.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No built-in workload has this name.
    #[error("unknown workload '{name}'{}: the workloads are {valid_names}", did_you_mean(.nearest))]
    UnknownWorkload { name: String, nearest: Option<String>, valid_names: String },
    /// No workload option has this name.
    #[error("unknown workload option '{name}'{}: the options are {valid_names}", did_you_mean(.nearest))]
    UnknownOption { name: String, nearest: Option<String>, valid_names: String },
    /// The option exists, but can't have this value.
    #[error("the option {name} can't be '{value}': {expected}")]
    BadValue { name: String, value: String, expected: String },
    /// The options leave a transaction without a single statement.
    #[error(
        "{workload} has no statement left with these options: give at least one of its counts a value above 0"
    )]
    NothingToDo { workload: String },
    /// The data set that is loaded, or asked for, is too small.
    #[error(
        "{workload} needs {tables} tables of at least {rows} rows, and the data set has {have_tables} of {have_rows}: \
         load a larger one with --tables and --rows, or ask for less"
    )]
    DataTooSmall { workload: String, tables: u32, rows: u64, have_tables: u32, have_rows: u64 },
    /// A kind of statement that can't be left out.
    #[error("{kind} can't be left out: {why}")]
    LeftOut { kind: String, why: String },
    /// A dictionary that is to be filled and that the workload does not have.
    #[error("the workload has no dictionary '{name}'{}", did_you_mean(.nearest))]
    UnknownDictionary { name: String, nearest: Option<String> },
    /// A dictionary that would be left without a value.
    #[error("the dictionary {name} has no value: {source_of_values} must give at least one")]
    EmptyDictionary { name: String, source_of_values: String },
    /// Something in a SQL file that is not understood.
    #[error("{file} line {line}: {problem}")]
    Sql { file: String, line: usize, problem: SqlFileError },
    /// Points that are no profile of rates.
    #[error("the arrival rates can't be followed: {problem}; give points in ascending order of time")]
    BadRates { problem: RatesProblem },
}

/// What is wrong with the points of a profile of rates. Times are seconds since its begin, rates are per second.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RatesProblem {
    /// An empty list.
    #[error("no point is given")]
    NoPoint,
    /// A rate that is negative or not finite.
    #[error("the rate {rate} at {at_s} s is not 0 or more")]
    Rate { rate: f64, at_s: f64 },
    /// A point that lies before the one that precedes it.
    #[error("the point at {at_s} s comes after the one at {before_s} s")]
    Order { at_s: f64, before_s: f64 },
}

pub(crate) fn did_you_mean(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!(" (did you mean '{name}'?)"),
        None => String::new(),
    }
}

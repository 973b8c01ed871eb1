use thiserror::Error;

/// Why a workload could not be built, or does not fit its data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// No built-in workload has this name.
    #[error("unknown workload '{name}'{}: the workloads are {known}", did_you_mean(.nearest))]
    UnknownWorkload { name: String, nearest: Option<String>, known: String },
    /// No workload option has this name.
    #[error("unknown workload option '{name}'{}: the options are {known}", did_you_mean(.nearest))]
    UnknownOption { name: String, nearest: Option<String>, known: String },
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
    /// A dictionary that is to be filled and that the workload does not have.
    #[error("the workload has no dictionary '{name}'{}", did_you_mean(.nearest))]
    UnknownDictionary { name: String, nearest: Option<String> },
    /// A dictionary that would be left without a value.
    #[error("the dictionary {name} has no value: {source_of_values} must give at least one")]
    EmptyDictionary { name: String, source_of_values: String },
    /// Something in a SQL file that is not understood.
    #[error("{file} line {line}: {message}")]
    Sql { file: String, line: usize, message: String },
    /// Points that are no profile of rates.
    #[error("the arrival rates can't be followed: {reason}; give points in ascending order of time")]
    BadRates { reason: String },
}

pub(crate) fn did_you_mean(nearest: &Option<String>) -> String {
    match nearest {
        Some(name) => format!(" (did you mean '{name}'?)"),
        None => String::new(),
    }
}

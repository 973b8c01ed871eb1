//! What an expression may call, and how deep it may be.

pub(super) const FUNCTIONS: [&str; 14] = [
    "random",
    "random_zipfian",
    "random_gaussian",
    "random_exponential",
    "random_pareto",
    "random_string",
    "random_from",
    "next_from",
    "unique_from",
    "abs",
    "least",
    "greatest",
    "int",
    "double",
];

/// Deepest nesting of parentheses and signs.
pub(super) const DEPTH_MAX: u32 = 100;

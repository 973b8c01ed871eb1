//! Functions by name and module.

/// The name of the row that all others add up to.
pub const TOTAL: &str = "<Total>";

/// A function. Two functions are the same if both name and module are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionName {
    pub name: String,
    /// The file that holds it; empty for what is no function, such as `[cut]`.
    pub module: String,
}

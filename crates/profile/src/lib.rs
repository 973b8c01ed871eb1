//! Which functions the time was spent in, and who called them: the arithmetic of Sun Studio's `er_print`.
//!
//! Every sample is a stack, a metric and the time that it stands for. *Exclusive* time is that of samples whose innermost function it is;
//! *inclusive* that of samples in whose stack it is anywhere, however often; *attributed* is the part of a function's inclusive time that came
//! through one caller or went to one callee.
//!
//! This crate adds up, merges and compares stacks. It names the class of a wait by the functions on its stack, and follows waits to the
//! threads that ended them. It does no I/O, reads no clock, and judges nothing: which cause a time speaks for is `whyso_explain`'s to find.
//!
//! ```
//! use whyso_profile::{FunctionName, Profile, ProfileSample, functions};
//!
//! let function = |name: &str| FunctionName { name: name.to_string(), module: "mariadbd".to_string() };
//! let mut profile = Profile { metrics: vec!["cpu".to_string()], ..Profile::default() };
//! // Innermost first: `main` called `sort`, which called `compare`.
//! profile.stacks.insert(1, vec![function("compare"), function("sort"), function("main")]);
//! profile.samples.push(ProfileSample::one(1, 0, 1e6, 0.0));
//!
//! let found = functions(&profile);
//! assert_eq!((found.functions[0].function.name.as_str(), found.functions[0].exclusive_ns[0]), ("compare", 1e6));
//! assert!(found.functions.iter().all(|function| function.inclusive_ns[0] == 1e6));
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod chains;
mod classes;
mod difference;
mod function;
mod functions;
mod groups;
mod metrics;
mod observer;
mod over_time;
mod profile;
mod relatives;
mod source;
#[cfg(test)]
mod tests;
mod tree;
mod wake;
mod wakers;

pub use chains::{Deed, WakerDeeds};
pub use classes::{ClassTime, RuleError, Rules, classes};
pub use difference::{
    ComparedBy, Difference, Differences, FunctionDifference, differences, folded_differences,
};
pub use function::{FunctionName, TOTAL};
pub use functions::{FunctionTime, Functions, functions};
pub use groups::{FunctionNow, StackGroup, StackNow, stack_groups};
pub use metrics::{METRICS, is_own_metric, metric_of};
pub use observer::{OBSERVER_ROLE, ObserverStacks};
pub use over_time::{Bins, OverTime, TimedSample, over_time};
pub use profile::{Profile, ProfileSample};
pub use relatives::{AttributedTime, Relatives, relatives};
pub use source::{LineTime, SourceFilter, SourcePlace, SourceTimes, source_times};
pub use tree::{CallNode, CallTree, call_tree, call_tree_with_places};
pub use wake::Wake;
pub use wakers::{SingleWait, WakerTime, is_own, place, wakers};

//! What a study found: variants against a baseline, over fresh starts of the server.
//!
//! The unit of repetition is a fresh start. Starts are grouped into blocks, in each of which every variant runs once, in random order, so that
//! whatever drifts on the machine meets all of them; a variant is compared with the baseline within each block. Ratios of throughputs are
//! symmetric in their logarithm, so that is what is averaged.

mod change_points;
mod contrast;
mod dip;
mod effect;
mod equivalence;
mod holm;
pub mod measures;
mod power;
mod student;
mod verdict;

pub use change_points::{ChangePoint, PART_MIN, Wanted, change_points};
pub use contrast::{Contrast, Method, Sides, blocks_in_time, contrast, judge};
pub use dip::{Dip, dip};
pub use effect::{Effect, effect, tested};
pub use holm::holm;
pub use power::{power, smallest_seen};
pub use verdict::{Compared, Spread, Verdict, compare, spread};

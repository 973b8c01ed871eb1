//! What numbers show, and how surely: intervals, tests, fits, and the designs that make starts of a server comparable.
//!
//! Of one window: the interval of its mean ([`interval`]), whether it was steady ([`steady`], [`trend`]). Of a sweep: the Universal
//! Scalability Law ([`usl`]). Of a system of users and CPUs: its throughput ([`closed`]).
//!
//! Of many starts: the unit of repetition is a fresh start. Starts are grouped into blocks. In each block every variant runs
//! once, in random order, so that a drift of the machine meets all of them. A variant is compared with the baseline within each block ([`compare`]).
//! Ratios of throughputs are symmetric in their logarithm, so that is what is averaged.
//!
//! This crate does no I/O and reads no clock. It knows no recording, no finding and no cause: numbers go in, numbers and verdicts come out.
//! It never panics on any numbers.
//!
//! ```
//! use whyso_inference::{Verdict, compare};
//!
//! // Throughput of the baseline and of a variant in each of five blocks. A difference of 3 % matters.
//! let blocks = vec![(100.0, 110.2), (101.0, 110.9), (99.0, 109.3), (100.5, 110.1), (100.0, 110.4)];
//! let found = compare(&[blocks], 1.03)[0].unwrap();
//! assert_eq!(found.verdict, Verdict::Faster);
//! assert!((found.effect.ratio - 1.1).abs() < 0.01);
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod alternation;
pub mod bins;
mod change_points;
pub mod closed;
mod contrast;
mod dip;
mod effect;
mod equivalence;
mod estimate;
mod halving;
mod holm;
pub mod interval;
mod power;
mod prediction;
pub mod steady;
mod student;
pub mod trend;
pub mod usl;
mod verdict;

pub use alternation::{
    Alternation, AlternationVerdict, CarryOver, NoiseScope, Pair, Question, RatioInterval, Sequence,
    alternation, carry_over, ratio_interval, settling,
};
pub use change_points::{ChangePoint, ChangeRule, PART_MIN, change_points};
pub use contrast::{Contrast, Method, Sides, blocks_in_time, contrast, judge};
pub use dip::{Dip, dip};
pub use effect::{Effect, effect, tested};
pub use estimate::Estimate;
pub use halving::{Halving, LogEffect, halving};
pub use holm::holm;
pub use power::{power, smallest_detectable};
pub use prediction::prediction;
pub use steady::Steadiness;
pub use usl::UslFit;
pub use verdict::{Spread, VariantComparison, Verdict, compare, spread};

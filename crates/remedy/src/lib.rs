//! What may be changed to test a cause, and what the outcome of such an experiment shows.
//!
//! The [catalogue](catalogue()) is a data file: `interventions.toml`. An [`Intervention`] says what is changed and what that costs its user. A
//! [`Proof`] is a cause with its predicted gain, the measured one, and the [verdict](judge) on both.
//!
//! This crate does no I/O. `whyso_control` carries experiments out.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bisection;
mod catalogue;
mod measured_gain;
mod proof;
mod slowed;
mod track_record;

pub use bisection::{
    Bisection, BuildSearch, BuildStep, Difference, DifferenceKind, MovedTime, NotTested, Step,
};
pub use catalogue::{Change, Cost, Intervention, LeftOut, SlowPart, UnknownCost, catalogue, of_cause};
pub use measured_gain::MeasuredGain;
pub use proof::{After, Proof, ProofVerdict, Proofs, Proposal, SMALLEST_GAIN, judge};
pub use slowed::{SlowedPoint, at_twice_the_speed, of_half};
pub use track_record::{TrackRecord, track_record};

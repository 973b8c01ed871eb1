//! Fuzz targets over everything that reads what others wrote: recordings, backups, studies, statements, answers of sites.
//!
//! A target is a function of bytes in [`targets`]. It reads the bytes as choices ([`choices::Choices`]): which file of a kept recording to
//! change, how, and whether its digests are made to fit. So a case is short, whatever it builds.
//!
//! [`check`] runs a target as a test, over the kept cases and a fixed number of changes to them. Under `make fuzz`, libFuzzer runs
//! it and follows coverage.
//! Each case has a bound on memory ([`bounds::Capped`]) and on time.
//!
//! Only tests depend on this crate.

pub mod bounds;
pub mod choices;
pub mod corpus;
mod run;
pub mod targets;

pub use run::{check, is_fuzzing, run_case};

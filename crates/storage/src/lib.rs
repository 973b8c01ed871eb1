//! Recordings in storage that speaks S3: sends finished ones there, lists them, and fetches them.
//!
//! A place is `s3://BUCKET/FOLDER`. Below it lie the runs, a folder each, with the files that they have on disk. `catalogue.parquet`
//! next to them has a row per run. A run is there once its last file is, so that nothing is half visible. A run that is there stays as
//! it is.
//!
//! Keys come from the usual AWS variables of the environment, and are in no recording, no message and no argument. Every request has
//! a bound. What comes from a place is a stranger's: `whyso_record::Arrival` checks names, sizes and digests before a run appears.
//! This crate never names a file of a recording, and never judges what is in one.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bucket;
mod cache;
mod error;
mod place;
mod pull;
mod push;
mod settings;

pub use bucket::Bucket;
pub use error::{Error, Result};
pub use place::{Place, is_place};
pub use push::PushResult;

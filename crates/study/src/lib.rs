//! Many runs that answer one question.
//!
//! A study is a TOML file ([`Spec`]): servers × variants, a sweep of users, so many repetitions. A *cell* is one server with one variant; a *start* is one fresh
//! start of it, and its whole sweep; a *block* is one start of every cell, in random order ([`Spec::blocks`]). What was done is kept in a [`Journal`], so that a
//! study can be stopped at any moment and goes on where it was. [`answer`] turns the throughputs of its starts into comparisons.
//!
//! This crate starts no server and runs no load.

mod answer;
mod cells;
mod journal;
mod spec;

pub use answer::{Answer, Line, answer};
pub use cells::{Cell, Start};
pub use journal::{Done, Journal};
pub use spec::{Spec, Variant};

/// What is wrong, in a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0}")]
    Spec(String),
    #[error("{path}: {cause}")]
    Io { path: String, cause: std::io::Error },
}

impl Error {
    fn io(path: &std::path::Path, cause: std::io::Error) -> Error {
        Error::Io { path: path.display().to_string(), cause }
    }
}

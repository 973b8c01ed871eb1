//! What the tests of all crates share: how a test reports that it could not test something here, and faults of the file system
//! ([`faults`]). Also declarations of types for the page ([`typescript`]).
//!
//! A test that returns early looks like one that passed. So each such return calls [`not_tested`] or [`tracer_not_tested`].
//! Both print the reason past the test harness, which hides the output of a test that passes. Both add a line to the file that
//! `WHYSO_NOT_TESTED` names. `scripts/test.sh` prints these lines last, with their number.
//!
//! With `WHYSO_MUST_TRACE=1`, which continuous integration sets, a test that could not trace fails. The tracer has to work
//! there, and a tracer that is broken must not look like one that is not allowed.
//!
//! Only tests depend on this crate.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod faults;
pub mod typescript;

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// The file that collects what was not tested, a line each: the test, and why.
const LIST: &str = "WHYSO_NOT_TESTED";

/// Set to 1 where a test that could not trace has to fail.
const MUST_TRACE: &str = "WHYSO_MUST_TRACE";

/// Reports that the calling test left something out, and why. The test may then return.
pub fn not_tested(why: impl Display) {
    // The harness names each test's thread after the test.
    let thread = std::thread::current();
    let why = why.to_string();
    let line = format!("{}: {}\n", thread.name().unwrap_or("a test"), why.trim().replace('\n', " "));
    // Past the harness: `eprintln!` is shown only where the test fails.
    let _ = write!(std::io::stderr(), "\nnot tested: {line}");
    let Some(list) = std::env::var_os(LIST) else { return };
    let added = OpenOptions::new().append(true).create(true).open(&list);
    let added = added.and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = added {
        panic!("{} can't be written, which {LIST} names: {error}", list.display());
    }
}

/// Reports that the calling test could not trace, and why.
///
/// # Panics
/// Where `WHYSO_MUST_TRACE=1`.
pub fn tracer_not_tested(why: impl Display) {
    let is_needed = std::env::var(MUST_TRACE).is_ok_and(|value| value == "1");
    assert!(!is_needed, "{MUST_TRACE}=1, and the tracer was not tested: {why}");
    not_tested(why);
}

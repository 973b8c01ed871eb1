//! What is said on standard error. It may be closed, or a pipe that nobody reads any more: a run goes on all the same.

use std::fmt::Arguments;
use std::io::Write;

/// A line.
pub(crate) fn line(text: Arguments) {
    let _ = writeln!(crate::out::Escaping::new(std::io::stderr().lock()), "{text}");
}

/// Text without an end of line, such as a question.
pub(crate) fn part(text: Arguments) {
    let mut out = crate::out::Escaping::new(std::io::stderr().lock());
    let _ = write!(out, "{text}");
    let _ = out.flush();
}

/// `eprintln!`, which panics where standard error can't be written.
macro_rules! say {
    ($($text:tt)*) => { crate::say::line(format_args!($($text)*)) };
}

/// `eprint!`, likewise.
macro_rules! say_part {
    ($($text:tt)*) => { crate::say::part(format_args!($($text)*)) };
}

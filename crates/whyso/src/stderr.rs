//! Output to standard error. It may be closed, or a pipe that nobody reads any more: a run continues all the same.

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
macro_rules! print_stderr {
    ($($text:tt)*) => { crate::stderr::line(format_args!($($text)*)) };
}

/// `eprint!`, likewise.
macro_rules! print_stderr_part {
    ($($text:tt)*) => { crate::stderr::part(format_args!($($text)*)) };
}

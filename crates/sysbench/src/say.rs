//! What goes to standard output: line by line, and in the same order as what scripts print through C's buffers.

use std::io::Write;

/// Writes a text to standard output. Where nobody reads it any more, nothing is written.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // A closed pipe is its reader's decision.
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Writes a line to standard error.
pub(crate) fn note(text: &str) {
    // Nobody may read it any more.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes what ends the program, as sysbench does.
pub(crate) fn say_fatal(message: &str) {
    say(&format!("FATAL: {message}\n"));
}

/// Has C's standard output written line by line: to be called before anything is.
pub(crate) fn flush_lines() {
    unsafe extern "C" {
        static mut stdout: *mut libc::FILE;
    }
    // Nothing was written yet.
    unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOLBF, 0) };
}

//! What goes to standard output and standard error. Lines of the log are printed as sysbench prints them, up to the
//! verbosity that was asked for. They have the name of their priority where it has one. Repetitions are only counted.

use std::io::{IsTerminal, Write};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use whyso_words::terminal;

/// How much a line of the log matters; the numbers are those of `--verbosity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    Fatal = 0,
    Alert = 1,
    Warning = 2,
    Notice = 3,
    Info = 4,
    Debug = 5,
}

impl Priority {
    fn prefix(self) -> &'static str {
        match self {
            Priority::Fatal => "FATAL: ",
            Priority::Alert => "ALERT: ",
            Priority::Warning => "WARNING: ",
            Priority::Notice | Priority::Info => "",
            Priority::Debug => "DEBUG: ",
        }
    }
}

static VERBOSITY: AtomicU32 = AtomicU32::new(Priority::Notice as u32);
static HAS_NOTES: AtomicBool = AtomicBool::new(false);
/// The line of the log that was printed last, and how often it was repeated since.
static LAST: Mutex<(String, u32)> = Mutex::new((String::new(), 0));

/// Sets the lowest priority that is printed.
pub(crate) fn set_verbosity(verbosity: u32) {
    VERBOSITY.store(verbosity, Relaxed);
}

pub(crate) fn is_logged(priority: Priority) -> bool {
    priority as u32 <= VERBOSITY.load(Relaxed)
}

/// Allows [`note`] although nobody sits at a terminal: an option of whyso's own was typed.
pub(crate) fn allow_notes() {
    HAS_NOTES.store(true, Relaxed);
}

/// Prints a line of the log, where its priority is within the verbosity. A server's message may be in it, so that a terminal gets it escaped.
pub(crate) fn log(priority: Priority, text: &str) {
    if !is_logged(priority) {
        return;
    }
    let text = if std::io::stdout().is_terminal() { terminal::escape(text) } else { text.to_string() };
    let line = format!("{}{text}\n", priority.prefix());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.0 == line && !text.is_empty() {
        last.1 += 1;
        return;
    }
    let repeated = std::mem::replace(&mut last.1, 0);
    last.0.clone_from(&line);
    drop(last);
    match repeated {
        0 => say(&line),
        times => say(&format!("(last message repeated {times} times)\n{line}")),
    }
}

/// Prints text of the log that spans lines, and is never a repetition.
pub(crate) fn notice(text: &str) {
    if is_logged(Priority::Notice) {
        flush_repetitions();
        say(text);
    }
}

fn flush_repetitions() {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let repeated = std::mem::take(&mut last.1);
    last.0.clear();
    drop(last);
    if repeated > 0 {
        say(&format!("(last message repeated {repeated} times)\n"));
    }
}

/// Writes a text to standard output. Where nobody reads it any more, nothing is written.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // A closed pipe is its reader's decision.
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Writes a line to standard error, as sysbench does for what is wrong with its use.
pub(crate) fn complain(text: &str) {
    // Nobody may read it any more.
    let mut err = std::io::stderr().lock();
    let text = if err.is_terminal() { terminal::escape(text) } else { text.to_string() };
    let _ = writeln!(err, "{text}");
}

/// Writes a remark of whyso's own to standard error, where a person reads it. Otherwise only if an option of whyso's
/// own, or a verbosity above the usual, asked for it. So programs that take both streams for sysbench's see nothing of
/// it.
pub(crate) fn note(text: &str) {
    let is_wanted = HAS_NOTES.load(Relaxed) || is_logged(Priority::Info) || std::io::stderr().is_terminal();
    if is_wanted && is_logged(Priority::Warning) {
        complain(text);
    }
}

/// Writes what ends the program, as sysbench does.
pub(crate) fn say_fatal(message: &str) {
    log(Priority::Fatal, message);
}

/// Has C's standard output written line by line: to be called before anything is.
pub(crate) fn flush_lines() {
    unsafe extern "C" {
        static mut stdout: *mut libc::FILE;
    }
    // SAFETY: C has opened the stream before `main`, and this is called before anything is written or another thread uses it.
    unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOLBF, 0) };
}

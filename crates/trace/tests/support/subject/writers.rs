//! Processes that queue on two locks: one file's, to which all append, and one folder's, in which all make and remove files.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// What is written at a time: long enough for a writer to lose its CPU while it holds the file's lock.
const BYTES: usize = 1 << 20;
/// A log is begun again from this size on.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// The parent prints a line for each process that it has forked, which then works until the parent ends.
pub(crate) fn fork(processes: usize) {
    fs::create_dir_all("sessions").expect("a folder for sessions");
    let parent = std::process::id();
    for number in 0..processes {
        // SAFETY: the only thread forks, and its child continues with what it has.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: a plain system call: the child ends with its parent.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                while std::os::unix::process::parent_id() == parent {
                    if number % 2 == 0 { append() } else { make_sessions(number) }
                }
                std::process::exit(0);
            }
            -1 => panic!("fork: {}", std::io::Error::last_os_error()),
            pid => println!("writer {pid}"),
        }
    }
    crate::jobs::wait_for_byte();
}

/// Opens the log, appends to it and closes it.
fn append() {
    let mut log = OpenOptions::new().append(true).create(true).open("access.log").expect("a log");
    log.write_all(&vec![b'x'; BYTES]).expect("a line of the log");
    if log.metadata().is_ok_and(|found| found.len() > LOG_BYTES_MAX) {
        log.set_len(0).expect("a log that is empty");
    }
}

fn make_sessions(number: usize) {
    for session in 0..100 {
        let path = Path::new("sessions").join(format!("{number}-{session}"));
        fs::write(&path, b"").expect("a session");
        fs::remove_file(&path).expect("a session that is there");
    }
}

//! Ends a run from outside, as a signal does.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::watchdog::give_up_now;

/// Longest time that an interrupted run is waited for.
const INTERRUPTED_MAX: Duration = Duration::from_secs(15);
const STATUS_OF_INTERRUPTED: i32 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ends the present run, which is reported up to here. A second call ends the program, and so does the first where the
/// run shows no end. May be called from any thread.
pub fn interrupt() {
    give_up_now();
    if INTERRUPTED.swap(true, Relaxed) {
        std::process::exit(STATUS_OF_INTERRUPTED);
    }
    // A script that waits inside C code can't be ended from here.
    std::thread::spawn(|| {
        std::thread::sleep(INTERRUPTED_MAX);
        std::process::exit(STATUS_OF_INTERRUPTED);
    });
}

/// Whether [`interrupt`] was called.
pub fn was_interrupted() -> bool {
    INTERRUPTED.load(Relaxed)
}

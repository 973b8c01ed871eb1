//! The time of threads over a window, whatever a recording has of them.

use whyso_record::run::Window;
use whyso_record::{Recording, ThreadTimes};
use whyso_series::ThreadTime;

use crate::Error;

/// Lines of the server's lists that are read for the connections and statements of threads.
const LISTED_ROWS_MAX: usize = 300_000;

/// The time of each thread in a window, whatever the recording has of threads. Without connections and statements where it has their
/// stretches.
pub(crate) fn thread_times(recording: &Recording, window: Window) -> Result<ThreadTimes, Error> {
    if recording.has_thread_stretches() {
        return Ok(recording.thread_times(window)?);
    }
    let table = recording.threads()?;
    let Some((from, to)) = table.covering(window.begin_ns, window.end_ns) else {
        return Ok(ThreadTimes::default());
    };
    let threads = table.between(from, to);
    let window = Window { begin_ns: table.t_ns[from], end_ns: table.t_ns[to] };
    Ok(ThreadTimes { window, states: table.states, threads })
}

/// Adds the connection and the statement with which each thread was last listed.
pub(crate) fn add_last_work(
    recording: &Recording,
    window: Window,
    threads: &mut [ThreadTime],
) -> Result<(), Error> {
    let mut last = recording.last_work(window, LISTED_ROWS_MAX)?;
    for thread in threads {
        if let Some(work) = last.remove(&thread.tid) {
            (thread.connection, thread.statement) = (work.connection, work.statement);
        }
    }
    Ok(())
}

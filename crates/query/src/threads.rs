//! Each thread of a server: where its time went over a window of a recording.

use whyso_explain::model::Pauses;
use whyso_model::{Missing, PauseRow};
use whyso_record::Recording;
use whyso_record::run::Window;
use whyso_series::{ThreadTable, ThreadTime};

use crate::thread_times::add_last_work;
use crate::{Error, pauses};

/// The threads of a server over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadsOver {
    /// From snapshot to snapshot: what the times are of.
    pub window: Window,
    /// The states, in the order of each thread's times.
    pub states: Vec<String>,
    pub threads: Vec<ThreadTime>,
    /// Their long waits.
    pub pauses: Vec<Pauses>,
}

/// The server's threads over a window of a recording. Recordings before format 3 have a snapshot of threads at both ends of each measured
/// window, and every ten seconds between. Of these, the times lie between the snapshots nearest to the window's ends.
///
/// # Errors
/// The run was not traced, or its files can't be read.
pub fn threads_in(recording: &Recording, window: Window) -> Result<ThreadsOver, Error> {
    if recording.has_thread_stretches() {
        return from_stretches(recording, window);
    }
    let table = recording.threads()?;
    if table.t_ns.is_empty() {
        let because = recording.run().not_measured.iter().find(|line| line.source == Missing::ServerThreads);
        let why =
            because.map_or("whyso traces since version 0.1.0, where it may".to_string(), ToString::to_string);
        return Err(Error::NotRecorded(format!("this run holds no threads: {why}")));
    }
    match table.covering(window.begin_ns, window.end_ns) {
        Some((from, to)) => {
            let mut over = over(table, from, to);
            over.pauses = pauses::of(recording, over.window, &over.threads)?;
            Ok(over)
        }
        None => Err(Error::NotRecorded(
            "the tracer took only one snapshot of the threads in this run".to_string(),
        )),
    }
}

/// The times lie exactly in the window, as far as each second's are spread evenly over it.
fn from_stretches(recording: &Recording, window: Window) -> Result<ThreadsOver, Error> {
    let mut times = recording.thread_times(window)?;
    if times.threads.is_empty() {
        return Err(Error::WrongUse("no thread was there in that part of the run".to_string()));
    }
    add_last_work(recording, times.window, &mut times.threads)?;
    let mut over = ThreadsOver {
        window: times.window,
        states: times.states,
        threads: times.threads,
        pauses: Vec::new(),
    };
    over.pauses = pauses::of(recording, over.window, &over.threads)?;
    Ok(over)
}

fn over(table: ThreadTable, from: usize, to: usize) -> ThreadsOver {
    let threads = table.between(from, to);
    let window = Window { begin_ns: table.t_ns[from], end_ns: table.t_ns[to] };
    ThreadsOver { window, states: table.states, threads, pauses: Vec::new() }
}

impl ThreadsOver {
    /// Returns the threads between the first two snapshots of a table, with the pauses that were counted between them.
    pub fn between_snapshots(table: ThreadTable, pauses: Vec<PauseRow>) -> ThreadsOver {
        let mut over = over(table, 0, 1);
        over.pauses = pauses.into_iter().map(pauses::of_row).collect();
        pauses::learn(&mut over.pauses, &over.threads);
        over
    }
}

//! Each thread of a server: where its time went, over a window of a recording, or just now.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use whyso_clock::monotonic_ns;
use whyso_explain::model::Pauses;
use whyso_model::state;
use whyso_record::Recording;
use whyso_record::run::Window;
use whyso_series::{Look, Seen, ThreadTable, ThreadTime, Told};
use whyso_server::Dsn;
use whyso_server::answers::{log_out, within};
use whyso_trace::{Generator, Reading, StackSampling, ThreadSums};
use whyso_watch::connections;

use crate::counting::Counting;
use crate::pauses;
use crate::prepare::AskPassword;
use crate::progress::Stop;
use crate::run::{GOODBYE_TIME_MAX, runtime};
use crate::{Error, facts, login};

/// How often it is looked whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);

/// The threads of a server over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadsOver {
    /// From look to look: what the times are of.
    pub window: Window,
    /// The states, in the order in which they are told.
    pub states: Vec<String>,
    pub threads: Vec<ThreadTime>,
    /// Their long waits.
    pub pauses: Vec<Pauses>,
}

/// The server's threads over a window of a recording. The tracer looks at threads at both ends of each measured window and
/// every ten seconds between: what lies between the looks nearest to the window's ends is told.
///
/// # Errors
/// The run was not traced, or its files can't be read.
pub fn threads_in(recording: &Recording, window: Window) -> Result<ThreadsOver, Error> {
    let table = recording.threads()?;
    if table.t_ns.is_empty() {
        let because = recording
            .run()
            .not_measured
            .iter()
            .find(|line| line.starts_with("the time of the server's threads"));
        let why = because.map_or("whyso traces since version 0.1.0, where it may", String::as_str);
        return Err(Error::Failed(format!("this run holds no threads: {why}")));
    }
    match table.covering(window.begin_ns, window.end_ns) {
        Some((from, to)) => {
            let mut over = over(table, from, to);
            over.pauses = pauses::of(recording, over.window, &over.threads)?;
            Ok(over)
        }
        None => Err(Error::Failed("the tracer looked at the threads only once in this run".to_string())),
    }
}

fn over(table: ThreadTable, from: usize, to: usize) -> ThreadsOver {
    let threads = table.between(from, to);
    let window = Window { begin_ns: table.t_ns[from], end_ns: table.t_ns[to] };
    ThreadsOver { window, states: table.states, threads, pauses: Vec::new() }
}

/// The threads of a server on this machine, over the time from now on.
///
/// # Errors
/// The server can't be reached, its process is not on this machine, or the machine does not allow tracing.
pub fn threads_now(
    dsn: &str,
    length: Duration,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<ThreadsOver, Error> {
    let runtime = runtime()?;
    let (dsn, pid) = server_here(dsn, &runtime, ask_password)?;
    let (mut counting, _) =
        Counting::of(pid, StackSampling::Off, Generator::Unknown, Vec::new()).map_err(Error::Failed)?;
    let first = counting.read();
    let began = Instant::now();
    while began.elapsed() < length && !stop.is_asked() {
        std::thread::sleep(counting.look_interval().unwrap_or(LOOK).min(length));
        counting.look();
    }
    let last = counting.read();
    let waited = counting.pauses(&last);
    let told = runtime.block_on(connections_now(&dsn));
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    let looks = vec![look(&first), look(&last)];
    let states = state::ALL.map(|state| state.name().to_string()).to_vec();
    let mut over = over(ThreadTable::new(states, looks, &[told]), 0, 1);
    over.pauses = waited.iter().map(|one| pauses::of_row(one.row())).collect();
    pauses::learn(&mut over.pauses, &over.threads);
    Ok(over)
}

/// A server of which the process is on this machine: how it is reached, and the process.
pub(crate) fn server_here(
    dsn: &str,
    runtime: &Runtime,
    ask_password: &AskPassword,
) -> Result<(Dsn, u32), Error> {
    let mut dsn = login::neutral(dsn)?;
    runtime.block_on(async {
        let conn = login::log_in(&mut dsn, ask_password).await?;
        // It was made to learn the password alone.
        log_out(conn).await;
        Ok::<_, Error>(())
    })?;
    let server = facts::server_now(&dsn, false, None, runtime)?;
    let pid = server.pid.ok_or_else(|| {
        Error::Failed(
            "the server's process is not on this machine: its threads can't be seen from here".to_string(),
        )
    })?;
    Ok((dsn, pid))
}

fn look(reading: &Reading) -> Look {
    let seen = |thread: &ThreadSums| Seen {
        tid: thread.tid,
        born_ns: thread.born_ns,
        name: thread.name.clone(),
        role: thread.role.name().to_string(),
        requests: thread.requests,
        states_ns: thread.states.to_vec(),
    };
    Look { t_ns: reading.at_ns, threads: reading.threads.iter().map(seen).collect() }
}

/// What the server says of its connections now, by the thread that works for each.
pub(crate) async fn connections_now(dsn: &Dsn) -> Told {
    let asked = within(GOODBYE_TIME_MAX, dsn, "asking for its connections", async {
        let mut conn = dsn.connect().await?;
        // Without a right to ask, there is nothing to tell.
        let told = connections(&mut conn).await.ok().flatten();
        log_out(conn).await;
        Ok::<_, Error>(told)
    });
    let told = asked.await.ok().flatten().unwrap_or_default();
    let by_tid = told.into_iter().map(|one| (one.tid, (one.id, one.statement))).collect();
    Told { t_ns: monotonic_ns(), by_tid }
}

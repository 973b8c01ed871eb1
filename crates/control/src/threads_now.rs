//! The threads of a server now.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use whyso_clock::monotonic_ns;
use whyso_model::{Stop, state};
use whyso_query::ThreadsOver;
use whyso_series::{ConnectionSnapshot, Snapshot, ThreadSnapshot, ThreadTable};
use whyso_server::Dsn;
use whyso_server::answers::{log_out, within};
use whyso_trace::{Generator, Pauses, Reading, StackSampling, ThreadSums};
use whyso_tracing::Counting;
use whyso_watch::connections;

use crate::login::AskPassword;
use crate::process::check_processes;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::{Error, facts, login};

/// Between two checks whether the user wants to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

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
    check_processes()?;
    let runtime = runtime()?;
    let (dsn, pid) = server_here(dsn, &runtime, ask_password)?;
    let (mut counting, _) = Counting::of(vec![pid], StackSampling::Off, Generator::Unknown, Vec::new())?;
    let first = counting.read();
    let began = Instant::now();
    while began.elapsed() < length && !stop.is_asked() {
        std::thread::sleep(counting.sample_interval().unwrap_or(CHECK_INTERVAL).min(length));
        counting.sample();
    }
    let last = counting.read();
    let waited = counting.pauses(&last);
    let connections = runtime.block_on(connections_now(&dsn));
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    let snapshots = vec![snapshot(&first), snapshot(&last)];
    let states = state::ALL.map(|state| state.name().to_string()).to_vec();
    let table = ThreadTable::new(states, snapshots, &[connections]);
    Ok(ThreadsOver::between_snapshots(table, waited.iter().map(Pauses::row).collect()))
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
        // It was opened only to learn the password.
        log_out(conn).await;
        Ok::<_, Error>(())
    })?;
    let server = facts::server_now(&dsn, false, None, runtime)?;
    let pid = server.pid.ok_or_else(|| {
        let why = whyso_tracing::no_process(&server.variables);
        Error::Failed(format!("the server's threads can't be seen: {why}"))
    })?;
    Ok((dsn, pid))
}

fn snapshot(reading: &Reading) -> Snapshot {
    let snapshot_of = |thread: &ThreadSums| ThreadSnapshot {
        tid: thread.tid,
        born_ns: thread.born_ns,
        name: thread.name.clone(),
        role: thread.role.name().to_string(),
        requests: thread.requests,
        states_ns: thread.states.to_vec(),
    };
    Snapshot { t_ns: reading.at_ns, threads: reading.threads.iter().map(snapshot_of).collect() }
}

/// What the server says of its connections now, by the thread that works for each.
pub(crate) async fn connections_now(dsn: &Dsn) -> ConnectionSnapshot {
    let asked = within(GOODBYE_TIME_MAX, dsn, "asking for its connections", async {
        let mut conn = dsn.connect().await?;
        // Without a right to ask, there is nothing to return.
        let found = connections(&mut conn).await.ok().flatten();
        log_out(conn).await;
        Ok::<_, Error>(found)
    });
    let found = asked.await.ok().flatten().unwrap_or_default();
    let by_tid =
        found.into_iter().map(|connection| (connection.tid, (connection.id, connection.statement))).collect();
    ConnectionSnapshot { t_ns: monotonic_ns(), by_tid }
}

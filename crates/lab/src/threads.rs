//! Each thread of a server: where its time went, over a window of a recording, or just now.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use whyso_explain::model::Pauses;
use whyso_record::Recording;
use whyso_record::data::TextRows;
use whyso_record::run::Window;
use whyso_server::Dsn;
use whyso_trace::{STATES, ThreadSums, state};
use whyso_watch::{Connection, connections};

use crate::pauses::told;
use crate::prepare::AskPassword;
use crate::progress::Stop;
use crate::run::{GOODBYE_TIME_MAX, runtime};
use crate::tracing::Counting;
use crate::{Error, facts};

const SOURCE: &str = "threads";
const CONNECTIONS: &str = "connections";
/// How often it is looked whether the user wants to end.
const LOOK: Duration = Duration::from_millis(50);

/// A thread's time over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadTime {
    pub tid: u32,
    pub name: String,
    pub role: String,
    /// The server's number of its connection, where it works for one and the server tells.
    pub connection: Option<u64>,
    /// What it executed when it was asked, literals replaced by `?`.
    pub statement: Option<String>,
    /// Requests that it answered.
    pub requests: u64,
    /// Length of the window, in nanoseconds; shorter for a thread that began within it.
    pub window_ns: u64,
    /// Time by state, in nanoseconds, in the order of [`state_names`].
    pub states_ns: Vec<u64>,
}

/// The states of a thread, in the order in which they are told.
pub fn state_names() -> Vec<&'static str> {
    state::ALL.map(whyso_trace::State::name).to_vec()
}

/// The server's threads over a window of a recording. The tracer looks at threads at both ends of each measured window and
/// every ten seconds between: what lies between the looks nearest to the window's ends is told.
///
/// # Errors
/// The run was not traced, or its files can't be read.
pub fn threads_in(recording: &Recording, window: Window) -> Result<Vec<ThreadTime>, Error> {
    if !recording.row_sources().iter().any(|source| source == SOURCE) {
        let because = recording
            .run()
            .not_measured
            .iter()
            .find(|line| line.starts_with("the time of the server's threads"));
        let why = because.map_or("whyso traces since version 0.1.0, where it may", String::as_str);
        return Err(Error::Failed(format!("this run holds no threads: {why}")));
    }
    let tables = recording.rows(SOURCE)?;
    match next_to(&tables, window) {
        Some((first, last)) => {
            let connections = connections_in(recording, window)?;
            let mut threads = between(first, last);
            for thread in &mut threads {
                if let Some(told) = connections.get(&thread.tid) {
                    thread.connection = Some(told.id);
                    thread.statement.clone_from(&told.statement);
                }
            }
            Ok(threads)
        }
        None => {
            Err(Error::Failed("the tracer looked at the threads less than twice in this window".to_string()))
        }
    }
}

/// The looks nearest to a window's ends.
fn next_to(tables: &[TextRows], window: Window) -> Option<(&TextRows, &TextRows)> {
    let nearest = |t_ns: i64| tables.iter().min_by_key(|table| table.t_ns.abs_diff(t_ns));
    let (first, last) = (nearest(window.begin_ns)?, nearest(window.end_ns)?);
    (last.t_ns > first.t_ns).then_some((first, last))
}

/// The looks at threads in a recording: their times, and what each thread did between two of them.
pub(crate) struct Looks {
    tables: Vec<TextRows>,
}

impl Looks {
    /// # Errors
    /// Where the recording's files can't be read.
    pub(crate) fn of(recording: &Recording) -> Result<Looks, Error> {
        let is_there = recording.row_sources().iter().any(|source| source == SOURCE);
        Ok(Looks { tables: if is_there { recording.rows(SOURCE)? } else { Vec::new() } })
    }

    #[cfg(test)]
    pub(crate) fn made(tables: impl Into<Vec<TextRows>>) -> Looks {
        Looks { tables: tables.into() }
    }

    /// The times of the looks nearest to a window's ends, and the requests that each thread answered between them.
    pub(crate) fn requests(&self, window: Window) -> Option<(Window, HashMap<u32, u64>)> {
        let (first, last) = next_to(&self.tables, window)?;
        let requests = between(first, last).into_iter().map(|thread| (thread.tid, thread.requests)).collect();
        Some((Window { begin_ns: first.t_ns, end_ns: last.t_ns }, requests))
    }
}

fn between(first: &TextRows, last: &TextRows) -> Vec<ThreadTime> {
    let before: HashMap<u32, ThreadTime> = rows(first).into_iter().map(|row| (row.tid, row)).collect();
    let window_ns = last.t_ns.abs_diff(first.t_ns);
    let difference = |mut now: ThreadTime| {
        if let Some(then) = before.get(&now.tid).filter(|then| then.name == now.name) {
            now.requests = now.requests.saturating_sub(then.requests);
            for (ns, before) in now.states_ns.iter_mut().zip(&then.states_ns) {
                *ns = ns.saturating_sub(*before);
            }
        }
        now.window_ns = window_ns.min(now.states_ns.iter().sum());
        now
    };
    rows(last).into_iter().map(difference).collect()
}

fn rows(table: &TextRows) -> Vec<ThreadTime> {
    let places: BTreeMap<&str, usize> =
        table.columns.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    let row = |row: &Vec<Option<String>>| {
        let text = |name: &str| places.get(name).and_then(|place| row.get(*place)?.clone());
        let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
        let states_ns = state::ALL.map(|state| number(&format!("{}_ns", state.name())).unwrap_or(0));
        ThreadTime {
            tid: number("tid").unwrap_or(0) as u32,
            name: text("name").unwrap_or_default(),
            role: text("role").unwrap_or_default(),
            connection: None,
            statement: None,
            requests: number("requests").unwrap_or(0),
            window_ns: 0,
            states_ns: states_ns.to_vec(),
        }
    };
    table.rows.iter().map(row).collect()
}

/// A server's threads over a time, and their long waits in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadsNow {
    pub threads: Vec<ThreadTime>,
    pub pauses: Vec<Pauses>,
    /// Length of that time, in nanoseconds.
    pub window_ns: u64,
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
) -> Result<ThreadsNow, Error> {
    let runtime = runtime()?;
    let mut dsn = Dsn::resolve(dsn)?;
    if !dsn.schema_given {
        dsn.schema = "information_schema".to_string();
    }
    let mut prompt = |question: &str| {
        ask_password(question)
            .ok_or_else(|| std::io::Error::other("there is no terminal to ask at: set MYSQL_PWD"))
    };
    runtime.block_on(async {
        let conn = dsn.log_in(&mut prompt).await?;
        // It was made to learn the password alone.
        let _ = conn.disconnect().await;
        Ok::<_, Error>(())
    })?;
    let server = facts::server_now(&dsn, false, None, &runtime)?;
    let pid = server.pid.ok_or_else(|| {
        Error::Failed(
            "the server's process is not on this machine: its threads can't be seen from here".to_string(),
        )
    })?;
    let (mut counting, _) = Counting::of(pid).map_err(Error::Failed)?;
    let first = counting.read();
    let began = Instant::now();
    while began.elapsed() < length && !stop.is_asked() {
        std::thread::sleep(counting.look_interval().unwrap_or(LOOK).min(length));
        counting.look();
    }
    let last = counting.read();
    let waited = counting.pauses(&last);
    let connections = runtime.block_on(connections_now(&dsn));
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    let before: HashMap<u32, &ThreadSums> = first.threads.iter().map(|thread| (thread.tid, thread)).collect();
    let window_ns = last.at_ns.abs_diff(first.at_ns);
    let time = |thread: &ThreadSums| {
        let then = before.get(&thread.tid).filter(|then| then.born_ns == thread.born_ns);
        let before = then.map_or([0; STATES], |then| then.states);
        let states_ns: Vec<u64> =
            thread.states.iter().zip(before).map(|(now, then)| now.saturating_sub(then)).collect();
        let told = connections.get(&thread.tid);
        ThreadTime {
            tid: thread.tid,
            name: thread.name.clone(),
            role: thread.role.name().to_string(),
            connection: told.map(|told| told.id),
            statement: told.and_then(|told| told.statement.clone()),
            requests: thread.requests - then.map_or(0, |then| then.requests),
            window_ns: window_ns.min(states_ns.iter().sum()),
            states_ns,
        }
    };
    let threads: Vec<ThreadTime> = last.threads.iter().map(time).collect();
    let pauses = waited.iter().map(|one| pauses_of(&threads, one)).collect();
    Ok(ThreadsNow { threads, pauses, window_ns })
}

/// Waits with what was learnt of their thread meanwhile.
fn pauses_of(threads: &[ThreadTime], waited: &whyso_trace::Pauses) -> Pauses {
    let mut pauses = told(waited);
    if let Some(thread) = threads.iter().find(|thread| thread.tid == waited.tid) {
        pauses.role.clone_from(&thread.role);
        pauses.connection = thread.connection;
        pauses.requests = thread.requests as f64;
    }
    pauses
}

/// What the server says of its connections now, by the thread that works for each.
async fn connections_now(dsn: &Dsn) -> HashMap<u32, Connection> {
    let asked = tokio::time::timeout(GOODBYE_TIME_MAX, async {
        let mut conn = dsn.connect().await.ok()?;
        let told = connections(&mut conn).await.ok().flatten();
        let _ = conn.disconnect().await;
        told
    });
    let told = asked.await.ok().flatten().unwrap_or_default();
    told.into_iter().map(|one| (one.tid, one)).collect()
}

/// What the server said of its connections nearest to the window's end.
pub(crate) fn connections_in(
    recording: &Recording,
    window: Window,
) -> Result<HashMap<u32, Connection>, Error> {
    if !recording.row_sources().iter().any(|source| source == CONNECTIONS) {
        return Ok(HashMap::new());
    }
    let tables = recording.rows(CONNECTIONS)?;
    let Some(table) = tables.iter().min_by_key(|table| table.t_ns.abs_diff(window.end_ns)) else {
        return Ok(HashMap::new());
    };
    let one = |row: &Vec<Option<String>>| {
        let [Some(tid), Some(id), statement] = row.as_slice() else { return None };
        let one = Connection { tid: tid.parse().ok()?, id: id.parse().ok()?, statement: statement.clone() };
        Some((one.tid, one))
    };
    Ok(table.rows.iter().filter_map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_took_the_number_of_another_starts_from_nothing() {
        let table = |t_ns, name: &str, cpu: &str| TextRows {
            source: SOURCE.to_string(),
            t_ns,
            columns: ["tid", "name", "requests", "cpu_ns"].map(str::to_string).to_vec(),
            rows: vec![vec![Some("7".into()), Some(name.into()), Some("5".into()), Some(cpu.into())]],
        };
        let same = between(&table(0, "a", "100"), &table(1_000, "a", "700"));
        assert_eq!((same[0].states_ns[0], same[0].requests, same[0].window_ns), (600, 0, 600));
        let other = between(&table(0, "a", "100"), &table(1_000, "b", "70"));
        assert_eq!((other[0].states_ns[0], other[0].requests), (70, 5));
    }
}

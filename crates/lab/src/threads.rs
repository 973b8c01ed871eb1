//! Each thread of a server: where its time went, over a window of a recording, or just now.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use whyso_record::Recording;
use whyso_record::data::TextRows;
use whyso_record::run::Window;
use whyso_server::Dsn;
use whyso_trace::{STATES, ThreadSums, TraceSpec, Tracer, state};

use crate::prepare::AskPassword;
use crate::progress::Stop;
use crate::run::{GOODBYE_TIME_MAX, runtime};
use crate::{Error, facts};

const SOURCE: &str = "threads";
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
    let nearest = |t_ns: i64| tables.iter().min_by_key(|table| table.t_ns.abs_diff(t_ns));
    match (nearest(window.begin_ns), nearest(window.end_ns)) {
        (Some(first), Some(last)) if last.t_ns > first.t_ns => Ok(between(first, last)),
        _ => {
            Err(Error::Failed("the tracer looked at the threads less than twice in this window".to_string()))
        }
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
            connection: number("connection"),
            statement: text("statement"),
            requests: number("requests").unwrap_or(0),
            window_ns: 0,
            states_ns: states_ns.to_vec(),
        }
    };
    table.rows.iter().map(row).collect()
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
) -> Result<Vec<ThreadTime>, Error> {
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
    let spec = TraceSpec { servers: vec![pid], ..TraceSpec::default() };
    let mut tracer = Tracer::start(&spec).map_err(|error| Error::Failed(error.to_string()))?;
    let first = tracer.read();
    let began = Instant::now();
    while began.elapsed() < length && !stop.is_asked() {
        std::thread::sleep(LOOK.min(length));
    }
    let last = tracer.read();
    let connections = runtime.block_on(connections(&dsn));
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
            connection: told.map(|(id, _)| *id),
            statement: told.and_then(|(_, statement)| statement.clone()),
            requests: thread.requests - then.map_or(0, |then| then.requests),
            window_ns: window_ns.min(states_ns.iter().sum()),
            states_ns,
        }
    };
    Ok(last.threads.iter().map(time).collect())
}

/// Which connection a thread works for, by the server's own word, and what it executes now.
type Connections = HashMap<u32, (u64, Option<String>)>;

/// MariaDB tells the kernel's number of a thread in its process list, MySQL in the Performance Schema; older servers nowhere.
async fn connections(dsn: &Dsn) -> Connections {
    const ASKED: [&str; 2] = [
        "SELECT TID, ID, INFO FROM information_schema.PROCESSLIST WHERE TID IS NOT NULL",
        "SELECT THREAD_OS_ID, PROCESSLIST_ID, PROCESSLIST_INFO FROM performance_schema.threads \
         WHERE THREAD_OS_ID IS NOT NULL AND PROCESSLIST_ID IS NOT NULL",
    ];
    let asked = tokio::time::timeout(GOODBYE_TIME_MAX, async {
        let mut conn = dsn.connect().await.ok()?;
        for question in ASKED {
            let rows: Result<Vec<(u32, u64, Option<String>)>, _> = conn.query(question).await;
            if let Ok(rows) = rows.map(|rows| rows.into_iter()) {
                let told = rows.map(|(tid, id, text)| (tid, (id, text.map(|text| without_literals(&text)))));
                let told: Connections = told.collect();
                let _ = conn.disconnect().await;
                return Some(told);
            }
        }
        let _ = conn.disconnect().await;
        None
    });
    asked.await.ok().flatten().unwrap_or_default()
}

/// What a statement says without what it says it of: quoted text and numbers are somebody's data.
fn without_literals(statement: &str) -> String {
    let mut digest = String::with_capacity(statement.len());
    let mut rest = statement.chars().peekable();
    let mut in_word = false;
    while let Some(one) = rest.next() {
        match one {
            '\'' | '"' => {
                while let Some(inner) = rest.next() {
                    if inner == '\\' {
                        rest.next();
                    } else if inner == one {
                        break;
                    }
                }
                digest.push('?');
                in_word = false;
            }
            '0'..='9' if !in_word => {
                while rest.peek().is_some_and(|next| next.is_ascii_alphanumeric() || *next == '.') {
                    rest.next();
                }
                digest.push('?');
            }
            _ => {
                in_word = one.is_alphanumeric() || one == '_' || one == '`';
                digest.push(if one.is_control() { ' ' } else { one });
            }
        }
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_told_without_its_literals() {
        assert_eq!(
            without_literals("SELECT c FROM sbtest1 WHERE id = 42 AND name = 'O\\'Hara' AND x=1.5e3"),
            "SELECT c FROM sbtest1 WHERE id = ? AND name = ? AND x=?"
        );
        assert_eq!(without_literals("SET x = \"a'b\", y='never ends"), "SET x = ?, y=?");
    }

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

//! Each thread of a server: where its time went, over a window of a recording, or just now.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use whyso_clock::monotonic_ns;
use whyso_explain::model::Pauses;
use whyso_record::Recording;
use whyso_record::run::Window;
use whyso_series::{Look, Seen, ThreadTable, ThreadTime, Told};
use whyso_server::Dsn;
use whyso_trace::{Reading, ThreadSums, state};
use whyso_watch::connections;

use crate::counting::Counting;
use crate::pauses::{self, told as told_of};
use crate::prepare::AskPassword;
use crate::progress::Stop;
use crate::run::{GOODBYE_TIME_MAX, runtime};
use crate::{Error, facts};

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

/// Which threads are asked for: all that meet every condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadFilter {
    /// This role alone.
    pub role: Option<String>,
    /// Names that contain this text, in any case.
    pub name: Option<String>,
    /// These numbers of the kernel's alone; empty: any.
    pub tids: Vec<u32>,
}

impl ThreadFilter {
    /// The threads that are asked for.
    ///
    /// # Errors
    /// There is none; the sentence says what there is.
    pub fn choose<'a>(&self, threads: &'a [ThreadTime]) -> Result<Vec<&'a ThreadTime>, Error> {
        let described: Vec<(u32, &str, &str)> =
            threads.iter().map(|one| (one.tid, one.name.as_str(), one.role.as_str())).collect();
        Ok(self.choose_of(&described)?.into_iter().map(|place| &threads[place]).collect())
    }

    /// The places of those that are asked for among threads of this number, name and role each.
    pub(crate) fn choose_of(&self, threads: &[(u32, &str, &str)]) -> Result<Vec<usize>, Error> {
        let roles: BTreeSet<&str> = threads.iter().map(|(_, _, role)| *role).collect();
        if let Some(role) = self.role.as_deref().filter(|role| !roles.contains(role)) {
            let there = roles.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::Plan(format!("no thread has the role {role:?}; there are: {there}")));
        }
        let name = self.name.as_ref().map(|name| name.to_lowercase());
        let is_wanted = |(tid, of_name, role): (u32, &str, &str)| {
            self.role.as_ref().is_none_or(|wanted| role == *wanted)
                && name.as_ref().is_none_or(|name| of_name.to_lowercase().contains(name))
                && (self.tids.is_empty() || self.tids.contains(&tid))
        };
        let chosen: Vec<usize> = (0..threads.len()).filter(|place| is_wanted(threads[*place])).collect();
        if chosen.is_empty() {
            return Err(Error::Plan(format!(
                "no thread is left of {}: leave some of --role, --name and --thread away",
                threads.len()
            )));
        }
        Ok(chosen)
    }
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
    let (mut counting, _) = Counting::of(pid).map_err(Error::Failed)?;
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
    over.pauses = waited.iter().map(told_of).collect();
    pauses::learn(&mut over.pauses, &over.threads);
    Ok(over)
}

/// A server of which the process is on this machine: how it is reached, and the process.
pub(crate) fn server_here(
    dsn: &str,
    runtime: &Runtime,
    ask_password: &AskPassword,
) -> Result<(Dsn, u32), Error> {
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
    let asked = tokio::time::timeout(GOODBYE_TIME_MAX, async {
        let mut conn = dsn.connect().await.ok()?;
        let told = connections(&mut conn).await.ok().flatten();
        let _ = conn.disconnect().await;
        told
    });
    let told = asked.await.ok().flatten().unwrap_or_default();
    let by_tid = told.into_iter().map(|one| (one.tid, (one.id, one.statement))).collect();
    Told { t_ns: monotonic_ns(), by_tid }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads() -> Vec<ThreadTime> {
        let one = |tid, name: &str, role: &str| ThreadTime {
            tid,
            name: name.to_string(),
            role: role.to_string(),
            ..ThreadTime::default()
        };
        vec![
            one(1, "mariadbd", "listener"),
            one(2, "One_Connection", "connection"),
            one(3, "ib_purge", "purge"),
        ]
    }

    #[test]
    fn threads_are_chosen_by_role_by_a_part_of_their_name_and_by_number() {
        let chosen = |filter: ThreadFilter| {
            filter.choose(&threads()).unwrap().iter().map(|thread| thread.tid).collect::<Vec<_>>()
        };
        assert_eq!(chosen(ThreadFilter::default()), [1, 2, 3]);
        let text = |text: &str| Some(text.to_string());
        assert_eq!(chosen(ThreadFilter { role: text("purge"), ..ThreadFilter::default() }), [3]);
        assert_eq!(chosen(ThreadFilter { name: text("connect"), ..ThreadFilter::default() }), [2]);
        assert_eq!(chosen(ThreadFilter { tids: vec![1, 3], ..ThreadFilter::default() }), [1, 3]);
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let refused = |filter: ThreadFilter| filter.choose(&threads()).unwrap_err().to_string();
        let role = refused(ThreadFilter { role: Some("purger".to_string()), ..ThreadFilter::default() });
        assert_eq!(role, "no thread has the role \"purger\"; there are: connection, listener, purge");
        let name = refused(ThreadFilter { name: Some("x".to_string()), ..ThreadFilter::default() });
        assert!(name.starts_with("no thread is left of 3"), "{name}");
    }
}

//! What `--at` does in mid-run: started when due, recorded, put back at the end.

use std::process::Stdio;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use whyso_clock::monotonic_ns;
use whyso_connect::caught;
use whyso_record::Recorder;
use whyso_record::data::Event;
use whyso_record::run::{ActionRecord, Purpose};
use whyso_server::answers::log_out;
use whyso_server::knobs::Undo;
use whyso_server::{Dsn, ThrowAway};

use crate::plan::{Action, What};
use crate::sweep::Shared;

/// Bound on a statement or a command; a restart has the bounds of the server's own start and stop.
const ACTION_TIME_MAX: Duration = Duration::from_secs(120);

/// The actions of a run, and the hands to carry them out.
pub(crate) struct Actions {
    /// Latest first, so that the next one is at the end.
    pending: Vec<Action>,
    under_way: Vec<(ActionRecord, JoinHandle<Result<Done, String>>)>,
    done: Vec<ActionRecord>,
    runtime: Handle,
    dsn: Dsn,
    undo: Shared<Undo>,
    throw_away: Option<Shared<ThrowAway>>,
    /// The server's process after a restart, until somebody takes note of it.
    new_pid: Option<u32>,
}

/// What came of an action.
#[derive(Default)]
struct Done {
    new_pid: Option<u32>,
}

impl Actions {
    pub(crate) fn new(
        actions: &[Action],
        runtime: Handle,
        dsn: Dsn,
        undo: Shared<Undo>,
        throw_away: Option<Shared<ThrowAway>>,
    ) -> Actions {
        let mut pending = actions.to_vec();
        pending.sort_by_key(|action| std::cmp::Reverse(action.after));
        Actions {
            pending,
            under_way: Vec::new(),
            done: Vec::new(),
            runtime,
            dsn,
            undo,
            throw_away,
            new_pid: None,
        }
    }

    /// Starts what is due at this measured time, and notes what has ended. Never waits.
    pub(crate) fn start_due(&mut self, measured: Duration, purpose: Purpose, recorder: &Recorder) {
        while purpose == Purpose::Sweep && self.pending.last().is_some_and(|next| next.after <= measured) {
            let Some(action) = self.pending.pop() else { break };
            let record = ActionRecord {
                text: whyso_server::redact::text(&action.what.to_string()),
                begin_ns: monotonic_ns(),
                ..ActionRecord::default()
            };
            event(recorder, "action", record.text.clone());
            let carried_out =
                carry_out(action.what, self.dsn.clone(), self.undo.clone(), self.throw_away.clone());
            self.under_way.push((record, self.runtime.spawn(carried_out)));
        }
        self.note_ended(recorder);
    }

    fn note_ended(&mut self, recorder: &Recorder) {
        let mut index = 0;
        while index < self.under_way.len() {
            if !self.under_way[index].1.is_finished() {
                index += 1;
                continue;
            }
            let (mut record, task) = self.under_way.swap_remove(index);
            record.end_ns = monotonic_ns();
            let outcome = self.runtime.block_on(task).unwrap_or_else(|error| Err(error.to_string()));
            match outcome {
                Ok(done) => self.new_pid = done.new_pid.or(self.new_pid),
                Err(error) => {
                    // It may quote the statement.
                    let error = whyso_server::redact::text(&error);
                    event(recorder, "error", format!("{}: {error}", record.text));
                    record.error = error;
                }
            }
            self.done.push(record);
        }
    }

    /// The server's new process, once after a restart.
    pub(crate) fn take_new_pid(&mut self) -> Option<u32> {
        self.new_pid.take()
    }

    /// Waits for what is under way, within the bound of an action, and gives all that was done, in order.
    pub(crate) fn finish(&mut self, recorder: &Recorder) -> Vec<ActionRecord> {
        let begin = std::time::Instant::now();
        while !self.under_way.is_empty() && begin.elapsed() < ACTION_TIME_MAX {
            self.note_ended(recorder);
            std::thread::sleep(Duration::from_millis(20));
        }
        for (mut record, task) in self.under_way.drain(..) {
            task.abort();
            record.end_ns = monotonic_ns();
            record.error = format!("it did not end within {} s of the last level", ACTION_TIME_MAX.as_secs());
            self.done.push(record);
        }
        self.done.sort_by_key(|record| record.begin_ns);
        std::mem::take(&mut self.done)
    }
}

fn event(recorder: &Recorder, kind: &str, text: String) {
    recorder.event(Event { t_ns: monotonic_ns(), host: "server".to_string(), kind: kind.to_string(), text });
}

async fn carry_out(
    what: What,
    dsn: Dsn,
    undo: Shared<Undo>,
    throw_away: Option<Shared<ThrowAway>>,
) -> Result<Done, String> {
    match what {
        What::Set { name, value } => bounded(set(&dsn, &undo, &name, &value)).await,
        What::Sql(sql) => bounded(send(&dsn, &sql)).await,
        What::Shell(command) => bounded(shell(&command)).await,
        What::Restart => match throw_away {
            Some(server) => restart(&server).await,
            None => Err("only a throw-away server can be restarted".to_string()),
        },
    }
}

async fn bounded(action: impl Future<Output = Result<(), String>>) -> Result<Done, String> {
    match timeout(ACTION_TIME_MAX, caught(action)).await {
        Ok(Ok(done)) => done.map(|()| Done::default()),
        Ok(Err(panic)) => Err(format!("the server cannot be understood: {panic}")),
        Err(_) => Err(format!("it did not end within {} s", ACTION_TIME_MAX.as_secs())),
    }
}

async fn set(dsn: &Dsn, undo: &Shared<Undo>, name: &str, value: &str) -> Result<(), String> {
    let mut conn = dsn.connect_without_schema().await.map_err(|error| error.to_string())?;
    let set = undo.lock().await.set_global(&mut conn, name, value).await;
    log_out(conn).await;
    set.map(|_| ()).map_err(|error| error.to_string())
}

async fn send(dsn: &Dsn, sql: &str) -> Result<(), String> {
    let mut conn = dsn.connect().await.map_err(|error| error.to_string())?;
    conn.query_drop(sql).await.map_err(|error| error.to_string())?;
    log_out(conn).await;
    Ok(())
}

async fn shell(command: &str) -> Result<(), String> {
    let output = tokio::process::Command::new("/bin/sh")
        .args(["-c", command])
        .env_remove("MYSQL_PWD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| format!("can't run /bin/sh: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last_line = said.lines().last().unwrap_or("").to_string();
    Err(format!("the command ended with {}: {last_line}", output.status))
}

async fn restart(server: &Shared<ThrowAway>) -> Result<Done, String> {
    let mut server = server.lock().await;
    server.stop_server().await.map_err(|error| error.to_string())?;
    server.start_server().await.map_err(|error| error.to_string())?;
    Ok(Done { new_pid: server.pid() })
}

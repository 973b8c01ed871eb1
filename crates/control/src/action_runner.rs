//! Carries out the actions of `--at` during a run: starts them when due, and records them.

use std::process::{ExitStatus, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use thiserror::Error;
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

use crate::action::{Action, ActionKind};
use crate::cluster_node::OwnCluster;
use crate::server_under_test::SharedCell;

/// Bound on a statement or a command; a restart has the bounds of the server's own start and stop.
const ACTION_TIME_MAX: Duration = Duration::from_secs(120);

/// Bound on the restart of one node of a cluster, with what the others need to accept it.
const NODE_TIME_MAX: Duration = Duration::from_secs(360);

/// Carries out the actions of a run.
pub(crate) struct ActionRunner {
    /// Latest first, so that the next one is at the end.
    pending: Vec<Action>,
    under_way: Vec<(ActionRecord, JoinHandle<Result<ActionOutcome, ActionError>>)>,
    done: Vec<ActionRecord>,
    runtime: Handle,
    dsn: Dsn,
    undo: SharedCell<Undo>,
    restarted: RestartTarget,
    /// The server's process after a restart, until somebody takes note of it.
    new_pid: Option<u32>,
}

/// What a restart restarts.
#[derive(Clone)]
pub(crate) enum RestartTarget {
    Server(SharedCell<ThrowAway>),
    Cluster(OwnCluster),
    /// The user's own server.
    Nothing,
}

/// Why an action failed.
#[derive(Debug, Error)]
enum ActionError {
    #[error(transparent)]
    Server(#[from] whyso_server::Error),
    #[error(transparent)]
    Statement(#[from] mysql_async::Error),
    #[error("can't run /bin/sh: {0}")]
    Shell(std::io::Error),
    #[error("the command ended with {status}: {last_line}")]
    Command { status: ExitStatus, last_line: String },
    #[error("the server cannot be understood: {0}")]
    Answer(String),
    #[error("it did not end within {} s", ACTION_TIME_MAX.as_secs())]
    TimeOut,
    #[error("only a throw-away server can be restarted")]
    NotThrowAway,
    #[error(transparent)]
    Task(#[from] tokio::task::JoinError),
}

/// What an action changed.
#[derive(Default)]
struct ActionOutcome {
    new_pid: Option<u32>,
}

impl ActionRunner {
    pub(crate) fn new(
        actions: &[Action],
        runtime: Handle,
        dsn: Dsn,
        undo: SharedCell<Undo>,
        restarted: RestartTarget,
    ) -> ActionRunner {
        let mut pending = actions.to_vec();
        pending.sort_by_key(|action| std::cmp::Reverse(action.after));
        ActionRunner {
            pending,
            under_way: Vec::new(),
            done: Vec::new(),
            runtime,
            dsn,
            undo,
            restarted,
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
                carry_out(action.what, self.dsn.clone(), self.undo.clone(), self.restarted.clone());
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
            let outcome = self.runtime.block_on(task).unwrap_or_else(|error| Err(error.into()));
            match outcome {
                Ok(done) => self.new_pid = done.new_pid.or(self.new_pid),
                Err(error) => {
                    // It may quote the statement.
                    let error = whyso_server::redact::text(&error.to_string());
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
        let time_max = match &self.restarted {
            RestartTarget::Cluster(cluster) => {
                cluster.is_over.store(true, Relaxed);
                NODE_TIME_MAX
            }
            RestartTarget::Server(_) | RestartTarget::Nothing => ACTION_TIME_MAX,
        };
        while !self.under_way.is_empty() && begin.elapsed() < time_max {
            self.note_ended(recorder);
            std::thread::sleep(Duration::from_millis(20));
        }
        for (mut record, task) in self.under_way.drain(..) {
            task.abort();
            record.end_ns = monotonic_ns();
            record.error = format!("it did not end within {} s of the last level", time_max.as_secs());
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
    what: ActionKind,
    dsn: Dsn,
    undo: SharedCell<Undo>,
    restarted: RestartTarget,
) -> Result<ActionOutcome, ActionError> {
    match what {
        ActionKind::Set { name, value } => bounded(set(&dsn, &undo, &name, &value)).await,
        ActionKind::Sql(sql) => bounded(send(&dsn, &sql)).await,
        ActionKind::Shell(command) => bounded(shell(&command)).await,
        ActionKind::Restart { data_set } => match restarted {
            RestartTarget::Server(server) => restart(&server).await,
            RestartTarget::Cluster(cluster) => restart_nodes(cluster, data_set).await,
            RestartTarget::Nothing => Err(ActionError::NotThrowAway),
        },
    }
}

async fn bounded(
    action: impl Future<Output = Result<(), ActionError>>,
) -> Result<ActionOutcome, ActionError> {
    match timeout(ACTION_TIME_MAX, caught(action)).await {
        Ok(Ok(done)) => done.map(|()| ActionOutcome::default()),
        Ok(Err(panic)) => Err(ActionError::Answer(panic.to_string())),
        Err(_) => Err(ActionError::TimeOut),
    }
}

async fn set(dsn: &Dsn, undo: &SharedCell<Undo>, name: &str, value: &str) -> Result<(), ActionError> {
    let mut conn = dsn.connect_without_schema().await?;
    let set = undo.lock().await.set_global(&mut conn, name, value).await;
    log_out(conn).await;
    set?;
    Ok(())
}

async fn send(dsn: &Dsn, sql: &str) -> Result<(), ActionError> {
    let mut conn = dsn.connect().await?;
    conn.query_drop(sql).await?;
    log_out(conn).await;
    Ok(())
}

async fn shell(command: &str) -> Result<(), ActionError> {
    let output = tokio::process::Command::new("/bin/sh")
        .args(["-c", command])
        .env_remove("MYSQL_PWD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(ActionError::Shell)?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last_line = stderr.lines().last().unwrap_or("").to_string();
    Err(ActionError::Command { status: output.status, last_line })
}

async fn restart(server: &SharedCell<ThrowAway>) -> Result<ActionOutcome, ActionError> {
    let mut server = server.lock().await;
    server.stop_server().await?;
    server.start_server().await?;
    Ok(ActionOutcome { new_pid: server.pid() })
}

/// One node after the other. Asking the management node of NDB blocks, so it is not done where others wait for their answers.
async fn restart_nodes(
    cluster: OwnCluster,
    data_set: Vec<(String, String)>,
) -> Result<ActionOutcome, ActionError> {
    let runtime = Handle::current();
    let restarted = tokio::task::spawn_blocking(move || {
        runtime.block_on(async {
            let goes_on = || !cluster.is_over.load(Relaxed);
            let mut nodes = cluster.cell.lock().await;
            Ok::<_, ActionError>(nodes.restart(&data_set, &goes_on).await?)
        })
    });
    restarted.await??;
    // Their new processes are found as those of any node that comes back.
    Ok(ActionOutcome::default())
}

//! A server that went away and came back is another process, which is then to be watched.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use whyso_server::Dsn;
use whyso_server::answers::{log_out, within};
use whyso_watch::{Watcher, server_facts};

use whyso_tracing::Tracing;

/// Between two checks whether the process still exists.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Bound on asking the server which process it is.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// Has the server's process, and finds the next one where that has ended.
pub(super) struct Successor {
    state: RefCell<SuccessorState>,
}

struct SuccessorState {
    process: Option<Process>,
    checked: Instant,
    answer: Option<Receiver<Option<u32>>>,
}

/// Another process may have the number later: the time of its start distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    start_ticks: u64,
}

impl Process {
    fn now(pid: u32) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses, and may contain any.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        // Nothing runs in a process that has ended and was not collected yet.
        let state = fields.next()?;
        let start_ticks = fields.nth(22 - 4)?.parse().ok()?;
        (state != "Z").then_some(Process { pid, start_ticks })
    }
}

impl Successor {
    /// `pid`: the server's, where it runs on this machine; of another one nothing is looked for.
    pub(super) fn of(pid: Option<u32>) -> Successor {
        let process = pid.and_then(Process::now);
        Successor { state: RefCell::new(SuccessorState { process, checked: Instant::now(), answer: None }) }
    }

    /// Checks at most once per second. Never waits.
    pub(super) fn check(&self, dsn: &Dsn, runtime: &Runtime, watcher: &Watcher, tracing: Option<&Tracing>) {
        let mut state = self.state.borrow_mut();
        let Some(process) = state.process else { return };
        if state.checked.elapsed() < CHECK_INTERVAL {
            return;
        }
        state.checked = Instant::now();
        match state.answer.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return,
            Some(Ok(Some(pid))) => {
                state.answer = None;
                let Some(next) = Process::now(pid).filter(|next| *next != process) else { return };
                state.process = Some(next);
                watcher.server_pid_changed(Some(pid));
                if let Some(tracing) = tracing {
                    tracing.server_pid_changed(pid);
                }
                return;
            }
            Some(Ok(None) | Err(TryRecvError::Disconnected)) => state.answer = None,
            None => {}
        }
        if Process::now(process.pid) != Some(process) {
            state.answer = Some(find_pid(dsn.clone(), runtime));
        }
    }
}

/// Which process the server is now; `None` where it does not answer yet.
fn find_pid(dsn: Dsn, runtime: &Runtime) -> Receiver<Option<u32>> {
    let (reply, answer) = channel();
    runtime.spawn(async move {
        let asked = within(ANSWER_TIME_MAX, &dsn, "finding its process", async {
            let mut conn = dsn.connect().await?;
            let facts = server_facts(&mut conn, &dsn.endpoint(), false, dsn.server_pid()).await?;
            log_out(conn).await;
            Ok::<_, crate::Error>(facts.pid)
        });
        // Nobody may listen any more: the recording has ended.
        let _ = reply.send(asked.await.ok().flatten());
    });
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_while_it_lives() {
        let own = Process::now(std::process::id()).unwrap();
        assert!(own.start_ticks > 0);
        assert_eq!(Process::now(std::process::id()), Some(own));
        assert_eq!(Process::now(u32::MAX), None);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while Process::now(child.id()).is_some() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(Process::now(child.id()), None, "it has ended, and nobody has collected it");
        child.wait().unwrap();
    }
}

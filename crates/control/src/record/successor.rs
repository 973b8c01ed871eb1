//! A server that went away and came back is another process, which is then to be watched.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use whyso_server::Dsn;
use whyso_tracing::Tracing;
use whyso_watch::Watcher;

use crate::process::{self, Process};

/// Between two checks whether the process still exists.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Has the server's process, and finds the next one where that has ended.
pub(super) struct Successor {
    state: RefCell<SuccessorState>,
}

struct SuccessorState {
    process: Option<Process>,
    checked: Instant,
    answer: Option<Receiver<Option<u32>>>,
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
        if !process.lives() {
            state.answer = Some(find_pid(dsn.clone(), runtime));
        }
    }
}

/// Which process the server is now; `None` where it does not answer yet.
fn find_pid(dsn: Dsn, runtime: &Runtime) -> Receiver<Option<u32>> {
    let (reply, answer) = channel();
    runtime.spawn(async move {
        // Nobody may listen any more: the recording has ended.
        let _ = reply.send(process::of_server(&dsn).await);
    });
    answer
}

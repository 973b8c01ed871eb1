//! What the user says while it is recorded: by Enter, by SIGUSR1, or on a screen.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use tokio::runtime::Runtime;

/// That a window is to begin, or to end.
pub(super) struct Toggles {
    said: Receiver<()>,
}

impl Toggles {
    /// What somebody else tells.
    pub(super) fn told(said: Receiver<()>) -> Toggles {
        Toggles { said }
    }

    pub(super) fn listen(runtime: &Runtime) -> Toggles {
        let (say, said) = channel();
        let by_key = say.clone();
        // It ends with the process: a line that never comes can't be waited for with a bound.
        let _ = std::thread::Builder::new().name("keys".to_string()).spawn(move || {
            for line in std::io::stdin().lock().lines() {
                if line.is_err() || by_key.send(()).is_err() {
                    break;
                }
            }
        });
        runtime.spawn(async move {
            let kind = tokio::signal::unix::SignalKind::user_defined1();
            let Ok(mut signals) = tokio::signal::unix::signal(kind) else { return };
            while signals.recv().await.is_some() && say.send(()).is_ok() {}
        });
        Toggles { said }
    }

    pub(super) fn asked(&self) -> bool {
        match self.said.try_recv() {
            Ok(()) => true,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => false,
        }
    }
}

//! The user's presses during a recording: Enter, SIGUSR1, or a key on a screen.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use tokio::runtime::Runtime;

/// Presses that begin or end a window.
pub(super) struct Toggles {
    presses: Receiver<()>,
}

impl Toggles {
    /// Returns toggles whose presses arrive on a channel.
    pub(super) fn from_channel(presses: Receiver<()>) -> Toggles {
        Toggles { presses }
    }

    pub(super) fn listen(runtime: &Runtime) -> Toggles {
        let (sender, presses) = channel();
        let by_key = sender.clone();
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
            while signals.recv().await.is_some() && sender.send(()).is_ok() {}
        });
        Toggles { presses }
    }

    pub(super) fn is_pressed(&self) -> bool {
        match self.presses.try_recv() {
            Ok(()) => true,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => false,
        }
    }
}

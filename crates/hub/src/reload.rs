//! A hub that runs on a folder reads its members again.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result};

/// The configuration of nats-server in a hub's folder, and the number of its process.
pub(crate) const CONFIG: &str = "nats.conf";
pub(crate) const PID: &str = "nats-server.pid";

/// Lets the hub that runs on a folder read its members again, at once. One that is not seen from here, as from another container, does so
/// by itself.
pub(crate) fn reload(folder: &Path) -> Result<()> {
    let Some(pid) = running_on(folder) else { return Ok(()) };
    kill_process(pid, Signal::HUP)
        .map_err(|error| Error::NatsServer { why: format!("it can't be signalled: {error}") })
}

/// The process of the hub that runs on a folder.
pub(crate) fn running_on(folder: &Path) -> Option<Pid> {
    let text = fs::read_to_string(folder.join(PID)).ok()?;
    let pid = text.trim().parse().ok().and_then(Pid::from_raw)?;
    // The number may be another program's by now.
    let config = folder.join(CONFIG);
    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let is_hub = line.split(|byte| *byte == 0).any(|word| word == config.as_os_str().as_encoded_bytes());
    is_hub.then_some(pid)
}

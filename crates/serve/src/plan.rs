//! What is served, and where.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::access::Token;
use crate::recorder::LiveRecorder;
use crate::servers_file::LiveServer;

/// The settings of `whyso serve`.
#[derive(Clone)]
pub struct ServePlan {
    /// The folder that holds the recordings.
    pub runs: PathBuf,
    /// The folder that holds the studies. It may be missing.
    pub studies: PathBuf,
    /// The folder that holds the user's own sets of charts. It is created when the first one is saved.
    pub charts: PathBuf,
    /// The file that keeps the verdicts of runs from one start to the next. `None`: verdicts are not stored.
    pub verdicts: Option<PathBuf>,
    /// Servers that can be recorded from the page.
    pub servers: Vec<LiveServer>,
    /// Records these servers.
    pub recorder: Arc<dyn LiveRecorder>,
    /// Where to listen.
    pub listen: SocketAddr,
    /// What a request has to prove that it knows.
    pub token: Token,
    /// Further host names of this server, as a proxy sends them, with a port if it is not the scheme's default.
    pub hosts: Vec<String>,
}

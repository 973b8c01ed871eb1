//! Requests to the tracing thread.

use std::sync::mpsc::SyncSender;

use whyso_trace::Reading;

/// A request to the tracing thread.
pub(crate) enum Request {
    /// A window begins or ends now.
    Mark,
    /// The same, and the sender waits for the sums.
    Edge(SyncSender<Reading>),
    /// A process that loads the server, other than this one.
    Generator(u32, SyncSender<()>),
    /// The server was started again, as this process.
    Server(u32),
    /// Another server that takes parts of the load was started again: its process before, and now.
    OtherServer(u32, u32),
}

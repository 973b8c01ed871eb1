//! Open connections, and when each was last active.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// When bytes last went through a connection.
#[derive(Clone)]
pub(crate) struct Activity {
    begin: Instant,
    last_ms: Arc<AtomicU64>,
}

impl Activity {
    fn record(&self) {
        self.last_ms.store(self.begin.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn silent_ms(&self) -> u64 {
        (self.begin.elapsed().as_millis() as u64).saturating_sub(self.last_ms.load(Ordering::Relaxed))
    }
}

/// A connection that records when bytes go through it.
pub(crate) struct TimedStream {
    stream: TcpStream,
    activity: Activity,
}

impl TimedStream {
    pub(crate) fn new(stream: TcpStream) -> TimedStream {
        TimedStream { stream, activity: Activity { begin: Instant::now(), last_ms: Arc::default() } }
    }

    pub(crate) fn activity(&self) -> Activity {
        self.activity.clone()
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            self.activity.record();
        }
        polled
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if polled.is_ready() {
            self.activity.record();
        }
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        if polled.is_ready() {
            self.activity.record();
        }
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A bounded number of open connections.
pub(crate) struct OpenConnections {
    most: usize,
    connections: Vec<(AbortHandle, Activity)>,
}

impl OpenConnections {
    pub(crate) fn new(most: usize) -> OpenConnections {
        OpenConnections { most, connections: Vec::new() }
    }

    /// Adds a connection. If there are too many then, it ends the one that was silent longest.
    pub(crate) fn add(&mut self, task: AbortHandle, activity: Activity) {
        if self.connections.len() >= self.most {
            self.connections.retain(|(task, _)| !task.is_finished());
        }
        if self.connections.len() >= self.most {
            let silent =
                self.connections.iter().enumerate().max_by_key(|(_, (_, activity))| activity.silent_ms());
            if let Some(place) = silent.map(|(place, _)| place) {
                self.connections.swap_remove(place).0.abort();
            }
        }
        self.connections.push((task, activity));
    }
}

//! Connections, and when each was last heard of.

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
pub(super) struct Clock {
    begin: Instant,
    last_ms: Arc<AtomicU64>,
}

impl Clock {
    fn tick(&self) {
        self.last_ms.store(self.begin.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn silent_ms(&self) -> u64 {
        (self.begin.elapsed().as_millis() as u64).saturating_sub(self.last_ms.load(Ordering::Relaxed))
    }
}

/// A connection that notes when bytes go through it.
pub(super) struct Heard {
    stream: TcpStream,
    clock: Clock,
}

impl Heard {
    pub(super) fn new(stream: TcpStream) -> Heard {
        Heard { stream, clock: Clock { begin: Instant::now(), last_ms: Arc::default() } }
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            self.clock.tick();
        }
        polled
    }
}

impl AsyncWrite for Heard {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if polled.is_ready() {
            self.clock.tick();
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
            self.clock.tick();
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

/// The connections that are open, at most so many.
pub(super) struct Open {
    most: usize,
    connections: Vec<(AbortHandle, Clock)>,
}

impl Open {
    pub(super) fn new(most: usize) -> Open {
        Open { most, connections: Vec::new() }
    }

    /// Adds one; where there are too many then, ends the one that was silent longest.
    pub(super) fn add(&mut self, task: AbortHandle, clock: Clock) {
        if self.connections.len() >= self.most {
            self.connections.retain(|(task, _)| !task.is_finished());
        }
        if self.connections.len() >= self.most {
            let silent = self.connections.iter().enumerate().max_by_key(|(_, (_, clock))| clock.silent_ms());
            if let Some(place) = silent.map(|(place, _)| place) {
                self.connections.swap_remove(place).0.abort();
            }
        }
        self.connections.push((task, clock));
    }
}

//! One connection: what is sent, and the answer to it.

use std::io;
use std::sync::Arc;

use thiserror::Error;
use whyso_wire::{
    Answer, Complete, PrepareAnswer, PrepareScanner, ProtocolError, ResponseScanner, RowFormat, encode,
};

use crate::error::LoadError;
use crate::login::log_in;
use crate::outcome::ErrorCode;
use crate::plan::{Handles, Plan};
use crate::stream::{Socket, Stream};
use crate::target::{Limits, Target};

/// As much as a server sends at once with its default `net_buffer_length`; a range of 100 rows fits.
const RECEIVE_BYTES: usize = 16 * 1024;
/// The longest statement of the built-in workloads is below this; a longer one makes the buffer grow once.
const SEND_BYTES: usize = 512;
/// How many preparations are sent before the first answer is read. Small, so that neither side's socket buffer fills
/// up while both want to send.
const PREPARED_AT_ONCE: usize = 16;

pub(crate) struct Connection {
    stream: Stream,
    scanner: ResponseScanner,
    received: Box<[u8]>,
    pub(crate) handles: Handles,
    /// What is to be sent next.
    pub(crate) out: Vec<u8>,
}

/// The answer to one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Fine {
        rows: u64,
    },
    /// The text is what [`Connection::message`] gives.
    Error(ErrorCode),
}

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum ExchangeError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    #[error("the server asked for the local file '{0}', which is refused")]
    LocalInfile(String),
}

impl Connection {
    /// Connects, logs in and prepares the plan's statements.
    pub(crate) fn open(target: &Target, plan: &Plan, limits: &Limits) -> Result<Connection, LoadError> {
        let logged_in = log_in(target, limits)?;
        let mut connection = Connection {
            stream: logged_in.stream,
            scanner: ResponseScanner::new(logged_in.agreed),
            received: vec![0; RECEIVE_BYTES].into_boxed_slice(),
            handles: Handles::new(plan),
            out: Vec::with_capacity(SEND_BYTES),
        };
        let broken = |source| LoadError::Broken { address: target.address.to_string(), source };
        connection.stream.bound_waits(Some(limits.connect)).map_err(broken)?;
        let mut scanner = PrepareScanner::new(logged_in.agreed);
        for batch in plan.preparations().chunks(PREPARED_AT_ONCE) {
            connection.prepare(batch, &mut scanner, target)?;
        }
        // From here on the level watches over stalls: a bound on the socket costs a timer at every wait.
        connection.stream.bound_waits(None).map_err(broken)?;
        Ok(connection)
    }

    fn prepare(
        &mut self,
        batch: &[(usize, &str, String)],
        scanner: &mut PrepareScanner,
        target: &Target,
    ) -> Result<(), LoadError> {
        let address = target.address.to_string();
        self.out.clear();
        for (_, _, sql) in batch {
            encode::prepare(&mut self.out, sql.as_bytes());
        }
        let broken = |source| LoadError::Broken { address: address.clone(), source };
        self.stream.send(&self.out).map_err(broken)?;
        let mut waiting = batch.iter();
        let mut next = waiting.next();
        scanner.begin();
        while next.is_some() {
            let count = self.stream.receive(&mut self.received).map_err(broken)?;
            let mut bytes = &self.received[..count];
            while let Some((handle, kind, sql)) = next
                && !bytes.is_empty()
            {
                let fed = scanner.feed(bytes);
                let (taken, answer) =
                    fed.map_err(|source| LoadError::Protocol { address: address.clone(), source })?;
                bytes = &bytes[taken..];
                match answer {
                    None => {}
                    Some(PrepareAnswer::Prepared(prepared)) => {
                        self.handles.set(*handle, prepared.statement_id);
                        next = waiting.next();
                        scanner.begin();
                    }
                    Some(PrepareAnswer::Err { code, .. }) => {
                        let message = format!("error {code}: {}", scanner.message());
                        return Err(LoadError::Prepare { kind: kind.to_string(), sql: sql.clone(), message });
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends what is in `out` and waits for the whole answer.
    #[inline]
    pub(crate) fn exchange(&mut self, format: RowFormat) -> Result<Reply, ExchangeError> {
        self.scanner.begin(format);
        self.stream.send(&self.out)?;
        let mut rows_before = 0;
        let mut failed = None;
        loop {
            let count = self.stream.receive(&mut self.received)?;
            let mut bytes = &self.received[..count];
            while !bytes.is_empty() {
                let fed = self.scanner.feed(bytes)?;
                bytes = &bytes[fed.consumed..];
                let Some(Complete { answer, more_results }) = fed.complete else { continue };
                match answer {
                    Answer::Ok { .. } => {}
                    Answer::Rows { rows, .. } => rows_before += rows,
                    Answer::Err { code, sqlstate } => failed = Some(ErrorCode { errno: code, sqlstate }),
                    Answer::LocalInfile => return Err(ExchangeError::LocalInfile(self.message())),
                }
                if more_results {
                    continue;
                }
                if !bytes.is_empty() {
                    return Err(ProtocolError::AfterEnd.into());
                }
                return Ok(match failed {
                    Some(code) => Reply::Error(code),
                    None => Reply::Fine { rows: rows_before },
                });
            }
        }
    }

    /// Whether the server still answers on it, within the time that connecting may take.
    pub(crate) fn answers(&mut self, limits: &Limits) -> bool {
        self.out.clear();
        encode::ping(&mut self.out);
        let is_bound = self.stream.bound_waits(Some(limits.connect)).is_ok();
        let reply = self.exchange(RowFormat::Text);
        let is_unbound = self.stream.bound_waits(None).is_ok();
        is_bound && is_unbound && matches!(reply, Ok(Reply::Fine { .. }))
    }

    /// The server's words with the last error.
    pub(crate) fn message(&self) -> String {
        self.scanner.message().into_owned()
    }

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        self.stream.socket()
    }

    /// Says goodbye, so that the server does not count the connection as aborted.
    pub(crate) fn quit(mut self) {
        self.out.clear();
        encode::quit(&mut self.out);
        // Whoever does not take it is gone already.
        let _ = self.stream.send(&self.out);
    }
}

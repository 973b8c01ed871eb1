//! One connection without its input and output: what is to be written, and what the bytes that come mean.

mod page;

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;

use whyso_http::AnswerScanner;
use whyso_wire::{
    Answer, Capabilities, ColumnType, Complete, PrepareAnswer, PrepareScanner, PreparedStatement,
    ProtocolError, ResponseScanner, ResultRows, RowFormat, encode,
};

use crate::connection::exchange_error::ExchangeError;
use crate::connection::layers::Layers;
use crate::connection::login::LoggedIn;
use crate::connection::stream::{SharedSocket, Socket, Stream};
use crate::driver::{Command, Expects, Handles, Kind, Preparation};
use crate::error::LoadError;
use crate::outcome::ErrorCode;

/// The longest statement of the built-in workloads is below this; a longer one makes the buffer grow once.
const SEND_BYTES: usize = 256;
/// How many preparations are sent before the first answer is read. Small, so that neither side's socket buffer fills
/// up while both want to send.
const PREPARED_AT_ONCE: usize = 16;
/// "This command is not supported in the prepared statement protocol yet": BEGIN on MySQL, among others.
const NOT_PREPARABLE: u16 = 1295;
/// A node of Galera answers every statement so while it takes no part in its cluster: it joins, or it is about to end.
pub(crate) const TAKES_NO_PART: u16 = 1047;

pub(crate) struct Session {
    socket: Arc<Socket>,
    /// Which of the load's endpoints it goes to.
    pub(crate) endpoint: u16,
    /// Transactions that it has carried.
    pub(crate) age: u32,
    pub(crate) handles: Handles,
    /// The command that is to be sent, as the driver wrote it.
    pub(crate) command: Vec<u8>,
    layers: Option<Box<Layers>>,
    /// Received bytes without their layers.
    plain: Vec<u8>,
    scanner: ResponseScanner,
    /// Made when a statement is prepared in mid-level.
    preparing: Option<Box<PrepareScanner>>,
    /// Of a session over HTTP, which uses neither of the scanners above.
    page: Option<Box<AnswerScanner>>,
    /// Over HTTP: no further request goes over it.
    is_used_up: bool,
    agreed: Capabilities,
    expects: Expects,
    sum: Sum,
    /// While the content of a local file is being sent: the number of its next packet.
    file_sequence: Option<u8>,
    /// Of a session to nowhere: open for as long as the session is.
    other_end: Option<OwnedFd>,
}

/// The sum over the results of a command so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) result_sets: u32,
    pub(crate) rows: u64,
    pub(crate) affected_rows: u64,
    failed: Option<ErrorCode>,
}

/// What a driver is shown of a connection.
pub(crate) struct Parts<'s> {
    pub(crate) captured: &'s ResultRows,
    /// Of the statement that was prepared last, where they were to be captured.
    pub(crate) prepared_columns: &'s [ColumnType],
    /// Where it writes to.
    pub(crate) out: &'s mut Vec<u8>,
    /// The prepared statements.
    pub(crate) handles: &'s mut Handles,
}

/// What a whole answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    /// See [`Session::sum`].
    Fine,
    /// The text is what [`Session::message`] gives.
    Error(ErrorCode),
    Prepared(PreparedStatement),
    /// Content of the file that our own LOAD DATA named is due.
    LocalFile,
    /// See [`Session::page`].
    Page,
}

impl Session {
    pub(crate) fn new(logged_in: LoggedIn, endpoint: u16) -> Session {
        let (socket, tls) = match logged_in.stream {
            Stream::Plain(socket) => (socket.0, None),
            Stream::Tls(stream) => (stream.sock.0, Some(stream.conn)),
        };
        let mut scanner = ResponseScanner::new(logged_in.agreed);
        if logged_in.is_compressed {
            scanner.skip_sequence_check();
        }
        Session {
            socket,
            endpoint,
            age: 0,
            handles: Handles::default(),
            command: Vec::with_capacity(SEND_BYTES),
            layers: Layers::new(tls, logged_in.is_compressed),
            plain: Vec::new(),
            scanner,
            preparing: None,
            page: None,
            is_used_up: false,
            agreed: logged_in.agreed,
            expects: Expects::Nothing,
            sum: Sum::default(),
            file_sequence: None,
            other_end: None,
        }
    }

    /// A session whose server never says anything: it stands for the connection of a user that has asked for none yet.
    pub(crate) fn nowhere(endpoint: u16) -> io::Result<Session> {
        let (socket, other_end) = Socket::pair()?;
        let logged_in = LoggedIn {
            stream: Stream::Plain(SharedSocket(socket.into())),
            agreed: Capabilities { deprecate_eof: true, cache_metadata: false },
            is_compressed: false,
        };
        Ok(Session { other_end: Some(other_end), ..Session::new(logged_in, endpoint) })
    }

    pub(crate) fn is_to_nowhere(&self) -> bool {
        self.other_end.is_some()
    }

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.socket.fd()
    }

    /// Gets ready to send what is in `command` and to read its answer.
    #[inline]
    pub(crate) fn begin(&mut self, command: &Command) -> Result<(), ExchangeError> {
        self.expects = command.expects;
        self.sum = Sum::default();
        self.file_sequence = None;
        match command.expects {
            Expects::Results(format) => {
                self.scanner.begin(format);
                self.scanner.capture(command.captures);
            }
            Expects::Prepared => {
                let agreed = self.agreed;
                let is_compressed = self.layers.as_ref().is_some_and(|layers| layers.is_compressed());
                let scanner = self
                    .preparing
                    .get_or_insert_with(|| Box::new(new_prepare_scanner(agreed, is_compressed)));
                scanner.capture(command.captures);
                scanner.begin();
            }
            Expects::Page { wish, keeps_connection } => {
                self.is_used_up = !keeps_connection;
                if let Some(page) = &mut self.page {
                    page.begin(wish);
                }
            }
            Expects::Nothing => {}
        }
        self.wrap(true)
    }

    /// Turns what is in `command` into what goes over the wire, where that is something else.
    #[inline]
    fn wrap(&mut self, is_command: bool) -> Result<(), ExchangeError> {
        match &mut self.layers {
            None => Ok(()),
            Some(layers) => Ok(layers.wrap(&self.command, is_command)?),
        }
    }

    /// The bytes that are to be sent now.
    #[inline]
    pub(crate) fn to_send(&self) -> &[u8] {
        match &self.layers {
            None => &self.command,
            Some(layers) => layers.out(),
        }
    }

    /// The content of a local file that the server asked for follows, a [piece](Session::local_file_piece) at a time.
    pub(crate) fn begin_local_file(&mut self) {
        self.file_sequence = Some(self.scanner.sequence_next());
    }

    /// Gets ready to send a piece of the content and, with the last one, to read what follows it.
    pub(crate) fn local_file_piece(&mut self, content: &[u8], is_last: bool) -> Result<(), ExchangeError> {
        let Some(first) = self.file_sequence.take() else { return Ok(()) };
        self.command.clear();
        let next = encode::local_file(&mut self.command, first, content);
        if is_last {
            let answer = encode::local_file_end(&mut self.command, next);
            self.scanner.resume(answer);
        } else {
            self.file_sequence = Some(next);
        }
        self.wrap(false)
    }

    /// Whether another piece of a local file follows what is to be sent now, and no answer.
    #[inline]
    pub(crate) fn sends_more(&self) -> bool {
        self.file_sequence.is_some()
    }

    /// Sends what is to be sent, on a socket that blocks.
    pub(crate) fn send_all(&self) -> io::Result<()> {
        self.socket.send_all(self.to_send())
    }

    /// Takes bytes that were received: the answer, once it is whole.
    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Option<Got>, ExchangeError> {
        if self.layers.is_none() {
            return self.feed_plain(bytes);
        }
        self.feed_layered(bytes)
    }

    fn feed_layered(&mut self, bytes: &[u8]) -> Result<Option<Got>, ExchangeError> {
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let unwrapped = match &mut self.layers {
            Some(layers) => layers.unwrap(bytes, &mut plain),
            None => Ok(()),
        };
        let got = match unwrapped {
            Ok(()) if plain.is_empty() => Ok(None),
            Ok(()) => self.feed_plain(&plain),
            Err(error) => Err(error),
        };
        self.plain = plain;
        got
    }

    #[inline]
    fn feed_plain(&mut self, bytes: &[u8]) -> Result<Option<Got>, ExchangeError> {
        match self.expects {
            Expects::Results(_) => self.feed_results(bytes),
            Expects::Prepared => self.feed_prepared(bytes),
            Expects::Page { .. } => self.feed_page(bytes),
            Expects::Nothing => Err(ProtocolError::AfterEnd.into()),
        }
    }

    #[inline]
    fn feed_results(&mut self, mut bytes: &[u8]) -> Result<Option<Got>, ExchangeError> {
        while !bytes.is_empty() {
            let fed = self.scanner.feed(bytes)?;
            bytes = &bytes[fed.consumed..];
            let Some(Complete { answer, more_results }) = fed.complete else { continue };
            match answer {
                Answer::Ok { affected_rows, .. } => self.sum.affected_rows += affected_rows,
                Answer::Rows { rows, .. } => {
                    self.sum.result_sets += 1;
                    self.sum.rows += rows;
                }
                Answer::Err { code, sqlstate } => self.sum.failed = Some(ErrorCode { errno: code, sqlstate }),
                Answer::LocalInfile => return Ok(Some(Got::LocalFile)),
            }
            if more_results {
                continue;
            }
            if !bytes.is_empty() {
                return Err(ProtocolError::AfterEnd.into());
            }
            self.expects = Expects::Nothing;
            return Ok(Some(match self.sum.failed {
                Some(code) => Got::Error(code),
                None => Got::Fine,
            }));
        }
        Ok(None)
    }

    fn feed_prepared(&mut self, bytes: &[u8]) -> Result<Option<Got>, ExchangeError> {
        let Some(scanner) = &mut self.preparing else { return Err(ProtocolError::AfterEnd.into()) };
        let (byte_count, answer) = scanner.feed(bytes)?;
        let Some(answer) = answer else { return Ok(None) };
        if byte_count < bytes.len() {
            return Err(ProtocolError::AfterEnd.into());
        }
        self.expects = Expects::Nothing;
        Ok(Some(match answer {
            PrepareAnswer::Prepared(prepared) => Got::Prepared(prepared),
            PrepareAnswer::Err { code, sqlstate } => Got::Error(ErrorCode { errno: code, sqlstate }),
        }))
    }

    pub(crate) fn sum(&self) -> Sum {
        self.sum
    }

    /// What a driver is shown of it.
    #[inline]
    pub(crate) fn parts(&mut self) -> Parts<'_> {
        Parts {
            captured: self.scanner.captured(),
            prepared_columns: self.preparing.as_ref().map_or(&[], |scanner| scanner.columns().types()),
            out: &mut self.command,
            handles: &mut self.handles,
        }
    }

    /// The server's words with the last error.
    pub(crate) fn message(&self, of_preparation: bool) -> String {
        match &self.preparing {
            Some(scanner) if of_preparation => scanner.message().into_owned(),
            _ => self.scanner.message().into_owned(),
        }
    }

    /// Sends what is in `command` and waits for the whole answer, on a socket whose waits are bounded or that someone
    /// watches over.
    #[inline]
    pub(crate) fn exchange(&mut self, received: &mut [u8]) -> Result<Option<Got>, ExchangeError> {
        self.send_all()?;
        if self.expects == Expects::Nothing {
            return Ok(None);
        }
        loop {
            let count = match self.socket.receive(received) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return self.end_of_stream().map(Some).ok_or(error.into());
                }
                Err(error) => return Err(error.into()),
            };
            if let Some(got) = self.feed(&received[..count])? {
                return Ok(Some(got));
            }
        }
    }

    /// Runs a statement whose results are of no interest.
    pub(crate) fn run_once(
        &mut self,
        sql: &str,
        address: &str,
        received: &mut [u8],
    ) -> Result<(), LoadError> {
        self.command.clear();
        encode::query(&mut self.command, sql.as_bytes());
        let expects = Expects::Results(RowFormat::Text);
        let refused = |message: String| LoadError::Session { sql: sql.to_string(), message };
        let begun = self.begin(&Command { kind: Kind::One(0), expects, captures: false });
        match begun.and_then(|()| self.exchange(received)) {
            Ok(Some(Got::Error(code))) => Err(refused(format!("error {code}: {}", self.message(false)))),
            Ok(Some(Got::LocalFile)) => Err(refused("it asked for a local file".to_string())),
            Ok(_) => Ok(()),
            Err(ExchangeError::Io(source)) => Err(LoadError::Broken { address: address.to_string(), source }),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// Prepares these statements, one wait for several of them; their ids go to `handles`.
    pub(crate) fn prepare(
        &mut self,
        preparations: &[Preparation],
        address: &str,
        received: &mut [u8],
    ) -> Result<(), LoadError> {
        let broken = |source| LoadError::Broken { address: address.to_string(), source };
        let protocol = |source| LoadError::Protocol { address: address.to_string(), source };
        let is_compressed = self.layers.as_ref().is_some_and(|layers| layers.is_compressed());
        let mut scanner = new_prepare_scanner(self.agreed, is_compressed);
        // A compressed command is a stream of packets of its own.
        let at_once = if is_compressed { 1 } else { PREPARED_AT_ONCE };
        for batch in preparations.chunks(at_once) {
            self.command.clear();
            for preparation in batch {
                encode::prepare(&mut self.command, preparation.sql.as_bytes());
            }
            self.wrap(true).map_err(|error| broken(io::Error::other(error)))?;
            self.socket.send_all(self.to_send()).map_err(broken)?;
            let mut waiting = batch.iter();
            let mut next = waiting.next();
            scanner.begin();
            while next.is_some() {
                let count = self.socket.receive(received).map_err(broken)?;
                let mut plain = Vec::new();
                let mut bytes: &[u8] = &received[..count];
                if let Some(layers) = &mut self.layers {
                    layers.unwrap(bytes, &mut plain).map_err(|error| broken(io::Error::other(error)))?;
                    bytes = &plain;
                }
                while let Some(preparation) = next
                    && !bytes.is_empty()
                {
                    let (byte_count, answer) = scanner.feed(bytes).map_err(protocol)?;
                    bytes = &bytes[byte_count..];
                    match answer {
                        None => {}
                        Some(PrepareAnswer::Prepared(prepared)) => {
                            self.handles.push(Some(prepared.statement_id));
                            next = waiting.next();
                            scanner.begin();
                        }
                        Some(PrepareAnswer::Err { code: NOT_PREPARABLE, .. }) if preparation.or_as_text => {
                            self.handles.push(None);
                            next = waiting.next();
                            scanner.begin();
                        }
                        Some(PrepareAnswer::Err { code: TAKES_NO_PART, .. }) => {
                            return Err(broken(io::Error::other(scanner.message().to_string())));
                        }
                        Some(PrepareAnswer::Err { code, .. }) => {
                            let message = format!("error {code}: {}", scanner.message());
                            let Preparation { kind, sql, .. } = preparation.clone();
                            return Err(LoadError::Prepare { kind, sql, message });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Says goodbye, so that the server does not count the connection as aborted.
    pub(crate) fn quit(mut self) {
        if self.page.is_some() {
            return;
        }
        self.command.clear();
        encode::quit(&mut self.command);
        // Whoever does not take it is gone already.
        if self.wrap(true).is_ok() {
            let _ = self.socket.try_send(self.to_send());
        }
    }
}

fn new_prepare_scanner(agreed: Capabilities, is_compressed: bool) -> PrepareScanner {
    let mut scanner = PrepareScanner::new(agreed);
    if is_compressed {
        scanner.skip_sequence_check();
    }
    scanner
}

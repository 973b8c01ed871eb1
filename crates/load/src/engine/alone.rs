//! Carries out one driver on the caller's thread, for statements that are no part of a load. Nothing of it is measured.

use whyso_clock::monotonic_ns;
use whyso_wire::ResultRows;

use crate::connection::client_error::as_client_error;
use crate::connection::connect::{self, RECEIVE_BYTES};
use crate::connection::endpoints::Endpoints;
use crate::connection::exchange_error::ExchangeError;
use crate::connection::login::Wishes;
use crate::connection::session::{Got, Parts, Session};
use crate::driver::{Driver, Expects, Handles, Next, Nothing, Turn};
use crate::engine::command_result::CommandResult;
use crate::engine::user::answers::SERVER_LOST;
use crate::error::{ExecutionError, LoadError};
use crate::spec::LoadSpec;
use crate::target::Limits;

/// A connection to the first endpoint of a load, opened when something is first sent; every wait is bounded by the
/// limits of
/// the load.
pub struct Alone {
    endpoints: Endpoints,
    limits: Limits,
    wishes: Wishes,
    session: Option<Session>,
    received: Vec<u8>,
}

impl Alone {
    /// Prepares to connect; nothing is opened yet.
    pub fn new(spec: &LoadSpec) -> Alone {
        Alone {
            endpoints: Endpoints::new(spec),
            limits: spec.limits,
            wishes: Wishes { compression: spec.compression, local_files: false },
            session: None,
            received: Vec::new(),
        }
    }

    /// Carries out what the driver wants until its transaction ends, or it leaves.
    ///
    /// # Errors
    /// No connection is available, the server breaks the protocol, or the driver gives up.
    pub fn carry_out(&mut self, driver: &mut dyn Driver) -> Result<(), ExecutionError> {
        let (mut heard, mut message) = (CommandResult::Nothing, String::new());
        loop {
            let mut unsent = Vec::new();
            let (nothing, mut handles) = (ResultRows::default(), Handles::default());
            let parts = match &mut self.session {
                Some(session) => session.parts(),
                None => Parts {
                    captured: &nothing,
                    prepared_columns: &[],
                    out: &mut unsent,
                    handles: &mut handles,
                },
            };
            let reply = heard.as_reply(&message, parts.captured, parts.prepared_columns);
            let mut turn = Turn {
                reply,
                now_ns: monotonic_ns(),
                out: parts.out,
                handles: parts.handles,
                may_reconnect: false,
            };
            let next = driver.next(&mut turn);
            heard = CommandResult::Nothing;
            match next {
                Next::Send(command) => {
                    if self.session.is_none() {
                        let mut session = self.open().map_err(connect::explained)?;
                        session.command = unsent;
                        self.session = Some(session);
                    }
                    let Some(session) = &mut self.session else { continue };
                    let answer = session.begin(&command).and_then(|()| {
                        self.received.resize(RECEIVE_BYTES, 0);
                        session.exchange(&mut self.received)
                    });
                    let is_of_preparation = command.expects == Expects::Prepared;
                    session.command.clear();
                    heard = match answer {
                        Ok(None | Some(Got::Page)) => CommandResult::Nothing,
                        Ok(Some(Got::Fine)) => CommandResult::Fine(session.sum()),
                        Ok(Some(Got::Prepared(prepared))) => CommandResult::Prepared(prepared),
                        Ok(Some(Got::Error(code))) => {
                            message = session.message(is_of_preparation);
                            CommandResult::Error(code)
                        }
                        Ok(Some(Got::LocalFile)) => {
                            return Err(ExecutionError::LocalFile { name: session.message(false) });
                        }
                        Err(
                            error @ (ExchangeError::Io(_) | ExchangeError::Http(_) | ExchangeError::TimedOut),
                        ) => {
                            self.session = None;
                            message = error.to_string();
                            CommandResult::Lost(SERVER_LOST)
                        }
                        Err(ExchangeError::Protocol(error)) => return Err(ExecutionError::Protocol(error)),
                        Err(ExchangeError::LocalInfile(name)) => {
                            return Err(ExecutionError::LocalFile { name });
                        }
                    };
                }
                Next::Reconnect => {
                    self.quit();
                    match self.open() {
                        Ok(session) => {
                            self.session = Some(session);
                            heard = CommandResult::Connected { lost: None };
                        }
                        Err(error) => {
                            let (code, text) = as_client_error(&error);
                            (heard, message) = (CommandResult::Lost(code), text);
                        }
                    }
                }
                Next::Pause(pause) => std::thread::sleep(pause),
                Next::Again(_) => {}
                Next::Done { .. } | Next::Leave => return Ok(()),
                Next::Fail { message, .. } => return Err(ExecutionError::Driver { message }),
            }
        }
    }

    fn open(&self) -> Result<Session, LoadError> {
        let session = connect::open(&self.endpoints, 0, &Nothing, self.wishes, &self.limits)?;
        let bound = session.socket().bound_waits(Some(self.limits.stall));
        bound.map_err(|source| LoadError::WaitBound { source })?;
        Ok(session)
    }

    fn quit(&mut self) {
        if let Some(session) = self.session.take() {
            session.quit();
        }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.quit();
    }
}

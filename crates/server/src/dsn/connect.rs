//! Logging in, within a bounded time.

use std::time::Duration;

use mysql_async::{Conn, Opts};

use super::Dsn;
use crate::error::{Error, Result, server_code};

/// Asks the user for a password; the text says for whom.
pub type Prompt<'a> = &'a mut (dyn FnMut(&str) -> std::io::Result<String> + Send);

const ACCESS_DENIED: u16 = 1045;
const UNKNOWN_SCHEMA: u16 = 1049;

impl Dsn {
    /// Connects with the schema as the default one.
    ///
    /// # Errors
    ///
    /// [`Error::Unreachable`], [`Error::AccessDenied`], or [`Error::Refused`] where the schema does
    /// not exist.
    pub async fn connect(&self) -> Result<Conn> {
        self.connect_with(self.opts()).await
    }

    /// Connects without a default schema, as one must before the schema exists.
    pub async fn connect_without_schema(&self) -> Result<Conn> {
        self.connect_with(self.builder().into()).await
    }

    /// Connects without a default schema; where the server wants a password and none is known, asks
    /// for it once and keeps it in `self`.
    pub async fn log_in(&mut self, prompt: Prompt<'_>) -> Result<Conn> {
        match self.connect_without_schema().await {
            Err(Error::AccessDenied { password_given: false, .. }) => {}
            other => return other,
        }
        let question = format!("password of '{}' at {}", self.user, self.endpoint());
        let password = prompt(&question)
            .map_err(|error| Error::Dsn(format!("cannot ask for the {question}: {error}")))?;
        self.password = Some(password);
        self.connect_without_schema().await
    }

    async fn connect_with(&self, opts: Opts) -> Result<Conn> {
        match tokio::time::timeout(self.connect_timeout, whyso_connect::connect(opts)).await {
            Ok(result) => result.map_err(|error| self.explain(error)),
            Err(_) => Err(self.unreachable(format!(
                "no answer within {}; is the address right, and does a firewall let us through",
                seconds(self.connect_timeout)
            ))),
        }
    }

    fn unreachable(&self, why: String) -> Error {
        Error::Unreachable { endpoint: self.endpoint(), why }
    }

    fn explain(&self, error: mysql_async::Error) -> Error {
        match server_code(&error) {
            Some(ACCESS_DENIED | 1698 | 1044 | 1130) => {
                let server_says = match &error {
                    mysql_async::Error::Server(server) => server.message.clone(),
                    other => other.to_string(),
                };
                return Error::AccessDenied {
                    endpoint: self.endpoint(),
                    user: self.user.clone(),
                    password_given: self.password.is_some() || server_code(&error) != Some(ACCESS_DENIED),
                    server_says,
                };
            }
            Some(UNKNOWN_SCHEMA) => {
                let doing = format!("use the schema '{}'", self.schema);
                return Error::Refused { doing, source: error };
            }
            _ => {}
        }
        match &error {
            mysql_async::Error::Server(server) if server.code == whyso_connect::MALFORMED => {
                self.unreachable(server.message.clone())
            }
            mysql_async::Error::Io(mysql_async::IoError::Io(io)) => match io.kind() {
                std::io::ErrorKind::ConnectionRefused => self.unreachable(
                    "nothing listens there; is the server running, and is the address right".to_string(),
                ),
                std::io::ErrorKind::NotFound => {
                    self.unreachable("there is no such socket; is the server running".to_string())
                }
                std::io::ErrorKind::UnexpectedEof => self
                    .unreachable("it closed the connection; is this a MySQL-compatible server".to_string()),
                _ => self.unreachable(io.to_string()),
            },
            other => self.unreachable(other.to_string()),
        }
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs())
}

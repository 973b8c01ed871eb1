//! Logging in, within a bounded time.

use std::time::Duration;

use mysql_async::{Conn, Opts};
use tokio::net::TcpStream;

use super::relay::Relay;
use super::{Dsn, Tls};
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
        match tokio::time::timeout(self.connect_timeout, self.connect_guarded(opts)).await {
            Ok(result) => result.map_err(|error| self.explain(error)),
            Err(_) => Err(self.unreachable(format!(
                "no answer within {}; is the address right, and does a firewall let us through",
                seconds(self.connect_timeout)
            ))),
        }
    }

    /// Over plain TCP a server may ask for the password under an RSA key that it sends itself. The
    /// driver would comply, so there it talks through a [`Relay`], which does not let that pass.
    async fn connect_guarded(&self, opts: Opts) -> mysql_async::Result<Conn> {
        let has_password = self.password.as_deref().is_some_and(|password| !password.is_empty());
        let in_the_open = self.socket.is_none() && self.tls == Tls::Disabled;
        if !(has_password && in_the_open) {
            return Conn::new(opts).await;
        }
        let server = TcpStream::connect((self.host.as_str(), self.port)).await?;
        server.set_nodelay(true)?;
        let relay = Relay::start(server)?;
        let through_relay = mysql_async::OptsBuilder::from_opts(opts).socket(Some(relay.socket()));
        let connected = Conn::new(through_relay).await;
        match relay.refused_because() {
            Some(why) if connected.is_err() => Err(std::io::Error::other(why).into()),
            // What the driver tells of its own socket is of no use to anybody.
            _ => connected.map_err(|error| self.without_socket(error, &relay.socket())),
        }
    }

    /// An error without the name of the relay's socket, which its reader never gave.
    fn without_socket(&self, error: mysql_async::Error, socket: &str) -> mysql_async::Error {
        match &error {
            mysql_async::Error::Io(mysql_async::IoError::Io(io)) if io.to_string().contains(socket) => {
                std::io::Error::new(io.kind(), io.to_string().replace(socket, &self.endpoint())).into()
            }
            _ => error,
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

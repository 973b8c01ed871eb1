//! Where a server is and how one logs in there.

mod connect;
mod option_file;
mod parse;
mod parse_error;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder, SslOpts};

pub use connect::Prompt;
pub use option_file::ClientOptions;
pub(crate) use option_file::unquote;
pub use parse::mask;

/// How long a connection may take to be made where the DSN does not say.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The schema that whyso works in where the DSN names none.
pub const DEFAULT_SCHEMA: &str = "whyso";

/// What protects the connection. A Unix socket needs none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// Plain text; the default, as most benchmarks run in a network of their own.
    #[default]
    Disabled,
    /// `tls=verify`: the certificate must be made out to the host. It must be signed by `ca` (`ssl-ca=FILE`, PEM), or
    /// by one of the public authorities where there is no `ca`.
    Verify { ca: Option<PathBuf> },
    /// `tls=insecure`: encrypted, but with any server that answers. The report shows it.
    Insecure,
}

/// A data source name, taken apart: `mysql://user:password@host:port/schema?socket=…&tls=…`.
///
/// Parameters: `socket` (path) or `container` (name, id or image of one on this machine). Also `tls` (`disabled`, `verify`, `insecure`), `ssl-ca` (path, implies
/// `tls=verify`), `connect_timeout` (whole seconds, 1 to 3600).
#[derive(Clone, PartialEq, Eq)]
pub struct Dsn {
    pub user: String,
    /// `None` where it is not known (yet).
    pub password: Option<String>,
    pub host: String,
    pub port: u16,
    /// Where it is set, host and port play no part.
    pub socket: Option<PathBuf>,
    /// Never empty: [`DEFAULT_SCHEMA`] where the DSN names none.
    pub schema: String,
    /// Whether the DSN named the schema.
    pub schema_given: bool,
    pub tls: Tls,
    pub connect_timeout: Duration,
}

impl Dsn {
    /// The DSN of a server that listens on a Unix socket.
    pub fn on_socket(socket: impl Into<PathBuf>, user: &str, schema: &str) -> Dsn {
        Dsn {
            user: user.to_string(),
            password: None,
            host: "localhost".to_string(),
            port: 3306,
            socket: Some(socket.into()),
            schema: schema.to_string(),
            schema_given: true,
            tls: Tls::Disabled,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
        }
    }

    /// Parses a DSN and completes it from `MYSQL_PWD` and `~/.my.cnf`.
    ///
    /// # Errors
    ///
    /// [`Error::Dsn`](crate::Error::Dsn) where the DSN or `~/.my.cnf` can't be understood.
    pub fn resolve(text: &str) -> crate::Result<Dsn> {
        let environment = option_file::Environment::of_this_process()?;
        parse::resolve(text, &environment)
    }

    /// The process whose socket it is, where the path names one: that of a server in a container.
    pub fn server_pid(&self) -> Option<u32> {
        let rest = self.socket.as_ref()?.strip_prefix("/proc").ok()?;
        let mut parts = rest.components().map(|part| part.as_os_str().to_str());
        let pid = parts.next()??.parse().ok()?;
        (parts.next()?? == "root").then_some(pid)
    }

    /// Host and port or socket, without user and schema: "db1:3306", "/run/mysqld/mysqld.sock".
    pub fn endpoint(&self) -> String {
        match &self.socket {
            Some(socket) => socket.display().to_string(),
            None if self.host.contains(':') => format!("[{}]:{}", self.host, self.port),
            None => format!("{}:{}", self.host, self.port),
        }
    }

    /// The whole DSN, the password shown as `***`.
    pub fn display_masked(&self) -> String {
        let password = if self.password.is_some() { ":***" } else { "" };
        let user = &self.user;
        let schema = &self.schema;
        let mut shown = match &self.socket {
            Some(socket) => {
                format!("mysql://{user}{password}@localhost/{schema}?socket={}", socket.display())
            }
            None => format!("mysql://{user}{password}@{}/{schema}", self.endpoint()),
        };
        let tls = match &self.tls {
            Tls::Disabled => return shown,
            Tls::Verify { ca: None } => "tls=verify".to_string(),
            Tls::Verify { ca: Some(ca) } => format!("tls=verify&ssl-ca={}", ca.display()),
            Tls::Insecure => "tls=insecure".to_string(),
        };
        shown.push(if self.socket.is_some() { '&' } else { '?' });
        shown.push_str(&tls);
        shown
    }

    /// Options of the driver, with the schema as the default one.
    ///
    /// For `whyso_connect::connect`. Prefer [`Dsn::connect`], which also bounds the time.
    pub fn opts(&self) -> Opts {
        self.builder().db_name(Some(&self.schema)).into()
    }

    fn builder(&self) -> OptsBuilder {
        let builder = OptsBuilder::default()
            .user(Some(&self.user))
            .pass(self.password.as_deref())
            .ip_or_hostname(&self.host)
            .tcp_port(self.port)
            .socket(self.socket.as_ref().map(|path| path.to_string_lossy().into_owned()))
            .prefer_socket(false)
            .enable_cleartext_plugin(false)
            .tcp_nodelay(true);
        let ssl = match &self.tls {
            Tls::Disabled => None,
            _ if self.socket.is_some() => None,
            Tls::Verify { ca: None } => Some(SslOpts::default()),
            Tls::Verify { ca: Some(ca) } => Some(
                SslOpts::default().with_root_certs(vec![ca.clone().into()]).with_disable_built_in_roots(true),
            ),
            Tls::Insecure => Some(SslOpts::default().with_danger_accept_invalid_certs(true)),
        };
        builder.ssl_opts(ssl)
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Dsn({})", self.display_masked())
    }
}

//! Where the load goes, and the bounds on every wait.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The server under test, the account, and the schema that holds the tables.
#[derive(Clone)]
pub struct Target {
    pub address: Address,
    pub user: String,
    /// Empty where there is none. Never printed.
    pub password: String,
    pub schema: String,
    pub tls: Tls,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    Tcp { host: String, port: u16 },
}

impl Address {
    /// Whether it certainly is a server on this machine: a Unix socket, or the loopback.
    pub(crate) fn is_this_machine(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        }
    }
}

/// How the connection is protected. A Unix socket needs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    Off,
    /// The server's certificate must be valid for `host`, and signed by the authorities in the PEM file `ca`. Where
    /// `ca` is `None`, the machine must trust them (`/etc/ssl/certs/ca-certificates.crt`).
    Verify {
        ca: Option<PathBuf>,
        host: String,
    },
    /// Encrypted, but to a server that nobody verified.
    Insecure,
}

/// Bounds on every wait of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest wait for a connection to be opened and its statements prepared.
    pub connect: Duration,
    /// Longest time that a connection may wait for one answer before the level is ended.
    pub stall: Duration,
    /// Longest time that statements in flight get when a level is stopped; then the sockets are shut down.
    pub stop: Duration,
    /// Where not zero, a lost connection is opened again for up to this long, and counted as an error, instead of
    /// ending the level. For levels across a restart of the server.
    pub reconnect: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(10),
            stall: Duration::from_secs(60),
            stop: Duration::from_secs(5),
            reconnect: Duration::ZERO,
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = if self.password.is_empty() { "none" } else { "…" };
        f.debug_struct("Target")
            .field("address", &self.address)
            .field("user", &self.user)
            .field("password", &format_args!("{password}"))
            .field("schema", &self.schema)
            .field("tls", &self.tls)
            .finish()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_target_does_not_show_its_password() {
        let target = Target {
            address: Address::Tcp { host: "db1".to_string(), port: 3306 },
            user: "bench".to_string(),
            password: "hunter2".to_string(),
            schema: "whyso".to_string(),
            tls: Tls::Off,
        };
        let printed = format!("{target:?}");
        assert!(printed.contains("bench") && !printed.contains("hunter2"), "{printed}");
    }
}

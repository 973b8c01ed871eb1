//! Connections on which whyso itself asks a server: a server that answers with anything at all costs one sentence.
//!
//! [`connect`] makes one, and nobody calls `Conn::new` anywhere else. Work on a connection runs in [`caught`]. A relay stands
//! between the driver and a server that nobody verified: it checks each frame before the driver reads it.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use mysql_async::prelude::Queryable;
//! let opts = mysql_async::Opts::from_url("mysql://root@db1:3306/")?;
//! let mut conn = whyso_connect::connect(opts).await?;
//! let one: Option<u8> = whyso_connect::caught(conn.query_first("SELECT 1")).await??;
//! # Ok(())
//! # }
//! ```

mod frames;
mod panics;
mod relay;
mod tls;

use mysql_async::{Conn, Error, Opts, OptsBuilder, SslOpts};

pub use panics::{DriverPanic, caught};
use relay::{Protection, Relay};

/// Error number of an answer that is no MySQL protocol, as clients number it (CR_MALFORMED_PACKET).
pub const MALFORMED: u16 = 2027;

/// Connects. The driver can neither harm this process nor send the password over an unprotected connection.
///
/// # Errors
/// The driver's, and [`Error::Io`] where the server's answers can't be read.
pub async fn connect(opts: Opts) -> Result<Conn, Error> {
    caught(connect_guarded(opts)).await.unwrap_or_else(|panic| Err(std::io::Error::other(panic).into()))
}

/// A server at the other end of a Unix socket, or one whose certificate was verified, is asked directly.
#[expect(clippy::disallowed_methods, reason = "only this function connects by the driver")]
async fn connect_guarded(opts: Opts) -> Result<Conn, Error> {
    let protection = match opts.ssl_opts() {
        None => Protection::None,
        Some(tls) if tls.accept_invalid_certs() => Protection::Unverified,
        Some(_) => return Conn::new(opts).await,
    };
    if opts.socket().is_some() {
        return Conn::new(opts).await;
    }
    let endpoint = format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port());
    let relay = Relay::start(opts.ip_or_hostname(), opts.tcp_port(), protection).await?;
    let through_relay = OptsBuilder::from_opts(opts).socket(Some(relay.socket())).ssl_opts(None::<SslOpts>);
    let connected = Conn::new(through_relay).await;
    match relay.refused_because() {
        Some(why) if connected.is_err() => Err(std::io::Error::other(why).into()),
        _ => connected.map_err(|error| without_socket(error, &relay.socket(), &endpoint)),
    }
}

/// An error without the name of the relay's socket, which its reader never gave.
fn without_socket(error: Error, socket: &str, endpoint: &str) -> Error {
    match &error {
        Error::Io(mysql_async::IoError::Io(io)) if io.to_string().contains(socket) => {
            std::io::Error::new(io.kind(), io.to_string().replace(socket, endpoint)).into()
        }
        _ => error,
    }
}

/// Closes a connection, so that the server notices it.
pub async fn disconnect(conn: Conn) {
    let _ = caught(conn.disconnect()).await;
    // On a runtime with one thread the relay only gets on while this task waits.
    for _ in 0..GOODBYE_TURNS {
        tokio::task::yield_now().await;
    }
}

const GOODBYE_TURNS: u32 = 8;

/// Returns the server of a connection: its host, or its socket.
pub fn server_name(conn: &Conn) -> String {
    let opts = conn.opts();
    match opts.socket().filter(|socket| !Relay::is_socket(socket)) {
        Some(socket) => socket.to_string(),
        None => opts.ip_or_hostname().to_string(),
    }
}

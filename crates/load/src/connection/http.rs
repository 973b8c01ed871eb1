//! Connections over HTTP: a socket, and a TLS session where the address asks for it.

use std::io;
use std::time::Instant;

use crate::connection::endpoints::Endpoints;
use crate::connection::session::Session;
use crate::connection::stream::{SharedSocket, Socket, Stream};
use crate::connection::tls;
use crate::error::LoadError;
use crate::target::{Address, Limits};

/// Connects to an endpoint, within `limits.connect` for the connection and for the TLS handshake.
pub(crate) fn open(
    endpoints: &Endpoints,
    endpoint: u16,
    body_bytes_max: u64,
    limits: &Limits,
) -> Result<Session, LoadError> {
    let target = endpoints.target(endpoint);
    let address = target.address.to_string();
    let connected = match &target.address {
        Address::Unix(path) => Socket::connect_unix(path, limits.connect),
        Address::Tcp { host, port } => Socket::connect_tcp(host, *port, limits.connect),
    };
    let socket = connected.map_err(|source| LoadError::Connect { address: address.clone(), source })?;
    let shared = SharedSocket(socket.into());
    let stream = match endpoints.tls_config(endpoint)? {
        None => Stream::Plain(shared),
        Some(config) => {
            let session = tls::session_with(config, &target.tls, &address)?;
            let mut stream = Box::new(rustls::StreamOwned::new(session, shared));
            let failed = |why: String| LoadError::Tls { address: address.clone(), why };
            let deadline = Instant::now() + limits.connect;
            while stream.conn.is_handshaking() {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(failed("the handshake was not complete in time".to_string()));
                }
                stream.sock.0.bound_waits(Some(left)).map_err(|source| LoadError::WaitBound { source })?;
                shake_hands(&mut stream).map_err(|error| failed(error.to_string()))?;
            }
            Stream::Tls(stream)
        }
    };
    stream.socket().bound_waits(None).map_err(|source| LoadError::WaitBound { source })?;
    Ok(Session::over_http(stream, endpoint, body_bytes_max))
}

/// One step of a handshake: a write, or a read.
fn shake_hands(stream: &mut rustls::StreamOwned<rustls::ClientConnection, SharedSocket>) -> io::Result<()> {
    if stream.conn.wants_write() {
        stream.conn.write_tls(&mut stream.sock)?;
        return Ok(());
    }
    stream.conn.read_tls(&mut stream.sock)?;
    if let Err(error) = stream.conn.process_new_packets() {
        // The server is sent the reason; the error is the one that counts.
        let _ = stream.conn.write_tls(&mut stream.sock);
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    while stream.conn.wants_write() {
        stream.conn.write_tls(&mut stream.sock)?;
    }
    Ok(())
}

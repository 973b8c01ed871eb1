//! Stands between the driver and a server that nothing vouches for: over plain TCP, or TLS without a verified certificate, anybody may answer.
//!
//! With `caching_sha2_password` a server that does not have the password cached asks for it in full. Over plain TCP a client then fetches an
//! RSA key from that same server, which a man in the middle replaces by his own. The driver has no switch against it.
//!
//! Over a Unix socket, however, the driver answers at once with the password, unencrypted. That is fine as long as the socket is ours. So
//! the driver connects to a socket in a folder that only we can open. This relay passes everything on to the server, and hangs up instead
//! of passing on a password. Where TLS is asked for, the relay speaks it, so that it sees the login.
//!
//! After the login the relay checks each frame that the server sends: some lengths would end the process; see [`Frames`].

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::MALFORMED;
use crate::frames::{Frames, Harmful};
use crate::tls;

/// The server's request for the whole password: `AuthMoreData` with status 4.
const FULL_AUTHENTICATION: [u8; 2] = [0x01, 0x04];
/// A client would have to clear this many packets to log in.
const MAX_LOGIN_PACKETS: u32 = 16;
/// Login packets are small; a longer one is no login.
const MAX_LOGIN_PACKET_BYTES: usize = 1 << 16;
const OK: u8 = 0x00;
const ERROR: u8 = 0xff;
const PIECE_BYTES: usize = 1 << 16;

/// Bytes before the capabilities in a greeting: header, version of the protocol.
const GREETING_START: usize = 5;
/// Bytes from the end of the server's version to the capabilities: connection, scramble, filler.
const BEFORE_CAPABILITIES: usize = 13;
/// Bytes between the lower and the upper half of the capabilities: character set, status.
const BETWEEN_CAPABILITIES: usize = 3;
/// CLIENT_DEPRECATE_EOF in the second byte of the upper half: without it a packet's length shows the end of rows.
const DEPRECATE_EOF: u8 = 0x01;
/// MariaDB's own capabilities stand behind the upper half, the length of the scramble and six reserved bytes. They
/// apply to results without EOF packets.
const BEFORE_MARIADB_CAPABILITIES: usize = 2 + 1 + 6;
const MARIADB_CAPABILITIES_BYTES: usize = 4;

const HEADER_BYTES: usize = 4;
/// The part of a login that asks for TLS: capabilities, size of packets, character set, reserved bytes.
const REQUEST_BYTES: usize = 32;
const LOGIN_START: usize = HEADER_BYTES + REQUEST_BYTES;
/// In the second byte of the capabilities.
const CLIENT_SSL: u8 = 0x08;

const FOLDER_PREFIX: &str = "whyso-relay";

/// Why a relay hung up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it offers no TLS: leave tls=insecure away, or configure its certificate")]
    NoTls,
    #[error("its TLS can't be spoken: it needs TLS 1.2 or later")]
    TlsFailed,
    #[error(
        "it asks for the password, and tls=insecure does not check who it is: use tls=verify (with ssl-ca=FILE), or \
         connect through a Unix socket"
    )]
    UnverifiedServer,
    #[error(
        "it asks for the password over an unprotected connection: add tls=verify (with ssl-ca=FILE) \
         to the DSN, or connect through a Unix socket"
    )]
    UnprotectedConnection,
    #[error(
        "it sent an answer that is no MySQL protocol: check that the address is a MySQL-compatible server's"
    )]
    NoProtocol,
}

/// What the relay does for the connection to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    None,
    /// TLS with a server that nobody verified.
    Unverified,
}

pub(crate) struct Relay {
    folder: PathBuf,
    refused: Arc<OnceLock<Refusal>>,
}

impl Relay {
    /// Connects to the server and waits, in a task of its own, for one client at [`Relay::socket`].
    pub(crate) async fn start(host: &str, port: u16, protection: Protection) -> std::io::Result<Relay> {
        let server = TcpStream::connect((host, port)).await?;
        server.set_nodelay(true)?;
        let parent = std::env::temp_dir();
        let here = |error: std::io::Error| {
            let why = format!(
                "whyso can't make a socket of its own in {} ({error}): set TMPDIR to a folder with a short path that you may write to",
                parent.display()
            );
            std::io::Error::other(why)
        };
        let folder = parent.join(unique_name());
        std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(here)?;
        let relay = Relay { folder, refused: Arc::default() };
        let listener = UnixListener::bind(relay.folder.join("s")).map_err(here)?;
        let refused = Arc::clone(&relay.refused);
        tokio::spawn(async move {
            let Ok((client, _)) = listener.accept().await else { return };
            drop(listener);
            // either end hanging up ends the relay; the driver reports it
            let _ = carry(client, server, protection, &refused).await;
        });
        Ok(relay)
    }

    pub(crate) fn socket(&self) -> String {
        self.folder.join("s").to_string_lossy().into_owned()
    }

    /// Whether a socket is a relay's.
    pub(crate) fn is_socket(path: &str) -> bool {
        std::env::temp_dir().join(FOLDER_PREFIX).to_str().is_some_and(|begin| path.starts_with(begin))
    }

    /// Returns why the relay hung up, if it did.
    pub(crate) fn refused_because(&self) -> Option<Refusal> {
        self.refused.get().copied()
    }
}

impl Drop for Relay {
    /// The connection outlives its name.
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A name that no other process and no other call uses.
fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanoseconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    format!("{FOLDER_PREFIX}-{}-{nanoseconds:x}-{count}", std::process::id())
}

async fn carry(
    mut client: UnixStream,
    mut server: TcpStream,
    protection: Protection,
    refused: &OnceLock<Refusal>,
) -> std::io::Result<()> {
    let mut greeting = read_login_packet(&mut server, refused).await?;
    let is_error = greeting.get(4) == Some(&ERROR);
    let offers_tls = if is_error { None } else { simplify(&mut greeting) };
    let why = match (offers_tls, protection) {
        (None, _) if !is_error => Some(Refusal::NoProtocol),
        (Some(false), Protection::Unverified) => Some(Refusal::NoTls),
        _ => None,
    };
    if let Some(why) = why {
        let _ = refused.set(why);
        return Ok(());
    }
    client.write_all(&greeting).await?;
    let Some(mut login) = read_packet(&mut client).await?.filter(|login| login.len() >= LOGIN_START) else {
        return Ok(());
    };
    match protection {
        Protection::None => talk(client, server, login, 0, refused).await,
        Protection::Unverified => {
            // What asks for TLS is the beginning of the login. Every packet after it has the next number.
            login[HEADER_BYTES + 1] |= CLIENT_SSL;
            let mut request = (REQUEST_BYTES as u32).to_le_bytes();
            request[3] = login[3];
            server.write_all(&request).await?;
            server.write_all(&login[HEADER_BYTES..LOGIN_START]).await?;
            let server = tls::agree(server).await.inspect_err(|_| {
                let _ = refused.set(Refusal::TlsFailed);
            })?;
            talk(client, server, login, 1, refused).await
        }
    }
}

/// Passes the login on from the client's first packet, and then everything else. `shift` is how many more packets the server got.
async fn talk(
    mut client: UnixStream,
    mut server: impl AsyncRead + AsyncWrite + Unpin,
    login: Vec<u8>,
    shift: u8,
    refused: &OnceLock<Refusal>,
) -> std::io::Result<()> {
    let refusal = if shift == 0 { Refusal::UnprotectedConnection } else { Refusal::UnverifiedServer };
    if log_in(&mut client, &mut server, login, shift, (refused, refusal)).await? {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = tokio::io::split(server);
        tokio::select! {
            done = pass_commands(&mut from_client, &mut to_server) => done?,
            done = pass_on(&mut from_server, &mut to_client) => done?,
        }
    }
    Ok(())
}

async fn pass_commands(
    client: &mut (impl AsyncRead + Unpin),
    server: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    tokio::io::copy(client, server).await?;
    server.shutdown().await
}

/// Passes packets of client and server in turn. Returns true when the server accepts the login, and false when it refuses.
async fn log_in(
    client: &mut UnixStream,
    server: &mut (impl AsyncRead + AsyncWrite + Unpin),
    login: Vec<u8>,
    shift: u8,
    (refused, refusal): (&OnceLock<Refusal>, Refusal),
) -> std::io::Result<bool> {
    let mut from_client = login;
    for _ in 0..MAX_LOGIN_PACKETS {
        from_client[3] = from_client[3].wrapping_add(shift);
        server.write_all(&from_client).await?;
        server.flush().await?;
        // after "fast authentication succeeded" (1, 3) the server continues by itself
        loop {
            let mut from_server = read_login_packet(server, refused).await?;
            from_server[3] = from_server[3].wrapping_sub(shift);
            let payload = &from_server[HEADER_BYTES..];
            if payload.starts_with(&FULL_AUTHENTICATION) {
                let _ = refused.set(refusal);
                return Ok(false);
            }
            client.write_all(&from_server).await?;
            match payload.first() {
                Some(&OK) => return Ok(true),
                Some(&ERROR) => return Ok(false),
                _ if payload != [0x01, 0x03] => break,
                _ => {}
            }
        }
        let Some(next) = read_packet(client).await? else { return Ok(false) };
        from_client = next;
    }
    Ok(false)
}

/// Takes from a greeting what makes answers harder to follow, and TLS, which is the relay's. Returns whether the server offers TLS; `None`: it
/// is no greeting.
fn simplify(greeting: &mut [u8]) -> Option<bool> {
    let version = greeting.get(GREETING_START..).unwrap_or_default();
    let version_bytes = version.iter().position(|byte| *byte == 0)?;
    let lower = GREETING_START + version_bytes + 1 + BEFORE_CAPABILITIES;
    let upper = lower + 2 + BETWEEN_CAPABILITIES;
    // Servers before MySQL 4.1 end here.
    if let Some(byte) = greeting.get_mut(upper + 1) {
        *byte &= !DEPRECATE_EOF;
    }
    let mariadb = upper + BEFORE_MARIADB_CAPABILITIES;
    if let Some(bytes) = greeting.get_mut(mariadb..mariadb + MARIADB_CAPABILITIES_BYTES) {
        bytes.fill(0);
    }
    let byte = greeting.get_mut(lower + 1)?;
    let offers_tls = *byte & CLIENT_SSL != 0;
    *byte &= !CLIENT_SSL;
    Some(offers_tls)
}

/// Passes on what the server sends, up to the first frame that must not reach the driver. That frame becomes an error packet.
async fn pass_on(
    server: &mut (impl AsyncRead + Unpin),
    client: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    let mut frames = Frames::default();
    let mut bytes = Vec::with_capacity(PIECE_BYTES);
    loop {
        let held = bytes.len();
        if server.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        match frames.check(&bytes[held..]) {
            Ok(()) => {
                let whole = bytes.len() - frames.undecided();
                client.write_all(&bytes[..whole]).await?;
                bytes.drain(..whole);
            }
            Err(harmful) => {
                // A frame that began earlier is what was held.
                let whole = if harmful.at > 0 { held + harmful.at } else { 0 };
                client.write_all(&bytes[..whole]).await?;
                return client.write_all(&error_packet(harmful)).await;
            }
        }
    }
}

fn error_packet(harmful: Harmful) -> Vec<u8> {
    let mut body = vec![ERROR];
    body.extend_from_slice(&MALFORMED.to_le_bytes());
    body.extend_from_slice(b"#HY000");
    body.extend_from_slice(format!("{} ({})", Refusal::NoProtocol, harmful.what).as_bytes());
    let mut packet = (body.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(harmful.sequence);
    packet.extend(body);
    packet
}

async fn read_login_packet(
    server: &mut (impl AsyncRead + Unpin),
    refused: &OnceLock<Refusal>,
) -> std::io::Result<Vec<u8>> {
    match read_packet(server).await? {
        Some(packet) if packet.len() > 4 => Ok(packet),
        _ => {
            let _ = refused.set(Refusal::NoProtocol);
            Err(std::io::Error::other(Refusal::NoProtocol))
        }
    }
}

/// One packet with its header: three bytes of length, one of sequence. `None`: it is too long for a login.
async fn read_packet(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<Vec<u8>>> {
    let mut packet = vec![0; 4];
    stream.read_exact(&mut packet).await?;
    let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]) as usize;
    if length > MAX_LOGIN_PACKET_BYTES {
        return Ok(None);
    }
    packet.resize(4 + length, 0);
    stream.read_exact(&mut packet[4..]).await?;
    Ok(Some(packet))
}

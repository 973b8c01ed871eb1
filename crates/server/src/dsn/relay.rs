//! Keeps the password from a server that asks for it under a key that nobody vouches for.
//!
//! With `caching_sha2_password` a server that does not have the password cached asks for it in full.
//! Over plain TCP a client then fetches an RSA key from that same server, which a man in the middle
//! replaces by his own. The driver has no switch against it. Over a Unix socket, however, it answers
//! at once with the password, unencrypted, which is fine as long as the socket is ours: the driver
//! connects to a socket in a folder that only we can open, this relay passes everything on to the
//! server, and hangs up instead of passing on a password.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::paths::unique_name;

/// The server's request for the whole password: `AuthMoreData` with status 4.
const FULL_AUTHENTICATION: [u8; 2] = [0x01, 0x04];
/// A client would have to clear this many packets to log in; afterwards nothing is looked at.
const MAX_LOGIN_PACKETS: u32 = 16;
/// Login packets are small; a longer one is no login.
const MAX_LOGIN_PACKET_BYTES: usize = 1 << 16;
const OK: u8 = 0x00;

const REFUSAL: &str = "it asks for the password over an unprotected connection: add tls=verify (with ssl-ca=FILE) \
     to the DSN, or connect through a Unix socket";

pub(super) struct Relay {
    folder: PathBuf,
    refused: Arc<OnceLock<&'static str>>,
}

impl Relay {
    /// Takes a connection to the server and waits, in a task of its own, for one client at [`Relay::socket`].
    pub(super) fn start(server: TcpStream) -> std::io::Result<Relay> {
        let parent = std::env::temp_dir();
        let here = |error: std::io::Error| {
            let why = format!(
                "whyso can't make a socket of its own in {} ({error}): set TMPDIR to a folder with a short path that you may write to",
                parent.display()
            );
            std::io::Error::other(why)
        };
        let folder = parent.join(unique_name("whyso-relay"));
        std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(here)?;
        let relay = Relay { folder, refused: Arc::default() };
        let listener = UnixListener::bind(relay.folder.join("s")).map_err(here)?;
        let refused = Arc::clone(&relay.refused);
        tokio::spawn(async move {
            let Ok((client, _)) = listener.accept().await else { return };
            drop(listener);
            // either end hanging up ends the relay; the driver reports it
            let _ = carry(client, server, &refused).await;
        });
        Ok(relay)
    }

    pub(super) fn socket(&self) -> String {
        self.folder.join("s").to_string_lossy().into_owned()
    }

    /// Why the relay hung up, where it did.
    pub(super) fn refused_because(&self) -> Option<&'static str> {
        self.refused.get().copied()
    }
}

impl Drop for Relay {
    /// The connection outlives its name.
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn carry(
    mut client: UnixStream,
    mut server: TcpStream,
    refused: &OnceLock<&'static str>,
) -> std::io::Result<()> {
    // greeting, then client and server in turn until the server says OK or an error
    let greeting = read_packet(&mut server).await?;
    client.write_all(&greeting).await?;
    for _ in 0..MAX_LOGIN_PACKETS {
        let from_client = read_packet(&mut client).await?;
        server.write_all(&from_client).await?;
        // after "fast authentication succeeded" (1, 3) the server goes on by itself
        loop {
            let from_server = read_packet(&mut server).await?;
            let payload = &from_server[4..];
            if payload.starts_with(&FULL_AUTHENTICATION) {
                let _ = refused.set(REFUSAL);
                return Ok(());
            }
            client.write_all(&from_server).await?;
            if payload.first() == Some(&OK) || payload.first() == Some(&0xff) {
                tokio::io::copy_bidirectional(&mut client, &mut server).await?;
                return Ok(());
            }
            if payload != [0x01, 0x03] {
                break;
            }
        }
    }
    Ok(())
}

/// One packet with its header: three bytes of length, one of sequence.
async fn read_packet(stream: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    stream.read_exact(&mut packet).await?;
    let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]) as usize;
    if length > MAX_LOGIN_PACKET_BYTES {
        return Err(std::io::Error::other("a login packet is too long"));
    }
    packet.resize(4 + length, 0);
    stream.read_exact(&mut packet[4..]).await?;
    Ok(packet)
}

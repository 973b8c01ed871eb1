//! Connects and logs in.

use std::io;
use std::time::{Duration, Instant};

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;
use whyso_wire::{Capabilities, ServerError, encode};

use crate::connection::stream::{SharedSocket, Socket, Stream};
use crate::connection::tls;
use crate::error::LoadError;
use crate::target::{Address, Limits, Target, Tls};

/// Packets that a login may take, both ways; a server that sends more is not one.
const LOGIN_PACKETS_MAX: usize = 16;
/// No packet of a login comes near this.
const LOGIN_PACKET_BYTES_MAX: usize = 64 * 1024;
/// What we say that our packets may grow to.
const MAX_PACKET_BYTES: u32 = 16 * 1024 * 1024;
/// Where the collation stands in a handshake response: after the capabilities and the packet size.
const COLLATION_OFFSET: usize = 8;

/// A connection that is logged in, with the bounds of login still set on its socket.
pub(crate) struct LoggedIn {
    pub(crate) stream: Stream,
    pub(crate) agreed: Capabilities,
    pub(crate) is_compressed: bool,
}

/// What is asked of a connection in addition to its target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes {
    /// The compressed protocol, where the server has it.
    pub(crate) compression: bool,
    /// The server may ask for the content of a LOAD DATA LOCAL of ours.
    pub(crate) local_files: bool,
}

/// Connects and logs in, within `limits.connect` for each of the two.
pub(crate) fn log_in(target: &Target, wishes: Wishes, limits: &Limits) -> Result<LoggedIn, LoadError> {
    let address = target.address.to_string();
    let connected = match &target.address {
        Address::Unix(path) => Socket::connect_unix(path, limits.connect),
        Address::Tcp { host, port } => Socket::connect_tcp(host, *port, limits.connect),
    };
    let socket = connected.map_err(|source| LoadError::Connect { address: address.clone(), source })?;
    let mut login = Login {
        target,
        wishes,
        is_compressed: false,
        address,
        on_unix_socket: socket.is_unix(),
        deadline: Instant::now() + limits.connect,
        stream: Stream::Plain(SharedSocket(socket.into())),
        sequence: 0,
    };
    let agreed = login.run()?;
    Ok(LoggedIn { stream: login.stream, agreed, is_compressed: login.is_compressed })
}

struct Login<'t> {
    target: &'t Target,
    wishes: Wishes,
    is_compressed: bool,
    address: String,
    on_unix_socket: bool,
    deadline: Instant,
    stream: Stream,
    /// Number of the next packet, ours or theirs.
    sequence: u8,
}

impl Login<'_> {
    fn run(&mut self) -> Result<Capabilities, LoadError> {
        let greeting = self.receive()?;
        if greeting.first() == Some(&0xff) {
            return Err(self.refused(&greeting));
        }
        let parsed = ParseBuf(&greeting).parse::<HandshakePacket<'_>>(());
        let handshake =
            parsed.map_err(|error| self.failed(format!("its greeting can't be read ({error})")))?;
        let theirs = handshake.capabilities();
        if !theirs.contains(CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION) {
            return Err(
                self.failed("it speaks the protocol of before MySQL 4.1, which is too old".to_string())
            );
        }
        // MariaDB marks itself by leaving out what it calls CLIENT_MYSQL, and MySQL CLIENT_LONG_PASSWORD.
        let is_mariadb = !theirs.contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
        let mut extended = MariadbCapabilities::empty();
        if is_mariadb {
            extended =
                handshake.mariadb_ext_capabilities() & MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA;
        }
        let mut ours = theirs
            & (CapabilityFlags::CLIENT_PROTOCOL_41
                | CapabilityFlags::CLIENT_SECURE_CONNECTION
                | CapabilityFlags::CLIENT_LONG_PASSWORD
                | CapabilityFlags::CLIENT_LONG_FLAG
                | CapabilityFlags::CLIENT_TRANSACTIONS
                | CapabilityFlags::CLIENT_MULTI_RESULTS
                | CapabilityFlags::CLIENT_MULTI_STATEMENTS
                | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
                | CapabilityFlags::CLIENT_PLUGIN_AUTH
                | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
                | CapabilityFlags::CLIENT_CONNECT_WITH_DB
                | CapabilityFlags::CLIENT_DEPRECATE_EOF);
        if self.wishes.compression {
            ours |= theirs & CapabilityFlags::CLIENT_COMPRESS;
        }
        if self.wishes.local_files {
            ours |= theirs & CapabilityFlags::CLIENT_LOCAL_FILES;
        }
        self.is_compressed = ours.contains(CapabilityFlags::CLIENT_COMPRESS);
        let collation = handshake.default_collation();
        ours |= self.start_tls(theirs, ours, extended, collation)?;

        let plugin = match handshake.auth_plugin() {
            Some(plugin) if ours.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH) => plugin.into_owned(),
            _ => AuthPlugin::MysqlNativePassword,
        };
        // What the default plugin of the server can't be answered with, the account's own may: it then switches.
        let answer = self.answer(&plugin, &handshake.nonce()).unwrap_or_default();
        let schema = Some(self.target.schema.as_bytes()).filter(|schema| !schema.is_empty());
        let response = HandshakeResponse::new(
            Some(answer.as_slice()),
            (5, 5, 5),
            Some(self.target.user.as_bytes()),
            schema,
            ours.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH).then(|| plugin.borrow()),
            ours,
            None,
            MAX_PACKET_BYTES,
        );
        let response = response.with_mariadb_ext_capabilities(extended);
        let mut payload = Vec::new();
        response.serialize(&mut payload);
        // The server's own collation, so that it converts nothing on the way; all that is sent is ASCII.
        if collation != 0
            && let Some(byte) = payload.get_mut(COLLATION_OFFSET)
        {
            *byte = collation;
        }
        self.send(&payload)?;
        self.authenticate(plugin)?;
        Ok(Capabilities {
            deprecate_eof: ours.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            cache_metadata: extended.contains(MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA),
        })
    }

    /// Goes over to TLS where it was asked for: the capability that says so.
    fn start_tls(
        &mut self,
        theirs: CapabilityFlags,
        ours: CapabilityFlags,
        extended: MariadbCapabilities,
        collation: u8,
    ) -> Result<CapabilityFlags, LoadError> {
        if self.on_unix_socket {
            return Ok(CapabilityFlags::empty());
        }
        let Some(session) = tls::session(&self.target.tls, &self.address)? else {
            return Ok(CapabilityFlags::empty());
        };
        if !theirs.contains(CapabilityFlags::CLIENT_SSL) {
            let why = "the server does not offer it: set it up there, or ask for tls=disabled".to_string();
            return Err(LoadError::Tls { address: self.address.clone(), why });
        }
        let request = SslRequest::new(ours | CapabilityFlags::CLIENT_SSL, MAX_PACKET_BYTES, collation);
        let mut payload = Vec::new();
        request.with_mariadb_capabilities(extended).serialize(&mut payload);
        self.send(&payload)?;
        let socket = SharedSocket(self.stream.socket().clone());
        self.bound_next_wait()?;
        let mut stream = Box::new(rustls::StreamOwned::new(session, socket));
        // The bound is the socket's, which the session reads from too.
        while stream.conn.is_handshaking() {
            self.bound_next_wait()?;
            let progress = stream.conn.complete_io(&mut stream.sock);
            progress
                .map_err(|error| LoadError::Tls { address: self.address.clone(), why: error.to_string() })?;
        }
        self.stream = Stream::Tls(stream);
        Ok(CapabilityFlags::CLIENT_SSL)
    }

    fn authenticate(&mut self, mut plugin: AuthPlugin<'static>) -> Result<(), LoadError> {
        for _ in 0..LOGIN_PACKETS_MAX {
            let packet = self.receive()?;
            match packet.as_slice() {
                [0x00, ..] => return Ok(()),
                [0xff, ..] => return Err(self.refused(&packet)),
                [0xfe] => {
                    return Err(
                        self.failed("it asks for the password scheme of before MySQL 4.1".to_string())
                    );
                }
                [0xfe, ..] => {
                    let parsed = ParseBuf(&packet).parse::<AuthSwitchRequest<'_>>(());
                    let request = parsed.map_err(|error| {
                        self.failed(format!("its request to switch can't be read ({error})"))
                    })?;
                    plugin = request.auth_plugin().into_owned();
                    let answer = self.answer(&plugin, request.plugin_data())?;
                    self.send(&answer)?;
                }
                [0x01, 3] if plugin == AuthPlugin::CachingSha2Password => {}
                [0x01, 4] if plugin == AuthPlugin::CachingSha2Password => {
                    let password = self.clear_password("the full caching_sha2_password exchange")?;
                    self.send(&password)?;
                }
                _ => return Err(self.failed("it sent something unknown during the login".to_string())),
            }
        }
        Err(self.failed("its login takes too many steps".to_string()))
    }

    /// What the plugin wants to see of the password.
    fn answer(&self, plugin: &AuthPlugin<'_>, nonce: &[u8]) -> Result<Vec<u8>, LoadError> {
        match plugin {
            AuthPlugin::MysqlNativePassword | AuthPlugin::CachingSha2Password | AuthPlugin::Ed25519 => {
                let answer = plugin.gen_data(Some(self.target.password.as_str()), nonce);
                Ok(answer.map(|answer| answer.to_vec()).unwrap_or_default())
            }
            AuthPlugin::MysqlClearPassword if self.on_unix_socket => {
                self.clear_password("mysql_clear_password")
            }
            AuthPlugin::MysqlClearPassword => Err(self.failed(
                "it asks for the password in clear text, which is given on a Unix socket only".to_string(),
            )),
            AuthPlugin::Other(name) if **name == *b"sha256_password" => {
                self.clear_password("sha256_password")
            }
            other => {
                let name = other.as_bytes().escape_ascii();
                Err(self.failed(format!(
                    "its account wants the plugin {name}; use one with mysql_native_password, caching_sha2_password or \
                     ed25519"
                )))
            }
        }
    }

    /// The password itself, where nobody but the server can see it.
    fn clear_password(&self, what: &str) -> Result<Vec<u8>, LoadError> {
        let is_protected = self.on_unix_socket || matches!(self.target.tls, Tls::Verify { .. });
        if !is_protected {
            return Err(self.failed(format!(
                "{what} needs the password itself, which is sent on a Unix socket or verified TLS only: use one of \
                 them, or log in once by other means so that the server knows the password's digest"
            )));
        }
        let mut answer = self.target.password.as_bytes().to_vec();
        answer.push(0);
        Ok(answer)
    }

    fn send(&mut self, payload: &[u8]) -> Result<(), LoadError> {
        let mut out = Vec::with_capacity(payload.len() + 4);
        encode::packet(&mut out, self.sequence, payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.bound_next_wait()?;
        self.stream.send(&out).map_err(|source| self.broken(source))
    }

    fn receive(&mut self) -> Result<Vec<u8>, LoadError> {
        let mut header = [0; 4];
        self.receive_exactly(&mut header)?;
        let [low, middle, high, sequence] = header;
        let length = usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
        if length > LOGIN_PACKET_BYTES_MAX || sequence != self.sequence {
            return Err(self.failed("what answers there does not speak the MySQL protocol".to_string()));
        }
        self.sequence = self.sequence.wrapping_add(1);
        let mut payload = vec![0; length];
        self.receive_exactly(&mut payload)?;
        Ok(payload)
    }

    fn receive_exactly(&mut self, buffer: &mut [u8]) -> Result<(), LoadError> {
        let mut filled = 0;
        while filled < buffer.len() {
            self.bound_next_wait()?;
            let received = self.stream.receive(&mut buffer[filled..]);
            filled += received.map_err(|source| self.broken(source))?;
        }
        Ok(())
    }

    fn bound_next_wait(&mut self) -> Result<(), LoadError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let bounded = match left {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => self.stream.socket().bound_waits(Some(left)),
        };
        bounded.map_err(|source| self.broken(source))
    }

    fn broken(&self, source: io::Error) -> LoadError {
        let is_timeout = matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        let source = if is_timeout { io::ErrorKind::TimedOut.into() } else { source };
        LoadError::Broken { address: self.address.clone(), source }
    }

    fn failed(&self, why: String) -> LoadError {
        LoadError::Login { address: self.address.clone(), why }
    }

    fn refused(&self, packet: &[u8]) -> LoadError {
        let message = match ServerError::parse(packet) {
            Ok(error) => format!("error {}: {}", error.code, String::from_utf8_lossy(error.message)),
            Err(_) => "it gave no reason".to_string(),
        };
        LoadError::Refused { address: self.address.clone(), user: self.target.user.clone(), message }
    }
}

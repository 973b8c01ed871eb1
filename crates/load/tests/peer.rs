//! The load against a scripted peer, which misbehaves in every way that a server or a network can.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use whyso_load::{Address, Cause, Engine, LevelOutcome, Limits, Target, Tls};
use whyso_workload::{Options, Workload};

trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

/// What the peer does with each connection.
type Script = dyn Fn(&mut dyn Wire) + Send + Sync;

struct Peer {
    _folder: tempfile::TempDir,
    path: PathBuf,
    port: u16,
}

impl Peer {
    /// Listens on a Unix socket and on TCP; each connection gets the script in a thread of its own.
    fn start(script: impl Fn(&mut dyn Wire) + Send + Sync + 'static) -> Peer {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let unix = UnixListener::bind(&path).unwrap();
        let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = tcp.local_addr().unwrap().port();
        let script: Arc<Script> = Arc::new(script);
        let for_unix = script.clone();
        std::thread::spawn(move || {
            for mut stream in unix.incoming().flatten() {
                let script = for_unix.clone();
                std::thread::spawn(move || script(&mut stream));
            }
        });
        std::thread::spawn(move || {
            for mut stream in tcp.incoming().flatten() {
                let script = script.clone();
                std::thread::spawn(move || script(&mut stream));
            }
        });
        Peer { _folder: folder, path, port }
    }

    fn target(&self, address: Address) -> Target {
        let (user, password) = ("bench".to_string(), "sesame".to_string());
        Target { address, user, password, schema: "whyso".to_string(), tls: Tls::Off }
    }

    fn on_unix(&self) -> Target {
        self.target(Address::Unix(self.path.clone()))
    }

    fn on_tcp(&self) -> Target {
        self.target(Address::Tcp { host: "127.0.0.1".to_string(), port: self.port })
    }
}

const LIMITS: Limits = Limits {
    connect: Duration::from_millis(1000),
    stall: Duration::from_millis(400),
    stop: Duration::from_millis(500),
    reconnect: Duration::ZERO,
};

fn workload() -> Workload {
    Workload::builtin("oltp-point-select", &Options::default()).unwrap()
}

fn connect(target: &Target) -> Result<Engine, String> {
    let began = Instant::now();
    let engine =
        Engine::connect_with(target, &workload(), 1, 1, None, LIMITS).map_err(|error| error.to_string());
    assert!(began.elapsed() < Duration::from_secs(10), "connecting has a bound");
    engine
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(sequence);
    packet.extend_from_slice(payload);
    packet
}

/// As MySQL greets: protocol 10, CLIENT_DEPRECATE_EOF and all that the load asks for.
fn greeting(plugin: &str) -> Vec<u8> {
    let capabilities: u32 =
        0x0001 | 0x0008 | 0x0200 | 0x2000 | 0x8000 | 0x2_0000 | 0x4_0000 | 0x8_0000 | 0x100_0000;
    let mut payload = b"\x0a8.0.0-peer\0\x01\0\0\0abcdefgh\0".to_vec();
    payload.extend_from_slice(&capabilities.to_le_bytes()[..2]);
    payload.extend_from_slice(&[45, 2, 0]);
    payload.extend_from_slice(&capabilities.to_le_bytes()[2..]);
    payload.push(21);
    payload.extend_from_slice(&[0; 10]);
    payload.extend_from_slice(b"ijklmnopqrst\0");
    payload.extend_from_slice(plugin.as_bytes());
    payload.push(0);
    packet(0, &payload)
}

/// Reads a packet's payload; empty where the other side has gone.
fn read_packet(stream: &mut dyn Wire) -> Vec<u8> {
    let mut header = [0; 4];
    if stream.read_exact(&mut header).is_err() {
        return Vec::new();
    }
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    if stream.read_exact(&mut payload).is_err() {
        return Vec::new();
    }
    payload
}

fn send(stream: &mut dyn Wire, bytes: &[u8]) {
    // The other side may have given up already.
    let _ = stream.write_all(bytes);
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// Logs anyone in, prepares anything, and answers executions as told.
fn server(mut execute: impl FnMut(&mut dyn Wire), stream: &mut dyn Wire) {
    send(stream, &greeting("mysql_native_password"));
    read_packet(stream);
    send(stream, &packet(2, OK));
    loop {
        match read_packet(stream).first() {
            Some(0x16) => send(stream, &packet(1, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
            Some(0x17) => execute(stream),
            Some(0x01) | None => return,
            Some(_) => send(stream, &packet(1, OK)),
        }
    }
}

/// One column, two rows.
fn rows() -> Vec<u8> {
    let definition = packet(2, b"\x03def\0\0\0\x01c\0\x0c\x2d\0\x78\0\0\0\xfd\0\0\0\0\0");
    let end = packet(5, &[0xfe, 0, 0, 2, 0, 0, 0]);
    [packet(1, &[1]), definition, packet(3, &[0, 0, 1, b'x']), packet(4, &[0, 0, 1, b'y']), end].concat()
}

/// Runs a level until it fails or has made a few transactions.
fn level(execute: impl Fn(&mut dyn Wire) + Send + Sync + Clone + 'static) -> LevelOutcome {
    let peer = Peer::start(move |stream| server(execute.clone(), stream));
    let mut engine = connect(&peer.on_unix()).unwrap();
    let mut level = engine.level(1).unwrap();
    level.begin_measuring();
    let deadline = Instant::now() + Duration::from_secs(20);
    while level.failure().is_none() && level.live().transactions < 20 {
        assert!(Instant::now() < deadline, "neither progress nor failure");
        std::thread::sleep(Duration::from_millis(5));
    }
    let began = Instant::now();
    let outcome = level.stop();
    assert!(began.elapsed() < Duration::from_secs(5), "stopping has a bound");
    outcome
}

/// The cause and the message with which a level fails.
fn failure(execute: impl Fn(&mut dyn Wire) + Send + Sync + Clone + 'static) -> (Cause, String) {
    let failure = level(execute).failure.expect("the level fails");
    assert!(
        failure.message.contains("point_select (SELECT c FROM sbtest1 WHERE id=?)"),
        "{}",
        failure.message
    );
    (failure.cause, failure.message)
}

#[test]
fn an_answer_that_trickles_in_is_counted_as_one() {
    let outcome = level(|stream| {
        for byte in rows() {
            send(stream, &[byte]);
        }
    });
    assert_eq!(outcome.failure, None);
    let select = &outcome.kinds[0];
    assert!(select.count >= 15);
    assert_eq!(select.rows, select.count * 2);
}

#[test]
fn a_connection_that_closes_ends_the_level() {
    let (cause, message) = failure(|stream| {
        send(stream, &rows()[..20]);
        // Both sides see the end when the stream is dropped: the peer's thread panics out of its loop.
        std::panic::resume_unwind(Box::new("the peer hangs up"));
    });
    assert_eq!(cause, Cause::ConnectionLost);
    assert!(message.contains("was lost"), "{message}");
}

#[test]
fn a_peer_that_falls_silent_ends_the_level_after_the_bound() {
    let (cause, message) = failure(|stream| {
        send(stream, &rows()[..20]);
        std::thread::sleep(Duration::from_secs(3));
    });
    assert_eq!(cause, Cause::NoAnswer);
    assert!(message.contains("did not answer") && message.contains("for 0.4 s"), "{message}");
}

#[test]
fn garbage_ends_the_level() {
    let (cause, message) = failure(|stream| send(stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    assert_eq!(cause, Cause::Protocol);
    assert!(message.contains("breaks the protocol"), "{message}");
    let (cause, message) = failure(|stream| send(stream, &[rows(), packet(0, OK)].concat()));
    assert_eq!(cause, Cause::Protocol);
    assert!(message.contains("more bytes came"), "{message}");
}

#[test]
fn a_request_for_a_local_file_is_refused() {
    let (cause, message) = failure(|stream| send(stream, &packet(1, b"\xfb/etc/passwd")));
    assert_eq!(cause, Cause::Protocol);
    assert!(message.contains("local file '/etc/passwd', which is refused"), "{message}");
}

#[test]
fn an_error_ends_the_level_with_the_server_s_words() {
    let (cause, message) = failure(|stream| send(stream, &packet(1, b"\xff\x28\x04#42000You are wrong")));
    assert!(matches!(cause, Cause::ServerError(code) if code.to_string() == "1064 (42000)"), "{cause:?}");
    assert!(message.contains("1064 (42000): You are wrong"), "{message}");
}

#[test]
fn what_does_not_greet_as_a_server_is_told_apart() {
    let greet = |bytes: Vec<u8>| {
        let peer = Peer::start(move |stream| send(stream, &bytes));
        connect(&peer.on_tcp()).err().unwrap()
    };
    assert!(greet(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()).contains("does not speak the MySQL protocol"));
    assert!(greet(packet(0, b"\x0a")).contains("its greeting can't be read"));
    assert!(
        greet(packet(0, b"\xff\x10\x04Too many connections")).contains("error 1040: Too many connections")
    );
    assert!(greet(Vec::new()).contains("closed the connection"));
    let silent = Peer::start(|stream| {
        let _ = stream.read(&mut [0; 1]);
    });
    let message = connect(&silent.on_tcp()).err().unwrap();
    assert!(message.contains("did not answer in time"), "{message}");
}

/// A peer that greets, switches to a plugin where one is named, sends more of the login, and keeps what it is sent.
fn login(switch_to: Option<&'static [u8]>, more: &'static [u8]) -> (Peer, Arc<Mutex<Vec<Vec<u8>>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seen_by_peer = seen.clone();
    let peer = Peer::start(move |stream| {
        send(stream, &greeting("caching_sha2_password"));
        read_packet(stream);
        let mut sequence = 2;
        for payload in [switch_to.unwrap_or_default(), more] {
            if payload.is_empty() {
                continue;
            }
            send(stream, &packet(sequence, payload));
            seen_by_peer.lock().unwrap().push(read_packet(stream));
            sequence += 2;
        }
        send(stream, &packet(sequence, OK));
        while !read_packet(stream).is_empty() {
            send(stream, &packet(1, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        }
    });
    (peer, seen)
}

const FULL_CACHING_SHA2: &[u8] = &[1, 4];
const TO_CLEAR: &[u8] = b"\xfemysql_clear_password\0";

#[test]
fn the_password_itself_is_given_on_a_unix_socket_only() {
    for (switch_to, more) in [(None, FULL_CACHING_SHA2), (Some(TO_CLEAR), &[][..])] {
        let (peer, seen) = login(switch_to, more);
        connect(&peer.on_unix()).unwrap();
        assert_eq!(seen.lock().unwrap()[0], b"sesame\0");

        let (peer, seen) = login(switch_to, more);
        let message = connect(&peer.on_tcp()).err().unwrap();
        assert!(message.contains("Unix socket"), "{message}");
        drop(peer);
        let leaked =
            seen.lock().unwrap().iter().any(|packet| packet.windows(6).any(|part| part == b"sesame"));
        assert!(!leaked);
    }
}

#[test]
fn a_switch_of_plugin_is_answered_with_what_that_plugin_wants() {
    let (peer, seen) = login(Some(b"\xfeclient_ed25519\x000123456789abcdef0123456789abcdef"), &[]);
    connect(&peer.on_tcp()).unwrap();
    assert_eq!(seen.lock().unwrap()[0].len(), 64);
    let (peer, seen) = login(Some(b"\xfemysql_native_password\x0001234567890123456789\0"), &[]);
    connect(&peer.on_tcp()).unwrap();
    assert_eq!(seen.lock().unwrap()[0].len(), 20);
}

#[test]
fn logins_that_can_t_be_are_refused_in_one_sentence() {
    let (peer, _) = login(Some(b"\xfe"), &[]);
    assert!(connect(&peer.on_tcp()).err().unwrap().contains("before MySQL 4.1"));
    let (peer, _) = login(Some(b"\xfedialog\0Who are you?"), &[]);
    assert!(connect(&peer.on_tcp()).err().unwrap().contains("the plugin dialog"));
    let (peer, _) = login(None, b"\x07surprise");
    assert!(connect(&peer.on_tcp()).err().unwrap().contains("something unknown"));
    let endless = Peer::start(|stream| {
        send(stream, &greeting("caching_sha2_password"));
        for sequence in 2..100 {
            send(stream, &packet(sequence, &[1, 3]));
        }
        let _ = stream.read(&mut [0; 1024]);
        std::thread::sleep(Duration::from_secs(3));
    });
    assert!(connect(&endless.on_unix()).err().unwrap().contains("too many steps"));
}

#[test]
fn no_users_and_cpus_that_are_not_there_are_refused() {
    let peer = Peer::start(|stream| server(|stream| send(stream, &rows()), stream));
    let connect = |users: u32, cpus: Option<Vec<u32>>| {
        Engine::connect_with(&peer.on_unix(), &workload(), users, 1, cpus, LIMITS).map(|_| ())
    };
    assert!(connect(0, None).unwrap_err().to_string().contains("0 users"));
    for cpus in [vec![], vec![100_000], vec![1023]] {
        let message = connect(1, Some(cpus)).unwrap_err().to_string();
        assert!(message.contains("name CPUs that this machine has"), "{message}");
    }
    connect(1, Some(vec![0])).unwrap();
}

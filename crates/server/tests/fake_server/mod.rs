//! A server of the tests' own that knows one setting, and breaks a connection on request.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mysql_async::Conn;
use whyso_server::Dsn;

pub(crate) const SETTING: &str = "max_connections";

/// What the server holds, and when it is to die for the connection that asks.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) value: u64,
    /// Number of settings so far.
    pub(crate) sets: u64,
    /// Commands until the connection breaks, and whether the last of them is still carried out.
    pub(crate) breaks: Option<(u32, bool)>,
}

pub(crate) struct Server {
    pub(crate) folder: tempfile::TempDir,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Server { folder, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    pub(crate) async fn connect(&self) -> Conn {
        connect(&self.socket()).await
    }
}

pub(crate) async fn connect(socket: &Path) -> Conn {
    let dsn = Dsn::resolve(&format!("mysql://root@localhost/x?socket={}", socket.display())).unwrap();
    dsn.connect_without_schema().await.unwrap()
}

fn packet(sequence: &mut u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(*sequence);
    *sequence += 1;
    packet.extend_from_slice(payload);
    packet
}

fn read_packet(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some(payload)
}

fn serve(mut stream: UnixStream, state: &Mutex<State>) {
    const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
    let mut greeting = b"\x0a8.0.0-test\0\x01\0\0\0abcdefgh\0".to_vec();
    greeting.extend([0x09, 0xa2, 45, 2, 0, 0x0a, 0, 21]);
    greeting.extend([0; 10]);
    greeting.extend(b"ijklmnopqrst\0mysql_native_password\0");
    let _ = stream.write_all(&packet(&mut 0, &greeting));
    if read_packet(&mut stream).is_none() || stream.write_all(&packet(&mut 2, OK)).is_err() {
        return;
    }
    while let Some(command) = read_packet(&mut stream) {
        let Some((3, sql)) = command.split_first() else { return };
        let sql = String::from_utf8_lossy(sql).into_owned();
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut breaks_now = None;
        if let Some((left, carried_out)) = &mut state.breaks {
            *left = left.saturating_sub(1);
            breaks_now = (*left == 0).then_some(*carried_out);
        }
        if breaks_now == Some(false) {
            return;
        }
        let answer = match sql.strip_prefix(&format!("SET GLOBAL {SETTING} = ")) {
            Some(value) => {
                state.value = value.parse().expect("a number");
                state.sets += 1;
                packet(&mut 1, OK)
            }
            None => rows(&sql, state.value),
        };
        drop(state);
        if breaks_now.is_some() || stream.write_all(&answer).is_err() {
            return;
        }
    }
}

fn rows(sql: &str, value: u64) -> Vec<u8> {
    let value = value.to_string();
    let rows: Vec<Vec<&str>> = if sql.contains("SHOW GLOBAL VARIABLES") {
        vec![vec!["server_uuid", "the-server"]]
    } else if sql.contains("UNIX_TIMESTAMP") {
        vec![vec!["5000"]]
    } else if sql.contains("Uptime") {
        vec![vec!["Uptime", "1000"]]
    } else if sql == format!("SELECT @@GLOBAL.{SETTING}") {
        vec![vec![&value]]
    } else {
        // What the driver asks for when it connects.
        vec![vec!["1048576"; sql.matches("@@").count().max(1)]]
    };
    let mut sequence = 1;
    let columns = rows[0].len();
    let end = [0xfe, 0, 0, 2, 0];
    let mut answer = packet(&mut sequence, &[columns as u8]);
    for _ in 0..columns {
        answer.extend(packet(&mut sequence, b"\x03def\0\0\0\x01c\0\x0c\x2d\0\x78\0\0\0\xfd\0\0\0\0\0"));
    }
    answer.extend(packet(&mut sequence, &end));
    for row in rows {
        let mut payload = Vec::new();
        for cell in row {
            payload.push(cell.len() as u8);
            payload.extend_from_slice(cell.as_bytes());
        }
        answer.extend(packet(&mut sequence, &payload));
    }
    answer.extend(packet(&mut sequence, &end));
    answer
}

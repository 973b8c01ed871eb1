//! A client that sends what the test passes, byte for byte, and what a recording has of it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use super::{Place, SOON, finish, json_of, kill, output, spawn, text, wait_until};

pub(crate) const COM_QUIT: u8 = 1;
pub(crate) const COM_INIT_DB: u8 = 2;
pub(crate) const COM_QUERY: u8 = 3;
pub(crate) const COM_STATISTICS: u8 = 9;
pub(crate) const COM_PING: u8 = 14;
pub(crate) const COM_STMT_PREPARE: u8 = 22;
pub(crate) const COM_STMT_EXECUTE: u8 = 23;
pub(crate) const COM_STMT_CLOSE: u8 = 25;
pub(crate) const COM_STMT_RESET: u8 = 26;
/// Protocol 4.1, secure authentication by plugins, long passwords and flags, several statements and results.
const CAPABILITIES: u32 = 0xb_8205;

/// A client that sends what the test passes, byte for byte, and nothing else.
pub(crate) struct Client(UnixStream);

impl Client {
    pub(crate) fn log_in(socket: &Path) -> Client {
        let mut client = Client(UnixStream::connect(socket).unwrap());
        client.receive();
        let mut hello = CAPABILITIES.to_le_bytes().to_vec();
        hello.extend((1u32 << 24).to_le_bytes());
        // utf8mb3, what is reserved, the user, and no password.
        hello.push(33);
        hello.extend([0; 23]);
        hello.extend(b"root\0\0caching_sha2_password\0");
        client.send_packet(1, &hello);
        let mut answer = client.receive();
        if answer[0] == 0xfe {
            client.send_packet(3, &[]);
            answer = client.receive();
        }
        assert_eq!(answer[0], 0, "{}", text(&answer));
        client
    }

    pub(crate) fn send_packet(&mut self, sequence: u8, payload: &[u8]) {
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = sequence;
        self.0.write_all(&[&packet[..], payload].concat()).unwrap();
    }

    pub(crate) fn receive(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.0.read_exact(&mut header).unwrap();
        header[3] = 0;
        let mut payload = vec![0; u32::from_le_bytes(header) as usize];
        self.0.read_exact(&mut payload).unwrap();
        payload
    }

    pub(crate) fn receive_to_eof(&mut self) {
        while self.receive()[0] != 0xfe {}
    }

    /// Sends a command whose answer is one packet or a result set.
    pub(crate) fn command(&mut self, number: u8, content: &[u8]) {
        self.send_packet(0, &[&[number], content].concat());
        self.receive_answer(number);
    }

    /// Several statements in one, with as many answers.
    pub(crate) fn queries(&mut self, sql: &str, answers: usize) {
        self.send_packet(0, &[&[COM_QUERY], sql.as_bytes()].concat());
        for _ in 0..answers {
            self.receive_answer(COM_QUERY);
        }
    }

    fn receive_answer(&mut self, number: u8) {
        let first = self.receive();
        if !matches!(first[0], 0 | 0xff) && matches!(number, COM_QUERY | COM_STMT_EXECUTE) {
            self.receive_to_eof();
            self.receive_to_eof();
        }
    }

    pub(crate) fn query(&mut self, sql: &str) {
        self.command(COM_QUERY, sql.as_bytes());
    }

    /// The number that the server gives the statement; `None` for an error.
    pub(crate) fn prepare(&mut self, sql: &str) -> Option<u32> {
        self.send_packet(0, &[&[COM_STMT_PREPARE], sql.as_bytes()].concat());
        let answer = self.receive();
        if answer[0] == 0xff {
            return None;
        }
        for at in [7, 5] {
            if answer[at..at + 2] != [0, 0] {
                self.receive_to_eof();
            }
        }
        Some(u32::from_le_bytes(answer[1..5].try_into().unwrap()))
    }

    /// Without parameters.
    pub(crate) fn execute(&mut self, statement: u32) {
        let content = [&statement.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
        self.command(COM_STMT_EXECUTE, &content);
    }

    pub(crate) fn send_alone(&mut self, number: u8, content: &[u8]) {
        self.send_packet(0, &[&[number], content].concat());
    }
}

/// Records what `client` does; gives the run's folder, or nothing where commands can't be followed here.
pub(crate) fn recorded(place: &Place, dsn: &str, more: &[&str], client: impl FnOnce()) -> Option<String> {
    let mut record = place.whyso(&["record", "--dsn", dsn, "--trace-sql", "--json"]);
    let recording = spawn(record.args(more));
    let is_followed = || {
        let runs = fs::read_dir(place.runs()).into_iter().flatten().flatten();
        let files = runs.flat_map(|run| fs::read_dir(run.path()).into_iter().flatten().flatten());
        // The first commands that are recorded are those of whyso's own samplers.
        files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("commands-"))
    };
    let followed = wait_until(SOON / 4, is_followed);
    client();
    kill(recording.id() as i32, libc::SIGINT);
    let out = json_of(&finish(recording, SOON));
    let run = out["path"].as_str().unwrap();
    let about = fs::read_to_string(Path::new(run).join("run.json")).unwrap();
    let about: Value = serde_json::from_str(&about).unwrap();
    let not_measured = about["not_measured"].to_string();
    if !followed {
        assert!(not_measured.contains("commands of the server's clients"), "{not_measured}");
        whyso_testing::tracer_not_tested(not_measured);
        return None;
    }
    Some(run.to_string())
}

/// Every command of the recording's clients, in order.
pub(crate) fn whole_log(place: &Place, run: &str) -> Vec<Value> {
    let log = json_of(&output(&mut place.whyso(&["statements", run, "--log", "--json"])));
    assert_eq!(log["trace"]["lost"], serde_json::json!({}), "nothing is lost of so little");
    log["commands"].as_array().unwrap().clone()
}

/// Those of the connection that sent the last.
pub(crate) fn log_of(place: &Place, run: &str) -> Vec<Value> {
    let mut commands = whole_log(place, run);
    let last = commands.last().expect("commands")["connection"].clone();
    assert!(last.is_u64(), "{commands:?}");
    commands.retain(|command| command["connection"] == last);
    commands
}

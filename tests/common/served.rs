//! `whyso serve` over recordings that the test writes, asked by plain HTTP.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use whyso_record::data::{Event, Kind, Reading, SeriesKey, Status, Value as Number};
use whyso_record::run::{RunEnd, RunInfo};
use whyso_record::{Options, Recorder};

use super::Place;

pub(crate) const S: i64 = 1_000_000_000;
pub(crate) const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{1b}[31m";
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// Ten minutes: a counter of 50 a second with one burst, a gauge, and text that means harm.
pub(crate) fn record(dir: &Path, id: &str) {
    let recorder = Recorder::create(dir, Options::default()).unwrap();
    let key = |metric: &str, kind, instance: &str| SeriesKey {
        host: "server".into(),
        source: "status".into(),
        metric: metric.into(),
        instance: instance.into(),
        kind,
        unit: "1".into(),
    };
    let counter = recorder.series(&key("Questions", Kind::Counter, ""));
    let busy = recorder.series(&key("waits", Kind::Counter, "busy"));
    let idle = recorder.series(&key("waits", Kind::Counter, HOSTILE));
    let gauge = recorder.series(&key("Threads_running", Kind::Gauge, ""));
    for second in 0..600i64 {
        let burst = if second >= 300 { 10_000 } else { 0 };
        let values = vec![
            (counter, Number::Int(second * 50 + burst)),
            (busy, Number::Int(second * 7)),
            (idle, Number::Int(3)),
            (gauge, Number::Int(second % 10)),
        ];
        let end_ns = second * S + 1_000;
        recorder.reading(Reading {
            source: "status".into(),
            begin_ns: second * S,
            end_ns,
            status: Status::Ok,
            values,
        });
    }
    recorder.event(Event { t_ns: 5 * S, host: String::new(), kind: "error".into(), text: HOSTILE.into() });
    let run = RunInfo {
        id: id.to_string(),
        spec: whyso_model::RunSpec { workload: Some(HOSTILE.to_string()), ..whyso_model::RunSpec::default() },
        anchors: vec![whyso_clock::Anchor {
            monotonic_ns: 0,
            wall_ns: 1_700_000_000 * S,
            ..whyso_clock::Anchor::now()
        }],
        ended: Some(RunEnd::Complete { at_ns: 600 * S }),
        ..RunInfo::default()
    };
    recorder.set_run(&run);
    recorder.finish().unwrap();
}

pub(crate) struct RunServer {
    child: Child,
    pub(crate) port: u16,
    pub(crate) token: String,
}

impl RunServer {
    pub(crate) fn start(place: &Place, more: &[&str]) -> RunServer {
        let runs = place.runs();
        let mut args = vec!["serve", "--runs", runs.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        args.extend(more);
        let mut child = place.whyso(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once("/#token=").expect(&line);
        let port = address.strip_prefix("http://127.0.0.1:").expect(&line).parse().unwrap();
        RunServer { child, port, token: token.to_string() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The status, the head and the body of an answer.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &str,
    ) -> (u16, String, Vec<u8>) {
        self.ask_bytes(method, path, headers, body.as_bytes())
    }

    pub(crate) fn ask_bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> (u16, String, Vec<u8>) {
        let length = format!("Content-Length: {}", body.len());
        self.ask_raw(method, path, &[headers, &[&*length]].concat(), body)
    }

    /// The length of what is sent is among the headers.
    pub(crate) fn ask_raw(
        &self,
        method: &str,
        path: &str,
        headers: &[&str],
        body: &[u8],
    ) -> (u16, String, Vec<u8>) {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            request.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        for header in headers {
            request.push_str(&format!("{header}\r\n"));
        }
        request.push_str("\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        // What is refused early is not read to its end.
        let _ = socket.write_all(body);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        let split = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(answer[..split].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), answer[split + 4..].to_vec())
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, body) = self.ask("GET", &format!("/api/v1{path}"), &[&self.bearer()], "");
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let headers = [&*self.bearer(), "Content-Type: application/json"];
        let (status, _, body) = self.ask(method, &format!("/api/v1{path}"), &headers, body);
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

impl Drop for RunServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn with_runs(ids: &[&str]) -> Place {
    let place = Place::new();
    fs::create_dir_all(place.runs()).unwrap();
    for id in ids {
        record(&place.runs().join(id), id);
    }
    place
}

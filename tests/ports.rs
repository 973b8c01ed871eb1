//! Local ports that run out: a client that connects again and again, in a network namespace with few ports.

// Runs alone: the client has to be done before its recording ends.

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Place, finish, output, spawn, text, wait_until};
use serde_json::Value;

const BOUND: Duration = Duration::from_secs(20);
/// It listens, and closes what its clients have closed.
const SERVER: &str = "
import socket
listener = socket.create_server(('127.0.0.1', 7306), backlog=512)
while True:
    connection, _ = listener.accept()
    connection.recv(1)
    connection.close()
";
/// It connects 300 times and closes first. Once it may, it connects 500 times more, writes how often it had no port, and stays.
const CLIENT: &str = "
import errno, os, socket, sys, time
def fails():
    client = socket.socket()
    try:
        client.connect(('127.0.0.1', 7306))
        return False
    except OSError as error:
        if error.errno != errno.EADDRNOTAVAIL: raise
        return True
    finally:
        client.close()
for _ in range(300): fails()
while not os.path.exists(sys.argv[1] + '/go'): time.sleep(0.01)
failures = 0
for _ in range(500):
    failures += fails()
    time.sleep(0.002)
with open(sys.argv[1] + '/new', 'w') as file: file.write(str(failures))
os.rename(sys.argv[1] + '/new', sys.argv[1] + '/failures')
time.sleep(60)
";

/// Programs in a network namespace of their own; all end with this.
struct Namespace {
    holder: Child,
    programs: Vec<Child>,
}

impl Namespace {
    /// `range`: its net.ipv4.ip_local_port_range. Ports of closed connections are not used again before their time.
    fn new(range: &str) -> Namespace {
        let script = format!(
            "ip link set lo up && echo '{range}' > /proc/sys/net/ipv4/ip_local_port_range && \
             echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse && exec sleep 120"
        );
        let mut command = Command::new("unshare");
        let holder = command.args(["--net", "sh", "-c", &script]).stdin(Stdio::null()).spawn().unwrap();
        let namespace = Namespace { holder, programs: Vec::new() };
        let name = format!("/proc/{}/comm", namespace.holder.id());
        let is_ready = || std::fs::read_to_string(&name).is_ok_and(|name| name.trim() == "sleep");
        assert!(wait_until(BOUND, is_ready), "no namespace of the network");
        namespace
    }

    fn enter(&self, program: &Command) -> Command {
        let net = format!("--net=/proc/{}/ns/net", self.holder.id());
        let mut command = Command::new("nsenter");
        command.arg(net).arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = program.get_current_dir() {
            command.current_dir(folder);
        }
        command
    }

    /// Returns its number: nsenter becomes the program.
    fn start(&mut self, script: &str, argument: &Path) -> u32 {
        let mut python = Command::new("python3");
        python.args(["-c", script]).arg(argument);
        let child = self.enter(&python).stdin(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        self.programs.push(child);
        pid
    }

    fn has_listener(&self) -> bool {
        let table =
            std::fs::read_to_string(format!("/proc/{}/net/tcp", self.holder.id())).unwrap_or_default();
        table.lines().any(|line| line.contains(":1C8A 00000000:0000 0A"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().chain([&mut self.holder]) {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// What is reported of ports after a recording of the client, and how often the client says that it had none.
fn recorded(range: &str) -> (Vec<String>, u64) {
    let mut namespace = Namespace::new(range);
    let place = Place::new();
    namespace.start(SERVER, place.path());
    assert!(wait_until(BOUND, || namespace.has_listener()), "the server does not listen");
    let client = namespace.start(CLIENT, place.path());
    // Python may be a script that becomes the program.
    let name = format!("/proc/{client}/comm");
    assert!(wait_until(BOUND, || std::fs::read_to_string(&name).is_ok_and(|name| name.starts_with("python"))));
    let args = ["record", "--process", &client.to_string(), "--for", "8s", "--interval-ms", "500"];
    let recording = spawn(&mut namespace.enter(&place.whyso(&args)));
    let runs = place.runs();
    assert!(wait_until(BOUND, || runs.read_dir().is_ok_and(|mut runs| runs.next().is_some())));
    std::thread::sleep(Duration::from_secs(2));
    std::fs::write(place.path().join("go"), "").unwrap();
    let ended = finish(recording, Duration::from_secs(60));
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let run = place.only_run().display().to_string();
    println!("{}", text(&output(&mut place.whyso(&["why", &run])).stdout));
    let report = ["report", &run, "--format", "json", "--output", "/dev/stdout"];
    let report: Value = serde_json::from_str(&text(&output(&mut place.whyso(&report)).stdout)).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let of_ports = findings.iter().filter(|finding| finding["id"] == "ephemeral-ports");
    let texts = of_ports.map(|finding| finding["text"].as_str().unwrap().to_string()).collect();
    let failures = std::fs::read_to_string(place.path().join("failures")).expect("the client was not done");
    (texts, failures.parse().unwrap())
}

#[test]
fn ports_that_run_out_are_named_with_numbers_and_enough_ports_are_not() {
    // 256 ports, which the client uses up before it is recorded; and 28,000.
    let (named, failures) = recorded("32768 33023");
    assert_eq!(failures, 500);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(
        named[0].contains("failed to connect to tcp 7306 500 times: no local port was left"),
        "{named:?}"
    );
    assert!(named[0].contains("of the 256 local ports") && named[0].contains("127.0.0.1:7306"), "{named:?}");

    let (named, failures) = recorded("32768 60999");
    assert_eq!((named, failures), (Vec::new(), 0));
}

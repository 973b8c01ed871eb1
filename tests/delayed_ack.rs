//! A server that sends each answer in two pieces waits for the kernel's late acknowledgement, which lies between it and the load.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use common::{Place, json_of, may_trace, output, text};
use serde_json::Value;

/// Linux waits at least so long before it acknowledges without data to send, in ms.
const LATE_MS: f64 = 40.0;
/// It prints its port. With "at once" it sends each piece when it is written.
const SERVER: &str = r#"
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
def serve(client):
    if sys.argv[1] == "at once":
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while client.recv(4096):
        client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n")
        client.send(b"answer")
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

/// The server; it ends with this.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(how: &str) -> Server {
        let mut python = Command::new("/usr/bin/python3");
        let python = python.args(["-c", SERVER, how]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = python.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Server { child, port: line.trim().parse().unwrap() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The only program's time of a request, while two users ask a server.
fn recorded(how: &str) -> Value {
    let (place, server) = (Place::new(), Server::start(how));
    let url = format!("http://127.0.0.1:{}/", server.port);
    let pid = server.child.id().to_string();
    let load = ["run", "--url", &url, "--process", &pid, "--users", "2", "--seconds", "4", "--warmup", "1"];
    let run = output(&mut place.whyso(&load));
    assert!(run.status.success(), "{}", text(&run.stderr));
    println!("{}", text(&run.stdout));
    json_of(&output(&mut place.whyso(&["why", "latest", "--json"])))["tiers"][0].clone()
}

#[test]
fn answers_in_two_pieces_wait_for_a_late_acknowledgement_and_those_sent_at_once_do_not() {
    if !may_trace() {
        return;
    }
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    let late = recorded("in pieces");
    assert!(number(&late["page_ms"]) >= LATE_MS * 0.9, "{late}");
    assert!(number(&late["mean_ms"]) < LATE_MS / 2.0, "{late}");
    assert_eq!(late["cause"], "delayed-ack", "{late}");
    let longest = &late["lines"][late["longest"].as_u64().unwrap() as usize];
    assert!(longest["text"].as_str().unwrap().starts_with("between the load and "), "{late}");

    let soon = recorded("at once");
    assert!(number(&soon["page_ms"]) < LATE_MS / 2.0, "{soon}");
    assert_ne!(soon["cause"], "delayed-ack", "{soon}");
}

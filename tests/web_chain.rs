//! nginx before Node.js before Java: two event loops and a pool of threads, each with a time that is known.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Place, json_of, may_trace, output, text, wait_until};
use serde_json::Value;

const BOUND: Duration = Duration::from_secs(60);
const USERS: usize = 4;
/// What a thread of Java's sleeps in each request.
const SLEPT_MS: f64 = 40.0;
/// What Node.js works in each request.
const WORKED_MS: f64 = 3.0;
const JAVA: &str = r#"
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
public class Back {
    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            try { Thread.sleep(SLEPT); } catch (InterruptedException e) { throw new RuntimeException(e); }
            byte[] answer = "from Java\n".getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
"#;
const NODE: &str = r#"
const http = require('http');
const [port, back] = process.argv.slice(2).map(Number);
const agent = new http.Agent({ keepAlive: true });
http.createServer((request, answer) => {
  const used = () => { const { user, system } = process.cpuUsage(); return user + system; };
  const began = used();
  while (used() - began < WORKED * 1000);
  http.get({ host: '127.0.0.1', port: back, path: '/', agent }, (from) => {
    answer.writeHead(200, { 'Content-Type': 'text/plain' });
    from.pipe(answer);
  }).on('error', () => { answer.writeHead(502); answer.end(); });
}).listen(port, '127.0.0.1');
"#;
const NGINX: &str = "
worker_processes 1;
pid FOLDER/nginx.pid;
error_log FOLDER/error.log;
daemon off;
events {}
http {
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    upstream node { server 127.0.0.1:NODE; keepalive 16; }
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://node; proxy_http_version 1.1; proxy_set_header Connection ''; }
    }
}
";

/// Programs that end with this.
struct Programs(Vec<Child>);

impl Programs {
    fn start(&mut self, command: &mut Command) -> u32 {
        let child =
            command.stdin(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let pid = child.id();
        self.0.push(child);
        pid
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for program in self.0.iter_mut().rev() {
            // nginx ends its workers.
            common::kill(program.id() as i32, libc::SIGTERM);
            if !wait_until(Duration::from_secs(5), || program.try_wait().is_ok_and(|ended| ended.is_some())) {
                let _ = program.kill();
            }
            let _ = program.wait();
        }
    }
}

fn can_be_chain() -> bool {
    let missing = ["/usr/sbin/nginx", "/usr/bin/java", "/usr/bin/javac"]
        .into_iter()
        .find(|path| !Path::new(path).exists());
    if let Some(missing) = missing {
        whyso_testing::not_tested(format!(
            "there is no {missing}: no time of a request over nginx, Node.js and Java"
        ));
    }
    missing.is_none()
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut answer = [0; 12];
    write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && &answer == b"HTTP/1.1 200"
}

#[test]
fn a_request_over_two_event_loops_and_a_pool_of_threads_is_divided_among_them() {
    if !can_be_chain() || !may_trace() {
        return;
    }
    let place = Place::new();
    let write = |name: &str, content: &str| std::fs::write(place.path().join(name), content).unwrap();
    let [port, node_port, java_port] = [(); 3].map(|()| free_port());
    let folder = place.path().display().to_string();
    write("Back.java", &JAVA.replace("SLEPT", &SLEPT_MS.to_string()));
    write("front.js", &NODE.replace("WORKED", &WORKED_MS.to_string()));
    let ports = [("FOLDER", folder), ("NODE", node_port.to_string()), ("PORT", port.to_string())];
    let conf = ports.iter().fold(NGINX.to_string(), |conf, (name, value)| conf.replace(name, value));
    write("nginx.conf", &conf);
    let mut programs = Programs(Vec::new());
    let mut of = |program: &str, args: &[&str]| {
        programs.start(Command::new(program).args(args).current_dir(place.path())).to_string()
    };
    let java = of("java", &["-Xmx64m", "Back.java", &java_port.to_string()]);
    let node = of("node", &["front.js", &node_port.to_string(), &java_port.to_string()]);
    let conf = place.path().join("nginx.conf").display().to_string();
    let nginx = of("/usr/sbin/nginx", &["-c", &conf, "-e", "error.log"]);
    assert!(wait_until(BOUND, || answers(port)), "nginx, Node.js and Java do not answer");

    let url = format!("http://127.0.0.1:{port}/");
    let users = USERS.to_string();
    let load = ["run", "--url", &url, "--users", &users, "--seconds", "5", "--warmup", "2", "--json"];
    let processes = ["--process", &nginx, "--process", &node, "--process", &java];
    let run = output(&mut place.whyso(&[&load[..], &processes].concat()));
    assert!(run.status.success(), "{}", text(&run.stderr));
    let run = json_of(&run);
    let path = run["path"].as_str().unwrap();
    println!("{}", text(&output(&mut place.whyso(&["why", path])).stdout));
    let why = json_of(&output(&mut place.whyso(&["why", path, "--json"])));

    let tiers = why["tiers"].as_array().unwrap_or_else(|| panic!("{why}"));
    let names: Vec<&str> = tiers.iter().map(|tier| tier["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[0].contains("nginx") && tiers[0]["is_first"] == true, "{names:?}");
    let tier = |name: &str| tiers.iter().find(|tier| tier["name"].as_str().unwrap().contains(name)).unwrap();
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} in {tiers:?}"));
    let mean_ms = |name: &str| number(&tier(name)["mean_ms"]);
    let lines = tiers[0]["lines"].as_array().unwrap();
    assert!(tiers[0]["page_ms"].is_number(), "nginx did not answer one request for each page: {tiers:?}");
    // Each is behind the one before it.
    for (name, depth) in [("nginx", 1), ("node", 2), ("java", 3)] {
        let found = lines.iter().any(|line| {
            line["tier"].as_str().is_some_and(|tier| tier.contains(name)) && line["depth"] == depth + 1
        });
        assert!(found, "{name}: {lines:?}");
    }
    let share: f64 =
        lines.iter().filter(|line| line["is_divided"] == false).map(|line| number(&line["share"])).sum();
    assert!((share - 1.0).abs() < 0.03, "{share} in {lines:?}");
    let measured_ms = number(&run["levels"][0]["latency_ms"]["mean"]);
    let (of_nginx_ms, of_node_ms, of_java_ms) = (mean_ms("nginx"), mean_ms("node"), mean_ms("java"));
    println!(
        "clients {measured_ms} ms, nginx {of_nginx_ms} ms, Node.js {of_node_ms} ms, Java {of_java_ms} ms"
    );
    assert!((0.85..1.05).contains(&(of_nginx_ms / measured_ms)));
    assert!((SLEPT_MS..SLEPT_MS * 2.0).contains(&of_java_ms));
    assert!(of_node_ms >= SLEPT_MS + WORKED_MS && of_node_ms <= of_nginx_ms);
    // Java's threads have one request each, and the loops several.
    let by_turns = |name: &str| number(&tier(name)["interleaved"]);
    assert!(by_turns("java") < 0.1 && by_turns("node") > 0.5 && by_turns("nginx") > 0.5);
    let worked = tier("node")["parts"].as_array().unwrap().iter().find(|part| part["part"] == "cpu").unwrap();
    assert!((WORKED_MS * 0.9..WORKED_MS * 3.0).contains(&number(&worked["ms"])), "{worked}");
}

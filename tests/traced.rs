//! Real servers in every shape, traced. Each query that the load sent is a request that the tracer saw. The parts of the
//! time budget add up, whatever the sockets, the threads and the protocol are.

// Runs alone: it judges shares of the response time.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::bare_client::Client;
use common::{OwnServer, Place, json_of, may_trace, output, text};
use serde_json::Value;

const USERS: u64 = 8;
const TRANSACTIONS: u64 = 10_000;
/// Connections that set the load up (its data set, its schema), and their questions.
const SET_UP_MAX: u64 = 80;
/// Requests of the samplers in a short run.
const SAMPLERS_MAX: u64 = 200;
/// Of the mean time of a request.
const UNACCOUNTED_MAX: f64 = 0.05;
/// The same between two networks of one machine. A packet waits there for a kernel thread that takes it across, and no part
/// of the budget measures that. It is 2 to 10 % on two busy CPUs, where it is 0 % over loopback.
const UNACCOUNTED_BETWEEN_NETWORKS: f64 = 0.2;

/// What was recorded of a load.
struct Recording {
    run: Value,
    why: Value,
    requests: f64,
    unseen: f64,
    text: String,
}

impl Recording {
    fn part(&self, name: &str) -> Option<f64> {
        self.why["levels"][0]["budget_ms"][name].as_f64()
    }

    fn unaccounted(&self) -> f64 {
        let level = &self.why["levels"][0];
        level["unaccounted_ms"].as_f64().unwrap() / level["response_ms"].as_f64().unwrap()
    }

    /// Asserts as many requests as queries. `extra`: further ones of users, such as logins.
    fn assert_adds_up(&self, queries: u64, extra: u64) {
        self.assert_is_complete(queries, extra);
        assert!(self.unaccounted().abs() <= UNACCOUNTED_MAX, "{}\n{}", self.unaccounted(), self.text);
    }

    fn assert_is_complete(&self, queries: u64, extra: u64) {
        let (least, most) = (queries as f64, (queries + extra + SET_UP_MAX) as f64);
        assert!((least..=most).contains(&self.requests), "{} requests, {least} to {most}", self.requests);
        assert!(self.unseen <= 0.005 * self.requests + 20.0, "{} arrivals were not seen", self.unseen);
    }
}

/// The last of a counter that the tracer began with.
fn counted(place: &Place, run: &Path, metric: &str) -> f64 {
    let run = run.to_str().unwrap();
    let csv = output(&mut place.whyso(&["export", run, "--source", "trace", "--metric", metric]));
    let last = text(&csv.stdout).lines().last().and_then(|line| line.rsplit(',').next()?.parse().ok());
    last.unwrap_or_else(|| panic!("no {metric}: {}", text(&csv.stderr)))
}

/// Records `whyso load` on a server for as long as it takes.
fn record(dsn: &str, workload: &str, more: &[&str]) -> Recording {
    record_by(&[], dsn, workload, more)
}

/// The same, started by another program.
fn record_by(starter: &[&str], dsn: &str, workload: &str, more: &[&str]) -> Recording {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_whyso");
    let (users, transactions) = (USERS.to_string(), TRANSACTIONS.to_string());
    let mut record = place.whyso(&["record", "--dsn", dsn, "--json", "--"]);
    record.args(starter).args([program, "load", workload]);
    record.args(["--dsn", dsn, "--users", &users, "--transactions", &transactions]);
    record.args(["--tables", "1", "--rows", "1000"]).args(more);
    let out = json_of(&output(&mut record));
    let path = Path::new(out["path"].as_str().unwrap());
    let run = path.to_str().unwrap();
    let why = json_of(&output(&mut place.whyso(&["why", run, "--json"])));
    Recording {
        run: serde_json::from_str(&fs::read_to_string(path.join("run.json")).unwrap()).unwrap(),
        requests: if is_traced(&why) { counted(&place, path, "requests") } else { 0.0 },
        unseen: if is_traced(&why) { counted(&place, path, "unseen_arrivals") } else { 0.0 },
        text: text(&output(&mut place.whyso(&["why", run])).stdout),
        why,
    }
}

fn is_traced(why: &Value) -> bool {
    why["levels"][0]["budget_ms"]["cpu"].is_number()
}

#[test]
fn a_thread_pool_answers_what_its_threads_picked_for_each_other() {
    if !may_trace() {
        return;
    }
    for groups in ["--thread-pool-size=2", "--thread-pool-size=32"] {
        let server = OwnServer::start_with(&["--thread-handling=pool-of-threads", groups]);
        let dsn = server.dsn("root", "");
        // A commit's answer is sent by another thread than the one that received it, once the log is written.
        let commits = record(&dsn, "oltp-update-non-index", &[]);
        commits.assert_adds_up(TRANSACTIONS, 3 * USERS);
        assert!(commits.part("lock").unwrap() > 0.0, "{}", commits.text);
        record(&dsn, "oltp-point-select", &[]).assert_adds_up(TRANSACTIONS, 3 * USERS);
    }
}

#[test]
#[ignore = "long: make test-hard"]
fn what_a_shell_starts_loads_as_the_command_itself_does() {
    if !may_trace() {
        return;
    }
    let server = OwnServer::start();
    // The shell stays, and waits for what it started.
    let shell = ["sh", "-c", "\"$0\" \"$@\"; true"];
    let run = record_by(&shell, &server.dsn("root", ""), "oltp-point-select", &[]);
    run.assert_adds_up(TRANSACTIONS, 3 * USERS);
    let client_ms = run.part("client_cpu").unwrap_or_else(|| panic!("the load was not seen: {}", run.text));
    assert!(client_ms > 0.0, "{}", run.text);
}

#[test]
fn connections_that_come_and_go_are_counted_with_and_without_a_thread_cache() {
    if !may_trace() {
        return;
    }
    for cache in ["--thread-cache-size=0", "--thread-cache-size=64"] {
        let server = OwnServer::start_with(&[cache]);
        // A login, a preparation and an execution for each transaction.
        let churn = record(&server.dsn("root", ""), "oltp-point-select", &["--reconnect-every", "1"]);
        churn.assert_adds_up(3 * TRANSACTIONS, 3 * USERS);
    }
}

#[test]
fn both_kinds_of_sockets_tls_and_compression_are_counted_alike() {
    if !may_trace() {
        return;
    }
    let place = Place::new();
    let key = place.path().join("key.pem");
    let certificate = place.path().join("certificate.pem");
    let openssl = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    assert!(
        openssl.is_ok_and(|output| output.status.success()),
        "openssl is needed: apt-get install openssl"
    );
    let options = [format!("--ssl-key={}", key.display()), format!("--ssl-cert={}", certificate.display())];
    let server = OwnServer::start_with(&[&options[0], &options[1]]);
    let tcp = format!("mysql://root@127.0.0.1:{}/", server.port);
    let tls = format!("{tcp}?tls=insecure");
    let ways: [(&str, &[&str]); 4] =
        [(&server.dsn("root", ""), &[]), (&tcp, &[]), (&tls, &[]), (&tcp, &["--compress"])];
    for (dsn, more) in ways {
        // TLS begins with a packet and a handshake of its own.
        record(dsn, "oltp-point-select", more).assert_adds_up(TRANSACTIONS, 6 * USERS);
    }
    // Answers of many packets, in several parts.
    let ranges = record(&tls, "oltp-simple-ranges", &[]);
    ranges.assert_adds_up(TRANSACTIONS, 6 * USERS);
    let accepted = server.sql("SHOW GLOBAL STATUS LIKE 'Ssl_finished_accepts'");
    let accepted: u64 = accepted.split_whitespace().last().unwrap().parse().unwrap();
    assert!(accepted >= 2 * USERS, "{accepted} TLS connections");
}

#[test]
#[ignore = "long: make test-hard"]
fn the_budget_of_a_server_whose_process_is_not_found_stops_at_the_wire() {
    if !may_trace() {
        return;
    }
    // In namespaces of its own it has another number here than it says, and the name of another machine.
    let rename = r#"hostname elsewhere && exec "$0" "$@""#;
    let wrapper = ["unshare", "--pid", "--uts", "--fork", "--kill-child", "sh", "-c", rename];
    let server = OwnServer::start_by(&wrapper, &[]);
    let recorded = record(&format!("mysql://root@127.0.0.1:{}/", server.port), "oltp-point-select", &[]);
    let wire = recorded.part("server_and_network").unwrap();
    assert!(wire > 0.0 && recorded.part("cpu").is_none(), "{}", recorded.why);
    assert!(recorded.unaccounted().abs() <= UNACCOUNTED_MAX, "{}", recorded.text);
    // Lines break anywhere.
    let unbroken = recorded.text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unbroken.contains("The budget stops at the wire"), "{}", recorded.text);
    let lost = recorded.run["not_measured"].to_string();
    assert!(lost.contains("its process can't be found from here"), "{lost}");
    let of_load = recorded.run["levels"][0]["result"]["transactions"].as_u64().unwrap();
    assert!(of_load >= TRANSACTIONS, "{of_load} answers of {TRANSACTIONS} queries");
}

/// How many connections of others sleep next to a load.
const SLEEPERS: usize = 20;

/// Runs `work` while that many connections sleep in the server, a second at a time.
fn next_to_sleepers<T>(server: &OwnServer, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    let mut clients: Vec<Client> = (0..SLEEPERS).map(|_| Client::log_in(&server.socket())).collect();
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    client.query("SELECT SLEEP(1)");
                }
            });
        }
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// Checks a level next to the sleepers: `alone` is the same one without them.
fn assert_sleepers_are_apart(alone: &Value, level: &Value, text: &str) {
    let others = &level["other_clients"];
    assert_eq!(others["connections"], SLEEPERS, "{level}");
    let (per_s, cpu) = (others["requests_per_s"].as_f64().unwrap(), others["cpu_share"].as_f64().unwrap());
    assert!((0.8..1.1).contains(&(per_s / SLEEPERS as f64)), "{level}");
    assert!(cpu > 0.0 && cpu < 0.1, "{level}");
    let share = |level: &Value, part: &str| {
        level["budget_ms"][part].as_f64().unwrap() / level["response_ms"].as_f64().unwrap()
    };
    // A second's sleep for each millisecond of the load was more than twice its whole time.
    for part in ["lock", "kernel_lock", "sleep", "other"] {
        let (before, now) = (share(alone, part), share(level, part));
        assert!((now - before).abs() < 0.05, "{part}: {before} without, {now} with\n{text}");
    }
    let unaccounted = level["unaccounted_ms"].as_f64().unwrap() / level["response_ms"].as_f64().unwrap();
    assert!(unaccounted.abs() <= UNACCOUNTED_MAX, "{unaccounted}\n{text}");
}

#[test]
#[ignore = "long: make test-hard"]
fn requests_of_other_clients_are_in_no_part_of_the_budget_and_are_reported_apart() {
    if !may_trace() {
        return;
    }
    let server = OwnServer::start();
    let tcp = format!("mysql://root@127.0.0.1:{}/", server.port);
    for dsn in [server.dsn("root", ""), tcp] {
        let place = Place::new();
        let mut run = place.whyso(&["run", "oltp-point-select", "--dsn", &dsn, "--users", "4", "--json"]);
        run.args(["--seconds", "3", "--tables", "1", "--rows", "1000", "--no-repeat"]);
        let recorded = |out: Value| {
            let path = out["path"].as_str().unwrap().to_string();
            let why = json_of(&output(&mut place.whyso(&["why", &path, "--json"])));
            let words = text(&output(&mut place.whyso(&["why", &path])).stdout);
            assert_eq!(out["levels"][0]["other_clients"], why["levels"][0]["other_clients"]);
            (why["levels"][0].clone(), words, out["findings"].to_string())
        };
        let (alone, _, findings) = recorded(json_of(&output(&mut run)));
        let others = &alone["other_clients"];
        assert_eq!((others["connections"].as_u64(), others["requests_per_s"].as_f64()), (Some(0), Some(0.0)));
        assert!(!findings.contains("other-clients"), "{findings}");
        let next_to = next_to_sleepers(&server, || json_of(&output(&mut run)));
        let (level, words, findings) = recorded(next_to);
        assert_sleepers_are_apart(&alone, &level, &words);
        assert!(findings.contains("they had 20 connections"), "{findings}");
    }
}

#[test]
#[ignore = "long: make test-hard"]
fn next_to_a_command_that_loads_directly_other_clients_are_apart_too() {
    if !may_trace() {
        return;
    }
    let server = OwnServer::start();
    let dsn = server.dsn("root", "");
    // What the others do before the command begins to load the server is none of its load either.
    let late = ["sh", "-c", "sleep 1.5; \"$0\" \"$@\""];
    let load = || record_by(&late, &dsn, "oltp-point-select", &[]);
    let alone = load();
    let recorded = next_to_sleepers(&server, load);
    recorded.assert_adds_up(TRANSACTIONS, 3 * USERS);
    let others = &recorded.why["levels"][0]["other_clients"];
    assert_eq!(others["connections"], SLEEPERS, "{}", recorded.why);
    let lock = |recorded: &Recording| {
        recorded.part("lock").unwrap() / recorded.why["levels"][0]["response_ms"].as_f64().unwrap()
    };
    assert!((lock(&alone) - lock(&recorded)).abs() < 0.05, "{}\n{}", alone.text, recorded.text);
}

/// A replica receives what its source sends: that is no request of a client, whoever loads it.
#[test]
#[ignore = "long: make test-hard"]
fn what_a_replica_receives_is_no_request() {
    if !may_trace() {
        return;
    }
    let source = OwnServer::start_with(&["--server-id=1", "--log-bin=binlog"]);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT); CREATE USER r@'%'; GRANT ALL ON *.* TO r@'%'");
    let replica = OwnServer::start_with(&["--server-id=2"]);
    replica.sql(&format!(
        "CHANGE MASTER TO master_host='127.0.0.1', master_port={}, master_user='r', \
         master_log_file='binlog.000001', master_log_pos=4; START SLAVE",
        source.port
    ));
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'd'";
    assert!(common::wait_until(common::SOON, || replica.sql(tables) == "1"), "no replication");
    let place = Place::new();
    let mut record = place.whyso(&["record", "--dsn", &replica.dsn("root", ""), "--for", "3", "--json"]);
    let is_over = AtomicBool::new(false);
    let out = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = Client::log_in(&source.socket());
            while !is_over.load(Ordering::Relaxed) {
                writer.query("INSERT INTO d.t VALUES (1)");
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let out = json_of(&output(&mut record));
        is_over.store(true, Ordering::Relaxed);
        out
    });
    let received = replica.sql("SELECT COUNT(*) FROM d.t").parse::<u64>().unwrap();
    assert!(received > 300, "{received} rows were replicated");
    assert_eq!(out["levels"][0]["transactions"], 0, "{}", out["levels"]);
}

/// Holds back what passes between a client and a server by this much in each direction; lives as long as the test.
fn relay(port: u16, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
            let ways = [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client.try_clone().unwrap()),
            ];
            for (mut from, mut to) in ways {
                to.set_nodelay(true).unwrap();
                std::thread::spawn(move || {
                    let mut piece = vec![0; 64 * 1024];
                    while let Ok(length @ 1..) = from.read(&mut piece) {
                        std::thread::sleep(delay);
                        if to.write_all(&piece[..length]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    own
}

#[test]
#[ignore = "long: make test-hard"]
fn what_a_relay_holds_back_is_shown_as_the_way_between_load_and_server() {
    if !may_trace() {
        return;
    }
    let server = OwnServer::start();
    let relayed = relay(server.port, Duration::from_millis(2));
    let recorded = record(&format!("mysql://root@127.0.0.1:{relayed}/"), "oltp-point-select", &[]);
    // The samplers ask by the relay, too: what comes from there is the load's, whoever sent it.
    recorded.assert_adds_up(TRANSACTIONS, 3 * USERS + SAMPLERS_MAX);
    let way_ms = recorded.part("transit_out").unwrap();
    // Twice 2 ms, and what the relay's threads take to be woken on a machine that others use.
    assert!((4.0..8.0).contains(&way_ms), "{}", recorded.text);
    assert!(recorded.text.contains("Something relays between the load and the server"), "{}", recorded.text);
}

/// A network namespace with a pair of devices to it; gone with this.
struct Namespace(String);

impl Namespace {
    fn new(address: &str, server: &str) -> Option<Namespace> {
        let name = format!("whyso{}", std::process::id() % 100_000);
        let ip = |words: &str| {
            let words: Vec<&str> = words.split_whitespace().collect();
            Command::new("ip").args(words).output().is_ok_and(|output| output.status.success())
        };
        let namespace = Namespace(name.clone());
        let is_added = ip(&format!("netns add {name}"))
            && ip(&format!("link add {name}a type veth peer name {name}b netns {name}"))
            && ip(&format!("addr add {address}/30 dev {name}a"))
            && ip(&format!("link set {name}a up"))
            && ip(&format!("-n {name} addr add {server}/30 dev {name}b"))
            && ip(&format!("-n {name} link set {name}b up"));
        is_added.then_some(namespace)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The devices go with it.
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn a_server_in_a_network_of_its_own_on_this_machine_is_traced() {
    if !may_trace() {
        return;
    }
    let Some(namespace) = Namespace::new("10.201.77.1", "10.201.77.2") else {
        whyso_testing::not_tested("a network namespace needs root and ip(8)");
        return;
    };
    let wrapper = ["ip", "netns", "exec", &namespace.0];
    let server = OwnServer::start_by(&wrapper, &["--bind-address=10.201.77.2"]);
    server.sql("CREATE USER bench@'%'; GRANT ALL ON *.* TO bench@'%'");
    let dsn = format!("mysql://bench@10.201.77.2:{}/", server.port);
    let recorded = record(&dsn, "oltp-point-select", &[]);
    recorded.assert_is_complete(TRANSACTIONS, 3 * USERS);
    let left = recorded.unaccounted();
    assert!((-UNACCOUNTED_MAX..=UNACCOUNTED_BETWEEN_NETWORKS).contains(&left), "{left}\n{}", recorded.text);
}

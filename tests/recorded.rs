//! A server that something else loads: the cause is named. Without the tracer it is named by what the server itself
//! reports, to a user of the machine without rights, over TCP, with only PROCESS. Next to other programs it is named by
//! who they are.

// Runs alone: it judges which cause comes first.

mod common;

use std::process::{Child, Command, Stdio};

use common::{OwnServer, Place, finish, json_of, output, text};
use serde_json::Value;

const NOBODY: &str = "65534";

/// Clients of the test's own, which end with it.
struct Clients(Vec<Child>);

impl Clients {
    fn start(server: &OwnServer, statements: &[&str]) -> Clients {
        let client = |sql: &&str| {
            Command::new("mariadb")
                .args(["--no-defaults", "-uroot", "-S"])
                .arg(server.socket())
                .args(["-e", sql])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        Clients(statements.iter().map(client).collect())
    }

    fn add(&mut self, mut others: Clients) {
        self.0.append(&mut others.0);
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// With a host's name of its own, as a server on another machine has; it listens on all of loopback.
fn server_elsewhere() -> OwnServer {
    let wrapper = ["unshare", "--uts", "sh", "-c", "hostname db1.example; exec \"$@\"", "sh"];
    with_orders(OwnServer::start_by(&wrapper, &["--bind-address=*"]))
}

fn with_orders(server: OwnServer) -> OwnServer {
    server.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; \
         INSERT INTO shop.orders SELECT seq, 1 FROM seq_1_to_100; \
         CREATE USER dba@'%'; GRANT PROCESS ON *.* TO dba@'%'",
    );
    server
}

/// Ends what clients that are gone have left: a server notices that only when their statement ends.
fn end_sessions(server: &OwnServer) {
    let others =
        "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'root' AND ID <> CONNECTION_ID()";
    let are_gone = common::wait_until(common::SOON, || {
        let ids = server.sql(others);
        for id in ids.lines() {
            // It may be gone by now.
            server.sql(&format!(
                "DELIMITER $\nBEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; KILL {id}; END$"
            ));
        }
        ids.is_empty()
    });
    assert!(are_gone, "{}", server.sql(others));
}

/// The program as nobody, in a folder that is nobody's; it must be run as root to become nobody.
fn as_nobody(place: &Place, args: &[&str]) -> Command {
    std::os::unix::fs::chown(place.path(), Some(65_534), Some(65_534)).expect("these tests need root");
    let program = place.whyso(args);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.arg(program.get_program()).args(program.get_args()).current_dir(place.path());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// What `whyso record` prints, and `whyso why --json` of it.
fn recorded(server: &OwnServer, host: &str, seconds: &str) -> (Value, String, Value) {
    let place = Place::new();
    let dsn = format!("mysql://dba@{host}:{}/", server.port);
    let printed = output(&mut as_nobody(&place, &["record", "--dsn", &dsn, "--for", seconds, "--verbose"]));
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    let run = place.only_run();
    let why = json_of(&output(&mut place.whyso(&["why", run.to_str().unwrap(), "--json"])));
    let info = std::fs::read_to_string(run.join("run.json")).unwrap();
    (why, one_line(&text(&printed.stdout)), serde_json::from_str(&info).unwrap())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn suspects(why: &Value) -> Vec<(&str, f64)> {
    let suspects = why["suspects"].as_array().unwrap();
    suspects
        .iter()
        .map(|suspect| (suspect["id"].as_str().unwrap(), suspect["share"].as_f64().unwrap()))
        .collect()
}

#[test]
fn locks_are_named_by_what_the_server_reports_and_a_healthy_server_is_not_accused_of_any() {
    let server = server_elsewhere();

    // Each ends only when its client is ended: what is held up for longer than the window is in no counter.
    let mut clients =
        Clients::start(&server, &["BEGIN; SELECT v FROM shop.orders WHERE id = 7 FOR UPDATE; DO SLEEP(60)"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    clients.add(Clients::start(&server, &["UPDATE shop.orders SET v = v + 1 WHERE id = 7"; 4]));
    let (why, printed, run) = recorded(&server, "127.0.0.1", "6s");
    drop(clients);
    end_sessions(&server);
    let (first, share) = suspects(&why)[0];
    assert_eq!(first, "row-lock", "{why:#}");
    // Four wait, and one sleeps.
    assert!((0.7..=0.9).contains(&share), "{why:#}");
    let reason = why["suspects"][0]["text"].as_str().unwrap();
    for words in ["shop.orders (PRIMARY)", "held by", "sampled time", "95 % interval", "connected clients"] {
        assert!(reason.contains(words), "{words} is missing in {reason}");
    }
    assert!(printed.contains("1. row-lock") && printed.contains("shop.orders (PRIMARY)"), "{printed}");
    assert!(!printed.contains("Nobody is suspected") && !printed.contains("0 users"), "{printed}");
    let sessions = &run["levels"][0]["result"]["sessions"];
    let mean = |name: &str| sessions[name].as_f64().unwrap();
    assert!((4.5..=5.5).contains(&mean("active_mean")), "{sessions}");
    assert!((4.5..=6.0).contains(&mean("clients_mean")), "{sessions}");

    // A table that is being changed, behind a transaction that has read it, and readers behind both. The server seems to be elsewhere.
    let mut clients = Clients::start(&server, &["BEGIN; SELECT COUNT(*) FROM shop.orders; DO SLEEP(60)"]);
    std::thread::sleep(std::time::Duration::from_millis(500));
    clients.add(Clients::start(&server, &["ALTER TABLE shop.orders ADD w INT"]));
    std::thread::sleep(std::time::Duration::from_millis(500));
    clients.add(Clients::start(&server, &["SELECT COUNT(*) FROM shop.orders"; 3]));
    let (why, printed, _) = recorded(&server, "127.0.0.2", "6s");
    drop(clients);
    end_sessions(&server);
    assert_eq!(suspects(&why)[0].0, "metadata-lock", "{why:#}");
    assert!(suspects(&why).iter().all(|(id, _)| *id != "row-lock"), "{why:#}");
    let reason = why["suspects"][0]["text"].as_str().unwrap();
    assert!(reason.contains("'Waiting for table metadata lock'"), "{reason}");
    assert!(!printed.contains("0 users"), "{printed}");

    let busy = "SET @a = 0; SELECT BENCHMARK(400000000, MD5('x'))";
    let clients = Clients::start(&server, &[busy; 2]);
    let (why, printed, _) = recorded(&server, "127.0.0.1", "6s");
    drop(clients);
    let named = suspects(&why);
    assert!(!named.is_empty() && named.iter().all(|(id, _)| !id.contains("lock")), "{why:#}");
    assert!(!printed.contains("0 users"), "{printed}");
}

#[test]
fn without_the_right_to_see_other_sessions_this_is_reported() {
    let server = with_orders(OwnServer::start());
    server.sql("CREATE USER guest@'%'");
    let clients = Clients::start(&server, &["DO SLEEP(60)"; 4]);
    let place = Place::new();
    let dsn = format!("mysql://guest@127.0.0.1:{}/", server.port);
    let args = ["record", "--dsn", &dsn, "--for", "3s", "--json"];
    let out = finish(common::spawn(&mut as_nobody(&place, &args)), common::SOON);
    drop(clients);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let now = output(&mut place.whyso(&["locks", "--dsn", &dsn]));
    let now = text(&now.stdout);
    assert!(now.starts_with("Who waits for rows is not known") && !now.contains("No connection"), "{now}");
    let info = std::fs::read_to_string(place.only_run().join("run.json")).unwrap();
    let info: Value = serde_json::from_str(&info).unwrap();
    let printed = info["not_measured"].to_string();
    assert!(printed.contains("sessions of other users") && printed.contains("grant PROCESS"), "{printed}");
    // Its data directory, with the pid file, may not be read by everybody.
    assert_eq!(info["server"]["pid"], server.pid(), "{}", info["server"]);
}

#[test]
#[ignore = "long: make test-hard"]
fn busy_programs_next_to_a_server_are_suspected_by_name_and_its_clients_are_not() {
    let server = with_orders(OwnServer::start());
    let place = Place::new();
    let queries = "SELECT COUNT(*) FROM shop.orders;\n".repeat(400_000);
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-uroot", "-S"]).arg(server.socket());
    client.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = client.spawn().unwrap();
    let mut input = client.stdin.take().unwrap();
    // Ends with the client, whose pipe then breaks.
    let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut input, queries.as_bytes()));
    let _client = Clients(vec![client]);

    let alone = recorded_as_root(&server, &place);
    assert!(!alone.contains("busyloop"), "{alone}");
    // Where the machine has other busy programs, it says how much they used; else nobody is suspected.
    if alone.contains(". noisy-neighbour:") {
        let used =
            alone.split(" % of the CPUs meanwhile").next().and_then(|before| before.rsplit(' ').next());
        assert!(used.unwrap_or_default().parse::<f64>().is_ok_and(|used| used >= 10.0), "{alone}");
    }
    assert!(
        !alone.contains("(mariadb ") && !alone.contains(", mariadb "),
        "the load is no neighbour: {alone}"
    );

    let program = place.path().join("busyloop");
    std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
    let busy = |_| Command::new(&program).args(["-c", "while :; do :; done"]).spawn().unwrap();
    let busy = Clients((0..4).map(busy).collect());
    let report = recorded_as_root(&server, &place);
    drop(busy);
    assert!(report.contains("1. noisy-neighbour:"), "{report}");
    let share = report.split("busyloop ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    assert!(share.parse::<f64>().is_ok_and(|share| share >= 5.0), "{report}");
    assert!(!report.contains("(mariadb ") && !report.contains(", mariadb "), "{report}");
    drop(_client);
    let _ = feeder.join();
}

/// What `whyso record` prints, by root.
fn recorded_as_root(server: &OwnServer, place: &Place) -> String {
    let dsn = server.dsn("root", "");
    let printed = output(&mut place.whyso(&["record", "--dsn", &dsn, "--for", "5s"]));
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    one_line(&text(&printed.stdout))
}

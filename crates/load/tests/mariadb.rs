//! The load against a real MariaDB.

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::Server;
use whyso_load::{
    Address, Cause, Engine, EngineKind, Limits, LoadError, LoadSpec, NativeWork, ROLLBACK, TRANSACTION,
    Target, Tls,
};
use whyso_workload::{Options, Workload, builtin_names};

const TABLES: u32 = 2;
const ROWS: u32 = 1000;

fn workload(name: &str, set: &[(&str, &str)]) -> Workload {
    let mut options = Options { tables: TABLES, table_size: ROWS.into(), ..Options::default() };
    for (name, value) in set {
        options.set(name, value).unwrap();
    }
    Workload::builtin(name, &options).unwrap()
}

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Waits, for thirty seconds at most, until something holds.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come about");
        pause(10);
    }
}

#[test]
fn a_level_s_result_adds_up_and_agrees_with_the_server() {
    let server = Server::start(&[]);
    server.load_tables(TABLES, ROWS);
    let mut engine =
        Engine::connect(&server.target(), &workload("oltp-read-write", &[]), 4, 1, None).unwrap();
    let commits = || -> u64 {
        let shown = server.sql("SHOW GLOBAL STATUS LIKE 'Com_commit'");
        shown.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let mut level = engine.level(3).unwrap();
    pause(400);
    let window_begin_ns = level.begin_measuring();
    let commits_before = commits();
    pause(1300);
    let commits_after = commits();
    assert!(level.thread_ids().iter().all(|id| *id > 0));
    assert!(level.live().transactions > 0);
    let (outcome, intervals) = level.stop_with_intervals();
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.window_begin_ns, window_begin_ns);
    let on_server = commits_after - commits_before;
    assert!(
        outcome.transactions >= on_server && outcome.transactions > 0,
        "{} of {on_server}",
        outcome.transactions
    );

    assert_eq!(outcome.response.count(), outcome.transactions);
    let binned: u64 = outcome.bins_100ms.iter().map(|n| u64::from(*n)).sum();
    assert_eq!(binned, outcome.transactions);
    let of = |kind: &str| outcome.kinds.iter().find(|k| k.kind == kind).unwrap();
    assert_eq!(of("commit").count, outcome.transactions);
    // Three transactions may lie across each edge, and an attempt that is begun again selects again.
    let at_edges_and_again = 10 * (3 + outcome.retries);
    assert!(of("point_select").count.abs_diff(outcome.transactions * 10) <= at_edges_and_again);
    assert!(of("point_select").rows <= of("point_select").count);
    assert!(of("simple_range").rows > of("simple_range").count * 10);
    assert_eq!(of("sum_range").rows, of("sum_range").count);
    assert_eq!(of("insert").rows, 0);
    let answered: u64 = outcome.kinds.iter().map(|kind| kind.count + kind.errors).sum();
    assert_eq!(outcome.queries, answered);
    let retried: u64 = outcome.errors_by_code.values().sum();
    // The error may lie before an edge, and the new attempt that follows its rollback after it.
    assert!(outcome.retries.abs_diff(retried) <= 3, "{} after {retried}", outcome.retries);

    assert!(intervals.windows(2).all(|pair| pair[0].end_ns == pair[1].begin_ns));
    let measured = || intervals.iter().filter(|interval| interval.measured);
    assert_eq!(measured().next().unwrap().begin_ns, outcome.window_begin_ns);
    assert_eq!(measured().next_back().unwrap().end_ns, outcome.window_end_ns);
    let in_intervals: u64 = measured().map(|interval| interval.rows[0].count).sum();
    assert_eq!(in_intervals, outcome.transactions);
    assert!(measured().all(|interval| interval.rows[0].statement == TRANSACTION));

    assert_eq!((outcome.client.threads, outcome.users), (outcome.engine.loops, 3));
    assert!(outcome.client.threads_cpu_ns > 0);
    assert!(outcome.client.process_cpu_ns >= outcome.client.threads_cpu_ns / 2);
}

#[test]
fn every_workload_runs_with_every_distribution() {
    let server = Server::start(&[]);
    server.load_tables(TABLES, ROWS);
    let types = ["uniform", "zipfian", "pareto", "gaussian", "special"];
    for (name, rand_type) in builtin_names().iter().zip(types.iter().cycle()) {
        let workload = workload(name, &[("rand-type", rand_type)]);
        server.set_up(&workload);
        let mut engine = Engine::connect(&server.target(), &workload, 2, 1, None).unwrap();
        let mut level = engine.level(2).unwrap();
        level.begin_measuring();
        let before = level.live().transactions;
        wait_for("twenty more transactions", || level.live().transactions >= before + 20);
        let outcome = level.stop();
        assert_eq!(outcome.failure, None, "{name}");
        // One a user may have been counted live after the window began, but completed before.
        assert!(outcome.transactions >= 18, "{name}: {}", outcome.transactions);
    }
    // Numbers of rows alone would be the same where as many were inserted as deleted.
    let in_tables = |what: &str, ends: &str| {
        let of_each = (1..=TABLES).map(|table| format!("SELECT id FROM whyso.sbtest{table}"));
        let all = of_each.collect::<Vec<_>>().join(" UNION ALL ");
        server.sql(&format!("SELECT {what} FROM ({all}) AS t {ends}")).parse::<u32>().unwrap()
    };
    assert!(in_tables("MAX(id)", "") > ROWS, "oltp-insert leaves its mark");
    let left = in_tables("COUNT(*)", &format!("WHERE id <= {ROWS}"));
    assert!(left < TABLES * ROWS, "oltp-delete leaves its mark");
}

#[test]
fn deadlocks_are_rolled_back_counted_and_begun_again() {
    let server = Server::start(&[]);
    server.load_tables(TABLES, ROWS);
    let set = [("tables", "1"), ("table_size", "4"), ("index_updates", "6"), ("rand-type", "uniform")];
    let mut engine =
        Engine::connect(&server.target(), &workload("oltp-write-only", &set), 8, 1, None).unwrap();
    let mut level = engine.level(8).unwrap();
    level.begin_measuring();
    wait_for("deadlocks", || level.live().errors >= 5);
    let before = level.live().transactions;
    wait_for("progress after them", || level.live().transactions >= before + 50);
    let outcome = level.stop();
    assert_eq!(outcome.failure, None);
    let (code, count) = outcome.errors_by_code.iter().next().unwrap();
    assert_eq!(code.to_string(), "1213 (40001)");
    assert!(outcome.retries.abs_diff(*count) <= 8, "{} after {count}", outcome.retries);
    let rollbacks = outcome.kinds.iter().find(|kind| kind.kind == ROLLBACK).unwrap();
    assert!(rollbacks.count.abs_diff(*count) <= 8);
    assert!(outcome.response.sum_ns() > outcome.service.sum_ns());
    assert_eq!(server.sql("SELECT COUNT(*) FROM information_schema.INNODB_TRX"), "0", "nothing is left open");
}

#[test]
fn a_lock_timeout_lengthens_the_response_but_not_the_service_time() {
    let server = Server::start(&["--innodb-lock-wait-timeout=1"]);
    server.load_tables(TABLES, ROWS);
    let set = [("tables", "1"), ("table_size", "1")];
    let mut engine =
        Engine::connect(&server.target(), &workload("oltp-update-index", &set), 1, 1, None).unwrap();
    let mut holder = Command::new("mariadb")
        .args(["--no-defaults", "-uroot", "-e"])
        .arg("BEGIN; SELECT id FROM whyso.sbtest1 WHERE id = 1 FOR UPDATE; DO SLEEP(5)")
        .arg("-S")
        .arg(server.socket())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the lock", || {
        // InnoDB answers from a copy that it renews only when nobody has asked for 100 ms.
        pause(150);
        server.sql("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_rows_locked > 0") != "0"
    });
    let mut level = engine.level(1).unwrap();
    level.begin_measuring();
    wait_for("a transaction", || level.live().transactions >= 1);
    let outcome = level.stop();
    holder.wait().unwrap();
    let codes: Vec<String> = outcome.errors_by_code.keys().map(|code| code.to_string()).collect();
    assert_eq!(codes, ["1205 (HY000)"]);
    assert!(outcome.response.max_ns() > 1_000_000_000, "{:?}", outcome.response);
    assert!(outcome.service.max_ns() < outcome.response.max_ns() - 900_000_000, "{:?}", outcome.service);
}

#[test]
fn any_other_error_ends_the_level_and_names_the_statement() {
    let server = Server::start(&[]);
    server.load_tables(1, ROWS);
    let workload = workload("oltp-point-select", &[("tables", "1")]);
    let mut engine = Engine::connect(&server.target(), &workload, 2, 1, None).unwrap();
    let mut level = engine.level(2).unwrap();
    level.begin_measuring();
    wait_for("progress", || level.live().transactions > 10);
    server.sql("DROP TABLE whyso.sbtest1");
    wait_for("a failure", || level.failure().is_some());
    pause(300);
    let outcome = level.stop();
    let failure = outcome.failure.unwrap();
    assert!(matches!(failure.cause, Cause::ServerError(code) if code.errno == 1146), "{failure:?}");
    assert!(
        failure.message.contains("point_select (SELECT c FROM sbtest1 WHERE id=?)"),
        "{}",
        failure.message
    );
    assert_eq!(outcome.window_end_ns, failure.at_ns, "the window ends with the level");
    assert!(outcome.transactions > 10);
    let refused = engine.level(3).err().unwrap().to_string();
    assert!(refused.contains("ask for 1 to 2"), "{refused}");
}

#[test]
fn a_killed_server_ends_the_level_and_the_next_one_connects_anew() {
    let mut server = Server::start(&[]);
    server.load_tables(TABLES, ROWS);
    let mut engine = Engine::connect(&server.target(), &workload("oltp-read-only", &[]), 3, 1, None).unwrap();
    let level = engine.level(2).unwrap();
    assert!(matches!(engine.level(1), Err(LoadError::Busy)));
    wait_for("progress", || level.live().transactions > 10);
    server.restart(&[]);
    wait_for("a failure", || level.failure().is_some());
    let outcome = level.stop();
    assert_eq!(outcome.failure.as_ref().unwrap().cause, Cause::ConnectionLost);
    assert_eq!(
        (outcome.transactions, outcome.window_begin_ns),
        (0, outcome.window_end_ns),
        "it was never measured"
    );
    let level = engine.level(3).unwrap();
    wait_for("progress", || level.live().transactions > 10);
    assert_eq!(level.stop().failure, None);
}

#[test]
fn a_level_goes_across_a_restart_where_that_is_wanted() {
    let mut server = Server::start(&[]);
    server.load_tables(TABLES, ROWS);
    let limits = Limits { reconnect: Duration::from_secs(20), ..Limits::default() };
    let workload = workload("oltp-point-select", &[]);
    let mut engine = Engine::connect_with(&server.target(), &workload, 2, 1, None, limits).unwrap();
    let mut level = engine.level(2).unwrap();
    level.begin_measuring();
    wait_for("progress", || level.live().transactions > 10);
    server.restart(&[]);
    // The question itself takes a third connection.
    let connected = || server.sql("SHOW GLOBAL STATUS LIKE 'Threads_connected'").contains("\t3");
    wait_for("both users", connected);
    let before = level.live().transactions;
    wait_for("progress after the restart", || level.live().transactions > before + 100);
    let outcome = level.stop();
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.reconnects, 2);
    let codes: Vec<u16> = outcome.errors_by_code.keys().map(|code| code.errno).collect();
    assert_eq!(codes, [2013]);
}

#[test]
fn a_statement_that_waits_beyond_the_bound_ends_the_level_and_stopping_is_prompt() {
    let server = Server::start(&[]);
    server.load_tables(1, ROWS);
    let limits =
        Limits { stall: Duration::from_millis(500), stop: Duration::from_millis(300), ..Limits::default() };
    let workload = workload("oltp-update-index", &[("tables", "1"), ("table_size", "1")]);
    let lock = || {
        Command::new("mariadb")
            .args(["--no-defaults", "-uroot", "-e"])
            .arg("LOCK TABLES whyso.sbtest1 WRITE; DO SLEEP(30)")
            .arg("-S")
            .arg(server.socket())
            .spawn()
            .unwrap()
    };
    let mut engine = Engine::connect_with(&server.target(), &workload, 1, 1, None, limits).unwrap();
    let level = engine.level(1).unwrap();
    wait_for("progress", || level.live().transactions > 10);
    let mut holder = lock();
    wait_for("a failure", || level.failure().is_some());
    let outcome = level.stop();
    let failure = outcome.failure.unwrap();
    assert_eq!(failure.cause, Cause::NoAnswer);
    assert!(failure.message.contains("did not answer index_update"), "{}", failure.message);

    // Stopped while a statement is in flight: the socket is shut down after the bound.
    let patient = Limits { stall: Duration::from_secs(60), ..limits };
    let mut engine = Engine::connect_with(&server.target(), &workload, 1, 1, None, patient).unwrap();
    let level = engine.level(1).unwrap();
    pause(100);
    let before = Instant::now();
    let outcome = level.stop();
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    assert_eq!(outcome.failure, None);
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn accounts_are_logged_in_or_refused_with_the_server_s_reason() {
    let server = Server::start(&["--max-connections=12"]);
    server.load_tables(TABLES, ROWS);
    server.sql("CREATE USER native IDENTIFIED VIA mysql_native_password USING PASSWORD('sesame')");
    server.sql("GRANT ALL ON whyso.* TO native");
    let workload = workload("oltp-point-select", &[]);
    let connect = |target: &Target| Engine::connect(target, &workload, 1, 1, None).map(|_| ());
    connect(&server.target_of("native", "sesame")).unwrap();
    let message = connect(&server.target_of("native", "wrong")).unwrap_err().to_string();
    assert!(message.contains("refused user 'native'") && message.contains("1045"), "{message}");
    let other_schema = Target { schema: "elsewhere".to_string(), ..server.target() };
    let message = connect(&other_schema).unwrap_err().to_string();
    assert!(message.contains("Unknown database 'elsewhere'"), "{message}");
    let message = Engine::connect(&server.target(), &workload, 40, 1, None).err().unwrap().to_string();
    assert!(message.contains("Too many connections"), "{message}");
    let nowhere = Target { address: Address::Unix("/nowhere/s".into()), ..server.target() };
    let message = connect(&nowhere).unwrap_err().to_string();
    assert!(message.contains("can't connect to /nowhere/s"), "{message}");
    server.sql("DROP TABLE whyso.sbtest2");
    let message = connect(&server.target()).unwrap_err().to_string();
    assert!(
        message.contains("prepare") && message.contains("sbtest2") && message.contains("1146"),
        "{message}"
    );
}

/// Carries TCP to the server's Unix socket, so that the server needs no port.
fn carry_tcp(server: &Server) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let path = server.socket();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, UnixStream::connect(&path)) else { return };
            client.set_nodelay(true).unwrap();
            let ends = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || carry(ends.0, ends.1));
            std::thread::spawn(move || carry(server, client));
        }
    });
    port
}

fn carry(mut from: impl Read, mut to: impl Write) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

#[test]
fn tls_is_verified_unless_it_is_asked_not_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=db.test"])
        .args(["-addext", "subjectAltName=DNS:db.test", "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(path("key.pem"))
        .arg("-out")
        .arg(path("cert.pem"))
        .output()
        .expect("openssl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cert = format!("--ssl-cert={}", path("cert.pem").display());
    let key = format!("--ssl-key={}", path("key.pem").display());
    let server = Server::start(&[&cert, &key]);
    server.load_tables(TABLES, ROWS);
    server
        .sql("CREATE USER guarded IDENTIFIED VIA mysql_native_password USING PASSWORD('sesame') REQUIRE SSL");
    server.sql("GRANT ALL ON whyso.* TO guarded");
    let port = carry_tcp(&server);
    let target = |tls: Tls| Target {
        address: Address::Tcp { host: "127.0.0.1".to_string(), port },
        tls,
        ..server.target_of("guarded", "sesame")
    };
    let workload = workload("oltp-read-write", &[]);
    let connect = |tls: Tls| Engine::connect(&target(tls), &workload, 2, 1, None);
    let verify = |ca: Option<&str>, host: &str| Tls::Verify { ca: ca.map(&path), host: host.to_string() };

    let message = connect(Tls::Off).err().unwrap().to_string();
    assert!(message.contains("refused user 'guarded'"), "{message}");
    let message = connect(verify(Some("cert.pem"), "other.test")).err().unwrap().to_string();
    assert!(message.contains("can't use TLS"), "{message}");
    let message = connect(verify(Some("missing.pem"), "db.test")).err().unwrap().to_string();
    assert!(message.contains("missing.pem"), "{message}");
    let engines = [EngineKind::Threads, EngineKind::Epoll, EngineKind::IoUring];
    let wanted = [Tls::Insecure, verify(Some("cert.pem"), "db.test")];
    for (tls, kind) in wanted.iter().flat_map(|tls| engines.map(|kind| (tls.clone(), kind))) {
        let spec = LoadSpec { engine: kind, ..LoadSpec::new(target(tls), 2, 1) };
        let mut engine = Engine::open(&spec, Arc::new(NativeWork::new(&workload, 1))).unwrap();
        let mut level = engine.level(2).unwrap();
        level.begin_measuring();
        let before = level.live().transactions;
        wait_for("progress", || level.live().transactions > before + 10);
        let outcome = level.stop();
        assert_eq!(outcome.failure, None);
        assert!(outcome.transactions > 0);
    }
}

//! `whyso record --trace-sql` on servers of every kind. Rows, errors and connections are what the server sent its
//! clients. Whatever lies between client and server, the statements are those that were sent.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::bare_client::*;
use common::{OwnServer, Place, for_each_build, json_of, output, text};
use serde_json::{Value, json};

/// Bound on all builds together: past it, the rest is not tested.
const ALL: Duration = Duration::from_secs(420);

/// A statement, and what is expected of it: rows sent, rows affected, and its error; of rows examined the least and the most.
struct ExpectedCounts {
    sql: &'static str,
    sent: u64,
    examined: std::ops::RangeInclusive<u64>,
    affected: Option<u64>,
    error: u64,
}

fn expect(
    sql: &'static str,
    sent: u64,
    examined: std::ops::RangeInclusive<u64>,
    affected: Option<u64>,
) -> ExpectedCounts {
    ExpectedCounts { sql, sent, examined, affected, error: 0 }
}

fn fails(sql: &'static str, error: u64) -> ExpectedCounts {
    ExpectedCounts { sql, sent: 0, examined: 0..=1, affected: None, error }
}

/// In a schema of their own. What a server examines of its own accord differs from version to version: where that matters, there is room.
fn statements() -> Vec<ExpectedCounts> {
    vec![
        expect("CREATE TABLE t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB", 0, 0..=99, Some(0)),
        expect("INSERT INTO t VALUES (1,1),(2,2),(3,3),(4,4),(5,5),(6,6),(7,7)", 0, 0..=99, Some(7)),
        expect("SELECT a FROM t", 7, 7..=7, None),
        expect("SELECT a FROM t LIMIT 2", 2, 2..=2, None),
        expect("SELECT a FROM t WHERE a > 5", 2, 7..=7, None),
        expect("SELECT a FROM t WHERE id = 3", 1, 0..=1, None),
        expect("SELECT SUM(x.a) FROM t AS x STRAIGHT_JOIN t AS y", 1, 7..=63, None),
        expect("UPDATE t SET a = 0 WHERE id <= 3", 0, 3..=7, Some(3)),
        fails("INSERT INTO t VALUES (8,8),(1,1)", 1062),
        fails("SELECT nothing FROM t", 1054),
        fails("SELEC 1", 1064),
        expect("DELETE FROM t WHERE a = 0", 0, 7..=7, Some(3)),
        expect("DO 0", 0, 0..=1, Some(0)),
    ]
}

fn check_counts(name: &str, place: &Place, dsn: &str, socket: &Path) {
    let client = || {
        let mut client = Client::log_in(socket);
        client.query("CREATE DATABASE whyso_counts");
        client.command(COM_INIT_DB, b"whyso_counts");
        for statement in statements() {
            client.query(statement.sql);
        }
        let rest = client.prepare("SELECT id FROM t").unwrap();
        client.execute(rest);
        client.command(COM_PING, b"");
        client.query("DROP DATABASE whyso_counts");
        client.queries("DO 1; SELECT 1 UNION SELECT 2", 2);
    };
    let Some(run) = recorded(place, dsn, &[], client) else { return };
    let log = log_of(place, &run);
    let about = std::fs::read_to_string(Path::new(&run).join("run.json")).unwrap();
    let about: Value = serde_json::from_str(&about).unwrap();
    let describe = |command: &Value| format!("{name}: {command}\n{}", about["not_measured"]);
    for (expected, command) in statements().iter().zip(&log[2..]) {
        assert_eq!(command["command"], "QUERY", "{}", describe(command));
        assert_eq!(
            command["length"].as_u64().map_or(expected.sql.len(), |length| length as usize),
            expected.sql.len()
        );
        assert_eq!(command["error"], expected.error, "{}", describe(command));
        assert_eq!(command["rows_sent"], expected.sent, "{}", describe(command));
        if expected.error == 0 {
            // MariaDB clears them before its dispatcher returns.
            let has_examined = command["rows_examined"].is_u64();
            assert_eq!(has_examined, name.starts_with("mysql"), "{}", describe(command));
            let examined = command["rows_examined"].as_u64().unwrap_or(*expected.examined.start());
            assert!(expected.examined.contains(&examined), "{}", describe(command));
            assert_eq!(command["rows_affected"], json!(expected.affected), "{}", describe(command));
        }
    }
    let [.., prepared, executed, ping, _, several] = &log[..] else { panic!("{log:?}") };
    assert_eq!(prepared["command"], "STMT_PREPARE", "{}", describe(prepared));
    let counts = |command: &Value| [command["rows_sent"].clone(), command["error"].clone()];
    assert_eq!(counts(executed), [json!(4), json!(0)], "{}", describe(executed));
    assert_eq!(counts(ping), [Value::Null, json!(0)], "{}", describe(ping));
    assert_eq!(several["rows_sent"], 2, "of several statements the last one's: {}", describe(several));

    let failing = ["statements", &run, "--by", "errors,rows", "--json", "--limit", "1"];
    let failing = json_of(&output(&mut place.whyso(&failing)));
    assert_eq!(failing["statements"][0]["sum"]["errors"], 1, "{failing}");
    let of_one = ["statements", &run, "--statement", "from T where A >", "--json"];
    let of_one = json_of(&output(&mut place.whyso(&of_one)));
    assert_eq!(of_one["statements"].as_array().unwrap().len(), 1, "{of_one}");
    let connection = log[0]["connection"].to_string();
    let of_other = ["statements", &run, "--connection", &connection, "--statement", "DO"];
    let of_other = text(&output(&mut place.whyso(&of_other)).stdout);
    assert!(of_other.contains("DO ?"), "{of_other}");
    println!("{name}: {} commands have their rows, errors and connection", log.len());
}

#[test]
fn rows_errors_and_connections_are_recorded_on_this_machine_s_own_server() {
    let (place, server) = (Place::new(), OwnServer::start());
    check_counts("own", &place, &server.dsn("root", ""), &server.socket());
}

#[test]
fn rows_errors_and_connections_are_recorded_on_every_available_server() {
    for_each_build(ALL, |name, build| {
        let place = Place::new();
        let started =
            output(&mut place.whyso(&["server", "start", build["tree"].as_str().unwrap(), "--as", "tested"]));
        assert!(started.status.success(), "{name}: {}", text(&started.stderr));
        let listed = json_of(&output(&mut place.whyso(&["server", "list", "--json"])));
        let dsn = listed["started"][0]["dsn"].as_str().unwrap().replace("/whyso?", "/?");
        let socket = dsn.split("socket=").nth(1).unwrap().to_string();
        let checked = std::panic::catch_unwind(|| check_counts(name, &place, &dsn, Path::new(&socket)));
        output(&mut place.whyso(&["server", "stop", "tested"]));
        if let Err(panic) = checked {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn a_pool_of_threads_is_followed_connection_by_connection() {
    let (place, server) = (Place::new(), OwnServer::start_with(&["--thread-handling=pool-of-threads"]));
    let socket = server.socket();
    let texts = |number: usize| (0..30).map(move |row| format!("SELECT a{number}, b FROM nowhere.t{row}"));
    let client = || {
        let mut clients = [Client::log_in(&socket), Client::log_in(&socket)];
        for (one, two) in texts(1).zip(texts(2)) {
            clients[0].query(&one);
            clients[1].query(&two);
        }
        for client in &mut clients {
            let sum = client.prepare("SELECT 7 + 8").unwrap();
            client.execute(sum);
        }
    };
    let Some(run) = recorded(&place, &server.dsn("root", ""), &[], client) else { return };
    let log = whole_log(&place, &run);
    for number in [1, 2] {
        let first = log
            .iter()
            .find(|command| command["statement"] == texts(number).next().unwrap())
            .expect("the first");
        let of_it: Vec<&Value> =
            log.iter().filter(|command| command["connection"] == first["connection"]).collect();
        let logged: Vec<&str> = of_it.iter().filter_map(|command| command["statement"].as_str()).collect();
        let sent: Vec<String> =
            texts(number).chain(["SELECT ? + ?", "SELECT ? + ?"].map(str::to_string)).collect();
        assert_eq!(logged, sent);
        let (query, execute) = (&of_it[0], of_it.last().unwrap());
        assert_eq!((&query["error"], &query["rows_sent"]), (&json!(1146), &json!(0)));
        assert_eq!((&execute["error"], &execute["rows_sent"]), (&json!(0), &json!(1)));
    }
}

/// Asserts that the log has the statements that a client sent, one command each.
fn assert_client_is_logged(server: &OwnServer, more: &[&str], through: &str) {
    let place = Place::new();
    let sent: Vec<String> = (1..=20).map(|row| format!("SELECT c{row} FROM nowhere.t")).collect();
    let client = || {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "--user=root", "--host=127.0.0.1", "--protocol=tcp"])
            .arg(format!("--port={}", server.port))
            .args(more)
            .args(["--execute", &format!("{}; SHOW STATUS LIKE '{through}'", sent.join("; "))])
            // A statement on the command line resets it.
            .arg("--force")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let shown = text(&output.stdout);
        assert!(shown.contains(through) && !shown.contains("OFF"), "{shown}{}", text(&output.stderr));
    };
    let Some(run) = recorded(&place, &server.dsn("root", ""), &["--keep-literals"], client) else { return };
    let log = log_of(&place, &run);
    let logged: Vec<&str> = log.iter().filter_map(|command| command["text"].as_str()).collect();
    let begin = logged.iter().position(|text| *text == sent[0]).unwrap_or_else(|| panic!("{logged:?}"));
    assert_eq!(logged[begin..begin + sent.len()], sent);
    let of_sent =
        log.iter().filter(|command| command["text"].as_str().is_some_and(|text| text.contains("nowhere")));
    assert!(of_sent.clone().all(|command| command["error"] == 1146), "{log:?}");
    assert_eq!(of_sent.count(), sent.len());
}

#[test]
fn what_arrives_over_tls_and_compressed_is_shown_as_it_was_sent() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let openssl = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-keyout", &path("key.pem"), "-out", &path("certificate.pem")])
        .output();
    assert!(
        openssl.is_ok_and(|output| output.status.success()),
        "openssl is needed: apt-get install openssl"
    );
    let (key, certificate) =
        (format!("--ssl-key={}", path("key.pem")), format!("--ssl-cert={}", path("certificate.pem")));
    let server = OwnServer::start_with(&[&key, &certificate]);
    assert_client_is_logged(&server, &["--ssl", "--ssl-verify-server-cert=0"], "Ssl_version");
    assert_client_is_logged(&server, &["--compress", "--skip-ssl"], "Compression");
}

#[test]
fn what_only_one_reading_of_backslashes_shows_is_left_out_whatever_the_server_s_sql_mode() {
    let (place, server) = (Place::new(), OwnServer::start_with(&["--sql-mode=NO_BACKSLASH_ESCAPES"]));
    let socket = server.socket();
    let client = || Client::log_in(&socket).query(r"SELECT 'a\', 'secret' FROM dual");
    let Some(run) = recorded(&place, &server.dsn("root", ""), &[], client) else { return };
    let log = log_of(&place, &run);
    // A session may set its own mode: what is outside of strings by the server's lies in one where backslashes escape.
    assert_eq!(log.last().unwrap()["statement"], "SELECT ? …");
}

#[test]
#[ignore = "long: make test-hard"]
fn the_trace_goes_on_with_a_server_that_was_started_anew() {
    let place = Place::new();
    let more =
        ["--users", "2", "--seconds", "8", "--no-repeat", "--trace-sql", "--at", "2s", "restart", "--json"];
    let out = json_of(&output(&mut place.run(&more)));
    let run = out["path"].as_str().unwrap();
    let shown = output(&mut place.whyso(&["statements", run, "--log", "--json"]));
    if text(&shown.stderr).contains("this run holds no commands: ") {
        whyso_testing::tracer_not_tested(text(&shown.stderr));
        return;
    }
    let log = json_of(&shown);
    let commands = log["commands"].as_array().unwrap();
    let first_ns = commands[0]["t_ns"].as_i64().unwrap();
    let executions: Vec<&Value> =
        commands.iter().filter(|command| command["command"] == "STMT_EXECUTE").collect();
    let late: Vec<&&Value> = executions
        .iter()
        .filter(|command| command["t_ns"].as_i64().unwrap() > first_ns + 7_000_000_000)
        .collect();
    assert!(late.len() > 100, "{} of {} executions are of the new server", late.len(), executions.len());
    let counted = |command: &&&&Value| command["rows_sent"].is_u64() && command["error"] == 0;
    let complete = late.iter().filter(counted).count();
    assert!(complete * 10 >= late.len() * 9, "{complete} of {} are complete", late.len());
}

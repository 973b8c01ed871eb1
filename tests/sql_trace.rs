//! `whyso record --trace-sql`: the recorded commands are those that a client sent, one for one.

mod common;

use std::fs;
use std::path::Path;

use common::bare_client::*;
use common::{OwnServer, Place, json_of, output, text};
use serde_json::Value;

/// What is expected of a command: name, length, and the statement as it is shown.
type ExpectedCommand = (&'static str, Option<u64>, Option<String>);

/// Sends one of everything, and says what was sent.
fn send_commands(socket: &Path) -> Vec<ExpectedCommand> {
    let quoted = "SELECT 'it''s a secret', 42 /* don't */ FROM dual";
    let wrong = "SELECT nothing FROM nowhere";
    let (first_sql, second_sql) =
        ("SELECT 1, 'one' FROM dual", "SELECT User FROM user WHERE Host = 'h' LIMIT 0");
    let prepare = "PREPARE other FROM 'SELECT 2'";
    let long = format!("SELECT '{}', 1 FROM dual", "y".repeat(3000));
    let password = "SET PASSWORD FOR nobody@nowhere = PASSWORD('secret')";
    let mut client = Client::log_in(socket);
    client.command(COM_PING, b"");
    client.command(COM_INIT_DB, b"mysql");
    client.query(quoted);
    client.query(wrong);
    let first = client.prepare(first_sql).unwrap();
    // It takes a number of the connection's, too.
    client.query(prepare);
    assert_eq!(client.prepare("SELEC 3"), None);
    let second = client.prepare(second_sql).unwrap();
    client.execute(second);
    client.execute(first);
    client.execute(4711);
    client.command(COM_STMT_RESET, &first.to_le_bytes());
    client.send_alone(COM_STMT_CLOSE, &first.to_le_bytes());
    client.execute(first);
    client.query(&long);
    client.query(password);
    client.command(COM_STATISTICS, b"");
    client.send_alone(COM_QUIT, b"");
    let expected = |name, length: usize, statement: &str| {
        (name, Some(length as u64), Some(statement.to_string()).filter(|statement| !statement.is_empty()))
    };
    let (first_text, second_text) = ("SELECT ?, … FROM dual", "SELECT User FROM user WHERE Host = ? LIMIT ?");
    vec![
        expected("PING", 0, ""),
        expected("INIT_DB", 5, "mysql"),
        expected("QUERY", quoted.len(), "SELECT ?, … FROM dual"),
        expected("QUERY", wrong.len(), wrong),
        expected("STMT_PREPARE", first_sql.len(), first_text),
        expected("QUERY", prepare.len(), "PREPARE other FROM ?"),
        expected("STMT_PREPARE", 7, "SELEC ?"),
        expected("STMT_PREPARE", second_sql.len(), second_text),
        expected("STMT_EXECUTE", 9, second_text),
        expected("STMT_EXECUTE", 9, first_text),
        expected("STMT_EXECUTE", 9, ""),
        expected("STMT_RESET", 4, first_text),
        expected("STMT_CLOSE", 4, first_text),
        expected("STMT_EXECUTE", 9, ""),
        expected("QUERY", long.len(), "SELECT ? …"),
        expected("QUERY", password.len(), "SET PASSWORD …"),
        expected("STATISTICS", 0, ""),
        expected("QUIT", 0, ""),
    ]
}

#[test]
fn the_log_has_what_a_client_sent_command_for_command_and_in_order() {
    let (place, server) = (Place::new(), OwnServer::start());
    let mut sent = Vec::new();
    let client = || sent = send_commands(&server.socket());
    let Some(run) = recorded(&place, &server.dsn("root", ""), &[], client) else { return };
    let log = log_of(&place, &run);
    let logged: Vec<(&str, Option<u64>, Option<String>)> = log
        .iter()
        .map(|command| {
            let statement = command["statement"].as_str().map(str::to_string);
            (command["command"].as_str().unwrap(), command["length"].as_u64(), statement)
        })
        .collect();
    assert_eq!(logged, sent);
    let begins: Vec<i64> = log.iter().map(|command| command["t_ns"].as_i64().unwrap()).collect();
    assert!(begins.is_sorted());
    for command in &log {
        let ns = |name: &str| command[name].as_u64().unwrap_or_else(|| panic!("no {name} in {command}"));
        assert!(ns("cpu_ns") > 0 && ns("cpu_ns") <= ns("response_ns"), "{command}");
        assert_eq!((&command["text"], &command["tid"]), (&Value::Null, &log[0]["tid"]));
    }
    assert_no_secret_is_in(&run);

    let tid = log[0]["tid"].to_string();
    let of_thread = json_of(&output(&mut place.whyso(&["statements", &run, "--thread", &tid, "--json"])));
    let counted: u64 = of_thread["statements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|statement| statement["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted as usize, log.len());
    assert!(of_thread["trace"]["probes_ns"].as_f64().unwrap() > 0.0);
    let table = text(&output(&mut place.whyso(&["statements", &run, "--by", "cpu,response"])).stdout);
    assert!(table.contains("SELECT User FROM user WHERE Host = ? LIMIT ?"), "{table}");
    assert!(table.contains("Cost of following a command: two probes in the server's thread, "), "{table}");
}

/// Neither the literals of statements nor a password are in any file of the recording.
fn assert_no_secret_is_in(run: &str) {
    for entry in fs::read_dir(run).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"secret"), "{}", path.display());
    }
}

#[test]
fn literals_are_recorded_on_request_but_never_a_password() {
    let (place, server) = (Place::new(), OwnServer::start());
    let socket = server.socket();
    let client = || {
        let mut client = Client::log_in(&socket);
        let statement = client.prepare("SELECT 'kept', 1 FROM dual").unwrap();
        client.execute(statement);
        client.query("SELECT PASSWORD('secret')");
        client.query("CREATE USER nobody IDENTIFIED BY 'secret'");
    };
    let dsn = server.dsn("root", "");
    let Some(run) = recorded(&place, &dsn, &["--keep-literals"], client) else { return };
    let log = log_of(&place, &run);
    let logged: Vec<(Option<&str>, Option<&str>)> =
        log.iter().map(|command| (command["statement"].as_str(), command["text"].as_str())).collect();
    let with_literals = (Some("SELECT ?, … FROM dual"), Some("SELECT 'kept', 1 FROM dual"));
    assert_eq!(
        logged,
        [with_literals, with_literals, (Some("SELECT PASSWORD(?)"), None), (Some("CREATE USER …"), None)]
    );
    let shown = text(&output(&mut place.whyso(&["statements", &run, "--log"])).stdout);
    assert!(shown.contains("STMT_EXECUTE      SELECT 'kept', 1 FROM dual"), "{shown}");
    assert_no_secret_is_in(&run);
}

#[test]
fn a_load_s_executions_are_shown_by_what_they_prepared_and_add_up_to_what_it_sent() {
    let place = Place::new();
    let more = ["--users", "4", "--seconds", "2", "--no-repeat", "--trace-sql", "--stacks", "--json"];
    let out = json_of(&output(&mut place.run(&more)));
    let run = out["path"].as_str().unwrap();
    let shown = output(&mut place.whyso(&["statements", run, "--json", "--limit", "1000"]));
    if text(&shown.stderr).contains("this run holds no commands: ") {
        whyso_testing::tracer_not_tested(text(&shown.stderr));
        return;
    }
    let found = json_of(&shown);
    let statements = found["statements"].as_array().unwrap();
    let executions: Vec<&Value> =
        statements.iter().filter(|statement| statement["command"] == "STMT_EXECUTE").collect();
    let unknown = executions.iter().find(|statement| statement["statement"].is_null());
    assert!(unknown.is_none(), "{unknown:?}");
    let count: u64 = executions.iter().map(|statement| statement["count"].as_u64().unwrap()).sum();
    let sent = out["levels"][0]["queries"].as_u64().unwrap();
    // Those under way at the window's ends, and what is sent of transactions that it does not count.
    assert!(count.abs_diff(sent) <= 4 * 40, "{count} executions of {sent} statements");
    // Every point select has one row, and errors are recorded of all.
    let points = executions
        .iter()
        .find(|statement| statement["statement"] == "SELECT c FROM sbtest1 WHERE id=?")
        .unwrap();
    assert_eq!((&points["sum"]["rows_sent"], &points["sum"]["errors"]), (&points["count"], &Value::from(0)));
    // The report has the same sums, and says what this server does not tell.
    let page = std::fs::read_to_string(format!("{run}/report.html")).unwrap();
    let head = page.split("id=\"whyso-head\">").nth(1).unwrap().split("</script>").next().unwrap();
    let head: Value = serde_json::from_str(head).unwrap();
    let rows = head["statements"]["levels"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|statement| statement["statement"] == points["statement"]).unwrap();
    assert_eq!((&row["count"], &row["sums"][0]), (&points["count"], &points["sum_ns"]["response"]));
    let markdown = text(&output(&mut place.whyso(&["report", run, "--format", "md"])).stdout);
    let line = markdown.lines().find(|line| line.starts_with("| SELECT c FROM sbtest1 WHERE id=? |"));
    assert!(line.is_some_and(|line| line.contains("| not known |")), "{markdown}");
    // Other views take their spans from it.
    let of_statement = ["functions", run, "--statement", "from SBTEST", "--by", "cpu", "--json"];
    let of_statement = json_of(&output(&mut place.whyso(&of_statement)));
    assert_eq!(of_statement["known_by"], "sql trace");
    assert!(of_statement["known_share"].as_f64().unwrap() > 0.5, "{}", of_statement["known_share"]);
    // The probes don't break stacks.
    let functions = output(&mut place.whyso(&["functions", run, "--by", "cpu,lock", "--json"]));
    let functions = json_of(&functions);
    let of = |name: &str| functions[name].as_f64().unwrap();
    let whole = 1.0 - of("rootless") / (of("samples") + of("waits"));
    assert!(whole >= 0.9, "{whole} of the stacks are whole");
}

#[test]
fn of_what_was_not_followed_the_message_has_the_option() {
    let place = Place::new();
    let out = json_of(&output(&mut place.run(&["--users", "1", "--seconds", "1", "--no-repeat", "--json"])));
    let shown = output(&mut place.whyso(&["statements", out["path"].as_str().unwrap()]));
    assert_eq!(shown.status.code(), Some(1));
    let why = "whyso: this run holds no commands: it was recorded without --trace-sql\n";
    assert_eq!(text(&shown.stderr), why);
    let wrong = output(&mut place.whyso(&["statements", out["path"].as_str().unwrap(), "--by", "reads"]));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("is no metric of statements"), "{}", text(&wrong.stderr));
}

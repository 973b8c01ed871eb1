//! `whyso watch` on a real server, in a real terminal: keys are sent by tmux, and the screen is read as it is shown.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::terminal::Terminal;
use common::{OwnServer, Place, SOON, output, text, wait_until};
use serde_json::Value;

/// Another program, for as long as this lives.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn load(place: &Place, server: &OwnServer, rate_per_s: &str) -> Other {
    let dsn = server.dsn("root", "");
    let mut load =
        place.whyso(&["load", "oltp-point-select", "--dsn", &dsn, "--users", "4", "--seconds", "300"]);
    load.args(["--rate", rate_per_s, "--tables", "1", "--rows", "1000"]);
    let load = Other(load.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    assert!(wait_until(SOON, || common::drives_a_level(load.0.id())), "the load did not begin");
    load
}

fn client(server: &OwnServer, sql: &str) -> Other {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--user=root", "--execute", sql]);
    client.arg(format!("--socket={}", server.socket().display()));
    Other(client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// The number that stands after a chart's title.
fn number_after(screen: &str, title: &str) -> Option<f64> {
    let rest = &screen[screen.find(title)? + title.len()..];
    rest.split_whitespace().next()?.replace(',', "").parse().ok()
}

fn is_about(value: Option<f64>, from: f64, to: f64) -> bool {
    value.is_some_and(|value| (from..=to).contains(&value))
}

#[test]
fn throughput_waits_and_time_are_shown_any_second_of_them_and_a_recording_where_it_is_wanted() {
    let (place, server) = (Place::new(), OwnServer::start_with(&["--performance-schema=ON"]));
    let loading = load(&place, &server, "700");
    let terminal = Terminal::start(&place, &["--dsn", &server.dsn("root", "")]);
    // The samplers' own statements are among them.
    let is_loaded = |screen: &str| is_about(number_after(screen, "Statements/s "), 650.0, 850.0);
    terminal.wait_for("700 statements a second", is_loaded);
    let screen = terminal.wait_for("where the time of a request goes", |screen| screen.contains("c cpu "));
    assert!(screen.contains("Response time"), "{screen}");

    // Why is what it begins with.
    terminal
        .wait_for("the limit and a cause", |screen| screen.contains(" limit ") && screen.contains("  try "));
    terminal.press(&["2"]);
    // What holds any second: all waits of a thread-per-connection server's files and tables are counted by default.
    terminal.wait_for("waits by event", |screen| {
        screen.contains("time/s▾") && screen.contains("wait/io/table/sql/handler")
    });
    terminal.press(&["s"]);
    terminal
        .wait_for("sorted by another column", |screen| !screen.contains("time/s▾") || screen.contains("▾"));
    terminal.press(&["/"]);
    terminal.press(&["-l", "aria"]);
    terminal.press(&["Enter"]);
    terminal.wait_for("lines with aria alone", |screen| {
        screen.contains("only \"aria\"") && !screen.contains("wait/io/table/sql/handler")
    });
    terminal.press(&["Escape"]);
    terminal.wait_for_words("wait/io/table/sql/handler");

    terminal.press(&["r"]);
    terminal.wait_for_words("● recording");
    terminal.press(&["n"]);
    terminal.press(&["-l", "switched the cache off"]);
    terminal.press(&["Enter"]);
    terminal.press(&["8"]);
    terminal.wait_for("the note among the events", |screen| {
        screen.contains("note ") && screen.contains("switched the cache off")
    });
    sleep(Duration::from_secs(3));
    terminal.press(&["r"]);
    terminal.wait_for_words("not recorded");

    drop(loading);
    terminal.wait_for("nothing but the samplers", |screen| {
        is_about(number_after(screen, "Statements/s "), 0.0, 200.0)
    });
    let before = terminal.wait_for("the load, in the past", |screen| {
        let found = is_loaded(screen);
        if !found {
            terminal.press(&["Left"]);
        }
        found
    });
    assert!(before.contains("at −0:"), "{before}");
    terminal.press(&["End"]);
    terminal.wait_for("now", |screen| screen.contains("  live  ") && !is_loaded(screen));

    let last = terminal.quit();
    let runs = terminal.runs();
    assert_eq!(runs.len(), 1, "{last}");
    assert!(last.contains("Recorded in runs/"), "{last}");
    let run: Value = serde_json::from_slice(&fs::read(runs[0].join("run.json")).unwrap()).unwrap();
    let result = &run["levels"][0]["result"];
    assert!(is_about(result["transactions_per_s"].as_f64(), 650.0, 850.0), "{result:#}");
    let page = fs::read_to_string(runs[0].join("report.html")).unwrap();
    assert!(page.contains("switched the cache off"));
}

#[test]
fn who_holds_a_lock_stands_above_who_waits_and_nothing_is_left_of_what_nobody_recorded() {
    let (place, server) = (Place::new(), OwnServer::start());
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT); INSERT INTO shop.orders VALUES (7, 0)");
    let _holds = client(&server, "BEGIN; UPDATE shop.orders SET v = 1 WHERE id = 7; DO SLEEP(200)");
    let is_asleep = || {
        server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'DO SLEEP%'") == "1"
    };
    assert!(wait_until(SOON, is_asleep));
    let _waits =
        client(&server, "SET innodb_lock_wait_timeout = 200; UPDATE shop.orders SET v = 2 WHERE id = 7");
    let terminal = Terminal::start(&place, &["--dsn", &server.dsn("root", ""), "--no-trace"]);
    terminal.wait_for_words("--no-trace was given");
    terminal.press(&["4"]);
    let screen = terminal.wait_for_words("holds up 1");
    let waits = screen.lines().find(|line| line.contains("shop.orders (PRIMARY)"));
    assert!(waits.is_some_and(|line| line.contains("UPDATE shop.orders SET v = ?")), "{screen}");
    assert!(screen.find("holds up 1") < screen.find("shop.orders (PRIMARY)"), "{screen}");
    // A server whose Performance Schema is off still has statements: those that connections are found executing.
    terminal.press(&["3"]);
    terminal.wait_for("statements that were found", |screen| {
        screen.contains("were found executing") && screen.contains("DO SLEEP ( ? )")
            || screen.contains("DO SLEEP(?)")
    });
    terminal.quit();
    assert_eq!(terminal.runs(), [] as [PathBuf; 0], "nobody asked for a recording");
}

/// Two connections: one holds the lock of a row, the other one waits for it in an update.
fn with_a_waiter(server: &OwnServer) -> (Other, Other) {
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT); INSERT INTO shop.orders VALUES (7, 0)");
    let holds = client(server, "BEGIN; UPDATE shop.orders SET v = 1 WHERE id = 7; DO SLEEP(200)");
    let sleeps = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'DO SLEEP%'";
    assert!(wait_until(SOON, || server.sql(sleeps) == "1"));
    let waits =
        client(server, "SET innodb_lock_wait_timeout = 200; UPDATE shop.orders SET v = 2 WHERE id = 7");
    (holds, waits)
}

#[test]
fn a_selected_statement_is_explained_and_ended_only_where_that_was_allowed() {
    let (place, server) = (Place::new(), OwnServer::start());
    let (_holds, mut waits) = with_a_waiter(&server);
    let terminal = Terminal::start(&place, &["--dsn", &server.dsn("root", ""), "--no-trace"]);
    terminal.wait_for_words("--no-trace was given");
    terminal.press(&["4"]);
    terminal.wait_for_words("holds up 1");
    terminal.press(&["Down"]);
    terminal.press(&["e"]);
    let plan = terminal.wait_for_words("The server's answer");
    assert!(
        plan.contains("UPDATE shop.orders SET v = 2 WHERE id = 7") && plan.contains("key PRIMARY"),
        "{plan}"
    );
    terminal.press(&["Escape"]);
    terminal.press(&["K"]);
    terminal.wait_for_words("--allow-kill");
    terminal.quit();
    // Its terminal goes, so that the next one has the place.
    drop(terminal);
    assert!(waits.0.try_wait().unwrap().is_none(), "it waits on");

    let terminal = Terminal::start(&place, &["--dsn", &server.dsn("root", ""), "--no-trace", "--allow-kill"]);
    terminal.wait_for_words("--no-trace was given");
    terminal.press(&["4"]);
    terminal.wait_for_words("holds up 1");
    terminal.press(&["Down"]);
    terminal.press(&["K"]);
    terminal.wait_for_words("y ends it, any other key does not");
    terminal.press(&["n"]);
    sleep(Duration::from_secs(1));
    assert!(waits.0.try_wait().unwrap().is_none(), "any other key does not");
    terminal.press(&["K"]);
    terminal.wait_for_words("y ends it, any other key does not");
    terminal.press(&["y"]);
    terminal.wait_for_words("the recording has a note of it");
    assert!(wait_until(SOON, || waits.0.try_wait().unwrap().is_some()), "the statement ended");
    terminal.press(&["Escape"]);
    terminal.press(&["8"]);
    terminal
        .wait_for("the note among the events", |screen| screen.contains("ended the statement of connection"));
    terminal.press(&["5"]);
    assert_eq!(server.sql("SELECT v FROM shop.orders"), "0", "nothing was changed");
    terminal.quit();
}

#[test]
fn a_server_that_comes_back_is_watched_again_in_its_new_process() {
    let (place, mut server) = (Place::new(), OwnServer::start());
    let terminal = Terminal::start(&place, &["--dsn", &server.dsn("root", "")]);
    terminal.wait_for("statements of the samplers", |screen| {
        is_about(number_after(screen, "Statements/s "), 1.0, 500.0)
    });
    server.crash();
    terminal.wait_for_words("of the server's sources can't be read since");
    sleep(Duration::from_secs(2));
    server.start_again();
    terminal.wait_for("that all is well", |screen| !screen.contains("can't be read since"));
    let _loading = load(&place, &server, "300");
    terminal.wait_for("300 statements a second", |screen| {
        is_about(number_after(screen, "Statements/s "), 280.0, 450.0)
    });
    terminal.wait_for("where the time of a request goes", |screen| screen.contains("c cpu "));
    terminal.press(&["8"]);
    terminal.wait_for_words("restart");
    terminal.quit();
}

/// Programs whose command line has both.
fn processes_with(one: &str, other: &str) -> usize {
    let has_both = |pid: &fs::DirEntry| {
        let command = fs::read(pid.path().join("cmdline")).unwrap_or_default();
        let words: Vec<String> = command.split(|byte| *byte == 0).map(text).collect();
        words.iter().any(|word| word == one) && words.iter().any(|word| word.contains(other))
    };
    fs::read_dir("/proc").unwrap().flatten().filter(has_both).count()
}

#[test]
fn a_terminal_that_is_closed_ends_it() {
    let (place, server) = (Place::new(), OwnServer::start());
    let socket = server.socket();
    let socket = socket.to_str().unwrap();
    let terminal = Terminal::start(&place, &["--dsn", &server.dsn("root", ""), "--no-trace"]);
    terminal.wait_for_words("  live  ");
    assert_eq!(processes_with("watch", socket), 1);
    terminal.tmux(&["kill-server"]);
    assert!(wait_until(SOON, || processes_with("watch", socket) == 0), "it goes on without a terminal");
    assert_eq!(terminal.runs(), [] as [PathBuf; 0]);
}

#[test]
fn without_a_terminal_this_is_reported() {
    let (place, server) = (Place::new(), "mysql://root@localhost/?socket=/nowhere");
    let done = output(&mut place.whyso(&["watch", "--dsn", server]));
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("this is none: `whyso record"), "{}", text(&done.stderr));
}

#[test]
fn of_two_servers_each_is_watched_and_one_is_shown_at_a_time() {
    let (place, first, second) = (Place::new(), OwnServer::start(), OwnServer::start());
    let _loading = load(&place, &second, "300");
    let dsns = [first.dsn("root", ""), second.dsn("root", "")];
    let terminal = Terminal::start(&place, &["--dsn", &dsns[0], "--dsn", &dsns[1]]);
    terminal.wait_for("the second one, with its load", |screen| {
        screen.starts_with("whyso 1/2") && is_about(number_after(screen, "Statements/s "), 1.0, 200.0)
    });
    terminal.press(&[">"]);
    terminal.wait_for("the second one, with its load", |screen| {
        screen.starts_with("whyso 2/2") && is_about(number_after(screen, "Statements/s "), 280.0, 500.0)
    });
    terminal.wait_for("where the time of its requests goes", |screen| screen.contains("c cpu "));
    terminal.press(&["r"]);
    terminal.wait_for_words("● recording");
    sleep(Duration::from_secs(3));
    terminal.press(&["r"]);
    terminal.wait_for_words("not recorded");
    terminal.press(&["<"]);
    terminal.wait_for("the first one", |screen| screen.starts_with("whyso 1/2"));
    let last = terminal.quit();
    assert_eq!(terminal.runs().len(), 1, "the other one was not recorded: {last}");
    let run: Value = serde_json::from_slice(&fs::read(terminal.runs()[0].join("run.json")).unwrap()).unwrap();
    let transactions = run["levels"][0]["result"]["transactions_per_s"].as_f64();
    assert!(is_about(transactions, 280.0, 330.0), "{transactions:?}");
}

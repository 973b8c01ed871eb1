//! `whyso stacks`: what the threads of a real MariaDB do now, without stopping any of them.

mod common;

use std::process::{Child, Command, Stdio};

use common::{OwnServer, Place, SOON, json_of, output, text, wait_until};
use serde_json::Value;

/// Clients that execute a statement each until they are ended.
struct Clients(Vec<Child>);

impl Clients {
    fn start(server: &OwnServer, statements: &[&str]) -> Clients {
        let start = |sql: &&str| {
            Command::new("mariadb")
                .args(["--no-defaults", "--user=root", "--execute", sql])
                .arg(format!("--socket={}", server.socket().display()))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the mariadb client is needed: apt-get install mariadb-client")
        };
        Clients(statements.iter().map(start).collect())
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        for client in &mut self.0 {
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

fn has(thread: &Value, part: &str) -> bool {
    let frames = thread["frames"].as_array().unwrap();
    frames.iter().any(|frame| frame["function"].as_str().unwrap().contains(part))
}

#[test]
fn every_thread_is_shown_with_its_stack_its_state_and_its_statement() {
    let (place, server) = (Place::new(), OwnServer::start());
    let _clients = Clients::start(
        &server,
        &["SELECT SLEEP(100)", "SELECT SLEEP(100)", "DO GET_LOCK('a', 100), SLEEP(100)"],
    );
    let count = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND INFO LIKE '%SLEEP(%'";
    // The question itself is one of them.
    assert!(wait_until(SOON, || server.sql(count) == "4"), "{}", server.sql("SHOW PROCESSLIST"));

    let dsn = server.dsn("root", "");
    let shown = output(&mut place.whyso(&["stacks", "--dsn", &dsn, "--json"]));
    if text(&shown.stderr).contains("stacks can't be read here") {
        whyso_testing::tracer_not_tested(text(&shown.stderr));
        return;
    }
    let found = json_of(&shown);
    let threads = found["threads"].as_array().unwrap();
    let task = format!("/proc/{}/task", server.pid());
    let there = std::fs::read_dir(&task).unwrap().count();
    assert!(threads.len().abs_diff(there) <= 2, "{} of {there} threads", threads.len());
    let whole = threads.iter().filter(|thread| thread["whole"] == true).count();
    println!("{whole} of {} stacks are whole", threads.len());
    assert!(whole as f64 >= 0.9 * threads.len() as f64, "{whole} of {} stacks are whole", threads.len());

    let sleepers: Vec<&Value> =
        threads.iter().filter(|thread| thread["statement"] == "SELECT SLEEP(?)").collect();
    assert_eq!(sleepers.len(), 2, "{found}");
    for sleeper in &sleepers {
        assert_eq!((sleeper["role"].as_str(), sleeper["state"].as_str()), (Some("connection"), Some("lock")));
        assert!(sleeper["connection"].as_u64().is_some());
        for part in ["futex", "Item_func_sleep::val_int", "dispatch_command", "start_thread"] {
            assert!(has(sleeper, part), "no {part} in {sleeper}");
        }
    }
    // Both are at the same place.
    let both =
        |group: &Value| sleepers.iter().all(|sleeper| group.as_array().unwrap().contains(&sleeper["tid"]));
    assert!(found["groups"].as_array().unwrap().iter().any(both), "{}", found["groups"]);

    for entry in std::fs::read_dir(&task).unwrap().flatten() {
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        assert!(!status.contains("TracerPid:") || status.contains("TracerPid:\t0\n"), "{status}");
        assert!(!status.contains("State:\tT") && !status.contains("State:\tt"), "{status}");
    }
}

#[test]
fn threads_are_chosen_by_role_and_shown_together() {
    let (place, server) = (Place::new(), OwnServer::start());
    let _clients = Clients::start(&server, &["SELECT SLEEP(100)"]);
    let (dsn, pid) = (server.dsn("root", ""), server.pid().to_string());
    assert!(wait_until(SOON, || server.sql("SHOW PROCESSLIST").contains("SLEEP(100)")));
    let shown = output(&mut place.whyso(&["stacks", "--dsn", &dsn, "--role", "connection", "--group"]));
    if text(&shown.stderr).contains("stacks can't be read here") {
        whyso_testing::tracer_not_tested(text(&shown.stderr));
        return;
    }
    let table = text(&shown.stdout);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    assert!(
        table.contains("1 thread (1 connection), lock\n") && table.contains("Item_func_sleep"),
        "{table}"
    );
    assert!(!table.contains(" other)"), "{table}");
    // Without a connection to it nobody says which thread works for which.
    let all = text(&output(&mut place.whyso(&["stacks", "--process", &pid])).stdout);
    assert!(all.contains("Item_func_sleep") && !all.contains("executes"), "{all}");

    let refused = |args: &[&str]| {
        let shown = output(&mut place.whyso(args));
        assert_eq!(shown.status.code(), Some(2), "{}", text(&shown.stderr));
        text(&shown.stderr)
    };
    let none = refused(&["stacks", "--process", &pid, "--role", "pruge"]);
    assert!(none.starts_with("whyso: no thread has the role \"pruge\"; there are: "), "{none}");
    assert!(refused(&["stacks", "--process", "no-such-program"]).starts_with("whyso: no process is called"));
    refused(&["stacks"]);
    refused(&["stacks", "--process", "x", "--dsn", &server.dsn("root", "")]);
}

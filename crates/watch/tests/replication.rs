//! Two real servers, one of which replicates the other.

#[expect(dead_code, reason = "what other tests need of it")]
mod common;

use std::net::TcpListener;
use std::time::Duration;

use common::{MemorySink, Server, wait_for};
use whyso_record::data::Status;
use whyso_watch::{WatchSpec, Watcher};

fn watch(server: &Server, user: &str) -> (Watcher, MemorySink) {
    let sink = MemorySink::default();
    let spec = WatchSpec {
        interval: Duration::from_millis(500),
        server: Some(server.opts_of(user, None)),
        server_pid: Some(server.pid()),
        ..WatchSpec::default()
    };
    (Watcher::start(spec, sink.clone()).unwrap(), sink)
}

/// A port that nothing listens at.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn lag_is_a_series_and_a_thread_that_stops_is_an_event() {
    let port = free_port();
    let port_option = format!("--port={port}");
    let source =
        Server::start_with(&["--bind-address=127.0.0.1", &port_option, "--log-bin=bin", "--server-id=1"]);
    let replica = Server::start_with(&["--skip-networking", "--server-id=2"]);
    source.execute("CREATE USER copy@'127.0.0.1'");
    source.execute("CREATE DATABASE d");
    source.execute("CREATE TABLE d.t (id INT PRIMARY KEY)");
    source.execute("GRANT REPLICATION SLAVE ON *.* TO copy@'127.0.0.1'");
    replica.execute(&format!(
        "CHANGE MASTER 'east' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'copy', \
         MASTER_USE_GTID = slave_pos"
    ));
    replica.execute("START SLAVE 'east'");
    let (of_replica, replica_sink) = watch(&replica, "root");
    let of_copy =
        |metric: &str| replica_sink.last_values().get(&format!("server replication {metric} east")).copied();
    wait_for("the lag", || of_copy("seconds_behind_source").is_some_and(|behind| behind >= 0.0));
    assert_eq!(of_copy("replica_io_running"), Some(1.0));
    assert_eq!(of_copy("replica_sql_running"), Some(1.0));
    assert!(of_copy("read_source_log_pos").is_some_and(|position| position > 0.0));
    assert!(of_copy("relay_log_space").is_some_and(|bytes| bytes > 0.0));
    assert_eq!(of_copy("source_port"), None);

    let (of_source, source_sink) = watch(&source, "root");
    wait_for("the replica", || {
        let values = source_sink.last_values();
        values.get("server replication connected_replicas") == Some(&1.0)
            && values.contains_key("server replication binary_log_pos")
    });

    let events = |start: &str| replica_sink.events("replication", start).len();
    replica.execute("STOP SLAVE 'east'");
    wait_for("the stop", || events("east: Replica_SQL_Running: Yes → No") == 1);
    assert_eq!(events("east: Replica_IO_Running: Yes → No"), 1);
    assert_eq!(of_copy("replica_sql_running"), Some(0.0));
    replica.execute("START SLAVE 'east'");
    wait_for("the start", || events("east: Replica_SQL_Running: No → Yes") == 1);

    replica.execute("INSERT INTO d.t VALUES (4711)");
    source.execute("INSERT INTO d.t VALUES (4711)");
    wait_for("the error", || events("east: Last_SQL_Error: ") == 1);
    let error = &replica_sink.events("replication", "east: Last_SQL_Error: ")[0];
    assert!(!error.contains("4711"), "no value of a row: {error}");
    assert_eq!(of_copy("last_sql_errno"), Some(1062.0));
    of_replica.stop();
    of_source.stop();
}

#[test]
fn a_server_that_replicates_nothing_is_asked_once_and_what_is_not_granted_is_named() {
    let server = Server::start();
    server.execute("CREATE USER poor@localhost");
    let (watcher, sink) = watch(&server, "root");
    wait_for("the probe", || sink.count("replication", Status::Ok) == 1);
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(sink.count("replication", Status::Ok), 1);
    assert_eq!(sink.events("replication", ""), [""; 0]);
    assert!(!watcher.not_measured().iter().any(|line| line.to_string().contains("replica")));
    watcher.stop();
    let (watcher, _) = watch(&server, "poor");
    wait_for("the grant", || {
        watcher
            .not_measured()
            .iter()
            .map(ToString::to_string)
            .any(|line| line.contains("replicates") && line.contains("SLAVE MONITOR"))
    });
    watcher.stop();
}

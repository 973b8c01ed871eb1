//! What sessions wait for, and what the Performance Schema is set to, on a server that counts everything.

#[expect(dead_code, reason = "what other tests need of it")]
mod common;

use std::time::Duration;

use common::{MemorySink, Server, wait_for};
use mysql_async::prelude::Queryable;
use whyso_watch::{WatchSpec, Watcher};

#[test]
fn a_session_is_recorded_with_its_stage_and_its_wait_and_a_changed_setup_is_an_event() {
    let server = Server::start_with(&[
        "--skip-networking",
        "--performance-schema=ON",
        "--performance-schema-instrument=%=ON",
        "--performance-schema-consumer-events-stages-current=ON",
        "--performance-schema-consumer-events-waits-current=ON",
    ]);
    let sink = MemorySink::default();
    let spec = WatchSpec {
        interval: Duration::from_millis(500),
        slow_interval: Duration::from_millis(500),
        server: Some(server.opts()),
        server_pid: Some(server.pid()),
        ..WatchSpec::default()
    };
    let watcher = Watcher::start(spec, sink.clone()).unwrap();
    std::thread::scope(|scope| {
        // More than one snapshot falls into it: one is taken every five seconds.
        scope.spawn(|| server.ask(async |conn| conn.query_drop("SELECT SLEEP(12)").await.unwrap()));
        wait_for("the stage", || {
            sink.cells("connections", "stage").iter().any(|stage| stage.contains("sleep"))
        });
        wait_for("the wait", || {
            sink.cells("connections", "wait").iter().any(|wait| wait.starts_with("wait/synch/cond/"))
        });
        assert!(
            sink.cells("connections", "wait_ns")
                .iter()
                .any(|ns| ns.parse::<u64>().is_ok_and(|ns| ns > 1_000_000))
        );
    });
    assert!(sink.rows("pfs_setup") > 100, "instruments and consumers");
    let consumers =
        "UPDATE performance_schema.setup_consumers SET ENABLED = 'NO' WHERE NAME = 'events_waits_current'";
    server.execute(consumers);
    wait_for("the changed setup", || {
        sink.events("variable", "setup_consumers events_waits_current: enabled YES → enabled NO").len() == 1
    });
    watcher.stop();
}

//! Presets of the Performance Schema, against the machine's own MariaDB: what is changed is put back.

mod common;

use std::collections::BTreeMap;

use common::{folder, journals_in, run, spec};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use whyso_server::ThrowAway;
use whyso_server::knobs::pfs::{PfsRequest, Preset, SetupTables, Timing};
use whyso_server::knobs::{Undo, Undone, pending_undo_in};

/// Every row of the setup tables, and what is counted of each client's thread.
async fn setup(connection: &mut Conn) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for (table, columns) in [
        ("setup_instruments", "NAME, ENABLED, COALESCE(TIMED, '')"),
        ("setup_consumers", "NAME, ENABLED"),
        ("setup_timers", "NAME, TIMER_NAME"),
        ("setup_actors", "HOST, USER, ROLE, ENABLED, HISTORY"),
        ("setup_objects", "OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, ENABLED, TIMED"),
    ] {
        let sql =
            format!("SELECT CONCAT_WS(' ', {columns}) AS line FROM performance_schema.{table} ORDER BY line");
        all.insert(table.to_string(), connection.query(sql).await.unwrap());
    }
    all
}

async fn started(parent: &std::path::Path) -> ThrowAway {
    let mut spec = spec(parent);
    spec.to_be_watched = PfsRequest::new(Preset::Default).start_options();
    ThrowAway::start(spec).await.unwrap()
}

#[tokio::test]
async fn every_preset_has_its_effect_and_is_put_back() {
    let parent = folder();
    let server = started(parent.path()).await;
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let before = setup(&mut connection).await;
    let journals = parent.path().join("undo");
    let total = before["setup_instruments"].len();
    let is_always_on = |line: &&String| line.starts_with("memory/performance_schema/");
    let always_on = before["setup_instruments"].iter().filter(is_always_on).count();
    for (name, preset) in Preset::ALL {
        for timing in [None, Some(Timing::No), Some(Timing::Yes), Some(Timing::Cycles)] {
            let wanted = PfsRequest { timing, ..PfsRequest::new(preset) };
            let found = SetupTables::read(&mut connection).await.unwrap();
            let changes = match wanted.changes(&found) {
                Ok(changes) => changes,
                Err(error) => {
                    let why = error.to_string();
                    assert!(!preset.counts(), "{name}: {why}");
                    assert!(
                        why.contains("performance_schema=OFF")
                            || why.contains("--server")
                            || timing.is_some(),
                        "{why}"
                    );
                    continue;
                }
            };
            let statements: usize = changes.iter().map(|change| change.sql().len()).sum();
            assert!(statements <= 12, "{name}: {statements} statements");
            let mut undo = Undo::open_in(&journals, &mut connection).await.unwrap();
            undo.change_setup(&mut connection, changes).await.unwrap();
            let found = SetupTables::read(&mut connection).await.unwrap();
            // What was done already need not be done again.
            assert_eq!(wanted.changes(&found).unwrap(), [], "{name} {timing:?}");
            let now = found.in_force();
            match preset {
                Preset::None => assert_eq!((now.enabled, now.timed, now.consumers.len()), (always_on, 0, 0)),
                Preset::Global => assert_eq!(
                    (now.enabled, &now.consumers[..]),
                    (total, &["global_instrumentation".to_string()][..])
                ),
                Preset::Thread => assert_eq!((now.enabled, now.consumers.len()), (total, 2)),
                Preset::Statements => assert!(now.enabled > 100 && now.consumers.len() == 3, "{now:?}"),
                Preset::Tables => assert!(now.enabled > 20 && now.enabled < total / 2, "{now:?}"),
                _ => {}
            }
            if timing == Some(Timing::No) {
                assert_eq!(now.timed, 0);
            }
            assert_eq!(
                now.timers.iter().all(|timer| timer.ends_with("by CYCLE")),
                timing == Some(Timing::Cycles)
            );
            undo.undo_all(&mut connection).await.unwrap();
            assert!(setup(&mut connection).await == before, "{name} {timing:?} was put back");
        }
    }
    assert_eq!(journals_in(&journals).len(), 0);
}

#[tokio::test]
async fn filters_take_in_threads_that_are_there_and_what_others_set_since_is_left_alone() {
    let parent = folder();
    let server = started(parent.path()).await;
    run(
        &server.dsn(),
        &["CREATE USER app@localhost", "GRANT SELECT ON performance_schema.* TO app@localhost"],
    )
    .await;
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let app = whyso_server::Dsn { user: "app".to_string(), ..server.dsn() };
    let mut apps = app.connect_without_schema().await.unwrap();
    let mut others = server.dsn().connect_without_schema().await.unwrap();
    let before = setup(&mut connection).await;
    let wanted = PfsRequest {
        users: vec!["app".to_string()],
        objects: vec![("shop".to_string(), "%".to_string())],
        ..PfsRequest::new(Preset::Thread)
    };
    let found = SetupTables::read(&mut connection).await.unwrap();
    let journals = parent.path().join("undo");
    let mut undo = Undo::open_in(&journals, &mut connection).await.unwrap();
    undo.change_setup(&mut connection, wanted.changes(&found).unwrap()).await.unwrap();
    let now = setup(&mut connection).await;
    assert_eq!(now["setup_actors"], ["% app % YES YES"]);
    assert!(now["setup_objects"].contains(&"TABLE shop % YES YES".to_string()), "{now:?}");
    let instrumented =
        "SELECT INSTRUMENTED FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()";
    for (connection, expected) in [(&mut apps, "YES"), (&mut others, "NO")] {
        let is: Option<String> = connection.query_first(instrumented).await.unwrap();
        assert_eq!(is.as_deref(), Some(expected));
    }

    // a second run may not come between
    let mut second = Undo::open_in(&journals, &mut connection).await.unwrap();
    let found = SetupTables::read(&mut connection).await.unwrap();
    let changes = PfsRequest::new(Preset::None).changes(&found).unwrap();
    let refused = second.change_setup(&mut connection, changes).await.unwrap_err();
    assert!(refused.to_string().contains("another run of whyso"), "{refused}");

    run(
        &server.dsn(),
        &[
            "UPDATE performance_schema.setup_timers SET TIMER_NAME = 'TICK' WHERE NAME = 'idle'",
            "INSERT INTO performance_schema.setup_actors (HOST, USER, ROLE) VALUES ('%', 'guest', '%')",
        ],
    )
    .await;
    // a crash: nobody is left who would put it back
    drop(undo);
    let path = journals_in(&journals).remove(0);
    let journal: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let size = journal.to_string().len();
    assert!(size < 32_000, "the journal has {size} bytes");
    let mut pending = pending_undo_in(&journals, &mut connection).await.unwrap();
    let undone = pending[0].undo_all(&mut connection).await.unwrap();
    assert!(
        undone.iter().all(|change| matches!(change, Undone::SetupPutBack { left_alone: 0, .. })),
        "{undone:?}"
    );
    let mut after = setup(&mut connection).await;
    after.get_mut("setup_actors").unwrap().retain(|line| !line.contains("guest"));
    after.insert("setup_timers".to_string(), before["setup_timers"].clone());
    assert!(after == before);
    let is: Option<String> = others.query_first(instrumented).await.unwrap();
    assert_eq!(is.as_deref(), Some("YES"));
}

#[tokio::test]
async fn a_user_without_the_rights_learns_which() {
    let parent = folder();
    let server = started(parent.path()).await;
    run(
        &server.dsn(),
        &["CREATE USER app@localhost", "GRANT SELECT ON performance_schema.* TO app@localhost"],
    )
    .await;
    let app = whyso_server::Dsn { user: "app".to_string(), ..server.dsn() };
    let mut connection = app.connect_without_schema().await.unwrap();
    let found = SetupTables::read(&mut connection).await.unwrap();
    let mut undo = Undo::open_in(&parent.path().join("undo"), &mut connection).await.unwrap();
    let changes = PfsRequest::new(Preset::Global).changes(&found).unwrap();
    let refused = undo.change_setup(&mut connection, changes).await.unwrap_err();
    assert!(refused.to_string().contains("GRANT SELECT, UPDATE ON performance_schema.*"), "{refused}");
    assert!(refused.is_wrong_use());
}

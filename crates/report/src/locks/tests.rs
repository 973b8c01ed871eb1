use super::*;
use serde_json::{Value, json};
use whyso_explain::locks::{WaitingConnection, WaitingTree};
use whyso_model::{LockKind, Missing, NotMeasured};

fn object(object: &str, samples: u64, share: f64, statement: Option<&str>) -> LockObject {
    LockObject {
        kind: LockKind::Row,
        object: object.to_string(),
        index: "PRIMARY".to_string(),
        mode: "X".to_string(),
        samples,
        share,
        waited_ns: Some(samples as f64 * 0.5e9),
        statement: None,
        blocking_statement: statement.map(str::to_string),
        blocking_share: 0.9,
    }
}

fn of<'a>(objects: &'a [LockObject], instruments: &'a [InstrumentWait]) -> LocksOf<'a> {
    LocksOf {
        window: "the level of 8 users",
        seconds: 10.0,
        snapshot_count: 20,
        snapshots: Snapshots {
            seconds: 10.0,
            count: 20,
            last_good_s: Some(0.2),
            found_rows: 100,
            ..Snapshots::default()
        },
        objects,
        row_locks_counted: Some((4512.0, 55.1e9)),
        instruments,
        tables: &[],
        requests_waited_ns: Some(50e9),
        not_measured: &[],
    }
}

#[test]
fn objects_and_instruments_stand_in_tables_with_what_they_are_of() {
    let objects = [
        object("t.accounts", 90, 0.9, Some("UPDATE accounts\n SET v=? WHERE id=?")),
        object("t.log\u{1b}[2J", 10, 0.1, None),
    ];
    let timed = |name: &str, count, ns| InstrumentWait { name: name.to_string(), count, ns };
    let instruments = [
        timed("wait/synch/mutex/innodb/log_sys_mutex", 2000.0, Some(5e9)),
        timed("log0log.c:832", 7.0, None),
        timed("wait/synch/cond/sql/COND_queue_state", 10.0, Some(100e9)),
    ];
    let expected = "\
Lock waits in the level of 8 users, 10 s.

By table and index: 100 connections found waiting in 20 snapshots. InnoDB counted 4,512 waits for row locks, of 55.1 s in all.
samples  share  seconds  lock  mode  table (index)         held by
     90   90 %       45  row   X     t.accounts (PRIMARY)  90 % UPDATE accounts SET v=? WHERE id=?
     10   10 %        5  row   X     t.log?[2J (PRIMARY)   90 % between statements, or not known

By instrument, in all threads of the server; requests waited 50 s for locks, which the last column is a share of.
count  seconds     mean µs  of lock  instrument
2,000        5       2,500     10 %  wait/synch/mutex/innodb/log_sys_mutex
    7        –           –        –  log0log.c:832
   10      100  10,000,000        –  wait/synch/cond/sql/COND_queue_state
Conditions (cond) are mostly waited on by threads that have nothing to do.
";
    assert_eq!(locks(of(&objects, &instruments)), expected);
}

#[test]
fn where_nobody_waited_the_text_shows_it_and_what_was_not_measured() {
    let not_measured = ["waits by instrument: the Performance Schema is off".to_string()];
    let text = locks(LocksOf { not_measured: &not_measured, row_locks_counted: None, ..of(&[], &[]) });
    assert!(
        text.contains("No connection was found waiting for a lock in 20 snapshots of the server.\n"),
        "{text}"
    );
    assert!(text.contains("Not measured:\n• waits by instrument: the Performance Schema is off"), "{text}");
}

#[test]
fn programs_get_seconds_and_shares() {
    let objects = [object("t.accounts", 90, 1.0, Some("COMMIT"))];
    let json = locks_json(of(&objects, &[]));
    assert_eq!(json["objects"][0]["waited_s"], 45.0);
    assert_eq!(json["objects"][0]["held_by"]["statement"], "COMMIT");
    assert_eq!(json["row_locks_counted"], json!({"waits": 4512.0, "waited_s": 55.1}));
}

fn tree() -> WaitingTree {
    let waits = WaitingConnection {
        kind: LockKind::Row,
        object: "t.accounts".to_string(),
        index: "PRIMARY".to_string(),
        mode: "X".to_string(),
        waited_s: 12,
    };
    let waiter = |connection, waiters| WaitingTree {
        connection,
        statement: Some("UPDATE accounts SET v=?".to_string()),
        waits: Some(waits.clone()),
        waiters,
    };
    let waiters = vec![waiter(6, vec![waiter(7, Vec::new())])];
    WaitingTree { connection: 5, statement: None, waits: None, waiters }
}

fn now(trees: &[WaitingTree]) -> LocksNowOf<'_> {
    LocksNowOf { at: "12:00:00", took_ms: 4.2, row_waits_counted: Some(0), trees, ..LocksNowOf::default() }
}

#[test]
fn that_nobody_waits_is_shown_with_the_time_of_the_snapshot_and_only_where_it_is_known() {
    let took = "The snapshot was taken at 12:00:00 and took 4.2 ms.";
    assert_eq!(locks_now(now(&[])), format!("No connection waits for a lock now. {took}\n"));

    let failed = LocksNowOf { failed: Some("the server did not say within 10 s who waits"), ..now(&[]) };
    let text = locks_now(failed);
    assert!(
        text.contains("not known: the server did not say within 10 s") && text.contains("12:00:00"),
        "{text}"
    );
    assert!(locks_now_json(failed)["waiting"].is_null());

    let contradicted = LocksNowOf { row_waits_counted: Some(3), ..now(&[]) };
    let text = locks_now(contradicted);
    assert!(!text.contains("No connection waits"), "{text}");
    assert!(text.contains("But InnoDB counts that 3 connections wait for a row now"), "{text}");
    assert_eq!(locks_now_json(now(&[tree()]))["snapshot"]["contradiction"], Value::Null);

    let not_reported =
        [NotMeasured::new(Missing::RowLockWaits, "who waits for whom in row locks; grant PROCESS", "")];
    let text = locks_now(LocksNowOf { not_reported: &not_reported, ..now(&[]) });
    assert!(text.starts_with("Who waits for rows is not known"), "{text}");
}

#[test]
fn a_window_whose_snapshots_failed_does_not_claim_that_nobody_waited() {
    let snapshots = Snapshots {
        seconds: 10.0,
        count: 0,
        failed: 3,
        last_good_s: Some(14.5),
        last_took_ms: Some(5_004.0),
        row_wait_s: Some(26.4),
        row_waits_now: Some((3.0, 4.0)),
        found_rows: 0,
    };
    let text = locks(LocksOf { snapshot_count: 0, snapshots, ..of(&[], &[]) });
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!line.contains("No connection was found"), "{text}");
    for words in [
        "is not known: the lock tables could not be read in this window.",
        "taken 14.5 s before the end and took 5 s; 3 attempts failed or came too late.",
        "But InnoDB counted 26.4 s of waits for row locks",
    ] {
        assert!(line.contains(words), "{words} is missing in {text}");
    }
    let json = locks_json(LocksOf { snapshot_count: 0, snapshots, ..of(&[], &[]) });
    assert_eq!((&json["snapshots"]["failed"], &json["snapshots"]["are_good"]), (&json!(3), &json!(false)));
}

#[test]
fn a_waiting_connection_stands_under_the_one_that_it_waits_for() {
    let expected = "\
2 connections wait for locks now. The snapshot was taken at 12:00:00 and took 4.2 ms.

5 (2 wait for it): between statements, or not known
   6 waits 12 s for row lock X on t.accounts (PRIMARY): UPDATE accounts SET v=?
      7 waits 12 s for row lock X on t.accounts (PRIMARY): UPDATE accounts SET v=?
";
    let trees = [tree()];
    assert_eq!(locks_now(now(&trees)), expected);
    let json = locks_now_json(now(&trees));
    assert_eq!(
        (json["waiting"].as_u64(), &json["trees"][0]["waiters"][0]["connection"]),
        (Some(2), &json!(6))
    );
}

#[test]
fn the_page_has_the_first_lines_of_each_table_and_the_number_of_the_others() {
    let objects: Vec<LockObject> =
        (0..60).map(|number| object("t.accounts", 60 - number, 0.5, None)).collect();
    let heads = locks_heads(&[LevelLocks { level: Some(2), locks: of(&objects, &[]) }]);
    let json = serde_json::to_value(&heads).unwrap();
    assert_eq!((&json[0]["level"], json[0]["objects"].as_array().unwrap().len()), (&2.into(), 50));
    assert_eq!(json[0]["left"], json!({"objects": 10, "instruments": 0, "tables": 0}));
    assert_eq!(json[0]["objects"][0]["held_by"]["share"], 0.9);
}

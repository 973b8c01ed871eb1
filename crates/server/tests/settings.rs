//! Logging in, and knobs that are put back, against the machine's own MariaDB.

mod common;

use common::{folder, journals_in, run, spec};
use mysql_async::prelude::Queryable;
use whyso_server::knobs::{Scope, Undo, Undone, pending_undo_in, session_statement};
use whyso_server::{Dsn, Error, ThrowAway};

#[tokio::test]
async fn knobs_are_put_back_but_for_those_that_someone_else_changed() {
    let parent = folder();
    let server = ThrowAway::start(spec(parent.path())).await.unwrap();
    let journals = parent.path().join("undo");
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let state = "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.sort_buffer_size, @@GLOBAL.sql_mode, @@GLOBAL.init_connect, @@GLOBAL.long_query_time";
    let before: Option<(u32, u64, String, String, f64)> = connection.query_first(state).await.unwrap();

    let mut undo = Undo::open_in(&journals, &mut connection).await.unwrap();
    let change = undo.set_global(&mut connection, "innodb-flush-log-at-trx-commit", "2").await.unwrap();
    assert_eq!((change.before.as_str(), change.after.as_deref()), ("1", Some("2")));
    let change = undo.set_global(&mut connection, "sort_buffer_size", "4M").await.unwrap();
    assert_eq!(change.after.as_deref(), Some("4194304"));
    undo.set_global(&mut connection, "sql_mode", "ANSI,TRADITIONAL").await.unwrap();
    undo.set_global(&mut connection, "init_connect", "1").await.unwrap();
    undo.set_global(&mut connection, "long_query_time", "0.5").await.unwrap();
    undo.set_global(&mut connection, "max_connections", "200").await.unwrap();
    assert_eq!(journals_in(&journals).len(), 1);
    run(&server.dsn(), &["SET GLOBAL max_connections = 300"]).await;

    let undone = undo.undo_all(&mut connection).await.unwrap();
    assert_eq!(undone.len(), 6);
    assert!(
        matches!(&undone[0], Undone::LeftAlone { change, now } if change.name == "max_connections" && now == "300")
    );
    assert!(undone[1..].iter().all(|change| matches!(change, Undone::PutBack(_))), "{undone:?}");
    let after: Option<(u32, u64, String, String, f64)> = connection.query_first(state).await.unwrap();
    assert_eq!(before, after);
    let left: Option<u32> = connection.query_first("SELECT @@GLOBAL.max_connections").await.unwrap();
    assert_eq!(left, Some(300));
    assert_eq!(journals_in(&journals).len(), 0);
}

#[tokio::test]
async fn of_several_runs_that_set_a_knob_the_last_one_out_puts_the_first_value_back() {
    let parent = folder();
    let server = ThrowAway::start(spec(parent.path())).await.unwrap();
    let journals = parent.path().join("undo");
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let read = async |connection: &mut mysql_async::Conn| -> u64 {
        connection.query_first("SELECT @@GLOBAL.max_connections").await.unwrap().unwrap()
    };
    let before = read(&mut connection).await;
    for ends in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0], [0, 2, 1], [2, 0, 1]] {
        let mut runs = Vec::new();
        for value in ["200", "305", "410"] {
            let mut run = Undo::open_in(&journals, &mut connection).await.unwrap();
            run.set_global(&mut connection, "max_connections", value).await.unwrap();
            runs.push(run);
        }
        for run in ends {
            runs[run].undo_all(&mut connection).await.unwrap();
        }
        assert_eq!(read(&mut connection).await, before, "ended in the order {ends:?}");
        assert!(journals_in(&journals).is_empty());
    }
}

#[tokio::test]
async fn a_knob_that_cannot_be_set_is_refused_with_a_reason_and_leaves_no_journal() {
    let parent = folder();
    let server = ThrowAway::start(spec(parent.path())).await.unwrap();
    let journals = parent.path().join("undo");
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let mut undo = Undo::open_in(&journals, &mut connection).await.unwrap();
    let unknown = undo.set_global(&mut connection, "sort_bufer_size", "1").await.unwrap_err();
    assert!(matches!(&unknown, Error::UnknownKnob { name, .. } if name == "sort_bufer_size"), "{unknown}");
    let fixed = undo.set_global(&mut connection, "innodb_page_size", "8192").await.unwrap_err();
    assert!(matches!(&fixed, Error::ReadOnlyKnob { name } if name == "innodb_page_size"), "{fixed}");
    let wrong =
        undo.set_global(&mut connection, "innodb_flush_log_at_trx_commit", "sometimes").await.unwrap_err();
    assert!(matches!(&wrong, Error::KnobValue { .. }), "{wrong}");
    let injected =
        undo.set_global(&mut connection, "sort_buffer_size; DROP DATABASE mysql", "1").await.unwrap_err();
    assert!(injected.is_wrong_use());
    assert!(undo.changes().is_empty());
    assert_eq!(journals_in(&journals).len(), 0);
}

/// A run that was killed is stood in for by a journal whose lock nobody holds.
#[tokio::test]
async fn what_a_crashed_run_changed_is_found_and_put_back() {
    let parent = folder();
    let mut server = ThrowAway::start(spec(parent.path())).await.unwrap();
    let journals = parent.path().join("undo");
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let mut undo = Undo::open_in(&journals, &mut connection).await.unwrap();
    let before = undo.set_global(&mut connection, "sync_binlog", "17").await.unwrap().before;
    assert!(pending_undo_in(&journals, &mut connection).await.unwrap().is_empty(), "its owner lives");
    drop(undo);

    let path = journals_in(&journals).remove(0);
    let mut journal: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();

    let mut pending = pending_undo_in(&journals, &mut connection).await.unwrap();
    assert_eq!(pending.len(), 1);
    let undone = pending[0].undo_all(&mut connection).await.unwrap();
    assert!(matches!(&undone[..], [Undone::PutBack(change)] if change.name == "sync_binlog"));
    let now: Option<u64> = connection.query_first("SELECT @@GLOBAL.sync_binlog").await.unwrap();
    assert_eq!(now.map(|now| now.to_string()), Some(before));
    assert!(pending_undo_in(&journals, &mut connection).await.unwrap().is_empty());

    drop(pending);

    // a server that was started anew has forgotten what was set
    journal["server"]["started_s"] = 1.into();
    std::fs::write(&path, journal.to_string()).unwrap();
    server.stop_server().await.unwrap();
    server.start_server().await.unwrap();
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let mut pending = pending_undo_in(&journals, &mut connection).await.unwrap();
    let undone = pending[0].undo_all(&mut connection).await.unwrap();
    assert!(matches!(&undone[..], [Undone::Forgotten(_)]));
    assert_eq!(journals_in(&journals).len(), 0);
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_a_missing_one_is_asked_for_once() {
    let parent = folder();
    let server = ThrowAway::start(spec(parent.path())).await.unwrap();
    run(&server.dsn(), &["CREATE USER bench@localhost IDENTIFIED BY 'open sesame'"]).await;
    let mut dsn = Dsn { user: "bench".to_string(), ..server.dsn() };
    let error = dsn.connect().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        error.contains(
            "denied access to user 'bench' (no password was given: put it into MYSQL_PWD or ~/.my.cnf)"
        ),
        "{error}"
    );
    let mut asked = 0;
    let mut prompt = |question: &str| {
        asked += 1;
        assert!(question.starts_with("password of 'bench' at /"), "{question}");
        Ok("open sesame".to_string())
    };
    dsn.log_in(&mut prompt).await.unwrap();
    dsn.connect_without_schema().await.unwrap();
    assert_eq!(asked, 1);
    dsn.password = Some("wrong".to_string());
    let error = dsn.connect_without_schema().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        error.contains("denied access") && !error.contains("no password") && !error.contains("wrong"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_reported_in_one_sentence() {
    let missing = Dsn::on_socket("/var/tmp/no-such-socket", "root", "x").connect().await;
    let error = missing.err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(
        error,
        "cannot reach the server at /var/tmp/no-such-socket: there is no such socket; is the server running"
    );
    let mut refused = Dsn::resolve("mysql://root@127.0.0.1:1/x?connect_timeout=2").unwrap();
    for password in [None, Some("x".to_string())] {
        refused.password = password;
        let error = refused.connect().await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(
            error.starts_with("cannot reach the server at 127.0.0.1:1: nothing listens there"),
            "{error}"
        );
    }
    // a listener that never says a word
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent =
        Dsn::resolve(&format!("mysql://u:p@{}/x?connect_timeout=1", listener.local_addr().unwrap())).unwrap();
    let error = silent.connect().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("no answer within 1 s"), "{error}");
}

/// A server of the test's own that speaks just enough. It greets with caching_sha2_password, then asks for the
/// password in full, as a man in the middle would.
#[tokio::test]
async fn a_password_is_not_given_away_over_plain_tcp() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let mut greeting = vec![10];
        greeting.extend(b"8.4.3\0\x01\0\0\0abcdefgh\0");
        greeting.extend([0xff, 0xf7, 0xff, 0x02, 0x00, 0xff, 0xdf, 21]);
        greeting.extend([0; 10]);
        greeting.extend(b"ijklmnopqrst\0caching_sha2_password\0");
        let mut packet = vec![greeting.len() as u8, 0, 0, 0];
        packet.extend(greeting);
        stream.write_all(&packet).unwrap();
        let mut header = [0; 4];
        stream.read_exact(&mut header).unwrap();
        let mut login = vec![0; usize::from(header[0]) + usize::from(header[1]) * 256];
        stream.read_exact(&mut login).unwrap();
        stream.write_all(&[2, 0, 0, header[3] + 1, 1, 4]).unwrap();
        let mut rest = Vec::new();
        // whatever comes until the client hangs up
        let _ = stream.read_to_end(&mut rest);
        (login, rest)
    });
    let dsn = Dsn::resolve(&format!("mysql://bench:sesame@{address}/x")).unwrap();
    let error = dsn.connect().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("asks for the password over an unprotected connection"), "{error}");
    let (login, rest) = server.join().unwrap();
    assert!(login.windows(5).any(|window| window == b"bench"), "the login reached the server");
    assert_eq!(rest, [0_u8; 0], "neither the password nor a request for a key follows");
}

#[tokio::test]
async fn a_setting_that_an_experiment_switches_is_put_back_from_any_of_its_values() {
    let parent = folder();
    let server = ThrowAway::start(spec(parent.path())).await.unwrap();
    let journals = parent.path().join("undo");
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    let state = "SELECT @@GLOBAL.innodb_io_capacity";
    let before: Option<u64> = connection.query_first(state).await.unwrap();
    for last in ["301", "402", "before"] {
        let mut undo = Undo::open_in(&journals, &mut connection).await.unwrap();
        let tried = undo.try_values(&mut connection, "innodb_io_capacity", &["301", "402"]).await.unwrap();
        assert_eq!(tried, (before.unwrap().to_string(), vec!["301".to_string(), "402".to_string()]));
        let last = if last == "before" { tried.0 } else { last.to_string() };
        undo.switch(&mut connection, "innodb_io_capacity", &last).await.unwrap();
        // As after a crash: the journal is all that is left.
        drop(undo);
        let mut pending = pending_undo_in(&journals, &mut connection).await.unwrap();
        assert_eq!(pending.len(), 1);
        let undone = pending[0].undo_all(&mut connection).await.unwrap();
        assert!(matches!(undone[..], [Undone::PutBack(_)]), "{undone:?}");
        assert_eq!(connection.query_first::<u64, _>(state).await.unwrap(), before, "from {last}");
        drop(pending);
        assert!(journals_in(&journals).is_empty());
    }
    // What somebody else set meanwhile stays.
    let mut undo = Undo::open_in(&journals, &mut connection).await.unwrap();
    undo.try_values(&mut connection, "innodb_io_capacity", &["301", "402"]).await.unwrap();
    run(&server.dsn(), &["SET GLOBAL innodb_io_capacity = 777"]).await;
    let undone = undo.undo_all(&mut connection).await.unwrap();
    assert!(matches!(&undone[..], [Undone::LeftAlone { now, .. }] if now == "777"), "{undone:?}");
    let refused = undo.try_values(&mut connection, "innodb_page_size", &["8192"]).await.unwrap_err();
    assert!(matches!(&refused, Error::ReadOnlyKnob { .. }), "{refused}");
}

#[tokio::test]
async fn settings_of_sessions_are_distinguished_from_those_of_the_server() {
    let parent = folder();
    let server = ThrowAway::start(spec(parent.path())).await.unwrap();
    let mut connection = server.dsn().connect_without_schema().await.unwrap();
    for (name, expected) in [
        ("sort_buffer_size", Scope::Session),
        ("sql-mode", Scope::Session),
        ("innodb_flush_log_at_trx_commit", Scope::Global),
        ("innodb_page_size", Scope::Global),
    ] {
        assert_eq!(Undo::scope(&mut connection, name).await.unwrap(), expected, "{name}");
    }
    let unknown = Undo::scope(&mut connection, "sort_bufer_size").await.unwrap_err();
    assert!(matches!(&unknown, Error::UnknownKnob { .. }), "{unknown}");
    assert_eq!(
        session_statement("sort-buffer-size", "2M").unwrap(),
        "SET SESSION sort_buffer_size = 2097152"
    );
    assert_eq!(session_statement("sql_mode", "it's").unwrap(), "SET SESSION sql_mode = 'it\\'s'");
    assert!(session_statement("a b", "1").is_err());
}

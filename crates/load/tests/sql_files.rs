//! A user's own SQL against a real MariaDB, on every engine.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use support::Server;
use whyso_load::{Engine, EngineKind, LevelOutcome, LevelSpec, LoadSpec, NativeWork};
use whyso_workload::{SqlOptions, Workload};

const ENGINES: [EngineKind; 3] = [EngineKind::Threads, EngineKind::Epoll, EngineKind::IoUring];

fn read(text: &str) -> Workload {
    Workload::from_sql_file("test.sql", text, &SqlOptions::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Runs this many transactions, or until the load gives up.
fn run(
    server: &Server,
    workload: &Workload,
    kind: EngineKind,
    users: u32,
    transactions: u64,
) -> LevelOutcome {
    let spec = LoadSpec { engine: kind, ..LoadSpec::new(server.target(), users, 7) };
    let work = Arc::new(NativeWork::for_users(workload, 7, users));
    let mut engine = Engine::open(&spec, work).unwrap();
    let level = LevelSpec { transactions_max: Some(transactions), ..LevelSpec::users(users) };
    let mut running = engine.level_with(&level).unwrap();
    running.begin_measuring();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !running.is_over() && running.failure().is_none() {
        assert!(Instant::now() < deadline, "the level did not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.stop()
}

const WHOLE: &str = "\
-- \\set amount random(1, 100)
-- \\session
SET @source = 'session';
-- \\transaction main@1
-- \\set n random(2, 2)
BEGIN;
SELECT id, IF(id % 2, NULL, balance) AS balance, note FROM account WHERE id = 1 + :amount % 4; -- \\gset a_
-- \\if :a_balance is null
INSERT INTO seen (what, value) VALUES ('odd', :a_id);
-- \\else
INSERT INTO seen (what, value) VALUES ('even', :a_balance), (:a_note, :a_id);
-- \\endif
-- \\if :row_count = 2
INSERT INTO seen (what, value) VALUES ('two', :amount);
-- \\endif
-- \\repeat :n
INSERT INTO part{n} (share, at) VALUES (:amount / 4.0, @source);
-- \\endrepeat
COMMIT;
-- \\kind several
CALL several(:amount);
SELECT 1\\; SELECT 2;
-- \\rows 500 :amount, random_string('it''s @@@'), null
LOAD DATA LOCAL INFILE 'made up' INTO TABLE loaded;
-- \\sleep 100 us
-- \\reconnect
INSERT INTO seen (what, value) VALUES (@source, 0);
";

fn make_tables(server: &Server) {
    server.sql(
        "USE whyso; CREATE TABLE account (id INT PRIMARY KEY, balance INT, note VARCHAR(20)); \
         INSERT INTO account VALUES (1, 10, 'a'), (2, 20, 'it''s'), (3, 30, 'c'), (4, 40, 'd\\\\e'); \
         CREATE TABLE seen (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20), value INT); \
         CREATE TABLE part2 (id INT AUTO_INCREMENT PRIMARY KEY, share DOUBLE, at VARCHAR(20)); \
         CREATE TABLE loaded (amount INT, note VARCHAR(20), nothing INT); \
         \nDELIMITER //\nCREATE PROCEDURE several(amount INT) BEGIN SELECT 1; SELECT amount; SELECT id FROM account; END\n//",
    );
}

#[test]
fn everything_that_a_file_can_say_reaches_the_server_and_repeats_from_the_seed() {
    let workload = read(WHOLE);
    let mut checksums = Vec::new();
    for kind in ENGINES {
        let server = Server::start(&[]);
        make_tables(&server);
        let outcome = run(&server, &workload, kind, 1, 20);
        assert_eq!(outcome.failure, None, "{kind}");
        assert_eq!(outcome.transactions, 20, "{kind}");
        let ask = |sql: &str| server.sql(&format!("USE whyso; {sql}"));
        assert_eq!(
            ask("SELECT COUNT(*), COUNT(nothing), MIN(LENGTH(note)) FROM loaded"),
            "10000\t0\t8",
            "{kind}"
        );
        assert_eq!(ask("SELECT COUNT(*), MIN(at) FROM part2"), "40\tsession", "{kind}");
        // Statements of the connection are run on the new one too.
        assert_eq!(ask("SELECT COUNT(*) FROM seen WHERE what = 'session'"), "20", "{kind}");
        assert_eq!(ask("SELECT COUNT(*) FROM seen WHERE what IN ('odd', 'even')"), "20", "{kind}");
        let evens = ask("SELECT COUNT(*) FROM seen WHERE what = 'even' AND value IN (20, 40)");
        assert_eq!(ask("SELECT COUNT(*) FROM seen WHERE what IN ('it''s', 'd\\\\e')"), evens, "{kind}");
        assert_eq!(ask("SELECT COUNT(*) FROM seen WHERE what = 'two'"), evens, "{kind}");
        assert_ne!(evens, "0");
        let of = |name: &str| outcome.kinds.iter().find(|kind| kind.kind == name).unwrap();
        assert_eq!((of("several").count, of("several").rows), (20, 20 * 6), "{kind}");
        checksums.push(ask("CHECKSUM TABLE seen, part2, loaded"));
    }
    assert!(checksums.iter().all(|checksum| *checksum == checksums[0]), "{checksums:?}");
}

/// A rollback would not release such a lock.
#[test]
fn transactions_that_go_on_to_their_end_leave_no_lock_behind() {
    let server = Server::start(&[]);
    let text = "SELECT GET_LOCK('one', 20);\n-- \\sleep 200 ms\nSELECT RELEASE_LOCK('one');\n";
    for kind in ENGINES {
        let mut spec = LoadSpec { engine: kind, ..LoadSpec::new(server.target(), 3, 7) };
        spec.limits.stop = Duration::from_secs(1);
        let work = Arc::new(NativeWork::for_users(&read(text), 7, 3));
        let mut engine = Engine::open(&spec, work).unwrap();
        for finishes_transactions in [true, false] {
            let level = LevelSpec { finishes_transactions, ..LevelSpec::users(3) };
            let mut running = engine.level_with(&level).unwrap();
            running.begin_measuring();
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(running.stop().failure, None, "{kind}");
            // The connections are still open.
            let is_free = server.sql("SELECT IS_FREE_LOCK('one')");
            assert_eq!(is_free, if finishes_transactions { "1" } else { "0" }, "{kind}");
        }
    }
}

const MIXED: &str = "\
-- \\session
SELECT SLEEP(0.3);
-- \\transaction look@3
SELECT 1;
-- \\transaction never@0
SELECT 2;
-- \\transaction change@1
SELECT SLEEP(0.01);
";

#[test]
fn each_kind_of_transaction_has_times_of_its_own_and_connecting_is_none_of_them() {
    let server = Server::start(&[]);
    for kind in ENGINES {
        let outcome = run(&server, &read(MIXED), kind, 3, 200);
        assert_eq!((outcome.failure.clone(), outcome.transactions), (None, 200), "{kind}");
        let kinds: Vec<_> =
            outcome.by_transaction.iter().map(|transaction| transaction.kind.as_str()).collect();
        assert_eq!(kinds, ["look", "change"], "{kind}");
        let [look, change] = &outcome.by_transaction[..] else { unreachable!("there are two") };
        assert_eq!(look.response.count() + change.response.count(), 200, "{kind}");
        assert!((30..=75).contains(&change.response.count()), "a quarter: {}", change.response.count());
        assert!(change.response.min_ns() >= 10_000_000 && change.service.min_ns() >= 10_000_000, "{kind}");
        assert!(look.response.quantile_ns(0.5) < 10_000_000, "{kind}");
        let sum_ns = look.response.sum_ns() + change.response.sum_ns();
        assert_eq!(sum_ns, outcome.response.sum_ns(), "{kind}");
        // What a connection is begun with takes 300 ms.
        assert!(outcome.response.max_ns() < 250_000_000, "{kind}: {}", outcome.response.max_ns());
        assert_eq!(outcome.queries, 200, "{kind}");
    }
}

#[test]
fn unique_values_end_the_load_when_they_are_used_up() {
    let server = Server::start(&[]);
    server.sql("USE whyso; CREATE TABLE taken (id INT PRIMARY KEY)");
    let mut workload = read(
        "-- \\dictionary ids query SELECT 1\n-- \\set id unique_from(ids)\nINSERT INTO taken VALUES (:id);",
    );
    workload.fill("ids", (1..=100).map(|id: u32| id.to_string().into_bytes()).collect()).unwrap();
    let outcome = run(&server, &workload, EngineKind::Epoll, 3, 1000);
    assert_eq!(outcome.failure, None);
    assert_eq!(server.sql("SELECT COUNT(*) FROM whyso.taken"), "100");
}

#[test]
fn a_transaction_that_can_t_go_on_ends_the_level_with_a_sentence() {
    let server = Server::start(&[]);
    make_tables(&server);
    for (text, part) in [
        (
            "SELECT balance FROM account LIMIT 1 \\gset\nSELECT :balanc;",
            "has no column 'balanc'; its columns are balance",
        ),
        (
            "\\set balance 1\nSELECT balance, id FROM account LIMIT 1 \\gset\nSELECT :id, :balance;",
            "give \\gset a prefix",
        ),
        ("DO 1 \\gset\nSELECT :x;", "it returned no rows"),
        ("\\while true\n\\set x 1\n\\endwhile\nSELECT 1;", "does not end"),
        ("SELECT 'ten' AS x \\gset\n\\set y :x * 2\nSELECT :y;", "'ten' is no number"),
        ("-- \\session\nSET no_such_variable = 1;\n-- \\transaction t\nSELECT 1;", "no_such_variable"),
    ] {
        let spec = LoadSpec { engine: EngineKind::Epoll, ..LoadSpec::new(server.target(), 1, 7) };
        let message = match Engine::open(&spec, Arc::new(NativeWork::new(&read(text), 7))) {
            Ok(_) => run(&server, &read(text), EngineKind::Epoll, 1, 5).failure.expect("it fails").message,
            Err(error) => error.to_string(),
        };
        assert!(message.contains(part), "{text}: {message}");
    }
}

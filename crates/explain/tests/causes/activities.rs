//! What fills the CPUs, by sampled stacks; and the limit, which is another question.

use whyso_explain::model::{Activity, Cause, Class, Resource, StatementWork};

use crate::run_builder::RunBuilder;
use crate::stopped;

/// Full CPUs whose work is divided so, in percent.
fn full(activities: &[(Activity, u64)]) -> RunBuilder {
    let shares = [("request_cpu_ns", 0.4), ("request_runqueue_ns", 0.5)];
    stopped(16, 10.0, 0.02).traced(&shares).activities(activities)
}

#[test]
fn half_of_the_cpu_time_that_is_no_ordinary_work_is_the_cause_and_the_cpus_are_the_limit() {
    let rest = [(Activity::IndexRead, 40), (Activity::Network, 20)];
    for (activity, cause) in [
        (Activity::Connect, Cause::ConnectionChurn),
        (Activity::TableOpen, Cause::TableCache),
        (Activity::QueryCache, Cause::QueryCache),
        (Activity::Versions, Cause::PurgeLag),
        (Activity::Sort, Cause::TmpTableSort),
        (Activity::RowLocks, Cause::LockSys),
        (Activity::PageRead, Cause::BufferPoolMiss),
    ] {
        let explanation = full(&[&rest[..], &[(activity, 40)]].concat()).is(cause);
        let first = &explanation.suspects[0];
        assert!((first.share - 0.36).abs() < 0.01, "{first:#?}");
        assert_eq!(first.class, Class::Sampled);
        assert!(
            first.text.contains("40 % of the server's CPU time") && first.text.contains("100 sampled stacks")
        );
        let limit = explanation.limit.unwrap();
        assert_eq!(limit.id, Resource::Cpu, "{limit:?}");
        assert!(limit.share > 0.85, "{limit:?}");
    }
}

#[test]
fn ordinary_work_is_the_cause_where_nothing_else_holds_a_fifth() {
    let explanation =
        full(&[(Activity::IndexRead, 60), (Activity::Parse, 30), (Activity::Sort, 10)]).is(Cause::Cpu);
    let text = &explanation.suspects[0].text;
    assert!(text.contains("reading rows by an index 60 %") && text.contains("parsing 30 %"), "{text}");
    assert!(
        explanation.suspects.iter().any(|suspect| suspect.id == Cause::TmpTableSort),
        "it is listed all the same"
    );
}

#[test]
fn rows_that_are_read_and_neither_sent_nor_added_up_are_read_in_vain() {
    let read = [("Handler_read_next", 5_000.0), ("Handler_read_rnd_next", 0.0), ("Rows_sent", 1.0)];
    let work = [(Activity::IndexRead, 60), (Activity::Evaluate, 20), (Activity::Network, 20)];
    let in_vain = full(&work).status(&read).is(Cause::FullScan);
    assert_eq!(in_vain.suspects[0].class, Class::Sampled);
    full(&[&work[..], &[(Activity::Aggregate, 12)]].concat()).status(&read).is(Cause::Cpu);
    full(&work).status(&read[..2]).status(&[("Rows_sent", 5_000.0)]).is(Cause::Cpu);
    full(&work).status(&read).status(&[("Handler_update", 5_000.0)]).is(Cause::Cpu);
}

/// A statement that reads this many rows, with what becomes of them.
fn reads(kind: &str, rows: f64, sorted: f64, rejected: Option<f64>) -> StatementWork {
    StatementWork {
        kind: kind.to_string(),
        rows_sent: 1.0,
        rows_read: rows,
        rows_sorted: sorted,
        rows_rejected: rejected,
        ..StatementWork::default()
    }
}

#[test]
fn without_stacks_the_statements_time_is_divided_by_what_one_execution_does() {
    let read = [("Handler_read_next", 5_001.0), ("Handler_read_rnd_next", 0.0), ("Questions", 2.0)];
    let build = |work: &[StatementWork]| {
        full(&[]).status(&read).statements(&[("find", 3.2), ("point", 0.2)]).work(work)
    };
    let point = reads("point", 1.0, 0.0, Some(0.0));

    let explanation = build(&[reads("find", 5_000.0, 0.0, Some(5_000.0)), point.clone()]).is(Cause::FullScan);
    let first = &explanation.suspects[0];
    assert_eq!(first.class, Class::Inferred);
    // 3 ms are work on rows, of 4 ms of CPU time; the CPUs hold 0.9 of the response time.
    assert!((first.share - 0.9 * 3.0 / 4.0).abs() < 0.01, "{first:#?}");
    assert!(
        first.text.contains("find, which reads 5,000 rows, of which 5,000 meet no condition"),
        "{}",
        first.text
    );

    build(&[reads("find", 5_000.0, 4_000.0, Some(0.0)), point.clone()]).is(Cause::TmpTableSort);
    let ordinary = build(&[reads("find", 5_000.0, 0.0, Some(0.0)), point.clone()]).is(Cause::Cpu);
    assert_eq!(ordinary.suspects[0].class, Class::Inferred);
    assert!(ordinary.possible.is_empty(), "{:#?}", ordinary.possible);
}

#[test]
fn what_one_execution_does_shows_what_sampled_reads_are_for() {
    let read = [("Handler_read_next", 5_000.0), ("Handler_read_rnd_next", 0.0), ("Rows_sent", 1.0)];
    let work =
        [(Activity::IndexRead, 60), (Activity::Evaluate, 20), (Activity::Sort, 4), (Activity::Network, 16)];
    let build = |find: StatementWork| full(&work).status(&read).statements(&[("find", 3.0)]).work(&[find]);
    let in_vain = build(reads("find", 5_000.0, 0.0, Some(2_500.0))).is(Cause::FullScan);
    assert!((in_vain.suspects[0].share - 0.9 * 0.4).abs() < 0.01, "{:#?}", in_vain.suspects[0]);
    let sorted = build(reads("find", 5_000.0, 5_000.0, Some(0.0))).is(Cause::TmpTableSort);
    assert!((sorted.suspects[0].share - 0.9 * 0.84).abs() < 0.01, "{:#?}", sorted.suspects[0]);
    // By only the counters it would be in vain, for hardly anything is sent and no stack shows adding up.
    build(reads("find", 5_000.0, 0.0, Some(0.0))).is(Cause::Cpu);
    // Most rows are read by another statement, of which nothing is known.
    build(reads("find", 100.0, 0.0, Some(0.0))).is(Cause::FullScan);
}

#[test]
fn without_stacks_work_of_which_nobody_knows_what_it_is_is_unknown() {
    let read = [("Handler_read_next", 5_000.0), ("Handler_read_rnd_next", 0.0), ("Questions", 1.0)];
    let unclear =
        full(&[]).status(&read).statements(&[("find", 3.0)]).work(&[reads("find", 5_000.0, 0.0, None)]);
    let explanation = unclear.is(Cause::Unknown);
    assert!(explanation.suspects[0].text.contains("or the work of full-scan"), "{:#?}", explanation.suspects);
    assert_eq!(explanation.limit.unwrap().id, Resource::Cpu);

    let opened = full(&[]).status(&[("Opened_tables", 4.0)]).set("table_open_cache", "10");
    opened.is(Cause::Unknown);
    full(&[]).status(&[("Opened_tables", 0.0)]).is(Cause::Cpu);
}

#[test]
fn rows_that_are_sorted_are_read_for_the_sort() {
    let read = [
        ("Handler_read_next", 5_000.0),
        ("Handler_read_rnd_next", 0.0),
        ("Rows_sent", 1.0),
        ("Sort_rows", 5_000.0),
    ];
    let work = [(Activity::IndexRead, 50), (Activity::Sort, 30), (Activity::Network, 20)];
    let explanation = full(&work).status(&read).is(Cause::TmpTableSort);
    assert!((explanation.suspects[0].share - 0.72).abs() < 0.01, "{:#?}", explanation.suspects[0]);
    assert!(explanation.suspects.iter().all(|suspect| suspect.id != Cause::FullScan));
}

#[test]
fn a_connection_for_each_transaction_takes_what_clients_waited_for_it() {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.1), ("client_held_ns", 0.1)];
    let run = stopped(16, 10.0, 0.02).traced(&shares).connects(6.0).status(&[("Connections", 1.0)]);
    let explanation = run.is(Cause::ConnectionChurn);
    assert!((explanation.suspects[0].share - 0.6).abs() < 0.01, "{:#?}", explanation.suspects);
    assert_eq!(explanation.suspects[0].class, Class::Measured);
    let budget = explanation.budgets.last().unwrap();
    assert!(
        (budget.ms(whyso_explain::model::Part::Connect) - 6.0).abs() < 0.01 && budget.unaccounted_ms < 1.1
    );
}

#[test]
fn what_connections_sleep_for_is_known_from_the_process_list_where_nothing_has_stacks() {
    let shares = [("request_cpu_ns", 0.1), ("request_lock_ns", 0.8)];
    let run = stopped(16, 10.0, 0.9).traced(&shares).counter("sessions", "looks", "", 1.0);
    let found = run.counter("sessions", "in_statement", "Waiting for table metadata lock", 12.0);
    let explanation = found.is(Cause::MetadataLock);
    assert_eq!(explanation.suspects[0].class, Class::Sampled);
    assert_eq!(explanation.limit.unwrap().id, Resource::Lock);
}

#[test]
fn pauses_that_a_script_asks_for_are_not_the_load_generators_time() {
    let shares = [("request_cpu_ns", 0.2), ("client_held_ns", 0.75)];
    let mut run = stopped(4, 10.0, 0.9).traced(&shares);
    let level = run.last();
    level.user_seconds = Some(whyso_explain::model::UserSeconds {
        ended: 40.0,
        paused: 0.7 * 40.0,
        ..whyso_explain::model::UserSeconds::default()
    });
    let explanation = run.explained();
    assert!(
        explanation.suspects.iter().all(|suspect| suspect.id != Cause::Generator),
        "{:#?}",
        explanation.suspects
    );
    assert_eq!(explanation.limit.unwrap().id, Resource::None);
}

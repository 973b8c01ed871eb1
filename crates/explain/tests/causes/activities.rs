//! What fills the CPUs, by sampled stacks; and the limit, which is another question.

use whyso_explain::model::{Activity, Cause, Class, Resource};

use crate::made::Made;
use crate::stopped;

/// Full CPUs whose work is divided so, in percent.
fn full(activities: &[(Activity, u64)]) -> Made {
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
        explanation.suspects.iter().any(|one| one.id == Cause::TmpTableSort),
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

#[test]
fn without_stacks_the_statement_that_takes_most_of_the_time_is_held_to_read_the_rows() {
    let read = |rows| {
        [("Handler_read_next", rows), ("Handler_read_rnd_next", 0.0), ("Rows_sent", 1.0), ("Questions", 2.0)]
    };
    let made = |rows| full(&[]).status(&read(rows));
    let explanation = made(5_000.0).statements(&[("find", 7.0), ("point", 3.0)]).is(Cause::FullScan);
    assert_eq!(explanation.suspects[0].class, Class::Inferred);
    assert!(explanation.suspects[0].text.contains("70 % of the statements' time is that of find"));
    let sorts = [("Sort_rows", 4_000.0)];
    made(5_000.0).status(&sorts).statements(&[("find", 7.0), ("point", 3.0)]).is(Cause::TmpTableSort);
    made(5_000.0).statements(&[("one", 4.0), ("two", 3.0), ("three", 3.0)]).is(Cause::Cpu);
    made(200.0).statements(&[("find", 7.0), ("point", 3.0)]).is(Cause::Cpu);
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
    assert!(explanation.suspects.iter().all(|one| one.id != Cause::FullScan));
}

#[test]
fn a_connection_for_each_transaction_takes_what_clients_waited_for_it() {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.1), ("client_held_ns", 0.1)];
    let made = stopped(16, 10.0, 0.02).traced(&shares).connects(6.0).status(&[("Connections", 1.0)]);
    let explanation = made.is(Cause::ConnectionChurn);
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
    let made = stopped(16, 10.0, 0.9).traced(&shares).counter("sessions", "looks", "", 1.0);
    let found = made.counter("sessions", "in_statement", "Waiting for table metadata lock", 12.0);
    let explanation = found.is(Cause::MetadataLock);
    assert_eq!(explanation.suspects[0].class, Class::Sampled);
    assert_eq!(explanation.limit.unwrap().id, Resource::Lock);
}

#[test]
fn pauses_that_a_script_asks_for_are_not_the_load_generators_time() {
    let shares = [("request_cpu_ns", 0.2), ("client_held_ns", 0.75)];
    let mut made = stopped(4, 10.0, 0.9).traced(&shares);
    let level = made.last();
    level.user_seconds = Some(whyso_explain::model::UserSeconds {
        ended: 40.0,
        paused: 0.7 * 40.0,
        ..whyso_explain::model::UserSeconds::default()
    });
    let explanation = made.explained();
    assert!(explanation.suspects.iter().all(|one| one.id != Cause::Generator), "{:#?}", explanation.suspects);
    assert_eq!(explanation.limit.unwrap().id, Resource::None);
}

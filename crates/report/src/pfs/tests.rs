use std::collections::HashMap;

use whyso_explain::model::{Counter, Gauge, SeriesName};
use whyso_explain::pfs::{Per, Table, View, differences, evenness};

use super::*;

fn name(source: &str, metric: &str, instance: &str) -> SeriesName {
    let [host, source, metric, instance] = ["server", source, metric, instance].map(str::to_string);
    SeriesName { host, source, metric, instance }
}

fn counters(source: &str, increases: &[(&str, &str, f64)]) -> Vec<Counter> {
    let counter = |(metric, instance, increase): &(&str, &str, f64)| Counter {
        series: name(source, metric, instance),
        unit: "1".to_string(),
        increase: *increase,
    };
    increases.iter().map(counter).collect()
}

fn of<'a>(table: &'a Table, texts: &'a HashMap<String, String>) -> PfsOf<'a> {
    PfsOf { window: "the level of 16 users", table, texts, per: Per::Second, limit: 20 }
}

#[test]
fn waits_stand_next_to_what_caused_them_and_idle_ones_beneath() {
    let counters = counters(
        "pfs_waits",
        &[
            ("count", "wait/synch/mutex/innodb/log_sys_mutex", 1000.0),
            ("time_ns", "wait/synch/mutex/innodb/log_sys_mutex", 20e6),
            ("count", "wait/synch/mutex/sql/LOCK_plugin", 4000.0),
            ("count", "wait/synch/cond/sql/COND_manager", 2.0),
            ("time_ns", "wait/synch/cond/sql/COND_manager", 10e9),
        ],
    );
    let view = View::named("waits").unwrap();
    let mut table = Table::new(view, &counters, &[], 10.0, Some(20_000.0), Some(1000.0));
    table.sort(&view.columns[1]);
    let texts = HashMap::new();
    let expected = "\
Waits by event: mutexes, read-write locks, conditions, files, tables, sockets.
The level of 16 users: 10 s, 20,000 statements, 1,000 transactions.

count/s  /statement  /transaction  ms/s  µs/statement  µs/transaction  mean µs  of time  event
    500        0.25             5     2             1              20        4    100 %  <Total>
    100        0.05             1     2             1              20       20    100 %  wait/synch/mutex/innodb/log_sys_mutex
    400         0.2             4     –             –               –        –        –  wait/synch/mutex/sql/LOCK_plugin

Waits of threads that had nothing to do, or waited for their client; not in the total:
count/s  /statement  /transaction   ms/s  µs/statement  µs/transaction    mean µs  of time  event
    0.2      0.0001         0.002  1,000           500          10,000  5,000,000        –  wait/synch/cond/sql/COND_manager
";
    assert_eq!(pfs(of(&table, &texts)), expected);
    let object = pfs_json(of(&table, &texts));
    assert_eq!(object["lines"][0]["time_ns"], 20e6);
    assert_eq!(object["idle"][0]["name"], "wait/synch/cond/sql/COND_manager");
}

#[test]
fn a_digest_is_shown_by_its_text_and_only_columns_that_counted_are_shown() {
    let counters = counters(
        "pfs_digests",
        &[
            ("count", "shop:abc", 50.0),
            ("time_ns", "shop:abc", 1e6),
            ("rows_sent", "shop:abc", 500.0),
            ("errors", "shop:abc", 0.0),
        ],
    );
    let view = View::named("digests").unwrap();
    let table = Table::new(view, &counters, &[], 10.0, None, None);
    let texts = HashMap::from([("shop:abc".to_string(), "SELECT \u{1b}[31m * FROM t".to_string())]);
    let text = pfs(of(&table, &texts));
    assert!(text.contains("Per second."), "{text}");
    assert!(text.contains("count    time  sent  digest"), "{text}");
    assert!(!text.contains("errors") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn whysos_own_statements_are_hidden_with_their_share_until_they_are_asked_for() {
    let own = "information_schema:own";
    let counters = counters(
        "pfs_digests",
        &[
            ("count", "shop:abc", 50.0),
            ("time_ns", "shop:abc", 3e6),
            ("count", own, 200.0),
            ("own_count", own, 200.0),
            ("time_ns", own, 9e6),
            ("count", "information_schema:both", 201.0),
            ("own_count", "information_schema:both", 200.0),
            ("time_ns", "information_schema:both", 0.0),
        ],
    );
    let mut table = Table::new(View::named("digests").unwrap(), &counters, &[], 10.0, None, None);
    let texts = [
        ("shop:abc", "SELECT ?"),
        (own, "SHOW GLOBAL STATUS"),
        ("information_schema:both", "SELECT @@log_bin"),
    ];
    let texts = texts.into_iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
    let text = pfs(of(&table, &texts));
    assert!(!text.contains("SHOW GLOBAL STATUS"), "{text}");
    assert!(text.contains("[whyso: 200 of 201] SELECT @@log_bin"), "{text}");
    let hidden =
        "Not shown: 1 statement of whyso's own connections, 75 % of the time (--observer shows them).";
    assert!(text.contains(hidden), "{text}");
    let object = pfs_json(of(&table, &texts));
    assert_eq!((object["lines"].as_array().unwrap().len(), &object["observer"][0]["name"]), (2, &own.into()));
    table.show_observer();
    let text = pfs(of(&table, &texts));
    assert!(text.contains("[whyso] SHOW GLOBAL STATUS") && !text.contains("Not shown"), "{text}");
}

#[test]
fn a_level_is_a_mean_and_is_divided_by_nothing() {
    let gauge = Gauge {
        series: name("pfs_memory", "memory_bytes", "memory/innodb/buf_buf_pool"),
        unit: "bytes".to_string(),
        mean: 134_217_728.0,
        max: 134_217_728.0,
    };
    let view = View::named("memory").unwrap();
    let table = Table::new(view, &[], &[gauge], 10.0, None, None);
    let text = pfs(of(&table, &HashMap::new()));
    assert!(text.contains("128 MiB  memory/innodb/buf_buf_pool"), "{text}");
}

#[test]
fn an_uneven_lock_is_shown_as_uneven() {
    let counters = counters(
        "pfs_lock_instances",
        &[("count", "wait/synch/mutex/a 7f01", 900.0), ("count", "wait/synch/mutex/a 7f02", 100.0)],
    );
    let table = Table::new(View::named("lock-instances").unwrap(), &counters, &[], 10.0, None, None);
    let text = pfs_evenness(of(&table, &HashMap::new()), &evenness(&table));
    assert!(text.contains("        2      100         90 %      61 %     –  wait/synch/mutex/a\n"), "{text}");
}

#[test]
fn a_difference_names_what_it_is_of() {
    let view = View::named("waits").unwrap();
    let table = |count: f64| {
        Table::new(view, &counters("pfs_waits", &[("count", "a", count)]), &[], 10.0, None, Some(10.0))
    };
    let (here, there, texts) = (table(100.0), table(250.0), HashMap::new());
    let column = view.columns[0];
    let found = differences(&here, &there, &column, Per::Transaction);
    let [a, b] = [&here, &there].map(|table| PfsOf { per: Per::Transaction, ..of(table, &texts) });
    let text = pfs_differences(a, b, &column, &found);
    assert!(text.contains("10     25         −15  a\n"), "{text}");
}

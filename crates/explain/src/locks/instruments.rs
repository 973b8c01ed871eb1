//! Waits for the server's own locks, by the instrument that counted them.

use std::collections::BTreeMap;

use crate::model::Counter;

/// The Performance Schema's waits by event, of which these are locks.
const WAITS: &str = "pfs_waits";
const LOCKS: [&str; 2] = ["wait/synch/", "wait/lock/"];
/// InnoDB's own count, of servers that have one.
const INNODB: &str = "innodb_mutexes";
const TABLE_LOCKS: &str = "pfs_table_locks";
const TABLE_IO: &str = "pfs_tables";

/// Whether a sampler counts waits for locks by what they are for.
pub fn is_lock_source(source: &str) -> bool {
    [WAITS, INNODB, TABLE_LOCKS, TABLE_IO].contains(&source)
}

/// What one instrument counted over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstrumentWait {
    /// As the server names it, such as "wait/synch/mutex/innodb/log_sys_mutex", or a lock of InnoDB's by its place in the source.
    pub name: String,
    pub count: f64,
    /// `None` where the server counts without taking the time.
    pub ns: Option<f64>,
}

impl InstrumentWait {
    /// Waits on a condition are mostly those of threads that have nothing to do.
    pub fn is_condition(&self) -> bool {
        self.name.starts_with("wait/synch/cond/")
    }
}

/// What the SQL layer counted for one table over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableWait {
    /// Such as "shop.orders".
    pub name: String,
    pub lock_count: f64,
    pub lock_ns: f64,
    pub io_count: f64,
    /// Waits for row locks included.
    pub io_ns: f64,
}

/// The instruments that counted something, those with the most time first, then those that take no time, and conditions last.
pub fn instruments(counters: &[Counter]) -> Vec<InstrumentWait> {
    let mut found: BTreeMap<&str, InstrumentWait> = BTreeMap::new();
    for counter in counters.iter().filter(|counter| has_grown(counter)) {
        let name = &counter.series.instance;
        let new = || InstrumentWait { name: name.clone(), ..InstrumentWait::default() };
        let is_lock = LOCKS.iter().any(|begin| name.starts_with(begin));
        match (counter.series.source.as_str(), counter.series.metric.as_str()) {
            (WAITS, "count") if is_lock => found.entry(name).or_insert_with(new).count = counter.increase,
            (WAITS, "time_ns") if is_lock => {
                found.entry(name).or_insert_with(new).ns = Some(counter.increase)
            }
            (INNODB, _) => found.entry(name).or_insert_with(new).count = counter.increase,
            _ => {}
        }
    }
    let mut found: Vec<InstrumentWait> = found.into_values().collect();
    found.sort_by(|a, b| {
        let ns = |wait: &InstrumentWait| wait.ns.unwrap_or(-1.0);
        a.is_condition()
            .cmp(&b.is_condition())
            .then(ns(b).total_cmp(&ns(a)))
            .then(b.count.total_cmp(&a.count))
    });
    found
}

/// Tables by time, the most first.
pub fn tables(counters: &[Counter]) -> Vec<TableWait> {
    let mut found: BTreeMap<&str, TableWait> = BTreeMap::new();
    for counter in counters.iter().filter(|counter| has_grown(counter)) {
        let name = &counter.series.instance;
        let new = || TableWait { name: name.clone(), ..TableWait::default() };
        match (counter.series.source.as_str(), counter.series.metric.as_str()) {
            (TABLE_LOCKS, "count") => found.entry(name).or_insert_with(new).lock_count = counter.increase,
            (TABLE_LOCKS, "time_ns") => found.entry(name).or_insert_with(new).lock_ns = counter.increase,
            (TABLE_IO, "count") => found.entry(name).or_insert_with(new).io_count = counter.increase,
            (TABLE_IO, "time_ns") => found.entry(name).or_insert_with(new).io_ns = counter.increase,
            _ => {}
        }
    }
    let mut found: Vec<TableWait> = found.into_values().collect();
    found.sort_by(|a, b| (b.lock_ns + b.io_ns).total_cmp(&(a.lock_ns + a.io_ns)));
    found
}

fn has_grown(counter: &Counter) -> bool {
    counter.increase > 0.0 && counter.increase < 1e24
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SeriesName;

    fn counter(source: &str, metric: &str, instance: &str, increase: f64) -> Counter {
        let [host, source, metric, instance] = ["server", source, metric, instance].map(str::to_string);
        Counter { series: SeriesName { host, source, metric, instance }, unit: String::new(), increase }
    }

    #[test]
    fn instruments_stand_by_time_and_conditions_last() {
        let counters = [
            counter(WAITS, "count", "wait/synch/mutex/a", 5.0),
            counter(WAITS, "time_ns", "wait/synch/mutex/a", 10.0),
            counter(WAITS, "count", "wait/synch/cond/idle", 1.0),
            counter(WAITS, "time_ns", "wait/synch/cond/idle", 1e9),
            counter(INNODB, "os_waits", "log0log.c:832", 7.0),
            counter(WAITS, "time_ns", "wait/synch/rwlock/b", 30.0),
            counter(WAITS, "time_ns", "wait/io/file/sql/binlog", 300.0),
            counter(WAITS, "count", "wait/synch/mutex/none", 0.0),
        ];
        let names: Vec<String> = instruments(&counters).into_iter().map(|wait| wait.name).collect();
        assert_eq!(
            names,
            ["wait/synch/rwlock/b", "wait/synch/mutex/a", "log0log.c:832", "wait/synch/cond/idle"]
        );
    }

    #[test]
    fn tables_have_both_sorts_of_waits() {
        let counters = [
            counter(TABLE_IO, "time_ns", "t.a", 5.0),
            counter(TABLE_IO, "count", "t.a", 2.0),
            counter(TABLE_LOCKS, "time_ns", "t.b", 9.0),
        ];
        let found = tables(&counters);
        assert_eq!((found[0].name.as_str(), found[0].lock_ns), ("t.b", 9.0));
        assert_eq!((found[1].io_count, found[1].io_ns, found[1].lock_ns), (2.0, 5.0, 0.0));
    }
}

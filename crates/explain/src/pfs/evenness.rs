//! How evenly the instances of a lock are used: whether striping it spread what waits for it.

use std::collections::BTreeMap;

use super::table::Table;

/// The instances of one lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Evenness {
    /// Such as "wait/synch/rwlock/sql/MDL_lock::rwlock".
    pub event: String,
    /// Those that counted anything.
    pub instances: usize,
    pub count: f64,
    pub ns: Option<f64>,
    /// The busiest one's part of the count, 0 to 1.
    pub busiest: f64,
    /// 1 where all are used alike, 1/instances where one has everything: (Σ count)² / (instances · Σ count²), the inverse of Simpson's
    /// index of concentration over the number of instances.
    pub even: f64,
}

/// Locks by count, the most first. `table` is the view "lock-instances", whose lines are "event address".
pub fn evenness(table: &Table) -> Vec<Evenness> {
    let mut locks: BTreeMap<&str, (Vec<f64>, Option<f64>)> = BTreeMap::new();
    for line in &table.lines {
        let Some((event, _)) = line.name.rsplit_once(' ') else { continue };
        let (counts, ns) = locks.entry(event).or_default();
        counts.push(line.values.first().copied().flatten().unwrap_or(0.0).max(0.0));
        if let Some(time) = line.values.get(1).copied().flatten() {
            *ns = Some(ns.unwrap_or(0.0) + time);
        }
    }
    let mut found: Vec<Evenness> = locks
        .into_iter()
        .filter_map(|(event, (counts, ns))| {
            let count: f64 = counts.iter().sum();
            let squares: f64 = counts.iter().map(|count| count * count).sum();
            let instances = counts.len();
            (count > 0.0).then(|| Evenness {
                event: event.to_string(),
                instances,
                count,
                ns,
                busiest: counts.iter().copied().fold(0.0, f64::max) / count,
                even: count * count / (instances as f64 * squares),
            })
        })
        .collect();
    found.sort_by(|a, b| b.count.total_cmp(&a.count));
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Counter, SeriesName};
    use crate::pfs::View;

    fn of(counts: &[f64]) -> Vec<Evenness> {
        let counter = |(at, increase): (usize, &f64)| Counter {
            series: SeriesName {
                host: "server".to_string(),
                source: "pfs_lock_instances".to_string(),
                metric: "count".to_string(),
                instance: format!("wait/synch/mutex/a {at:x}"),
            },
            unit: "1".to_string(),
            increase: *increase,
        };
        let counters: Vec<Counter> = counts.iter().enumerate().map(counter).collect();
        let view = View::named("lock-instances").unwrap();
        evenness(&Table::new(view, &counters, &[], 1.0, None, None))
    }

    #[test]
    fn one_instance_that_has_everything_is_as_uneven_as_can_be() {
        let found = of(&[1000.0, 1e-9, 1e-9, 1e-9]);
        assert!((found[0].even - 0.25).abs() < 1e-6 && (found[0].busiest - 1.0).abs() < 1e-6, "{found:?}");
        let found = of(&[5.0, 5.0, 5.0, 5.0]);
        assert_eq!((found[0].instances, found[0].even, found[0].busiest), (4, 1.0, 0.25));
    }

    proptest! {
        #[test]
        fn evenness_lies_between_one_instance_and_all(counts in prop::collection::vec(1.0_f64..1e9, 1..60)) {
            let found = of(&counts);
            let n = counts.len() as f64;
            prop_assert!(found[0].even <= 1.0 + 1e-9 && found[0].even >= 1.0 / n - 1e-9);
            prop_assert!(found[0].busiest <= 1.0 && found[0].busiest >= 1.0 / n - 1e-9);
        }
    }
}

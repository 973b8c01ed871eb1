//! Intervals hold the truth as often as they say: a part of what `bench/statistics` reports, on seeds of its own.

#[path = "../examples/coverage/cases.rs"]
mod cases;
#[path = "../examples/coverage/shares.rs"]
mod shares;
#[path = "../examples/coverage/simulate.rs"]
mod simulate;
#[path = "../examples/coverage/starts.rs"]
mod starts;
#[path = "../examples/coverage/sweep.rs"]
mod sweep;
#[path = "../examples/coverage/throughput.rs"]
mod throughput;
#[path = "../examples/coverage/windows.rs"]
mod windows;

use cases::Row;
use simulate::{Seeds, Tally};

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let rows = cases::rows(Seeds { first: 9_000_000_000, fewer: 40 });
    let missed: Vec<&Row> = rows.iter().filter(|row| !row.target.holds(&row.tally)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    // All cases of an interval together have this many series that little noise is left.
    for first in &rows {
        let is_alike = |row: &&Row| row.interval == first.interval && row.target == first.target;
        let mut all = Tally::default();
        for row in rows.iter().filter(is_alike) {
            all.series += row.tally.series;
            all.with_interval += row.tally.with_interval;
            all.missed += row.tally.missed;
        }
        assert!(first.target.holds(&all), "{}, {:?}: {all:?}", first.interval, first.target);
    }
    let with_interval: u32 = rows.iter().map(|row| row.tally.with_interval).sum();
    let series: u32 = rows.iter().map(|row| row.tally.series).sum();
    assert!(with_interval > series / 2, "{with_interval} of {series} have an interval");
}

//! The lines of a view over a window, and what differs between two of them.

use std::collections::BTreeMap;

use super::idle::is_idle;
use super::view::{Column, View};
use crate::model::{Counter, Gauge};

/// One line of a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Such as "wait/synch/mutex/innodb/log_sys_mutex".
    pub name: String,
    /// By column of the view: by how much it grew, or its mean where the column is a level. `None` where the server does not count it.
    pub values: Vec<Option<f64>>,
    /// Of the executions of a digest, those by whyso's own connections; `None` where none is known.
    pub own: Option<f64>,
}

/// A view over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub view: &'static View,
    pub seconds: f64,
    /// Statements and transactions that ended in the window; `None` where that was not recorded.
    pub statements: Option<f64>,
    pub transactions: Option<f64>,
    pub lines: Vec<Line>,
    /// Waits of threads that have nothing to do.
    pub idle: Vec<Line>,
    /// Statements that only whyso's own connections executed. Those that others executed as well are among [`Table::lines`].
    pub observer: Vec<Line>,
}

/// What a number is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    Second,
    Statement,
    Transaction,
    /// Not divided: over all the window.
    Window,
}

impl Per {
    pub fn name(self) -> &'static str {
        match self {
            Per::Second => "second",
            Per::Statement => "statement",
            Per::Transaction => "transaction",
            Per::Window => "window",
        }
    }
}

/// A text that names no [`Per`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of second, statement, transaction and window")]
pub struct UnknownPer(String);

impl std::str::FromStr for Per {
    type Err = UnknownPer;

    fn from_str(text: &str) -> Result<Per, UnknownPer> {
        [Per::Second, Per::Statement, Per::Transaction, Per::Window]
            .into_iter()
            .find(|per| per.name() == text)
            .ok_or_else(|| UnknownPer(text.to_string()))
    }
}

/// Where a recording has the number of executions by whyso's own connections.
pub const OWN_COUNT: &str = "own_count";
/// Two counts that were interpolated between readings are equal to this part.
const EQUAL: f64 = 1e-6;

/// Beyond this a counter counts as broken.
const INCREASE_MAX: f64 = 1e24;

impl Table {
    /// The lines that counted anything. `seconds`: the window's length.
    pub fn new(
        view: &'static View,
        counters: &[Counter],
        gauges: &[Gauge],
        seconds: f64,
        statements: Option<f64>,
        transactions: Option<f64>,
    ) -> Table {
        let mut lines: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
        let mut own: BTreeMap<&str, f64> = BTreeMap::new();
        let place = |metric: &str| view.columns.iter().position(|column| column.metric == metric);
        let grown = counters.iter().map(|counter| (&counter.series, counter.increase));
        let levels = gauges.iter().map(|gauge| (&gauge.series, gauge.mean));
        for (series, value) in grown.chain(levels) {
            if series.source != view.source || value.is_nan() || value.abs() >= INCREASE_MAX {
                continue;
            }
            if series.metric == OWN_COUNT {
                own.insert(&series.instance, value);
            }
            if let Some(place) = place(&series.metric) {
                let values = lines.entry(&series.instance).or_insert_with(|| vec![None; view.columns.len()]);
                values[place] = Some(value);
            }
        }
        lines.retain(|_, values| values.iter().flatten().any(|value| *value > 0.0));
        let line = |(name, values): (&str, Vec<Option<f64>>)| {
            let own = own.get(name).copied().filter(|own| *own > 0.0);
            Line { name: name.to_string(), values, own }
        };
        let (observer, lines): (Vec<Line>, Vec<Line>) =
            lines.into_iter().map(line).partition(Line::is_observers);
        let is_idle = |line: &Line| view.is_of_waits() && is_idle(event_of(&line.name));
        let (idle, lines) = lines.into_iter().partition(is_idle);
        Table { view, seconds, statements, transactions, lines, idle, observer }
    }

    /// What a number of this table is divided by; `None` where that is not known, or nothing.
    pub fn divisor(&self, per: Per) -> Option<f64> {
        let divisor = match per {
            Per::Second => Some(self.seconds),
            Per::Statement => self.statements,
            Per::Transaction => self.transactions,
            Per::Window => Some(1.0),
        };
        divisor.filter(|divisor| *divisor > 0.0)
    }

    /// The number of `line` in `column`, divided unless it is a level.
    pub fn value(&self, line: &Line, column: &Column, per: Per) -> Option<f64> {
        let place = self.view.columns.iter().position(|other| other == column)?;
        let value = line.values.get(place).copied().flatten()?;
        if column.is_level { Some(value) } else { Some(value / self.divisor(per)?) }
    }

    /// The sum of all lines that are not idle.
    pub fn total(&self) -> Line {
        let sum = |place: usize| {
            let values = self.lines.iter().filter_map(|line| line.values.get(place).copied().flatten());
            values.reduce(|sum, value| sum + value)
        };
        let values = (0..self.view.columns.len()).map(sum).collect();
        Line { name: "<Total>".to_string(), values, own: None }
    }

    /// Puts the statements of whyso's own connections among the others.
    pub fn show_observer(&mut self) {
        self.lines.append(&mut self.observer);
    }

    /// The part, 0 to 1, that the statements of whyso's own connections have of all that was counted. It is of the time where any was
    /// measured, else of the executions. `None` where there are no such statements.
    pub fn observer_share(&self) -> Option<f64> {
        let sum = |lines: &[Line], place: usize| -> f64 {
            lines.iter().filter_map(|line| line.values.get(place).copied().flatten()).sum()
        };
        let share = |place: usize| {
            let observer = sum(&self.observer, place);
            (observer > 0.0).then(|| observer / (observer + sum(&self.lines, place)))
        };
        share(1).or_else(|| share(0))
    }

    /// What the view is sorted by unless the user chooses: time where any was measured, else the count.
    pub fn main_column(&self) -> &'static Column {
        let columns = self.view.columns;
        let has =
            |place: usize| self.total().values.get(place).copied().flatten().is_some_and(|sum| sum > 0.0);
        match columns.get(1) {
            Some(second) if has(1) => second,
            _ => &columns[0],
        }
    }

    /// The greatest first; names decide between equals.
    pub fn sort(&mut self, column: &Column) {
        let place = self.view.columns.iter().position(|other| other == column).unwrap_or(0);
        let number = |line: &Line| line.values.get(place).copied().flatten().unwrap_or(f64::NEG_INFINITY);
        let order = |a: &Line, b: &Line| number(b).total_cmp(&number(a)).then_with(|| a.name.cmp(&b.name));
        self.lines.sort_by(order);
        self.idle.sort_by(order);
        self.observer.sort_by(order);
    }

    /// Only lines that are wanted.
    pub fn keep(&mut self, is_wanted: impl Fn(&Line) -> bool) {
        self.lines.retain(&is_wanted);
        self.idle.retain(&is_wanted);
        self.observer.retain(&is_wanted);
    }
}

impl Line {
    /// Whether nobody but whyso's own connections executed it. What others executed at all is theirs, too.
    fn is_observers(&self) -> bool {
        let count = self.values.first().copied().flatten();
        self.own.zip(count).is_some_and(|(own, count)| own >= count * (1.0 - EQUAL))
    }
}

/// Of "user event" the event.
fn event_of(name: &str) -> &str {
    name.rsplit(' ').next().unwrap_or(name)
}

/// A line of two tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub name: String,
    /// By column of the view: here, and there; divided alike, 0 where one side has no such line.
    pub here: Vec<Option<f64>>,
    pub there: Vec<Option<f64>>,
}

/// What differs in `column`, the greatest difference first, whichever side it is on. Nothing where a side lacks what is divided by.
pub fn differences(here: &Table, there: &Table, column: &Column, per: Per) -> Vec<Difference> {
    if here.divisor(per).is_none() || there.divisor(per).is_none() {
        return Vec::new();
    }
    let divided = |table: &Table, line: &Line| -> Vec<Option<f64>> {
        table.view.columns.iter().map(|column| table.value(line, column, per)).collect()
    };
    let mut lines: BTreeMap<&str, [Option<Vec<Option<f64>>>; 2]> = BTreeMap::new();
    for (side, table) in [here, there].into_iter().enumerate() {
        for line in &table.lines {
            lines.entry(&line.name).or_default()[side] = Some(divided(table, line));
        }
    }
    let columns = here.view.columns.len();
    let nothing = || vec![Some(0.0); columns];
    let mut found: Vec<Difference> = lines
        .into_iter()
        .map(|(name, [here, there])| Difference {
            name: name.to_string(),
            here: here.unwrap_or_else(nothing),
            there: there.unwrap_or_else(nothing),
        })
        .collect();
    let place = here.view.columns.iter().position(|other| other == column).unwrap_or(0);
    let size = |line: &Difference| {
        let at = |values: &[Option<f64>]| values.get(place).copied().flatten().unwrap_or(0.0);
        (at(&line.here) - at(&line.there)).abs()
    };
    found.sort_by(|a, b| size(b).total_cmp(&size(a)));
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::SeriesName;

    fn counter(metric: &str, instance: &str, increase: f64) -> Counter {
        let [host, source, metric, instance] = ["server", "pfs_waits", metric, instance].map(str::to_string);
        Counter { series: SeriesName { host, source, metric, instance }, unit: String::new(), increase }
    }

    fn waits(counters: &[Counter]) -> Table {
        Table::new(View::named("waits").unwrap(), counters, &[], 10.0, Some(200.0), Some(20.0))
    }

    #[test]
    fn statements_of_whysos_own_connections_are_apart_and_one_that_a_client_sent_too_stays() {
        let counter = |metric: &str, instance: &str, increase: f64| {
            let mut counter = counter(metric, instance, increase);
            counter.series.source = "pfs_digests".to_string();
            counter
        };
        let counters = [
            counter("count", "shop:a", 20.0),
            counter("time_ns", "shop:a", 25.0),
            counter("count", "information_schema:own", 50.0),
            counter(OWN_COUNT, "information_schema:own", 50.0 - 1e-9),
            counter("time_ns", "information_schema:own", 900.0),
            counter("count", "information_schema:both", 51.0),
            counter(OWN_COUNT, "information_schema:both", 50.0),
            counter("time_ns", "information_schema:both", 75.0),
        ];
        let mut table = Table::new(View::named("digests").unwrap(), &counters, &[], 10.0, None, None);
        table.sort(table.main_column());
        let names = |lines: &[Line]| lines.iter().map(|line| line.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&table.lines), ["information_schema:both", "shop:a"]);
        assert_eq!((table.lines[0].own, table.lines[1].own), (Some(50.0), None));
        assert_eq!(table.total().values[..2], [Some(71.0), Some(100.0)]);
        assert_eq!(names(&table.observer), ["information_schema:own"]);
        assert_eq!(table.observer_share(), Some(0.9));
        table.show_observer();
        table.sort(table.main_column());
        assert_eq!(names(&table.lines)[0], "information_schema:own");
        assert_eq!(table.observer_share(), None);
    }

    #[test]
    fn waits_are_shown_per_second_statement_and_transaction_and_idle_ones_apart() {
        let mut table = waits(&[
            counter("count", "wait/synch/mutex/innodb/log_sys_mutex", 100.0),
            counter("time_ns", "wait/synch/mutex/innodb/log_sys_mutex", 4000.0),
            counter("count", "wait/synch/mutex/sql/LOCK_plugin", 400.0),
            counter("count", "wait/synch/cond/sql/COND_manager", 7.0),
            counter("time_ns", "wait/synch/cond/sql/COND_manager", 9e9),
            counter("count", "wait/synch/cond/sql/MDL_context::COND_wait_status", 1.0),
            counter("count", "wait/synch/mutex/sql/never", 0.0),
        ]);
        assert_eq!(table.idle.len(), 1);
        assert_eq!(table.lines.len(), 3);
        let [count, time] = [table.view.columns[0], table.view.columns[1]];
        assert_eq!(table.main_column(), &time);
        table.sort(&time);
        let first = table.lines[0].clone();
        assert_eq!(first.name, "wait/synch/mutex/innodb/log_sys_mutex");
        assert_eq!(table.value(&first, &count, Per::Second), Some(10.0));
        assert_eq!(table.value(&first, &count, Per::Statement), Some(0.5));
        assert_eq!(table.value(&first, &time, Per::Transaction), Some(200.0));
        table.sort(&count);
        assert_eq!(table.lines[0].name, "wait/synch/mutex/sql/LOCK_plugin");
        assert_eq!(table.value(&table.lines[0], &time, Per::Window), None, "it was not timed");
        assert_eq!(table.total().values, [Some(501.0), Some(4000.0)]);
        table.keep(|line| line.name.contains("log_sys"));
        assert_eq!(table.lines.len(), 1);
    }

    #[test]
    fn what_only_one_side_has_is_a_difference_too() {
        let here = waits(&[counter("count", "a", 100.0), counter("count", "b", 50.0)]);
        let there = waits(&[counter("count", "a", 100.0), counter("count", "c", 500.0)]);
        let count = here.view.columns[0];
        let found = differences(&here, &there, &count, Per::Transaction);
        let names: Vec<&str> = found.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["c", "b", "a"]);
        assert_eq!((found[0].here[0], found[0].there[0]), (Some(0.0), Some(25.0)));
    }

    #[test]
    fn nothing_is_divided_by_what_is_not_known() {
        let mut table = waits(&[counter("count", "a", 100.0)]);
        table.transactions = None;
        let (line, count) = (table.lines[0].clone(), table.view.columns[0]);
        assert_eq!(table.value(&line, &count, Per::Transaction), None);
        assert!(differences(&table, &table, &count, Per::Transaction).is_empty());
    }

    /// `fixtures/pfs.json` has lines with their values and differences; the page's tests read it, too.
    #[test]
    fn values_and_differences_are_those_of_the_page() {
        let fixtures: serde_json::Value =
            serde_json::from_str(include_str!("../../fixtures/pfs.json")).unwrap();
        let view = View::named(fixtures["view"].as_str().unwrap()).unwrap();
        let side = |name: &str| {
            let of = &fixtures[name];
            let values = of["lines"].as_object().unwrap().iter().flat_map(|(line, values)| {
                let value = |at: usize| values[at].as_f64();
                ["count", "time_ns"]
                    .into_iter()
                    .enumerate()
                    .filter_map(move |(at, metric)| Some(counter(metric, line, value(at)?)))
            });
            let counters: Vec<Counter> = values.collect();
            Table::new(
                view,
                &counters,
                &[],
                of["seconds"].as_f64().unwrap(),
                of["statements"].as_f64(),
                of["transactions"].as_f64(),
            )
        };
        let sides = [("here", side("here")), ("there", side("there"))];
        let column = |of: &serde_json::Value| view.columns[of["column"].as_u64().unwrap() as usize];
        let per = |of: &serde_json::Value| of["per"].as_str().unwrap().parse::<Per>().unwrap();
        for case in fixtures["values"].as_array().unwrap() {
            let (_, table) = sides.iter().find(|(name, _)| case["side"] == *name).unwrap();
            let line = table.lines.iter().find(|line| case["line"] == line.name.as_str()).unwrap();
            assert_eq!(table.value(line, &column(case), per(case)), case["value"].as_f64(), "{case}");
        }
        for case in fixtures["differences"].as_array().unwrap() {
            let place = case["column"].as_u64().unwrap() as usize;
            let found = differences(&sides[0].1, &sides[1].1, &column(case), per(case));
            let object = |one: &Difference| serde_json::json!({ "name": one.name, "here": one.here[place], "there": one.there[place] });
            let lines = case["lines"].as_array().unwrap();
            assert_eq!(found.len(), lines.len(), "{case}");
            for (line, expected) in found.iter().zip(lines) {
                assert_eq!(line.name.as_str(), expected["name"], "{case}");
                for name in ["here", "there"] {
                    assert_eq!(
                        object(line)[name].as_f64(),
                        expected[name].as_f64(),
                        "{name} of {}",
                        line.name
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_total_is_the_sum_of_its_lines(counts in prop::collection::vec(0.0_f64..1e12, 0..40)) {
            let counters: Vec<Counter> =
                counts.iter().enumerate().map(|(at, value)| counter("count", &at.to_string(), *value)).collect();
            let table = waits(&counters);
            let sum: f64 = counts.iter().sum();
            let total = table.total().values[0].unwrap_or(0.0);
            prop_assert!((total - sum).abs() <= sum * 1e-9);
        }
    }
}

//! Statements by level, as the page has them.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use ts_rs::TS;
use whyso_explain::statements::{COMMAND_METRICS, SqlTraceCost, StatementTime};

use super::total;
use crate::text::shortened;
use crate::text::statements::{STATEMENT_MAX, placeholder, plain, sql_trace_words};

/// The page has the statements that are among this number of first ones by count or by any metric.
const SHOWN_MAX: usize = 20;

/// What clients asked of the server over a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStatements {
    /// Of the whole run.
    pub trace: SqlTraceCost,
    /// Of the statements, by number.
    pub texts: HashMap<u32, String>,
    pub levels: Vec<LevelStatements>,
}

/// The same of one level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelStatements {
    /// The level's index; `None`: all of a recording in which no level ended.
    pub level: Option<u32>,
    /// Length of the window.
    pub seconds: f64,
    /// Commands of whyso's own connections that are not among them.
    pub own_left_out: u64,
    /// Those with the most response time first.
    pub statements: Vec<StatementTime>,
}

impl RunStatements {
    /// Returns the text of a statement. Instead of one that is not known, it is a placeholder; of commands without a text, it is empty.
    pub(crate) fn text(&self, time: &StatementTime) -> String {
        let text = time.statement.and_then(|number| self.texts.get(&number));
        text.map_or_else(
            || placeholder(&time.command).to_string(),
            |text| shortened(&plain(text), STATEMENT_MAX),
        )
    }
}

/// What the page's head holds of statements.
#[derive(Serialize, TS)]
pub(crate) struct StatementsHead {
    /// Names of the metrics whose sums there are; times in nanoseconds.
    metrics: Vec<&'static str>,
    /// How many of those, from the first, are times.
    times: usize,
    /// What following them cost, as a text.
    cost: String,
    levels: Vec<StatementsOfLevel>,
}

#[derive(Serialize, TS)]
struct StatementsOfLevel {
    level: Option<u32>,
    seconds: f64,
    own_left_out: u64,
    total: StatementRow,
    rows: Vec<StatementRow>,
    /// How many more statements there were, and how many commands those were.
    left: usize,
    left_count: u64,
}

#[derive(Serialize, TS)]
struct StatementRow {
    command: String,
    /// What the command says; empty where it says nothing.
    statement: String,
    count: u64,
    /// By metric; null where it is known of no command, or there is no such count.
    sums: Vec<Option<u64>>,
    /// By metric: of how many commands.
    known: [u64; 9],
    mean_ns: f64,
    /// Not of all together.
    p95_ns: Option<u64>,
    max_ns: u64,
}

/// `None` where no commands were followed.
pub(crate) fn head(run: Option<&RunStatements>) -> Option<StatementsHead> {
    let run = run?;
    let times = COMMAND_METRICS.iter().filter(|metric| metric.is_time()).count();
    Some(StatementsHead {
        metrics: COMMAND_METRICS.iter().map(|metric| metric.name()).collect(),
        times,
        cost: sql_trace_words(&run.trace),
        levels: run.levels.iter().map(|level| of_level(run, level, SHOWN_MAX)).collect(),
    })
}

fn of_level(run: &RunStatements, level: &LevelStatements, most: usize) -> StatementsOfLevel {
    let all = &level.statements;
    let mut shown: BTreeSet<usize> = BTreeSet::new();
    let mut add = |key: &dyn Fn(&StatementTime) -> u64| {
        let mut places: Vec<usize> = (0..all.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(key(&all[*place])));
        shown.extend(places.into_iter().take(most));
    };
    COMMAND_METRICS.iter().for_each(|metric| add(&|time| time.sums[*metric as usize]));
    add(&|time| time.count);
    let others = all.iter().enumerate().filter(|(place, _)| !shown.contains(place));
    let left_count = others.map(|(_, time)| time.count).sum();
    StatementsOfLevel {
        level: level.level,
        seconds: level.seconds,
        own_left_out: level.own_left_out,
        total: StatementRow { p95_ns: None, ..row(run, &total(all)) },
        rows: shown.iter().map(|place| row(run, &all[*place])).collect(),
        left: all.len() - shown.len(),
        left_count,
    }
}

fn row(run: &RunStatements, time: &StatementTime) -> StatementRow {
    StatementRow {
        command: time.command.clone(),
        statement: run.text(time),
        count: time.count,
        sums: COMMAND_METRICS.iter().map(|metric| time.sum(*metric)).collect(),
        known: time.known,
        mean_ns: time.mean_ns(),
        p95_ns: Some(time.p95_ns),
        max_ns: time.max_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(number: u32, sums: [u64; 9], known: [u64; 9]) -> StatementTime {
        StatementTime {
            command: "QUERY".to_string(),
            statement: Some(number),
            count: 10,
            sums,
            known,
            p95_ns: 5,
            max_ns: 9,
        }
    }

    #[test]
    fn what_is_among_the_first_by_any_metric_is_shown_and_the_rest_is_counted() {
        let known = [10, 10, 10, 10, 10, 10, 0, 10, 10];
        let many = |number: u32| {
            let mut sums = [100 - u64::from(number), 0, 0, 0, 0, 0, 0, 0, 0];
            // The last one has the most errors.
            sums[8] = u64::from(number == 5) * 7;
            statement(number, sums, known)
        };
        let level = LevelStatements {
            level: Some(3),
            seconds: 2.0,
            own_left_out: 1,
            statements: (0..6).map(many).collect(),
        };
        let run = RunStatements {
            texts: HashMap::from([(0, "SELECT ?".to_string())]),
            levels: vec![level.clone()],
            ..RunStatements::default()
        };
        let page = of_level(&run, &level, 1);
        let shown: Vec<Option<u64>> = page.rows.iter().map(|row| row.sums[0]).collect();
        assert_eq!(shown, [Some(100), Some(95)]);
        assert_eq!((page.left, page.left_count), (4, 40));
        assert_eq!(
            (page.rows[0].statement.as_str(), page.rows[1].statement.as_str()),
            ("SELECT ?", "<not recorded>")
        );
        // Rows examined are known of nothing; errors are those of all.
        assert_eq!(
            (page.total.sums[6], page.total.sums[8], page.total.count, page.total.p95_ns),
            (None, Some(7), 60, None)
        );
        assert!(head(None).is_none());
    }
}

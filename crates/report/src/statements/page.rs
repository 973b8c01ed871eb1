//! Statements by level, as the page has them.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use whyso_explain::statements::{COMMAND_METRICS, SqlTraceCost, StatementTime};

use super::{cut, sql_trace_words, total, unknown};

/// The page has the statements that are among so many first ones by count or by any metric.
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
    /// What commands say; what stands for it where that is not known, and empty where they say nothing.
    pub(crate) fn text(&self, one: &StatementTime) -> String {
        let text = one.statement.and_then(|number| self.texts.get(&number));
        text.map_or_else(|| unknown(&one.command).to_string(), |text| cut(text))
    }
}

/// What the page's head holds of statements.
#[derive(Serialize)]
pub(crate) struct StatementsHead {
    /// Names of the metrics whose sums there are; times in nanoseconds.
    metrics: Vec<&'static str>,
    /// Of those, so many first ones are times.
    times: usize,
    /// What following them cost, in words.
    cost: String,
    levels: Vec<StatementsOfLevel>,
}

#[derive(Serialize)]
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

#[derive(Serialize)]
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
    COMMAND_METRICS.iter().for_each(|metric| add(&|one| one.sums[*metric as usize]));
    add(&|one| one.count);
    let others = all.iter().enumerate().filter(|(place, _)| !shown.contains(place));
    let left_count = others.map(|(_, one)| one.count).sum();
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

fn row(run: &RunStatements, one: &StatementTime) -> StatementRow {
    StatementRow {
        command: one.command.clone(),
        statement: run.text(one),
        count: one.count,
        sums: COMMAND_METRICS.iter().map(|metric| one.sum(*metric)).collect(),
        known: one.known,
        mean_ns: one.mean_ns(),
        p95_ns: Some(one.p95_ns),
        max_ns: one.max_ns,
    }
}

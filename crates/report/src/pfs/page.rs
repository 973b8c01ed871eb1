//! The Performance Schema's views by level, as the page has them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Serialize, Serializer};
use ts_rs::TS;
use whyso_explain::pfs::{Line, Quantity, Table, View, evenness};
use whyso_explain::timer::Timing;

use crate::text::{clean, shortened};

/// Lines of a view that the page has at each level, by the column that sorts it, and by every other column.
const LINES_MAX: usize = 100;
const BY_OTHERS_MAX: usize = 20;
/// Idle waits of each level, and whyso's own statements.
const IDLE_MAX: usize = 20;
const OBSERVER_MAX: usize = 30;
/// Lines that are drawn over time.
const DRAWN_MAX: usize = 8;
/// Longest text of a digest, in characters.
const TEXT_MAX: usize = 400;

/// What the Performance Schema counted over a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPfs {
    /// None is empty, and all have the same views in the same order.
    pub levels: Vec<LevelPfs>,
    /// Text of a digest, by the name of its line.
    pub texts: HashMap<String, String>,
}

/// The same of one level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelPfs {
    /// The level's index; `None`: all of a recording in which no level ended.
    pub level: Option<u32>,
    /// One table per view, each sorted by its main column.
    pub tables: Vec<Table>,
    /// `None` where the recording does not have what the server's timers take.
    pub timing: Option<Timing>,
}

/// What the page's head holds of the views.
#[derive(Serialize, TS)]
pub(crate) struct PfsHead<'a> {
    levels: Vec<PfsLevel<'a>>,
    pub(crate) views: Vec<PfsView>,
}

#[derive(Serialize, TS)]
struct PfsLevel<'a> {
    level: Option<u32>,
    /// What numbers are divided by.
    seconds: f64,
    statements: Option<f64>,
    transactions: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    timing: Option<&'a Timing>,
}

#[derive(Serialize, TS)]
pub(crate) struct PfsView {
    name: &'static str,
    source: &'static str,
    line: &'static str,
    about: &'static str,
    /// Count and time, and nothing else.
    of_events: bool,
    columns: Vec<PfsColumn>,
    /// Place of the column that sorts the view unless the user chose another.
    main: usize,
    pub(crate) block: u32,
}

#[derive(Serialize, TS)]
struct PfsColumn {
    name: &'static str,
    metric: &'static str,
    quantity: ColumnQuantity,
    /// A level is divided by nothing.
    is_level: bool,
}

/// What a column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
enum ColumnQuantity {
    Count,
    /// In nanoseconds.
    Time,
    Bytes,
    /// From 0 to 1.
    Share,
}

impl From<Quantity> for ColumnQuantity {
    fn from(quantity: Quantity) -> ColumnQuantity {
        match quantity {
            Quantity::Count => ColumnQuantity::Count,
            Quantity::Time => ColumnQuantity::Time,
            Quantity::Bytes => ColumnQuantity::Bytes,
        }
    }
}

/// By column; `None` where the server does not count it.
type Row = Vec<Option<Number>>;

/// The lines of a view: a block of the page.
#[derive(Serialize, TS)]
pub(crate) struct PfsLines {
    names: Vec<String>,
    idle_names: Vec<String>,
    /// Statements that only whyso's own connections executed.
    observer_names: Vec<String>,
    /// Of digests, by name.
    texts: BTreeMap<String, String>,
    /// Instances of the series that are drawn over time.
    drawn: Vec<String>,
    levels: Vec<PfsLinesOfLevel>,
}

#[derive(Serialize, TS)]
struct PfsLinesOfLevel {
    /// By name; `None` where nothing was counted.
    rows: Vec<Option<Row>>,
    idle: Vec<Option<Row>>,
    /// Of all lines but the idle ones.
    total: Row,
    /// How many lines have no row, and their sum.
    left: usize,
    left_row: Row,
    /// How many idle ones have no row.
    idle_left: usize,
    observer: Vec<Option<Row>>,
    /// The part, 0 to 1, that whyso's own connections have of what was counted: of the time if any was measured, otherwise of the executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    observer_share: Option<f64>,
    /// Of a statement that others executed, too: how many executions were whyso's own, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    own: BTreeMap<String, Number>,
}

/// Nine digits of a number, and no more bytes than they take.
#[derive(TS)]
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded = rounded(self.0);
        match rounded.fract() == 0.0 && rounded.abs() < 9e15 {
            true => serializer.serialize_i64(rounded as i64),
            false => serializer.serialize_f64(rounded),
        }
    }
}

/// Returns the nearest number of nine digits. One whose power of ten is not exact stays as it is.
fn rounded(value: f64) -> f64 {
    const DIGITS: i32 = 9;
    /// Powers of ten up to this one are exact.
    const EXACT_MAX: i32 = 22;
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let decimals = DIGITS - 1 - value.abs().log10().floor() as i32;
    let power = 10f64.powi(decimals.abs());
    match decimals {
        _ if decimals.abs() > EXACT_MAX => value,
        0.. => (value * power).round() / power,
        _ => (value / power).round() * power,
    }
}

fn row(values: &[Option<f64>]) -> Row {
    values.iter().map(|value| value.map(Number)).collect()
}

impl<'a> PfsLevel<'a> {
    fn new(level: &'a LevelPfs) -> PfsLevel<'a> {
        let first = level.tables.first();
        PfsLevel {
            level: level.level,
            seconds: first.map_or(0.0, |table| table.seconds),
            statements: first.and_then(|table| table.statements),
            transactions: first.and_then(|table| table.transactions),
            timing: level.timing.as_ref(),
        }
    }
}

impl PfsHead<'_> {
    /// Blocks are numbered later.
    pub(crate) fn new(run: &RunPfs) -> PfsHead<'_> {
        let view = |tables: Vec<&Table>| {
            let view = tables[0].view;
            PfsView {
                name: view.name,
                source: view.source,
                line: if is_of_instances(view) { "lock" } else { view.line },
                about: view.about,
                of_events: view.is_of_events() && !is_of_instances(view),
                columns: columns(view),
                main: main_column(&tables),
                block: 0,
            }
        };
        PfsHead {
            levels: run.levels.iter().map(PfsLevel::new).collect(),
            views: by_view(run).into_iter().map(view).collect(),
        }
    }
}

/// Of each view its tables, level by level.
fn by_view(run: &RunPfs) -> Vec<Vec<&Table>> {
    let views = run.levels.iter().map(|level| level.tables.len()).min().unwrap_or(0);
    (0..views).map(|place| run.levels.iter().map(|level| &level.tables[place]).collect()).collect()
}

/// Whose instances are added up lock by lock, as the terminal does.
fn is_of_instances(view: &View) -> bool {
    view.name == "lock-instances"
}

fn columns(view: &View) -> Vec<PfsColumn> {
    let column = |column: &whyso_explain::pfs::Column| PfsColumn {
        name: column.name,
        metric: column.metric,
        quantity: column.quantity.into(),
        is_level: column.is_level,
    };
    let mut columns: Vec<PfsColumn> = view.columns.iter().map(column).collect();
    if is_of_instances(view) {
        let more = [
            ("instances", ColumnQuantity::Count),
            ("busiest has", ColumnQuantity::Share),
            ("evenness", ColumnQuantity::Share),
        ];
        let heads = more.map(|(name, quantity)| PfsColumn { name, metric: name, quantity, is_level: true });
        columns.extend(heads);
    }
    columns
}

/// Time where any level has some, else the count.
fn main_column(tables: &[&Table]) -> usize {
    let place = |table: &&Table| {
        let main = table.main_column();
        table.view.columns.iter().position(|column| column == main).unwrap_or(0)
    };
    tables.iter().map(place).max().unwrap_or(0)
}

/// The lines of each view.
pub(crate) fn view_blocks(run: &RunPfs) -> impl Iterator<Item = PfsLines> + '_ {
    by_view(run).into_iter().map(|tables| view_lines(&tables, &run.texts, LINES_MAX))
}

/// Lines that are among the first ones of any level, at every level, so that levels can be compared.
fn view_lines(tables: &[&Table], texts: &HashMap<String, String>, most: usize) -> PfsLines {
    let main = main_column(tables);
    let levels: Vec<LevelTable> = tables.iter().map(|table| LevelTable::of(table)).collect();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let mut idle_names: BTreeSet<&str> = BTreeSet::new();
    let mut observer_names: BTreeSet<&str> = BTreeSet::new();
    for level in &levels {
        for place in 0..level.total.len() {
            let most = if place == main { most } else { most.min(BY_OTHERS_MAX) };
            names.extend(firsts(&level.lines, place, most));
        }
        idle_names.extend(firsts(&level.idle, main, IDLE_MAX));
        observer_names.extend(firsts(&level.observer, main, OBSERVER_MAX));
    }
    let level = |table: &LevelTable| {
        let by_name: HashMap<&str, &Line> =
            table.lines.iter().map(|line| (line.name.as_str(), line)).collect();
        let idle: HashMap<&str, &Line> = table.idle.iter().map(|line| (line.name.as_str(), line)).collect();
        let observer: HashMap<&str, &Line> =
            table.observer.iter().map(|line| (line.name.as_str(), line)).collect();
        let own = table.lines.iter().filter_map(|line| Some((line.name.clone(), Number(line.own?))));
        let rows = |names: &BTreeSet<&str>, of: &HashMap<&str, &Line>| -> Vec<Option<Row>> {
            names.iter().map(|name| of.get(name).map(|line| row(&line.values))).collect()
        };
        let left: Vec<&Line> =
            table.lines.iter().filter(|line| !names.contains(line.name.as_str())).collect();
        let sum = |place: usize| {
            let values = left.iter().filter_map(|line| line.values.get(place).copied().flatten());
            values.reduce(|sum, value| sum + value).filter(|_| table.total[place].is_some())
        };
        PfsLinesOfLevel {
            rows: rows(&names, &by_name),
            idle: rows(&idle_names, &idle),
            total: row(&table.total),
            left: left.len(),
            left_row: (0..table.total.len()).map(|place| sum(place).map(Number)).collect(),
            idle_left: table.idle.iter().filter(|line| !idle_names.contains(line.name.as_str())).count(),
            observer: rows(&observer_names, &observer),
            observer_share: table.observer_share,
            own: own.filter(|(name, _)| names.contains(name.as_str())).collect(),
        }
    };
    let text = |name: &&str| Some((name.to_string(), clean(&shortened(texts.get(*name)?, TEXT_MAX))));
    PfsLines {
        texts: names.iter().chain(&observer_names).filter_map(text).collect(),
        drawn: drawn(tables, main),
        levels: levels.iter().map(level).collect(),
        names: names.iter().map(|name| name.to_string()).collect(),
        idle_names: idle_names.iter().map(|name| name.to_string()).collect(),
        observer_names: observer_names.iter().map(|name| name.to_string()).collect(),
    }
}

/// What the page has of a view at a level.
struct LevelTable {
    lines: Vec<Line>,
    idle: Vec<Line>,
    observer: Vec<Line>,
    observer_share: Option<f64>,
    total: Vec<Option<f64>>,
}

impl LevelTable {
    fn of(table: &Table) -> LevelTable {
        let mut total = table.total().values;
        if !is_of_instances(table.view) {
            return LevelTable {
                lines: table.lines.clone(),
                idle: table.idle.clone(),
                observer: table.observer.clone(),
                observer_share: table.observer_share(),
                total,
            };
        }
        let locks = evenness(table);
        total.extend([Some(locks.iter().map(|lock| lock.instances).sum::<usize>() as f64), None, None]);
        let line = |lock: &whyso_explain::pfs::Evenness| Line {
            name: lock.event.clone(),
            values: vec![
                Some(lock.count),
                lock.ns,
                Some(lock.instances as f64),
                Some(lock.busiest),
                Some(lock.even),
            ],
            own: None,
        };
        let lines = locks.iter().map(line).collect();
        LevelTable { lines, idle: Vec::new(), observer: Vec::new(), observer_share: None, total }
    }
}

/// Names of the lines with the most in the column at `place`; those with nothing there are not among them.
fn firsts(lines: &[Line], place: usize, most: usize) -> Vec<&str> {
    let number = |line: &Line| line.values.get(place).copied().flatten().unwrap_or(0.0);
    let mut found: Vec<&Line> = lines.iter().filter(|line| number(line) > 0.0).collect();
    found.sort_by(|a, b| number(b).total_cmp(&number(a)).then_with(|| a.name.cmp(&b.name)));
    found.into_iter().take(most).map(|line| line.name.as_str()).collect()
}

/// Names of the lines with the most in the main column over all levels together.
fn drawn(tables: &[&Table], main: usize) -> Vec<String> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for line in tables.iter().flat_map(|table| &table.lines) {
        *sums.entry(&line.name).or_default() += line.values.get(main).copied().flatten().unwrap_or(0.0);
    }
    let line = |(name, sum): (&str, f64)| Line { name: name.to_string(), values: vec![Some(sum)], own: None };
    let sums = sums.into_iter().map(line);
    let lines: Vec<Line> = sums.collect();
    firsts(&lines, 0, DRAWN_MAX).into_iter().map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use whyso_explain::model::{Counter, SeriesName};
    use whyso_explain::pfs::{Per, differences};

    use super::*;

    fn table(view: &str, lines: &[(String, f64, f64)]) -> Table {
        let view = View::named(view).unwrap();
        let counters = lines.iter().flat_map(|(instance, count, ns)| {
            [("count", *count), ("time_ns", *ns)].map(|(metric, increase)| {
                let [host, source, metric, instance] =
                    ["server", view.source, metric, instance].map(str::to_string);
                let series = SeriesName { host, source, metric, instance };
                Counter { series, unit: "1".to_string(), increase }
            })
        });
        Table::new(view, &counters.collect::<Vec<_>>(), &[], 10.0, Some(200.0), Some(20.0))
    }

    #[test]
    fn a_line_that_is_among_the_first_at_one_level_is_shown_at_all_of_them() {
        let line = |name: &str, ns: f64| (name.to_string(), 1.0, ns);
        let here = table("waits", &[line("a", 9.0), line("b", 8.0), line("c", 1.0), line("idle", 99.0)]);
        let there = table("waits", &[line("a", 2.0), line("b", 3.0), line("d", 2.5)]);
        let page = serde_json::to_value(view_lines(&[&here, &there], &HashMap::new(), 1)).unwrap();
        assert_eq!(page["names"], serde_json::json!(["a", "b"]));
        assert_eq!(page["idle_names"], serde_json::json!(["idle"]));
        assert_eq!(page["levels"][0]["rows"], serde_json::json!([[1, 9], [1, 8]]));
        assert_eq!(page["levels"][1]["rows"], serde_json::json!([[1, 2], [1, 3]]));
        assert_eq!((&page["levels"][1]["left"], &page["levels"][1]["left_row"][1]), (&1.into(), &2.5.into()));
        assert_eq!(page["levels"][0]["total"], serde_json::json!([3, 18]));
        assert_eq!(page["levels"][1]["idle"], serde_json::json!([null]));
        assert_eq!(page["drawn"], serde_json::json!(["a", "b", "d", "c"]));
    }

    #[test]
    fn whysos_own_statements_are_apart_and_in_no_total() {
        let series = |metric: &str, instance: &str, increase: f64| {
            let [host, source, metric, instance] =
                ["server", "pfs_digests", metric, instance].map(str::to_string);
            Counter { series: SeriesName { host, source, metric, instance }, unit: "1".to_string(), increase }
        };
        let counters = [
            series("count", "a", 4.0),
            series("own_count", "a", 3.0),
            series("time_ns", "a", 10.0),
            series("count", "own", 7.0),
            series("own_count", "own", 7.0),
            series("time_ns", "own", 30.0),
        ];
        let table = Table::new(View::named("digests").unwrap(), &counters, &[], 10.0, None, None);
        let texts = HashMap::from([("own".to_string(), "SHOW GLOBAL STATUS".to_string())]);
        let json = serde_json::to_value(view_lines(&[&table], &texts, 10)).unwrap();
        assert_eq!((&json["names"], &json["observer_names"]), (&["a"].into(), &["own"].into()));
        assert_eq!(json["texts"]["own"], "SHOW GLOBAL STATUS");
        let level = &json["levels"][0];
        assert_eq!((&level["total"][1], &level["observer"][0][1]), (&10.into(), &30.into()));
        assert_eq!((&level["observer_share"], &level["own"]["a"]), (&0.75.into(), &3.into()));
        assert_eq!(json["drawn"], serde_json::json!(["a"]));
    }

    #[test]
    fn instances_of_a_lock_are_one_line_with_the_evenness_of_their_use() {
        let line = |name: &str, count: f64| (name.to_string(), count, 0.0);
        let locks = table("lock-instances", &[line("wait/a 7f01", 900.0), line("wait/a 7f02", 100.0)]);
        let run = RunPfs {
            levels: vec![LevelPfs { tables: vec![locks], ..LevelPfs::default() }],
            ..RunPfs::default()
        };
        let head = serde_json::to_value(PfsHead::new(&run)).unwrap();
        assert_eq!(head["views"][0]["columns"][4]["name"], "evenness");
        let json = serde_json::to_value(view_blocks(&run).next().unwrap()).unwrap();
        assert_eq!(json["levels"][0]["rows"][0], serde_json::json!([1000, 0, 2, 0.9, 0.609756098]));
        assert_eq!(json["drawn"], serde_json::json!(["wait/a 7f01", "wait/a 7f02"]));
    }

    proptest! {
        /// So that the page, which takes a line that it has not for 0, shows what the terminal does.
        #[test]
        fn rows_and_what_is_left_add_up_to_the_total_and_rows_differ_as_the_tables_do(
            here in prop::collection::vec((0_u8..40, 0.0_f64..1e9, 0.0_f64..1e12), 1..40),
            there in prop::collection::vec((0_u8..40, 0.0_f64..1e9, 0.0_f64..1e12), 1..40),
            most in 1_usize..50,
        ) {
            let named = |values: &[(u8, f64, f64)]| {
                let lines: BTreeMap<u8, (f64, f64)> = values.iter().map(|(name, count, ns)| (*name, (*count, *ns))).collect();
                lines.into_iter().map(|(name, (count, ns))| (format!("wait/{name}"), count, ns)).collect::<Vec<_>>()
            };
            let [here, there] = [named(&here), named(&there)].map(|lines| table("waits", &lines));
            let page = view_lines(&[&here, &there], &HashMap::new(), most);
            let number = |row: &Option<Row>, place: usize| {
                row.as_ref().map_or(0.0, |row| row[place].as_ref().map_or(0.0, |cell| cell.0))
            };
            for (level, table) in page.levels.iter().zip([&here, &there]) {
                for place in 0..2 {
                    let left = level.left_row[place].as_ref().map_or(0.0, |cell| cell.0);
                    let sum = level.rows.iter().map(|row| number(row, place)).sum::<f64>() + left;
                    let total = table.total().values[place].unwrap_or(0.0);
                    prop_assert!((sum - total).abs() <= 1e-9 * total, "{sum} {total}");
                }
            }
            let column = here.view.columns[1];
            for difference in differences(&here, &there, &column, Per::Second) {
                let Some(place) = page.names.iter().position(|name| *name == difference.name) else { continue };
                let [a, b] = [0, 1].map(|level| number(&page.levels[level].rows[place], 1) / 10.0);
                prop_assert!((difference.here[1].unwrap() - a).abs() <= 1e-6 && (difference.there[1].unwrap() - b).abs() <= 1e-6);
            }
        }
    }
}

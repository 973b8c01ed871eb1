//! The table of levels, one line at a time.
//!
//! Columns have fixed widths. So a line can be drawn before the next ones are known, and drawn again in place.

use whyso_explain::model::LevelVerdict;
use whyso_record::run::{Level, RunEnd};
use whyso_words::{at_least, number, whole};

/// Narrowest terminal in which the wide table is drawn, in characters.
const WIDE: usize = 110;

/// Which columns there are.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    head: String,
    width: usize,
    field: Field,
}

#[derive(Clone, Copy, Debug)]
enum Field {
    Workload,
    Users,
    Rate,
    TransactionsPerS,
    Interval95,
    QueriesPerS,
    Mean,
    Percentile(f64),
    Max,
    Backlog,
    Errors,
    ClientCpu,
}

/// One line of the table; what is not known (yet) is shown as "–".
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub workload: String,
    pub users: u32,
    pub rate_per_s: Option<f64>,
    pub transactions_per_s: f64,
    pub ci95: Option<[f64; 2]>,
    pub queries_per_s: f64,
    pub mean_ms: Option<f64>,
    /// (percentile, ms)
    pub percentiles_ms: Vec<(f64, f64)>,
    pub max_ms: Option<f64>,
    /// Percentiles above this one, and the max, are lower bounds.
    pub lower_bounds_above: Option<f64>,
    pub backlog: Option<u64>,
    pub errors: u64,
    pub client_us_per_query: Option<f64>,
    /// A text behind the numbers.
    pub remark: String,
}

impl Table {
    /// Returns a table that suits a terminal of `width` characters, of an open or a closed loop, with these percentiles.
    /// `workload_width`: characters of the longest name, where levels have workloads of their own.
    pub fn new(width: usize, is_open: bool, percentiles: &[f64], workload_width: Option<usize>) -> Table {
        let is_wide = width >= WIDE;
        let times = if is_wide { 7 } else { 6 };
        let mut columns = Vec::new();
        let mut push = |head: &str, width: usize, field: Field| {
            columns.push(Column { head: head.to_string(), width: width.max(head.chars().count()), field });
        };
        if let Some(width) = workload_width {
            push("workload", width.min(24), Field::Workload);
        }
        if is_wide || !is_open {
            push("users", 6, Field::Users);
        }
        if is_open {
            push("due/s", 7, Field::Rate);
        }
        push("TPS", if is_open { 7 } else { 8 }, Field::TransactionsPerS);
        if is_wide {
            push("95 % interval", 17, Field::Interval95);
        }
        if is_wide || !is_open {
            push("QPS", 8, Field::QueriesPerS);
        }
        push("mean ms", 7, Field::Mean);
        for &percentile in percentiles {
            push(&format!("p{percentile}"), times, Field::Percentile(percentile));
        }
        push("max", times, Field::Max);
        if is_open {
            push("backlog", 7, Field::Backlog);
        }
        push("errors", 6, Field::Errors);
        if is_wide {
            push("client µs/q", 11, Field::ClientCpu);
        }
        Table { columns }
    }

    /// Returns the line with the columns' names.
    pub fn header(&self) -> String {
        self.line(|column| column.head.clone())
    }

    /// Returns the line, without its line break.
    pub fn row(&self, row: &Row) -> String {
        let line = self.line(|column| row.cell(column.field));
        if row.remark.is_empty() { line } else { format!("{line}  {}", row.remark) }
    }

    fn line(&self, cell: impl Fn(&Column) -> String) -> String {
        let mut line = String::new();
        for (number, column) in self.columns.iter().enumerate() {
            if number > 0 {
                line.push_str("  ");
            }
            let text = cell(column);
            let blanks = column.width.saturating_sub(text.chars().count());
            let is_words = matches!(column.field, Field::Workload);
            if is_words {
                line.push_str(&text);
            }
            line.extend(std::iter::repeat_n(' ', blanks));
            if !is_words {
                line.push_str(&text);
            }
        }
        line
    }
}

impl Row {
    /// Returns the row of a level that has ended.
    pub fn of_level(level: &Level, verdict: &LevelVerdict) -> Row {
        let result = &level.result;
        let any = result.transactions > 0;
        Row {
            workload: result.workload.clone(),
            users: level.users,
            rate_per_s: result.arrivals.as_ref().map(|arrivals| arrivals.due_per_s),
            transactions_per_s: result.transactions_per_s,
            ci95: verdict.transactions_per_s_ci95,
            queries_per_s: result.queries_per_s,
            mean_ms: any.then_some(result.latency_ms.mean),
            percentiles_ms: result
                .percentiles
                .iter()
                .map(|value| (value.percentile, value.latency_ms))
                .collect(),
            max_ms: (any || result.latency_ms.max > 0.0).then_some(result.latency_ms.max),
            lower_bounds_above: result.latency_ms.lower_bounds_above,
            backlog: result.arrivals.as_ref().map(|arrivals| arrivals.backlog_end),
            errors: result.errors,
            client_us_per_query: (result.queries > 0).then_some(result.client.cpu_us_per_query),
            remark: remark(level, verdict),
        }
    }

    fn is_lower_bound(&self, percentile: f64) -> bool {
        self.lower_bounds_above.is_some_and(|above| percentile > above)
    }

    fn cell(&self, field: Field) -> String {
        let if_known = |value: Option<f64>| value.map_or("–".to_string(), number);
        match field {
            Field::Workload => self.workload.chars().take(24).collect(),
            Field::Users => whole(u64::from(self.users)),
            Field::Rate => if_known(self.rate_per_s),
            Field::TransactionsPerS => number(self.transactions_per_s),
            Field::Interval95 => match self.ci95 {
                Some([low, high]) => format!("{} – {}", number(low), number(high)),
                None => "–".to_string(),
            },
            Field::QueriesPerS => number(self.queries_per_s),
            Field::Mean => if_known(self.mean_ms),
            Field::Percentile(percentile) => {
                let found = self.percentiles_ms.iter().find(|(other, _)| *other == percentile);
                let is_lower_bound = self.is_lower_bound(percentile);
                let is_known = self.mean_ms.is_some() || is_lower_bound;
                at_least(if_known(found.filter(|_| is_known).map(|(_, ms)| *ms)), is_lower_bound)
            }
            Field::Max => at_least(if_known(self.max_ms), self.is_lower_bound(100.0)),
            Field::Backlog => self.backlog.map_or("–".to_string(), whole),
            Field::Errors => whole(self.errors),
            Field::ClientCpu => if_known(self.client_us_per_query),
        }
    }
}

/// The weightiest thing to know of a level, in a word or two; [`summary`](super::summary) gives the reasons.
fn remark(level: &Level, verdict: &LevelVerdict) -> String {
    let result = &level.result;
    if !super::invalid_why(level, verdict).is_empty() {
        return "INVALID".to_string();
    }
    if let RunEnd::CutShort { .. } = level.ended {
        return "cut short".to_string();
    }
    if result.slo.iter().any(|slo| !slo.held) {
        return "FAIL".to_string();
    }
    if result.arrivals.as_ref().is_some_and(|arrivals| !arrivals.held) {
        return "behind".to_string();
    }
    if !verdict.stuck.is_empty() {
        return "stuck".to_string();
    }
    if result.slo.is_empty() { String::new() } else { "PASS".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            workload: "a.sql".to_string(),
            users: 16,
            rate_per_s: Some(1000.0),
            transactions_per_s: 998.7,
            ci95: Some([990.0, 1007.0]),
            queries_per_s: 19_974.0,
            mean_ms: Some(0.812),
            percentiles_ms: vec![(95.0, 1.25), (99.0, 2.5)],
            max_ms: Some(12.34),
            lower_bounds_above: None,
            backlog: Some(3),
            errors: 2,
            client_us_per_query: Some(7.25),
            remark: "PASS".to_string(),
        }
    }

    #[test]
    fn a_closed_loop_fits_eighty_characters() {
        let table = Table::new(80, false, &[95.0, 99.0], None);
        let expected = [
            " users       TPS       QPS  mean ms     p95     p99     max  errors",
            "    16       999    19,974     0.81    1.25     2.5    12.3       2  PASS",
        ];
        assert_eq!([table.header(), table.row(&row())], expected);
    }

    #[test]
    fn an_open_loop_fits_eighty_characters_with_what_is_due_and_what_waits() {
        let table = Table::new(80, true, &[95.0, 99.0], None);
        let expected = [
            "  due/s      TPS  mean ms     p95     p99     max  backlog  errors",
            "  1,000      999     0.81    1.25     2.5    12.3        3       2  PASS",
        ];
        assert_eq!([table.header(), table.row(&row())], expected);
        assert!(expected[0].chars().count() + "  cut short".len() <= 80);
    }

    #[test]
    fn a_wide_terminal_gets_intervals_and_the_clients_cost() {
        let table = Table::new(120, false, &[95.0, 99.0], None);
        let expected = [
            " users       TPS      95 % interval       QPS  mean ms      p95      p99      max  errors  client µs/q",
            "    16       999        990 – 1,007    19,974     0.81     1.25      2.5     12.3       2         7.25  PASS",
        ];
        assert_eq!([table.header(), table.row(&row())], expected);
    }

    #[test]
    fn the_age_of_what_is_in_flight_is_marked_as_a_lower_bound() {
        let table = Table::new(80, false, &[95.0, 99.9], None);
        let row = Row {
            percentiles_ms: vec![(95.0, 1.25), (99.9, 5_940.0)],
            max_ms: Some(5_990.0),
            lower_bounds_above: Some(99.5),
            remark: "stuck".to_string(),
            ..row()
        };
        let expected = [
            " users       TPS       QPS  mean ms     p95   p99.9     max  errors",
            "    16       999    19,974     0.81    1.25  ≥5,940  ≥5,990       2  stuck",
        ];
        assert_eq!([table.header(), table.row(&row)], expected);
    }

    #[test]
    fn what_is_not_known_is_a_dash_and_two_workloads_have_a_column() {
        let table = Table::new(80, false, &[99.0], Some(5));
        let row = Row { workload: "b.sql".to_string(), users: 1, ..Row::default() };
        let expected = [
            "workload   users       TPS       QPS  mean ms     p99     max  errors",
            "b.sql          1         0         0        –       –       –       0",
        ];
        assert_eq!([table.header(), table.row(&row)], expected);
    }
}

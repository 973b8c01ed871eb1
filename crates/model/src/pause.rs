//! Pauses: waits of one thread of 20 ms to a minute, as a recording's text table has them.

use crate::Moments;

/// Pauses of one kind of one thread: a row of the table `pauses`.
///
/// States, roles and clients are the names that the recording has: it may come from a version that knows others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PauseRow {
    pub tid: u32,
    /// When the thread was seen first: the kernel gives numbers of threads again.
    pub born_ns: u64,
    pub name: String,
    pub role: String,
    pub state: String,
    /// Name of the system call, such as "poll"; empty where it was none.
    pub call: String,
    /// The thread had received a request and had yet to answer it.
    pub in_request: bool,
    /// Who sent the request before: "load", "own" (whyso itself) or "unknown".
    pub client: String,
    /// How long each pause lasted.
    pub length: Moments,
    /// From the begin of one to the begin of the next.
    pub period: Moments,
}

impl PauseRow {
    /// Source of the text table.
    pub const SOURCE: &'static str = "pauses";

    /// Columns of the text table, in the order of [`PauseRow::into_cells`].
    pub const COLUMNS: [&'static str; 14] = [
        "tid",
        "name",
        "role",
        "state",
        "call",
        "in_request",
        "client",
        "count",
        "mean_ns",
        "spread_ns",
        "periods",
        "period_ns",
        "period_spread_ns",
        "born_ns",
    ];

    /// Returns the row's cells, in the order of [`PauseRow::COLUMNS`].
    pub fn into_cells(self) -> [String; 14] {
        let [count, mean, spread] = numbers(self.length);
        let [periods, period, period_spread] = numbers(self.period);
        [
            self.tid.to_string(),
            self.name,
            self.role,
            self.state,
            self.call,
            u32::from(self.in_request).to_string(),
            self.client,
            count,
            mean,
            spread,
            periods,
            period,
            period_spread,
            self.born_ns.to_string(),
        ]
    }

    /// Reads a row whose cells are found by the column's name; `None` where a number is missing or is none that times have.
    pub fn from_cells<'a>(cell: impl Fn(&str) -> Option<&'a str>) -> Option<PauseRow> {
        let text = |name: &str| cell(name).unwrap_or_default().to_string();
        let number = |name: &str| cell(name)?.parse::<f64>().ok();
        let moments = |count: &str, mean: &str, spread: &str| {
            let moments =
                Moments { count: number(count)?, mean_ns: number(mean)?, spread_ns: number(spread)? };
            moments.is_sane().then_some(moments)
        };
        Some(PauseRow {
            tid: cell("tid")?.parse().ok()?,
            born_ns: cell("born_ns").and_then(|text| text.parse().ok()).unwrap_or(0),
            name: text("name"),
            role: text("role"),
            state: text("state"),
            call: text("call"),
            in_request: cell("in_request") == Some("1"),
            client: text("client"),
            length: moments("count", "mean_ns", "spread_ns")?,
            period: moments("periods", "period_ns", "period_spread_ns")?,
        })
    }
}

/// Count, mean and spread, in whole numbers.
fn numbers(of: Moments) -> [String; 3] {
    [of.count, of.mean_ns, of.spread_ns].map(|number| format!("{number:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> PauseRow {
        PauseRow {
            tid: 7,
            born_ns: 1,
            name: "one_connection".to_string(),
            role: "connection".to_string(),
            state: "net_receive".to_string(),
            call: "poll".to_string(),
            in_request: true,
            client: "load".to_string(),
            length: Moments { count: 3.0, mean_ns: 40e6, spread_ns: 5.0 },
            period: Moments { count: 2.0, mean_ns: 1e9, spread_ns: 7.0 },
        }
    }

    fn read(cells: &[String; 14]) -> Option<PauseRow> {
        let place = |name: &str| PauseRow::COLUMNS.iter().position(|column| *column == name);
        PauseRow::from_cells(|name| Some(cells[place(name)?].as_str()))
    }

    #[test]
    fn a_row_comes_back_from_its_cells() {
        assert_eq!(read(&row().into_cells()), Some(row()));
        assert_eq!(PauseRow::from_cells(|_| None), None);
    }

    #[test]
    fn a_row_without_sane_numbers_is_none() {
        for bad in ["NaN", "-1", "", "1e40"] {
            let mut cells = row().into_cells();
            cells[8] = bad.to_string();
            assert_eq!(read(&cells), None, "{bad}");
        }
    }
}

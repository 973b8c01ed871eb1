//! Waits for files, as a recording's text table has them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What threads of one role waited for on one file, in one way.
///
/// States and roles are the names that the recording has: it may come from a version that knows others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct FileWait {
    pub path: String,
    /// "file_read", "file_write", "file_sync" or "kernel_lock".
    pub state: String,
    /// Role of the threads, such as "connection".
    pub role: String,
    pub count: f64,
    /// Sum of the waits in the window.
    pub ns: f64,
}

impl FileWait {
    /// Source of the text table, whose counts and sums are those since the tracing began.
    pub const SOURCE: &'static str = "file_waits";

    /// The same of programs that are recorded together with a first target: the role of their threads is the program's name.
    pub const OF_PROGRAMS: &'static str = "program_file_waits";

    /// The column of the role.
    pub const ROLE: &'static str = "role";

    /// Columns of the text table, in the order of [`FileWait::into_cells`].
    pub const COLUMNS: [&'static str; 5] = ["path", "state", FileWait::ROLE, "count", "ns"];

    /// Returns the row's cells, in the order of [`FileWait::COLUMNS`].
    pub fn into_cells(self) -> [String; 5] {
        [self.path, self.state, self.role, self.count.to_string(), self.ns.to_string()]
    }

    /// Reads a row whose cells are found by the column's name. What is missing or no number becomes empty or 0.
    pub fn from_cells<'a>(cell: impl Fn(&str) -> Option<&'a str>) -> FileWait {
        let text = |name: &str| cell(name).unwrap_or_default().to_string();
        let number = |name: &str| {
            let number = cell(name).and_then(|text| text.parse::<f64>().ok());
            number.filter(|number| number.is_finite()).unwrap_or(0.0)
        };
        FileWait {
            path: text("path"),
            state: text("state"),
            role: text("role"),
            count: number("count"),
            ns: number("ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cells: &[String; 5]) -> FileWait {
        let place = |name: &str| FileWait::COLUMNS.iter().position(|column| *column == name);
        FileWait::from_cells(|name| Some(cells[place(name)?].as_str()))
    }

    #[test]
    fn a_wait_comes_back_from_its_cells() {
        let [path, state, role] = ["ib_logfile0", "file_sync", "connection"].map(str::to_string);
        let wait = FileWait { path, state, role, count: 30.0, ns: 9_007_199_254_740_992.0 };
        let cells = wait.clone().into_cells();
        assert_eq!(cells[3..], ["30", "9007199254740992"]);
        assert_eq!(read(&cells), wait);
    }

    #[test]
    fn what_is_no_number_is_zero() {
        let wait = read(&["a", "file_sync", "connection", "x", "NaN"].map(str::to_string));
        assert_eq!((wait.count, wait.ns), (0.0, 0.0));
    }
}

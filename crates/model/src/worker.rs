//! Processes of a recorded program with their memory, as a recording's text table has them.

use serde::{Deserialize, Serialize};

/// A process of a program that is no database server, when it was looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// Host of the program's series.
    pub program: String,
    pub pid: u32,
    /// Another process of the program started it; or no process of the program started any.
    pub is_worker: bool,
    /// Memory that no other process has; `None` where it could not be read.
    pub private_bytes: Option<u64>,
    /// The same and its part of what it shares with others: of a page that four processes have, a quarter.
    pub proportional_bytes: Option<u64>,
}

impl Worker {
    /// Source of the text table.
    pub const SOURCE: &'static str = "workers";

    /// The column of the program.
    pub const PROGRAM: &'static str = "program";

    /// Columns of the text table, in the order of [`Worker::into_cells`].
    pub const COLUMNS: [&'static str; 5] =
        [Worker::PROGRAM, "pid", "is_worker", "private_bytes", "proportional_bytes"];

    /// Returns the row's cells, in the order of [`Worker::COLUMNS`].
    pub fn into_cells(self) -> [Option<String>; 5] {
        [
            Some(self.program),
            Some(self.pid.to_string()),
            Some(self.is_worker.to_string()),
            self.private_bytes.map(|bytes| bytes.to_string()),
            self.proportional_bytes.map(|bytes| bytes.to_string()),
        ]
    }

    /// Reads a row whose cells are found by the column's name. `None`: it names no process.
    pub fn from_cells<'a>(cell: impl Fn(&str) -> Option<&'a str>) -> Option<Worker> {
        let bytes = |name: &str| cell(name).and_then(|text| text.parse().ok());
        Some(Worker {
            program: cell("program")?.to_string(),
            pid: cell("pid")?.parse().ok()?,
            is_worker: cell("is_worker") == Some("true"),
            private_bytes: bytes("private_bytes"),
            proportional_bytes: bytes("proportional_bytes"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_from_its_cells() {
        let worker = Worker {
            program: "php-fpm8.2".to_string(),
            pid: 7,
            is_worker: true,
            private_bytes: Some(5_000),
            proportional_bytes: None,
        };
        let cells = worker.clone().into_cells();
        let place = |name: &str| Worker::COLUMNS.iter().position(|column| *column == name);
        let read = Worker::from_cells(|name| cells[place(name)?].as_deref());
        assert_eq!(read, Some(worker));
        assert_eq!(Worker::from_cells(|name| (name == "pid").then_some("x")), None);
    }
}

//! The result of a load alone: a table for people, one JSON object, CSV and HdrHistogram logs for programs.

mod csv;
mod hdr_log;
mod json;
mod lines;
mod summary;
mod table;

pub use csv::{CSV_HEADER, csv_rows};
pub use hdr_log::HdrLog;
pub use json::load_json;
pub use lines::interval_line;
pub use summary::summary;
pub use table::{Row, Table};

use whyso_explain::capacity::Answer;
use whyso_explain::model::LevelVerdict;
use whyso_explain::versus::Comparison;
use whyso_record::run::Level;

/// The whole result of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadResult {
    /// In the order in which they ran, each with what is held of it.
    pub levels: Vec<(Level, LevelVerdict)>,
    pub capacity: Option<Answer>,
    pub comparison: Option<Comparison>,
    /// Why it was cut short; `None` where it was not.
    pub cut_short: Option<String>,
}

/// Why a level's numbers say nothing of the server; empty where they do.
fn invalid_why(level: &Level, verdict: &LevelVerdict) -> String {
    if !verdict.valid {
        return verdict.invalid_why.clone();
    }
    level.result.client_limit.clone()
}

#[cfg(test)]
mod tests;

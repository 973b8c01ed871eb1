//! How often the intervals that whyso prints hold the truth, over simulated series whose truth is known.
//!
//! `cargo run --release -p whyso-explain --example coverage -- bench/statistics` writes `coverage.json` and the table in `README.md` there;
//! `-- --tune` prints the cases of other seeds, by which constants are chosen.

#![allow(clippy::disallowed_methods, reason = "an example is a program")]

mod cases;
mod shares;
mod simulate;
mod starts;
mod sweep;
mod table;
mod throughput;
mod windows;

use std::path::Path;

use cases::Row;
use simulate::Seeds;

const TUNING: Seeds = Seeds { first: 1_000_000_000, fewer: 4 };
const REPORTED: Seeds = Seeds { first: 5_000_000_000, fewer: 2 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1).ok_or("name the folder of the results, or --tune")?;
    if argument == "--tune" {
        println!("{}", table::lines(&cases::rows(TUNING)));
        return Ok(());
    }
    let folder = Path::new(&argument);
    let rows = cases::rows(REPORTED);
    std::fs::write(folder.join("coverage.json"), table::json(&rows)?)?;
    let before: Vec<Row> =
        serde_json::from_str(&std::fs::read_to_string(folder.join("coverage-before.json"))?)?;
    let readme = folder.join("README.md");
    let text = std::fs::read_to_string(&readme)?;
    std::fs::write(readme, table::with_tables(&text, &before, &rows)?)?;
    Ok(())
}

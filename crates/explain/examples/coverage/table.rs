//! Rows as JSON, as lines, and as the tables of a page.

use std::fmt::Write;

use crate::cases::{Row, Target};
use crate::simulate::share;

const BEGIN: &str = "<!-- coverage: generated from here -->\n";
const END: &str = "<!-- coverage: generated up to here -->\n";

/// One row per line.
pub(crate) fn json(rows: &[Row]) -> Result<String, serde_json::Error> {
    let lines: Result<Vec<String>, serde_json::Error> = rows.iter().map(serde_json::to_string).collect();
    Ok(format!("[\n{}\n]\n", lines?.join(",\n")))
}

/// One row per line, to read.
pub(crate) fn lines(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let Row { interval, size, phi, noise, tally, .. } = row;
        let verdict = if row.target.holds(tally) { "" } else { "  MISSED" };
        let _ = writeln!(text, "{interval:42} {size:22} phi {phi} noise {noise}: {}{verdict}", shares(row));
    }
    text
}

/// Of a wrong verdict, its share of the series; of an interval what share has one, covers, and misses of all; in per cent.
fn shares(row: &Row) -> String {
    let Row { interval, tally, .. } = row;
    let [judged, covered, missed] =
        [share(tally.with_interval, tally.series), tally.covered_share(), tally.missed_share()]
            .map(|share| 100.0 * share);
    if OF_VERDICTS.iter().any(|begin| interval.starts_with(begin)) {
        format!("{missed:.1}")
    } else if tally.with_interval == 0 {
        "0 · – · 0".to_string()
    } else {
        format!("{judged:.0} · {covered:.1} · {missed:.1}")
    }
}

/// A page without the mark of one end of its generated part.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MarkError {
    #[error("the page lacks the mark where the generated part begins")]
    NoBegin,
    #[error("the page lacks the mark where the generated part ends")]
    NoEnd,
}

/// Returns the page with its generated part replaced.
pub(crate) fn with_tables(page: &str, before: &[Row], now: &[Row]) -> Result<String, MarkError> {
    let (head, rest) = page.split_once(BEGIN).ok_or(MarkError::NoBegin)?;
    let (_, tail) = rest.split_once(END).ok_or(MarkError::NoEnd)?;
    Ok(format!("{head}{BEGIN}{}{END}{tail}", tables(before, now)))
}

fn tables(before: &[Row], now: &[Row]) -> String {
    let mut text = String::new();
    let mut intervals: Vec<&str> = now.iter().map(|row| row.interval.as_str()).collect();
    intervals.dedup();
    let mut written: Vec<&str> = Vec::new();
    for interval in intervals {
        if written.contains(&interval) {
            continue;
        }
        written.push(interval);
        table(&mut text, interval, before, now);
    }
    text
}

/// One line per size and noise, one column per φ.
fn table(text: &mut String, interval: &str, before: &[Row], now: &[Row]) {
    let rows: Vec<&Row> = now.iter().filter(|row| row.interval == interval).collect();
    let mut phis: Vec<f64> = Vec::new();
    let mut cases: Vec<(&str, f64)> = Vec::new();
    for row in &rows {
        if !phis.contains(&row.phi) {
            phis.push(row.phi);
        }
        if !cases.contains(&(row.size.as_str(), row.noise)) {
            cases.push((&row.size, row.noise));
        }
    }
    let mut heading = interval.to_string();
    if let Some(first) = heading.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let _ = write!(text, "\n### {heading}\n\n| |");
    for phi in &phis {
        let _ = write!(text, " φ {phi} |");
    }
    let _ = writeln!(text, "\n| --- |{}", " --- |".repeat(phis.len()));
    for (size, noise) in cases {
        let noise_text = if noise > 0.0 { format!(", noise {:.0} %", 100.0 * noise) } else { String::new() };
        let _ = write!(text, "| {size}{noise_text} |");
        for phi in &phis {
            let here = |row: &&Row| row.size == size && row.noise == noise && row.phi == *phi;
            let found = rows.iter().copied().find(here);
            let _ = write!(text, " {} |", found.map_or(String::new(), |row| cell(row, before)));
        }
        text.push('\n');
    }
}

/// Cases that count wrong verdicts, and not intervals.
const OF_VERDICTS: [&str; 3] = ["step", "ramp", "drift"];

/// Intervals that were corrected: their cells show what they gave before.
const CORRECTED: [&str; 3] = ["throughput", "scalability law", "drift"];

/// What a case gives now; in brackets what it gave before, where the interval was corrected; bold where it misses its target.
fn cell(row: &Row, before: &[Row]) -> String {
    let now = shares(row);
    let now = match row.target {
        Target::Shown => format!("*{now}*"),
        _ if row.target.holds(&row.tally) => now,
        _ => format!("**{now}**"),
    };
    let is_corrected = CORRECTED.iter().any(|begin| row.interval.starts_with(begin));
    let earlier = before.iter().find(|other| is_corrected && is_same_case(row, other));
    earlier.map_or(now.clone(), |other| format!("{now} ({})", shares(other)))
}

fn is_same_case(one: &Row, other: &Row) -> bool {
    let is_same_size = (&one.interval, &one.size) == (&other.interval, &other.size);
    is_same_size && one.phi == other.phi && one.noise == other.noise
}

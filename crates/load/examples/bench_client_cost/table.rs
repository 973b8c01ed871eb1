//! Ratios, their targets, and Markdown.

use crate::contestants::Run;

/// What a ratio must keep to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    Below(f64),
    /// Nothing is asked for.
    None,
}

/// One for each round, in ascending order; never empty.
pub(crate) struct Ratios(Vec<f64>);

impl Ratios {
    /// Of a quantity of ours to theirs, round by round, so that what slows a whole round down cancels out.
    pub(crate) fn of(ours: &[Run], theirs: &[Run], quantity: impl Fn(&Run) -> f64) -> Ratios {
        let mut ratios: Vec<f64> =
            ours.iter().zip(theirs).map(|(ours, theirs)| quantity(ours) / quantity(theirs)).collect();
        ratios.sort_by(f64::total_cmp);
        Ratios(ratios)
    }

    pub(crate) fn median(&self) -> f64 {
        median(self.0.clone())
    }

    /// Their range, as a share of the median.
    pub(crate) fn spread(&self) -> f64 {
        let (least, most) = (self.0.first(), self.0.last());
        (most.unwrap_or(&0.0) - least.unwrap_or(&0.0)) / self.median()
    }

    /// As in "**0.61** (0.58 to 0.66), ≤ 0.7: pass".
    pub(crate) fn cell(&self, target: Target, score: &mut Score) -> String {
        let range = match (self.0.first(), self.0.last()) {
            (Some(least), Some(most)) if self.0.len() > 1 => format!(" ({least:.2} to {most:.2})"),
            _ => String::new(),
        };
        let verdict = score.judge(self.median(), target);
        format!("**{:.2}**{range}{verdict}", self.median())
    }
}

/// How many cells kept to their targets.
#[derive(Debug, Default)]
pub(crate) struct Score {
    passed: u32,
    failed: u32,
}

impl Score {
    /// As in ", ≤ 0.7: pass"; nothing where nothing is asked for.
    pub(crate) fn judge(&mut self, value: f64, target: Target) -> String {
        let (passes, asked) = match target {
            Target::None => return String::new(),
            Target::AtMost(most) => (value <= most, format!("≤ {most}")),
            Target::Below(bound) => (value < bound, format!("< {bound}")),
            Target::AtLeast(least) => (value >= least, format!("≥ {least}")),
        };
        if passes {
            self.passed += 1;
            format!(", {asked}: pass")
        } else {
            self.failed += 1;
            format!(", {asked}: **fail**")
        }
    }

    pub(crate) fn print(&self) {
        println!("\n{} of {} cells keep to their targets.\n", self.passed, self.passed + self.failed);
    }
}

pub(crate) fn median_of(runs: &[Run], quantity: impl Fn(&Run) -> f64) -> f64 {
    median(runs.iter().map(quantity).collect())
}

/// The middle value, the mean of the two middle ones where their number is even; NaN of none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

/// A heading and a table's head; columns that begin with '#' are numbers.
pub(crate) fn head(heading: &str, columns: &[&str]) {
    println!("### {heading}\n");
    row(&columns.iter().map(|column| column.trim_start_matches('#').to_string()).collect::<Vec<_>>());
    let rule = |column: &&str| if column.starts_with('#') { "---:" } else { "---" }.to_string();
    row(&columns.iter().map(rule).collect::<Vec<_>>());
}

pub(crate) fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

//! The time budget for a terminal: one column per level, and one level as bars.

use whyso_explain::model::{Budget, ClassTime, Explanation, Part};
use whyso_words::{count, number, percent, users, whole};

use crate::text::budget::visible_parts;
use crate::text::layout::aligned_with_words;

/// Length of a bar that is the whole response time, in characters.
const BAR_WIDTH: f64 = 40.0;

/// A smaller part is shown as 0, in milliseconds: its digits are below what is measured.
const MS_MIN: f64 = 0.0005;

/// Wait classes below this share of the response time are left out of the bars.
const CLASS_SHARE_MIN: f64 = 0.005;

/// Activities below this share of the server's CPU time are left out.
const ACTIVITY_SHARE_MIN: f64 = 0.02;

/// Of the level that the cause is asked about.
pub(super) fn about(explanation: &Explanation) -> Option<&Budget> {
    let index = explanation.about?;
    explanation.budgets.iter().find(|budget| budget.level == index)
}

/// Returns one line per part and one column per level, in milliseconds.
pub(super) fn levels(budgets: &[Budget]) -> String {
    let shown: Vec<&Budget> = budgets.iter().filter(|budget| !budget.repeat).collect();
    let unit = shown.first().map_or("transaction", |budget| budget.unit());
    let mut rows = vec![line(&format!("ms per {unit}"), &shown, |budget| whole(u64::from(budget.users)))];
    for part in visible_parts(&shown) {
        rows.push(line(part.words(), &shown, |budget| milliseconds(budget.ms(part))));
    }
    rows.push(line("unaccounted", &shown, |budget| milliseconds(budget.unaccounted_ms)));
    rows.push(line("response time", &shown, |budget| number(budget.response_ms)));
    // The first column holds words, the last is flush right by a blank column after it.
    rows.iter_mut().for_each(|row| row.push(String::new()));
    format!("Time budget by users\n{}", aligned_with_words(&rows, &[0]))
}

fn milliseconds(ms: f64) -> String {
    if ms.abs() < MS_MIN { "0".to_string() } else { number(ms) }
}

/// One level: each part with its share as a bar.
pub(super) fn bars(budget: &Budget) -> String {
    let mut rows = Vec::new();
    let mut push = |words: &str, ms: f64| {
        let share = ms / budget.response_ms;
        rows.push(vec![words.to_string(), milliseconds(ms), percent(share), bar(share)]);
    };
    for part in visible_parts(&[budget]) {
        push(part.words(), budget.ms(part));
        for time in visible_classes(budget, part) {
            let of_cpu = if part == Part::Cpu { "spinning for " } else { "" };
            let class = time.words().unwrap_or_else(|| "no class".to_string());
            push(&format!("  {of_cpu}{class}"), time.ms);
        }
    }
    push("unaccounted", budget.unaccounted_ms);
    format!(
        "At {} a {} took {}\n{}",
        users(budget.users),
        budget.unit(),
        whyso_words::milliseconds(budget.response_ms),
        aligned_with_words(&rows, &[0])
    )
}

/// The server's CPU time at one level by activity, each with its share as a bar; `None` where no stacks were sampled.
pub(super) fn activities(budget: &Budget) -> Option<String> {
    let shown = budget.activities.iter().filter(|activity| activity.share >= ACTIVITY_SHARE_MIN);
    let rows: Vec<Vec<String>> = shown
        .map(|activity| {
            vec![
                activity.activity.text().to_string(),
                milliseconds(activity.ms),
                percent(activity.share),
                bar(activity.share),
            ]
        })
        .collect();
    let samples: u64 = budget.activities.iter().map(|activity| activity.samples).sum();
    (!rows.is_empty()).then(|| {
        format!(
            "The server's CPU time by activity, ms per {} ({})\n{}",
            budget.unit(),
            count(samples, "sampled stack"),
            aligned_with_words(&rows, &[0])
        )
    })
}

fn line(name: &str, budgets: &[&Budget], cell: impl Fn(&Budget) -> String) -> Vec<String> {
    std::iter::once(name.to_string()).chain(budgets.iter().map(|budget| cell(budget))).collect()
}

/// Wait classes of a part that have a share that is worth a line.
fn visible_classes(budget: &Budget, part: Part) -> Vec<&ClassTime> {
    budget.classes_of(part).filter(|time| time.ms >= CLASS_SHARE_MIN * budget.response_ms).collect()
}

/// A share in eighths of a character; less than none is drawn as a minus.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if share < 0.0 {
        return "−".to_string();
    }
    let eighths = (share.min(1.5) * BAR_WIDTH * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(0.5), "█".repeat(20));
        assert_eq!(bar(1.0 / 320.0), "▏");
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(-0.2), "−");
        assert_eq!(bar(f64::MAX).chars().count(), 60);
    }
}

//! What a study found: in the terminal, as Markdown, as a page.

mod answer;
mod page;
mod sheets;

use whyso_study::Answer;
use whyso_words::{count, percent, users};

use crate::text::layout::{TEXT_WIDTH, aligned_with_words, wrapped};

pub use answer::{study_doubt, study_found};
#[cfg(test)]
pub(crate) use page::StudyHead;
pub use page::{study_head_json, study_html};
pub use sheets::{Row, Sheet};

/// Returns the tables of a study, in reading order.
pub fn study_sheets(answer: &Answer) -> Vec<Sheet> {
    sheets::sheets(answer)
}

/// Returns a study for the terminal.
pub fn study(answer: &Answer) -> String {
    let mut out = format!("{}\n{}\n\n", answer.title, answer.question);
    for sentence in study_found(answer).into_iter().chain(study_doubt(answer)) {
        out.push_str(&wrapped(&sentence, "  ", TEXT_WIDTH));
    }
    for sheet in study_sheets(answer) {
        out.push_str(&format!("\n{}\n", sheet.title));
        let rows = std::iter::once(sheet.head).chain(sheet.rows.into_iter().map(|row| row.cells));
        out.push_str(&aligned_with_words(&rows.collect::<Vec<_>>(), &sheet.words));
        if !sheet.note.is_empty() {
            out.push_str(&wrapped(&sheet.note, "  ", TEXT_WIDTH));
        }
    }
    out.push('\n');
    for note in study_notes(answer) {
        out.push_str(&wrapped(&note, "  ", TEXT_WIDTH));
    }
    if let Some(suggested) = &answer.suggested {
        out.push_str(&format!("\n{}", study(suggested)));
    }
    out
}

/// Returns a study as Markdown.
pub fn study_markdown(answer: &Answer) -> String {
    let plain = |text: &str| text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ");
    let mut out = format!("# {}\n\n{}\n\n", plain(&answer.title), plain(&answer.question));
    for sentence in study_found(answer).into_iter().chain(study_doubt(answer)) {
        out.push_str(&format!("- {}\n", plain(&sentence)));
    }
    for sheet in study_sheets(answer) {
        out.push_str(&format!("\n## {}\n\n", plain(&sheet.title)));
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| plain(cell)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        out.push_str(&line(&sheet.head));
        let dashes = (0..sheet.head.len()).map(|at| if sheet.words.contains(&at) { "---" } else { "---:" });
        out.push_str(&format!("| {} |\n", dashes.collect::<Vec<&str>>().join(" | ")));
        sheet.rows.iter().for_each(|row| out.push_str(&line(&row.cells)));
        if !sheet.note.is_empty() {
            out.push_str(&format!("\n{}\n", plain(&sheet.note)));
        }
    }
    out.push('\n');
    for note in study_notes(answer) {
        out.push_str(&format!("- {}\n", plain(&note)));
    }
    if let Some(suggested) = &answer.suggested {
        out.push_str(&format!("\n{}", study_markdown(suggested)));
    }
    out
}

/// Returns how to read the tables, and what else the reader has to know.
pub fn study_notes(answer: &Answer) -> Vec<String> {
    let mut notes = vec![format!(
        "{} of {} are done. A start is a fresh server with its data restored, and one sweep; each block has every cell once, in random order.",
        answer.starts_done,
        count(answer.starts as u64, "start")
    )];
    if let Some(overhead_percent) = answer.overhead_percent {
        notes.push(format!(
            "{} of the time went into starting servers, restoring data and reading recordings; the rest was warming up and measuring.",
            percent(overhead_percent / 100.0)
        ));
    }
    if answer.curves.is_empty() {
        notes.push(format!(
            "Differences are of the geometric mean of ratios to the baseline in the same block, with Student's 95 % interval. p is corrected for all \
             comparisons of the study (Holm). \"Detectable\" is the smallest difference that would be found in four of five repetitions. \"No difference found\" \
             needs an equivalence test, corrected likewise: the difference is within ±{}.",
            percent(answer.matters_percent / 100.0)
        ));
    } else {
        notes.push(
            "Each start sweeps the values in a random order of its own; a point is the geometric mean over the starts of the median execution, with \
             Student's 95 % interval over the starts."
                .to_string(),
        );
    }
    if answer.lines.iter().any(|line| !line.tuning.is_empty()) {
        notes.push("Of several tunings the one with the best mean counts, at each number of users by itself: being chosen for it makes it look a little better than it is.".to_string());
    }
    if answer.lines.iter().any(|line| line.baseline_unstable) {
        notes.push("* The baseline's own starts differ by more than 15 % there (standard deviation): a difference from it means nothing unless it is found within the blocks all the same.".to_string());
    }
    let mut invalid: Vec<String> = Vec::new();
    for line in answer.lines.iter().filter(|line| !line.invalid.is_empty()) {
        invalid.push(format!("{} at {}, {}", line.name, users(line.users), line.invalid[0]));
    }
    if let Some(first) = invalid.first() {
        notes.push(format!(
            "Starts that say nothing of the server: {}; the first: {first}.",
            count(invalid.len() as u64, "line")
        ));
    }
    notes.extend(answer.notes.iter().cloned());
    notes
}

#[cfg(test)]
pub(crate) mod tests {
    use whyso_study::{Spec, StartRecord, answer};

    use super::*;

    pub(super) fn answer_fixture() -> Answer {
        let text = "title = 'Flush'\nquestion = 'What | does it cost?'\nusers = [8]\nrepeats = 3\nbaseline = 'flush'\nsteps = ['flush', 'none']\n\
                    show = ['cpu_user_percent']\n[[before]]\nsource = 'a paper, 2010'\nhead = ['what', 'tps']\nrows = [['flush', '10']]\n\
                    [[variant]]\nname = 'flush'\n[[variant]]\nname = 'none'\n[[variant]]\nname = 'other'\n";
        let spec = Spec::parse(text, false).unwrap();
        let starts = spec.all_starts().into_iter().filter(|start| start.cell < 2);
        let done: Vec<StartRecord> = starts
            .map(|start| {
                let noise = [1.0, 1.002, 0.999][start.block as usize];
                let per_s = if start.cell == 1 { 3000.0 * noise } else { 1000.0 };
                let measures = serde_json::json!({ "transactions_per_s": per_s, "cpu_user_percent": 41.5 });
                let level = serde_json::json!({ "users": 8, "measures": measures });
                serde_json::from_value(serde_json::json!({ "start": start, "run": "", "seconds": 10, "measured_s": 8.5, "levels": [level] })).unwrap()
            })
            .collect();
        answer(&spec, &done, &["a note".to_string()])
    }

    #[test]
    fn a_study_shows_what_is_faster_and_its_smallest_detectable_difference() {
        let shown = study(&answer_fixture());
        for part in [
            "baseline",
            "faster",
            "not measured yet",
            "×3",
            "8 of 11 starts",
            "flush → none",
            "41.5",
            "the same",
            "At 8 users, none is 3 times as fast as flush",
            "15 % of the time",
            "a note",
            "Found before: a paper, 2010",
        ] {
            assert!(shown.contains(part), "no {part:?} in\n{shown}");
        }
        let markdown = study_markdown(&answer_fixture());
        assert!(markdown.contains("What \\| does") && markdown.contains("| 8 | none | 3,001"), "{markdown}");
    }

    #[test]
    fn differences_are_in_per_cent_until_they_are_factors() {
        let texts: Vec<String> = [1.0, 0.873, 1.5, 2.0, 84.3, 0.5, 0.01].map(sheets::difference).to_vec();
        assert_eq!(texts, ["0 %", "−13 %", "+50 %", "×2", "×84.3", "÷2", "÷100"]);
    }
}

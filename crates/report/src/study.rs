//! What a study found, as a table and as Markdown.

use whyso_explain::study::{Compared, Spread};
use whyso_study::{Answer, Line};

use crate::number::grouped;
use crate::terminal::{TEXT_WIDTH, aligned_with_words, wrapped};

const HEAD: [&str; 8] =
    ["users", "transactions/s", "of its starts", "ratio", "95 %", "p", "could see", "cell and verdict"];

/// For the terminal.
pub fn study(answer: &Answer) -> String {
    let mut out = format!("{}\n{}\n\n", answer.title, answer.question);
    let mut rows = vec![HEAD.map(str::to_string).to_vec()];
    rows.extend(answer.lines.iter().map(cells));
    out.push_str(&aligned_with_words(&rows, &[HEAD.len() - 1]));
    out.push('\n');
    for note in notes(answer) {
        out.push_str(&wrapped(&note, "  ", TEXT_WIDTH));
    }
    out
}

/// The same as Markdown.
pub fn study_markdown(answer: &Answer) -> String {
    let plain = |text: &str| text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ");
    let mut out = format!("# {}\n\n{}\n\n", plain(&answer.title), plain(&answer.question));
    out.push_str(&format!("| {} |\n|{}\n", HEAD.join(" | "), " ---: |".repeat(HEAD.len() - 1) + " --- |"));
    for line in &answer.lines {
        let cells: Vec<String> = cells(line).iter().map(|cell| plain(cell)).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out.push('\n');
    for note in notes(answer) {
        out.push_str(&format!("- {}\n", plain(&note)));
    }
    out
}

fn cells(line: &Line) -> Vec<String> {
    let untold = || "–".to_string();
    let spread = |of: fn(&Spread) -> String| line.spread.as_ref().map_or_else(untold, of);
    let compared =
        |of: fn(&Compared) -> Option<String>| line.compared.as_ref().and_then(of).unwrap_or_else(untold);
    let star = if line.baseline_unstable { "*" } else { "" };
    let verdict = match (&line.compared, line.is_baseline) {
        (_, true) => "baseline".to_string(),
        (Some(_), _) if line.baseline_unstable => "meaningless: the baseline is unstable".to_string(),
        (Some(compared), _) => compared.verdict.words().to_string(),
        (None, _) => "not measured yet".to_string(),
    };
    vec![
        line.users.to_string(),
        spread(|spread| grouped(spread.mean)),
        spread(|spread| format!("{} to {}", grouped(spread.lowest), grouped(spread.highest))),
        compared(|one| Some(format!("{:.3}", one.effect.ratio))),
        compared(|one| one.effect.t95.map(|[low, high]| format!("{low:.3} to {high:.3}"))),
        compared(|one| {
            one.p_corrected.map(|p| if p < 0.001 { "<0.001".to_string() } else { format!("{p:.3}") })
        }),
        compared(|one| one.effect.smallest_seen.map(|seen| format!("{:.1} %", (seen - 1.0) * 100.0))),
        format!("{}: {verdict}{star}", line.cell.name()),
    ]
}

fn notes(answer: &Answer) -> Vec<String> {
    let mut notes = vec![format!(
        "{} of {} starts are done. A start is a fresh server with its data restored, and one sweep; each block has every cell once, in random order.",
        answer.starts_done, answer.starts
    )];
    notes.push(format!(
        "Ratios are of throughputs to the baseline's in the same block: their geometric mean, and Student's 95 % interval. p is corrected for all \
         comparisons of the study (Holm). What each could see is the smallest difference that it would find in four of five repetitions; beyond {} %, where \
         none is found, it is too noisy to say.",
        grouped(answer.matters_percent)
    ));
    if answer.lines.iter().any(|line| line.baseline_unstable) {
        notes.push("* The baseline's own starts differ by more than 15 % there (standard deviation): what is compared with it means little.".to_string());
    }
    notes
}

#[cfg(test)]
mod tests {
    use whyso_study::{Spec, Start, answer};

    use super::*;

    #[test]
    fn a_study_says_what_is_faster_and_what_it_could_have_seen() {
        let text = "title = 'Flush'\nquestion = 'What | does it cost?'\nusers = [8]\nrepeats = 3\nbaseline = 'flush'\n\
                    [[variant]]\nname = 'flush'\n[[variant]]\nname = 'none'\n[[variant]]\nname = 'other'\n";
        let spec = Spec::parse(text, false).unwrap();
        let done: Vec<Start> = spec.blocks().into_iter().flatten().filter(|start| start.cell < 2).collect();
        let found = answer(&spec, &done, |start, _| {
            let noise = [1.0, 1.002, 0.999][start.block as usize];
            Some(if start.cell == 1 { 2000.0 * noise } else { 1000.0 })
        });
        let shown = study(&found);
        for part in ["flush: baseline", "none: faster", "other: not measured yet", "2.001", "6 of 9 starts"] {
            assert!(shown.contains(part), "no {part:?} in\n{shown}");
        }
        let markdown = study_markdown(&found);
        assert!(markdown.contains("What \\| does") && markdown.contains("| 8 | 2,001"), "{markdown}");
    }
}

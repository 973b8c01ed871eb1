//! Prints the answer of a run.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use whyso_explain::model::Explanation;
use whyso_record::RunFacts;
use whyso_record::run::RunInfo;
use whyso_report::{Answer, AnswerPlace, RunBefore, Span, Tone};
use whyso_words::terminal::escape;

use crate::terminal::{has_color, width};

/// Next to `report.html`, and like it written again with each explanation of a whole run.
const FILE: &str = "answer.json";
const BYTES_MAX: u64 = 256 << 10;
/// Starts before this one that it is compared with: older ones are of another time.
const BEFORE_MAX: usize = 20;
/// The end of an order to the terminal.
const RESET: &str = "\u{1b}[0m";

/// Prints the answer as the end of a command, in colours if standard output has some. `report`: `None` where there is none.
pub(crate) fn print_answer(
    path: &Path,
    run: &RunInfo,
    explanation: &Explanation,
    report: Option<&Path>,
) -> Result<()> {
    let report = report.map(|path| path.display().to_string());
    let before = run_before(path);
    let place =
        AnswerPlace { width: width(), report: report.as_deref(), before: before.as_ref(), is_head: false };
    print_lines(run, explanation, &place)
}

/// Prints the answer above all that is known of the run.
pub(crate) fn print_head(run: &RunInfo, explanation: &Explanation) -> Result<()> {
    print_lines(run, explanation, &AnswerPlace { width: width(), report: None, before: None, is_head: true })
}

fn print_lines(run: &RunInfo, explanation: &Explanation, place: &AnswerPlace) -> Result<()> {
    let colors = has_color();
    let mut out = crate::out::own();
    for line in whyso_report::answer_lines(run, explanation, place) {
        if !colors {
            writeln!(out, "{}", escape(&line.text()))?;
            continue;
        }
        for span in &line.spans {
            write!(out, "{}", in_color(span))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The last usable run before the one at `path` that did the same: load, settings, server, machine.
fn run_before(path: &Path) -> Option<RunBefore> {
    let mut runs = whyso_record::list_runs(path.parent()?).ok()?;
    let at = runs.iter().position(|run| run.path.file_name() == path.file_name())?;
    let this = runs.swap_remove(at).facts;
    runs.truncate(at);
    let did_the_same = |facts: &RunFacts| {
        let of = |facts: &RunFacts| {
            let server = (facts.flavor.clone(), facts.server_version.clone(), facts.hostname.clone());
            (facts.workload.clone(), facts.plan.clone(), facts.set.clone(), server, facts.is_recorded)
        };
        of(facts) == of(&this)
    };
    let this_per_s = this.best.as_ref()?.transactions_per_s;
    // What disturbed a run is no spread of the load's starts.
    let is_usable =
        |run: &whyso_record::RunSummary| kept_answer(&run.path).is_none_or(|answer| answer.doubts.is_empty());
    let is_before = |run: &whyso_record::RunSummary| {
        let is_whole = matches!(run.facts.ended, Some(whyso_record::run::RunEnd::Complete { .. }));
        did_the_same(&run.facts) && is_whole && !run.facts.is_recorded && is_usable(run)
    };
    let before: Vec<_> =
        runs.into_iter().filter(is_before).filter_map(|run| Some((run.id, run.facts.best?))).collect();
    let all_per_s = before.iter().rev().take(BEFORE_MAX).map(|(_, best)| best.transactions_per_s).collect();
    let (id, best) = before.into_iter().next_back()?;
    Some(RunBefore {
        id,
        transactions_per_s: best.transactions_per_s,
        users: best.users,
        all_per_s,
        this_per_s,
    })
}

/// Keeps the answer next to the recording: a list of runs shows its first cause.
pub(crate) fn keep_answer(path: &Path, answer: &Answer) -> Result<()> {
    let mut file = whyso_record::private::create_file(&path.join(FILE))?;
    serde_json::to_writer(&mut file, answer)?;
    Ok(())
}

/// The answer that was kept; `None` where there is none.
pub(crate) fn kept_answer(path: &Path) -> Option<Answer> {
    let bytes = whyso_record::private::read_file(&path.join(FILE), BYTES_MAX).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The only orders are the tones': the text is escaped.
fn in_color(span: &Span) -> String {
    let text = escape(&span.text);
    let code = match span.tone {
        Tone::Plain => return text,
        Tone::Strong => "1",
        Tone::Faint => "2",
        Tone::Good => "32",
        Tone::Bad => "1;31",
        Tone::Warning => "33",
    };
    format!("\u{1b}[{code}m{text}{RESET}")
}

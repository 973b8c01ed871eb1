//! The answer as lines of a terminal, at most [`LINES_MAX`]. `whyso why` and the report have the rest.

use whyso_explain::model::{BEHIND_S_MIN, Cause, Explanation, NodeState, Part, Suspect};
use whyso_record::run::RunInfo;
use whyso_words::percent;

use super::line::{Line, Span, Tone};
use super::{Answer, AnswerCause, answer, levels, time};
use crate::text::clean;
use crate::text::layout::lines_of;

/// Lines that a command ends with, at most.
pub const LINES_MAX: usize = 20;

/// Doubts that have a line; `whyso why` has all.
const DOUBTS_MAX: usize = 2;
/// Other suspects that are named.
const OTHERS_MAX: usize = 3;
/// One start in twenty that is like those before is called another.
const ALPHA: f64 = 0.05;
/// Starts whose interval ends at more than this many times its begin say nothing of one that lies in it.
const BEFORE_RATIO_MAX: f64 = 4.0;
/// Lines of findings where nobody is suspected.
const FINDING_LINES_MAX: usize = 12;
/// Findings of the time of a request to a first program.
const TIER_BUDGET: &str = "tier-budget";

/// Where the answer is printed.
#[derive(Clone, Debug)]
pub struct AnswerPlace<'a> {
    /// Characters of a line.
    pub width: usize,
    /// Where the report is; `None` where it could not be written.
    pub report: Option<&'a str>,
    /// The run before that did the same; `None` where there is none.
    pub before: Option<&'a RunBefore>,
    /// Whether all that is known follows, so that no commands need to be named.
    pub is_head: bool,
}

/// Earlier runs of the same load on the same server with the same settings.
#[derive(Clone, Debug, PartialEq)]
pub struct RunBefore {
    /// Of the last one.
    pub id: String,
    /// Transactions per second of its best level.
    pub transactions_per_s: f64,
    pub users: u32,
    /// Transactions per second of the best level of each, this run not among them.
    pub all_per_s: Vec<f64>,
    /// The same of this run.
    pub this_per_s: f64,
}

/// The lines, [`LINES_MAX`] at most, none wider than the place.
pub fn answer_lines(run: &RunInfo, explanation: &Explanation, place: &AnswerPlace) -> Vec<Line> {
    let answer = answer(run, explanation);
    let mut lines = doubts(&answer);
    let of_tiers = tiers(explanation, place.width);
    let is_repeated = !of_tiers.is_empty()
        && explanation.findings.iter().any(|finding| {
            finding.id == TIER_BUDGET && explanation.headline.ends_with(finding.text.as_str())
        });
    lines.extend(of_tiers);
    if !is_repeated {
        lines.push(verdict(&answer));
    }
    match answer.causes.first() {
        // The time goes elsewhere: what would make the database faster is no answer.
        Some(_) if is_elsewhere(explanation) => {}
        Some(first) => lines.extend(cause(first, explanation)),
        // A recording of something that is no server, or of nothing.
        None => lines.extend(first_findings(explanation, place.width)),
    }
    lines.extend(explanation.nodes.iter().filter_map(behind));
    lines.extend(time::line(explanation, place.width));
    lines.extend(place.before.map(|runs| before(runs, answer.doubts.is_empty())));
    let next = if place.is_head { Vec::new() } else { next(run, &answer, place) };
    let room = LINES_MAX.saturating_sub(lines.len() + next.len());
    lines.extend(levels::table(run, explanation, room));
    lines.extend(next);
    lines.into_iter().map(|line| line.cut(place.width)).collect()
}

/// What makes the result unusable.
fn doubts(answer: &Answer) -> Vec<Line> {
    let shown = answer.doubts.iter().take(DOUBTS_MAX).enumerate().map(|(at, doubt)| {
        let label = if at == 0 { "✗ Not usable: " } else { "  and         " };
        Line::default().with(Tone::Bad, label).with(Tone::Plain, doubt.as_str())
    });
    let mut lines: Vec<Line> = shown.collect();
    let more = answer.doubts.len().saturating_sub(DOUBTS_MAX);
    if let Some(last) = lines.last_mut().filter(|_| more > 0) {
        last.spans.push(Span { tone: Tone::Faint, text: format!("; {more} more: whyso why") });
    }
    lines
}

/// "✓ Stops at 8 users: 1,392 tps, p95 9 ms.  Limit: locks."
fn verdict(answer: &Answer) -> Line {
    let (mark, tone) = if answer.doubts.is_empty() { ("✓ ", Tone::Good) } else { ("  ", Tone::Plain) };
    let line = Line::default().with(tone, mark).with(Tone::Strong, format!("{}.", answer.result()));
    match answer.limit.as_str() {
        "" => line,
        limit => line.with(Tone::Plain, "  Limit: ").with(Tone::Strong, limit).with(Tone::Plain, "."),
    }
}

/// The cause, who holds it, what is worth a try, and who else is suspected.
fn cause(cause: &AnswerCause, explanation: &Explanation) -> Vec<Line> {
    let at = if cause.at.is_empty() { String::new() } else { format!(" {}", cause.at) };
    let share = match cause.share > 0.0 {
        true => format!(", {} of the response time{at} ({})", percent(cause.share), cause.class.name()),
        // What it holds was not measured.
        false => at,
    };
    let mut lines =
        vec![Line::labelled("cause").with(Tone::Strong, cause.words.as_str()).with(Tone::Plain, share)];
    if !cause.held_by.is_empty() {
        let line = Line::labelled("held by").with(Tone::Plain, cause.held_by.as_str());
        lines.push(line.with(Tone::Faint, format!("  ({})", cause.held_share)));
    }
    if !cause.remedy.is_empty() {
        let label = if cause.id == Cause::Unknown { "next" } else { "try" };
        let mut line = Line::labelled(label).with(Tone::Plain, cause.remedy.as_str());
        if !cause.gain.is_empty() {
            line = line.with(Tone::Faint, format!("   {} (estimate)", cause.gain));
        }
        lines.push(line);
    }
    let others = explanation.suspects.iter().skip(1).take(OTHERS_MAX);
    let with_share = |suspect: &Suspect| match suspect.id {
        // It holds whatever is no queue, the others' time included.
        Cause::Unsaturated => suspect.id.name().to_string(),
        id => format!("{} {}", id.name(), percent(suspect.share)),
    };
    let others: Vec<String> = others.map(with_share).collect();
    if !others.is_empty() {
        lines.push(Line::labelled("also").with(Tone::Plain, others.join(" · ")));
    }
    lines
}

/// "replication-2 up to 14 s behind its source: its busiest applier had work for 97 % of the time"
fn behind(node: &NodeState) -> Option<Line> {
    let behind_s = node.behind_s.filter(|behind_s| *behind_s >= BEHIND_S_MIN)?;
    let text = format!("{} up to {} behind its source", clean(&node.name), whyso_words::seconds(behind_s));
    let line = Line::labelled("replica").with(Tone::Bad, text);
    Some(match &node.applier {
        Some(applier) => {
            let busy = percent(applier.busy);
            line.with(Tone::Plain, format!(": its busiest applier had work for {busy} of the time"))
        }
        None => line,
    })
}

/// Whether most of the time of the requests to every first program goes into something else than a database.
fn is_elsewhere(explanation: &Explanation) -> bool {
    let mut firsts = explanation.tiers.iter().filter(|tier| tier.is_first && !tier.is_database).peekable();
    let is_database = |name: &str| explanation.tiers.iter().any(|tier| tier.is_database && tier.name == name);
    firsts.peek().is_some()
        && firsts.all(|tier| {
            let longest = tier.longest.and_then(|at| tier.lines.get(at as usize));
            longest.is_some_and(|line| !is_database(&line.tier) || line.part == Some(Part::TransitOut))
        })
}

/// Where the time of a request to each first program went, over all that were recorded.
fn tiers(explanation: &Explanation, width: usize) -> Vec<Line> {
    let of_tiers = explanation.findings.iter().filter(|finding| finding.id == TIER_BUDGET);
    let paragraphs: String =
        of_tiers.map(|finding| lines_of(&clean(&finding.text), "  ", "    ", width)).collect();
    paragraphs.lines().take(FINDING_LINES_MAX).map(|line| Line::default().with(Tone::Plain, line)).collect()
}

/// Where nobody is suspected: what was found, sentence by sentence.
fn first_findings(explanation: &Explanation, width: usize) -> Vec<Line> {
    let others = explanation.findings.iter();
    let others = others.filter(|finding| finding.text != explanation.headline && finding.id != TIER_BUDGET);
    let paragraphs = others.map(|finding| lines_of(&clean(&finding.text), "  ", "    ", width));
    let all: String = paragraphs.collect();
    all.lines().take(FINDING_LINES_MAX).map(|line| Line::default().with(Tone::Plain, line)).collect()
}

/// What the same load did before. A few starts show no difference: how to find out stands next to it. Four and more give an interval in
/// which one more start lies. A run that is not usable is not judged by it.
fn before(before: &RunBefore, is_usable: bool) -> Line {
    let interval = whyso_inference::prediction(&before.all_per_s, ALPHA).filter(|_| is_usable);
    if let Some((low, high)) = interval {
        let (low, high) = (low.max(0.0), high);
        let starts = whyso_words::count(before.all_per_s.len() as u64, "start");
        if (low..=high).contains(&before.this_per_s) && high > low * BEFORE_RATIO_MAX {
            let text = format!("{starts} of this load differ too much to judge this one by them");
            return Line::labelled("before").with(Tone::Plain, text);
        }
        let interval = format!("{} to {}", whyso_words::number(low), whyso_words::number(high));
        let (tone, verdict) = match before.this_per_s {
            this if this < low => (Tone::Bad, "regressed: less than "),
            this if this > high => (Tone::Good, "improved: more than "),
            _ => (Tone::Plain, "as before: within "),
        };
        let line = Line::labelled("before").with(tone, verdict).with(Tone::Plain, interval);
        return line.with(Tone::Faint, format!(", where one more of {starts} before lies with 95 %"));
    }
    let rate = whyso_words::number(before.transactions_per_s);
    let text = format!("{rate} at {} in {}", whyso_words::users(before.users), clean(&before.id));
    let line = Line::labelled("before").with(Tone::Plain, text);
    line.with(Tone::Faint, "   to see whether they differ: repeat, then whyso compare")
}

/// The commands that show more, and where the run lies.
fn next(run: &RunInfo, answer: &Answer, place: &AnswerPlace) -> Vec<Line> {
    let mut commands = vec!["whyso why"];
    commands.extend(answer.causes.first().and_then(|cause| command_for(cause.id)));
    commands.push("whyso serve");
    let more = Line::labelled("more").with(Tone::Plain, commands.join(" · "));
    let more = more.with(Tone::Faint, format!("   run: latest ({})", clean(&run.id)));
    let report = place.report.map(|report| Line::labelled("report").with(Tone::Plain, clean(report)));
    [Some(more), report].into_iter().flatten().collect()
}

/// The command that shows a cause's detail.
fn command_for(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::RowLock
        | Cause::Deadlock
        | Cause::MetadataLock
        | Cause::TableLock
        | Cause::AutoIncrement
        | Cause::UserLock => Some("whyso locks"),
        Cause::Cpu | Cause::FullScan | Cause::TmpTableSort | Cause::Spin | Cause::PurgeLag => {
            Some("whyso functions")
        }
        Cause::Unknown | Cause::Unsaturated | Cause::Generator | Cause::NoisyNeighbour | Cause::Observer => {
            None
        }
        _ => Some("whyso classes"),
    }
}

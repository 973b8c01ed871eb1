//! The answer as lines of a terminal, at most [`LINES_MAX`]. `whyso why` and the report have the rest.

use whyso_explain::model::{Cause, Explanation, Regime};
use whyso_record::run::RunInfo;
use whyso_words::percent;

use super::{Answer, AnswerCause, answer, levels, time};
use crate::text::clean;

/// Lines that a command ends with, at most.
pub const LINES_MAX: usize = 20;

/// Doubts that have a line; `whyso why` has all.
const DOUBTS_MAX: usize = 2;
/// Other suspects that are named.
const OTHERS_MAX: usize = 3;
/// Findings where nobody is suspected.
const FINDINGS_MAX: usize = 6;
/// Columns in front of what a line says.
const LABEL_WIDTH: usize = 10;

/// How a piece of text stands out in a terminal with colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    Warning,
}

/// A piece of a line. Its text may be anyone's: who prints it escapes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub tone: Tone,
    pub text: String,
}

/// One line of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub spans: Vec<Span>,
}

/// Where the answer is printed.
#[derive(Clone, Debug)]
pub struct AnswerPlace<'a> {
    /// Characters of a line.
    pub width: usize,
    /// Where the report is; `None` where it could not be written.
    pub report: Option<&'a str>,
}

/// The lines, [`LINES_MAX`] at most, none wider than the place.
pub fn answer_lines(run: &RunInfo, explanation: &Explanation, place: &AnswerPlace) -> Vec<Line> {
    let answer = answer(run, explanation);
    let mut lines = doubts(&answer);
    lines.push(verdict(&answer));
    match answer.causes.first() {
        Some(first) => lines.extend(cause(first, explanation)),
        // A recording of something that is no server, or of nothing.
        None => lines.extend(first_findings(explanation)),
    }
    lines.extend(time::line(explanation, place.width));
    let next = next(run, &answer, place);
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
    let share = format!(", {} of the response time{at} ({})", percent(cause.share), cause.class.name());
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
    let others: Vec<String> =
        others.map(|suspect| format!("{} {}", suspect.id.name(), percent(suspect.share))).collect();
    if !others.is_empty() {
        lines.push(Line::labelled("also").with(Tone::Plain, others.join(" · ")));
    }
    lines
}

/// Where nobody is suspected: what was found, sentence by sentence.
fn first_findings(explanation: &Explanation) -> Vec<Line> {
    let others = explanation.findings.iter().filter(|finding| finding.text != explanation.headline);
    let line = |text: &str| Line::default().with(Tone::Plain, format!("  {}", clean(text)));
    others.take(FINDINGS_MAX).map(|finding| line(&finding.text)).collect()
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

/// How a level's regime is shown.
pub(super) fn tone_of(regime: Regime) -> Tone {
    match regime {
        Regime::Peak => Tone::Good,
        Regime::Degrading => Tone::Warning,
        Regime::RampingUp | Regime::Unknown => Tone::Plain,
    }
}

impl Line {
    /// "  try     "
    pub(super) fn labelled(label: &str) -> Line {
        Line::default().with(Tone::Faint, format!("  {label:<LABEL_WIDTH$}"))
    }

    pub(super) fn with(mut self, tone: Tone, text: impl Into<String>) -> Line {
        self.spans.push(Span { tone, text: text.into() });
        self
    }

    /// At most so many characters: the longest span gives way. A faint one at the end does not.
    fn cut(mut self, width: usize) -> Line {
        let length = |span: &Span| span.text.chars().count();
        let over = self.spans.iter().map(length).sum::<usize>().saturating_sub(width);
        if over == 0 {
            return self;
        }
        let last = self.spans.len() - 1;
        let gives_way = |at: usize, span: &Span| at < last || span.tone != Tone::Faint;
        let spans = self.spans.iter().enumerate().filter(|(at, span)| gives_way(*at, span));
        let Some(at) = spans.max_by_key(|(_, span)| length(span)).map(|(at, _)| at) else { return self };
        let kept = length(&self.spans[at]).saturating_sub(over + 1);
        self.spans[at].text = self.spans[at].text.chars().take(kept).chain(['…']).collect();
        // Where nothing is left to give way, the rest does.
        let mut left = width;
        for span in &mut self.spans {
            span.text = span.text.chars().take(left).collect();
            left -= length(span);
        }
        self
    }

    /// The line without its tones.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect::<String>().trim_end().to_string()
    }
}

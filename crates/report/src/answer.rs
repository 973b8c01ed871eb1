//! The answer of a run in a few lines: what a command prints when it ends.
//!
//! Whether the result can be used, where throughput stops, the limit, the cause, who holds it, what is worth a try, where the time goes, and
//! the levels. At most [`LINES_MAX`] lines. `whyso why` and the report have the rest.

mod levels;
mod time;

use whyso_explain::model::{Cause, Explanation, Gain, Limit, Regime, Resource, Suspect};
use whyso_record::run::{Level, Purpose, RunInfo};
use whyso_words::{milliseconds, number, percent, users};

use crate::text::clean;
use crate::text::level::unit;

/// Lines that a command ends with, at most.
pub const LINES_MAX: usize = 20;

/// Doubts that have a line; `whyso why` has all.
const DOUBTS_MAX: usize = 2;
/// Other suspects that are named.
const OTHERS_MAX: usize = 3;
/// Columns in front of what a line says.
const LABEL_WIDTH: usize = 10;
/// From this share of the samples on, an object is named alone.
const ALL: f64 = 0.95;
/// A gain below this is none.
const GAIN_MIN: f64 = 1.01;

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

/// Where the answer is printed, and what can be asked next.
#[derive(Clone, Debug)]
pub struct AnswerPlace<'a> {
    /// Characters of a line.
    pub width: usize,
    /// Where the report is; `None` where it could not be written.
    pub report: Option<&'a str>,
}

/// The lines, [`LINES_MAX`] at most, none wider than the place.
pub fn answer(run: &RunInfo, explanation: &Explanation, place: &AnswerPlace) -> Vec<Line> {
    let mut lines = doubts(explanation);
    lines.push(verdict(run, explanation));
    match explanation.suspects.first() {
        Some(suspect) => lines.extend(cause(run, explanation, suspect)),
        // A recording of something that is no server, or of nothing.
        None => lines.extend(first_findings(explanation)),
    }
    lines.extend(time::line(explanation, place.width));
    let next = next(run, explanation, place);
    let room = LINES_MAX.saturating_sub(lines.len() + next.len());
    lines.extend(levels::table(run, explanation, room));
    lines.extend(next);
    lines.into_iter().map(|line| line.cut(place.width)).collect()
}

/// What makes the result unusable.
fn doubts(explanation: &Explanation) -> Vec<Line> {
    let doubts = &explanation.unusable;
    let shown = doubts.iter().take(DOUBTS_MAX).enumerate().map(|(at, doubt)| {
        let label = if at == 0 { "✗ Not usable: " } else { "  and         " };
        Line::default().with(Tone::Bad, label).with(Tone::Plain, clean(&doubt.text))
    });
    let mut lines: Vec<Line> = shown.collect();
    if let (Some(last), Some(more)) = (lines.last_mut(), doubts.len().checked_sub(DOUBTS_MAX + 1)) {
        last.spans.push(Span { tone: Tone::Bad, text: format!("; {} more: whyso why", more + 1) });
    }
    lines
}

/// "✓ Stops at 8 users: 1,392 tps, p95 9 ms.  Limit: locks."
fn verdict(run: &RunInfo, explanation: &Explanation) -> Line {
    let (mark, tone) =
        if explanation.unusable.is_empty() { ("✓ ", Tone::Good) } else { ("  ", Tone::Plain) };
    let line = Line::default().with(tone, mark);
    let Some(level) = best(run, explanation) else {
        return line.with(Tone::Strong, clean(&explanation.headline));
    };
    let per_s = number(throughput(explanation, level));
    let rate = if run.is_recorded() { format!("{per_s} {}s/s", unit(run)) } else { format!("{per_s} tps") };
    let mut text = format!("{}: {rate}", extent(run, explanation, level));
    let latency = &level.result.latency_ms;
    if latency.p95 > 0.0 {
        text.push_str(&format!(", p95 {}", milliseconds(latency.p95)));
    } else if latency.mean > 0.0 {
        text.push_str(&format!(", {} on average", milliseconds(latency.mean)));
    }
    let line = line.with(Tone::Strong, format!("{text}."));
    match &explanation.limit {
        Some(limit) => {
            line.with(Tone::Plain, "  Limit: ").with(Tone::Strong, limit_words(limit)).with(Tone::Plain, ".")
        }
        None => line,
    }
}

fn limit_words(limit: &Limit) -> &'static str {
    match limit.id {
        Resource::Cpu => "the CPUs",
        Resource::Lock => "locks",
        Resource::Disk => "the disk",
        Resource::Network => "the network",
        Resource::Pool => "the bound on threads at work",
        Resource::Client => "the load generator, not the server",
        Resource::None => "none reached",
        Resource::Unknown => "unknown",
    }
}

/// The level whose throughput is told: the peak, else the best of those that were measured.
fn best<'a>(run: &'a RunInfo, explanation: &Explanation) -> Option<&'a Level> {
    let swept = || run.levels.iter().filter(|level| level.purpose == Purpose::Sweep);
    let at_peak = explanation.peak.as_ref().and_then(|peak| swept().find(|level| level.users == peak.users));
    at_peak.or_else(|| run.best_level())
}

/// Transactions per second as the explanation has them: of the steady part of the window.
fn throughput(explanation: &Explanation, level: &Level) -> f64 {
    let verdict = explanation.levels.iter().find(|verdict| verdict.index == level.index);
    verdict.map_or(level.result.transactions_per_s, |verdict| verdict.transactions_per_s)
}

/// "Stops at 8 users", "Still rises at 64 users", "At 8 users".
fn extent(run: &RunInfo, explanation: &Explanation, level: &Level) -> String {
    let swept = run.levels.iter().filter(|level| level.purpose == Purpose::Sweep).count();
    if run.is_recorded() {
        return format!("In {}", whyso_words::seconds(level.window.seconds()));
    }
    if run.sweeps_rates() {
        return format!("At {} due", whyso_words::rate(level.result.rate_per_s.unwrap_or_default()));
    }
    let at = users(level.users);
    match explanation.peak.as_ref().filter(|_| swept > 1) {
        Some(peak) if peak.users_interval.1.is_none() => format!("Still rises at {at}"),
        Some(_) => format!("Stops at {at}"),
        None => format!("At {at}"),
    }
}

/// The cause, who holds it, what is worth a try, and who else is suspected.
fn cause(run: &RunInfo, explanation: &Explanation, suspect: &Suspect) -> Vec<Line> {
    let mut lines = Vec::new();
    let about = explanation.about.and_then(|index| run.levels.iter().find(|level| level.index == index));
    let told = best(run, explanation).map(|level| level.index);
    // The cause is asked about where throughput stops growing, which may be another level.
    let at = match about.filter(|level| Some(level.index) != told && !run.is_recorded()) {
        Some(level) => format!(" at {}", users(level.users)),
        None => String::new(),
    };
    let share = format!("{} of the response time{at}", percent(suspect.share));
    let words = match (&suspect.object, suspect.id) {
        (_, Cause::Unknown) => "not known".to_string(),
        (Some(object), id) if object.share >= ALL => format!("{} on {}", id.words(), clean(&object.name)),
        (Some(object), id) => {
            format!("{} ({} of them on {})", id.words(), percent(object.share), clean(&object.name))
        }
        (None, id) => id.words().to_string(),
    };
    let line = Line::labelled("cause").with(Tone::Strong, words);
    lines.push(line.with(Tone::Plain, format!(", {share} ({})", suspect.class.name())));
    if let Some((object, holder)) =
        suspect.object.as_ref().and_then(|object| Some((object, object.holder.as_ref()?)))
    {
        let by = format!("  ({} of {} samples)", percent(holder.share), whyso_words::whole(object.samples));
        lines.push(Line::labelled("held by").with(Tone::Plain, clean(&holder.statement)).ending(by));
    }
    if let Some(line) = remedy(suspect) {
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

/// "try  shorten the transactions that hold these rows    ×1.3 to ×3 (estimate)"
fn remedy(suspect: &Suspect) -> Option<Line> {
    if suspect.id == Cause::Unknown {
        let (_, next) = suspect.text.rsplit_once("; ")?;
        return Some(Line::labelled("next").with(Tone::Plain, clean(next.trim_end_matches('.'))));
    }
    let line = Line::labelled("try").with(Tone::Plain, suspect.id.remedy()?);
    Some(match suspect.predicted_gain.filter(|gain| gain.high >= GAIN_MIN) {
        Some(gain) => line.ending(format!("   {} (estimate)", gain_words(suspect.id, gain))),
        None => line,
    })
}

fn gain_words(cause: Cause, Gain { low, high }: Gain) -> String {
    let (low, high) = (number(low), number(high));
    match cause {
        Cause::Cpu => format!("×{low} with twice the CPUs"),
        _ if low == high => format!("×{high}"),
        _ => format!("×{low} to ×{high}"),
    }
}

/// Where nobody is suspected: what was found, sentence by sentence.
fn first_findings(explanation: &Explanation) -> Vec<Line> {
    const MAX: usize = 6;
    let others = explanation.findings.iter().filter(|finding| finding.text != explanation.headline);
    let line = |text: &str| Line::default().with(Tone::Plain, format!("  {}", clean(text)));
    others.take(MAX).map(|finding| line(&finding.text)).collect()
}

/// The commands that show more, and where the run lies.
fn next(run: &RunInfo, explanation: &Explanation, place: &AnswerPlace) -> Vec<Line> {
    let mut commands = vec!["whyso why"];
    commands.extend(explanation.suspects.first().and_then(|suspect| command_for(suspect.id)));
    commands.push("whyso serve");
    let more = Line::labelled("more").with(Tone::Plain, commands.join(" · "));
    let more = more.ending(format!("   run: latest ({})", clean(&run.id)));
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
fn tone_of(regime: Regime) -> Tone {
    match regime {
        Regime::Peak => Tone::Good,
        Regime::Degrading => Tone::Warning,
        Regime::RampingUp | Regime::Unknown => Tone::Plain,
    }
}

impl Line {
    /// "  try     "
    fn labelled(label: &str) -> Line {
        Line::default().with(Tone::Faint, format!("  {label:<LABEL_WIDTH$}"))
    }

    fn with(mut self, tone: Tone, text: impl Into<String>) -> Line {
        self.spans.push(Span { tone, text: text.into() });
        self
    }

    /// With an end that stays when the line is cut.
    fn ending(mut self, text: String) -> Line {
        self.spans.push(Span { tone: Tone::Faint, text });
        self
    }

    /// At most so many characters: the longest span that is not the last one gives way.
    fn cut(mut self, width: usize) -> Line {
        let length = |span: &Span| span.text.chars().count();
        let over = self.spans.iter().map(length).sum::<usize>().saturating_sub(width);
        if over == 0 {
            return self;
        }
        let last = self.spans.len() - 1;
        let is_fixed = |at: usize, span: &Span| at == last && span.tone == Tone::Faint;
        let longest = self.spans.iter().enumerate().filter(|(at, span)| !is_fixed(*at, span));
        let Some(at) = longest.max_by_key(|(_, span)| length(span)).map(|(at, _)| at) else { return self };
        let kept = length(&self.spans[at]).saturating_sub(over + 1);
        self.spans[at].text = self.spans[at].text.chars().take(kept).chain(['…']).collect();
        self
    }

    /// The line without its tones.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect::<String>().trim_end().to_string()
    }
}

#[cfg(test)]
mod tests;

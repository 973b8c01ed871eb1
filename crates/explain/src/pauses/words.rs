//! Pauses in sentences, each with what it is based on.

use super::model::Kind;
use super::model::LOST;
use super::pattern::{Pattern, is_alike, patterns, unmeant, waits_for_commands_ns};
use crate::budget::{SOURCE, series_evidence};
use crate::level::{Level, levels_evidence, names};
use crate::model::{Evidence, Finding, LoopKind, SeriesName};

/// No more patterns than this are reported.
const SHOWN_MAX: usize = 3;

/// A thread that pauses before this share of its commands does so each time.
const EACH_TIME: f64 = 0.9;

/// Sampler of the threads' states; the instance is their role.
const THREADS: &str = "threads";

/// What pauses at the level at `about`, or where it does most; and at which levels it does so too.
pub(crate) fn findings(levels: &[Level], about: Option<usize>) -> Vec<Finding> {
    let found: Vec<Vec<Pattern>> = levels.iter().map(unmeant).collect();
    let mut shown: Vec<&Pattern> = Vec::new();
    let mut findings = Vec::new();
    // The level in question first, then from the last to the first: what grows with users shows best there.
    for at in about.into_iter().chain((0..levels.len()).rev()) {
        for pattern in &found[at] {
            if shown.len() < SHOWN_MAX && !shown.iter().any(|other| other.is_like(pattern)) {
                shown.push(pattern);
                let is_there = |(other, _): &(usize, &Level)| {
                    *other != at
                        && !levels[*other].repeat
                        && found[*other].iter().any(|there| there.is_like(pattern))
                };
                let too: Vec<&Level> =
                    levels.iter().enumerate().filter(is_there).map(|(_, level)| level).collect();
                findings.push(finding(pattern, &found[at], &levels[at], &too));
            }
        }
    }
    findings.extend(lost(levels));
    findings
}

/// Long waits that the tracer had no place for: patterns among them are not found.
fn lost(levels: &[Level]) -> Option<Finding> {
    let count = |level: &Level| {
        Some(level.counter(SOURCE, "lost", LOST).filter(|lost| lost.increase >= 0.5)?.increase)
    };
    let shown: Vec<&Level> = levels.iter().filter(|level| count(level).is_some()).collect();
    let all: f64 = shown.iter().filter_map(|level| count(level)).sum();
    let text = format!(
        "The tracer had no place for {} long waits at {}: threads that pause periodically may be among them.",
        whyso_words::number(all.round()),
        names(&shown)
    );
    let series = shown.first().and_then(|level| level.counter(SOURCE, "lost", LOST))?.series.clone();
    Some(Finding { id: "pauses".to_string(), text, evidence: series_evidence(&[series], &shown) })
}

fn finding(pattern: &Pattern, patterns_of_level: &[Pattern], level: &Level, too: &[&Level]) -> Finding {
    let mut text = format!("At {} {}", level.name(), sentence(pattern, level));
    if !too.is_empty() {
        text.push_str(&format!(" So it is at {}.", names(too)));
    }
    let (advice, accounts) = advice(pattern, patterns_of_level, level);
    text.push(' ');
    text.push_str(&advice);
    let mut shown = vec![level];
    shown.extend(too);
    let mut evidence = vec![levels_evidence("latency_mean_ms", &shown)];
    let states = level.counter(THREADS, &format!("{}_ns", pattern.state), &pattern.role);
    let series: Vec<SeriesName> = states.map(|counter| counter.series.clone()).into_iter().collect();
    evidence.extend(series_evidence(&series, &shown));
    evidence.extend(accounts);
    Finding { id: "pauses".to_string(), text, evidence }
}

/// "12 of 64 connection threads wait 400 ms (± 3 ms) for their next command (in poll), each time: 38 % of their time."
fn sentence(pattern: &Pattern, level: &Level) -> String {
    // A connection's thread a user, where each connection has a thread.
    let of = match pattern.threads.max(level.users) {
        1 => "the only connection thread".to_string(),
        all => format!(
            "{} of {} connection threads",
            whyso_words::whole(u64::from(pattern.threads)),
            whyso_words::whole(u64::from(all))
        ),
    };
    let (verb, purpose) = words(pattern);
    let verb = if pattern.threads == 1 { format!("{verb}s") } else { verb.to_string() };
    let call = match pattern.call.as_str() {
        "" => String::new(),
        call => format!(" (in {call})"),
    };
    format!(
        "{of} {verb} {}{purpose}{call}{}: {} of {} time.",
        time(pattern.length.mean_ns, pattern.regular.length.then_some(pattern.length.spread_ns)),
        how_often(pattern),
        whyso_words::percent(pattern.share(level)),
        if pattern.threads == 1 { "its" } else { "their" },
    )
}

fn words(pattern: &Pattern) -> (&'static str, &'static str) {
    match pattern.kind {
        Kind::NextCommand if pattern.threads == 1 => return ("wait", " for its next command"),
        Kind::NextCommand => return ("wait", " for their next command"),
        Kind::RestOfRequest => return ("wait", " for the rest of a request"),
        Kind::InRequest | Kind::Timer | Kind::Own | Kind::Idle => {}
    }
    let purpose = match pattern.state.as_str() {
        "sleep" => return ("sleep", " within a request"),
        "lock" => " for a lock within a request",
        "kernel_lock" => " for a lock inside the kernel, within a request",
        "file_read" => " for a file to be read, within a request",
        "file_write" => " for a file to be written, within a request",
        "file_sync" => " for a file to be synced, within a request",
        "net_send" => " for the client to take an answer",
        "page_fault" => " for memory pages, within a request",
        "runqueue" => " for a CPU, within a request",
        _ => " within a request",
    };
    ("wait", purpose)
}

/// "400 ms (± 3 ms)", or "250 ms on average".
fn time(mean_ns: f64, spread_ns: Option<f64>) -> String {
    let mean = whyso_words::amount(mean_ns, "ns");
    match spread_ns {
        Some(spread_ns) => format!("{mean} (± {})", whyso_words::amount(spread_ns, "ns")),
        None => format!("{mean} on average"),
    }
}

fn how_often(pattern: &Pattern) -> String {
    let of_commands = pattern.length.count / pattern.requests;
    let is_for_client = matches!(pattern.kind, Kind::NextCommand | Kind::RestOfRequest);
    if is_for_client && of_commands >= EACH_TIME {
        return ", each time".to_string();
    }
    if pattern.regular.period {
        return format!(", once every {}", time(pattern.period.mean_ns, Some(pattern.period.spread_ns)));
    }
    match pattern.kind {
        Kind::NextCommand if of_commands.is_finite() => {
            format!(", before {} of the commands", whyso_words::percent(of_commands))
        }
        Kind::RestOfRequest if of_commands.is_finite() => {
            format!(", in {} of them", whyso_words::percent(of_commands))
        }
        _ => String::new(),
    }
}

/// Where to look for the reason, and the evidence.
fn advice(pattern: &Pattern, patterns_of_level: &[Pattern], level: &Level) -> (String, Vec<Evidence>) {
    if pattern.kind == Kind::InRequest {
        return (same_period(pattern, level), Vec::new());
    }
    if pattern.kind == Kind::RestOfRequest {
        let advice = "Either the client sends in pieces that far apart, as it may with LOAD DATA LOCAL; or a piece waits until \
                      the one before is acknowledged (Nagle's algorithm, which TCP_NODELAY ends).";
        return (advice.to_string(), Vec::new());
    }
    if level.pacing == LoopKind::Recorded {
        let advice = "The load is not whyso's own: this may be how its clients work, or a timer of theirs, or the network's \
                      (delayed acknowledgements).";
        return (advice.to_string(), Vec::new());
    }
    let Some(held) = level.counter(SOURCE, "client_held_ns", "") else {
        let advice = "A closed loop sends at once: look at the network (delayed acknowledgements) or the client's timers.";
        return (advice.to_string(), Vec::new());
    };
    let waits_ns = waits_for_commands_ns(patterns_of_level);
    let evidence = series_evidence(std::slice::from_ref(&held.series), &[level]);
    let of_them = format!(
        "{} of the {} that these waits come to",
        whyso_words::amount(held.increase.min(waits_ns), "ns"),
        whyso_words::amount(waits_ns, "ns")
    );
    let advice = if held.increase >= waits_ns / 2.0 {
        format!(
            "A closed loop sends at once, but the load generator had the answers and held the next command for {of_them}: look at \
             pauses in its script and at its timers."
        )
    } else {
        format!(
            "A closed loop sends at once, and the load generator held commands for no more than {of_them}: they were on their way. \
             Look at the network (delayed acknowledgements)."
        )
    };
    (advice, evidence)
}

/// Background threads that pause at the same intervals.
fn same_period(pattern: &Pattern, level: &Level) -> String {
    let has_it = |other: &Pattern| {
        other.kind == Kind::Timer
            && other.regular.period
            && is_alike(other.period.mean_ns, pattern.period.mean_ns)
    };
    let mut roles: Vec<String> = patterns(level).into_iter().filter(has_it).map(|timer| timer.role).collect();
    roles.sort();
    roles.dedup();
    match roles.as_slice() {
        [] => "Something with that period holds them up, and none of the server's own background threads has it: look for it on \
               the machine."
            .to_string(),
        _ => format!(
            "Something with that period holds them up; of the server's own background threads it is that of: {}.",
            whyso_words::list(&roles)
        ),
    }
}

//! Functions and the time that was spent in them: as tables for people, as objects and as folded stacks for programs.

mod classes;
mod difference;
mod json;
mod pprof;
mod source;
#[cfg(test)]
mod tests;
mod wakers;

pub use classes::{classes, classes_json};
pub use difference::{ProfilePair, folded_against, function_differences, function_differences_json};
pub use json::{functions_json, relatives_json};
pub use pprof::{ForPprof, pprof};
pub use source::{AnnotatedSource, ReadSource, SourceText, annotated, annotated_json};
pub use wakers::{FilesByRole, OfRoles, StatesByRole, wakers, wakers_json};

use whyso_profile::{AttributedTime, FunctionName, FunctionTime, Functions, Profile, Relatives};
use whyso_series::KnownBy;
use whyso_words::{count, nanoseconds, number, percent, percent_number, seconds, whole};

use crate::text::clean;
use crate::text::layout::aligned_with_words as aligned;

const NS_PER_S: f64 = 1e9;
const NS_PER_US: f64 = 1e3;

/// What a profile is of.
#[derive(Clone, Copy, Debug)]
pub struct SampledIn<'a> {
    /// Such as "the level of 16 users".
    pub window: &'a str,
    /// Length of the window.
    pub seconds: f64,
    /// Role of the threads; "all".
    pub role: &'a str,
    /// Which threads and whose work, such as "threads of role connection, thread 4711".
    pub whose: &'a str,
    /// Where a connection or a statement was asked for: the part, 0 to 1, of the other conditions' time of which it is known.
    pub known_share: Option<f64>,
    /// And the source of that.
    pub known_by: Option<KnownBy>,
    /// The part, 0 to 1, of these threads' time that is the observer's own and was left out.
    pub hidden_share: f64,
    /// How much of the window's time was read, 0 to 1.
    pub part: f64,
    pub samples: u64,
    pub waits: u64,
    /// Of both, how many did not reach the function that their thread began with.
    pub rootless: u64,
    /// Whether the recording has fewer samples, and no stacks of waits.
    pub is_light: bool,
}

/// What a light sampling leaves out.
const LIGHT: &str = "light sampling: fewer stacks, named by symbols only, and none of waits; `--stacks` when recording takes them all\n";

/// From this share on, what was left out as the observer's own is reported.
const HIDDEN_SHARE_MIN: f64 = 0.0005;

/// Which side of a function is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Callers,
    Callees,
}

/// Returns the functions with the most time, `limit` of them at most, under `<Total>`.
pub fn functions(sampled: SampledIn<'_>, profile: &Profile, functions: &Functions, limit: usize) -> String {
    let mut rows = vec![head(profile, &["excl.", "incl."])];
    for time in [&functions.total].into_iter().chain(functions.functions.iter().take(limit)) {
        rows.push(row(profile, &[&time.exclusive_ns, &time.inclusive_ns], &named(&time.function)));
    }
    let mut out = format!("{}\n{}", about(sampled, profile, &functions.total.exclusive_ns), table(&rows));
    let left = functions.functions.len().saturating_sub(limit);
    if left > 0 {
        out.push_str(&format!("and {} more: --limit N shows N\n", whole(left as u64)));
    }
    out
}

/// Returns a function, marked with `*`, beneath its callers or above its callees. The first time of each metric is attributed: the part of the
/// function's inclusive time that came through the caller, or went to the callee. In the function's own line it is the exclusive time.
pub fn relatives(profile: &Profile, relatives: &Relatives, relation: Relation, limit: usize) -> String {
    let mut rows = vec![head(profile, &["attr.", "excl.", "incl."])];
    let times = |attributed: &[f64], time: &FunctionTime, name: String| {
        row(profile, &[attributed, &time.exclusive_ns, &time.inclusive_ns], &name)
    };
    let own = times(
        &relatives.function.exclusive_ns,
        &relatives.function,
        format!("*{}", named(&relatives.function.function)),
    );
    let others = match relation {
        Relation::Callers => &relatives.callers,
        Relation::Callees => &relatives.callees,
    };
    let other = |relative: &AttributedTime| {
        times(&relative.attributed_ns, &relative.time, format!(" {}", named(&relative.time.function)))
    };
    let shown = others.iter().take(limit).map(other);
    match relation {
        Relation::Callers => rows.extend(shown.chain([own])),
        Relation::Callees => rows.extend([own].into_iter().chain(shown)),
    }
    table(&rows)
}

/// Returns stacks in one metric as flame graph programs read them: functions from the outermost to the innermost with `;` between, a blank, and
/// microseconds. Less than one is left out.
pub fn folded(profile: &Profile, metric: usize) -> String {
    let mut out = String::new();
    for (stack, ns) in profile.folded(metric) {
        let us = (ns / NS_PER_US).round();
        if us >= 1.0 {
            out.push_str(&format!("{} {us}\n", path(&stack)));
        }
    }
    out
}

/// A stack of folded ones: what separates functions is not within them.
fn path(stack: &[&str]) -> String {
    let names: Vec<String> = stack.iter().map(|name| clean(name).replace(';', ":")).collect();
    names.join(";")
}

/// Returns what the reader has to know of the samples, one line each:
///
/// - that the sampling was light;
/// - the share of the time whose owner is known, if a connection or a statement was asked for;
/// - how much was left out as whyso's own;
/// - how much was read, if there is too much for all.
pub fn known_words(sampled: SampledIn<'_>) -> String {
    let line = |share: f64| {
        let share = percent(share);
        match sampled.known_by {
            Some(KnownBy::SqlTrace) => format!(
                "the SQL trace shows whose work it was, command by command: {share} of these threads' time; of the rest \
                 nothing is shown\n"
            ),
            _ => format!(
                "snapshots every few seconds show whose work it was, for {share} of these threads' time; of the rest \
                 nothing is shown (a run with --trace-sql has it exactly)\n"
            ),
        }
    };
    let mut words = if sampled.is_light { LIGHT.to_string() } else { String::new() };
    if sampled.part < 1.0 {
        let share = percent(sampled.part);
        words.push_str(&format!(
            "read: {share} of the window, in parts spread evenly, scaled up to all of it; what happened only between them is missing\n"
        ));
    }
    words.push_str(&sampled.known_share.map(line).unwrap_or_default());
    if sampled.hidden_share >= HIDDEN_SHARE_MIN {
        let share = percent(sampled.hidden_share);
        words.push_str(&format!(
            "hidden: {share} of these threads' time, which whyso's own probes and questions took (--observer shows it)\n"
        ));
    }
    words
}

fn about(sampled: SampledIn<'_>, profile: &Profile, total_ns: &[f64]) -> String {
    let SampledIn { window, whose, samples, waits, rootless, .. } = sampled;
    let mut out = format!(
        "{window}, {}, {}: {} on CPUs, {}",
        seconds(sampled.seconds),
        clean(whose),
        count(samples, "sample"),
        count(waits, "wait")
    );
    if samples + waits > 0 {
        let share = percent(1.0 - rootless as f64 / (samples + waits) as f64);
        out.push_str(&format!("; {share} of their stacks are whole"));
    }
    out.push('\n');
    out.push_str(&known_words(sampled));
    let total = total_ns.iter().zip(profile.half_intervals_ns());
    let total = profile.metrics.iter().zip(total).map(|(metric, (ns, half_ns))| {
        format!("{} {} ± {}", words(metric), nanoseconds(*ns), nanoseconds(half_ns))
    });
    out.push_str(&format!("{} (95 %)\n", total.collect::<Vec<_>>().join(", ")));
    out
}

fn head(profile: &Profile, kinds: &[&str]) -> Vec<String> {
    let of =
        |metric: &String| kinds.iter().map(|kind| format!("{kind} {} s", words(metric))).collect::<Vec<_>>();
    profile.metrics.iter().flat_map(of).chain(["function".to_string()]).collect()
}

/// `times`: one vector a kind, each by metric.
fn row(profile: &Profile, times: &[&[f64]], name: &str) -> Vec<String> {
    let seconds = |place: usize| times.iter().map(move |times| times.get(place).copied().unwrap_or(0.0));
    let cells = (0..profile.metrics.len()).flat_map(seconds).map(in_seconds);
    cells.chain([clean(name)]).collect()
}

fn in_seconds(ns: f64) -> String {
    number(ns / NS_PER_S)
}

/// Returns a share in per cent; empty where there is nothing.
fn share_number(ns: f64, total_ns: f64) -> String {
    if ns == 0.0 || total_ns == 0.0 { String::new() } else { percent_number(ns / total_ns) }
}

fn table(rows: &[Vec<String>]) -> String {
    aligned(rows, &[rows.first().map_or(0, |row| row.len() - 1)])
}

/// A function of the kernel's is marked as such.
fn named(function: &FunctionName) -> String {
    match function.module.as_str() {
        "[kernel]" => format!("{} [kernel]", function.name),
        _ => function.name.clone(),
    }
}

fn words(metric: &str) -> String {
    metric.replace('_', " ")
}

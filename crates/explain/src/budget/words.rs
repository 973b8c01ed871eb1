//! The budget in sentences, each with the series and the windows that it is based on.

use super::{Budget, Part, PartTime, busiest, main_object};
use crate::growth::Span;
use crate::level::{Level, levels_evidence, levels_of};
use crate::locks;
use crate::model::{Evidence, Finding, SeriesName};

/// Parts from this share of what a sentence explains are named, and no more of them than this.
const NAMED_SHARE_MIN: f64 = 0.08;
const NAMED_MAX: usize = 4;

/// A remainder beyond this share of the response time is a finding of its own.
const UNACCOUNTED_MAX: f64 = 0.05;

/// What the budgets say: of one level, of the growth to another, and whether they can be trusted. `about` is the position
/// of the level that the sentences are about.
pub(crate) fn findings(
    budgets: &[Budget],
    levels: &[Level],
    about: Option<usize>,
    span: Option<Span>,
) -> Vec<Finding> {
    let of = |level: &Level| budgets.iter().find(|budget| budget.level == level.index);
    let mut findings = Vec::new();
    if let Some(level) = about.map(|at| &levels[at])
        && let Some(budget) = of(level)
    {
        findings.push(level_finding(budget, level));
    }
    if let Some(Span { best, last }) = span.or_else(|| widest(budgets, levels))
        && let (Some(from), Some(to)) = (of(best), of(last))
    {
        findings.extend(growth_finding(from, to, best, last));
    }
    findings.extend(unaccounted_finding(budgets, levels));
    findings
}

/// From the fewest users to the most, where throughput rose to the last.
fn widest<'a, 'b>(budgets: &[Budget], levels: &'b [Level<'a>]) -> Option<Span<'a, 'b>> {
    let is_traced = |level: &&Level| budgets.iter().any(|budget| budget.level == level.index);
    let sweep = || levels.iter().filter(|level| !level.repeat && level.verdict.valid).filter(is_traced);
    let best = sweep().min_by_key(|level| level.users)?;
    let last = sweep().max_by_key(|level| level.users)?;
    (best.users < last.users).then_some(Span { best, last })
}

/// "At 8 users a transaction took 2.1 ms: 1.2 ms waiting on locks (57 %), …"
fn level_finding(budget: &Budget, level: &Level) -> Finding {
    let named: Vec<&PartTime> = budget
        .largest_first()
        .into_iter()
        .filter(|part| part.ms >= NAMED_SHARE_MIN * budget.response_ms)
        .take(NAMED_MAX)
        .collect();
    let parts: Vec<String> = named
        .iter()
        .map(|part| {
            format!(
                "{} {} ({})",
                whyso_words::milliseconds(part.ms),
                part.part.words(),
                whyso_words::percent(part.ms / budget.response_ms)
            )
        })
        .collect();
    let mut text = format!(
        "At {} a {} took {}",
        whyso_words::users(budget.users),
        budget.unit(),
        whyso_words::milliseconds(budget.response_ms),
    );
    if !parts.is_empty() {
        text.push_str(&format!(": {}", whyso_words::list(&parts)));
    }
    text.push_str(&format!(
        "; {} of it is unaccounted for.",
        whyso_words::percent(budget.unaccounted_ms / budget.response_ms).replace('-', "−")
    ));
    if let Some(split) = budget.cpu_split.filter(|_| named.iter().any(|part| part.part == Part::Cpu)) {
        text.push_str(&format!(
            " Of the time on a CPU {} was in the server's own code (95 % interval {} to {}) and the rest in the kernel, by {} samples.",
            whyso_words::percent(split.user.value),
            whyso_words::percent(split.user.low95),
            whyso_words::percent(split.user.high95),
            whyso_words::whole(split.samples),
        ));
    }
    for part in &named {
        text.push_str(&class_sentence(budget, part));
        if part.part == Part::Lock {
            text.push_str(&super::ended::sentence(level));
            text.push_str(&super::objects::sentence(level, budget));
        }
    }
    for note in &budget.notes {
        text.push(' ');
        text.push_str(note);
    }
    let mut evidence = vec![levels_evidence("latency_mean_ms", &[level])];
    evidence.extend(waiting_evidence(level));
    for part in named {
        evidence.extend(series_evidence(&part.series, &[level]));
    }
    Finding { id: "budget".to_string(), text, evidence }
}

/// " Of what it spent waiting on locks, 76 % was redo flush and 12 % row lock (by the stacks of 812 waits)."
fn class_sentence(budget: &Budget, of: &PartTime) -> String {
    let named: Vec<String> = budget
        .classes_of(of.part)
        .filter(|class_time| class_time.ms >= NAMED_SHARE_MIN * of.ms)
        .take(NAMED_MAX)
        .map(|class_time| {
            let class = class_time.words().unwrap_or_else(|| "in functions that no rule names".to_string());
            format!("{} {class}", whyso_words::percent(class_time.ms / of.ms))
        })
        .collect();
    if named.is_empty() {
        return String::new();
    }
    let count: u64 = budget.classes_of(of.part).map(|class_time| class_time.count).sum();
    let (spins, of_what) = match of.part {
        Part::Cpu => ("spinning for ", "samples"),
        _ => ("", "waits"),
    };
    format!(
        " Of the time {}, {spins}{} (by the stacks of {} {of_what}).",
        of.part.words(),
        whyso_words::list(&named),
        whyso_words::whole(count)
    )
}

/// "From 8 to 64 users a transaction grew from 2.1 to 11.8 ms; 8.9 ms of that is waiting on locks, while …"
fn growth_finding(from: &Budget, to: &Budget, best: &Level, last: &Level) -> Option<Finding> {
    let grown_ms = to.response_ms - from.response_ms;
    if grown_ms <= 0.0 {
        return None;
    }
    let mut grown: Vec<(&PartTime, f64)> =
        to.parts.iter().map(|part| (part, part.ms - from.ms(part.part))).collect();
    grown.retain(|(_, ms)| *ms >= NAMED_SHARE_MIN * grown_ms);
    grown.sort_by(|a, b| b.1.total_cmp(&a.1));
    grown.truncate(NAMED_MAX);
    let mut text = format!(
        "From {} to {} users a {} grew from {}; ",
        whyso_words::whole(u64::from(from.users)),
        whyso_words::whole(u64::from(to.users)),
        to.unit(),
        whyso_words::change(from.response_ms, to.response_ms, "ms", " to "),
    );
    let parts: Vec<String> = grown
        .iter()
        .enumerate()
        .map(|(at, (part, ms))| {
            let of_that = if at == 0 { " of that is" } else { "" };
            format!("{}{of_that} {}", whyso_words::milliseconds(*ms), part.part.words())
        })
        .collect();
    text.push_str(&if parts.is_empty() {
        "no part of the budget holds that growth".to_string()
    } else {
        whyso_words::list(&parts)
    });
    let mut evidence = vec![levels_evidence("latency_mean_ms", &[best, last])];
    for (part, _) in &grown {
        evidence.extend(series_evidence(&part.series, &[best, last]));
    }
    let waits_for_others = grown.first().is_some_and(|(part, _)| part.part.is_waiting());
    if let Some(busy) = busiest(last).filter(|_| waits_for_others) {
        text.push_str(&format!(
            ", while the {} is {} {} of the time",
            busy.role,
            busy.state,
            whyso_words::percent(busy.share)
        ));
        evidence.extend(series_evidence(&[busy.series], &[last]));
    }
    text.push('.');
    Some(Finding { id: "budget-growth".to_string(), text, evidence })
}

fn unaccounted_finding(budgets: &[Budget], levels: &[Level]) -> Option<Finding> {
    let share = |budget: &Budget| budget.unaccounted_ms / budget.response_ms;
    let off: Vec<&Budget> = budgets.iter().filter(|budget| share(budget).abs() > UNACCOUNTED_MAX).collect();
    let worst = off.iter().max_by(|a, b| share(a).abs().total_cmp(&share(b).abs()))?;
    let shown: Vec<&Level> =
        levels.iter().filter(|level| off.iter().any(|budget| budget.level == level.index)).collect();
    let (size, verb) = if share(worst) < 0.0 {
        (-share(worst), "hold more than the response time, by")
    } else {
        (share(worst), "leave a part of the response time open:")
    };
    let mut text = format!(
        "The parts of the time budget {verb} up to {} of it, at {}; beyond {} at {}. Shares there are to be read with that in mind.",
        whyso_words::percent(size),
        whyso_words::users(worst.users),
        whyso_words::percent(UNACCOUNTED_MAX),
        levels_of(&shown),
    );
    let at_ends_ms =
        levels.iter().find(|level| level.index == worst.level).map_or(0.0, |level| level.at_ends_ms);
    if at_ends_ms > UNACCOUNTED_MAX * worst.response_ms {
        text.push_str(&format!(
            " Transactions in flight at the window's end took {} of it, which the parts have and the response time does not.",
            whyso_words::percent(at_ends_ms / worst.response_ms),
        ));
    }
    Some(Finding {
        id: "budget-unaccounted".to_string(),
        text,
        evidence: vec![levels_evidence("latency_mean_ms", &shown)],
    })
}

/// The number of connections that were found waiting for a lock, where an object is named for it.
fn waiting_evidence(level: &Level) -> Vec<Evidence> {
    let named = level.lock_objects.iter().filter(|object| main_object(level, object.kind).is_some());
    let series = named.filter_map(|object| level.gauge(locks::SOURCE, locks::WAITING, object.kind.name()));
    let mut series: Vec<SeriesName> = series.map(|gauge| gauge.series.clone()).collect();
    series.dedup();
    series_evidence(&series, &[level])
}

pub(crate) fn series_evidence(series: &[SeriesName], levels: &[&Level]) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    for name in series {
        for level in levels {
            evidence.push(Evidence::Series {
                series: name.clone(),
                begin_ns: level.begin_ns,
                end_ns: level.end_ns,
            });
        }
    }
    evidence
}

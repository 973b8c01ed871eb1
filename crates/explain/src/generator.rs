//! Was it the generator that limited a level? Then the level shows nothing about the server.

use crate::level::{Level, levels_evidence, names};
use crate::model::{Finding, Machine};

/// Share of its own CPUs from which a generator counts as the limit.
pub(crate) const SATURATED_SHARE: f64 = 0.9;

/// A machine with less idle time than this is full.
pub(crate) const IDLE_FULL: f64 = 0.05;

/// Backlog that may be left over by chance, in transactions, and as a share of those that became due.
const BACKLOG_GROWTH_MAX: u64 = 10;
const BACKLOG_SHARE_MAX: f64 = 0.01;

/// Whether a server kept up with an open loop's rate over a window. The transactions that were due and not begun then grew by no more than
/// 10, or 1 % of those that became due.
pub fn rate_was_held(due: u64, backlog_begin: u64, backlog_end: u64) -> bool {
    let grown = backlog_end.saturating_sub(backlog_begin);
    grown <= BACKLOG_GROWTH_MAX.max((due as f64 * BACKLOG_SHARE_MAX) as u64)
}

/// Why the generator was the bottleneck of a level; `None` where nothing shows that it was.
pub(crate) fn saturated_why(level: &Level, machine: &Machine) -> Option<String> {
    if !level.client_saturated_why.is_empty() {
        return Some(format!("the load generator was the limit: {}", level.client_saturated_why));
    }
    if !machine.shared {
        let share = level.client_cpu_share(machine).filter(|&share| share >= SATURATED_SHARE)?;
        return Some(format!(
            "the load generator was the limit: it used {} of its {}",
            whyso_words::percent(share),
            cpus(machine.client_cpus),
        ));
    }
    let is_full = level.cpu.is_some_and(|cpu| cpu.idle + cpu.iowait < IDLE_FULL);
    let server_cpu_s = level.server_cpu_s?;
    if is_full && level.client_cpu_s > server_cpu_s {
        return Some(format!(
            "the load generator was the limit: on a full machine it used {} CPU seconds and the server {}",
            whyso_words::number(level.client_cpu_s),
            whyso_words::number(server_cpu_s),
        ));
    }
    None
}

/// Names the levels that the generator limited.
pub(crate) fn finding(levels: &[Level], machine: &Machine) -> Option<Finding> {
    let limited: Vec<&Level> = levels
        .iter()
        .filter(|level| level.transactions > 0 && saturated_why(level, machine).is_some())
        .collect();
    let worst = limited.last()?;
    let text = format!(
        "At {} {}. {} not valid: it says how fast the generator is, not the server. \
         Give the generator more CPUs, or another machine.",
        names(&limited),
        worst.verdict.invalid_why,
        if limited.len() == 1 { "This level is" } else { "These levels are" },
    );
    let text = if limited.len() == 1 { text } else { text.replace("it says", "they say") };
    Some(Finding {
        id: "generator-bottleneck".to_string(),
        text,
        evidence: vec![levels_evidence("client_cpu", &limited)],
    })
}

fn cpus(number: u32) -> String {
    match number {
        1 => "1 CPU".to_string(),
        _ => format!("{} CPUs", whyso_words::whole(u64::from(number))),
    }
}

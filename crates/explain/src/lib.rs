//! Finds out why a server stopped getting faster: the verdicts, causes and findings of a run.
//!
//! [`explain`] takes what was measured at each level ([`model::Input`]) and returns:
//!
//! - for each level its throughput with an interval, whether it was steady and valid, and in which regime it was;
//! - where throughput peaks, and the Universal Scalability Law's fit;
//! - what grows per transaction;
//! - where a transaction's time went, part by part;
//! - what is suspected of holding throughput back;
//! - sentences, each with the evidence that it is based on.
//!
//! It does no I/O and reads no clock: the same input gives the same findings on any machine. It never fails, whatever the numbers. What
//! makes no sense is left out, and every number that comes out is finite. It never names a cause without evidence in its input.
//!
//! ```
//! use whyso_explain::model::{Input, LevelInput};
//!
//! // Ten seconds each of 1, 2 and 4 users.
//! let mut input = Input::default();
//! for (index, (users, per_bin)) in [(1, 50), (2, 95), (4, 93)].into_iter().enumerate() {
//!     input.levels.push(LevelInput {
//!         index: index as u32,
//!         users,
//!         end_ns: 10_000_000_000,
//!         transactions: u64::from(per_bin) * 100,
//!         bins_100ms: vec![per_bin; 100],
//!         ..LevelInput::default()
//!     });
//! }
//! let explanation = whyso_explain::explain(&input);
//! let peak = explanation.peak.unwrap();
//! // Four users do hardly less, and nobody tried more: the peak may lie beyond.
//! assert_eq!((peak.users, peak.users_interval), (2, (2, None)));
//! assert!(explanation.headline.starts_with("Throughput is highest at 2 users, and 4 users"));
//! assert!(explanation.findings[0].text.starts_with("Throughput is highest at 2 users, and 4 users"));
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod ab;
mod about;
mod activities;
mod budget;
pub mod capacity;
pub mod comparison;
mod cpu;
mod drift;
mod effects;
mod generator;
mod growth;
mod headline;
pub mod hidden;
mod in_flight;
mod law;
mod level;
mod limit;
pub mod locks;
mod machines;
mod meanings;
pub mod measures;
pub mod model;
mod neighbours;
mod nodes;
mod other_clients;
mod others;
mod pauses;
pub mod pfs;
mod pfs_setup;
mod ports;
mod processes;
pub mod program_functions;
pub mod programs;
mod rates;
mod regime;
mod requests;
mod service_level;
mod sessions;
pub mod statements;
mod suspects;
mod tiers;
pub mod timer;
mod verdict;
pub mod versus;
mod wake;
mod warnings;
mod watching;
mod worker_memory;

pub use activities::activity_of;
pub use cpu::{cpu_use, server_cpu_s};
pub use generator::rate_was_held;
pub use in_flight::{explained_share, silence_s};
pub use processes::{SEVERAL_HOSTS, THIS_MACHINE};
pub use tiers::request_words;
pub use whyso_model::slo;

use level::Level;
use model::{Budget, Explanation, Finding, Input, LevelVerdict, TierTime, WorkerMemory};
use regime::Shape;

/// Explains a run. See the crate's page for what comes out; it never fails.
pub fn explain(input: &Input) -> Explanation {
    explain_at(input, None)
}

/// Explains a run, with the cause at the level of this many users. [`explain`] asks about the level where throughput stopped growing.
/// Where no such level was measured, no cause is named.
pub fn explain_at(input: &Input, users: Option<u32>) -> Explanation {
    if let Some(name) = &input.process {
        return of_processes(name, input, users);
    }
    let mut levels: Vec<Level> =
        input.levels.iter().map(|level| verdict::judge(level, &input.machine)).collect();
    // Peak, regimes, growth and the law are of a sweep over users.
    let is_over_rates = levels.iter().any(|level| level.rate_per_s.is_some());
    let shape = if is_over_rates { None } else { Shape::new(&levels) };
    if let Some(shape) = &shape {
        for level in &mut levels {
            if level.verdict.valid && !level.is_unstable() {
                level.verdict.regime = shape.regime_of_users(level.users);
            }
        }
    }

    let span = shape.as_ref().and_then(|shape| growth::span(&levels, shape));
    let grown = span.map_or(Vec::new(), |span| growth::counters(&levels, span));
    let usl = shape.as_ref().and_then(|shape| law::fit(shape, &levels));
    let drift = drift::drift(&levels);
    let about = about::position(&levels, shape.as_ref(), users);
    let budgets: Vec<Budget> = levels.iter().filter_map(budget::budget).collect();

    let suspected = suspects::suspects(about, &levels, shape.as_ref(), &budgets, input);

    let unusable = headline::doubts(&levels, shape.as_ref(), drift.as_ref(), input);
    let mut findings: Vec<Option<Finding>> = vec![headline::finding(&unusable, &levels)];
    match &shape {
        None if is_over_rates => findings.push(Some(rates::finding(&levels))),
        None => findings.push(Some(warnings::no_result(&levels))),
        Some(shape) => {
            findings.push(Some(regime::peak_finding(shape, &levels, unusable.is_empty())));
            findings.push(regime::regimes_finding(shape, &levels));
            findings.push(limit::finding(shape, &levels, &input.machine, span, &grown));
            findings.push(span.map(|span| limit::growth_finding(span, &grown)));
            findings.push(wake::finding(shape, &levels));
        }
    }
    findings.extend(budget::findings(&budgets, &levels, about, span).into_iter().map(Some));
    findings.extend(suspects::findings(&suspected).into_iter().map(Some));
    let at = about.and_then(|at| levels.get(at));
    let about_level = at.or(only(&levels));
    let tiers = tiers_at(about_level, None, levels.len());
    findings.extend(tiers::findings(&tiers).into_iter().map(Some));
    let access_logs = about_level.map_or(Vec::new(), |level| requests::times(level, &tiers));
    findings.extend(requests::findings(&access_logs).into_iter().map(Some));
    let workers = about_level.map_or(Vec::new(), worker_memory::workers);
    findings.extend(about_level.into_iter().flat_map(|level| of_programs(level, None, &workers)).map(Some));
    findings.extend(at.map_or(Vec::new(), nodes::findings).into_iter().map(Some));
    findings.extend(pauses::findings(&levels, about).into_iter().map(Some));
    findings.push(service_level::finding(&input.levels));
    findings.push(generator::finding(&levels, &input.machine));
    findings.push(other_clients::finding(&levels, about));
    findings.push(others::programs_finding(&levels, &input.machine));
    findings.push(others::steal_finding(&levels));
    let actions = effects::effects(&input.actions, &levels);
    findings.extend(effects::findings(&input.actions, &actions, &levels).into_iter().map(Some));
    findings.push(in_flight::finding(&levels));
    findings.push(warnings::unstable(&levels));
    findings.push(warnings::stalls(&levels));
    findings.push(drift.as_ref().and_then(|drift| drift::finding(drift, &levels)));
    if let (Some(fit), Some(shape)) = (&usl, &shape) {
        findings.push(Some(law::finding(fit, shape, &levels)));
    }
    findings.push(pfs_setup::in_force(input, &levels));
    findings.push(pfs_setup::lost(input, &levels));
    findings.push(warnings::errors(&levels));
    findings.push(warnings::too_short(&levels));
    findings.push(warnings::cut_short(&levels));
    findings.push(machines::finding(&levels));
    findings.push(watching::finding(&levels));
    findings.push(warnings::not_measured(input, &levels));

    Explanation {
        peak: shape.as_ref().map(Shape::peak),
        usl,
        growth: grown.into_iter().map(|counter| counter.growth).collect(),
        drift,
        actions,
        about: about.map(|at| levels[at].index),
        budgets,
        limit: suspected.limit,
        nodes: at.or(only(&levels)).map_or(Vec::new(), nodes::states),
        suspects: suspected.suspects,
        possible: suspected.possible,
        cpu_gains: suspected.cpu_gains,
        tiers,
        access_logs,
        workers,
        processes: Vec::new(),
        headline: headline::headline(&levels, shape.as_ref(), &unusable),
        unusable,
        findings: findings.into_iter().flatten().collect(),
        levels: levels.into_iter().map(|level| level.verdict).collect(),
    }
}

/// Explains a run of processes: their requests, where they answer any, and the time of all their threads. A load on a site has levels of
/// users, of which one is asked about as of a server.
fn of_processes(name: &str, input: &Input, users: Option<u32>) -> Explanation {
    let mut levels: Vec<Level> =
        input.levels.iter().map(|level| verdict::judge(level, &input.machine)).collect();
    let is_loaded = levels.iter().any(|level| level.transactions > 0);
    let is_over_rates = levels.iter().any(|level| level.rate_per_s.is_some());
    let shape = if is_loaded && !is_over_rates { Shape::new(&levels) } else { None };
    let about = match is_loaded {
        true => about::position(&levels, shape.as_ref(), users),
        false => levels.iter().position(|level| level.seconds > 0.0),
    };
    let about_level = about.and_then(|at| levels.get(at));
    // Its number matters less than what it is, which several sentences repeat.
    let short = whyso_model::tier::short_name(name);
    let tiers = tiers_at(about_level, Some(short), levels.len());
    let mut findings = tiers::findings(&tiers);
    if let Some(shape) = shape.as_ref().filter(|shape| shape.points.len() > 1) {
        findings.push(regime::peak_finding(shape, &levels, true));
        findings.extend(regime::regimes_finding(shape, &levels));
    }
    let access_logs = about_level.map_or(Vec::new(), |level| requests::times(level, &tiers));
    findings.extend(requests::findings(&access_logs));
    let workers = about_level.map_or(Vec::new(), worker_memory::workers);
    findings.extend(about_level.into_iter().flat_map(|level| of_programs(level, Some(short), &workers)));
    let processes = processes::times(&input.levels);
    let reported = match (is_loaded, about) {
        (true, Some(at)) => at..at + 1,
        _ => 0..levels.len(),
    };
    findings.extend(processes::findings(
        name,
        &input.levels[reported.clone()],
        &processes[reported],
        !tiers.is_empty(),
    ));
    findings.extend(pauses::findings(&levels, about));
    findings.extend(others::steal_finding(&levels));
    findings.extend(warnings::cut_short(&levels));
    findings.extend(warnings::not_measured(input, &levels));
    let nodes = about_level.map_or(Vec::new(), nodes::states);
    if let Some(shape) = &shape {
        for level in &mut levels {
            if level.verdict.valid && !level.is_unstable() {
                level.verdict.regime = shape.regime_of_users(level.users);
            }
        }
    }
    Explanation {
        peak: shape.as_ref().map(Shape::peak),
        about: about.filter(|_| is_loaded).map(|at| levels[at].index),
        processes,
        nodes,
        headline: tiers::headline(&tiers).unwrap_or_else(|| format!("Where the time of {name} went.")),
        tiers,
        access_logs,
        workers,
        findings,
        levels: levels.into_iter().map(|level| without_throughput(level.verdict)).collect(),
        ..Explanation::default()
    }
}

/// The tiers at a level, which has a name where it is one of several.
fn tiers_at(level: Option<&Level>, only: Option<&str>, levels: usize) -> Vec<TierTime> {
    let Some(level) = level else { return Vec::new() };
    let name = if levels > 1 && level.transactions > 0 { level.name() } else { String::new() };
    let named = |tier: TierTime| TierTime { level: name.clone(), ..tier };
    tiers::times(level, only).into_iter().map(named).collect()
}

/// What is reported of programs in addition to their requests: ports that ran out, and their workers.
fn of_programs(level: &Level, only: Option<&str>, workers: &[WorkerMemory]) -> Vec<Finding> {
    let mut findings = ports::findings(level, only);
    findings.extend(worker_memory::findings(level, workers));
    findings
}

/// A single window, whether or not anything can be said of its load.
fn only<'l, 'i>(levels: &'l [Level<'i>]) -> Option<&'l Level<'i>> {
    if let [only] = levels { Some(only) } else { None }
}

/// Transactions are optional in a window of processes.
fn without_throughput(verdict: LevelVerdict) -> LevelVerdict {
    LevelVerdict { valid: true, invalid_why: String::new(), ..verdict }
}

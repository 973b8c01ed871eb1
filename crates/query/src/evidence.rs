//! From a recording to what the explanation is based on. The only bridge between files and findings.

use whyso_explain::hidden::{Source, without};
use whyso_explain::model::{
    ActionInput, Explanation, Input, LevelInput, LevelVerdict, Machine, PageTimes, SloInput, StatementTime,
    StatementWork,
};
use whyso_model::{NotMeasured, RunSpec};
use whyso_record::Recording;
use whyso_record::run::{
    ActionRecord, EndpointResult, GeneratorResult, Level, NodeFacts, OutageResult, Purpose, RunEnd, RunInfo,
    SloResult, StatementResult,
};

use crate::agreement::thread_disagreement;
use crate::level_series::{add_chosen, add_machines, add_nodes};
use crate::{Error, file_waits, locks, logged_requests, pauses, wait_classes, workers};

/// A shorter warm-up, in seconds, shows nothing about steadiness: it has too few slots.
const SHORTEST_WARMUP_S: f64 = 2.0;

/// A thread that is busy for more of its time than this is saturated, which is judged elsewhere: its queue is not estimated beyond.
const LOAD_THREAD_BUSY_MAX: f64 = 0.9;

/// What `whyso_explain` makes of a recording.
///
/// # Errors
/// Where the recording's files can't be read.
pub fn explain(recording: &Recording) -> Result<Explanation, Error> {
    Ok(whyso_explain::explain(&input(recording)?))
}

/// The same, with sources hidden as if they had been absent, and with the cause asked about the level of this many users; `None`: about the one
/// where throughput stopped growing.
///
/// # Errors
/// Where the recording's files can't be read, or no level of this many users was measured.
pub fn explain_at(
    recording: &Recording,
    users: Option<u32>,
    hidden: &[Source],
) -> Result<Explanation, Error> {
    if let Some(users) = users {
        check_level(recording, users)?;
    }
    Ok(whyso_explain::explain_at(&without(input(recording)?, hidden), users))
}

/// A level of this many users was measured.
fn check_level(recording: &Recording, users: u32) -> Result<(), Error> {
    let measured = recording.run().levels.iter().filter(|level| level.result.transactions > 0);
    let mut numbers: Vec<u32> = measured.map(|level| level.users).collect();
    if numbers.contains(&users) {
        return Ok(());
    }
    numbers.sort_unstable();
    numbers.dedup();
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    Err(Error::WrongUse(match numbers.as_slice() {
        [] => "this run has no level in which a transaction ended: there is nothing to explain".to_string(),
        _ => format!("this run has no level of {users} users; it has those of {}", numbers.join(", ")),
    }))
}

/// The evidence in a recording, level by level.
///
/// # Errors
/// Where the recording's files can't be read.
pub fn input(recording: &Recording) -> Result<Input, Error> {
    input_of(recording, recording.run())
}

/// The evidence in a recording for the levels of `run`: its own, or others in their place.
pub(crate) fn input_of(recording: &Recording, run: &RunInfo) -> Result<Input, Error> {
    let swept = run.levels.iter().filter(|level| level.purpose != Purpose::Switch);
    let mut levels: Vec<LevelInput> =
        swept.map(|level| LevelInput { pages: pages(run, level), ..level_input(level) }).collect();
    if run.sweeps_rates() {
        name_by_rates(run, &mut levels);
    }
    for level in &mut levels {
        level.is_across_hosts = run.is_across_hosts();
    }
    if !levels.is_empty() {
        add_series(recording, &mut levels)?;
        file_waits::add(recording, &mut levels)?;
        pauses::add(recording, &mut levels)?;
        wait_classes::add(recording, &mut levels)?;
        locks::add(recording, &mut levels)?;
        logged_requests::add(recording, &mut levels)?;
        workers::add(recording, &mut levels)?;
    }
    let mut not_measured = run.not_measured.clone();
    not_measured.extend(recording.problems().iter().cloned().map(NotMeasured::from));
    not_measured.extend(thread_disagreement(recording)?);
    let actions = run.actions.iter().map(action_input).chain(outages(run)).collect();
    let variables = run.server.variables.clone();
    let process = run.process().map(str::to_string);
    let performance_schema = crate::pfs_setup::of_run(&run.spec);
    let performance_schema_lost = crate::pfs::lost(recording)?;
    Ok(Input {
        levels,
        machine: machine(run),
        actions,
        not_measured,
        variables,
        process,
        performance_schema,
        performance_schema_lost,
        statement_work: run.statement_work.iter().map(statement_work).collect(),
    })
}

fn statement_work(work: &whyso_record::run::StatementWork) -> StatementWork {
    StatementWork {
        kind: work.kind.clone(),
        rows_sent: work.rows_sent as f64,
        rows_read: work.rows_read as f64,
        rows_sorted: work.rows_sorted as f64,
        rows_in_temporary_tables: work.rows_in_temporary_tables as f64,
        rows_rejected: work.rows_rejected.map(|rows| rows as f64),
    }
}

/// Judges a level without anything that was watched: its throughput's interval, whether it was steady, and whether the generator was the
/// bottleneck.
pub fn judge_alone(level: &Level) -> LevelVerdict {
    let input = Input { levels: vec![level_input(level)], ..Input::default() };
    let explained = whyso_explain::explain(&input);
    explained.levels.into_iter().next().unwrap_or_default()
}

pub fn machine(run: &RunInfo) -> Machine {
    let RunSpec { client_cpus, server_cpus, .. } = &run.spec;
    let across = run.server_host().filter(|_| run.is_across_hosts());
    Machine {
        server_cpus: server_cpus.len() as u32,
        server_cpu_numbers: server_cpus.clone(),
        client_cpus: match generators_cpus(run) {
            0 => client_cpus.len() as u32,
            of_generators => of_generators,
        },
        shared: across.is_none() && server_cpus.iter().any(|cpu| client_cpus.contains(cpu)),
        cpus: across.map_or(run.host.logical_cpus, |host| host.facts.logical_cpus),
    }
}

/// How long the threads of a load host were ready to run without a CPU, as a share of the level's window. Of several hosts, the largest.
fn load_hosts_waited(level: &Level) -> f64 {
    let share = |part: &GeneratorResult| {
        let all_s = f64::from(part.client.threads) * level.result.seconds;
        if all_s > 0.0 { part.client.run_delay_s / all_s } else { 0.0 }
    };
    level.result.generators.iter().map(share).fold(0.0, f64::max)
}

/// What a transaction takes on the hosts that sent it, by an estimate. A thread that is busy for the share ρ of its time holds what arrives for
/// 1 ÷ (1 - ρ) of its work. A queue with one server, random arrivals and random work does that. It is never more than all its users' work.
/// The threads of a host count as equally busy. Work between transactions is in it.
fn load_hosts_ms(level: &Level) -> f64 {
    let of_part = |part: &GeneratorResult| {
        let busy_s = part.client.cpu_s + part.client.run_delay_s;
        let all_s = f64::from(part.client.threads) * level.result.seconds;
        let busy = if all_s > 0.0 { (busy_s / all_s).clamp(0.0, LOAD_THREAD_BUSY_MAX) } else { 0.0 };
        let users_of_thread = f64::from(part.users) / f64::from(part.client.threads.max(1));
        busy_s * 1e3 * (1.0 / (1.0 - busy)).min(users_of_thread.max(1.0))
    };
    let transactions = level.result.transactions;
    if transactions == 0 {
        return 0.0;
    }
    level.result.generators.iter().map(of_part).sum::<f64>() / transactions as f64
}

/// CPUs of all hosts that sent a part of the load, at the level that had the most; 0 where one process sent all of it.
fn generators_cpus(run: &RunInfo) -> u32 {
    let of_level =
        |level: &Level| level.result.generators.iter().map(|part| part.client.cpus_allowed).sum::<u32>();
    run.levels.iter().map(of_level).max().unwrap_or(0)
}

fn action_input(action: &ActionRecord) -> ActionInput {
    ActionInput {
        text: action.text.clone(),
        begin_ns: action.begin_ns,
        end_ns: action.end_ns,
        error: action.error.clone(),
    }
}

/// Times in which a node of the cluster could not be used: what they did to throughput is found out as of what was done on purpose.
fn outages(run: &RunInfo) -> Vec<ActionInput> {
    if !run.nodes.iter().any(|node| node.is_loaded) {
        return Vec::new();
    }
    let nodes: Vec<&NodeFacts> = run.node.iter().chain(&run.nodes).collect();
    let of_level = |level: &Level| {
        let end_ns = level.window.end_ns;
        let of_endpoint = |endpoint: &EndpointResult| {
            let node = nodes.iter().find(|node| node.endpoint == endpoint.address);
            let name = node.map_or(endpoint.address.clone(), |node| node.name.clone());
            let outage = move |outage: &OutageResult| ActionInput {
                text: format!("{name} could not be used"),
                begin_ns: outage.begin_ns,
                end_ns: outage.seconds.map_or(end_ns, |s| outage.begin_ns.saturating_add((s * 1e9) as i64)),
                error: String::new(),
            };
            endpoint.outages.iter().map(outage).collect::<Vec<_>>()
        };
        level.result.endpoints.iter().flat_map(of_endpoint).collect::<Vec<_>>()
    };
    run.levels.iter().flat_map(of_level).collect()
}

/// The levels of a sweep over rates differ in those.
fn name_by_rates(run: &RunInfo, levels: &mut [LevelInput]) {
    for level in levels {
        let recorded = run.levels.iter().find(|recorded| recorded.index == level.index);
        let Some(result) = recorded.map(|recorded| &recorded.result) else { continue };
        level.rate_per_s = result.rate_per_s;
        level.rate_held = result.arrivals.is_some_and(|arrivals| arrivals.held);
    }
}

/// Returns what the recording has of a level itself, without its series.
pub fn level_input(level: &Level) -> LevelInput {
    let result = &level.result;
    LevelInput {
        is_across_hosts: false,
        load_hosts_waited: load_hosts_waited(level),
        load_hosts_ms: load_hosts_ms(level),
        index: level.index,
        users: level.users,
        rate_per_s: None,
        rate_held: false,
        repeat: level.purpose == Purpose::Repeat,
        begin_ns: level.window.begin_ns,
        end_ns: level.window.end_ns,
        transactions: result.transactions,
        queries: result.queries,
        errors: result.errors,
        latency_mean_ms: result.latency_ms.mean,
        latency_p99_ms: result.latency_ms.p99,
        bins_100ms: result.bins_100ms.clone(),
        client_cpu_s: result.client.cpu_s,
        client_saturated_why: match result.client.saturated_why.as_str() {
            "" => result.client_limit.clone(),
            why => why.to_string(),
        },
        slo: result.slo.iter().map(slo_input).collect(),
        cut_short: match &level.ended {
            RunEnd::Complete { .. } => String::new(),
            RunEnd::CutShort { why, .. } => why.clone(),
        },
        cpu: None,
        server_cpu_s: None,
        nodes: Vec::new(),
        machines: Vec::new(),
        counters: Vec::new(),
        gauges: Vec::new(),
        pacing: (&result.pacing).into(),
        service_mean_ms: result.service_ms.mean,
        pages: None,
        lost_ms_by_code: result.lost_ms_by_code.clone(),
        statements: result.by_statement.iter().map(statement_time).collect(),
        file_waits: Vec::new(),
        program_file_waits: Vec::new(),
        pauses: Vec::new(),
        wait_classes: Vec::new(),
        activities: Vec::new(),
        ended_waits: Vec::new(),
        lock_objects: Vec::new(),
        access_logs: Vec::new(),
        workers: Vec::new(),
        warmup_steady: warmup_steady(level),
        in_flight: result.in_flight,
        user_seconds: result.user_seconds,
    }
}

/// What was measured of the pages of a recorded load on a site; `None` of any other load.
fn pages(run: &RunInfo, level: &Level) -> Option<PageTimes> {
    let result = &level.result;
    let kinds = result.by_transaction.iter().filter(|_| run.spec.recorded);
    let (mut count, mut all_ms) = (0, 0.0);
    for kind in kinds {
        let of_kind = if result.arrivals.is_some() { &kind.service_ms } else { &kind.latency_ms };
        count += kind.transactions;
        all_ms += of_kind.mean * kind.transactions as f64;
    }
    (count > 0).then(|| PageTimes { count, mean_ms: all_ms / count as f64 })
}

/// Whether throughput was steady when the warm-up ended; `None` where the warm-up was too short to show it.
fn warmup_steady(level: &Level) -> Option<bool> {
    let could_show = level.warmup.seconds() >= SHORTEST_WARMUP_S && !level.result.is_recorded();
    could_show.then_some(level.warmup_steady)
}

fn statement_time(statement: &StatementResult) -> StatementTime {
    StatementTime { kind: statement.kind.clone(), count: statement.count, mean_ms: statement.latency_ms.mean }
}

fn slo_input(slo: &SloResult) -> SloInput {
    SloInput {
        kind: slo.kind.clone(),
        measure: slo.measure.clone(),
        required_ms: slo.required_ms,
        measured_ms: slo.measured_ms,
        is_lower_bound: slo.is_lower_bound,
        held: slo.held,
    }
}

fn add_series(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    add_chosen(recording, levels, |_| true)?;
    add_nodes(recording, levels)?;
    add_machines(recording, levels)?;
    for level in levels {
        level.cpu = whyso_explain::cpu_use(&level.counters);
        level.server_cpu_s = whyso_explain::server_cpu_s(&level.counters);
    }
    Ok(())
}

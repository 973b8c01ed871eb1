//! A study: every start that is still to be done, one after the other, each from a fresh server.

use std::time::{Duration, Instant};

use whyso_load::{Arrivals, EngineKind, Think, Tuning};
use whyso_record::Recording;
use whyso_server::knobs::pfs;
use whyso_study::{Answer, Cell, Done, Journal, Spec, Start, answer};

use crate::prepare::AskPassword;
use crate::progress::{Listener, News, Stop};
use crate::source::Source;
use crate::{Error, Plan, ServerPlan};

/// Checks everything of a study that can be checked without a server.
///
/// # Errors
/// One sentence for the first thing that is wrong, with the cell that it is wrong with.
pub fn check_study(spec: &Spec, source: &Source) -> Result<(), Error> {
    for cell in spec.cells() {
        let plan = plan_of(spec, std::path::Path::new("."), &cell, source, &[])?;
        plan.check()
            .and_then(|()| crate::describe(&plan).map(|_| ()))
            .map_err(|error| of_cell(&cell, &error))?;
    }
    Ok(())
}

/// Carries out what a study still has to do. Each start that has come to its end is kept, whatever happens later.
///
/// # Errors
/// A start failed, or the user broke off: what is missing can be done later.
pub fn study(
    journal: &mut Journal,
    source: &Source,
    command: &[String],
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<(), Error> {
    journal.remove_unfinished().map_err(told)?;
    let cells = journal.spec.cells();
    let todo = journal.todo();
    let all = todo.len() + journal.done().len();
    let began = Instant::now();
    for (at, start) in todo.iter().enumerate() {
        let cell = &cells[start.cell];
        let left = left(&journal.spec, began.elapsed(), at, todo.len());
        let number = journal.done().len() + 1;
        let words = format!("start {number} of {all}: {} (block {}); {left}", cell.name(), start.block + 1);
        listener.hear(News::Step(&words));
        let plan = plan_of(&journal.spec, &journal.runs(), cell, source, command)?;
        let outcome = crate::run(&plan, listener, stop, ask_password)?;
        if stop.is_asked() {
            return Err(Error::Interrupted);
        }
        if let Some(failure) = outcome.failure {
            return Err(Error::Failed(format!("{}: {failure}", cell.name())));
        }
        let run = outcome.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let run = run.ok_or_else(|| Error::Failed("a recording has no name".to_string()))?;
        journal.finish(Done { start: *start, run }).map_err(told)?;
    }
    Ok(())
}

/// What its starts say so far.
///
/// # Errors
/// A recording can't be read.
pub fn study_answer(journal: &Journal) -> Result<Answer, Error> {
    let mut measured: Vec<(Start, u32, f64)> = Vec::new();
    for done in journal.done() {
        let recording = Recording::open(&journal.runs().join(&done.run))?;
        for level in recording.run().levels.iter().filter(|level| level.result.transactions > 0) {
            measured.push((done.start, level.users, level.result.transactions_per_s));
        }
    }
    let starts: Vec<Start> = journal.done().iter().map(|done| done.start).collect();
    Ok(answer(&journal.spec, &starts, |start, users| {
        let found = measured.iter().find(|(one, at, _)| *one == start && *at == users);
        found.map(|(_, _, per_s)| *per_s)
    }))
}

/// How long it goes on, at most before the first start has ended.
fn left(spec: &Spec, so_far: Duration, done: usize, todo: usize) -> String {
    let rest = (todo - done) as f64;
    let (words, seconds) = match done {
        0 => (
            "at most",
            spec.measured_s_max() / spec.blocks().iter().map(Vec::len).sum::<usize>() as f64 * rest,
        ),
        _ => ("about", so_far.as_secs_f64() / done as f64 * rest),
    };
    match seconds / 60.0 {
        minutes if minutes >= 120.0 => format!("{words} {:.1} h left", minutes / 60.0),
        minutes if minutes >= 2.0 => format!("{words} {minutes:.0} min left"),
        _ => format!("{words} {seconds:.0} s left"),
    }
}

fn of_cell(cell: &Cell, error: &impl std::fmt::Display) -> Error {
    Error::Plan(format!("{}: {error}", cell.name()))
}

fn plan_of(
    spec: &Spec,
    runs: &std::path::Path,
    cell: &Cell,
    source: &Source,
    command: &[String],
) -> Result<Plan, Error> {
    let preset = cell.pfs.as_ref().map(|preset| preset.parse().map(pfs::Wanted::new)).transpose();
    let mut wanted = preset.map_err(|error: String| of_cell(cell, &error))?;
    match (&mut wanted, &cell.pfs_timing) {
        (_, None) => {}
        (Some(wanted), Some(timing)) => {
            wanted.timing = Some(timing.parse().map_err(|error: String| of_cell(cell, &error))?);
        }
        (None, Some(_)) => return Err(of_cell(cell, &"pfs_timing is for a preset: give pfs, too")),
    }
    let build = (!cell.server.is_empty()).then(|| cell.server.clone().into());
    Ok(Plan {
        source: source.clone(),
        options: spec.options.iter().map(|(name, value)| (name.clone(), value.to_string())).collect(),
        tables: spec.tables,
        rows: spec.rows,
        seed: spec.seed,
        users: spec.users.clone(),
        measure: Duration::from_secs_f64(spec.seconds),
        warmup_max: Duration::from_secs_f64(spec.warmup),
        interval: Duration::from_secs(1),
        trace: spec.trace,
        stacks: false,
        sql: None,
        engine: EngineKind::default(),
        loops: None,
        tuning: Tuning::default(),
        think: Think::None,
        rates_per_s: Vec::new(),
        arrivals: Arrivals::Poisson,
        slo: Vec::new(),
        // Starts are repeated, not levels.
        repeat_best: false,
        actions: Vec::new(),
        server: ServerPlan::ThrowAway {
            build,
            parent: None,
            set: cell.set.clone(),
            defaults_file: None,
            cpus: cell.cpus.clone(),
        },
        pfs: wanted,
        client_cpus: None,
        allow_writes: None,
        add_ons: Vec::new(),
        relay: whyso_relay::Wanted::default(),
        out: runs.to_path_buf(),
        command: command.to_vec(),
    })
}

fn told(error: whyso_study::Error) -> Error {
    Error::Plan(error.to_string())
}

//! A study: every start that is still to be done, one after the other, each from a fresh server.

mod alike;
mod app;
mod app_load;
mod app_recording;
mod app_samples;
mod cell_error;
mod cluster;
mod endpoints;
mod machine;
mod measurement;
mod pfs_counts;
mod plan;
mod programs;
mod rotation;
mod session_sweep;
mod unit;
mod workers;

use std::time::Instant;

use whyso_study::{
    Answer, Cell, Design, Journal, Repeats, Setup, Spec, Start, StartRecord, answer, journal_answer,
};

use crate::Stop;
use crate::cluster_node::LOADED_MAX;
use crate::login::AskPassword;
use crate::progress::{Listener, News};
use crate::{Error, Plan};

pub use alike::StudyWorkers;
pub use plan::{ReachedServer, plan_study};
pub use programs::study_programs;
pub use unit::{check_study_of_others, pack_unit, study_unit};

use measurement::{Measurement, read_measurement};
use plan::{KnownKnobs, plan_of};

/// Where a study is carried out.
#[derive(Clone, Copy, Debug)]
pub enum StudyPlace<'a> {
    /// On this machine: on servers of whyso's own, or on a running one.
    Here(Option<&'a ReachedServer>),
    /// On other machines.
    Workers(&'a StudyWorkers),
}

/// Carries out what a study still has to do. Each finished start is stored, whatever happens later. Returns why the study ended early, where it did.
/// `on`: where it is carried out.
///
/// # Errors
/// A start failed, or the user broke off: what is missing can be done later.
pub fn study(
    journal: &mut Journal,
    on: StudyPlace<'_>,
    command: &[String],
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Option<String>, Error> {
    let server = match on {
        StudyPlace::Here(server) => server,
        StudyPlace::Workers(_) => None,
    };
    check_endpoint(journal, server)?;
    let carry_out = |journal: &mut Journal| match on {
        StudyPlace::Here(server) => carry_out(journal, server, command, listener, stop, ask_password),
        StudyPlace::Workers(workers) => workers::study_on_workers(journal, workers, listener, stop),
    };
    let ended = carry_out(journal)?;
    let begun = journal.suggested().map_err(wrong_study)?;
    let suggested = match (begun, journal.stored().suggested(journal.finished_starts())) {
        (Some(begun), _) => Some(begun),
        (None, Some(Ok(study))) if ended.is_none() => {
            Some(journal.begin_suggested(study).map_err(wrong_study)?)
        }
        (None, _) => None,
    };
    if let Some(mut suggested) = suggested {
        carry_out(&mut suggested)?;
    }
    Ok(ended)
}

/// Refuses to mix starts of several servers.
fn check_endpoint(journal: &Journal, server: Option<&ReachedServer>) -> Result<(), Error> {
    let begun_on = &journal.stored().endpoint;
    let now = server.map(ReachedServer::endpoint).transpose()?.unwrap_or_default();
    if now == *begun_on {
        return Ok(());
    }
    Err(Error::Plan(match begun_on.as_str() {
        "" => "this study was begun on servers of whyso's own: leave out --dsn".to_string(),
        _ => format!("this study was begun on {begun_on}: give its --dsn, or its --cluster"),
    }))
}

fn carry_out(
    journal: &mut Journal,
    server: Option<&ReachedServer>,
    command: &[String],
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Option<String>, Error> {
    journal.remove_unfinished().map_err(wrong_study)?;
    let cells = journal.spec().cells();
    let mut knobs = KnownKnobs::of_study(server);
    let mut blocks = count_begun_blocks(journal).max(journal.spec().blocks_least());
    loop {
        let todo = journal.todo(blocks);
        if todo.is_empty() {
            if !wants_more(journal, blocks) {
                return Ok(None);
            }
            blocks += 1;
            continue;
        }
        if let Some(why) = is_over(journal) {
            return Ok(Some(why));
        }
        carry_out_next(journal, &todo, &cells, server, &mut knobs, command, (listener, stop, ask_password))?;
    }
}

/// Carries out the first start that is left, or those that are carried out together with it.
fn carry_out_next(
    journal: &mut Journal,
    todo: &[Start],
    cells: &[Cell],
    server: Option<&ReachedServer>,
    knobs: &mut KnownKnobs,
    command: &[String],
    (listener, stop, ask_password): (&dyn Listener, &Stop, &AskPassword),
) -> Result<(), Error> {
    let Some(start) = todo.first().copied() else { return Ok(()) };
    let cell = &cells[start.cell];
    if journal.spec().design().is_in_turns() {
        let together = journal.spec().together(todo, cells);
        listener.hear(News::Step(&describe_starts(journal, &together, cells, todo.len())));
        let asks = (listener, stop, ask_password);
        for done in starts_together(journal, &together, cells, server, knobs, asks)? {
            check_errors(journal.spec(), &cells[done.start.cell], &done)?;
            journal.finish(done).map_err(wrong_study)?;
        }
        return Ok(());
    }
    listener.hear(News::Step(&describe_start(journal, start, cell, todo.len())));
    let done = match journal.spec().app {
        Some(_) => start_of_app(journal, start, cell, command, listener, stop)?,
        None => one_start(journal, start, cell, server, knobs, &|plan| {
            let plan = Plan { command: command.to_vec(), ..plan };
            begin(&plan, &cell.setup, journal.spec(), start, listener, stop, ask_password)
        })?,
    };
    if stop.is_asked() {
        return Err(Error::Interrupted);
    }
    check_errors(journal.spec(), cell, &done)?;
    journal.finish(done).map_err(wrong_study)
}

/// Returns the answer from the starts that have ended.
///
/// # Errors
/// The study that tests a suggested limit can't be read.
pub fn study_answer(journal: &Journal) -> Result<Answer, Error> {
    journal_answer(journal).map_err(wrong_study)
}

/// The result of a start: its recording's name, if there is one, and what was measured.
struct StartOutcome {
    run: String,
    measurement: Measurement,
}

fn begin(
    plan: &Plan,
    setup: &Setup,
    spec: &Spec,
    start: Start,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<StartOutcome, Error> {
    if let Some(sweep) = &spec.session_sweep {
        let order = spec.seed ^ u64::from(start.block).wrapping_mul(whyso_random::GOLDEN_GAMMA);
        let measurement = session_sweep::sweep(plan, sweep, order, listener, stop, ask_password)?;
        return Ok(StartOutcome { run: String::new(), measurement });
    }
    let endpoints = setup.endpoints;
    // All cells of a study are measured in the same way.
    let endpoints_max = spec.cells().iter().map(|cell| cell.setup.endpoints).max().unwrap_or(1);
    if endpoints_max > LOADED_MAX as u32 {
        let measurement = endpoints::load(plan, endpoints, listener, stop, ask_password)?;
        return Ok(StartOutcome { run: String::new(), measurement });
    }
    let outcome = match &setup.cluster {
        Some(cluster) => cluster::run(plan, cluster, listener, stop, ask_password)?,
        None => endpoints::run(plan, endpoints, listener, stop, ask_password)?,
    };
    if stop.is_asked() {
        return Err(Error::Interrupted);
    }
    if let Some(failure) = outcome.failure {
        return Err(Error::Failed(failure));
    }
    let run = outcome.path.file_name().map(|name| name.to_string_lossy().into_owned());
    let run = run.ok_or_else(|| Error::Failed("a recording has no name".to_string()))?;
    let measurement = read_measurement(&outcome.path, spec, start)?;
    Ok(StartOutcome { run, measurement })
}

fn one_start(
    journal: &Journal,
    start: Start,
    cell: &Cell,
    server: Option<&ReachedServer>,
    knobs: &mut KnownKnobs,
    begin: &dyn Fn(Plan) -> Result<StartOutcome, Error>,
) -> Result<StartRecord, Error> {
    let began = Instant::now();
    let machine = machine::machine_now();
    let unknown_knobs = knobs.unknown(cell)?;
    let plan = plan_of(journal.stored(), &journal.runs(), cell, &unknown_knobs, server)?;
    let outcome = begin(plan).map_err(|error| of_failed_cell(cell, error))?;
    Ok(record_of(start, outcome, unknown_knobs, machine, began))
}

/// A start of the sample application.
fn start_of_app(
    journal: &Journal,
    start: Start,
    cell: &Cell,
    command: &[String],
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<StartRecord, Error> {
    let began = Instant::now();
    let machine = machine::machine_now();
    let outcome = app::run(journal, cell, command, listener, stop);
    let outcome = outcome.map_err(|error| of_failed_cell(cell, error))?;
    Ok(record_of(start, outcome, Vec::new(), machine, began))
}

fn of_failed_cell(cell: &Cell, error: Error) -> Error {
    match error {
        Error::Failed(why) => Error::Failed(format!("{}: {why}", cell.name())),
        other => other,
    }
}

fn record_of(
    start: Start,
    outcome: StartOutcome,
    unknown_knobs: Vec<String>,
    machine: whyso_study::Machine,
    began: Instant,
) -> StartRecord {
    StartRecord {
        start,
        run: outcome.run,
        host: String::new(),
        version: outcome.measurement.version,
        seconds: began.elapsed().as_secs_f64(),
        measured_s: outcome.measurement.measured_s,
        machine,
        levels: outcome.measurement.levels,
        peak: outcome.measurement.peak,
        points: outcome.measurement.points,
        unknown_knobs,
        tops: outcome.measurement.tops,
        evenness: outcome.measurement.evenness,
        warnings: outcome.measurement.warnings,
    }
}

/// Starts the servers of several cells, or one for all of them, and loads the cells in turns.
fn starts_together(
    journal: &Journal,
    starts: &[Start],
    cells: &[Cell],
    server: Option<&ReachedServer>,
    knobs: &mut KnownKnobs,
    (listener, stop, ask_password): (&dyn Listener, &Stop, &AskPassword),
) -> Result<Vec<StartRecord>, Error> {
    let began = Instant::now();
    let machine = machine::machine_now();
    let mut plans = Vec::new();
    let mut unknown_knobs = Vec::new();
    for start in starts {
        let cell = &cells[start.cell];
        let unknown = knobs.unknown(cell)?;
        plans.push(plan_of(journal.stored(), &journal.runs(), cell, &unknown, server)?);
        unknown_knobs.push(unknown);
    }
    let block = starts.first().map_or(0, |start| start.block);
    let seed = journal.spec().seed ^ u64::from(block).wrapping_mul(whyso_random::GOLDEN_GAMMA);
    let (rounds, is_switched) = (journal.spec().duet_rounds(), journal.spec().design() == Design::SwitchBack);
    let measured = rotation::rotate(&plans, is_switched, rounds, seed, listener, stop, ask_password)?;
    let seconds = began.elapsed().as_secs_f64() / starts.len().max(1) as f64;
    let record = |((start, unknown_knobs), measurement): ((&Start, Vec<String>), Measurement)| StartRecord {
        start: *start,
        run: String::new(),
        host: String::new(),
        version: measurement.version,
        seconds,
        measured_s: measurement.measured_s,
        machine,
        levels: measurement.levels,
        peak: None,
        points: Vec::new(),
        unknown_knobs,
        tops: Vec::new(),
        evenness: Vec::new(),
        warnings: Vec::new(),
    };
    Ok(starts.iter().zip(unknown_knobs).zip(measured).map(record).collect())
}

/// Describes starts that are carried out together. `todo`: those that are left, these included.
fn describe_starts(journal: &Journal, together: &[Start], cells: &[Cell], todo: usize) -> String {
    let (spec, done) = (journal.spec(), journal.finished_starts().len());
    let (bound, seconds) = match done {
        0 => ("at most", spec.measured_s_of_start() * todo as f64),
        done => ("about", journal.seconds() / done as f64 * todo as f64),
    };
    let left = format!("{bound} {} left", whyso_words::rough_time(seconds));
    let names: Vec<&str> =
        together.iter().filter_map(|start| Some(cells.get(start.cell)?.variant.as_str())).collect();
    let place = match together.first() {
        Some(start) if start.pair => "the machine against itself".to_string(),
        Some(start) => format!("block {}", start.block + 1),
        None => String::new(),
    };
    format!("{} in turns ({place}); {left}", names.join(" · "))
}

fn count_begun_blocks(journal: &Journal) -> u32 {
    let begun =
        journal.finished_starts().iter().filter(|done| !done.start.pair).map(|done| done.start.block + 1);
    begun.max().unwrap_or(0)
}

/// Whether its intervals are still too wide, and more blocks may narrow them.
fn wants_more(journal: &Journal, blocks: u32) -> bool {
    match journal.spec().repeats {
        Repeats::Times(_) => false,
        Repeats::Until { percent } => {
            blocks < journal.spec().blocks_max()
                && !answer(journal.spec(), journal.finished_starts(), journal.notes()).is_narrow(percent)
        }
    }
}

/// Why nothing more is to be started.
fn is_over(journal: &Journal) -> Option<String> {
    let hours = journal.spec().stop.hours?;
    (journal.seconds() >= hours * 3600.0)
        .then(|| format!("it has taken the {hours} h that stop.hours allows: what is missing is left out"))
}

fn check_errors(spec: &Spec, cell: &Cell, done: &StartRecord) -> Result<(), Error> {
    let Some(most) = spec.stop.errors_percent else { return Ok(()) };
    let failed =
        |level: &whyso_study::LevelRecord| level.measures.get("errors_percent").copied().unwrap_or(0.0);
    match done.levels.iter().find(|level| failed(level) > most) {
        Some(level) => Err(Error::Failed(format!(
            "{}: {} of the transactions of {} failed, and stop.errors_percent is {most}",
            cell.name(),
            whyso_words::percent(failed(level) / 100.0),
            whyso_words::users(level.users)
        ))),
        None => Ok(()),
    }
}

/// Describes which start comes, and how long the study still takes: at most, before the first start has ended.
fn describe_start(journal: &Journal, start: Start, cell: &Cell, todo: usize) -> String {
    let spec = journal.spec();
    let done = journal.finished_starts().len();
    let (bound, seconds) = match done {
        0 => ("at most", spec.measured_s_of_start() * todo as f64),
        done => ("about", journal.seconds() / done as f64 * todo as f64),
    };
    let left = format!("{bound} {} left", whyso_words::rough_time(seconds));
    let place = match start.pair {
        true => "the machine against itself".to_string(),
        false => format!("block {}", start.block + 1),
    };
    format!("start {} of {}: {} ({place}); {left}", done + 1, done + todo, cell.name())
}

fn wrong_study(error: whyso_study::Error) -> Error {
    Error::Plan(error.to_string())
}

//! A start of the sample application: it is started, loaded over HTTP, perhaps recorded meanwhile, and stopped, whatever happens.

use std::path::Path;

use whyso_server::app::{self, App, AppSpec};
use whyso_study::{Cell, Journal, Spec, StoredStudy};

use super::app_load::{check_pages, pages, plan_of_load, read_pages};
use super::app_recording::{AppRecording, file_waits};
use super::app_samples::{Sampler, Samples};
use super::cell_error::of_cell;
use super::endpoints::level_of_load;
use super::measurement::Measurement;
use super::{StartOutcome, wrong_study};
use crate::progress::{Listener, News};
use crate::{Error, Stop};

/// Reads the scenarios of a study of the sample application, and checks every cell. `is_on_own_server`: the user named a running server,
/// which is refused.
pub(super) fn plan(spec: Spec, folder: &Path, is_on_own_server: bool) -> Result<StoredStudy, Error> {
    if is_on_own_server {
        return Err(Error::Plan(
            "this study starts the sample application itself: leave out --dsn and --cluster".to_string(),
        ));
    }
    let cells = spec.cells();
    let mut study =
        StoredStudy { spec, files: Default::default(), notes: Vec::new(), endpoint: String::new() };
    for cell in &cells {
        options(cell)?;
        read_pages(&mut study.files, &cell.setup.workload, folder)?;
        check_pages(&study, cell).map_err(|error| of_cell(cell, &error))?;
    }
    Ok(study)
}

/// How a cell's application is started.
fn options(cell: &Cell) -> Result<AppSpec, Error> {
    let mut options = AppSpec::default();
    for (name, value) in &cell.setup.set {
        options.set(name, value).map_err(|why| of_cell(cell, &why))?;
    }
    options.check().map_err(|why| of_cell(cell, &why))?;
    Ok(options)
}

/// The application of one start. It is stopped when this is dropped.
struct StartedApp<'a> {
    app: App,
    journal: &'a Journal,
    listener: &'a dyn Listener,
}

impl<'a> StartedApp<'a> {
    fn start(options: &AppSpec, journal: &'a Journal, listener: &'a dyn Listener) -> Result<Self, Error> {
        if let Some(left) = journal.left_app() {
            // It is gone where the machine was started again. A study's folder from elsewhere may name one that is none of its own.
            if app::is_marked(&left, &journal.work_id().map_err(wrong_study)?) {
                listener.hear(News::Step("stopping the application that an earlier start left behind"));
                app::stop(&left).map_err(Error::Server)?;
            }
            journal.write_app(None).map_err(wrong_study)?;
        }
        listener.hear(News::Step("starting the sample application"));
        let app = app::start(options).map_err(Error::Server)?;
        let started = StartedApp { app, journal, listener };
        app::mark(&started.app.folder, &journal.work_id().map_err(wrong_study)?).map_err(Error::Server)?;
        journal.write_app(Some(&started.app.folder)).map_err(wrong_study)?;
        Ok(started)
    }
}

impl Drop for StartedApp<'_> {
    fn drop(&mut self) {
        let stopped = app::stop(&self.app.folder).map_err(|error| error.to_string());
        let stopped = stopped.and_then(|()| self.journal.write_app(None).map_err(|error| error.to_string()));
        if let Err(why) = stopped {
            let folder = self.app.folder.display();
            self.listener.hear(News::Warning(&format!(
                "the sample application was not stopped: {why}; `whyso server app stop {folder}` does it"
            )));
        }
    }
}

/// Starts the application of a cell, loads it, and stops it.
pub(super) fn run(
    journal: &Journal,
    cell: &Cell,
    command: &[String],
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<StartOutcome, Error> {
    let options = options(cell)?;
    let started = StartedApp::start(&options, journal, listener);
    if stop.is_asked() {
        return Err(Error::Interrupted);
    }
    let started = started?;
    let plan = plan_of_load(journal.stored(), cell, pages(journal.stored(), cell, &started.app.url)?);
    let recording = match journal.spec().trace {
        true => Some(AppRecording::begin(&started.app, &journal.runs(), command, stop)?),
        false => None,
    };
    let sampler = Sampler::start(&started.app.url)?;
    let loaded = crate::load::load(&plan, listener, stop, &|_| None);
    let samples = sampler.end();
    let recorded = recording.map(AppRecording::end).transpose();
    let loaded = loaded?;
    if loaded.interrupted || stop.is_asked() {
        return Err(Error::Interrupted);
    }
    if let Some(failure) = loaded.failure {
        return Err(Error::Failed(failure));
    }
    let mut measurement = measured(&loaded.levels, &samples);
    let mut run = String::new();
    if let Some(path) = recorded? {
        run = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let waits = file_waits(&path, &started.app.folder)?;
        for level in &mut measurement.levels {
            level.measures.extend(waits.ms.map(|ms| ("kernel_lock_ms".to_string(), ms)));
            level.measures.extend(waits.after_ms.map(|ms| ("after_answer_ms".to_string(), ms)));
        }
        measurement.warnings.extend(waits.texts);
    }
    Ok(StartOutcome { run, measurement })
}

fn measured(levels: &[whyso_record::run::Level], samples: &Samples) -> Measurement {
    let record = |level: &whyso_record::run::Level| {
        let mut record = level_of_load(level);
        let mut put = |name: &str, value: Option<f64>| {
            record.measures.extend(value.map(|value| (name.to_string(), value)));
        };
        let p90 = level.result.percentiles.iter().find(|asked| asked.percentile == 90.0);
        put("latency_p90_ms", p90.filter(|_| level.result.transactions > 0).map(|asked| asked.latency_ms));
        for page in &level.result.by_transaction {
            put(&format!("transactions_per_s:{}", page.kind), Some(page.transactions_per_s));
            if page.transactions > 0 {
                put(&format!("latency_mean_ms:{}", page.kind), Some(page.latency_ms.mean));
                put(&format!("latency_p90_ms:{}", page.kind), Some(page.p90_ms));
            }
        }
        let seen = samples.within(level.window.begin_ns, level.window.end_ns);
        put("web_workers_busy", seen.busy);
        put("web_workers_kept", seen.kept);
        put("connections_held", seen.held);
        put("connections_waiting", seen.waiting);
        put("time_wait_ports", seen.time_wait);
        record
    };
    Measurement {
        version: samples.version.clone(),
        measured_s: levels.iter().map(|level| level.warmup.seconds() + level.window.seconds()).sum(),
        levels: levels.iter().map(record).collect(),
        ..Measurement::default()
    }
}

//! What a report has of a run in addition to its series. Level by level these are statements, lock waits and the Performance Schema's
//! views. The text of sources is added to them.

use std::path::Path;

use whyso_explain::statements::{CommandMetric, by_statement};
use whyso_record::Recording;
use whyso_record::private::read_file;
use whyso_record::run::{Purpose, Window};
use whyso_remedy::Proofs;
use whyso_report::{Excerpt, Extras, LevelLocks, LevelStatements, RunPfs, RunStatements, Source, SourceText};

use crate::Error;
use crate::locks::{LocksOver, holds_locks, locks_in};
use crate::pfs::every_view;
use crate::source_files::{SourcePath, source_file};
use crate::statements::{CommandFilter, commands_in, sql_trace_cost};

/// Next to a recording: what experiments showed of it.
pub const PROOFS: &str = "proof.json";
const PROOFS_BYTES_MAX: u64 = 4 << 20;

/// What [`ForReport::lend`] lends to a report.
#[derive(Clone, Debug, Default)]
pub struct ForReport {
    statements: Option<RunStatements>,
    /// By the level's index; `None`: all of a recording in which no level ended.
    locks: Vec<(Option<u32>, LocksOver)>,
    pfs: Option<RunPfs>,
    /// Of the whole run.
    proofs: Option<Proofs>,
    source_paths: Vec<SourcePath>,
}

impl ForReport {
    /// `source_paths`: folders in which sources are looked for.
    ///
    /// # Errors
    /// The recording's files can't be read.
    pub fn new(recording: &Recording, source_paths: &[SourcePath]) -> Result<ForReport, Error> {
        Ok(ForReport {
            source_paths: source_paths.to_vec(),
            proofs: proofs(recording.dir()),
            ..ForReport::of(recording, &parts(recording))?
        })
    }

    /// The same over one window, whatever levels lie in it.
    ///
    /// # Errors
    /// The recording's files can't be read.
    pub fn over(recording: &Recording, window: Window) -> Result<ForReport, Error> {
        ForReport::of(recording, &[(None, window)])
    }

    /// The same of a window that stands for the run's only level.
    ///
    /// # Errors
    /// The recording's files can't be read.
    pub fn of_excerpt(excerpt: &Excerpt<'_>, source_paths: &[SourcePath]) -> Result<ForReport, Error> {
        let parts: Vec<(Option<u32>, Window)> =
            excerpt.run.levels.iter().map(|level| (Some(level.index), level.window)).collect();
        let source_paths = source_paths.to_vec();
        Ok(ForReport { source_paths, ..ForReport::of(excerpt.recording, &parts)? })
    }

    fn of(recording: &Recording, parts: &[(Option<u32>, Window)]) -> Result<ForReport, Error> {
        let mut locks = Vec::new();
        if holds_locks(recording) {
            for (level, window) in parts {
                locks.push((*level, locks_in(recording, *window)?));
            }
        }
        Ok(ForReport {
            statements: statements(recording, parts)?,
            locks,
            pfs: every_view(recording, parts)?,
            proofs: None,
            source_paths: Vec::new(),
        })
    }

    /// Calls `make` with what a report takes. `against`: another run to compare with.
    pub fn lend<T>(&self, against: Option<&dyn Source>, make: impl FnOnce(&Extras<'_>) -> T) -> T {
        let locks: Vec<LevelLocks<'_>> = self
            .locks
            .iter()
            .map(|(level, over)| LevelLocks { level: *level, locks: over.for_window("") })
            .collect();
        // A report goes without a text that can't be read, and shows that.
        let source_text = |file: &str| -> Option<SourceText> {
            let found = source_file(file, &self.source_paths).ok().flatten()?;
            Some(SourceText { path: found.path.display().to_string(), lines: found.lines })
        };
        make(&Extras {
            against,
            source_text: Some(&source_text),
            statements: self.statements.as_ref(),
            locks: &locks,
            pfs: self.pfs.as_ref(),
            proofs: self.proofs.as_ref(),
        })
    }
}

/// What `whyso prove` found; `None` where nothing was tested, or it can't be read.
pub fn proofs(dir: &Path) -> Option<Proofs> {
    let bytes = read_file(&dir.join(PROOFS), PROOFS_BYTES_MAX).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The parts of a run that a report shows one by one: its levels, or all of it.
fn parts(recording: &Recording) -> Vec<(Option<u32>, Window)> {
    let levels = &recording.run().levels;
    match levels.is_empty() {
        true => recording.window().map(|window| (None, window)).into_iter().collect(),
        false => {
            let sweep = levels.iter().filter(|level| level.purpose == Purpose::Sweep);
            sweep.map(|level| (Some(level.index), level.window)).collect()
        }
    }
}

/// `None` where no commands were followed.
fn statements(
    recording: &Recording,
    parts: &[(Option<u32>, Window)],
) -> Result<Option<RunStatements>, Error> {
    let Some(trace) = sql_trace_cost(recording)? else { return Ok(None) };
    let mut run = RunStatements { trace, texts: recording.statements()?, levels: Vec::new() };
    for (level, window) in parts {
        let found = commands_in(recording, *window, &CommandFilter::default())?;
        run.levels.push(LevelStatements {
            level: *level,
            seconds: window.seconds(),
            own_left_out: found.own_left_out,
            statements: by_statement(&found.records(), CommandMetric::Response),
        });
    }
    Ok(Some(run))
}

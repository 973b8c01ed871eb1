//! What the catalogue holds of one run.

use std::time::{Duration, SystemTime};

use whyso_clock::Anchor;

use crate::folder::{FileIdentity, FolderScan};
use crate::labels::Labels;
use crate::run::{Purpose, RunInfo};
use crate::run_facts::RunFacts;
use crate::segment_facts::SegmentFacts;

/// The row of one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Name of the run's folder.
    pub(crate) name: String,
    pub(crate) run: FileIdentity,
    pub(crate) manifest: Option<FileIdentity>,
    pub(crate) facts: RunFacts,
    /// What this version can't read of the `run.json`.
    pub(crate) problem: Option<String>,
    pub(crate) parts: RunParts,
    pub(crate) of_folder: FolderFacts,
}

/// What SQL over many runs shows of a `run.json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunParts {
    pub(crate) tool_version: String,
    pub(crate) levels: Vec<LevelFacts>,
    pub(crate) anchors: Vec<Anchor>,
}

/// A level, as SQL over many runs shows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LevelFacts {
    pub(crate) level: u32,
    pub(crate) users: u32,
    pub(crate) purpose: String,
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) transactions: u64,
    pub(crate) queries: u64,
    pub(crate) errors: u64,
    pub(crate) transactions_per_s: f64,
    pub(crate) queries_per_s: f64,
    pub(crate) mean_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

/// What changes in a folder when its `run.json` does not. Lists read it again each time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FolderFacts {
    /// See [`crate::stamp`].
    pub(crate) stamp: u64,
    pub(crate) bytes: u64,
    pub(crate) labels: Labels,
    /// `None`: not read yet, or not of the files that are there now.
    pub(crate) segments: Option<Vec<SegmentFacts>>,
}

impl Entry {
    /// Describes a run that was read after `scan`. `None`: its folder's name is no text.
    pub(crate) fn new(
        name: Option<&str>,
        scan: &FolderScan,
        run: &RunInfo,
        facts: RunFacts,
        problem: Option<String>,
    ) -> Option<Entry> {
        Some(Entry {
            name: name?.to_string(),
            run: scan.run?,
            manifest: scan.manifest,
            facts,
            problem,
            parts: RunParts::of(run),
            of_folder: FolderFacts::default(),
        })
    }

    /// Whether the files had been quiet for `quiet` at the moment `now`.
    pub(crate) fn is_settled(&self, now: SystemTime, quiet: Duration) -> bool {
        self.run.is_settled(now, quiet)
            && self.manifest.is_none_or(|manifest| manifest.is_settled(now, quiet))
    }

    /// Keeps what was read of segments only if the files are still those of that time.
    pub(crate) fn update(&mut self, scan: &FolderScan, labels: &Labels) {
        if self.of_folder.stamp != scan.stamp {
            self.of_folder.segments = None;
        }
        self.of_folder.stamp = scan.stamp;
        self.of_folder.bytes = scan.bytes;
        self.of_folder.labels = labels.clone();
    }
}

impl RunParts {
    pub(crate) fn of(run: &RunInfo) -> RunParts {
        let levels = run.levels.iter().map(|level| {
            let result = &level.result;
            let purpose = match level.purpose {
                Purpose::Sweep => "sweep",
                Purpose::Repeat => "repeat",
                Purpose::Switch => "switch",
            };
            LevelFacts {
                level: level.index,
                users: level.users,
                purpose: purpose.to_string(),
                begin_ns: level.window.begin_ns,
                end_ns: level.window.end_ns,
                transactions: result.transactions,
                queries: result.queries,
                errors: result.errors,
                transactions_per_s: result.transactions_per_s,
                queries_per_s: result.queries_per_s,
                mean_ms: result.latency_ms.mean,
                p95_ms: result.latency_ms.p95,
                p99_ms: result.latency_ms.p99,
                max_ms: result.latency_ms.max,
            }
        });
        RunParts {
            tool_version: run.tool_version.clone(),
            levels: levels.collect(),
            anchors: run.anchors.clone(),
        }
    }

    /// What the wall showed more than the monotonic clock, at least and at most. `None`: the run does not say when it was.
    pub(crate) fn wall_offsets(&self) -> Option<(i64, i64)> {
        let offsets = || self.anchors.iter().map(|anchor| anchor.wall_ns.saturating_sub(anchor.monotonic_ns));
        Some((offsets().min()?, offsets().max()?))
    }

    /// Parts of a row that repeat.
    pub(crate) fn len(&self) -> usize {
        self.levels.len() + self.anchors.len()
    }
}

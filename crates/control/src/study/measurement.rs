//! Reads what a study keeps of a start from its recording.

use std::path::Path;

use whyso_explain::measures;
use whyso_explain::model::{Input, LevelInput, Regime};
use whyso_record::Recording;
use whyso_study::{LevelRecord, LockEvenness, Moment, PeakRecord, PointRecord, Spec, Start, Top};

use super::pfs_counts;
use crate::Error;
use whyso_query::{add_chosen, input};

/// Sources of the measures that are shown over time.
const SOURCES: [&str; 4] = ["status", "cpu", "server_process", "ndbinfo"];
/// Most moments that a level is cut into.
const MOMENTS_MAX: f64 = 240.0;
/// Shortest moment in tenths of a second, so that several readings of each counter lie in one.
const MOMENT_TENTHS_MIN: f64 = 20.0;

#[derive(Default)]
pub(super) struct Measurement {
    pub(super) version: String,
    /// Warm-ups and measured windows.
    pub(super) measured_s: f64,
    pub(super) levels: Vec<LevelRecord>,
    pub(super) peak: Option<PeakRecord>,
    pub(super) points: Vec<PointRecord>,
    pub(super) tops: Vec<Top>,
    pub(super) evenness: Vec<LockEvenness>,
    pub(super) warnings: Vec<String>,
}

pub(super) fn read_measurement(path: &Path, spec: &Spec, start: Start) -> Result<Measurement, Error> {
    let recording = Recording::open(path)?;
    let input = input(&recording)?;
    let explained = whyso_explain::explain(&input);
    let mut levels = Vec::new();
    for (level, verdict) in input.levels.iter().zip(&explained.levels).filter(|(level, _)| !level.repeat) {
        let half_width_percent = verdict.transactions_per_s_ci95.map(|[low, high]| {
            100.0 * (high - low) / 2.0 / verdict.transactions_per_s.max(f64::MIN_POSITIVE)
        });
        levels.push(LevelRecord {
            users: level.users,
            measures: measures::of(level, input.performance_schema.as_ref()),
            half_width_percent: half_width_percent.filter(|percent| percent.is_finite()),
            invalid_why: verdict.invalid_why.clone(),
            regime: regime(verdict.regime).to_string(),
            over_time: over_time(&recording, &input, level, &spec.over_time)?,
        });
    }
    let suspect = explained.suspects.first().map_or("", |suspect| suspect.id.name());
    let peak = explained.peak.as_ref().filter(|_| spec.users.len() > 1).map(|peak| PeakRecord {
        users: peak.users,
        users_interval: peak.users_interval,
        suspect: suspect.to_string(),
    });
    let run = recording.run();
    let measured_s = run.levels.iter().map(|level| level.warmup.seconds() + level.window.seconds()).sum();
    // What is counted most hardly differs from block to block, and takes a while to add up.
    let tops = if start.block == 0 && !start.pair { pfs_counts::tops(&recording)? } else { Vec::new() };
    Ok(Measurement {
        version: run.server.version.clone(),
        measured_s,
        levels,
        peak,
        points: Vec::new(),
        tops,
        evenness: pfs_counts::evenness(&recording, &spec.instances)?,
        warnings: pfs_counts::warnings(&recording, &input),
    })
}

fn regime(regime: Regime) -> &'static str {
    match regime {
        Regime::RampingUp => "ramping up",
        Regime::Peak => "peak",
        Regime::Degrading => "degrading",
        Regime::Unknown => "",
    }
}

/// A level cut into moments, each measured as if it were a level.
fn over_time(
    recording: &Recording,
    input: &Input,
    level: &LevelInput,
    names: &[String],
) -> Result<Vec<Moment>, Error> {
    let bins = &level.bins_100ms;
    if names.is_empty() || bins.is_empty() {
        return Ok(Vec::new());
    }
    let tenths = (bins.len() as f64 / MOMENTS_MAX).ceil().max(MOMENT_TENTHS_MIN) as usize;
    let queries = level.queries as f64 / (level.transactions as f64).max(1.0);
    let mut parts: Vec<LevelInput> = Vec::new();
    for (at, part) in bins.chunks_exact(tenths).enumerate() {
        let transactions: u64 = part.iter().map(|count| u64::from(*count)).sum();
        let begin_ns = level.begin_ns + (at * tenths) as i64 * 100_000_000;
        parts.push(LevelInput {
            begin_ns,
            end_ns: begin_ns + tenths as i64 * 100_000_000,
            transactions,
            queries: (transactions as f64 * queries).round() as u64,
            ..LevelInput::default()
        });
    }
    add_chosen(recording, &mut parts, |key| SOURCES.contains(&key.source.as_str()))?;
    let moment = |part: &LevelInput| {
        let mut measures = measures::of(part, input.performance_schema.as_ref());
        measures.retain(|name, _| names.contains(name));
        let middle_ns = (part.begin_ns + part.end_ns) / 2 - level.begin_ns;
        Moment { at_s: middle_ns as f64 / 1e9, measures }
    };
    Ok(parts.iter().map(moment).collect())
}

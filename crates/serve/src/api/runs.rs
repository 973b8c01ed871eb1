//! The list of runs, and what is done to one.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use whyso_record::run::{Ended, Purpose, RunInfo};
use whyso_record::{RunSummary, add_note, list_runs, notes_of, prune_run, remove_run};

use super::{Site, reading};
use crate::error::{Answer, Refused};

const NOTES_MAX: usize = 20;

#[derive(Serialize)]
struct Listed {
    id: String,
    /// Of the load; the recorded process or "recorded" where something else made it.
    workload: String,
    server: String,
    host: String,
    /// Wall time in milliseconds; null where it was not recorded.
    began_ms: Option<i64>,
    seconds: Option<f64>,
    levels: usize,
    /// The level with the most transactions a second.
    best: Option<Best>,
    /// The first finding; null until it is worked out, empty where there is none.
    verdict: Option<String>,
    notes: Vec<String>,
    bytes: u64,
    live: bool,
    /// "complete", "going on", or why it is not whole.
    ended: String,
}

#[derive(Serialize)]
struct Best {
    users: u32,
    rate_per_s: Option<f64>,
    transactions_per_s: f64,
    latency_p95_ms: f64,
}

/// Every run, the newest first.
pub(super) async fn list(State(site): State<Arc<Site>>) -> Answer<Json<Value>> {
    reading(site, |site| {
        let mut listed: Vec<Listed> = Vec::new();
        for run in list_runs(site.recordings.folder())?.into_iter().rev() {
            let verdict = if run.live { None } else { site.verdicts.of(&run.path, run.bytes) };
            listed.push(Listed { verdict, ..listed_run(run) });
        }
        Ok(Json(json!({
            "folder": site.recordings.folder().display().to_string(),
            "runs": listed,
            "verdicts_coming": site.verdicts.are_coming(),
        })))
    })
    .await
}

fn listed_run(summary: RunSummary) -> Listed {
    let RunSummary { id, path, run, bytes, live, problem } = summary;
    let ended = match (&run.ended, live) {
        (_, true) => "going on".to_string(),
        (Some(Ended::CutShort { why, .. }), _) => format!("cut short: {why}"),
        _ => problem.unwrap_or_else(|| "complete".to_string()),
    };
    Listed {
        workload: workload(&run),
        server: server(&run),
        host: run.host.hostname.clone(),
        began_ms: run.anchors.first().map(|anchor| anchor.wall_ns / 1_000_000),
        seconds: run
            .anchors
            .first()
            .zip(run.anchors.last())
            .map(|(first, last)| (last.monotonic_ns - first.monotonic_ns) as f64 / 1e9),
        levels: run.levels.iter().filter(|level| level.purpose == Purpose::Sweep).count(),
        best: best(&run),
        verdict: None,
        notes: notes_of(&path).into_iter().take(NOTES_MAX).map(|note| note.text).collect(),
        bytes,
        live,
        ended,
        id,
    }
}

fn workload(run: &RunInfo) -> String {
    if let Some(process) = run.process() {
        return process.to_string();
    }
    let workload = &run.spec["workload"];
    let name = workload.as_str().or_else(|| workload["name"].as_str());
    name.map_or_else(|| run.command.get(1).cloned().unwrap_or_default(), str::to_string)
}

fn server(run: &RunInfo) -> String {
    let parts = [run.server.flavor.as_str(), run.server.version.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn best(run: &RunInfo) -> Option<Best> {
    let best = run.best_level().filter(|level| level.result.transactions > 0)?;
    Some(Best {
        users: best.users,
        rate_per_s: best.result.rate_per_s,
        transactions_per_s: best.result.transactions_per_s,
        latency_p95_ms: best.result.latency_ms.p95,
    })
}

/// Removes a run with everything in its folder.
pub(super) async fn remove(State(site): State<Arc<Site>>, Path(id): Path<String>) -> Answer<Json<Value>> {
    reading(site, move |site| {
        let path = site.recordings.path(&id)?;
        site.recordings.forget(&id);
        Ok(Json(json!({ "freed_bytes": remove_run(&path)? })))
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prune {
    /// As it is typed: 200MiB.
    size: String,
}

/// Removes the oldest detail of a run until it is within a size.
pub(super) async fn prune(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    Json(prune): Json<Prune>,
) -> Answer<Json<Value>> {
    let bytes_max = whyso_model::parse_size(&prune.size).map_err(Refused::bad)?;
    reading(site, move |site| {
        let path = site.recordings.path(&id)?;
        let freed = prune_run(&path, bytes_max)?;
        site.recordings.forget(&id);
        let left = list_runs(site.recordings.folder())?.into_iter().find(|run| run.id == id);
        Ok(Json(json!({ "freed_bytes": freed, "bytes": left.map_or(0, |run| run.bytes) })))
    })
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    /// In seconds of the run; null: now, in a run that goes on.
    at_s: Option<f64>,
    text: String,
}

/// Adds a note.
pub(super) async fn note(
    State(site): State<Arc<Site>>,
    Path(id): Path<String>,
    Json(note): Json<Note>,
) -> Answer<StatusCode> {
    reading(site, move |site| {
        // Control characters are kept as blanks.
        if note.text.chars().all(|one| one.is_whitespace() || one.is_control()) {
            return Err(Refused::bad("a note needs some text"));
        }
        let opened = site.recordings.open(&id)?;
        match note.at_s {
            Some(at_s) => {
                let at = opened.window(at_s, at_s + 1.0)?;
                add_note(opened.recording.dir(), at.begin_ns, &note.text)?;
            }
            None => whyso_record::note_on(&opened.recording, None, &note.text)?,
        }
        site.recordings.forget(&id);
        Ok(StatusCode::CREATED)
    })
    .await
}

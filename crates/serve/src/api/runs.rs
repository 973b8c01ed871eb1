//! The list of runs, and what is done to one.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use ts_rs::TS;
use utoipa::ToSchema;
use whyso_record::run::RunEnd;
use whyso_record::{RunFacts, RunSummary, list_runs, notes_of, prune_run, remove_run};

use super::openapi::{Reading, Refuses};
use super::parameters::RunId;
use crate::error::{Answer, Refusal};
use crate::site::{Site, reading};
use crate::verdict_file::FoundCause;

/// Notes of a run that the list shows.
const NOTES_MAX: usize = 20;

#[derive(Serialize, ToSchema, TS)]
#[serde(deny_unknown_fields)]
#[schema(as = Runs)]
pub(super) struct RunList {
    /// The folder that holds the runs.
    folder: String,
    runs: Vec<ListedRun>,
    /// Whether verdicts are still being worked out.
    verdicts_coming: bool,
}

#[derive(Serialize, ToSchema, TS)]
#[serde(deny_unknown_fields)]
#[schema(as = Run)]
struct ListedRun {
    id: String,
    /// The load's workload. If another program sent the load: the recorded process, or "recorded".
    workload: String,
    server: String,
    host: String,
    /// Wall time in milliseconds; null if it was not recorded.
    #[schema(required)]
    began_ms: Option<i64>,
    #[schema(required)]
    seconds: Option<f64>,
    levels: usize,
    /// The level with the most transactions per second.
    #[schema(required)]
    best: Option<BestLevel>,
    /// What the user calls it; empty if it has no name.
    name: String,
    tags: Vec<String>,
    /// What the user set, as "name=value".
    set: Vec<String>,
    /// Transactions per second of each level, in order; of at most 64.
    per_s: Vec<f64>,
    /// The answer in a sentence; null until it is worked out, empty if there is none.
    #[schema(required)]
    verdict: Option<String>,
    /// The first suspect; null until it is worked out, and if there is none.
    #[schema(required)]
    cause: Option<ListedCause>,
    notes: Vec<String>,
    bytes: u64,
    live: bool,
    /// "complete", "going on", or why it is not whole.
    ended: String,
}

#[derive(Serialize, ToSchema, TS)]
#[serde(deny_unknown_fields)]
struct ListedCause {
    /// Its fixed name, such as "row-lock".
    id: String,
    /// In a few words.
    words: String,
    /// Share of the response time, 0 to 1.
    share: f64,
}

#[derive(Serialize, ToSchema, TS)]
#[serde(deny_unknown_fields)]
struct BestLevel {
    users: u32,
    #[schema(required)]
    rate_per_s: Option<f64>,
    transactions_per_s: f64,
    latency_p95_ms: f64,
}

/// Lists every run, the newest first.
#[utoipa::path(
    get,
    path = "/runs",
    operation_id = "runs",
    responses(
        (
            status = 200,
            description = "The runs",
            body = RunList,
            links(
                ("run" = (operation_id = "run", parameters(("id" = "$response.body#/runs/0/id")))),
                ("explained" = (operation_id = "explained", parameters(("id" = "$response.body#/runs/0/id")))),
                ("events" = (operation_id = "events", parameters(("id" = "$response.body#/runs/0/id")))),
                ("compare" = (operation_id = "compare", parameters(
                    ("first" = "$response.body#/runs/0/id"),
                    ("second" = "$response.body#/runs/1/id"),
                ))),
            ),
        ),
        Reading,
    )
)]
pub(super) async fn list(State(site): State<Arc<Site>>) -> Answer<Json<RunList>> {
    reading(site, |site| {
        let mut runs: Vec<ListedRun> = Vec::new();
        for run in list_runs(site.recordings.folder())?.into_iter().rev() {
            let found = if run.live { None } else { site.verdicts.of(&run) };
            let (verdict, cause) = found.map_or((None, None), |found| (Some(found.words), found.cause));
            let cause = cause.map(|FoundCause { id, words, share }| ListedCause { id, words, share });
            runs.push(ListedRun { verdict, cause, ..listed_run(run) });
        }
        Ok(Json(RunList {
            folder: site.recordings.folder().display().to_string(),
            runs,
            verdicts_coming: site.verdicts.are_coming(),
        }))
    })
    .await
}

fn listed_run(summary: RunSummary) -> ListedRun {
    let RunSummary { id, path, facts, bytes, stamp: _, labels, live, problem } = summary;
    let ended = match (&facts.ended, live) {
        (_, true) => "going on".to_string(),
        (Some(RunEnd::CutShort { why, .. }), _) => format!("cut short: {why}"),
        _ => problem.unwrap_or_else(|| "complete".to_string()),
    };
    ListedRun {
        workload: workload(&facts),
        server: server(&facts),
        began_ms: facts.began_wall_ns.map(|wall_ns| wall_ns / 1_000_000),
        seconds: facts.length_ns.map(|ns| ns as f64 / 1e9),
        levels: facts.swept_levels,
        best: best(&facts),
        host: facts.hostname,
        name: labels.name,
        tags: labels.tags,
        set: facts.set,
        per_s: facts.per_s,
        verdict: None,
        cause: None,
        notes: notes_of(&path).into_iter().take(NOTES_MAX).map(|note| note.text).collect(),
        bytes,
        live,
        ended,
        id,
    }
}

fn workload(facts: &RunFacts) -> String {
    facts
        .process
        .as_ref()
        .or(facts.workload.as_ref())
        .or(facts.subcommand.as_ref())
        .cloned()
        .unwrap_or_default()
}

fn server(facts: &RunFacts) -> String {
    let parts = [facts.flavor.as_str(), facts.server_version.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn best(facts: &RunFacts) -> Option<BestLevel> {
    let best = facts.best.as_ref().filter(|best| best.transactions > 0)?;
    Some(BestLevel {
        users: best.users,
        rate_per_s: best.rate_per_s,
        transactions_per_s: best.transactions_per_s,
        latency_p95_ms: best.latency_p95_ms,
    })
}

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Freed)]
pub(super) struct RemoveResult {
    freed_bytes: u64,
}

/// Removes a run with everything in its folder.
#[utoipa::path(
    delete,
    path = "/runs/{id}",
    operation_id = "remove",
    params(RunId),
    responses(
        (status = 200, description = "It is removed", body = RemoveResult),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn remove(
    State(site): State<Arc<Site>>,
    Path(RunId { id }): Path<RunId>,
) -> Answer<Json<RemoveResult>> {
    reading(site, move |site| {
        let path = site.recordings.path(&id)?;
        site.recordings.forget(&id);
        Ok(Json(RemoveResult { freed_bytes: remove_run(&path)? }))
    })
    .await
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Prune {
    /// The size to keep, such as 200MiB.
    #[schema(pattern = "^([0-9]{1,5}(\\.[0-9]{1,3})?[kKmMgG]|[0-9]{1,2}(\\.[0-9]{1,3})?[tT])[iI]?[bB]?$")]
    size: String,
}

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Pruned)]
pub(super) struct PruneResult {
    freed_bytes: u64,
    bytes: u64,
}

/// Removes the oldest detail of a run until it is within a size, or only the newest is left. Roll-ups, events and results stay.
#[utoipa::path(
    post,
    path = "/runs/{id}/prune",
    operation_id = "prune",
    params(RunId),
    request_body = Prune,
    responses(
        (status = 200, description = "What was freed", body = PruneResult),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
        Refuses<413>,
        Refuses<415>,
    )
)]
pub(super) async fn prune(
    State(site): State<Arc<Site>>,
    Path(RunId { id }): Path<RunId>,
    Json(prune): Json<Prune>,
) -> Answer<Json<PruneResult>> {
    let bytes_max = whyso_model::parse_size(&prune.size).map_err(Refusal::bad)?;
    reading(site, move |site| {
        let path = site.recordings.path(&id)?;
        let freed_bytes = prune_run(&path, bytes_max)?;
        site.recordings.forget(&id);
        let left = list_runs(site.recordings.folder())?.into_iter().find(|run| run.id == id);
        Ok(Json(PruneResult { freed_bytes, bytes: left.map_or(0, |run| run.bytes) }))
    })
    .await
}

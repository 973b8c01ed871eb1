//! Runs against each other.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use whyso_explain::comparison::Metric;
use whyso_lab::CompareBy;
use whyso_record::Recording;

use super::{Site, reading};
use crate::error::{Answer, Refused};

/// Of either side.
const RUNS_MAX: usize = 20;
/// In per cent.
const MATTERS: f64 = 3.0;

#[derive(Deserialize)]
pub(super) struct Sides {
    /// Ids between commas.
    first: String,
    second: String,
    #[serde(default)]
    metric: Metric,
    /// Also runs of different workloads.
    #[serde(default)]
    anyway: bool,
}

/// The second side against the first, as `whyso compare` and `whyso compare --json` have it.
pub(super) async fn compare(
    State(site): State<Arc<Site>>,
    Query(sides): Query<Sides>,
) -> Answer<Json<Value>> {
    reading(site, move |site| {
        let open = |ids: &str| -> Answer<Vec<Recording>> {
            let ids: Vec<&str> = ids.split(',').filter(|id| !id.is_empty()).collect();
            if ids.is_empty() || ids.len() > RUNS_MAX {
                return Err(Refused::bad(format!(
                    "name 1 to {RUNS_MAX} runs of either side, between commas"
                )));
            }
            ids.into_iter().map(|id| Ok(Recording::open(&site.recordings.path(id)?)?)).collect()
        };
        let (first, second) = (open(&sides.first)?, open(&sides.second)?);
        let by = CompareBy { metric: sides.metric, matters_percent: MATTERS, anyway: sides.anyway };
        let compared = whyso_lab::compare(&first, &second, by)?;
        Ok(Json(json!({ "tables": whyso_report::compare_tables(&compared), "comparison": compared })))
    })
    .await
}

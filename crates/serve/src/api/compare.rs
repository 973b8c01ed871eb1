//! Runs, or windows of them, against each other.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::{IntoParams, ToSchema};
use whyso_explain::comparison::{Comparison, Metric};
use whyso_query::{CompareBy, Stretch, compare_windows, transactions_in};
use whyso_record::Recording;
use whyso_record::run::Window;
use whyso_report::CompareTable;
use whyso_report::payload::{self, FlameSide, PageHead};
use whyso_report::source::Stacks;

use super::openapi::{Reading, Refuses};
use super::parameters::{parameter_schema, run_ids};
use super::responses::{Object, blocks_response};
use crate::error::{Answer, Refusal};
use crate::recordings::OpenRecording;
use crate::site::{Site, reading};

/// Runs of either side.
const RUNS_MAX: usize = 20;
/// Smallest difference that matters, in per cent.
const MATTERS: f64 = 3.0;

const NO_FLAME: &str = "null";

parameter_schema!(SideIds, run_ids(RUNS_MAX));

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CompareQuery {
    /// The first side: runs between commas, each as RUN or as RUN@FROM-TO, a window in seconds of the run.
    #[param(value_type = SideIds, inline, style = Form, explode = false)]
    first: String,
    /// The second side: runs between commas, each as RUN or as RUN@FROM-TO, a window in seconds of the run.
    #[param(value_type = SideIds, inline, style = Form, explode = false)]
    second: String,
    /// The result of a level that is compared.
    #[serde(default)]
    #[param(value_type = MetricName, inline)]
    metric: Metric,
    /// Also runs of different workloads.
    #[serde(default)]
    #[param(default = false)]
    anyway: bool,
}

parameter_schema!(MetricName, {
    let name = |metric: Metric| serde_json::to_value(metric).unwrap_or_default();
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .enum_values(Some(Metric::ALL.map(name)))
        .default(Some(name(Metric::default())))
        .into()
});

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FlameQuery {
    /// The first side: runs between commas, each as RUN or as RUN@FROM-TO, a window in seconds of the run.
    #[param(value_type = SideIds, inline, style = Form, explode = false)]
    first: String,
    /// The second side: runs between commas, each as RUN or as RUN@FROM-TO, a window in seconds of the run.
    #[param(value_type = SideIds, inline, style = Form, explode = false)]
    second: String,
}

/// The name of a run, or of a window of one.
struct PartName<'a> {
    id: &'a str,
    window_s: Option<(f64, f64)>,
}

/// A run, or a window of one.
struct Part {
    opened: Arc<OpenRecording>,
    window: Window,
    name: String,
}

/// Parses the names of one side. An id may contain an `@`: the text after the last one is a window if it reads like one.
///
/// # Errors
/// 400 if there are no names, or more than [`RUNS_MAX`].
fn part_names(side: &str) -> Answer<Vec<PartName<'_>>> {
    let part_name = |text| -> PartName<'_> {
        let window = |(id, window): (&'_ str, &'_ str)| {
            // A window may begin before 0, the moment that the axes count from.
            let (dash, _) = window.char_indices().skip(1).find(|(_, letter)| *letter == '-')?;
            Some((id.len(), (window[..dash].parse().ok()?, window[dash + 1..].parse().ok()?)))
        };
        let text: &str = text;
        match text.rsplit_once('@').and_then(window) {
            Some((length, window_s)) => PartName { id: &text[..length], window_s: Some(window_s) },
            None => PartName { id: text, window_s: None },
        }
    };
    let found: Vec<PartName<'_>> = side.split(',').filter(|text| !text.is_empty()).map(part_name).collect();
    match found.len() {
        1..=RUNS_MAX => Ok(found),
        _ => Err(Refusal::bad(format!("name 1 to {RUNS_MAX} runs of either side, between commas"))),
    }
}

fn parts(site: &Site, side: &[PartName<'_>]) -> Answer<Vec<Part>> {
    let part = |requested: &PartName<'_>| {
        let opened = site.recordings.open(requested.id)?;
        let (window, name) = match requested.window_s {
            Some((from_s, to_s)) => {
                (opened.window(from_s, to_s)?, format!("{} from {from_s} to {to_s} s", requested.id))
            }
            None => (opened.whole(), requested.id.to_string()),
        };
        Ok(Part { opened, window, name })
    };
    side.iter().map(part).collect()
}

/// Tables to draw, and the comparison that they show.
#[derive(Serialize, ToSchema)]
pub(super) struct CompareResult {
    tables: Vec<CompareTable>,
    #[schema(value_type = Object)]
    comparison: Comparison,
}

/// Compares runs with others, as `whyso compare` does.
#[utoipa::path(
    get,
    path = "/compare",
    operation_id = "compare",
    params(CompareQuery),
    responses(
        (status = 200, description = "Tables to draw, and the comparison that they show", body = CompareResult),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
    )
)]
pub(super) async fn compare(
    State(site): State<Arc<Site>>,
    Query(query): Query<CompareQuery>,
) -> Answer<Json<CompareResult>> {
    reading(site, move |site| {
        let (first, second) = (part_names(&query.first)?, part_names(&query.second)?);
        let by = CompareBy { metric: query.metric, matters_percent: MATTERS, anyway: query.anyway };
        let comparison = if first.iter().chain(&second).any(|part| part.window_s.is_some()) {
            let (first, second) = (parts(site, &first)?, parts(site, &second)?);
            compare_windows(&stretches(&first), &stretches(&second), by)?
        } else {
            let open = |side: &[PartName<'_>]| -> Answer<Vec<Recording>> {
                side.iter().map(|part| Ok(Recording::open(&site.recordings.path(part.id)?)?)).collect()
            };
            whyso_query::compare(&open(&first)?, &open(&second)?, by)?
        };
        Ok(Json(CompareResult { tables: whyso_report::compare_tables(&comparison), comparison }))
    })
    .await
}

fn stretches(parts: &[Part]) -> Vec<Stretch<'_>> {
    parts.iter().map(|part| Stretch { recording: &part.opened.recording, window: part.window }).collect()
}

/// A flame graph, which `report` writes as text.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes text that another crate writes")]
struct Flame {
    /// The head of the flame graph; null if no stacks were recorded.
    #[schema(required)]
    flame: Option<Object>,
    /// What the head refers to: deflated, as base64.
    blocks: Vec<String>,
}

/// Returns the stacks of what is compared in one tree of calls.
#[utoipa::path(
    get,
    path = "/compare/flame",
    operation_id = "compare_flame",
    params(FlameQuery),
    responses(
        (status = 200, description = "The head of a flame graph with its blocks", body = Flame),
        Reading,
        Refuses<400>,
        Refuses<404>,
    )
)]
pub(super) async fn flame(
    State(site): State<Arc<Site>>,
    Query(query): Query<FlameQuery>,
) -> Answer<Response> {
    reading(site, move |site| {
        let mut all = Vec::new();
        // The second side comes first, as a report shows its own run first.
        for side in [&query.second, &query.first] {
            for Part { opened, window, name } in parts(site, &part_names(side)?)? {
                let recording = &opened.recording;
                let transactions = transactions_in(recording, window)?;
                all.push(FlameSide { name, window, transactions, stacks: Stacks::over(recording, window)? });
            }
        }
        // Without any stacks there is no flame.
        let flame = payload::flames(all)?
            .unwrap_or_else(|| PageHead { head_json: NO_FLAME.to_string(), ..PageHead::default() });
        blocks_response("flame", &flame)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_names_runs_and_windows_of_them() {
        let found = part_names("a@1.5-20,b,c@d,e@f@-3-4.25,").unwrap();
        let names: Vec<_> = found.iter().map(|part| (part.id, part.window_s)).collect();
        assert_eq!(
            names,
            [("a", Some((1.5, 20.0))), ("b", None), ("c@d", None), ("e@f", Some((-3.0, 4.25)))]
        );
        assert!(part_names(",").is_err() && part_names(&"a,".repeat(21)).is_err());
    }
}

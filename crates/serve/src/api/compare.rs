//! Runs, or windows of them, against each other.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use whyso_explain::comparison::Metric;
use whyso_query::{CompareBy, Stretch, compare_windows, transactions_in};
use whyso_record::Recording;
use whyso_record::run::Window;
use whyso_report::payload::{self, FlameSide, Served};
use whyso_report::source::Stacks;

use super::{Site, blocks_response, reading};
use crate::error::{Answer, Refused};
use crate::open::Opened;

/// Of either side.
const RUNS_MAX: usize = 20;
/// In per cent.
const MATTERS: f64 = 3.0;

const NO_FLAME: &str = "null";

#[derive(Deserialize)]
pub(super) struct Sides {
    /// Ids between commas, each alone or as ID@FROM-TO in seconds of the run.
    first: String,
    second: String,
    #[serde(default)]
    metric: Metric,
    /// Also runs of different workloads.
    #[serde(default)]
    anyway: bool,
}

#[derive(Deserialize)]
pub(super) struct FlameSides {
    first: String,
    second: String,
}

/// A run, or a window of one.
struct Named<'a> {
    id: &'a str,
    window_s: Option<(f64, f64)>,
}

/// What is there of it.
struct Part {
    opened: Arc<Opened>,
    window: Window,
    name: String,
}

/// An id may hold an @ of its own: what stands after the last one is a window if it reads like one.
fn named(side: &str) -> Answer<Vec<Named<'_>>> {
    let one = |text| -> Named<'_> {
        let window = |(id, window): (&'_ str, &'_ str)| {
            // A window may begin before 0, the moment that the axes count from.
            let (dash, _) = window.char_indices().skip(1).find(|(_, one)| *one == '-')?;
            Some((id.len(), (window[..dash].parse().ok()?, window[dash + 1..].parse().ok()?)))
        };
        let text: &str = text;
        match text.rsplit_once('@').and_then(window) {
            Some((length, window_s)) => Named { id: &text[..length], window_s: Some(window_s) },
            None => Named { id: text, window_s: None },
        }
    };
    let found: Vec<Named<'_>> = side.split(',').filter(|text| !text.is_empty()).map(one).collect();
    match found.len() {
        1..=RUNS_MAX => Ok(found),
        _ => Err(Refused::bad(format!("name 1 to {RUNS_MAX} runs of either side, between commas"))),
    }
}

fn parts(site: &Site, side: &[Named<'_>]) -> Answer<Vec<Part>> {
    let part = |one: &Named<'_>| {
        let opened = site.recordings.open(one.id)?;
        let (window, name) = match one.window_s {
            Some((from_s, to_s)) => {
                (opened.window(from_s, to_s)?, format!("{} from {from_s} to {to_s} s", one.id))
            }
            None => (opened.whole(), one.id.to_string()),
        };
        Ok(Part { opened, window, name })
    };
    side.iter().map(part).collect()
}

/// The second side against the first, as `whyso compare` and `whyso compare --json` have it.
pub(super) async fn compare(
    State(site): State<Arc<Site>>,
    Query(sides): Query<Sides>,
) -> Answer<Json<Value>> {
    reading(site, move |site| {
        let (first, second) = (named(&sides.first)?, named(&sides.second)?);
        let by = CompareBy { metric: sides.metric, matters_percent: MATTERS, anyway: sides.anyway };
        let compared = if first.iter().chain(&second).any(|one| one.window_s.is_some()) {
            let (first, second) = (parts(site, &first)?, parts(site, &second)?);
            compare_windows(&stretches(&first), &stretches(&second), by)?
        } else {
            let open = |side: &[Named<'_>]| -> Answer<Vec<Recording>> {
                side.iter().map(|one| Ok(Recording::open(&site.recordings.path(one.id)?)?)).collect()
            };
            whyso_query::compare(&open(&first)?, &open(&second)?, by)?
        };
        Ok(Json(json!({ "tables": whyso_report::compare_tables(&compared), "comparison": compared })))
    })
    .await
}

fn stretches(parts: &[Part]) -> Vec<Stretch<'_>> {
    parts.iter().map(|part| Stretch { recording: &part.opened.recording, window: part.window }).collect()
}

/// The stacks of all of them in one tree: the second side's first, as a report has its own run's.
pub(super) async fn flame(
    State(site): State<Arc<Site>>,
    Query(sides): Query<FlameSides>,
) -> Answer<Response> {
    reading(site, move |site| {
        let mut all = Vec::new();
        for side in [&sides.second, &sides.first] {
            for Part { opened, window, name } in parts(site, &named(side)?)? {
                let recording = &opened.recording;
                let transactions = transactions_in(recording, window)?;
                all.push(FlameSide { name, window, transactions, stacks: Stacks::over(recording, window)? });
            }
        }
        // Without any stacks there is no flame.
        let made = payload::flames(all)?
            .unwrap_or_else(|| Served { head_json: NO_FLAME.to_string(), ..Served::default() });
        blocks_response("flame", &made)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_names_runs_and_windows_of_them() {
        let found = named("a@1.5-20,b,c@d,e@f@-3-4.25,").unwrap();
        let told: Vec<_> = found.iter().map(|one| (one.id, one.window_s)).collect();
        assert_eq!(told, [("a", Some((1.5, 20.0))), ("b", None), ("c@d", None), ("e@f", Some((-3.0, 4.25)))]);
        assert!(named(",").is_err() && named(&"a,".repeat(21)).is_err());
    }
}

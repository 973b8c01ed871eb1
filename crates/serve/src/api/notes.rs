//! The user's own notes on a run, its name and its tags.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use ts_rs::TS;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use whyso_record::{Labels, add_note, change_note, labels_of, set_labels};

use super::openapi::{Reading, Refuses};
use super::parameters::{RunId, parameter_schema};
use crate::error::{Answer, Refusal};
use crate::site::{Site, reading};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    /// Seconds of the run; null: now, in a run that is being recorded.
    #[schema(exclusive_minimum = -1e9, exclusive_maximum = 999999999.0)]
    at_s: Option<f64>,
    /// The first 2000 characters are stored. At most 1024 KiB can be sent.
    #[schema(min_length = 1, pattern = "[^\\s\\x00-\\x1f\\x7f-\\x9f]")]
    text: String,
}

/// Adds a note. Without `at_s` it is of now, in a run that is being recorded.
#[utoipa::path(
    post,
    path = "/runs/{id}/notes",
    operation_id = "note",
    params(RunId),
    request_body = Note,
    responses(
        (status = 201, description = "It is saved."),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
        Refuses<413>,
        Refuses<415>,
    )
)]
pub(super) async fn note(
    State(site): State<Arc<Site>>,
    Path(RunId { id }): Path<RunId>,
    Json(note): Json<Note>,
) -> Answer<StatusCode> {
    reading(site, move |site| {
        // Control characters become blanks.
        if note.text.chars().all(|letter| letter.is_whitespace() || letter.is_control()) {
            return Err(Refusal::bad("a note needs some text"));
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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoteChange {
    /// Monotonic nanoseconds of the note, as `GET /runs/{id}/events` has them.
    #[serde(deserialize_with = "whole_number")]
    t_ns: i64,
    /// The note's text, as `GET /runs/{id}/events` has it.
    before: String,
    /// The new text; null removes the note.
    #[schema(required, min_length = 1, pattern = "[^\\s\\x00-\\x1f\\x7f-\\x9f]")]
    text: Option<String>,
}

/// Reads a whole number: to JSON, 3.0 is one, too.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    // Beyond this, a floating point number does not say which one is meant.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let number = serde_json::Number::deserialize(deserializer)?;
    let of_float = || number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() <= EXACT_MAX);
    let whole = number.as_i64().or_else(|| of_float().map(|value| value as i64));
    whole.ok_or_else(|| D::Error::custom(format!("{number} is no whole number of nanoseconds")))
}

/// Gives a note another text, or removes it.
#[utoipa::path(
    put,
    path = "/runs/{id}/notes",
    operation_id = "changeNote",
    params(RunId),
    request_body = NoteChange,
    responses(
        (status = 204, description = "It is changed."),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
        Refuses<413>,
        Refuses<415>,
    )
)]
pub(super) async fn change(
    State(site): State<Arc<Site>>,
    Path(RunId { id }): Path<RunId>,
    Json(change): Json<NoteChange>,
) -> Answer<StatusCode> {
    reading(site, move |site| {
        let is_blank = |text: &str| text.chars().all(|letter| letter.is_whitespace() || letter.is_control());
        if change.text.as_deref().is_some_and(is_blank) {
            return Err(Refusal::bad("a note needs some text"));
        }
        let path = site.recordings.path(&id)?;
        change_note(&path, change.t_ns, &change.before, change.text.as_deref()).map_err(
            |error| match error {
                whyso_record::Error::Note(why) => Refusal::not_found(why),
                error => error.into(),
            },
        )?;
        site.recordings.forget(&id);
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

parameter_schema!(
    TagText,
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .pattern(Some("^[A-Za-z0-9_.:=/+-]{1,40}$"))
        .into()
);

/// What the user calls a run.
#[derive(Deserialize, Serialize, ToSchema, TS)]
#[serde(deny_unknown_fields)]
#[schema(as = Labels)]
#[ts(rename = "RunLabels")]
pub(super) struct LabelsBody {
    /// Empty: the run has no name. At most 100 characters.
    #[schema(max_length = 100, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    name: String,
    /// At most 20, each of letters, digits and any of `-_.:=/+`, at most 40 characters.
    #[schema(value_type = Vec<TagText>, inline, max_items = 20)]
    tags: Vec<String>,
}

impl From<Labels> for LabelsBody {
    fn from(labels: Labels) -> LabelsBody {
        LabelsBody { name: labels.name, tags: labels.tags }
    }
}

/// Returns a run's name and tags.
#[utoipa::path(
    get,
    path = "/runs/{id}/labels",
    operation_id = "labels",
    params(RunId),
    responses((status = 200, description = "Name and tags", body = LabelsBody), Reading, Refuses<400>, Refuses<404>)
)]
pub(super) async fn labels(
    State(site): State<Arc<Site>>,
    Path(RunId { id }): Path<RunId>,
) -> Answer<Json<LabelsBody>> {
    reading(site, move |site| Ok(Json(labels_of(&site.recordings.path(&id)?).into()))).await
}

/// Replaces a run's name and tags.
#[utoipa::path(
    put,
    path = "/runs/{id}/labels",
    operation_id = "setLabels",
    params(RunId),
    request_body = LabelsBody,
    responses(
        (status = 200, description = "Name and tags as they are stored", body = LabelsBody),
        Reading,
        Refuses<400>,
        Refuses<404>,
        Refuses<409>,
        Refuses<413>,
        Refuses<415>,
    )
)]
pub(super) async fn set(
    State(site): State<Arc<Site>>,
    Path(RunId { id }): Path<RunId>,
    Json(body): Json<LabelsBody>,
) -> Answer<Json<LabelsBody>> {
    let labels = Labels::new(&body.name, body.tags)?;
    reading(site, move |site| {
        set_labels(&site.recordings.path(&id)?, &labels)?;
        Ok(Json(labels.into()))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_be_written_as_any_whole_number() {
        let time = |text: &str| {
            let body = format!(r#"{{"t_ns": {text}, "before": "x", "text": null}}"#);
            serde_json::from_str::<NoteChange>(&body)
                .map(|change| change.t_ns)
                .map_err(|error| error.to_string())
        };
        assert_eq!(time("40805"), Ok(40_805));
        assert_eq!(time("40805.0"), Ok(40_805));
        assert_eq!(time("-1e3"), Ok(-1_000));
        assert_eq!(time("9223372036854775807"), Ok(i64::MAX));
        for wrong in ["1.5", "1e300", "9223372036854775808"] {
            assert!(time(wrong).unwrap_err().contains("is no whole number"), "{wrong}");
        }
        assert!(time("\"1\"").is_err() && time("null").is_err());
    }
}

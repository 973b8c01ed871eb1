//! The description of the API, as OpenAPI 3.1: every address with its parameters, their bounds and every status. Tests compare it with the routes.

mod schemas;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};

use super::read::{CATALOGUE_MAX, TOP_MAX};
use super::{Site, moving};
use crate::moving::IMPORT_BYTES_MAX;

const ABOUT: &str = "Recordings of MySQL-compatible servers under load, as `whyso serve` shows them. Times are seconds of the run, from the moment \
     that the page's axes count from. An error is `{\"error\": \"one sentence\"}`, whatever its status. An address answers a method that it does not \
     have with 405 and the header `Allow`; GET is answered to HEAD, too, without the body.";

pub(super) async fn openapi(State(site): State<Arc<Site>>) -> Json<Value> {
    Json(described(site.access.cookie()))
}

/// `cookie`: the name of the one that stands for the token, which the server's port is part of.
pub(super) fn described(cookie: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "whyso serve", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT },
        "servers": [{ "url": "/api/v1" }],
        "security": [{ "token": [] }, { "cookie": [] }],
        "paths": paths(),
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "The token that `whyso serve` printed, or that its file holds." },
                "cookie": { "type": "apiKey", "in": "cookie", "name": cookie, "description": "What `POST /session` gives for the token: a session of eight hours." },
            },
            "schemas": schemas::all(),
        },
    })
}

/// One method of an address.
struct Operation {
    id: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Map<String, Value>,
}

/// `refusals`: statuses beside those that every address has.
fn operation(id: &'static str, summary: &'static str, refusals: &[u16]) -> Operation {
    let mut answers = Map::new();
    for status in [401, 403].iter().chain(refusals) {
        answers.insert(status.to_string(), refusal(*status));
    }
    Operation { id, summary, parameters: Vec::new(), body: None, answers }
}

/// The same for what reads or writes files, which waits for its turn and may find them damaged.
fn reading(id: &'static str, summary: &'static str, refusals: &[u16]) -> Operation {
    operation(id, summary, &[refusals, &[500, 503]].concat())
}

impl Operation {
    fn with(mut self, parameters: Vec<Value>) -> Operation {
        self.parameters.extend(parameters);
        self
    }

    fn sent(mut self, content: Value) -> Operation {
        self.body = Some(json!({ "required": true, "content": content }));
        self
    }

    fn answers(mut self, status: u16, description: &str, content: Value) -> Operation {
        let mut answer = json!({ "description": description });
        if !content.is_null() {
            answer["content"] = content;
        }
        self.answers.insert(status.to_string(), answer);
        self
    }

    /// `links`: of the answer 200, by the operation that each leads to.
    fn links(mut self, links: Value) -> Operation {
        self.answers["200"]["links"] = links;
        self
    }

    fn json(self) -> Value {
        let mut json = json!({ "operationId": self.id, "summary": self.summary, "responses": self.answers });
        if !self.parameters.is_empty() {
            json["parameters"] = self.parameters.into();
        }
        if let Some(body) = self.body {
            json["requestBody"] = body;
        }
        json
    }
}

fn refusal(status: u16) -> Value {
    let why = match status {
        400 => "What was sent makes no sense.",
        401 => "The token is missing or wrong.",
        403 => "By another host's name, or from another site's page.",
        404 => "There is no such thing.",
        409 => "Not now: it is being recorded, is not being recorded, or was made by a newer version.",
        413 => "Too much was sent.",
        415 => "What was sent is of another type.",
        500 => "It can't be read or written: the recording may be damaged, or the disk full.",
        _ => "Too much is asked at once: ask again in a moment.",
    };
    json!({ "description": why, "content": { "application/json": { "schema": of("Error") } } })
}

fn of(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn as_json(schema: Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

fn in_path(name: &str, about: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "description": about, "schema": { "type": "string", "minLength": 1 } })
}

fn run_id() -> Value {
    in_path("id", "A run's, as `GET /runs` lists it.")
}

fn in_query(name: &str, about: &str, is_required: bool, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "required": is_required, "description": about, "schema": schema })
}

/// Values between commas.
fn listed(name: &str, about: &str, is_required: bool, schema: Value) -> Value {
    let mut parameter = in_query(name, about, is_required, schema);
    parameter["style"] = "form".into();
    parameter["explode"] = false.into();
    parameter
}

fn ids(name: &str, about: &str, is_required: bool, most: usize) -> Value {
    let id = json!({ "type": "string", "minLength": 1, "pattern": "^[^,]+$" });
    listed(name, about, is_required, json!({ "type": "array", "items": id, "minItems": 1, "maxItems": most }))
}

fn second() -> Value {
    json!({ "type": "number", "exclusiveMinimum": -1e9, "exclusiveMaximum": 1e9 })
}

fn window() -> [Value; 2] {
    [
        in_query("from_s", "Begin of the window, below `to_s`.", true, second()),
        in_query("to_s", "Its end.", true, second()),
    ]
}

fn flag(name: &str, about: &str) -> Value {
    in_query(name, about, false, json!({ "type": "boolean", "default": false }))
}

fn paths() -> Value {
    let id = || vec![run_id()];
    let binary = json!({ "application/octet-stream": {} });
    let mut paths = Map::new();
    let mut add = |path: &str, methods: Vec<(&str, Operation)>| {
        let methods: Map<String, Value> =
            methods.into_iter().map(|(method, operation)| (method.to_string(), operation.json())).collect();
        paths.insert(path.to_string(), methods.into());
    };
    add(
        "/openapi.json",
        vec![(
            "get",
            operation("description", "This description", &[]).answers(
                200,
                "OpenAPI 3.1",
                as_json(json!({ "type": "object", "required": ["openapi", "paths"] })),
            ),
        )],
    );
    add(
        "/session",
        vec![(
            "post",
            operation("signIn", "Begins a session", &[]).answers(204, "The cookie is set.", Value::Null),
        )],
    );
    add(
        "/runs",
        vec![(
            "get",
            reading("runs", "Every run, the newest first", &[]).answers(200, "The runs", as_json(of("Runs"))).links(json!({
                "run": { "operationId": "run", "parameters": { "id": "$response.body#/runs/0/id" } },
                "explained": { "operationId": "explained", "parameters": { "id": "$response.body#/runs/0/id" } },
                "events": { "operationId": "events", "parameters": { "id": "$response.body#/runs/0/id" } },
                "compare": {
                    "operationId": "compare",
                    "parameters": { "first": "$response.body#/runs/0/id", "second": "$response.body#/runs/1/id" },
                },
            })),
        )],
    );
    add(
        "/runs/backup",
        vec![(
            "get",
            reading("backUp", "Runs as one tar file, a folder a run", &[400, 404, 409])
                .with(vec![ids("ids", "Runs; none: every run that has ended.", false, moving::RUNS_MAX)])
                .answers(
                    200,
                    "The archive; broken off where it can't be finished.",
                    json!({ "application/x-tar": {} }),
                ),
        )],
    );
    add(
        "/runs/import",
        vec![(
            "post",
            operation("import", "Takes the runs of such a file in; those that are there already stay as they are", &[400, 413, 415, 500, 503])
                .sent(json!({ "application/x-tar": { "schema": { "description": format!("At most {} GiB.", IMPORT_BYTES_MAX >> 30) } } }))
                .answers(200, "What came in", as_json(of("Imported"))),
        )],
    );
    add(
        "/runs/{id}",
        vec![
            (
                "get",
                reading("run", "What was run, its levels and events, and every series with its number", &[400, 404, 409])
                    .with(id())
                    .answers(200, "The head of the run", as_json(of("Head")))
                    .links(json!({
                        "series": {
                            "operationId": "series",
                            "parameters": { "id": "$request.path.id", "numbers": "$response.body#/series/0/slot" },
                        },
                    })),
            ),
            (
                "delete",
                reading("remove", "Removes a run with everything in its folder", &[400, 404, 409])
                    .with(id())
                    .answers(200, "It is gone", as_json(of("Freed"))),
            ),
        ],
    );
    add(
        "/runs/{id}/explained",
        vec![(
            "get",
            reading(
                "explained",
                "The head with what was found, budget, threads and tables by level",
                &[400, 404, 409],
            )
            .with(id())
            .answers(200, "The head of the run", as_json(of("Head"))),
        )],
    );
    add(
        "/runs/{id}/blocks/{number}",
        vec![(
            "get",
            reading("block", "A block that the explained head refers to", &[400, 404, 409])
                .with(id())
                .with(vec![json!({
                    "name": "number", "in": "path", "required": true, "schema": { "type": "integer", "minimum": 0, "maximum": u32::MAX },
                })])
                .answers(200, "Raw-deflated", binary.clone()),
        )],
    );
    add(
        "/runs/{id}/catalogue",
        vec![(
            "get",
            reading("catalogue", "Series by words of their names", &[400, 404, 409])
                .with(id())
                .with(vec![
                    in_query("find", "Words that all occur in a series' names.", false, json!({ "type": "string" })),
                    in_query(
                        "limit",
                        "How many at most.",
                        false,
                        json!({ "type": "integer", "minimum": 0, "maximum": CATALOGUE_MAX, "default": CATALOGUE_MAX }),
                    ),
                ])
                .answers(200, "Those that were found", as_json(of("Catalogue"))),
        )],
    );
    add("/runs/{id}/series", vec![("get", series())]);
    add(
        "/runs/{id}/tables",
        vec![(
            "get",
            reading(
                "tables",
                "Statements, lock waits and the Performance Schema's views over a window",
                &[400, 404, 409],
            )
            .with(id())
            .with(window().into())
            .answers(
                200,
                "The tables, and their blocks deflated, as base64",
                as_json(of("Tables")),
            ),
        )],
    );
    add(
        "/runs/{id}/events",
        vec![(
            "get",
            reading("events", "What happened, notes among it", &[400, 404, 409]).with(id()).answers(
                200,
                "The events",
                as_json(of("Events")),
            ),
        )],
    );
    add(
        "/runs/{id}/log",
        vec![(
            "get",
            reading("log", "The end of the tested server's own log", &[400, 404]).with(id()).answers(
                200,
                "The text, where there is one",
                as_json(of("Log")),
            ),
        )],
    );
    add(
        "/runs/{id}/notes",
        vec![(
            "post",
            reading(
                "note",
                "Adds a note; without `at_s` it is of now, in a run that is being recorded",
                &[400, 404, 409, 413, 415],
            )
            .with(id())
            .sent(as_json(of("Note")))
            .answers(201, "It is kept.", Value::Null),
        )],
    );
    add(
        "/runs/{id}/prune",
        vec![(
            "post",
            reading(
                "prune",
                "Removes the oldest detail of a run until it is within a size, or only the newest is left: roll-ups, events and results stay",
                &[400, 404, 409, 413, 415],
            )
            .with(id())
            .sent(as_json(of("Prune")))
            .answers(200, "What that freed", as_json(of("Pruned"))),
        )],
    );
    add(
        "/bookmarks",
        vec![
            (
                "get",
                reading("charts", "Sets of charts: the user's own, and those that ship", &[])
                    .answers(200, "The sets", as_json(of("Bookmarks")))
                    .links(json!({
                        "toml": { "operationId": "chartsAsToml", "parameters": { "key": "$response.body#/sets/0/key" } },
                    })),
            ),
            (
                "put",
                reading("saveCharts", "Saves a set under its name, in place of the one that had it", &[400, 413, 415])
                    .sent(as_json(of("Bookmark")))
                    .answers(201, "It is kept.", Value::Null),
            ),
        ],
    );
    add(
        "/bookmarks/import",
        vec![(
            "post",
            reading("importCharts", "Saves a set that is given as TOML", &[400, 413, 415])
                .sent(json!({
                    "application/toml": { "schema": { "type": "string" } },
                    "text/plain": { "schema": { "type": "string" } },
                }))
                .answers(
                    201,
                    "It is kept under this name",
                    as_json(json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } })),
                ),
        )],
    );
    let key = || vec![in_path("key", "Of a set, as `GET /bookmarks` lists it.")];
    add(
        "/bookmarks/{key}",
        vec![(
            "delete",
            reading("removeCharts", "Removes a set of the user's own", &[400, 404]).with(key()).answers(
                204,
                "It is gone.",
                Value::Null,
            ),
        )],
    );
    add(
        "/bookmarks/{key}/toml",
        vec![(
            "get",
            reading("chartsAsToml", "A set as TOML", &[400, 404]).with(key()).answers(
                200,
                "The set",
                json!({ "application/toml": { "schema": { "type": "string" } } }),
            ),
        )],
    );
    add(
        "/live",
        vec![(
            "get",
            reading("live", "Servers that may be recorded from here", &[]).answers(
                200,
                "The servers",
                as_json(of("Live")),
            ),
        )],
    );
    let name = || vec![in_path("name", "Of a server, as `GET /live` lists it.")];
    add(
        "/live/{name}/start",
        vec![(
            "post",
            reading("start", "Begins to record a server", &[400, 404, 409]).with(name()).answers(
                202,
                "The recording is starting: `GET /live` shows its state.",
                Value::Null,
            ),
        )],
    );
    add(
        "/live/{name}/stop",
        vec![(
            "post",
            reading("stop", "Ends the recording of a server", &[400, 409]).with(name()).answers(
                202,
                "It is being ended.",
                Value::Null,
            ),
        )],
    );
    add("/compare", vec![("get", compare())]);
    add("/compare/flame", vec![("get", compare_flame())]);
    paths.into()
}

fn series() -> Operation {
    let modes = json!({ "type": "string", "enum": ["rate", "raw", "per_transaction"], "default": "rate" });
    let number = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let [from_s, to_s] = window();
    reading("series", "Series over a window, as a chart of a given width draws them", &[400, 404, 409])
        .with(vec![
            run_id(),
            listed(
                "numbers",
                "Of series: `slot` of a run's head, `number` of its catalogue.",
                true,
                json!({ "type": "array", "items": number, "minItems": 1, "maxItems": 400 }),
            ),
            from_s,
            to_s,
            in_query(
                "px",
                "How wide the chart is.",
                true,
                json!({ "type": "integer", "minimum": 16, "maximum": 4096 }),
            ),
            in_query(
                "mode",
                "What counters are drawn as; per transaction needs a run whose load was recorded.",
                false,
                modes,
            ),
            in_query(
                "top",
                "Of more series, those with the most to say; 0: all.",
                false,
                json!({ "type": "integer", "minimum": 0, "maximum": TOP_MAX, "default": 0 }),
            ),
            flag("sum", "One line, of the sum of all."),
            flag(
                "json",
                "As JSON; else the head with binary columns behind it, see docs/reference/web-api.md.",
            ),
        ])
        .answers(
            200,
            "The lines",
            json!({ "application/json": { "schema": of("Lines") }, "application/octet-stream": {} }),
        )
}

/// What is compared.
fn sides() -> [Value; 2] {
    const SIDE_MAX: usize = 20;
    [("first", "The first side"), ("second", "The second side")].map(|(name, about)| {
        let about = format!("{about}: runs, each as RUN or as RUN@FROM-TO, a window in seconds of the run.");
        ids(name, &about, true, SIDE_MAX)
    })
}

fn compare_flame() -> Operation {
    reading("compare_flame", "The stacks of what is compared in one tree of calls", &[400, 404])
        .with(sides().into())
        .answers(
            200,
            "The head of a flame graph, null where no stacks were taken, and the blocks that it refers to, deflated and as base64",
            as_json(json!({
                "type": "object",
                "required": ["flame", "blocks"],
                "properties": { "flame": { "type": ["object", "null"] }, "blocks": { "type": "array", "items": { "type": "string" } } },
            })),
        )
}

fn compare() -> Operation {
    let metrics =
        ["transactions_per_s", "queries_per_s", "latency_mean_ms", "latency_p95_ms", "latency_p99_ms"];
    reading("compare", "Runs against others, as `whyso compare` does", &[400, 404, 409])
        .with(sides().into_iter().chain([
            in_query(
                "metric",
                "What a level's result is asked for.",
                false,
                json!({ "type": "string", "enum": metrics, "default": metrics[0] }),
            ),
            flag("anyway", "Also runs of different workloads."),
        ]).collect())
        .answers(
            200,
            "Tables to be drawn, and what they are made of",
            as_json(json!({
                "type": "object",
                "required": ["tables", "comparison"],
                "properties": { "tables": { "type": "array", "items": of("CompareTable") }, "comparison": { "type": "object" } },
            })),
        )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_address_is_described_and_nothing_else() {
        let described = described("whyso_7979");
        let in_it: BTreeSet<&str> =
            described["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let answered: BTreeSet<&str> = super::super::routes().into_iter().map(|(path, _)| path).collect();
        assert_eq!(in_it, answered);
    }

    #[test]
    fn what_is_referred_to_is_there_and_names_are_used_once() {
        let described = described("whyso_7979");
        let text = described.to_string();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(described["components"]["schemas"][name].is_object(), "{name}");
        }
        let paths = described["paths"].as_object().unwrap();
        let operations = paths.values().flat_map(|methods| methods.as_object().unwrap().values());
        let ids: Vec<&str> = operations.map(|one| one["operationId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len());
        for link in text.split("{\"operationId\":\"").skip(1) {
            assert!(ids.contains(&link.split('"').next().unwrap()));
        }
    }
}

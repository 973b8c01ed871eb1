//! What is sent and answered as JSON.

use serde_json::{Value, json};

use super::of;
use crate::api::BODY_BYTES_MAX;

/// An object of these properties, all of them there. `more`: others, too.
fn object(properties: Value, more: bool) -> Value {
    let names: Vec<String> =
        properties.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
    let mut object = json!({ "type": "object", "required": names, "properties": properties });
    if !more {
        object["additionalProperties"] = false.into();
    }
    object
}

fn array(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

pub(super) fn all() -> Value {
    let (string, number, boolean) =
        (json!({ "type": "string" }), json!({ "type": "number" }), json!({ "type": "boolean" }));
    let count = json!({ "type": "integer", "minimum": 0 });
    let whole = json!({ "type": "integer" });
    let maybe = |name: &str| json!({ "type": [name, "null"] });
    let size = json!({
        "type": "string",
        "description": "Such as 200MiB.",
        "pattern": "^([0-9]{1,5}(\\.[0-9]{1,3})?[kKmMgG]|[0-9]{1,2}(\\.[0-9]{1,3})?[tT])[iI]?[bB]?$",
    });
    // No control characters, and more than blanks.
    let name = json!({ "type": "string", "minLength": 1, "maxLength": 80, "pattern": "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f])?$" });
    let drawn = json!({
        "type": "object",
        "required": ["source", "metric"],
        "additionalProperties": false,
        "properties": {
            "host": { "type": "string", "default": "server" },
            "source": string,
            "metric": string,
            "instance": { "type": ["string", "null"], "description": "None: all of them." },
        },
    });
    let chart = json!({
        "type": "object",
        "required": ["title", "series"],
        "additionalProperties": false,
        "properties": {
            "title": string,
            "series": { "type": "array", "items": drawn, "minItems": 1, "maxItems": 40 },
            "mode": { "type": "string", "enum": ["rate", "raw", "per_transaction"], "default": "rate" },
            "top": { "type": "integer", "minimum": 0, "maximum": 100, "default": 5 },
            "log": { "type": "boolean", "default": false },
            "sum": { "type": "boolean", "default": false },
        },
    });
    let charts = json!({ "type": "array", "items": chart, "minItems": 1, "maxItems": 60 });
    let about = json!({ "type": "string", "maxLength": 500, "default": "" });
    let event = object(json!({ "t_ns": whole, "host": string, "kind": string, "text": string }), true);
    let key = json!({ "host": string, "source": string, "metric": string, "instance": string, "kind": string, "unit": string });
    let mut numbered = key.clone();
    numbered["number"] = count.clone();
    let best = object(
        json!({ "users": count, "rate_per_s": maybe("number"), "transactions_per_s": number, "latency_p95_ms": number }),
        false,
    );
    let line = object(json!({ "number": maybe("integer"), "count": count, "band": boolean }), false);
    json!({
        "Error": object(json!({ "error": { "type": "string", "minLength": 1 } }), false),
        "Runs": object(json!({ "folder": string, "runs": array(of("Run")), "verdicts_coming": boolean }), false),
        "Run": object(json!({
            "id": string, "workload": string, "server": string, "host": string, "began_ms": maybe("integer"), "seconds": maybe("number"),
            "levels": count, "best": { "anyOf": [best, { "type": "null" }] },
            "verdict": { "type": ["string", "null"], "description": "The first finding; null until it is worked out, empty where there is none." },
            "notes": array(string.clone()), "bytes": count, "live": boolean, "ended": string,
        }), false),
        "Head": object(json!({
            "format": count, "run": { "type": "object" }, "explanation": { "type": "object" }, "events": array(event.clone()),
            "problems": array(string.clone()), "origin_ns": whole, "end_ns": whole,
            "series": array(json!({ "type": "object", "required": ["host", "source", "metric", "instance", "kind", "unit", "slot"] })),
        }), true),
        "Freed": object(json!({ "freed_bytes": count }), false),
        "Prune": object(json!({ "size": size }), false),
        "Pruned": object(json!({ "freed_bytes": count, "bytes": count }), false),
        "Imported": object(json!({ "imported": array(string.clone()), "there_already": array(string.clone()) }), false),
        "Catalogue": object(json!({ "found": count, "series": array(object(numbered, false)) }), false),
        "Lines": {
            "type": "object",
            "required": ["lines", "left", "columns"],
            "properties": { "lines": array(line), "left": count, "columns": array(array(maybe("number"))) },
        },
        "Tables": object(json!({ "tables": { "type": "object" }, "blocks": array(string.clone()) }), false),
        "Events": object(json!({ "events": array(event), "end_ns": whole, "live": boolean }), false),
        "Log": object(json!({ "there": boolean, "text": string, "left_out_bytes": count }), false),
        "Note": {
            "type": "object",
            "required": ["text"],
            "additionalProperties": false,
            "properties": {
                "at_s": { "type": ["number", "null"], "exclusiveMinimum": -1e9, "exclusiveMaximum": 999_999_999.0 },
                "text": {
                    "type": "string",
                    "minLength": 1,
                    "pattern": "[^\\s\\x00-\\x1f\\x7f-\\x9f]",
                    "description": format!("At most 2000 characters of it are kept; {} KiB at most may be sent.", BODY_BYTES_MAX >> 10),
                },
            },
        },
        "Bookmark": {
            "type": "object",
            "required": ["name", "chart"],
            "additionalProperties": false,
            "properties": { "name": name, "about": about, "chart": charts },
        },
        "Bookmarks": object(json!({
            "sets": array(object(json!({ "key": string, "own": boolean, "name": string, "about": string, "chart": array(json!({ "type": "object" })) }), false)),
            "problems": array(string.clone()),
        }), false),
        "Live": object(json!({ "servers": array(object(json!({
            "name": string, "phase": { "enum": ["idle", "starting", "recording", "ending", "failed"] }, "run": maybe("string"),
            "words": string, "warnings": array(string.clone()),
        }), false)) }), false),
        "CompareTable": object(json!({
            "title": string, "head": array(string.clone()), "words": array(count), "rows": array(array(string.clone())), "notes": array(string),
        }), true),
    })
}

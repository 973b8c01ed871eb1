//! What `--json` prints: one object, whose first key names the schema that it keeps to.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

/// Writes `object`, which keeps to the schema `name`: `whyso schema NAME` prints it.
pub(crate) fn write(mut out: impl Write, name: &str, object: impl Serialize) -> anyhow::Result<()> {
    let mut whole = Map::from_iter([("schema".to_string(), Value::String(name.to_string()))]);
    match serde_json::to_value(object)? {
        Value::Object(object) => whole.extend(object),
        other => return Err(io::Error::other(format!("not an object: {other}")).into()),
    }
    Ok(writeln!(out, "{}", serde_json::to_string_pretty(&whole)?)?)
}

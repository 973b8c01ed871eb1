//! A scenario's file as it is written, before it is checked.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) begin: Option<String>,
    pub(crate) think: Option<String>,
    pub(crate) cycle: Option<String>,
    pub(crate) redirects: Option<u32>,
    pub(crate) compressed: Option<bool>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) values: BTreeMap<String, ValueText>,
    #[serde(default)]
    pub(crate) page: Vec<PageText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageText {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) method: Option<String>,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) form: Option<BTreeMap<String, String>>,
    pub(crate) body: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) weight: Option<f64>,
    pub(crate) next: Option<BTreeMap<String, f64>>,
    pub(crate) think: Option<String>,
    pub(crate) cycle: Option<String>,
    pub(crate) goal_ms: Option<f64>,
    pub(crate) expect: Option<u16>,
    #[serde(default)]
    pub(crate) take: Vec<TakeText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeText {
    pub(crate) name: String,
    pub(crate) after: String,
    pub(crate) before: String,
}

/// `["red", "green"]`, or `{ from = 1, to = 1000 }`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum ValueText {
    List(Vec<String>),
    Range(RangeText),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RangeText {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

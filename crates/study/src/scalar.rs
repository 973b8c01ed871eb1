//! Values as the file has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A value as TOML has it; a knob takes it as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Bool(true) => formatter.write_str("ON"),
            Scalar::Bool(false) => formatter.write_str("OFF"),
            Scalar::Int(number) => number.fmt(formatter),
            Scalar::Float(number) => number.fmt(formatter),
            Scalar::Text(text) => formatter.write_str(text),
        }
    }
}

/// Names and values, as TOML has them.
pub(crate) type Values = BTreeMap<String, Scalar>;

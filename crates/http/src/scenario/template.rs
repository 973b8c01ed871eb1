//! Texts with values in them, such as `/item/{item}?page=2`.

use super::ScenarioError;
use crate::percent::{encode_component, encode_form};

/// A text with places for values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pub parts: Vec<Part>,
}

/// A part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(Vec<u8>),
    /// Place of a value among [`Scenario::value_names`](super::Scenario::value_names).
    Value(usize),
}

/// How values are written into a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// As they are.
    Plain,
    Path,
    Form,
}

impl Template {
    /// Parses a text. `{name}` is the place of a value, and any other brace is itself.
    pub(crate) fn parse(text: &str, place: &str, names: &[String]) -> Result<Template, ScenarioError> {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut plain = String::new();
        while let Some(open) = rest.find('{') {
            let name = rest[open + 1..].split('}').next().unwrap_or_default();
            let is_value = is_name(name) && rest[open + 1 + name.len()..].starts_with('}');
            if !is_value {
                plain.push_str(&rest[..=open]);
                rest = &rest[open + 1..];
                continue;
            }
            plain.push_str(&rest[..open]);
            let Some(value) = names.iter().position(|known| known == name) else {
                return Err(ScenarioError::UnknownValue { place: place.to_string(), name: name.to_string() });
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain).into_bytes()));
            }
            parts.push(Part::Value(value));
            rest = &rest[open + name.len() + 2..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain.into_bytes()));
        }
        Ok(Template { parts })
    }

    /// Appends the text with these values as they are, for a body of its own type.
    pub fn write(&self, values: &[Vec<u8>], out: &mut Vec<u8>) {
        self.write_as(Writing::Plain, values, out);
    }

    /// Appends the text with these values, encoded for a path or a query.
    pub fn write_path(&self, values: &[Vec<u8>], out: &mut Vec<u8>) {
        self.write_as(Writing::Path, values, out);
    }

    /// Appends the text with these values as a field of a form. The text itself is encoded too.
    pub fn write_form(&self, values: &[Vec<u8>], out: &mut Vec<u8>) {
        self.write_as(Writing::Form, values, out);
    }

    fn write_as(&self, writing: Writing, values: &[Vec<u8>], out: &mut Vec<u8>) {
        for part in &self.parts {
            match (part, writing) {
                (Part::Text(text), Writing::Form) => encode_form(out, text),
                (Part::Text(text), _) => out.extend_from_slice(text),
                (Part::Value(place), _) => {
                    let value = values.get(*place).map_or(&[][..], Vec::as_slice);
                    match writing {
                        Writing::Plain => out.extend_from_slice(value),
                        Writing::Path => encode_component(out, value),
                        Writing::Form => encode_form(out, value),
                    }
                }
            }
        }
    }
}

/// Whether a text can be the name of a value.
pub(crate) fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    text.bytes().next().is_some_and(is_letter)
        && text.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

//! Lists of values that parameters are drawn from: a file's lines, or a query's rows at the begin.

use serde::{Deserialize, Serialize};

use crate::error::WorkloadError;

/// A list of values. This crate reads no file and asks no server: the program that runs the workload gets what
/// [`source`](Dictionary::source) names, and hands it to [`Workload::fill`](crate::Workload::fill).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dictionary {
    pub name: String,
    pub source: DictionarySource,
    /// Empty until it is filled.
    pub values: DictionaryValues,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DictionarySource {
    /// Each line is a value.
    File(String),
    /// The first column of each row is a value.
    Query(String),
}

/// Numbers where each value is one, so that they are sent as numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DictionaryValues {
    Ints(Vec<i64>),
    Texts(Vec<Vec<u8>>),
}

/// Which value is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Any, all equally likely.
    Random,
    /// Transaction k of each user takes value k, and begins again after the last.
    Sequential,
    /// No transaction of any user takes a value that another takes; the load ends when they are used up.
    Unique,
}

impl Order {
    pub(crate) fn function(self) -> &'static str {
        match self {
            Order::Random => "random_from",
            Order::Sequential => "next_from",
            Order::Unique => "unique_from",
        }
    }
}

impl DictionaryValues {
    /// From lines or rows, in their order.
    pub fn new(values: Vec<Vec<u8>>) -> DictionaryValues {
        let as_int = |value: &Vec<u8>| {
            let number: i64 = std::str::from_utf8(value).ok()?.parse().ok()?;
            // What would read back otherwise, such as 007, is a text.
            (number.to_string().as_bytes() == value.as_slice()).then_some(number)
        };
        match values.iter().map(as_int).collect::<Option<Vec<i64>>>() {
            Some(ints) if !ints.is_empty() => DictionaryValues::Ints(ints),
            _ => DictionaryValues::Texts(values),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            DictionaryValues::Ints(values) => values.len(),
            DictionaryValues::Texts(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Dictionary {
    /// Takes the values.
    ///
    /// # Errors
    /// [`WorkloadError::EmptyDictionary`] where there is none.
    pub(crate) fn fill(&mut self, values: Vec<Vec<u8>>) -> Result<(), WorkloadError> {
        if values.is_empty() {
            return Err(WorkloadError::EmptyDictionary {
                name: self.name.clone(),
                source_of_values: self.source.to_string(),
            });
        }
        self.values = DictionaryValues::new(values);
        Ok(())
    }
}

impl std::fmt::Display for DictionarySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DictionarySource::File(path) => write!(f, "the lines of {path}"),
            DictionarySource::Query(sql) => write!(f, "the rows of {sql}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_all_numbers_are_sent_as_numbers() {
        let of =
            |values: &[&str]| DictionaryValues::new(values.iter().map(|v| v.as_bytes().to_vec()).collect());
        assert_eq!(of(&["1", "-2"]), DictionaryValues::Ints(vec![1, -2]));
        assert_eq!(of(&["1", "x"]).len(), 2);
        assert!(matches!(of(&["1", "007"]), DictionaryValues::Texts(_)));
    }
}

//! A knob that is swept within each start: what a fresh start for each value would take days for.

use serde::{Deserialize, Serialize};

use crate::scalar::Scalar;

/// Why a sweep can't be carried out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    #[error("inside: from {from} to {to} by steps of {step} is no sweep of 1 to {POINTS_MAX} values")]
    Range { from: i64, to: i64, step: i64 },
    #[error("inside: {0} values can't be swept: give 1 to {POINTS_MAX}")]
    Count(usize),
    #[error("inside: times = {0} can't be: give 1 to {TIMES_MAX}")]
    Times(u32),
    #[error("inside: {0:?} is no name of a variable")]
    Name(String),
    #[error("inside: {0:?} is no number: give such as 32768 or \"32K\"")]
    Number(String),
}

/// Most values of a sweep.
pub(crate) const POINTS_MAX: usize = 10_000;
/// Most times that a point's statement is run.
const TIMES_MAX: u32 = 100_000;

/// A variable of the session, the statement that it is tried on, and what the session counts meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSweep {
    /// Variable of the session.
    pub knob: String,
    pub values: Points,
    /// It is run so often with each value, one after the other on one connection.
    pub statement: String,
    #[serde(default = "times")]
    pub times: u32,
    /// Counters of `SHOW SESSION STATUS`, whose growth by execution is shown.
    #[serde(default)]
    pub status: Vec<String>,
}

fn times() -> u32 {
    12
}

/// The values that a knob gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Points {
    List(Vec<Scalar>),
    /// From … to, each so much above the one before.
    Range {
        from: Scalar,
        to: Scalar,
        step: Scalar,
    },
}

impl SessionSweep {
    /// Returns the values in ascending order, without repetition.
    ///
    /// # Errors
    /// They are no numbers, none, or too many.
    pub fn points(&self) -> Result<Vec<i64>, SweepError> {
        let mut points: Vec<i64> = match &self.values {
            Points::List(values) => values.iter().map(size).collect::<Result<_, _>>()?,
            Points::Range { from, to, step } => {
                let (from, to, step) = (size(from)?, size(to)?, size(step)?);
                let width = to.checked_sub(from).filter(|width| *width >= 0);
                if step < 1 || width.is_none_or(|width| width / step >= POINTS_MAX as i64) {
                    return Err(SweepError::Range { from, to, step });
                }
                (0..=width.unwrap_or(0) / step).map(|at| from + at * step).collect()
            }
        };
        points.sort_unstable();
        points.dedup();
        if points.is_empty() || points.len() > POINTS_MAX {
            return Err(SweepError::Count(points.len()));
        }
        Ok(points)
    }

    pub(crate) fn check(&self) -> Result<(), SweepError> {
        self.points()?;
        if !(1..=TIMES_MAX).contains(&self.times) {
            return Err(SweepError::Times(self.times));
        }
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        if let Some(wrong) = std::iter::once(&self.knob).chain(&self.status).find(|name| !is_name(name)) {
            return Err(SweepError::Name(wrong.clone()));
        }
        Ok(())
    }
}

/// A number, or one with K, M or G behind it, as the server's option files have it.
fn size(value: &Scalar) -> Result<i64, SweepError> {
    let text = value.to_string();
    let (digits, shift) = match text.to_ascii_uppercase().chars().last() {
        Some('K') => (&text[..text.len() - 1], 10),
        Some('M') => (&text[..text.len() - 1], 20),
        Some('G') => (&text[..text.len() - 1], 30),
        _ => (text.as_str(), 0),
    };
    let number = digits.parse::<i64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or(SweepError::Number(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(values: &str) -> SessionSweep {
        toml::from_str(&format!("knob = 'sort_buffer_size'\nvalues = {values}\nstatement = 'SELECT 1'\n"))
            .unwrap()
    }

    #[test]
    fn sizes_are_as_the_server_takes_them() {
        let points = sweep("{ from = '32K', to = '1000K', step = '32K' }").points().unwrap();
        assert_eq!((points.len(), points[0], points[30]), (31, 32_768, 31 * 32_768));
        assert_eq!(sweep("['1M', 5, 5, '2k']").points().unwrap(), [5, 2048, 1_048_576]);
    }

    #[test]
    fn what_is_no_sweep_is_refused() {
        for wrong in
            ["[]", "['x']", "{ from = 1, to = 0, step = 1 }", "{ from = 1, to = 9, step = 0 }", "[true]"]
        {
            assert!(sweep(wrong).points().unwrap_err().to_string().contains("inside"), "{wrong}");
        }
        let too_many = sweep("{ from = 0, to = 9223372036854775807, step = 1 }");
        assert!(too_many.points().is_err());
        let mut named = sweep("[1]");
        named.knob = "a; DROP TABLE t".to_string();
        assert!(named.check().unwrap_err().to_string().contains("no name"));
    }
}

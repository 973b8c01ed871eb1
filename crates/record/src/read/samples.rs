//! The readings of one series.

use whyso_series::{Points, growth};

use crate::data::Value;
use crate::run::Window;

/// Every whole number up to it is an `f64`.
const EXACT_MAX: u64 = 1 << 53;

/// Readings of one series in order of time: vectors of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// When taking each reading began.
    pub t_begin_ns: Vec<i64>,
    /// When it ended: the time at which it counts.
    pub t_end_ns: Vec<i64>,
    pub value: Vec<f64>,
    /// What each value lacks of the whole number that was recorded: those beyond 2⁵³ fit no `f64`. Empty where none does.
    low: Vec<f64>,
    /// When the series' source was to be read and was not.
    pub gaps: Vec<Window>,
}

impl Samples {
    pub fn len(&self) -> usize {
        self.value.len()
    }

    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    pub(super) fn reserve(&mut self, more: usize) {
        self.t_begin_ns.reserve(more);
        self.t_end_ns.reserve(more);
        self.value.reserve(more);
    }

    pub(super) fn push(&mut self, value: Value) {
        let rounded = value.as_f64();
        let low = match value {
            Value::Int(whole) if whole.unsigned_abs() > EXACT_MAX => {
                (i128::from(whole) - rounded as i128) as f64
            }
            Value::Int(_) | Value::Float(_) => 0.0,
        };
        if low != 0.0 {
            self.low.resize(self.value.len(), 0.0);
        }
        if low != 0.0 || !self.low.is_empty() {
            self.low.push(low);
        }
        self.value.push(rounded);
    }

    /// The number of reading `at` to its last digit, where that is beyond what every `f64` holds.
    pub fn whole(&self, at: usize) -> Option<i64> {
        let value = *self.value.get(at).filter(|value| value.abs() >= EXACT_MAX as f64)?;
        let low = self.low.get(at).copied().unwrap_or(0.0);
        i64::try_from(value as i128 + low as i128).ok()
    }

    /// The readings of a counter, like [`Samples::points`], where numbers beyond 2⁵³ become what they grew by since the first reading: exactly.
    pub fn counter_points(&self) -> Points {
        if self.low.is_empty() {
            return self.points();
        }
        let exact = |at: usize| self.value[at] as i128 + self.low.get(at).map_or(0, |low| *low as i128);
        let mut grown = 0.0;
        let mut value = Vec::with_capacity(self.value.len());
        for at in 0..self.value.len() {
            if at > 0 {
                grown += exact_growth(exact(at - 1), exact(at));
            }
            value.push(grown);
        }
        Samples { value, low: Vec::new(), ..self.clone() }.points()
    }

    /// The readings at the time at which they count, with `NaN` at the end of each gap.
    pub fn points(&self) -> Points {
        let count = self.value.len() + self.gaps.len();
        let mut points = Points { t_ns: Vec::with_capacity(count), value: Vec::with_capacity(count) };
        let mut gaps = self.gaps.iter().peekable();
        for (t_ns, value) in self.t_end_ns.iter().zip(&self.value) {
            while let Some(gap) = gaps.next_if(|gap| gap.end_ns < *t_ns) {
                points.t_ns.push(gap.end_ns);
                points.value.push(f64::NAN);
            }
            points.t_ns.push(*t_ns);
            points.value.push(*value);
        }
        for gap in gaps {
            points.t_ns.push(gap.end_ns);
            points.value.push(f64::NAN);
        }
        points
    }
}

/// What a counter of whole numbers grew by between two neighbouring readings, by the rules of [`growth`], to the last digit.
pub(super) fn exact_growth(then: i128, now: i128) -> f64 {
    if now >= then { (now - then) as f64 } else { growth(then as f64, now as f64) }
}

//! The values of one series in little memory: a value that does not change takes no room.

use whyso_record::data::{Kind, Value};

/// Times and values, ascending. Of readings with the same value the first and the last are kept. So it is known since when and until when the
/// value held.
#[derive(Debug, Default)]
pub(super) struct Points {
    t_ns: Vec<i64>,
    /// Of a counter: what it grew by since its first reading, across resets.
    value: Vec<f64>,
    /// A counter's latest reading, as the source reported it.
    latest: Option<Value>,
}

impl Points {
    pub(super) fn push(&mut self, kind: Kind, t_ns: i64, reading: Value) {
        if self.t_ns.last().is_some_and(|last| *last >= t_ns) {
            return;
        }
        let value = match (kind, self.latest, self.value.last()) {
            (Kind::Gauge, _, _) => reading.as_f64(),
            (Kind::Counter, Some(before), Some(sum)) => sum + grown(before, reading),
            (Kind::Counter, _, _) => 0.0,
        };
        self.latest = Some(reading);
        let count = self.value.len();
        let holds = count >= 2 && self.value[count - 1] == value && self.value[count - 2] == value;
        if holds {
            self.t_ns[count - 1] = t_ns;
        } else {
            self.t_ns.push(t_ns);
            self.value.push(value);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.t_ns.len()
    }

    pub(super) fn times_and_values(&self) -> (&[i64], &[f64]) {
        (&self.t_ns, &self.value)
    }

    /// The last reading until a time, and its value.
    pub(super) fn last_until(&self, t_ns: i64) -> Option<(i64, f64)> {
        let at = self.t_ns.partition_point(|at| *at <= t_ns).checked_sub(1)?;
        Some((self.t_ns[at], self.value[at]))
    }

    /// Forgets what was before `t_ns`, except for the reading that holds at that time.
    pub(super) fn forget_before(&mut self, t_ns: i64) {
        let first = self.t_ns.partition_point(|at| *at <= t_ns).saturating_sub(1);
        self.t_ns.drain(..first);
        self.value.drain(..first);
    }
}

/// Returns what a counter grew by, exactly where it counts in whole numbers.
fn grown(before: Value, now: Value) -> f64 {
    match (before, now) {
        (Value::Int(before), Value::Int(now)) if now >= before => now.abs_diff(before) as f64,
        (before, now) => {
            let grown = whyso_series::growth(before.as_f64(), now.as_f64());
            if grown.is_finite() { grown } else { 0.0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(kind: Kind, values: &[i64]) -> Points {
        let mut points = Points::default();
        for (at, value) in values.iter().enumerate() {
            points.push(kind, at as i64, Value::Int(*value));
        }
        points
    }

    #[test]
    fn what_does_not_change_takes_no_room_and_what_changes_is_exact() {
        let top = i64::MAX;
        let points = points(Kind::Counter, &[top - 9, top - 9, top - 9, top - 9, top - 2, top - 1, top]);
        assert_eq!(points.times_and_values(), (&[0, 3, 4, 5, 6][..], &[0.0, 0.0, 7.0, 8.0, 9.0][..]));
    }

    #[test]
    fn a_counter_that_began_again_grew_by_what_it_has() {
        assert_eq!(points(Kind::Counter, &[5, 9, 2, 4]).value, [0.0, 4.0, 6.0, 8.0]);
        assert_eq!(points(Kind::Gauge, &[5, 9, 2, 4]).value, [5.0, 9.0, 2.0, 4.0]);
    }

    #[test]
    fn what_is_reported_late_or_twice_is_left_out() {
        let mut points = points(Kind::Gauge, &[5, 9]);
        points.push(Kind::Gauge, 1, Value::Int(7));
        assert_eq!(points.value, [5.0, 9.0]);
    }

    proptest! {
        #[test]
        fn forgetting_changes_nothing_of_what_comes_after(
            values in prop::collection::vec(0i64..4, 1..60),
            cut in 0i64..60,
        ) {
            let whole = points(Kind::Gauge, &values);
            let mut rest = points(Kind::Gauge, &values);
            rest.forget_before(cut);
            prop_assert!(rest.len() <= whole.len());
            let after = |points: &Points| {
                whyso_series::mean_over(&points.t_ns, &points.value, cut, values.len() as i64)
            };
            prop_assert_eq!(after(&whole), after(&rest));
        }

        #[test]
        fn growth_over_a_window_is_that_of_all_readings(values in prop::collection::vec(0i64..9, 2..60), from in 0i64..30) {
            let mut sum = 0;
            let sums: Vec<i64> = values.iter().map(|value| { sum += value; sum }).collect();
            let stored = points(Kind::Counter, &sums);
            let t_ns: Vec<i64> = (0..sums.len() as i64).collect();
            let all: Vec<f64> = sums.iter().map(|sum| *sum as f64).collect();
            let to = sums.len() as i64;
            let expected = whyso_series::increase(&t_ns, &all, from, to).map(|grown| grown.amount);
            let found = whyso_series::increase(&stored.t_ns, &stored.value, from, to).map(|grown| grown.amount);
            prop_assert_eq!(expected, found);
        }
    }
}

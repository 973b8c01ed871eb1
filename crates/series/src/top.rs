//! The few of many that matter.

use crate::increase;

/// The `n` series that grew most over `[begin_ns, end_ns]`, most first, with what they grew by. Series without readings
/// in the window, and those that did not grow, are left out. Of equals the earlier one comes first.
pub fn top_by_increase<'a, K>(
    series: impl IntoIterator<Item = (K, &'a [i64], &'a [f64])>,
    begin_ns: i64,
    end_ns: i64,
    n: usize,
) -> Vec<(K, f64)> {
    let mut grown = Vec::new();
    for (key, t_ns, value) in series {
        let amount = increase(t_ns, value, begin_ns, end_ns).map_or(0.0, |increase| increase.amount);
        if amount > 0.0 {
            grown.push((key, amount));
        }
    }
    grown.sort_by(|a, b| b.1.total_cmp(&a.1));
    grown.truncate(n);
    grown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_grew_most_comes_first() {
        let t: &[i64] = &[0, 10];
        let series = [
            ("idle", t, &[5.0, 5.0][..]),
            ("slow", t, &[0.0, 1.0]),
            ("hot", t, &[100.0, 200.0]),
            ("gone", t, &[f64::NAN, 1.0]),
        ];
        assert_eq!(top_by_increase(series, 0, 10, 5), [("hot", 100.0), ("slow", 1.0)]);
        assert_eq!(top_by_increase(series, 0, 10, 1), [("hot", 100.0)]);
    }
}

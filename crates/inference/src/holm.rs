//! Many comparisons: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.

/// Returns the probabilities in their order, corrected so that the chance of a wrong finding among all of them is that of one test.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut corrected = vec![1.0; p.len()];
    let mut highest: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        highest = highest.max((p[at] * (p.len() - rank) as f64).min(1.0));
        corrected[at] = highest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_smallest_counts_for_all_and_none_is_below_one_before_it() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (found, expected) in corrected.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert!(holm(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_becomes_likelier_and_the_order_stays(p in prop::collection::vec(0.0f64..=1.0, 1..30)) {
            let corrected = holm(&p);
            for (at, one) in p.iter().enumerate() {
                prop_assert!(corrected[at] >= *one && corrected[at] <= 1.0);
                for (other_at, other) in p.iter().enumerate() {
                    prop_assert!(one > other || corrected[at] <= corrected[other_at]);
                }
            }
        }
    }
}

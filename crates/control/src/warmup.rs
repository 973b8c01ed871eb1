//! When is a level warm? Pure: throughput in, yes or no out.
//!
//! Throughput is measured in slots of half a second. A level is warm when the last three slots hold no trend and little
//! spread. Each lies within [`SPREAD`] of their mean. The mean of the last two slots lies within [`TREND`] of that of
//! the two before. Slots with few transactions spread by chance, so the bound grows by twice the Poisson deviation of a
//! slot.

/// How far a slot may lie from the mean of the last three, as a fraction.
pub(crate) const SPREAD: f64 = 0.10;
/// How far the mean of the last two slots may lie from that of the two before, as a fraction.
pub(crate) const TREND: f64 = 0.05;
/// Slots that are needed before anything is called steady.
const SLOTS_MIN: usize = 4;

/// Whether throughput has become steady. `slots` are transactions in each half second so far, in order.
pub(crate) fn is_steady(slots: &[u64]) -> bool {
    if slots.len() < SLOTS_MIN {
        return false;
    }
    let last = &slots[slots.len() - SLOTS_MIN..];
    let mean = last[1..].iter().sum::<u64>() as f64 / 3.0;
    if mean < 1.0 {
        return false;
    }
    let chance = 2.0 / mean.sqrt();
    let spread_max = (SPREAD + chance) * mean;
    for &slot in &last[1..] {
        if (slot as f64 - mean).abs() > spread_max {
            return false;
        }
    }
    let before = (last[0] + last[1]) as f64;
    let after = (last[2] + last[3]) as f64;
    (after - before).abs() <= (TREND + chance) * before.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_when_flat_and_not_before() {
        assert!(!is_steady(&[]));
        assert!(!is_steady(&[5000, 5010, 4990]));
        assert!(is_steady(&[100, 5000, 5010, 4990, 5020]));
        assert!(!is_steady(&[100, 2000, 4000, 5000]));
        assert!(!is_steady(&[5000, 5000, 5000, 2000]));
        assert!(!is_steady(&[0, 0, 0, 0]));
    }

    #[test]
    fn few_transactions_may_spread_by_chance() {
        assert!(is_steady(&[9, 12, 10, 8]));
        assert!(!is_steady(&[2, 12, 30, 60]));
    }
}

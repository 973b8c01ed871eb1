//! Estimates of gains, as experiments bore them out.
//!
//! A closed system gives two bounds. `bench/proof` removed causes, and measured what that gains. Without a wait, throughput hardly ever ended near
//! the low bound, so that one moves up. With other CPUs, the bounds are close to each other, and 7 of 19 gains lay outside of them. So they get wider.
//!
//! These figures were fitted on 35 estimates for set-ups of `bench/proof`, and on those of `tests/gains.rs`. On the next nine set-ups, 7 of 14
//! estimates held, and most others missed by little. So all bounds have a margin: the smallest with which four of five hold. With the margin that
//! the other causes ask for, 12 of the 14 hold. What the estimates are worth elsewhere stands in `bench/proof/PLANTS.md`.

use super::closed_system::{GAIN_MAX, GAIN_MIN};
use super::model::{Cause, Gain};

/// By how much of the low bound's own gain it moves towards the high one, in logarithms.
const RAISED: f64 = 0.5;
/// What windows of a server differ by, whatever is changed, as a factor of each bound.
const WAIT_MARGIN: f64 = 1.05;
const CPU_MARGIN: f64 = 1.1;
/// On top of that, of all causes.
const MARGIN: f64 = 1.08;

/// What the removal of a cause gains.
pub(super) fn gain_without(cause: Cause, modelled: Gain) -> Gain {
    let fitted = match cause {
        // Their bounds are two cases: twice the CPUs and one for each user; as many users as now, and as many as fill the CPUs.
        Cause::Cpu | Cause::Unsaturated => modelled,
        // Of how much work goes, they have two assumptions.
        Cause::FullScan | Cause::ConnectionChurn | Cause::Generator | Cause::Observer => modelled,
        Cause::Runqueue | Cause::CpuQuota | Cause::NoisyNeighbour => widened(modelled, CPU_MARGIN),
        _ => without_wait(modelled),
    };
    widened(fitted, MARGIN)
}

/// What other CPUs gain.
pub(super) fn with_cpus(modelled: Gain) -> Gain {
    widened(modelled, CPU_MARGIN * MARGIN)
}

fn without_wait(Gain { low, high }: Gain) -> Gain {
    // Where next to nothing is sure to be gained, the low bound stays.
    let raised = low * low.min(high / low).powf(RAISED);
    widened(Gain { low: raised, high }, WAIT_MARGIN)
}

fn widened(Gain { low, high }: Gain, times: f64) -> Gain {
    if high < GAIN_MIN {
        return Gain { low, high };
    }
    Gain { low: (low / times).max(1.0), high: (high * times).min(GAIN_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(cause: Cause, (low, high): (f64, f64), (fitted_low, fitted_high): (f64, f64)) {
        let fitted = gain_without(cause, Gain { low, high });
        assert!(
            (fitted.low - fitted_low).abs() < 0.01 && (fitted.high - fitted_high).abs() < 0.01,
            "{fitted:?}"
        );
    }

    #[test]
    fn the_low_bound_of_waits_moves_up() {
        // Half of the way up by the low bound's own gain, and each bound with 5 %; then the margin of all.
        let margin = 1.05 * MARGIN;
        is(Cause::RowLock, (4.0, 64.0), (8.0 / margin, 64.0 * margin));
        is(Cause::RowLock, (4.0, 5.0), (4.0 * 1.25_f64.sqrt() / margin, 5.0 * margin));
        is(Cause::RowLock, (1.0, 16.0), (1.0, 16.0 * margin));
        is(Cause::RowLock, (1.0, 1.0), (1.0, 1.0));
        is(Cause::RowLock, (1.0, 1_000.0), (1.0, 1_000.0));
        is(Cause::FullScan, (4.0, 64.0), (4.0 / MARGIN, 64.0 * MARGIN));
    }

    #[test]
    fn bounds_of_cpus_get_wider() {
        is(Cause::Runqueue, (1.2, 1.3), (1.2 / 1.1 / MARGIN, 1.3 * 1.1 * MARGIN));
        is(Cause::Cpu, (1.2, 1.3), (1.2 / MARGIN, 1.3 * MARGIN));
        is(Cause::Unsaturated, (1.0, 10.0), (1.0, 10.0 * MARGIN));
        let cpus = with_cpus(Gain { low: 1.2, high: 1.3 });
        assert!((cpus.high - 1.3 * 1.1 * MARGIN).abs() < 0.01, "{cpus:?}");
    }
}

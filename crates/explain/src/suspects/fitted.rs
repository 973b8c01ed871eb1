//! Estimates of gains, as experiments bore them out.
//!
//! A closed system gives two bounds. `bench/proof` removed causes, and measured what that gains. Without a wait, throughput hardly ever ended near
//! the low bound, so that one moves up. With other CPUs, the bounds are close to each other, and 7 of 19 gains lay outside of them. So they get wider.
//!
//! These figures were fitted on 35 estimates for set-ups of `bench/proof`, and on those of `tests/gains.rs`. On the next nine set-ups, 7 of 14
//! estimates held, and most others lay a little above the high bound. So all high bounds are raised, by the least with which four of five hold. With
//! the raise that the other causes ask for, 12 of the 14 hold. What the estimates are worth elsewhere stands in `bench/proof/PLANTS.md`.

use super::closed_system::{GAIN_MAX, GAIN_MIN};
use super::model::{Cause, Gain};

/// By how much of the low bound's own gain it moves towards the high one, in logarithms.
const RAISED: f64 = 0.5;
/// What windows of a server differ by, whatever is changed, as a factor of each bound.
const WAIT_MARGIN: f64 = 1.05;
const CPU_MARGIN: f64 = 1.1;
/// On top of that, the high bound of all causes that experiments tested.
const HIGHER: f64 = 1.09;

/// What the removal of a cause gains.
pub(super) fn gain_without(cause: Cause, modelled: Gain) -> Gain {
    let fitted = match cause {
        // Its bounds are two cases: as many users as now, and as many as fill the CPUs.
        Cause::Unsaturated => return modelled,
        // So are these: twice the CPUs, and one for each user.
        Cause::Cpu => modelled,
        // Of how much work goes, they have two assumptions.
        Cause::FullScan | Cause::ConnectionChurn | Cause::Generator | Cause::Observer => modelled,
        Cause::Runqueue | Cause::CpuQuota | Cause::NoisyNeighbour => widened(modelled, CPU_MARGIN),
        _ => without_wait(modelled),
    };
    raised(fitted)
}

/// What other CPUs gain.
pub(super) fn with_cpus(modelled: Gain) -> Gain {
    raised(widened(modelled, CPU_MARGIN))
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

fn raised(Gain { low, high }: Gain) -> Gain {
    let higher = if high < GAIN_MIN { high } else { (high * HIGHER).min(GAIN_MAX) };
    Gain { low, high: higher }
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
        // Half of the way up by the low bound's own gain, and each bound with 5 %; then the high one's raise.
        let high = 1.05 * HIGHER;
        is(Cause::RowLock, (4.0, 64.0), (8.0 / 1.05, 64.0 * high));
        is(Cause::RowLock, (4.0, 5.0), (4.0 * 1.25_f64.sqrt() / 1.05, 5.0 * high));
        is(Cause::RowLock, (1.0, 16.0), (1.0, 16.0 * high));
        is(Cause::RowLock, (1.0, 1.0), (1.0, 1.0));
        is(Cause::RowLock, (1.0, 1_000.0), (1.0, 1_000.0));
        is(Cause::FullScan, (4.0, 64.0), (4.0, 64.0 * HIGHER));
    }

    #[test]
    fn bounds_of_cpus_get_wider() {
        is(Cause::Runqueue, (1.2, 1.3), (1.2 / 1.1, 1.3 * 1.1 * HIGHER));
        is(Cause::Cpu, (1.2, 1.3), (1.2, 1.3 * HIGHER));
        is(Cause::Unsaturated, (1.0, 10.0), (1.0, 10.0));
        let cpus = with_cpus(Gain { low: 1.2, high: 1.3 });
        assert!((cpus.high - 1.3 * 1.1 * HIGHER).abs() < 0.01, "{cpus:?}");
    }
}

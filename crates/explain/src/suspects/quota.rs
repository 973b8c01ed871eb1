//! A limit on CPU time that a control group has: the kernel stops the server's threads until the next period.

use super::case::{Case, Measure};
use super::claim::Claim;
use super::model::Cause;
use crate::model::Part;

const SOURCE: &str = "cgroup";
/// The sampler's name for the server's group.
const INSTANCE: &str = "server";

/// Stops for a smaller share of the time are nobody's trouble.
const STOPPED_MIN: f64 = 0.01;

/// For how long the limit stopped the server's threads.
struct Stops {
    /// Share of the window, 0 to 1.
    share: f64,
    /// Share of the periods, 0 to 1; `None` where they were not counted.
    of_periods: Option<f64>,
    measure: Measure,
}

fn stops(case: &Case) -> Option<Stops> {
    let measure = case.measure(SOURCE, "cpu_throttled_ns", INSTANCE)?;
    let count = |metric: &str| case.measure(SOURCE, metric, INSTANCE).map(|measure| measure.per_s);
    let of_periods = count("cpu_throttled_periods")
        .zip(count("cpu_periods"))
        .map(|(stopped, all)| stopped / all)
        .filter(|share| share.is_finite())
        .map(|share| share.clamp(0.0, 1.0));
    // Stops are added up over CPUs. Several CPUs are stopped at the same time: then a period's share of the stops bounds the time.
    let share = (measure.per_s / 1e9).min(of_periods.unwrap_or(1.0)).clamp(0.0, 1.0);
    (share >= STOPPED_MIN).then_some(Stops { share, of_periods, measure })
}

/// Time of the mean transaction in which a thread of the server was ready and the limit stopped it, in ms. It is no more than all such
/// waits, and no more than the share of the time for which there were stops.
pub(super) fn stopped_ms(case: &Case) -> f64 {
    stops(case).map_or(0.0, |stops| held_ms(case, &stops))
}

fn held_ms(case: &Case, stops: &Stops) -> f64 {
    let ready_ms = match case.budget {
        // Threads that are woken while they are stopped run first on a CPU that was idle, and requests arrive meanwhile.
        Some(budget) => budget.ms(Part::Runqueue) + budget.ms(Part::Wakeup),
        // Without a trace all that the server's CPU time and the generator leave open.
        None => (case.response_ms - case.cpu_ms() - case.client_cpu_ms()).max(0.0),
    };
    ready_ms.min(stops.share * case.response_ms)
}

pub(super) fn claim(case: &Case) -> Option<Claim> {
    let stops = stops(case)?;
    let limit = case.level.gauge(SOURCE, "cpu_limit", INSTANCE);
    let of = limit.map_or(String::new(), |limit| format!(" of {} CPUs", whyso_words::number(limit.mean)));
    let periods = stops.of_periods.map_or(String::new(), |share| {
        format!(", in {} of the limit's periods", whyso_words::percent(share))
    });
    let why = format!(
        "the limit{of} that the server's control group has stopped its threads for {} s in each second, added up over CPUs{periods}",
        whyso_words::number(stops.measure.per_s / 1e9)
    );
    Some(
        Claim::new(Cause::CpuQuota, "the CPU quota of the server's control group holds", why)
            .holds(held_ms(case, &stops))
            .certain(0.95)
            .rests_on([case.series(&stops.measure.series)])
            .rests_on(limit.map(|limit| case.series(&limit.series)))
            .rests_on(case.parts(&[Part::Runqueue, Part::Wakeup])),
    )
}

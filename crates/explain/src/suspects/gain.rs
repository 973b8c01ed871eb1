//! What throughput would be without a suspect: bounds, from operational laws.
//!
//! Users that wait for nothing between transactions make throughput N ÷ R (J. D. C. Little, 1961). A part of share s taken
//! off the response time gives at most 1 ÷ (1 − s) of the throughput. A resource that is used for U of its time can't
//! be used for more than all of it: at most 1 ÷ U (the utilization law; P. J. Denning and J. P. Buzen, "The operational
//! analysis of queueing network models", ACM Computing Surveys 10, 1978), unless what is taken off is work on that resource.

use super::case::Case;
use super::model::{Cause, Gain, Suspect};
use crate::numbers;

/// No prediction goes beyond this.
const GAIN_MAX: f64 = 100.0;

/// Of a wait that goes away, this much at least comes back as a wait for the next resource, where nothing tells how much.
const COMES_BACK: f64 = 0.5;

pub(super) fn predict(
    case: &Case,
    cause: Cause,
    share: f64,
    certainty: f64,
    frees_cpu: bool,
) -> Option<Gain> {
    let used = case.cpus_used().unwrap_or(0.0);
    let at_most_of_cpus = if used > 1.0 / GAIN_MAX { 1.0 / used } else { GAIN_MAX };
    if cause == Cause::Unsaturated {
        return Some(Gain { low: 1.0, high: at_most_of_cpus });
    }
    if cause == Cause::Cpu {
        // With a CPU for each user, the queues go and the work stays: of N users' time, what m CPUs worked is U·m ÷ N.
        let by_law = used * f64::from(case.machine.server_cpus) / f64::from(case.level.users.max(1));
        let work = case.share(case.cpu_ms() + case.client_cpu_ms()).max(by_law);
        let queues = share - work;
        let high = without(queues.max(0.0));
        return Some(Gain { low: without(queues.max(0.0) * certainty * COMES_BACK).min(high), high });
    }
    let bound = if frees_cpu { GAIN_MAX } else { at_most_of_cpus };
    let high = without(share).min(bound).max(1.0);
    let low = without(share * certainty * COMES_BACK).min(high).max(1.0);
    (cause != Cause::Unknown).then_some(Gain { low, high })
}

/// Throughput where this share of the response time is gone.
fn without(share: f64) -> f64 {
    (1.0 / (1.0 - share.clamp(0.0, 1.0))).min(GAIN_MAX)
}

/// " Without it throughput would be 1.2 to 2.1 times what it is."
pub(super) fn sentence(suspect: &Suspect) -> String {
    let Some(Gain { low, high }) = suspect.predicted_gain else {
        return String::new();
    };
    if suspect.id == Cause::Cpu && high < 1.01 {
        return " More CPUs would change nothing, for next to nothing queues for them.".to_string();
    }
    let bounds = if high < 1.01 {
        "throughput would be the same, for the CPUs are full".to_string()
    } else if numbers::plain(low) == numbers::plain(high) {
        format!("throughput would be as much as {} times what it is", numbers::plain(high))
    } else {
        format!("throughput would be {} to {} times what it is", numbers::plain(low), numbers::plain(high))
    };
    match suspect.id {
        Cause::Unknown => String::new(),
        Cause::Unsaturated => format!(" With more users {bounds}."),
        _ => format!(" Without it {bounds}."),
    }
}

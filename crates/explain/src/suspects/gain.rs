//! An estimate of throughput without a suspect: two bounds, from the server's and the generator's own demand.
//!
//! The closed system ([`super::closed_system`]) has the CPU time that a transaction takes, and the time that no CPU holds. What the suspect
//! holds is taken out, and throughput is computed again, so that queues shrink where the demand falls. The low bound lets all
//! other waits stay as long as they are. The high bound is the asymptotic one. Nobody queues for a CPU or a lock that no other suspect was
//! measured to hold. A transaction takes the least CPU time that it took at any level with as few users. Then [`fitted`] has what experiments
//! showed of such bounds.
//!
//! Where waits go, what the kernel does for them goes, too: it puts threads to sleep, wakes them, reads and writes. How much of the
//! kernel's time that is, nothing measures. So of the CPU time only what ran in user code is sure to stay.
//!
//! Where the evidence gives no bounds there is no estimate. The server does not slow down an open loop or a recorded load,
//! and for some servers the CPU time is not known.

use super::case::{Case, FULL};
use super::closed_system::{GAIN_MIN, HeldTime, STATEMENT_MS, System};
use super::fitted;
use super::model::{Cause, CpuGains, Gain, Suspect};

/// CPU time of the load generator for a statement on a connection that stays, at least, in ms. Measured here with io_uring: 0.0054 to 0.011.
const CLIENT_STATEMENT_MS: f64 = 0.005;

/// The estimate without this suspect, where others hold so much.
pub(super) fn predict(case: &Case, held: HeldTime, all: &[HeldTime]) -> Option<Gain> {
    let system = System::new(case, all)?;
    let (low, high) = match held.cause {
        Cause::Unknown => return None,
        Cause::Unsaturated => (system.per_ms, system.capacity()?),
        Cause::Cpu => (system.with_cpus(2.0)?, system.with_cpus(system.users)?),
        Cause::Runqueue | Cause::CpuQuota | Cause::NoisyNeighbour => {
            (system.undisturbed()?, system.at_best(held, all, system.least_ms)?)
        }
        Cause::FullScan | Cause::TmpTableSort if held.cpu_share > 0.0 => {
            let [least, most] = system.work_by_index(case, held)?;
            // Stacks show that what goes is no more than its share: the statement's parsing, planning and sending stay.
            let most = match case.level.activities {
                Some(_) => {
                    [system.demand_ms[0] * (1.0 - held.cpu_share * held.certainty), system.demand_ms[1]]
                }
                None => most,
            };
            (system.with_demand(most, held.ms)?, system.at_best(held, all, least)?)
        }
        Cause::Generator if system.is_generator_full => return None,
        Cause::Generator => {
            let [server_ms, client_ms] = system.demand_ms;
            let left = [server_ms, client_ms * (1.0 - held.certainty)];
            (system.with_demand(left, 0.0)?, system.at_best(held, all, [system.least_ms[0], 0.0])?)
        }
        Cause::ConnectionChurn => {
            let [server_ms, client_ms] = system.demand_ms;
            let of_stacks = super::activities::work_share(case, held.cause);
            let work = of_stacks.max(super::load::connecting_share(case, server_ms));
            let left = [server_ms * (1.0 - work * held.certainty), client_ms];
            // What a new connection costs its statements, nothing measures: at best they take as little as on one that stays.
            let statements = case.level.queries as f64 / case.transactions;
            let least = [(STATEMENT_MS[0], server_ms), (CLIENT_STATEMENT_MS, client_ms)]
                .map(|(statement_ms, now_ms)| (statement_ms * statements).min(now_ms));
            (system.with_demand(left, held.ms * held.certainty)?, system.at_best(held, all, least)?)
        }
        _ => {
            let without =
                |share: f64, [server_ms, client_ms]: [f64; 2]| [server_ms * (1.0 - share), client_ms];
            let work = held.cpu_share.max(super::activities::work_share(case, held.cause));
            // A queue for the CPUs that the model does not explain may take what a wait leaves.
            let gone_ms = (held.ms * held.certainty - system.unexplained_ms).max(0.0);
            let least_ms = if held.ms > 0.0 { system.least_user_ms } else { system.least_ms };
            (
                system.with_demand(without(work * held.certainty, system.demand_ms), gone_ms)?,
                system.at_best(held, all, without(work, least_ms))?,
            )
        }
    };
    Some(fitted::gain_without(held.cause, system.gain(low, high)))
}

/// What other CPUs would give at a level where others hold so much.
pub(super) fn with_other_cpus(case: &Case, all: &[HeldTime]) -> CpuGains {
    let Some(system) = System::new(case, all) else { return CpuGains::default() };
    let gain = |(low, high): (f64, f64)| fitted::with_cpus(system.gain(low, high));
    CpuGains {
        every_cpu: system.with_every_cpu(all).map(gain),
        twice_the_speed: system.at_twice_the_speed(all).map(gain),
    }
}

/// What bounds the gain of more CPUs, as a part of a sentence. It is what a transaction would still take with one CPU for each user, or a
/// full generator. `None` where there is no estimate, and where nothing measured the queues: then the model's waits are no more than a guess.
pub(super) fn left_with_enough_cpus(case: &Case, all: &[HeldTime]) -> Option<String> {
    let system = System::new(case, all)?;
    let per_ms = system.with_cpus(system.users)?;
    let [server_ms, client_ms] = system.demand_ms;
    if !system.is_shared && per_ms * client_ms > FULL * system.client_cpus {
        return Some(
            "with more CPUs for the server, those of the load generator would be the limit".to_string(),
        );
    }
    if !case.is_traced() {
        return None;
    }
    let (work_ms, waits_ms) = (server_ms + client_ms, (system.delay_ms - system.pause_ms).max(0.0));
    Some(format!(
        "with a CPU for each user a {} would still take an estimated {}: {} of work on CPUs, the load generator's included, and {} of waits that \
         no CPU shortens",
        case.unit(),
        whyso_words::milliseconds(work_ms + waits_ms),
        whyso_words::milliseconds(work_ms),
        whyso_words::milliseconds(waits_ms)
    ))
}

/// " Estimate: without it, throughput would be 1.2 to 2.1 times what it is."
pub(super) fn sentence(suspect: &Suspect) -> String {
    let Some(Gain { low, high }) = suspect.predicted_gain else {
        return String::new();
    };
    if suspect.id == Cause::Cpu {
        return match high < GAIN_MIN {
            true => {
                " Estimate: more CPUs would change nothing, for next to nothing queues for them.".to_string()
            }
            false => {
                let (low, high) = (whyso_words::number(low), whyso_words::number(high));
                let each = if low == high { "no more".to_string() } else { format!("{high} times") };
                format!(
                    " Estimate: throughput would be {low} times what it is with twice the CPUs, and {each} with one for each user."
                )
            }
        };
    }
    let bounds = if high < GAIN_MIN {
        "throughput would be the same".to_string()
    } else if whyso_words::number(low) == whyso_words::number(high) {
        format!("throughput would be {} times what it is", whyso_words::number(high))
    } else {
        format!(
            "throughput would be {} to {} times what it is",
            whyso_words::number(low),
            whyso_words::number(high)
        )
    };
    let when = if suspect.id == Cause::Unsaturated { "with more users" } else { "without it" };
    format!(" Estimate: {when}, {bounds}.")
}

//! A proxy between clients and the servers of a cluster.

use super::case::Case;
use super::claim::Claim;
use super::model::Cause;
use crate::model::{NodeInput, Part};
use crate::nodes::{self, Applier};

const ROLE: &str = "proxy";
/// A smaller share of the response time is nobody's trouble.
const SHARE_MIN: f64 = 0.02;

/// The proxy through which the servers are loaded; `None` where there is none.
pub(super) fn of<'a>(case: &Case<'a, '_>) -> Option<&'a NodeInput> {
    case.level.nodes.iter().find(|node| node.role == ROLE)
}

/// Time per transaction for which the proxy waited for a CPU while all were busy: who fills them holds it. The proxy's busiest thread wanted
/// to work for a part of the time, and waited for a CPU in a share of that. It is this share of the time on the way. 0 where CPUs were
/// available, no thread was traced, or the server has CPUs that the others may not use.
pub(super) fn queued_ms(case: &Case) -> f64 {
    let is_shared = case.machine.shared && case.are_cpus_full();
    let thread = of(case).filter(|_| is_shared).and_then(|proxy| busiest_thread(case, proxy));
    let Some(thread) = thread else { return 0.0 };
    let queued = share(&thread, Part::Runqueue);
    let wanted = queued + share(&thread, Part::Cpu);
    if wanted > 0.0 { case.ms(Part::TransitOut) * queued / wanted } else { 0.0 }
}

fn busiest_thread(case: &Case, proxy: &NodeInput) -> Option<Applier> {
    let states = nodes::states(case.level);
    states.into_iter().find(|state| state.name == proxy.name)?.applier
}

/// Share of the time that a thread was in this state.
fn share(thread: &Applier, part: Part) -> f64 {
    thread.states.iter().filter(|state| state.state == part.name()).map(|state| state.share).sum()
}

/// What passes between sending and answer, and neither side accounts for, is the proxy's.
pub(super) fn claims(case: &Case) -> Vec<Claim> {
    claim(case).into_iter().collect()
}

fn claim(case: &Case) -> Option<Claim> {
    let proxy = of(case)?;
    let queued_ms = queued_ms(case);
    let ms = case.ms(Part::TransitOut) - queued_ms;
    if case.share(ms) < SHARE_MIN {
        return None;
    }
    let unit = case.unit();
    let cpu_ms =
        nodes::counter(proxy, "server_process", "run_ns", "server").map(|ns| ns / 1e6 / case.transactions);
    let took = cpu_ms.map_or(String::new(), |ms| {
        format!("; it took {} of CPU time for each", whyso_words::milliseconds(ms))
    });
    let busiest = busiest_thread(case, proxy).map_or(String::new(), |thread| {
        format!(
            ", and its busiest thread worked for {} of the time, and waited for a CPU for {}",
            whyso_words::percent(share(&thread, Part::Cpu)),
            whyso_words::percent(share(&thread, Part::Runqueue))
        )
    });
    let elsewhere = if queued_ms > 0.0 {
        format!("; its wait for full CPUs, {}, is counted with them", whyso_words::milliseconds(queued_ms))
    } else {
        String::new()
    };
    let why = format!(
        "{} per {unit} passed between clients and servers, where {} passes bytes on{took}{busiest}{elsewhere}",
        whyso_words::milliseconds(ms),
        proxy.name
    );
    Some(
        Claim::new(Cause::Proxy, "the proxy holds", why)
            .holds(ms)
            .certain(0.85)
            .rests_on(case.parts(&[Part::TransitOut]))
            .rests_on(nodes::evidence(case.level, proxy, "server_process", "run_ns")),
    )
}

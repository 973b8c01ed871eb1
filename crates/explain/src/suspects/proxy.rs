//! A proxy between clients and the servers of a cluster.

use super::case::Case;
use super::claim::Claim;
use super::model::Cause;
use crate::model::{NodeInput, Part};
use crate::nodes;

const ROLE: &str = "proxy";
/// A smaller share of the response time is nobody's trouble.
const SHARE_MIN: f64 = 0.02;

/// The proxy through which the servers are loaded; `None` where there is none.
pub(super) fn of<'a>(case: &Case<'a, '_>) -> Option<&'a NodeInput> {
    case.level.nodes.iter().find(|node| node.role == ROLE)
}

/// What passes between sending and answer, and neither side accounts for, is the proxy's: its work, and its own queue for CPUs.
pub(super) fn claims(case: &Case) -> Vec<Claim> {
    claim(case).into_iter().collect()
}

fn claim(case: &Case) -> Option<Claim> {
    let proxy = of(case)?;
    let ms = case.ms(Part::TransitOut);
    if case.share(ms) < SHARE_MIN {
        return None;
    }
    let unit = case.unit();
    let states = nodes::states(case.level);
    let state = states.iter().find(|state| state.name == proxy.name);
    let cpu_ms =
        nodes::counter(proxy, "server_process", "run_ns", "server").map(|ns| ns / 1e6 / case.transactions);
    let took = cpu_ms.map_or(String::new(), |ms| {
        format!("; it took {} of CPU time for each", whyso_words::milliseconds(ms))
    });
    let thread = state.and_then(|state| state.applier.as_ref());
    let busiest = thread.map_or(String::new(), |thread| {
        let of = |part: Part| {
            let own = thread.states.iter().filter(|state| state.state == part.name());
            whyso_words::percent(own.map(|state| state.share).sum())
        };
        format!(
            ", and its busiest thread worked for {} of the time, and waited for a CPU for {}",
            of(Part::Cpu),
            of(Part::Runqueue)
        )
    });
    let why = format!(
        "{} per {unit} passed between clients and servers, where {} passes bytes on{took}{busiest}",
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

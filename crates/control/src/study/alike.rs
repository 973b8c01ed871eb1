//! The machines that carry out a study together: whether they may, and whether they are alike.

use whyso_hub::{Answer, Bus, HostName, HostState, Order, Right};
use whyso_model::HostFacts;

use crate::Error;
use crate::hosts::HostsPlan;

/// Memory of like machines differs by less than this share.
const MEMORY_SHARE: f64 = 0.05;

/// The hosts that carry a study out.
#[derive(Clone, Debug)]
pub struct StudyWorkers {
    pub hosts: HostsPlan,
    /// Machines may differ in more than their name.
    pub may_differ: bool,
}

/// The machines of a plan that may carry out a study, after it was checked that they are alike.
pub(super) async fn workers_of(bus: &Bus, workers: &StudyWorkers) -> Result<Vec<HostName>, Error> {
    let mut states: Vec<HostState> = Vec::new();
    if workers.hosts.hosts.is_empty() {
        states = bus.agents().await?;
        states.retain(|state| state.may.contains(&Right::StartServers));
    }
    for host in &workers.hosts.hosts {
        let Answer::State(state) = bus.order(&host.name, &Order::State).await? else {
            return Err(whyso_hub::Error::Silent { host: host.name.to_string() }.into());
        };
        if !state.may.contains(&Right::StartServers) {
            return Err(Error::Plan(format!(
                "the agent on {} may not start servers: allow it in its agent.toml, by may = [\"observe\", \"start-servers\"]",
                host.name
            )));
        }
        states.push(*state);
    }
    let here = env!("CARGO_PKG_VERSION");
    if let Some(other) = states.iter().find(|state| state.whyso != here) {
        let (name, version) = (&other.name, &other.whyso);
        return Err(Error::Plan(format!(
            "the agent on {name} is whyso {version}, and this is {here}: one study needs one version"
        )));
    }
    if states.is_empty() {
        return Err(Error::Plan(
            "no agent that is connected may start servers: allow it in its agent.toml, by may = [\"start-servers\"]".to_string(),
        ));
    }
    if !workers.may_differ
        && let Some((one, other, what)) = first_difference(&states)
    {
        return Err(Error::Plan(format!(
            "{one} and {other} are unlike machines ({what}): leave one out, or mix them by --unlike-machines"
        )));
    }
    states.iter().map(|state| Ok(HostName::new(&state.name)?)).collect()
}

/// Two machines that are not alike, and in what.
fn first_difference(states: &[HostState]) -> Option<(&str, &str, String)> {
    let (first, others) = states.split_first()?;
    others.iter().find_map(|other| {
        let what = difference(&first.facts, &other.facts)?;
        Some((first.name.as_str(), other.name.as_str(), what))
    })
}

fn difference(one: &HostFacts, other: &HostFacts) -> Option<String> {
    let texts = [
        ("CPU", &one.cpu_model, &other.cpu_model),
        ("kernel", &one.kernel, &other.kernel),
        ("system", &one.os, &other.os),
        ("virtualization", &one.virtualization, &other.virtualization),
    ];
    if let Some((what, one, other)) = texts.iter().find(|(_, one, other)| one != other) {
        return Some(format!("{what} {one} and {other}"));
    }
    if one.logical_cpus != other.logical_cpus {
        return Some(format!("{} and {} CPUs", one.logical_cpus, other.logical_cpus));
    }
    let (less, more) = (one.memory_bytes.min(other.memory_bytes), one.memory_bytes.max(other.memory_bytes));
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let is_alike = less as f64 >= more as f64 * (1.0 - MEMORY_SHARE);
    (!is_alike).then(|| format!("{:.1} and {:.1} GiB of memory", gib(less), gib(more)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_alike_where_all_that_counts_is() {
        let facts = HostFacts {
            hostname: "one".to_string(),
            cpu_model: "EPYC".to_string(),
            logical_cpus: 8,
            memory_bytes: 64 << 30,
            ..HostFacts::default()
        };
        let alike = HostFacts { hostname: "two".to_string(), memory_bytes: 63 << 30, ..facts.clone() };
        assert_eq!(difference(&facts, &alike), None);
        let others = [
            (HostFacts { cpu_model: "Xeon".to_string(), ..facts.clone() }, "CPU EPYC and Xeon"),
            (HostFacts { logical_cpus: 4, ..facts.clone() }, "8 and 4 CPUs"),
            (HostFacts { memory_bytes: 32 << 30, ..facts.clone() }, "32.0 and 64.0 GiB of memory"),
        ];
        for (other, what) in others {
            assert_eq!(difference(&facts, &other).as_deref(), Some(what));
        }
    }
}

//! Which tier answers at an address.

use std::net::{IpAddr, SocketAddr};

use super::DATABASE;
use super::model::TierTime;
use crate::model::NodeInput;

/// Where the tiers of a recording take clients.
pub(super) struct Listeners {
    all: Vec<Listener>,
}

struct Listener {
    tier: String,
    listens: Vec<String>,
    /// The machine that it runs on; empty where only one was recorded.
    host: String,
    addresses: Vec<IpAddr>,
}

impl Listeners {
    pub(super) fn of(tiers: &[TierTime], nodes: &[NodeInput]) -> Listeners {
        let listener = |tier: &TierTime| {
            // The only database is called so, whatever its node is called.
            let node = nodes.iter().find(|node| {
                node.name == tier.name
                    || tier.name == DATABASE && tier.is_database && node.listens == tier.listens
            });
            let addresses = node.map(|node| node.addresses.as_slice()).unwrap_or_default();
            Listener {
                tier: tier.name.clone(),
                listens: tier.listens.clone(),
                host: node.map_or(String::new(), |node| node.host.clone()),
                addresses: addresses.iter().filter_map(|address| address.parse().ok()).collect(),
            }
        };
        Listeners { all: tiers.iter().map(listener).collect() }
    }

    /// The tier that a tier reaches at an address: one on its own machine, such as "tcp 3306", or one elsewhere, such as "tcp 10.0.0.2:3306".
    pub(super) fn behind(&self, asks: &str, address: &str) -> Option<String> {
        let host =
            self.all.iter().find(|listener| listener.tier == asks).map(|listener| listener.host.as_str());
        let others = || self.all.iter().filter(|listener| listener.tier != asks);
        let listens = |listener: &Listener, address: &str| listener.listens.iter().any(|own| own == address);
        let is_here =
            |listener: &&Listener| host == Some(listener.host.as_str()) && listens(listener, address);
        if let Some(here) = others().find(is_here) {
            return Some(here.tier.clone());
        }
        let place = address.strip_prefix("tcp ")?.parse::<SocketAddr>().ok()?;
        let port = format!("tcp {}", place.port());
        let mut there =
            others().filter(|listener| listener.addresses.contains(&place.ip()) && listens(listener, &port));
        // Several hosts may have one private address: then nobody knows which is meant.
        let found = there.next()?;
        there.next().is_none().then(|| found.tier.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_a_tier_on_the_same_machine_or_on_the_one_that_has_it() {
        let tier = |name: &str, listens: &str| TierTime {
            name: name.to_string(),
            listens: vec![listens.to_string()],
            ..TierTime::default()
        };
        let node = |name: &str, host: &str, address: &str| NodeInput {
            name: name.to_string(),
            host: host.to_string(),
            addresses: vec![address.to_string()],
            ..NodeInput::default()
        };
        let tiers = [tier("a/web", "tcp 80"), tier("a/cache", "tcp 11211"), tier("b/cache", "tcp 11211")];
        let nodes = [
            node("a/web", "a", "10.0.0.1"),
            node("b/cache", "b", "10.0.0.2"),
            node("a/cache", "a", "10.0.0.1"),
        ];
        let listeners = Listeners::of(&tiers, &nodes);
        assert_eq!(listeners.behind("a/web", "tcp 11211").unwrap(), "a/cache");
        assert_eq!(listeners.behind("a/web", "tcp 10.0.0.2:11211").unwrap(), "b/cache");
        for nobody in ["tcp 10.0.0.2:80", "tcp 10.0.0.3:11211", "tcp 80", "unix /run/a"] {
            assert_eq!(listeners.behind("a/web", nobody), None, "{nobody}");
        }
        // Another host has the same private address.
        let twice = [node("a/cache", "a", "172.17.0.1"), node("b/cache", "b", "172.17.0.1")];
        assert_eq!(Listeners::of(&tiers, &twice).behind("a/web", "tcp 172.17.0.1:11211"), None);
        // On one machine that no agent recorded.
        let here = Listeners::of(&tiers[..2], &[]);
        assert_eq!(here.behind("a/web", "tcp 11211").unwrap(), "a/cache");
    }
}

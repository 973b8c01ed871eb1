//! The servers that the connections are spread over, and which of them can be used.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustls::ClientConfig;
use rustls::client::Resumption;

use crate::connection::tls;
use crate::error::LoadError;
use crate::outcome::Outage;
use crate::spec::{Endpoint, LoadSpec, Placement};
use crate::target::Target;

pub(crate) struct Endpoints {
    all: Vec<State>,
    placement: Placement,
    /// Endpoint of each connection in turn, over and over.
    turns: Vec<u16>,
}

struct State {
    endpoint: Endpoint,
    is_down: AtomicBool,
    /// An outage has begun and no transaction has ended well since.
    is_out: AtomicBool,
    outages: Mutex<Vec<Outage>>,
    /// Made with the first connection over HTTPS: it holds the certificates that are trusted. Each connection makes a whole handshake.
    tls_config: OnceLock<Option<Arc<ClientConfig>>>,
}

impl Endpoints {
    pub(crate) fn new(spec: &LoadSpec) -> Endpoints {
        let state = |endpoint: &Endpoint| State {
            endpoint: endpoint.clone(),
            is_down: AtomicBool::new(false),
            is_out: AtomicBool::new(false),
            outages: Mutex::new(Vec::new()),
            tls_config: OnceLock::new(),
        };
        let turns = match spec.placement {
            Placement::RoundRobin | Placement::Pinned => (0..spec.endpoints.len() as u16).collect(),
            Placement::Weighted => weighted_turns(&spec.endpoints),
        };
        Endpoints { all: spec.endpoints.iter().map(state).collect(), placement: spec.placement, turns }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn target(&self, endpoint: u16) -> &Target {
        &self.all[usize::from(endpoint)].endpoint.target
    }

    /// How TLS is done with an endpoint, without resumption of earlier sessions; `None` where it is not.
    pub(crate) fn tls_config(&self, endpoint: u16) -> Result<Option<Arc<ClientConfig>>, LoadError> {
        let state = &self.all[usize::from(endpoint)];
        if let Some(config) = state.tls_config.get() {
            return Ok(config.clone());
        }
        let mut config = tls::config(&self.target(endpoint).tls, &self.address(endpoint))?;
        if let Some(config) = config.as_mut().and_then(Arc::get_mut) {
            config.resumption = Resumption::disabled();
        }
        Ok(state.tls_config.get_or_init(|| config).clone())
    }

    pub(crate) fn address(&self, endpoint: u16) -> String {
        self.target(endpoint).address.to_string()
    }

    /// Where a connection belongs.
    pub(crate) fn home(&self, connection: u32) -> u16 {
        self.turns[connection as usize % self.turns.len()]
    }

    /// Where a connection is to be opened now: at home, or, where that is down, at the next one that is up.
    pub(crate) fn choose(&self, connection: u32) -> u16 {
        let home = self.home(connection);
        if self.placement == Placement::Pinned || !self.is_down(home) {
            return home;
        }
        let count = self.all.len() as u32;
        // Spread over those that are left, not all on the next one.
        let others = (1..count).map(|step| (u32::from(home) + 1 + (connection + step) % (count - 1)) % count);
        others.map(|endpoint| endpoint as u16).find(|endpoint| !self.is_down(*endpoint)).unwrap_or(home)
    }

    pub(crate) fn is_down(&self, endpoint: u16) -> bool {
        self.all[usize::from(endpoint)].is_down.load(Relaxed)
    }

    /// Whether a lost connection finds another endpoint to go to.
    pub(crate) fn fails_over(&self) -> bool {
        self.all.len() > 1 && self.placement != Placement::Pinned
    }

    /// A connection to it was lost, or could not be opened.
    pub(crate) fn mark_down(&self, endpoint: u16, now_ns: i64) {
        let state = &self.all[usize::from(endpoint)];
        state.is_down.store(true, Relaxed);
        if !state.is_out.swap(true, Relaxed) {
            state.outages().push(Outage { begin_ns: now_ns, end_ns: None });
        }
    }

    /// It takes connections again.
    pub(crate) fn mark_up(&self, endpoint: u16) {
        self.all[usize::from(endpoint)].is_down.store(false, Relaxed);
    }

    /// A transaction has ended well on it.
    #[inline]
    pub(crate) fn served(&self, endpoint: u16, now_ns: i64) {
        let state = &self.all[usize::from(endpoint)];
        if state.is_out.load(Relaxed) {
            state.end_outage(now_ns);
        }
    }

    /// Those that are down now.
    pub(crate) fn down(&self) -> Vec<u16> {
        (0..self.all.len() as u16).filter(|endpoint| self.is_down(*endpoint)).collect()
    }

    /// Takes the outages up to now out. An ongoing one is also reported at the next level.
    pub(crate) fn take_outages(&self, endpoint: u16) -> Vec<Outage> {
        let mut outages = self.all[usize::from(endpoint)].outages();
        let ongoing = outages.last().copied().filter(|outage| outage.end_ns.is_none());
        std::mem::replace(&mut *outages, ongoing.into_iter().collect())
    }
}

impl State {
    fn outages(&self) -> MutexGuard<'_, Vec<Outage>> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn end_outage(&self, now_ns: i64) {
        if let Some(last) = self.outages().last_mut()
            && last.begin_ns < now_ns
            && !self.is_down.load(Relaxed)
        {
            last.end_ns = Some(now_ns);
            self.is_out.store(false, Relaxed);
        }
    }
}

/// Each endpoint as often as its weight says, as evenly as can be (smooth weighted round robin, as nginx has it).
fn weighted_turns(endpoints: &[Endpoint]) -> Vec<u16> {
    let total: i64 = endpoints.iter().map(|endpoint| i64::from(endpoint.weight)).sum();
    let mut credit = vec![0i64; endpoints.len()];
    let mut turns = Vec::new();
    for _ in 0..total {
        for (credit, endpoint) in credit.iter_mut().zip(endpoints) {
            *credit += i64::from(endpoint.weight);
        }
        let richest = (0..credit.len()).rev().max_by_key(|place| credit[*place]).unwrap_or(0);
        credit[richest] -= total;
        turns.push(richest as u16);
    }
    if turns.is_empty() { vec![0] } else { turns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Address, Tls};

    fn endpoints(weights: &[u32], placement: Placement) -> Endpoints {
        let target = Target {
            address: Address::Unix("/nowhere".into()),
            user: String::new(),
            password: String::new(),
            schema: String::new(),
            tls: Tls::Off,
        };
        let mut spec = LoadSpec::new(target.clone(), 1, 1);
        spec.endpoints =
            weights.iter().map(|weight| Endpoint { target: target.clone(), weight: *weight }).collect();
        spec.placement = placement;
        Endpoints::new(&spec)
    }

    #[test]
    fn weights_are_kept_in_every_round() {
        let endpoints = endpoints(&[3, 0, 1], Placement::Weighted);
        let homes: Vec<u16> = (0..8).map(|connection| endpoints.home(connection)).collect();
        assert_eq!(homes, [0, 0, 2, 0, 0, 0, 2, 0]);
    }

    #[test]
    fn the_connections_of_a_dead_endpoint_spread_over_the_others() {
        let endpoints = endpoints(&[1, 1, 1], Placement::RoundRobin);
        endpoints.mark_down(0, 5);
        let chosen: Vec<u16> = (0..4).map(|round| endpoints.choose(round * 3)).collect();
        assert!(chosen.contains(&1) && chosen.contains(&2) && !chosen.contains(&0), "{chosen:?}");
        endpoints.mark_up(0);
        assert_eq!(endpoints.choose(3), 0);
    }

    #[test]
    fn a_pinned_connection_stays_where_it_is() {
        let endpoints = endpoints(&[1, 1], Placement::Pinned);
        endpoints.mark_down(1, 5);
        assert_eq!(endpoints.choose(3), 1);
        assert!(!endpoints.fails_over());
    }

    #[test]
    fn an_outage_lasts_until_a_transaction_has_ended_well() {
        let endpoints = endpoints(&[1, 1], Placement::RoundRobin);
        endpoints.mark_down(1, 5);
        endpoints.mark_down(1, 6);
        endpoints.served(1, 7);
        endpoints.mark_up(1);
        endpoints.served(1, 9);
        endpoints.served(1, 10);
        assert_eq!(endpoints.take_outages(1), [Outage { begin_ns: 5, end_ns: Some(9) }]);
        assert!(endpoints.take_outages(1).is_empty());
    }
}

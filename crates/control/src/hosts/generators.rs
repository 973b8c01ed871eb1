//! A load that several hosts send together: the same level, begun and ended at the same times.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;
use whyso_hub::{HostCpus, HostName, LoadPhase, LoadRequest, LoadStep};
use whyso_load::LevelSpec;
use whyso_random::SplitMix64;

use super::HostPlan;
use super::hosts_level::HostsLevel;
use super::load_host::{
    ASK_INTERVAL, ClockNow, GeneratorHost, HostProgress, LoadOrders, keep_asking, lock, sleep_until, soon_ns,
};
use crate::Error;

/// Bound on connecting the users.
const OPEN_TIME_MAX: Duration = Duration::from_secs(120);

/// Hosts with their users connected. Dropping it disconnects them.
pub(crate) struct Generators {
    orders: LoadOrders,
    hosts: Vec<GeneratorHost>,
    /// One a host, for as long as the load lasts: a host that nobody asks ends it.
    askers: Vec<AbortHandle>,
}

/// What a host of the load is to send.
pub(super) struct GeneratorPlan {
    pub(super) name: HostName,
    pub(super) has_server_cpus: bool,
    pub(super) clock: ClockNow,
    pub(super) request: LoadRequest,
}

/// A host that may send a part of the load.
pub(super) struct GeneratorCandidate {
    pub(super) plan: HostPlan,
    pub(super) cpus: HostCpus,
    pub(super) clock: ClockNow,
}

/// What each host of the load is to send of `request`: its own target, seed and number of users.
pub(super) fn generator_plans(hosts: Vec<GeneratorCandidate>, request: &LoadRequest) -> Vec<GeneratorPlan> {
    let of_server = hosts.iter().find(|host| host.plan.server.is_some()).map(|host| host.cpus.clone());
    let mut seeds = SplitMix64::new(request.seed);
    let mut plans = Vec::new();
    for GeneratorCandidate { plan, cpus, clock } in hosts {
        // A host's users are other users than those of the others.
        let seed = seeds.next_u64();
        if let Some(target) = plan.load {
            let request = LoadRequest { target, seed, ..request.clone() };
            let has_server_cpus = of_server.as_ref().is_some_and(|server| cpus.overlap(server));
            plans.push(GeneratorPlan { name: plan.name, has_server_cpus, clock, request });
        }
    }
    let users_max = share_max(request.users_max, plans.len());
    plans.iter_mut().for_each(|plan| plan.request.users_max = users_max);
    plans
}

impl Generators {
    /// Connects the users on all hosts.
    ///
    /// # Errors
    /// A host can't be reached, may not do this, or can't connect.
    pub(super) fn open(orders: LoadOrders, plans: Vec<GeneratorPlan>) -> Result<Generators, Error> {
        let host = |plan: &GeneratorPlan| GeneratorHost {
            name: plan.name.clone(),
            has_server_cpus: plan.has_server_cpus,
            clock: Arc::clone(&plan.clock),
            progress: Arc::default(),
        };
        let hosts: Vec<GeneratorHost> = plans.iter().map(host).collect();
        let mut generators = Generators { orders, hosts, askers: Vec::new() };
        let steps = plans.into_iter().map(|plan| LoadStep::Open(Box::new(plan.request))).collect();
        generators.orders.give(&generators.hosts, steps)?;
        let begun = Instant::now();
        loop {
            let is_ready = |host: &GeneratorHost| lock(&host.progress).phase == LoadPhase::Ready;
            if generators.hosts.iter().all(is_ready) {
                let askers = generators.hosts.iter().map(|host| {
                    let LoadOrders { handle, bus, load, .. } = generators.orders.clone();
                    handle.spawn(keep_asking(bus, load, host.clone())).abort_handle()
                });
                generators.askers = askers.collect();
                return Ok(generators);
            }
            for host in &generators.hosts {
                let progress = lock(&host.progress);
                if progress.phase == LoadPhase::Over {
                    let why = progress.failure.clone().unwrap_or_else(|| "it has ended".to_string());
                    return Err(Error::Failed(format!("{} can't load: {why}", host.name)));
                }
            }
            if begun.elapsed() > OPEN_TIME_MAX {
                let seconds = OPEN_TIME_MAX.as_secs();
                return Err(Error::Failed(format!(
                    "the users were not connected within {seconds} s: ask for fewer"
                )));
            }
            std::thread::sleep(ASK_INTERVAL);
            generators.orders.give(&generators.hosts, vec![LoadStep::State; generators.hosts.len()])?;
        }
    }

    /// Begins a level on all hosts.
    ///
    /// # Errors
    /// A host can't be reached, or refuses.
    pub(crate) fn begin(&mut self, level: &LevelSpec) -> Result<HostsLevel, Error> {
        let at_ns = soon_ns(&self.hosts);
        let mut hosts = Vec::new();
        let mut steps = Vec::new();
        for (host, users) in self.hosts.iter().zip(shares(level.users, self.hosts.len())) {
            // Levels are numbered on each host by itself.
            let number = lock(&host.progress).level + 1;
            if users > 0 {
                let spec = level.share(users);
                steps.push(LoadStep::Level { number, spec, at_ns: host.there(at_ns)? });
                hosts.push(host.clone());
            }
        }
        for host in &hosts {
            let mut progress = lock(&host.progress);
            let HostProgress { level, seen, answered_at, .. } = *progress;
            let level = level + 1;
            *progress = HostProgress { level, seen, answered_at, ..HostProgress::default() };
        }
        self.orders.give(&hosts, steps)?;
        sleep_until(at_ns);
        Ok(HostsLevel::new(self.orders.clone(), hosts, level.users, at_ns))
    }
}

impl Drop for Generators {
    fn drop(&mut self) {
        self.askers.iter().for_each(AbortHandle::abort);
        // A host that does not hear it disconnects by itself, as nobody asks any more.
        let _ = self.orders.give(&self.hosts, vec![LoadStep::Close; self.hosts.len()]);
    }
}

/// How many of the users each host has: as evenly as it goes.
fn shares(users: u32, hosts: usize) -> Vec<u32> {
    let hosts = u32::try_from(hosts.max(1)).unwrap_or(u32::MAX);
    (0..hosts).map(|place| users / hosts + u32::from(place < users % hosts)).collect()
}

/// The most users that a host has in a level of this many.
fn share_max(users_max: u32, hosts: usize) -> u32 {
    shares(users_max, hosts).into_iter().max().unwrap_or(users_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_dealt_out_evenly_and_none_is_lost() {
        assert_eq!(shares(7, 3), [3, 2, 2]);
        assert_eq!(shares(1, 2), [1, 0]);
        assert_eq!((share_max(7, 3), share_max(4, 2)), (3, 2));
    }
}

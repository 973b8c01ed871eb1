//! Hosts that send the load of experiments. Nothing is recorded there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Runtime;
use tokio::task::AbortHandle;
use whyso_clock::ClockBetween;
use whyso_hub::{Answer, Bus, HostCpus, HostName, HostState, LoadRequest, Order, RecordingId, Right};

use super::generators::{GeneratorCandidate, Generators, generator_plans};
use super::load_host::{ClockNow, LoadOrders};
use super::session::{CLOCK_INTERVAL, FIRST_INTERVAL, FIRST_QUESTIONS, states};
use super::{HostPlan, HostsPlan};
use crate::Error;
use crate::facts::new_id;
use crate::progress::{Listener, News};
use crate::runtime::runtime;

type SharedClock = Arc<Mutex<ClockBetween>>;

/// Hosts that send the load of experiments.
pub(crate) struct Loaders {
    runtime: Runtime,
    bus: Bus,
    hosts: Vec<Loader>,
    sends_load: bool,
    clocks: Vec<AbortHandle>,
}

struct Loader {
    plan: HostPlan,
    cpus: HostCpus,
    clock: SharedClock,
}

impl Loaders {
    /// Reaches the hosts, and begins to ask for their clocks. `changes_server`: settings of the server are switched, which the agent of its
    /// host has to allow.
    ///
    /// # Errors
    /// The hub or an agent can't be reached, or an agent may not do this.
    pub(crate) fn join(
        plan: &HostsPlan,
        changes_server: bool,
        listener: &dyn Listener,
    ) -> Result<Loaders, Error> {
        let runtime = runtime()?;
        listener.hear(News::Step(&format!("joining the hub at {}", plan.token.address)));
        let (bus, states) = runtime.block_on(async {
            let bus = Bus::join(&plan.token).await?;
            let states = states(&bus, &plan.hosts).await?;
            Ok::<_, Error>((bus, states))
        })?;
        if changes_server {
            may_experiment(&states)?;
        }
        let mut loaders = Loaders {
            runtime,
            bus,
            hosts: Vec::new(),
            sends_load: plan.has_generators(),
            clocks: Vec::new(),
        };
        for (plan, state) in states {
            listener.hear(News::Step(&format!("{}: asking for its clock", plan.name)));
            let clock = SharedClock::default();
            loaders.runtime.block_on(first_questions(&loaders.bus, &plan.name, &clock))?;
            let task = keep_clock(loaders.bus.clone(), plan.name.clone(), Arc::clone(&clock));
            loaders.clocks.push(loaders.runtime.spawn(task).abort_handle());
            loaders.hosts.push(Loader { plan, cpus: state.cpus, clock });
        }
        Ok(loaders)
    }

    /// Whether the load comes from these hosts.
    pub(crate) fn sends_load(&self) -> bool {
        self.sends_load
    }

    /// Refuses to change a server of this identity where the host that permits it has another one.
    ///
    /// # Errors
    /// It is another server, or its agent can't say which it is.
    pub(crate) fn check_server(&self, identity: &str) -> Result<(), Error> {
        let of_host = self.hosts.iter().find_map(|host| Some((&host.plan.name, host.plan.server.clone()?)));
        let Some((host, server)) = of_host else { return Ok(()) };
        let order = Order::Identity { server: server.clone() };
        let Answer::Identity { identity: there } = self.runtime.block_on(self.bus.order(host, &order))?
        else {
            return Err(whyso_hub::Error::Silent { host: host.to_string() }.into());
        };
        match there == identity {
            true => Ok(()),
            false => Err(Error::Plan(format!(
                "the server {server} of {host} ({there}) is another server than the one of --dsn ({identity}): name the same one in both"
            ))),
        }
    }

    /// Connects the users of one load.
    ///
    /// # Errors
    /// As of [`Generators::open`].
    pub(crate) fn open(&self, request: &LoadRequest) -> Result<Generators, Error> {
        let host = |loader: &Loader| {
            let clock = Arc::clone(&loader.clock);
            let clock: ClockNow = Arc::new(move || lock(&clock).line());
            GeneratorCandidate { plan: loader.plan.clone(), cpus: loader.cpus.clone(), clock }
        };
        let orders = LoadOrders {
            handle: self.runtime.handle().clone(),
            bus: self.bus.clone(),
            load: RecordingId::new(&new_id())?,
            recorder: None,
        };
        Generators::open(orders, generator_plans(self.hosts.iter().map(host).collect(), request))
    }
}

impl Drop for Loaders {
    fn drop(&mut self) {
        self.clocks.iter().for_each(AbortHandle::abort);
    }
}

/// The agent of the server's host decides whether the server may be changed.
fn may_experiment(states: &[(HostPlan, HostState)]) -> Result<(), Error> {
    match states.iter().find(|(host, _)| host.server.is_some()) {
        None => Err(Error::Plan(
            "an experiment changes the server, and no host of the file has it: name the server of its host, whose agent has to permit that"
                .to_string(),
        )),
        Some((_, state)) if state.may.contains(&Right::Experiment) => Ok(()),
        Some((host, _)) => Err(Error::Plan(format!(
            "the agent on {} permits no experiments on its server: allow them in its agent.toml, by may = [\"observe\", \"experiment\"]",
            host.name
        ))),
    }
}

async fn first_questions(bus: &Bus, host: &HostName, clock: &SharedClock) -> Result<(), Error> {
    for _ in 0..FIRST_QUESTIONS {
        let question = bus.clock(host).await?;
        lock(clock).add(question);
        tokio::time::sleep(FIRST_INTERVAL).await;
    }
    Ok(())
}

/// Asks for a host's clock until it is aborted.
async fn keep_clock(bus: Bus, host: HostName, clock: SharedClock) {
    loop {
        tokio::time::sleep(CLOCK_INTERVAL).await;
        // Without an answer, the bound grows.
        if let Ok(question) = bus.clock(&host).await {
            lock(&clock).add(question);
        }
    }
}

fn lock(clock: &SharedClock) -> MutexGuard<'_, ClockBetween> {
    clock.lock().unwrap_or_else(PoisonError::into_inner)
}

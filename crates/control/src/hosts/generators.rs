//! A load that several hosts send together: the same level, begun and ended at the same times.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};
use whyso_clock::{ClockLine, monotonic_ns};
use whyso_hub::{
    Answer, Bus, HostCpus, HostName, LoadOrder, LoadPhase, LoadRequest, LoadState, LoadStep, Order,
    RecordingId,
};
use whyso_load::{
    Cause, EngineKind, EngineUse, Failure, Interval, IntervalMerge, LevelOutcome, LevelSpec, Live, Tuning,
};
use whyso_random::SplitMix64;
use whyso_record::Recorder;
use whyso_record::data::{Kind, Reading, SeriesKey, Status, Value};

use super::HostPlan;
use crate::Error;

/// From an order until what it orders: every host has it by then. It is this, and some round trips to the host that is furthest away.
const LEAD_MIN: Duration = Duration::from_millis(60);
const LEAD_MAX: Duration = Duration::from_millis(250);
const LEAD_ROUND_TRIPS: i64 = 10;
/// Between two questions of how far a host is.
const ASK_INTERVAL: Duration = Duration::from_millis(200);
/// The same between levels.
const IDLE_ASK_INTERVAL: Duration = Duration::from_secs(1);
/// Hosts whose windows begin or end this much apart did not send one load.
const EDGES_APART_NS_MAX: i64 = 100_000_000;
/// Bound on connecting the users.
const OPEN_TIME_MAX: Duration = Duration::from_secs(120);
/// A host that does not answer for this long has failed.
const SILENT_TIME_MAX: Duration = Duration::from_secs(20);
/// Bound on a level's last word, after it was asked to end.
const OUTCOME_TIME_MAX: Duration = Duration::from_secs(45);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Hosts with their users connected. Dropping it disconnects them.
pub(crate) struct Generators {
    orders: LoadOrders,
    hosts: Vec<GeneratorHost>,
    /// One a host, for as long as the load lasts: a host that nobody asks ends it.
    askers: Vec<AbortHandle>,
}

/// How hosts are reached.
#[derive(Clone)]
pub(super) struct LoadOrders {
    pub(super) handle: Handle,
    pub(super) bus: Bus,
    pub(super) load: RecordingId,
    /// What each host does goes there, too; `None` where nothing is recorded.
    pub(super) recorder: Option<Recorder>,
}

/// A host's clock against this one's, by what is known so far.
pub(super) type ClockNow = Arc<dyn Fn() -> Option<ClockLine> + Send + Sync>;

/// A host that sends a part of the load.
#[derive(Clone)]
struct GeneratorHost {
    name: HostName,
    /// The server runs on the same CPUs.
    has_server_cpus: bool,
    clock: ClockNow,
    progress: Arc<Mutex<HostProgress>>,
}

/// How far a host is, by its last answer. Times are of this clock.
#[derive(Default)]
struct HostProgress {
    phase: LoadPhase,
    level: u32,
    live: Live,
    is_over: bool,
    failure: Option<String>,
    seen: u64,
    intervals: Vec<Interval>,
    outcome: Option<LevelOutcome>,
    answered_at: Option<Instant>,
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

impl LoadOrders {
    /// Gives each host its step at the same time, and takes in the answers.
    fn give(&self, hosts: &[GeneratorHost], steps: Vec<LoadStep>) -> Result<(), Error> {
        self.handle.block_on(async {
            let mut asked = JoinSet::new();
            for (host, step) in hosts.iter().cloned().zip(steps) {
                let (bus, load) = (self.bus.clone(), self.load.clone());
                asked.spawn(async move { ask(&bus, &load, &host, step).await });
            }
            while let Some(answered) = asked.join_next().await {
                answered.map_err(|error| Error::Failed(error.to_string()))??;
            }
            Ok(())
        })
    }
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
        Ok(HostsLevel {
            orders: self.orders.clone(),
            merge: IntervalMerge::new(hosts.len()),
            hosts,
            users: level.users,
            begin_ns: at_ns,
            is_stopped: false,
        })
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

async fn ask(bus: &Bus, load: &RecordingId, host: &GeneratorHost, step: LoadStep) -> Result<(), Error> {
    let seen = lock(&host.progress).seen;
    let order = Order::Load(LoadOrder { load: load.clone(), step, seen });
    let Answer::Load(state) = bus.order(&host.name, &order).await? else {
        return Err(whyso_hub::Error::Silent { host: host.name.to_string() }.into());
    };
    host.take(*state);
    Ok(())
}

/// Asks how far a host is until the task is aborted.
async fn keep_asking(bus: Bus, load: RecordingId, host: GeneratorHost) {
    loop {
        let is_running = lock(&host.progress).phase == LoadPhase::Running;
        tokio::time::sleep(if is_running { ASK_INTERVAL } else { IDLE_ASK_INTERVAL }).await;
        // A host that stays silent is found by the time of its last answer.
        if let Err(Error::Hub(whyso_hub::Error::AgentRefuses { why, .. })) =
            ask(&bus, &load, &host, LoadStep::State).await
        {
            lock(&host.progress).failure.get_or_insert(why);
        }
    }
}

impl GeneratorHost {
    /// What its clock shows at a time of this one.
    fn there(&self, here_ns: i64) -> Result<i64, Error> {
        let line = (self.clock)()
            .ok_or_else(|| Error::Failed(format!("the clock of {} is not known", self.name)))?;
        Ok(here_ns.saturating_add(line.offset_at(here_ns)))
    }

    fn take(&self, state: LoadState) {
        let Some(line) = (self.clock)() else { return };
        let mut progress = lock(&self.progress);
        progress.answered_at = Some(Instant::now());
        if state.level < progress.level {
            // An answer to what was asked before.
            return;
        }
        progress.phase = state.phase;
        progress.live = state.live;
        progress.is_over = state.is_over;
        if progress.failure.is_none() {
            progress.failure = state.failure;
        }
        for (number, interval) in state.intervals {
            if number > progress.seen {
                progress.seen = number;
                progress.intervals.push(interval.on_clock(|t_ns| line.here(t_ns)));
            }
        }
        if let Some(outcome) = state.outcome {
            progress.outcome = Some(outcome.on_clock(|t_ns| line.here(t_ns)));
        }
    }
}

fn lock(progress: &Mutex<HostProgress>) -> MutexGuard<'_, HostProgress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sleep_until(at_ns: i64) {
    std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()).max(0) as u64));
}

/// A time of this clock by which every host has an order of now.
fn soon_ns(hosts: &[GeneratorHost]) -> i64 {
    let round_trips = hosts.iter().filter_map(|host| Some((host.clock)()?.round_trip_ns));
    let [least_ns, most_ns] = [LEAD_MIN, LEAD_MAX].map(|lead| lead.as_nanos() as i64);
    let furthest_ns = round_trips.max().unwrap_or(most_ns);
    monotonic_ns() + furthest_ns.saturating_mul(LEAD_ROUND_TRIPS).saturating_add(least_ns).min(most_ns)
}

/// A level that runs on several hosts. Dropping it ends it, and forgets its result.
pub(crate) struct HostsLevel {
    orders: LoadOrders,
    /// Those that have users in it.
    hosts: Vec<GeneratorHost>,
    merge: IntervalMerge,
    users: u32,
    begin_ns: i64,
    is_stopped: bool,
}

impl HostsLevel {
    fn order(&self, step: impl Fn(u32, i64) -> LoadStep) -> Result<(), Error> {
        let at_ns = soon_ns(&self.hosts);
        let step = |host: &GeneratorHost| Ok(step(lock(&host.progress).level, host.there(at_ns)?));
        let steps = self.hosts.iter().map(step).collect::<Result<Vec<_>, Error>>()?;
        self.orders.give(&self.hosts, steps)?;
        sleep_until(at_ns);
        Ok(())
    }

    /// What could not be ordered is a failure of the first host.
    fn complain(&self, error: &Error) {
        if let Some(host) = self.hosts.first() {
            lock(&host.progress).failure.get_or_insert(error.to_string());
        }
    }

    pub(crate) fn begin_measuring(&self) {
        if let Err(error) = self.order(|level, at_ns| LoadStep::Measure { level, at_ns }) {
            self.complain(&error);
        }
    }

    pub(crate) fn live(&self) -> Live {
        let mut sum = Live::default();
        for host in &self.hosts {
            let live = lock(&host.progress).live;
            sum.transactions += live.transactions;
            sum.queries += live.queries;
            sum.errors += live.errors;
        }
        sum
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure().is_some()
    }

    /// The first host that failed, and why.
    fn failure(&self) -> Option<String> {
        self.hosts.iter().find_map(|host| {
            let progress = lock(&host.progress);
            if progress.outcome.is_some() {
                return None;
            }
            let is_silent = progress.answered_at.is_some_and(|at| at.elapsed() > SILENT_TIME_MAX);
            let silent =
                || is_silent.then(|| format!("it has not answered for {} s", SILENT_TIME_MAX.as_secs()));
            let why = progress.failure.clone().or_else(silent)?;
            Some(format!("{}: {why}", host.name))
        })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.hosts.iter().all(|host| lock(&host.progress).is_over)
    }

    pub(crate) fn take_intervals(&mut self) -> Vec<Interval> {
        for (place, host) in self.hosts.iter().enumerate() {
            let intervals = std::mem::take(&mut lock(&host.progress).intervals);
            for interval in intervals {
                if let Some(recorder) = &self.orders.recorder {
                    record_rate(recorder, host.name.as_str(), &interval);
                }
                self.merge.put(place, interval);
            }
        }
        std::iter::from_fn(|| self.merge.next_whole()).collect()
    }

    pub(crate) fn stop_with_intervals(mut self) -> (LevelOutcome, Vec<Interval>) {
        let mut problem = self.failure();
        self.is_stopped = true;
        if let Err(error) = self.order(|level, at_ns| LoadStep::Stop { level, at_ns }) {
            problem = problem.or(Some(error.to_string()));
        }
        let asked = Instant::now();
        let has_ended = |host: &GeneratorHost| {
            let progress = lock(&host.progress);
            let is_silent = progress.answered_at.is_some_and(|at| at.elapsed() > SILENT_TIME_MAX);
            let could_not_begin = progress.failure.is_some() && progress.phase != LoadPhase::Running;
            progress.outcome.is_some() || is_silent || could_not_begin
        };
        while asked.elapsed() < OUTCOME_TIME_MAX && !self.hosts.iter().all(has_ended) {
            std::thread::sleep(CHECK_INTERVAL);
            // One that does not answer is found by the time of its last answer.
            let _ = self.orders.give(&self.hosts, vec![LoadStep::State; self.hosts.len()]);
        }
        let mut intervals = self.take_intervals();
        let merge = std::mem::replace(&mut self.merge, IntervalMerge::new(0));
        intervals.extend(merge.rest());
        let mut parts = Vec::new();
        for host in &self.hosts {
            match lock(&host.progress).outcome.take() {
                Some(mut outcome) => {
                    if let Some(failure) = &mut outcome.failure {
                        failure.message = format!("{}: {}", host.name, failure.message);
                    }
                    parts.push((host.name.to_string(), outcome));
                }
                None => problem = problem.or(Some(format!("{}: its result did not arrive", host.name))),
            }
        }
        let nothing = || LevelOutcome::nothing(self.users, nowhere(), (self.begin_ns, monotonic_ns()));
        let edges: Vec<(i64, i64)> =
            parts.iter().map(|(_, part)| (part.window_begin_ns, part.window_end_ns)).collect();
        let mut outcome = LevelOutcome::merge(parts).unwrap_or_else(nothing);
        let of_all = (outcome.window_begin_ns, outcome.window_end_ns);
        for (generator, edges) in outcome.generators.iter_mut().zip(edges) {
            if let Some(why) = not_together(of_all, edges) {
                generator.invalid_why.get_or_insert(why);
            }
        }
        for generator in &mut outcome.generators {
            let has_server_cpus =
                self.hosts.iter().any(|host| host.has_server_cpus && host.name.as_str() == generator.host);
            // There, the server is what the load's threads wait for.
            if !has_server_cpus && generator.invalid_why.is_none() {
                generator.invalid_why = generator.client.starved_why();
            }
        }
        if outcome.failure.is_none() {
            outcome.failure = problem.map(|message| Failure {
                at_ns: monotonic_ns(),
                cause: Cause::ConnectionLost,
                message,
            });
        }
        (outcome, intervals)
    }
}

impl Drop for HostsLevel {
    fn drop(&mut self) {
        if !self.is_stopped {
            // A host that does not hear it ends by itself, as nobody asks any more.
            let _ = self.order(|level, at_ns| LoadStep::Stop { level, at_ns });
        }
    }
}

/// Why a host's window is not that of all hosts; `None` where it is.
fn not_together((all_begin_ns, all_end_ns): (i64, i64), (begin_ns, end_ns): (i64, i64)) -> Option<String> {
    let (late_ns, early_ns) = (begin_ns - all_begin_ns, all_end_ns - end_ns);
    let ms = |ns: i64| ns / 1_000_000;
    if late_ns > EDGES_APART_NS_MAX {
        return Some(format!("its window began {} ms later than that of another host", ms(late_ns)));
    }
    (early_ns > EDGES_APART_NS_MAX)
        .then(|| format!("its window ended {} ms earlier than that of another host", ms(early_ns)))
}

/// The engine of a level of which no host gave a result.
fn nowhere() -> EngineUse {
    EngineUse { kind: EngineKind::Auto, loops: 0, why: String::new(), tuning: Tuning::default() }
}

/// What a host's part of the load did in a second, as series of that host: like those of the load as a whole.
fn record_rate(recorder: &Recorder, host: &str, interval: &Interval) {
    let seconds = (interval.end_ns - interval.begin_ns) as f64 / 1e9;
    let Some(all) = interval.rows.first().filter(|_| seconds > 0.05) else { return };
    let mean_ms = match all.count {
        0 => None,
        count => Some(all.response_sum_ns as f64 / count as f64 / 1e6),
    };
    let mut values = BTreeMap::new();
    values.insert(("per_s", "1/s"), all.count as f64 / seconds);
    if let Some(mean_ms) = mean_ms {
        values.insert(("mean_ms", "ms"), mean_ms);
    }
    let values = values.into_iter().map(|((metric, unit), value)| {
        let key = SeriesKey {
            host: host.to_string(),
            source: "load".to_string(),
            metric: metric.to_string(),
            instance: all.statement.clone(),
            kind: Kind::Gauge,
            unit: unit.to_string(),
        };
        (recorder.series(&key), Value::Float(value))
    });
    recorder.reading(Reading {
        source: "load".to_string(),
        begin_ns: interval.begin_ns,
        end_ns: interval.end_ns,
        status: Status::Ok,
        values: values.collect(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_heard_an_order_late_is_named() {
        let all = (0, 10_000_000_000);
        assert_eq!(not_together(all, (50_000_000, 9_950_000_000)), None);
        assert!(not_together(all, (5_000_000_000, 10_000_000_000)).unwrap().contains("5000 ms later"));
        assert!(not_together(all, (0, 9_000_000_000)).unwrap().contains("1000 ms earlier"));
    }

    #[test]
    fn users_are_dealt_out_evenly_and_none_is_lost() {
        assert_eq!(shares(7, 3), [3, 2, 2]);
        assert_eq!(shares(1, 2), [1, 0]);
        assert_eq!((share_max(7, 3), share_max(4, 2)), (3, 2));
    }
}

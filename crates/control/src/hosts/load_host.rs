//! A host that sends a part of a load: what it is asked, and how far it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use whyso_clock::{ClockLine, monotonic_ns};
use whyso_hub::{Answer, Bus, HostName, LoadOrder, LoadPhase, LoadState, LoadStep, Order, RecordingId};
use whyso_load::{Interval, LevelOutcome, Live};
use whyso_record::Recorder;

use crate::Error;

/// From an order until what it orders: every host has it by then. It is this, and some round trips to the host that is furthest away.
const LEAD_MIN: Duration = Duration::from_millis(60);
const LEAD_MAX: Duration = Duration::from_millis(250);
const LEAD_ROUND_TRIPS: i64 = 10;
/// Between two questions of how far a host is.
pub(super) const ASK_INTERVAL: Duration = Duration::from_millis(200);
/// The same between levels.
const IDLE_ASK_INTERVAL: Duration = Duration::from_secs(1);

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
pub(super) struct GeneratorHost {
    pub(super) name: HostName,
    /// The server runs on the same CPUs.
    pub(super) has_server_cpus: bool,
    pub(super) clock: ClockNow,
    pub(super) progress: Arc<Mutex<HostProgress>>,
}

/// How far a host is, by its last answer. Times are of this clock.
#[derive(Default)]
pub(super) struct HostProgress {
    pub(super) phase: LoadPhase,
    pub(super) level: u32,
    pub(super) live: Live,
    pub(super) is_over: bool,
    pub(super) failure: Option<String>,
    pub(super) seen: u64,
    pub(super) intervals: Vec<Interval>,
    pub(super) outcome: Option<LevelOutcome>,
    pub(super) answered_at: Option<Instant>,
}

impl LoadOrders {
    /// Gives each host its step at the same time, and takes in the answers.
    pub(super) fn give(&self, hosts: &[GeneratorHost], steps: Vec<LoadStep>) -> Result<(), Error> {
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
pub(super) async fn keep_asking(bus: Bus, load: RecordingId, host: GeneratorHost) {
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
    pub(super) fn there(&self, here_ns: i64) -> Result<i64, Error> {
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

pub(super) fn lock(progress: &Mutex<HostProgress>) -> MutexGuard<'_, HostProgress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn sleep_until(at_ns: i64) {
    std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()).max(0) as u64));
}

/// A time of this clock by which every host has an order of now.
pub(super) fn soon_ns(hosts: &[GeneratorHost]) -> i64 {
    let round_trips = hosts.iter().filter_map(|host| Some((host.clock)()?.round_trip_ns));
    let [least_ns, most_ns] = [LEAD_MIN, LEAD_MAX].map(|lead| lead.as_nanos() as i64);
    let furthest_ns = round_trips.max().unwrap_or(most_ns);
    monotonic_ns() + furthest_ns.saturating_mul(LEAD_ROUND_TRIPS).saturating_add(least_ns).min(most_ns)
}

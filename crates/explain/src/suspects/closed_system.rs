//! A level as a closed system: users, the CPUs of the server and of the generator, and time that no CPU holds.

use super::case::Case;
use super::model::{Cause, Gain};
use super::{proxy, rows_read};
use crate::level::Level;
use crate::model::{LoopKind, Machine, Part};
use crate::watching::WatchCost;
use whyso_inference::closed::{ClosedNetwork, Station};

/// A smaller gain is none.
pub(super) const GAIN_MIN: f64 = 1.01;
/// No estimate goes beyond this.
pub(super) const GAIN_MAX: f64 = 1_000.0;

/// Other programs compete for the CPUs from this share of them on.
const COMPETITORS_MIN: f64 = 0.05;

/// CPU time of a statement that finds its rows by an index, at least and at most, in ms. Measured here: 0.027 to 0.06.
pub(super) const STATEMENT_MS: [f64; 2] = [0.01, 0.2];

/// By how much more CPU time a transaction may take on more CPUs: caches and wake-ups cost more from one CPU to another. Assumed.
const MORE_CPUS_COST: f64 = 0.1;

/// What a suspect was measured to hold of the mean transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldTime {
    pub(super) cause: Cause,
    /// Waits, in ms.
    pub(super) ms: f64,
    /// Of these, sleep on locks.
    pub(super) lock_ms: f64,
    /// Share of the CPUs' time.
    pub(super) cpu_share: f64,
    pub(super) certainty: f64,
}

/// The level as a closed system.
#[derive(Clone)]
pub(super) struct System {
    pub(super) users: f64,
    /// Transactions per ms, as measured.
    pub(super) per_ms: f64,
    /// CPU time of one transaction: the server's and the generator's.
    pub(super) demand_ms: [f64; 2],
    /// The least of each at any level with as few users, and the least in user code.
    pub(super) least_ms: [f64; 2],
    pub(super) least_user_ms: [f64; 2],
    server_cpus: f64,
    pub(super) client_cpus: f64,
    /// CPUs of the machine, the generator's included.
    machine_cpus: f64,
    /// Server and generator share the CPUs.
    pub(super) is_shared: bool,
    competitors: f64,
    /// Of the CPUs' time, what transactions may use: full CPUs also do work that belongs to none of them, such as the kernel's.
    usable: f64,
    /// Time of a cycle that no CPU holds, chosen so that the model gives the measured throughput.
    pub(super) delay_ms: f64,
    /// Of the time at the CPUs, what is no work.
    queued_ms: f64,
    /// Of the time at the CPUs, what the model's queues do not explain; part of the delay.
    pub(super) unexplained_ms: f64,
    /// Of the cycle, what lies between transactions.
    pub(super) pause_ms: f64,
    /// Waits that are no queue for a CPU, and that no suspect was measured to hold, locks left out.
    unclaimed_ms: f64,
    pub(super) is_generator_full: bool,
    /// Share of the CPU time that was used which whyso's own watching took.
    watching: f64,
}

impl System {
    pub(super) fn new(case: &Case, all: &[HeldTime]) -> Option<System> {
        let (level, machine) = (case.level, case.machine);
        if matches!(level.pacing, LoopKind::Open | LoopKind::Recorded) || machine.server_cpus == 0 {
            return None;
        }
        let users = f64::from(level.users.max(1));
        let per_ms = case.transactions / level.seconds / 1e3;
        let cycle_ms = (users / per_ms).max(case.response_ms);
        let mut system = System {
            users,
            per_ms,
            demand_ms: demand_ms(level)?,
            least_ms: least_demand_ms(case, |_| [1.0, 1.0])?,
            least_user_ms: least_demand_ms(case, user_shares)?,
            server_cpus: f64::from(machine.server_cpus),
            client_cpus: f64::from(machine.client_cpus.max(1)),
            machine_cpus: f64::from(machine_cpus(machine)),
            is_shared: machine.shared,
            competitors: 0.0,
            usable: 1.0,
            delay_ms: 0.0,
            queued_ms: 0.0,
            unexplained_ms: 0.0,
            pause_ms: match level.pacing {
                LoopKind::ClosedWithPauses => (cycle_ms - case.response_ms).max(0.0),
                _ => 0.0,
            },
            unclaimed_ms: unclaimed_ms(case, all),
            is_generator_full: crate::generator::saturated_why(level, machine).is_some(),
            watching: WatchCost::of(level).map_or(0.0, |cost| cost.share()),
        };
        let at_cpus_ms = at_cpus_ms(case, all).max(system.demand_ms.iter().sum());
        system.competitors = system.competitors(case, at_cpus_ms);
        system.usable = system.usable(case, at_cpus_ms.min(cycle_ms));
        let by_model: f64 =
            system.stations(system.demand_ms).iter().map(|station| station.residence_ms(users, per_ms)).sum();
        system.queued_ms = at_cpus_ms.min(cycle_ms) - system.demand_ms.iter().sum::<f64>();
        system.delay_ms = (cycle_ms - by_model.min(at_cpus_ms)).max(0.0);
        if case.is_traced() {
            system.unexplained_ms = (at_cpus_ms.min(cycle_ms) - by_model).max(0.0);
        }
        Some(system)
    }

    /// Programs next to the users that are ready to run, by how much longer than its work a transaction stays at the CPUs.
    fn competitors(&self, case: &Case, at_cpus_ms: f64) -> f64 {
        let of_others = case.others_share();
        if of_others < COMPETITORS_MIN {
            return 0.0;
        }
        let demand_ms: f64 = if self.is_shared { self.demand_ms.iter().sum() } else { self.demand_ms[0] };
        let own = (self.users - 1.0) / self.users * self.per_ms * at_cpus_ms;
        let ready = at_cpus_ms / demand_ms.max(1e-9) * self.server_cpus - 1.0 - own;
        ready.max(of_others * self.server_cpus)
    }

    /// Full CPUs whose queue was measured are as slow for a transaction as the queue is long. Without this the CPU time
    /// that belongs to no transaction counts as idle time in the model. Most of the queue then counts as waits that more CPUs do not shorten.
    fn usable(&self, case: &Case, at_cpus_ms: f64) -> f64 {
        if !case.is_traced() || !case.are_cpus_full() || self.competitors > 0.0 {
            return 1.0;
        }
        let of_client_ms = case.ms(Part::ClientCpu) + case.ms(Part::ClientDelay);
        let (demand_ms, elsewhere_ms) = match self.is_shared {
            true => (self.demand_ms.iter().sum(), 0.0),
            false => (self.demand_ms[0], of_client_ms),
        };
        let residence_ms = (at_cpus_ms - elsewhere_ms).max(demand_ms);
        let share = Station::cpus_for(demand_ms, residence_ms, self.users, self.per_ms) / self.server_cpus;
        if share.is_finite() { share.min(1.0) } else { 1.0 }
    }

    fn stations(&self, [server_ms, client_ms]: [f64; 2]) -> Vec<Station> {
        let (cpus, competitors) = (self.server_cpus * self.usable, self.competitors);
        if self.is_shared {
            return vec![Station { demand_ms: server_ms + client_ms, cpus, competitors }];
        }
        let client = Station { demand_ms: client_ms, cpus: self.client_cpus, competitors: 0.0 };
        vec![Station { demand_ms: server_ms, cpus, competitors }, client]
    }

    fn closed(&self, demand_ms: [f64; 2], delay_ms: f64) -> ClosedNetwork {
        ClosedNetwork { users: self.users, delay_ms: delay_ms.max(0.0), stations: self.stations(demand_ms) }
    }

    /// Throughput with this CPU time of a transaction, and waits that are shorter by so much; all others stay as they are.
    pub(super) fn with_demand(&self, demand_ms: [f64; 2], gone_ms: f64) -> Option<f64> {
        self.closed(demand_ms, self.delay_ms - gone_ms).throughput()
    }

    /// With this many times the server's CPUs.
    pub(super) fn with_cpus(&self, times: f64) -> Option<f64> {
        let more = System { server_cpus: self.server_cpus * times, ..self.clone() };
        more.with_demand(self.demand_ms, 0.0)
    }

    /// At least and at most, where the server may use every CPU of the machine. The generator stays on its own ones, and takes its part of them. No
    /// other wait gets shorter, or all of them go that no suspect holds. A transaction takes somewhat more CPU time on more CPUs, or less without
    /// what watches.
    pub(super) fn with_every_cpu(&self, all: &[HeldTime]) -> Option<(f64, f64)> {
        if self.machine_cpus <= self.server_cpus {
            return None;
        }
        let one = System { is_shared: true, server_cpus: self.machine_cpus, ..self.clone() };
        let by_generator = self.client_cpus / self.demand_ms[1].max(1e-9);
        let at_most = self.demand_ms.map(|ms| ms * (1.0 + MORE_CPUS_COST));
        let at_least = self.demand_ms.map(|ms| ms * (1.0 - self.watching));
        let (low, high) = (one.with_demand(at_most, 0.0)?, one.without_queues(at_least, all)?);
        Some((low.min(by_generator), high.min(by_generator)))
    }

    /// At least and at most, where the server's CPU time takes half of the time.
    pub(super) fn at_twice_the_speed(&self, all: &[HeldTime]) -> Option<(f64, f64)> {
        let [server_ms, client_ms] = self.demand_ms;
        let demand_ms = [server_ms / 2.0, client_ms];
        Some((self.with_demand(demand_ms, 0.0)?, self.without_queues(demand_ms, all)?))
    }

    /// Throughput that no order of events can exceed, with the waits that suspects hold, and those that none holds. Locks are held while
    /// transactions queue and compute, so waits for them get shorter by the same share.
    fn without_queues(&self, demand_ms: [f64; 2], all: &[HeldTime]) -> Option<f64> {
        let work_ms = |demand_ms: [f64; 2]| demand_ms.iter().sum::<f64>();
        let gone_ms = (self.queued_ms + work_ms(self.demand_ms) - work_ms(demand_ms)).max(0.0);
        let left = self.lock_waits_left(gone_ms, all);
        let waits_ms: f64 = all.iter().filter(|held| is_wait(held.cause)).map(left).sum();
        self.closed(demand_ms, waits_ms + self.unclaimed_ms + self.pause_ms).bound()
    }

    /// As multiples of what it is.
    pub(super) fn gain(&self, low: f64, high: f64) -> Gain {
        let gain = |per_ms: f64| (per_ms / self.per_ms).clamp(1.0, GAIN_MAX);
        Gain { low: gain(low.min(high)), high: gain(high.max(low)) }
    }

    /// With nobody else on the CPUs.
    pub(super) fn undisturbed(&self) -> Option<f64> {
        System { competitors: 0.0, ..self.clone() }.with_demand(self.demand_ms, 0.0)
    }

    /// What the CPUs could do if more users asked for it.
    pub(super) fn capacity(&self) -> Option<f64> {
        let cpus = self.stations(self.demand_ms).into_iter().map(|station| station.cpus / station.demand_ms);
        let capacity = cpus.fold(f64::INFINITY, f64::min);
        capacity.is_finite().then_some(capacity)
    }

    /// Without one suspect, with the least work, and with no queue that another suspect was not measured to hold. What goes may be a part of
    /// the time for which a transaction holds its locks. Then waits for these locks are shorter, too.
    pub(super) fn at_best(&self, held: HeldTime, all: &[HeldTime], least_ms: [f64; 2]) -> Option<f64> {
        let stay = |other: &&HeldTime| {
            other.cause != held.cause && is_wait(other.cause) && !is_same_file(other.cause, held.cause)
        };
        let gone_ms = held.ms + (self.demand_ms[0] - least_ms[0]).max(0.0);
        let others_ms: f64 = all.iter().filter(stay).map(self.lock_waits_left(gone_ms, all)).sum();
        self.closed(least_ms, others_ms + self.unclaimed_ms + self.pause_ms).bound()
    }

    /// Of a wait, what is left of it if so much of the time goes for which locks may be held.
    fn lock_waits_left(&self, gone_ms: f64, all: &[HeldTime]) -> impl Fn(&HeldTime) -> f64 {
        let left = 1.0 - (gone_ms / self.hold_ms(all)).clamp(0.0, 1.0);
        move |held| if is_held_lock(held.cause) { held.ms * left } else { held.ms }
    }

    /// How long a transaction may hold its locks, at most: what is left of it without waits for such locks. Where all want one lock, no longer
    /// than the time from one transaction to the next.
    fn hold_ms(&self, all: &[HeldTime]) -> f64 {
        let waits_ms: f64 = all.iter().filter(|held| is_held_lock(held.cause)).map(|held| held.lock_ms).sum();
        let cycle_ms = self.users / self.per_ms - self.pause_ms;
        (cycle_ms - waits_ms).min(1.0 / self.per_ms).max(1e-9)
    }

    /// CPU time of a transaction, at least and at most, if its statements found the rows that they send by an index. At most,
    /// each row that is sent costs what a row costs now, and statements that do not scan cost their share. `None` where nobody
    /// counted the rows that were sent.
    pub(super) fn work_by_index(&self, case: &Case, held: HeldTime) -> Option<[[f64; 2]; 2]> {
        let statements = case.count(&["Questions"])?.per_transaction;
        let (sent, read) = rows_read::rows_sent_and_read(case)?;
        let [server_ms, client_ms] = self.demand_ms;
        let remaining_ms = server_ms * (1.0 - held.cpu_share) + server_ms * (sent / read).min(1.0);
        let [least_ms, most_ms] = STATEMENT_MS.map(|statement_ms| statement_ms * statements);
        let least = [least_ms.min(server_ms), self.least_user_ms[1]];
        Some([least, [(most_ms + remaining_ms).min(server_ms), client_ms]])
    }
}

/// Those of server and generator where the machine's are not known.
fn machine_cpus(machine: &Machine) -> u32 {
    let of_both = if machine.shared { 0 } else { machine.server_cpus + machine.client_cpus };
    machine.cpus.max(of_both)
}

/// CPU time of one transaction at a level: the server's process's and the generator's.
fn demand_ms(level: &Level) -> Option<[f64; 2]> {
    let client_ms = level.client_cpu_s * 1e3 / level.transactions.max(1) as f64;
    Some([level.server_cpu_ms_per_transaction()?, client_ms])
}

/// The least of each, times a share at its level, at the valid levels of the sweep that have no more users than this one.
fn least_demand_ms(case: &Case, shares: impl Fn(&Level) -> [f64; 2]) -> Option<[f64; 2]> {
    let of_level = |level: &Level| {
        let ([server_ms, client_ms], [of_server, of_client]) = (demand_ms(level)?, shares(level));
        Some([server_ms * of_server, client_ms * of_client])
    };
    let sweep = case.levels.iter().filter(|level| !level.repeat && level.verdict.valid);
    let demands = sweep.filter(|level| level.users <= case.level.users).filter_map(of_level);
    let here = of_level(case.level)?;
    Some(demands.fold(here, |least, demand| [least[0].min(demand[0]), least[1].min(demand[1])]))
}

/// Share of the CPU time of the server and of the generator that is in user code; 1 where that was not counted.
fn user_shares(level: &Level) -> [f64; 2] {
    [("server_process", "server"), ("generator_process", "generator")].map(|(source, instance)| {
        let ns = |metric| level.counter(source, metric, instance).map(|counter| counter.increase);
        let share = ns("user_ns").zip(ns("system_ns")).map(|(user, system)| user / (user + system));
        share.filter(|share| share.is_finite()).unwrap_or(1.0)
    })
}

/// Time of a transaction at the CPUs: work, and the queues in front of them.
fn at_cpus_ms(case: &Case, all: &[HeldTime]) -> f64 {
    let Some(budget) = case.budget else {
        let waits_ms: f64 = all.iter().filter(|held| is_wait(held.cause)).map(|held| held.ms).sum();
        return match case.are_cpus_full() {
            true => case.response_ms - waits_ms,
            false => case.cpu_ms() + case.client_cpu_ms() + case.runqueue_ms(),
        };
    };
    // A request waits in its socket for the network or for a thread of a pool, or else for a CPU.
    let is_queue = !all.iter().any(|held| matches!(held.cause, Cause::Network | Cause::ThreadConcurrency));
    let transit_ms = if is_queue { case.ms(Part::TransitIn) } else { 0.0 };
    let parts = [Part::Cpu, Part::Runqueue, Part::ClientCpu, Part::ClientDelay];
    parts.map(|part| case.ms(part)).iter().sum::<f64>() - budget.client_wakeup_ms
        + transit_ms
        + proxy::queued_ms(case)
}

/// Waits outside of locks that no suspect was measured to hold.
fn unclaimed_ms(case: &Case, all: &[HeldTime]) -> f64 {
    const PARTS: [Part; 8] = [
        Part::KernelLock,
        Part::FileRead,
        Part::FileWrite,
        Part::FileSync,
        Part::NetSend,
        Part::PageFault,
        Part::Sleep,
        Part::Other,
    ];
    let waited_ms: f64 = PARTS.iter().map(|part| case.ms(*part)).sum();
    let claimed =
        all.iter().filter(|held| is_wait(held.cause) && !matches!(held.cause, Cause::Network | Cause::Proxy));
    (waited_ms - claimed.map(|held| held.ms - held.lock_ms).sum::<f64>()).max(0.0)
}

/// Whether it is a lock that a transaction or a session holds while it does other things.
fn is_held_lock(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::RowLock | Cause::Deadlock | Cause::TableLock | Cause::UserLock | Cause::MetadataLock
    )
}

/// Whether what a cause holds is a wait for something else than a CPU. Clients that wait for a connection mostly wait for the server's work on it.
fn is_wait(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::Cpu
            | Cause::Runqueue
            | Cause::CpuQuota
            | Cause::PreemptedHolder
            | Cause::NoisyNeighbour
            | Cause::WakeupLatency
            | Cause::Generator
            | Cause::Unsaturated
            | Cause::ConnectionChurn
            | Cause::Unknown
    )
}

/// Whether the waits of two causes are for one file, so that the ones are a queue behind the others.
fn is_same_file(one: Cause, other: Cause) -> bool {
    let is_redo = |cause| matches!(cause, Cause::RedoFlush | Cause::RedoWrite);
    is_redo(one) && is_redo(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_time(cause: Cause, ms: f64, lock_ms: f64) -> HeldTime {
        HeldTime { cause, ms, lock_ms, cpu_share: 0.0, certainty: 1.0 }
    }

    /// Eight users, each at work for 5.3 ms, 4 ms of them in wait for one row.
    fn system() -> System {
        System {
            users: 8.0,
            per_ms: 1.5,
            demand_ms: [0.2, 0.05],
            least_ms: [0.2, 0.05],
            least_user_ms: [0.2, 0.05],
            server_cpus: 2.0,
            client_cpus: 2.0,
            machine_cpus: 4.0,
            is_shared: false,
            competitors: 0.0,
            usable: 1.0,
            delay_ms: 5.0,
            queued_ms: 0.0,
            unexplained_ms: 0.0,
            pause_ms: 0.0,
            unclaimed_ms: 0.3,
            is_generator_full: false,
            watching: 0.0,
        }
    }

    #[test]
    fn a_server_that_gets_the_generators_cpu_shares_it() {
        // One full CPU for the server, and a generator that keeps another one busy for three tenths of the time.
        let system = System {
            per_ms: 10.0,
            demand_ms: [0.1, 0.03],
            server_cpus: 1.0,
            client_cpus: 1.0,
            machine_cpus: 2.0,
            delay_ms: 0.0,
            unclaimed_ms: 0.0,
            ..system()
        };
        let (low, high) = system.with_every_cpu(&[]).unwrap();
        let gain = system.gain(low, high);
        assert!((gain.high - 2.0 / 1.3).abs() < 1e-9 && (1.3..=gain.high).contains(&gain.low), "{gain:?}");
        let (low, high) = system.at_twice_the_speed(&[]).unwrap();
        let gain = system.gain(low, high);
        assert!((gain.high - 2.0).abs() < 1e-9 && (1.7..=2.0).contains(&gain.low), "{gain:?}");
        assert_eq!(System { machine_cpus: 1.0, ..system }.with_every_cpu(&[]), None, "it has them already");
    }

    #[test]
    fn locks_that_are_held_in_queues_are_waited_for_less_without_them() {
        let row = held_time(Cause::RowLock, 4.0, 4.0);
        // Transactions hold their locks for 0.67 ms at most, and half of that is a queue for the CPUs.
        let waits = System { queued_ms: 0.0, ..system() }.without_queues([0.2, 0.05], &[row]).unwrap();
        let queues = System { queued_ms: 1.0 / 3.0, ..system() }.without_queues([0.2, 0.05], &[row]).unwrap();
        assert!((waits - 8.0 / 4.55).abs() < 1e-9 && (queues - 8.0 / 2.55).abs() < 1e-9, "{waits}, {queues}");
    }

    #[test]
    fn what_a_lock_is_held_for_may_be_what_goes() {
        let (row, sync) = (held_time(Cause::RowLock, 4.0, 4.0), held_time(Cause::Binlog, 0.42, 0.0));
        let system = system();
        assert_eq!(
            system.hold_ms(&[row, sync]),
            1.0 / 1.5,
            "one holder at a time, and no longer than until the next"
        );
        let least_ms = [0.2, 0.05];
        let with_row = system.at_best(sync, &[row, sync], least_ms).unwrap();
        // 0.42 of 0.67 ms for which the row is held: as much of the waits for it goes.
        let waits_ms = 4.0 * (1.0 - 0.42 * 1.5);
        let bound = 8.0 / (0.25 + waits_ms + 0.3);
        assert!((with_row - bound).abs() < 1e-9, "{with_row} {bound}");
        // A latch of the server is held for no statement, and nothing is known of it.
        let latch = held_time(Cause::IndexLatch, 4.0, 4.0);
        let with_latch = system.at_best(sync, &[latch, sync], least_ms).unwrap();
        assert!((with_latch - 8.0 / (0.25 + 4.0 + 0.3)).abs() < 1e-9, "{with_latch}");
    }
}

//! The level that is asked about, with everything that was measured of it.

use std::collections::BTreeMap;
use whyso_model::LockKind;

use super::model::SuspectObject;
use crate::level::{Level, levels_evidence};
use crate::model::{Budget, Counter, Evidence, FileWait, Input, Machine, Part, SeriesName, StatementWork};
use crate::others;
use crate::regime::Shape;
use crate::sessions::Sessions;
use crate::{budget, locks};

/// CPUs are held to be the limit from here on.
pub(super) const FULL: f64 = 0.85;

/// Samplers that read the server's counters; a name is looked for in this order.
const COUNTER_SOURCES: [&str; 2] = ["status", "innodb_metrics"];

pub(super) struct Case<'a, 'b> {
    pub(super) level: &'b Level<'a>,
    pub(super) levels: &'b [Level<'a>],
    pub(super) budget: Option<&'b Budget>,
    /// The server is on another machine, or its process can't be found.
    pub(super) is_elsewhere: bool,
    pub(super) machine: &'b Machine,
    pub(super) variables: &'b BTreeMap<String, String>,
    /// What one execution of each kind of statement does.
    pub(super) work: &'b [StatementWork],
    pub(super) response_ms: f64,
    pub(super) transactions: f64,
    /// More users would give more throughput; `None` where one level can't say.
    pub(super) still_rising: Option<bool>,
}

/// What a counter of the server grew by.
pub(super) struct Measure {
    pub(super) per_transaction: f64,
    pub(super) per_s: f64,
    pub(super) series: SeriesName,
}

impl<'a, 'b> Case<'a, 'b> {
    /// `None` where nothing was measured.
    pub(super) fn new(
        level: &'b Level<'a>,
        levels: &'b [Level<'a>],
        shape: Option<&Shape>,
        budgets: &'b [Budget],
        input: &'b Input,
    ) -> Option<Case<'a, 'b>> {
        let response_ms = level.latency_mean_ms?;
        if level.transactions == 0 || level.seconds <= 0.0 {
            return None;
        }
        let still_rising = shape
            .filter(|shape| shape.points.len() > 1)
            .map(|shape| shape.still_rising || level.users < shape.points[shape.same.0].users);
        let budget = budgets.iter().find(|budget| budget.level == level.index);
        let is_elsewhere = budget.is_some_and(|budget| budget.remote);
        let budget = budget.filter(|budget| !budget.remote);
        let transactions = level.transactions as f64;
        Some(Case {
            is_elsewhere,
            level,
            levels,
            budget,
            machine: &input.machine,
            variables: &input.variables,
            work: &input.statement_work,
            response_ms,
            transactions,
            still_rising,
        })
    }

    /// What a user does over and over, as the sentences name it.
    pub(super) fn unit(&self) -> &'static str {
        self.level.unit()
    }

    pub(super) fn is_traced(&self) -> bool {
        self.budget.is_some()
    }

    /// What sessions did, by enough samples of the process list to go by.
    pub(super) fn sessions(&self) -> Option<&'b Sessions> {
        self.level.sessions.as_ref().filter(|sessions| sessions.are_enough())
    }

    /// Time in one part of the budget; 0 where the level was not traced.
    pub(super) fn ms(&self, part: Part) -> f64 {
        self.budget.map_or(0.0, |budget| budget.ms(part))
    }

    /// Time that attempts lost to an error of this number, for one transaction that ended well.
    pub(super) fn lost_ms(&self, number: &str) -> f64 {
        let lost = self.level.lost_ms_by_code.iter().filter(|(code, _)| code.starts_with(number));
        lost.map(|(_, ms)| ms).filter(|ms| (0.0..1e18).contains(*ms)).sum::<f64>() / self.transactions
    }

    /// Share of the response time, 0 to 1.
    pub(super) fn share(&self, ms: f64) -> f64 {
        let share = ms / self.response_ms;
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The first of these counters of the server that was recorded.
    pub(super) fn count(&self, names: &[&str]) -> Option<Measure> {
        let mut named =
            COUNTER_SOURCES.iter().flat_map(|source| names.iter().map(move |name| (*source, *name)));
        named.find_map(|(source, name)| self.measure(source, name, ""))
    }

    pub(super) fn measure(&self, source: &str, metric: &str, instance: &str) -> Option<Measure> {
        let counter = self.level.counter(source, metric, instance)?;
        Some(Measure {
            per_transaction: counter.increase / self.transactions,
            per_s: counter.increase / self.level.seconds,
            series: counter.series.clone(),
        })
    }

    /// This counter of each disk of the server's machine.
    pub(super) fn disks(&self, metric: &str) -> impl Iterator<Item = &'a Counter> {
        self.level.counters.iter().filter(move |counter| {
            let series = &counter.series;
            let is_disk = series.source == "disk" && series.metric == metric;
            is_disk && counter.increase < 1e24 && !series.is_of_generator()
        })
    }

    /// The sum of these counters for one transaction, with those that were recorded.
    pub(super) fn counts(&self, names: &[&str]) -> (f64, Vec<SeriesName>) {
        let found: Vec<Measure> = names.iter().filter_map(|name| self.count(&[name])).collect();
        let sum = found.iter().map(|measure| measure.per_transaction).sum();
        (sum, found.into_iter().map(|measure| measure.series).collect())
    }

    pub(super) fn gauge(&self, name: &str) -> Option<(f64, f64, SeriesName)> {
        let sources = COUNTER_SOURCES.iter().chain(&["innodb_status"]);
        let gauge = sources.into_iter().find_map(|source| self.level.gauge(source, name, ""))?;
        let max = if gauge.max.is_finite() { gauge.max } else { gauge.mean };
        Some((gauge.mean, max, gauge.series.clone()))
    }

    /// "; 71 % of the waiting connections that were sampled waited for shop.orders (PRIMARY), held by …"; empty where none is known.
    pub(super) fn lock_object(&self, kind: LockKind) -> String {
        budget::main_object(self.level, kind).map_or(String::new(), |(object, _)| {
            format!(
                "; {} of the waiting connections that were sampled waited for {}",
                whyso_words::percent(object.share),
                budget::described(object)
            )
        })
    }

    /// The object that most of the connections waited for that were found waiting for a kind of lock.
    pub(super) fn object(&self, kind: LockKind) -> Option<SuspectObject> {
        budget::main_object(self.level, kind).map(|(object, _)| budget::suspect_object(object))
    }

    /// The number of connections that were found waiting for a kind of lock.
    pub(super) fn lock_samples(&self, kind: LockKind) -> Option<Evidence> {
        budget::main_object(self.level, kind)?;
        let gauge = self.level.gauge(locks::SOURCE, locks::WAITING, kind.name())?;
        Some(self.series(&gauge.series))
    }

    /// Time of the mean transaction that connections were found waiting for locks of a kind whose mode is one of these, in ms;
    /// `None` where too few were found waiting to go by.
    pub(super) fn lock_sampled_ms(&self, kind: LockKind, is_mode: impl Fn(&str) -> bool) -> Option<f64> {
        let found: Vec<_> = self
            .level
            .lock_objects
            .iter()
            .filter(|object| object.kind == kind && is_mode(&object.mode))
            .collect();
        if found.iter().map(|object| object.samples).sum::<u64>() < locks::SAMPLES_MIN {
            return None;
        }
        let waited_ns: f64 =
            found.iter().filter_map(|object| object.waited_ns).filter(|ns| (0.0..1e24).contains(ns)).sum();
        (waited_ns > 0.0).then(|| waited_ns / 1e6 / self.transactions)
    }

    pub(super) fn variable(&self, name: &str) -> Option<&'b str> {
        self.variables.get(name).map(String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.variable(name)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| {
            value == "1" || value.eq_ignore_ascii_case("ON") || value.eq_ignore_ascii_case("YES")
        })
    }

    /// Share of the CPUs that the server may use which is used, 0 to 1; `None` where it was not measured.
    pub(super) fn cpus_used(&self) -> Option<f64> {
        let of_server = self.level.server_cpu_share(self.machine);
        if !self.machine.shared
            && let Some(share) = self.own_cpus_busy().or(of_server)
        {
            return Some(share.clamp(0.0, 1.0));
        }
        let of_machine = self.level.cpu.map(|cpu| (1.0 - cpu.idle - cpu.iowait).clamp(0.0, 1.0));
        of_machine.or(of_server.map(|share| share.clamp(0.0, 1.0)))
    }

    /// Share of the time in which the CPUs that the server has to itself were busy, with whatever ran there.
    fn own_cpus_busy(&self) -> Option<f64> {
        if self.machine.shared || self.machine.server_cpus == 0 || self.level.seconds <= 0.0 {
            return None;
        }
        let busy_s = others::busy_s_of_server_cpus(self.level, self.machine)?;
        Some(busy_s / f64::from(self.machine.server_cpus) / self.level.seconds)
    }

    pub(super) fn are_cpus_full(&self) -> bool {
        self.cpus_used().is_some_and(|used| used >= FULL)
    }

    /// CPU time of the server for one transaction, by the budget or else by the process's account.
    pub(super) fn cpu_ms(&self) -> f64 {
        match self.budget {
            Some(budget) => budget.ms(Part::Cpu),
            None => self.level.server_cpu_ms_per_transaction().unwrap_or(0.0),
        }
    }

    /// The same for waits of the server's threads for a CPU.
    pub(super) fn runqueue_ms(&self) -> f64 {
        if let Some(budget) = self.budget {
            return budget.ms(Part::Runqueue);
        }
        let waited = ["runqueue_wait_ns", "runqueue_ns"]
            .iter()
            .find_map(|metric| self.measure("server_process", metric, "server"));
        waited.map_or(0.0, |waited| waited.per_transaction / 1e6)
    }

    pub(super) fn client_cpu_ms(&self) -> f64 {
        self.level.client_cpu_s * 1e3 / self.transactions
    }

    /// Threads' sleep on locks. Where the level was not traced: what neither the CPUs nor the run queue hold, locks,
    /// disks, wake-ups and the network together.
    pub(super) fn lock_ms(&self) -> f64 {
        match self.budget {
            Some(budget) => budget.ms(Part::Lock),
            None => (self.response_ms - self.cpu_ms() - self.runqueue_ms() - self.client_cpu_ms()).max(0.0),
        }
    }

    /// CPUs' worth of other programs' work, the hypervisor's other machines included, as a share of the server's CPUs.
    pub(super) fn others_share(&self) -> f64 {
        let cpus = f64::from(self.machine.server_cpus.max(1));
        let programs = match (self.own_cpus_busy(), self.level.server_cpu_share(self.machine)) {
            (Some(busy), Some(of_server)) => busy - of_server,
            _ => others::disturbing_cpus(self.level, self.machine).unwrap_or(0.0) / cpus,
        };
        let steal = self.level.cpu.map_or(0.0, |cpu| cpu.steal.max(0.0));
        (programs + steal).clamp(0.0, 1.0)
    }

    /// Waits on files whose path is one of these, in this state.
    pub(super) fn file_waits(&self, state: &str, is_one: impl Fn(&str) -> bool) -> FileTime {
        let mut time = FileTime::default();
        for wait in self.level.file_waits.iter().filter(|wait| wait.state == state && is_one(&wait.path)) {
            if !(0.0..1e24).contains(&wait.ns) {
                continue;
            }
            time.busy += wait.ns / 1e9 / self.level.seconds;
            if wait.role == "connection" {
                time.connection_ms += wait.ns / 1e6 / self.transactions;
            }
        }
        time
    }

    /// Of statements that clients sent, how many one of these counters counted: 0 to 1; `None` where that was not recorded.
    pub(super) fn share_of_statements(&self, counters: &[&str]) -> Option<f64> {
        let all = self.count(&["Questions"])?.per_transaction;
        let share = self.counts(counters).0 / all;
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }

    /// The file that was waited on longest in this state.
    pub(super) fn worst_file(&self, state: &str) -> Option<&'b FileWait> {
        let waits: &'b [FileWait] = self.level.file_waits;
        waits.iter().filter(|wait| wait.state == state).max_by(|a, b| a.ns.total_cmp(&b.ns))
    }

    pub(super) fn has_file_waits(&self) -> bool {
        !self.level.file_waits.is_empty()
    }

    /// The valid level of the sweep with the fewest users, where it has fewer than this one.
    pub(super) fn fewest(&self) -> Option<&'b Level<'a>> {
        let sweep = self.levels.iter().filter(|level| !level.repeat && level.verdict.valid);
        sweep.min_by_key(|level| level.users).filter(|level| level.users < self.level.users)
    }

    /// Writes to the server's tables for one transaction.
    pub(super) fn writes(&self) -> f64 {
        self.counts(&["Handler_write", "Handler_update", "Handler_delete"]).0
    }

    // ------------------------------------------------------------------ evidence

    pub(super) fn series(&self, series: &SeriesName) -> Evidence {
        Evidence::Series { series: series.clone(), begin_ns: self.level.begin_ns, end_ns: self.level.end_ns }
    }

    pub(super) fn all_series(&self, series: &[SeriesName]) -> Vec<Evidence> {
        series.iter().map(|name| self.series(name)).collect()
    }

    /// The tracer's series of these parts.
    pub(super) fn parts(&self, parts: &[Part]) -> Vec<Evidence> {
        let Some(budget) = self.budget else {
            return vec![self.level_quantity("latency_mean_ms")];
        };
        let shown = budget.parts.iter().filter(|part| parts.contains(&part.part) && part.ms > 0.0);
        shown.flat_map(|part| self.all_series(&part.series)).collect()
    }

    pub(super) fn fact(&self, variable: &str) -> Option<Evidence> {
        let value = self.variable(variable)?.to_string();
        Some(Evidence::Fact { path: format!("server.variables.{variable}"), value })
    }

    pub(super) fn level_quantity(&self, quantity: &str) -> Evidence {
        levels_evidence(quantity, &[self.level])
    }
}

/// Time in waits on some files.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileTime {
    /// Threads that waited at a time, all roles: 1 is one thread, always.
    pub(super) busy: f64,
    /// Of connections' threads, for one transaction.
    pub(super) connection_ms: f64,
}

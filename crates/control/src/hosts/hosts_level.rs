//! A level that several hosts send together.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_hub::{LoadPhase, LoadStep};
use whyso_load::{
    Cause, EngineKind, EngineUse, Failure, Interval, IntervalMerge, LevelOutcome, Live, Tuning,
};
use whyso_record::Recorder;
use whyso_record::data::{Kind, Reading, SeriesKey, Status, Value};

use super::load_host::{GeneratorHost, LoadOrders, lock, sleep_until, soon_ns};
use crate::Error;

/// Hosts whose windows begin or end this much apart did not send one load.
const EDGES_APART_NS_MAX: i64 = 100_000_000;
/// A host that does not answer for this long has failed.
const SILENT_TIME_MAX: Duration = Duration::from_secs(20);
/// Bound on a level's last word, after it was asked to end.
const OUTCOME_TIME_MAX: Duration = Duration::from_secs(45);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

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
    /// `hosts`: those that have users in it.
    pub(super) fn new(
        orders: LoadOrders,
        hosts: Vec<GeneratorHost>,
        users: u32,
        begin_ns: i64,
    ) -> HostsLevel {
        HostsLevel {
            orders,
            merge: IntervalMerge::new(hosts.len()),
            hosts,
            users,
            begin_ns,
            is_stopped: false,
        }
    }

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
}

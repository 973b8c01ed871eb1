//! A level as the rest of the crate sees it: without numbers that make no sense, and with what follows from only this level.

use std::collections::BTreeMap;

use crate::activities::Activities;
use crate::model::{
    AccessLogInput, Counter, CpuUse, EndedWaits, Evidence, FileWait, Gauge, LevelInput, LevelVerdict,
    LockObject, LoopKind, Machine, MachineInput, NodeInput, PageTimes, Pauses, Regime, SampledClass,
    StatementTime, Worker,
};
use crate::sessions::Sessions;
use whyso_inference::bins::BINS_PER_S;
use whyso_inference::interval;
use whyso_inference::steady::{self, Change, Warmup};

/// What the load generator calls the making of a new connection, among the kinds of statements.
pub(crate) const CONNECT: &str = "connect";

/// "8 users", or "1,000/s" in a sweep over rates.
pub(crate) fn name(users: u32, rate_per_s: Option<f64>) -> String {
    match rate_per_s {
        Some(rate_per_s) => format!("{}/s", whyso_words::number(rate_per_s)),
        // Of a load that something else drives, and of a window without an answer.
        None if users == 0 => "an unknown number of users".to_string(),
        None => whyso_words::users(users),
    }
}

/// "1, 2 and 4 users", or "500/s and 1,000/s".
pub(crate) fn names(levels: &[&Level]) -> String {
    if levels.iter().any(|level| level.rate_per_s.is_some()) {
        return whyso_words::list(&levels.iter().map(|level| level.name()).collect::<Vec<_>>());
    }
    match levels {
        [only] => only.name(),
        _ => {
            let users: Vec<String> =
                levels.iter().map(|level| whyso_words::whole(u64::from(level.users))).collect();
            format!("{} users", whyso_words::list(&users))
        }
    }
}

/// "the level of 1 user", "the levels of 1 and 2 users".
pub(crate) fn levels_of(levels: &[&Level]) -> String {
    format!("the {} of {}", if levels.len() == 1 { "level" } else { "levels" }, names(levels))
}

/// One level of the input. Its verdict has throughput and steadiness; [`crate::verdict`] adds the rest.
#[derive(Clone, Debug)]
pub(crate) struct Level<'a> {
    pub(crate) index: u32,
    pub(crate) users: u32,
    /// Of a sweep over rates.
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) rate_held: bool,
    pub(crate) repeat: bool,
    pub(crate) is_across_hosts: bool,
    /// As of [`LevelInput::load_hosts_waited`].
    pub(crate) load_hosts_waited: f64,
    /// As of [`LevelInput::load_hosts_ms`].
    pub(crate) load_hosts_ms: f64,
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    /// Length of the measured window, above 0 where anything was measured.
    pub(crate) seconds: f64,
    pub(crate) transactions: u64,
    pub(crate) queries: u64,
    pub(crate) errors: u64,
    /// `None` where nothing was measured.
    pub(crate) latency_mean_ms: Option<f64>,
    pub(crate) bins: Vec<f64>,
    pub(crate) client_cpu_s: f64,
    pub(crate) client_saturated_why: &'a str,
    pub(crate) cut_short: &'a str,
    pub(crate) cpu: Option<CpuUse>,
    pub(crate) server_cpu_s: Option<f64>,
    pub(crate) nodes: &'a [NodeInput],
    pub(crate) machines: &'a [MachineInput],
    pub(crate) counters: &'a [Counter],
    pub(crate) gauges: &'a [Gauge],
    pub(crate) file_waits: &'a [FileWait],
    pub(crate) program_file_waits: &'a [FileWait],
    pub(crate) pauses: &'a [Pauses],
    pub(crate) wait_classes: &'a [SampledClass],
    pub(crate) statements: &'a [StatementTime],
    /// Pauses within transactions, of all users together.
    pub(crate) paused_s: f64,
    /// CPU time by activity; `None` where too few stacks were sampled.
    pub(crate) activities: Option<Activities>,
    pub(crate) ended_waits: &'a [EndedWaits],
    pub(crate) lock_objects: &'a [LockObject],
    pub(crate) access_logs: &'a [AccessLogInput],
    pub(crate) workers: &'a [Vec<Worker>],
    pub(crate) pacing: LoopKind,
    /// What sessions did, by samples of the process list.
    pub(crate) sessions: Option<Sessions>,
    /// Whether something else loaded the server, and nothing saw its requests. Their mean time is then that of the sampled sessions,
    /// divided by the number of requests (J. D. C. Little, 1961).
    pub(crate) is_untraced: bool,
    /// Mean time of a transaction's last attempt; `None` where it was not recorded.
    pub(crate) service_mean_ms: Option<f64>,
    /// Of a recorded load on a site.
    pub(crate) pages: Option<PageTimes>,
    /// Time that attempts of transactions lost to errors, all of them together.
    pub(crate) lost_ms: f64,
    pub(crate) lost_ms_by_code: &'a BTreeMap<String, f64>,
    /// Time within the window of transactions in flight at its end, less the time before it of those that ended in it. In ms per
    /// transaction that ended. The time budget has it, and the mean response time does not. 0 where it was not recorded.
    pub(crate) at_ends_ms: f64,
    /// Where throughput changed for good within the window.
    pub(crate) change: Option<Change>,
    pub(crate) verdict: LevelVerdict,
}

impl<'a> Level<'a> {
    pub(crate) fn new(input: &'a LevelInput) -> Level<'a> {
        let window_s = (input.end_ns as f64 - input.begin_ns as f64) / 1e9;
        let seconds = if window_s > 0.0 { window_s } else { input.bins_100ms.len() as f64 / BINS_PER_S };
        // The window's last bin is cut by its end unless it ends on a full 100 ms.
        let full_bins = (seconds * BINS_PER_S + 0.05) as usize;
        let bins: Vec<f64> = input.bins_100ms.iter().take(full_bins).map(|&count| f64::from(count)).collect();
        let warmup =
            if input.warmup_steady == Some(false) { Warmup::NeverSteady } else { Warmup::Unremarkable };
        let checked = steady::check(&bins, warmup);
        let change = match checked {
            steady::Verdict::Changed(change) => Some(change),
            _ => None,
        };
        let (per_s, part) = match change {
            Some(change) => (change.before_per_s, &bins[..change.at_bin]),
            None if seconds > 0.0 => (input.transactions as f64 / seconds, &bins[..]),
            None => (0.0, &bins[..]),
        };
        let half_width = match checked {
            steady::Verdict::Steady => interval::half_width_per_s(part),
            // The mean of a climb is that of no state of the server. The part before a change was chosen by its noise, too.
            steady::Verdict::Changed(_)
            | steady::Verdict::Climbed(_)
            | steady::Verdict::TooShort
            | steady::Verdict::StillWarming => None,
        };
        let sessions = Sessions::of(&input.counters, &input.gauges);
        let measured_ms = positive(input.latency_mean_ms);
        let is_untraced = input.pacing == LoopKind::Recorded && measured_ms.is_none();
        let sampled_ms = sessions.as_ref().filter(|_| is_untraced && input.transactions > 0);
        let sampled_ms = sampled_ms.and_then(|sessions| {
            positive(sessions.in_statement_s(seconds) * 1e3 / input.transactions as f64)
        });
        Level {
            index: input.index,
            users: input.users,
            rate_per_s: input.rate_per_s.and_then(positive),
            rate_held: input.rate_held,
            repeat: input.repeat,
            is_across_hosts: input.is_across_hosts,
            load_hosts_waited: input.load_hosts_waited,
            load_hosts_ms: input.load_hosts_ms,
            begin_ns: input.begin_ns,
            end_ns: input.end_ns,
            seconds,
            transactions: input.transactions,
            queries: input.queries,
            errors: input.errors,
            latency_mean_ms: measured_ms.or(sampled_ms),
            client_cpu_s: positive(input.client_cpu_s).unwrap_or(0.0),
            client_saturated_why: &input.client_saturated_why,
            cut_short: &input.cut_short,
            cpu: input.cpu.and_then(clean_cpu),
            server_cpu_s: input.server_cpu_s.and_then(positive),
            nodes: &input.nodes,
            machines: &input.machines,
            counters: &input.counters,
            gauges: &input.gauges,
            file_waits: &input.file_waits,
            program_file_waits: &input.program_file_waits,
            pauses: &input.pauses,
            wait_classes: &input.wait_classes,
            statements: &input.statements,
            paused_s: input.user_seconds.map_or(0.0, |seconds| seconds.paused),
            activities: Activities::of(&input.activities),
            ended_waits: &input.ended_waits,
            lock_objects: &input.lock_objects,
            access_logs: &input.access_logs,
            workers: &input.workers,
            pacing: input.pacing,
            sessions,
            is_untraced,
            service_mean_ms: positive(input.service_mean_ms),
            pages: input.pages.filter(|pages| pages.count > 0 && positive(pages.mean_ms).is_some()),
            lost_ms: input.lost_ms_by_code.values().filter_map(|&ms| positive(ms)).sum(),
            lost_ms_by_code: &input.lost_ms_by_code,
            at_ends_ms: at_ends_ms(input),
            change,
            verdict: LevelVerdict {
                index: input.index,
                users: input.users,
                transactions_per_s: per_s,
                transactions_per_s_ci95: half_width.map(|half| [(per_s - half).max(0.0), per_s + half]),
                steadiness: checked.steadiness(),
                regime: Regime::Unknown,
                valid: true,
                invalid_why: String::new(),
                stuck: String::new(),
                cpu: None,
                server_cpus: None,
                client_cpus: 0.0,
                other_clients: None,
            },
            bins,
        }
    }

    /// What throughput and times are of: a transaction, or a request where something else loaded the server.
    pub(crate) fn unit(&self) -> &'static str {
        if self.pacing == LoopKind::Recorded { "request" } else { "transaction" }
    }

    /// What it differs from the others in: "8 users", or "1,000/s" in a sweep over rates.
    pub(crate) fn name(&self) -> String {
        if !self.is_untraced || self.rate_per_s.is_some() {
            return name(self.users, self.rate_per_s);
        }
        let clients_mean = self.sessions.as_ref().and_then(|sessions| sessions.clients_mean);
        match clients_mean.map_or(self.users, |mean| mean.round() as u32) {
            0 => "an unknown number of clients".to_string(),
            1 => "1 connected client".to_string(),
            clients => format!("{} connected clients", whyso_words::whole(u64::from(clients))),
        }
    }

    /// What is known of a load that nothing traced: "6 connected clients did 647 requests/s; 4.9 of them were in a statement, on average."
    pub(crate) fn untraced_result(&self, per_s: &str) -> String {
        let active = self.sessions.as_ref().map_or(String::new(), |sessions| {
            format!(
                "; {} of them were in a statement, on average of {} snapshots of the process list",
                whyso_words::number(sessions.active_mean()),
                whyso_words::whole(sessions.snapshots.round() as u64)
            )
        });
        let name = self.name();
        let mut characters = name.chars();
        let name: String =
            characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect());
        format!("{name} did {per_s} {}s/s{active}.", self.unit())
    }

    /// The counter of this name, whatever the host, where it grew by a number that makes sense.
    pub(crate) fn counter(&self, source: &str, metric: &str, instance: &str) -> Option<&'a Counter> {
        self.counters.iter().find(|counter| {
            let series = &counter.series;
            series.source == source
                && series.metric.eq_ignore_ascii_case(metric)
                && series.instance == instance
                && (0.0..1e24).contains(&counter.increase)
        })
    }

    /// The gauge of this name, whatever the host.
    pub(crate) fn gauge(&self, source: &str, metric: &str, instance: &str) -> Option<&'a Gauge> {
        self.gauges.iter().find(|gauge| {
            let series = &gauge.series;
            series.source == source
                && series.metric.eq_ignore_ascii_case(metric)
                && series.instance == instance
                && gauge.mean.is_finite()
                && gauge.mean.abs() < 1e24
        })
    }

    /// Whether agents recorded its nodes on several machines: gauges of this level are not those of each.
    pub(crate) fn is_over_hosts(&self) -> bool {
        self.nodes.iter().any(|node| !node.host.is_empty())
    }

    /// Returns the time that clients waited for new connections, per transaction; 0 where there were none, or nobody measured it.
    pub(crate) fn connect_ms(&self) -> f64 {
        let connects = self.statements.iter().filter(|statement| statement.kind == CONNECT);
        let ms: f64 = connects.map(|connect| connect.count as f64 * connect.mean_ms).sum();
        let per_transaction = ms / self.transactions.max(1) as f64;
        if (0.0..1e12).contains(&per_transaction) { per_transaction } else { 0.0 }
    }

    /// Returns the time of pauses within transactions, per transaction; 0 where there are none, or nobody measured them.
    pub(crate) fn pause_ms(&self) -> f64 {
        let ms = self.paused_s * 1e3 / self.transactions.max(1) as f64;
        if (0.0..1e12).contains(&ms) { ms } else { 0.0 }
    }

    pub(crate) fn per_s(&self) -> f64 {
        self.verdict.transactions_per_s
    }

    /// Known not to be steady; a level that is too short to say is not.
    pub(crate) fn is_unstable(&self) -> bool {
        self.verdict.steadiness.is_steady() == Some(false)
    }

    /// Part of the sweep, with a throughput that stands for the server.
    pub(crate) fn counts(&self) -> bool {
        !self.repeat && self.verdict.valid && !self.is_unstable()
    }

    /// Share of the time of the server's CPUs that its process used; `None` where either is unknown.
    pub(crate) fn server_cpu_share(&self, machine: &Machine) -> Option<f64> {
        let cpu_s = self.server_cpu_s?;
        share_of_cpus(cpu_s, machine.server_cpus, self.seconds)
    }

    /// The same for the generator.
    pub(crate) fn client_cpu_share(&self, machine: &Machine) -> Option<f64> {
        share_of_cpus(self.client_cpu_s, machine.client_cpus, self.seconds)
    }

    /// CPU time that the server's process used for one transaction.
    pub(crate) fn server_cpu_ms_per_transaction(&self) -> Option<f64> {
        let cpu_s = self.server_cpu_s?;
        (self.transactions > 0 && cpu_s > 0.0).then(|| cpu_s * 1e3 / self.transactions as f64)
    }
}

/// Points a finding to a result of these levels.
pub(crate) fn levels_evidence(quantity: &str, levels: &[&Level]) -> Evidence {
    Evidence::Levels {
        quantity: quantity.to_string(),
        levels: levels.iter().map(|level| level.index).collect(),
    }
}

/// Time within the window of transactions in flight at its end, less the time before it of those that ended in it. In ms per
/// transaction that ended. 0 where it was not recorded, or no transaction ended.
fn at_ends_ms(input: &LevelInput) -> f64 {
    let at_ends_s = input.user_seconds.map_or(0.0, |time| time.in_flight - time.before);
    let ms = at_ends_s * 1e3 / input.transactions as f64;
    if ms.is_finite() { ms } else { 0.0 }
}

/// Above 0 and below what any clock or counter could give.
fn positive(value: f64) -> Option<f64> {
    (value > 0.0 && value < 1e18).then_some(value)
}

fn share_of_cpus(cpu_s: f64, cpus: u32, seconds: f64) -> Option<f64> {
    if cpus == 0 || seconds <= 0.0 {
        return None;
    }
    let share = cpu_s / (f64::from(cpus) * seconds);
    share.is_finite().then_some(share)
}

/// `None` where the fractions are not fractions.
fn clean_cpu(cpu: CpuUse) -> Option<CpuUse> {
    let parts = [cpu.user, cpu.system, cpu.iowait, cpu.steal, cpu.idle];
    let are_fractions = parts.iter().all(|part| (-0.001..=1.001).contains(part));
    let sum: f64 = parts.iter().sum();
    (are_fractions && (0.9..=1.1).contains(&sum)).then_some(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Steadiness;

    fn input() -> LevelInput {
        LevelInput {
            users: 4,
            end_ns: 10_050_000_000,
            transactions: 1_005,
            bins_100ms: [vec![10; 100], vec![5]].concat(),
            ..LevelInput::default()
        }
    }

    #[test]
    fn the_bin_that_the_windows_end_cuts_is_left_out() {
        let input = input();
        let level = crate::verdict::judge(&input, &Machine::default());
        assert_eq!(level.bins.len(), 100);
        assert_eq!(level.verdict.transactions_per_s, 100.0);
        assert_eq!(level.verdict.transactions_per_s_ci95, Some([99.9, 100.1]));
    }

    #[test]
    fn levels_are_named_by_what_they_differ_in() {
        let inputs = [(1, None), (4, None), (128, Some(1000.0))].map(|(users, rate_per_s)| LevelInput {
            users,
            rate_per_s,
            ..input()
        });
        let levels: Vec<Level> =
            inputs.iter().map(|input| crate::verdict::judge(input, &Machine::default())).collect();
        let [one, four, rate] = &levels[..] else { unreachable!("there are three") };
        assert_eq!((one.name(), rate.name()), ("1 user".to_string(), "1,000/s".to_string()));
        assert_eq!(levels_of(&[one]), "the level of 1 user");
        assert_eq!(levels_of(&[one, four]), "the levels of 1 and 4 users");
        assert_eq!(levels_of(&[rate]), "the level of 1,000/s");
    }

    #[test]
    fn cpu_use_that_does_not_add_up_is_unknown() {
        let cpu = CpuUse { user: 0.5, idle: 0.5, ..CpuUse::default() };
        assert_eq!(clean_cpu(cpu), Some(cpu));
        assert_eq!(clean_cpu(CpuUse { user: f64::NAN, ..cpu }), None);
        assert_eq!(clean_cpu(CpuUse { user: 50.0, ..cpu }), None);
        assert_eq!(clean_cpu(CpuUse::default()), None);
    }

    #[test]
    fn an_unstable_level_is_not_averaged() {
        let mut input = input();
        input.bins_100ms = [vec![41; 60], vec![9; 40]].concat();
        let level = crate::verdict::judge(&input, &Machine::default());
        assert_eq!(level.verdict.transactions_per_s, 410.0);
        assert_eq!(level.verdict.steadiness, Steadiness::UnstableFrom { s: 6.0 });
        assert_eq!(level.verdict.transactions_per_s_ci95, None);
    }

    /// As recorded: a level that climbed fourfold within ten seconds was steady, and entered peak and fit.
    #[test]
    fn a_level_that_climbs_has_the_mean_of_its_window_without_an_interval_and_does_not_count() {
        let mut input = input();
        input.end_ns = 10_000_000_000;
        input.bins_100ms = (0..100).map(|bin| 1_037 + bin * 32).collect();
        input.transactions = input.bins_100ms.iter().map(|&bin| u64::from(bin)).sum();
        let level = crate::verdict::judge(&input, &Machine::default());
        assert_eq!(level.verdict.transactions_per_s, input.transactions as f64 / 10.0);
        assert_eq!(level.verdict.transactions_per_s_ci95, None);
        assert_eq!(level.verdict.steadiness, Steadiness::Trend { from_per_s: 11_810.0, to_per_s: 40_610.0 });
        assert!(level.is_unstable() && !level.counts());
    }

    #[test]
    fn a_level_too_short_to_say_is_not_steady_after_a_warmup_that_never_was() {
        let mut input = input();
        input.end_ns = 1_000_000_000;
        let steadiness = |warmup_steady| {
            let input = LevelInput { warmup_steady, ..input.clone() };
            crate::verdict::judge(&input, &Machine::default()).verdict.steadiness
        };
        let found = [None, Some(true), Some(false)].map(steadiness);
        assert_eq!(found, [Steadiness::TooShort, Steadiness::TooShort, Steadiness::StillWarming]);
        assert_eq!(found.map(Steadiness::is_steady), [None, None, Some(false)]);
    }
}

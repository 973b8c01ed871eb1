//! A level that several hosts sent at the same time, as one.

use std::collections::VecDeque;

use crate::outcome::{
    ArrivalsOutcome, ClientUse, EndpointOutcome, ErrorCode, GeneratorOutcome, InFlight, Interval,
    IntervalRow, KindOutcome, LevelOutcome, TransactionOutcome, UserTime,
};
use crate::spec::{LevelSpec, Pacing};

impl LevelOutcome {
    /// The level of several hosts as one. Counts and histograms are added up, which is exact. The window is from the first begin
    /// to the last end. All times must be on one clock. `None`: no part.
    pub fn merge(parts: Vec<(String, LevelOutcome)>) -> Option<LevelOutcome> {
        let generators = parts.iter().map(|(host, part)| generator(host, part)).collect();
        let mut parts = parts.into_iter().map(|(_, part)| part);
        let first = parts.next()?;
        Some(LevelOutcome { generators, ..parts.fold(first, add) })
    }

    /// The same with all times on another clock.
    pub fn on_clock(mut self, time: impl Fn(i64) -> i64) -> LevelOutcome {
        for at_ns in [&mut self.begin_ns, &mut self.window_begin_ns, &mut self.window_end_ns] {
            *at_ns = time(*at_ns);
        }
        self.last_answer_ns = self.last_answer_ns.map(&time);
        if let Some(failure) = &mut self.failure {
            failure.at_ns = time(failure.at_ns);
        }
        for outage in self.endpoints.iter_mut().flat_map(|endpoint| &mut endpoint.outages) {
            outage.begin_ns = time(outage.begin_ns);
            outage.end_ns = outage.end_ns.map(&time);
        }
        self
    }
}

impl Interval {
    /// The same with all times on another clock.
    pub fn on_clock(self, time: impl Fn(i64) -> i64) -> Interval {
        Interval { begin_ns: time(self.begin_ns), end_ns: time(self.end_ns), ..self }
    }
}

impl LevelSpec {
    /// What a host that has `users` of the level's users is to send: that share of a rate, of a number of transactions, and of those
    /// who are at work. Arrivals of a Poisson process stay one in sum. Evenly spaced ones are so on each host only.
    pub fn share(&self, users: u32) -> LevelSpec {
        let share = f64::from(users) / f64::from(self.users.max(1));
        let pacing = match &self.pacing {
            Pacing::Closed { think, active } => {
                let active = active.as_ref().map(|active| active.scaled(share));
                Pacing::Closed { think: *think, active }
            }
            Pacing::Open { arrivals, rate } => Pacing::Open { arrivals: *arrivals, rate: rate.scaled(share) },
        };
        let transactions_max =
            self.transactions_max.map(|most| ((most as f64 * share).round() as u64).max(1));
        LevelSpec { users, pacing, transactions_max, ..self.clone() }
    }
}

fn generator(host: &str, part: &LevelOutcome) -> GeneratorOutcome {
    GeneratorOutcome {
        host: host.to_string(),
        users: part.users,
        transactions: part.transactions,
        queries: part.queries,
        errors: part.errors_by_code.values().sum(),
        response: part.response.clone(),
        client: part.client.clone(),
        engine: part.engine.clone(),
        invalid_why: part.invalid_why(),
    }
}

fn add(mut sum: LevelOutcome, part: LevelOutcome) -> LevelOutcome {
    sum.users += part.users;
    sum.begin_ns = sum.begin_ns.min(part.begin_ns);
    sum.window_begin_ns = sum.window_begin_ns.min(part.window_begin_ns);
    sum.window_end_ns = sum.window_end_ns.max(part.window_end_ns);
    sum.transactions += part.transactions;
    sum.queries += part.queries;
    for (code, count) in part.errors_by_code {
        *sum.errors_by_code.entry(code).or_default() += count;
    }
    for (code, ns) in part.lost_ns_by_code {
        *sum.lost_ns_by_code.entry(code).or_default() += ns;
    }
    sum.retries += part.retries;
    sum.response.merge(&part.response);
    sum.service.merge(&part.service);
    sum.retried.merge(&part.retried);
    for transaction in part.by_transaction {
        match sum.by_transaction.iter_mut().find(|known| known.kind == transaction.kind) {
            Some(known) => add_transaction(known, &transaction),
            None => sum.by_transaction.push(transaction),
        }
    }
    for kind in part.kinds {
        match sum.kinds.iter_mut().find(|known| known.kind == kind.kind) {
            Some(known) => add_kind(known, &kind),
            None => sum.kinds.push(kind),
        }
    }
    if sum.bins_100ms.len() < part.bins_100ms.len() {
        sum.bins_100ms.resize(part.bins_100ms.len(), 0);
    }
    for (bin, more) in sum.bins_100ms.iter_mut().zip(&part.bins_100ms) {
        *bin += more;
    }
    add_client(&mut sum.client, &part.client);
    sum.engine.loops += part.engine.loops;
    sum.arrivals = match (sum.arrivals, part.arrivals) {
        (Some(sum), Some(part)) => Some(add_arrivals(sum, &part)),
        (sum, part) => sum.or(part),
    };
    sum.in_flight = add_in_flight(sum.in_flight, &part.in_flight);
    sum.user_time = add_user_time(sum.user_time, part.user_time);
    sum.last_answer_ns = sum.last_answer_ns.max(part.last_answer_ns);
    for endpoint in part.endpoints {
        match sum.endpoints.iter_mut().find(|known| known.address == endpoint.address) {
            Some(known) => add_endpoint(known, endpoint),
            None => sum.endpoints.push(endpoint),
        }
    }
    sum.client_limit = sum.client_limit.or(part.client_limit);
    sum.failure = sum.failure.or(part.failure);
    sum.reconnects += part.reconnects;
    sum.intervals_lost += part.intervals_lost;
    sum
}

fn add_transaction(sum: &mut TransactionOutcome, part: &TransactionOutcome) {
    sum.response.merge(&part.response);
    sum.service.merge(&part.service);
    sum.in_flight.merge(&part.in_flight);
}

fn add_kind(sum: &mut KindOutcome, part: &KindOutcome) {
    sum.count += part.count;
    sum.errors += part.errors;
    sum.rows += part.rows;
    sum.latency.merge(&part.latency);
    sum.error_latency.merge(&part.error_latency);
    sum.in_flight.merge(&part.in_flight);
}

/// Of several hosts: `cpus_allowed` are all of them, and no thread is the busiest of more than its own host.
fn add_client(sum: &mut ClientUse, part: &ClientUse) {
    sum.threads_cpu_ns += part.threads_cpu_ns;
    sum.process_cpu_ns += part.process_cpu_ns;
    sum.run_delay_ns += part.run_delay_ns;
    sum.busiest_thread_cpu_ns = sum.busiest_thread_cpu_ns.max(part.busiest_thread_cpu_ns);
    sum.threads += part.threads;
    sum.cpus_allowed += part.cpus_allowed;
    sum.max_rss_kb = sum.max_rss_kb.max(part.max_rss_kb);
    sum.window_ns = sum.window_ns.max(part.window_ns);
    sum.answers += part.answers;
    sum.answer_delay_ns += part.answer_delay_ns;
    sum.busy_poll_cpu_ns += part.busy_poll_cpu_ns;
}

/// The largest backlogs need not have been at the same time: their sum is an upper bound.
fn add_arrivals(mut sum: ArrivalsOutcome, part: &ArrivalsOutcome) -> ArrivalsOutcome {
    sum.due += part.due;
    sum.backlog_begin += part.backlog_begin;
    sum.backlog_end += part.backlog_end;
    sum.backlog_max += part.backlog_max;
    sum.late.merge(&part.late);
    sum
}

fn add_in_flight(mut sum: InFlight, part: &InFlight) -> InFlight {
    sum.ages.merge(&part.ages);
    sum.not_begun += part.not_begun;
    sum.older_than_ended += part.older_than_ended;
    sum
}

fn add_user_time(sum: UserTime, part: UserTime) -> UserTime {
    UserTime {
        ended_ns: sum.ended_ns + part.ended_ns,
        in_flight_ns: sum.in_flight_ns + part.in_flight_ns,
        outside_ns: sum.outside_ns + part.outside_ns,
        before_ns: sum.before_ns + part.before_ns,
        paused_ns: sum.paused_ns + part.paused_ns,
    }
}

fn add_endpoint(sum: &mut EndpointOutcome, part: EndpointOutcome) {
    sum.transactions += part.transactions;
    sum.errors += part.errors;
    sum.response.merge(&part.response);
    sum.outages.extend(part.outages);
    sum.outages.sort_by_key(|outage| outage.begin_ns);
}

/// Merges the intervals of several generators, which began together: each second of the first of them with those of the others whose
/// middle lies in it. All times must be on one clock.
#[derive(Debug)]
pub struct IntervalMerge {
    waiting: Vec<VecDeque<Interval>>,
}

impl IntervalMerge {
    pub fn new(generators: usize) -> IntervalMerge {
        IntervalMerge { waiting: vec![VecDeque::new(); generators] }
    }

    /// Takes the next interval of a generator.
    pub fn put(&mut self, generator: usize, interval: Interval) {
        if let Some(waiting) = self.waiting.get_mut(generator) {
            waiting.push_back(interval);
        }
    }

    /// The next merged interval, once every generator has given one that reaches beyond its end.
    pub fn next_whole(&mut self) -> Option<Interval> {
        let (first, others) = self.waiting.split_first()?;
        let end_ns = first.front()?.end_ns;
        let reaches =
            |waiting: &VecDeque<Interval>| waiting.back().is_some_and(|last| middle_ns(last) >= end_ns);
        // The first one, too: what it is merged with is known then.
        let is_whole = first.len() > 1 && others.iter().all(reaches);
        is_whole.then(|| self.take_next()).flatten()
    }

    /// All that is left, once no generator gives any more.
    pub fn rest(mut self) -> Vec<Interval> {
        let mut rest = Vec::new();
        while let Some(interval) = self.take_next() {
            rest.push(interval);
        }
        rest
    }

    fn take_next(&mut self) -> Option<Interval> {
        let place = self.waiting.iter().position(|waiting| !waiting.is_empty())?;
        let mut merged = self.waiting[place].pop_front()?;
        let is_last = self.waiting[place].is_empty();
        for (number, waiting) in self.waiting.iter_mut().enumerate() {
            while number != place
                && let Some(next) = waiting.front()
                && (middle_ns(next) < merged.end_ns || (is_last && waiting.len() == 1 && is_sliver(next)))
            {
                if let Some(next) = waiting.pop_front() {
                    add_interval(&mut merged, next);
                }
            }
        }
        Some(merged)
    }
}

/// What is left of a second because clocks and threads are not exact.
fn is_sliver(interval: &Interval) -> bool {
    interval.end_ns - interval.begin_ns < 50_000_000
}

fn middle_ns(interval: &Interval) -> i64 {
    interval.begin_ns + (interval.end_ns - interval.begin_ns) / 2
}

fn add_interval(sum: &mut Interval, part: Interval) {
    sum.backlog = match (sum.backlog, part.backlog) {
        (Some(sum), Some(part)) => Some(sum + part),
        (sum, part) => sum.or(part),
    };
    for row in part.rows {
        match sum.rows.iter_mut().find(|known| known.statement == row.statement) {
            Some(known) => add_row(known, &row),
            None => sum.rows.push(row),
        }
    }
}

fn add_row(sum: &mut IntervalRow, part: &IntervalRow) {
    sum.count += part.count;
    sum.rows += part.rows;
    for (code, count) in &part.errors {
        match sum.errors.iter_mut().find(|(known, _): &&mut (ErrorCode, u64)| known == code) {
            Some((_, known)) => *known += count,
            None => sum.errors.push((*code, *count)),
        }
    }
    sum.response_sum_ns += part.response_sum_ns;
    sum.service_sum_ns += part.service_sum_ns;
    sum.response_max_ns = sum.response_max_ns.max(part.response_max_ns);
    sum.response = add_buckets(&sum.response, &part.response);
    sum.service = add_buckets(&sum.service, &part.service);
}

/// Both are ascending, and have the same bounds wherever a value falls.
fn add_buckets(left: &[(u64, u64)], right: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut sum: Vec<(u64, u64)> = Vec::with_capacity(left.len().max(right.len()));
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if a.0 <= b.0 => left.next(),
            (_, Some(_)) => right.next(),
            (Some(_), None) => left.next(),
            (None, None) => return sum,
        };
        let Some(&(upper_ns, count)) = next else { return sum };
        match sum.last_mut() {
            Some((last_ns, sum)) if *last_ns == upper_ns => *sum += count,
            _ => sum.push((upper_ns, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::measure::histogram::Histogram;

    fn interval(begin_ms: i64, end_ms: i64, times_ns: &[u64]) -> Interval {
        let mut histogram = Histogram::new();
        times_ns.iter().for_each(|time_ns| histogram.record(*time_ns));
        Interval {
            begin_ns: begin_ms * 1_000_000,
            end_ns: end_ms * 1_000_000,
            measured: true,
            rows: vec![IntervalRow {
                statement: "transaction".to_string(),
                count: histogram.count(),
                rows: 0,
                errors: Vec::new(),
                response_sum_ns: histogram.sum_ns(),
                service_sum_ns: 0,
                response_max_ns: histogram.max_ns(),
                response: histogram.buckets().collect(),
                service: Vec::new(),
            }],
            backlog: None,
        }
    }

    fn counts(intervals: &[Interval]) -> Vec<u64> {
        intervals.iter().map(|interval| interval.rows[0].count).collect()
    }

    #[test]
    fn seconds_of_two_generators_are_merged_although_their_edges_differ() {
        let mut merge = IntervalMerge::new(2);
        for (begin, end) in [(0, 1000), (1000, 1500), (1500, 2500)] {
            merge.put(0, interval(begin, end, &[1, 2]));
        }
        assert_eq!(merge.next_whole(), None, "the other one has given nothing");
        for (begin, end) in [(1, 1001), (1001, 1502), (1502, 2502), (2502, 2503)] {
            merge.put(1, interval(begin, end, &[3]));
        }
        let whole: Vec<Interval> = std::iter::from_fn(|| merge.next_whole()).collect();
        let rest = merge.rest();
        assert_eq!((counts(&whole), counts(&rest)), (vec![3, 3], vec![4]));
        assert_eq!((whole[0].begin_ns, whole[0].end_ns), (0, 1_000_000_000));
    }

    #[test]
    fn a_generator_that_ends_early_leaves_what_the_others_give() {
        let mut merge = IntervalMerge::new(2);
        merge.put(0, interval(0, 1000, &[1]));
        for second in 0..3 {
            merge.put(1, interval(second * 1000, second * 1000 + 1000, &[5]));
        }
        assert_eq!(counts(&merge.rest()), [2, 1, 1]);
    }

    proptest! {
        #[test]
        fn merging_buckets_is_counting_all_values(
            left in prop::collection::vec(0u64..5_000_000_000, 0..50),
            right in prop::collection::vec(0u64..5_000_000_000, 0..50),
        ) {
            let mut merged = IntervalMerge::new(2);
            merged.put(0, interval(0, 1000, &left));
            merged.put(1, interval(0, 1000, &right));
            let both: Vec<u64> = left.iter().chain(&right).copied().collect();
            prop_assert_eq!(merged.rest(), [interval(0, 1000, &both)]);
        }
    }
}

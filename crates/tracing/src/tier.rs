//! The series of a program that is no database server: its requests, and the servers that they waited for.

use std::collections::{HashMap, HashSet};

use whyso_model::{STATES, State, state, tier};
use whyso_record::Recorder;
use whyso_record::data::{self, Kind, SeriesId, SeriesKey, Status, Value};
use whyso_trace::{Reading, ThreadSums, UpstreamSums};

/// What of a program's requests was recorded up to now.
#[derive(Default)]
pub(crate) struct TierSeries {
    /// Addresses of servers behind that have their series.
    known: HashSet<String>,
    /// When the reading before was taken.
    before: Option<(i64, i64)>,
    answering: Answering,
}

/// The time by state of threads that answer requests. None ever falls, whichever threads end.
#[derive(Default)]
struct Answering {
    sums: [u64; STATES],
    /// By number and birth of a thread that had answered by the last reading: its sums there.
    last: HashMap<(u32, u64), [u64; STATES]>,
}

impl Answering {
    fn add(&mut self, threads: &[ThreadSums]) {
        let mut last = HashMap::with_capacity(threads.len());
        for thread in threads {
            let key = (thread.tid, thread.born_ns);
            // What a thread does up to the reading after its first request is left out: its start is among it.
            if let Some(before) = self.last.get(&key) {
                for (sum, (now, then)) in self.sums.iter_mut().zip(thread.states.iter().zip(before)) {
                    *sum += now.saturating_sub(*then);
                }
            }
            if thread.requests > 0 {
                last.insert(key, thread.states);
            }
        }
        self.last = last;
    }
}

impl TierSeries {
    /// Records what a program's requests took up to a reading, which was taken between these times.
    pub(crate) fn record(&mut self, recorder: &Recorder, host: &str, read: &Reading, taken: (i64, i64)) {
        let sums = &read.server;
        self.answering.add(&read.threads);
        let mut named = vec![
            (tier::REQUESTS.to_string(), "1", sums.requests),
            (tier::REQUEST_NS.to_string(), "ns", sums.request_ns),
            (tier::QUEUE_NS.to_string(), "ns", sums.transit_ns),
            (tier::QUEUE_WAKEUP_NS.to_string(), "ns", sums.transit_wakeup_ns),
            (tier::QUEUE_RUNQUEUE_NS.to_string(), "ns", sums.transit_runqueue_ns),
            (tier::UNSEEN.to_string(), "1", sums.unseen),
            (tier::INTERLEAVED.to_string(), "1", sums.interleaved),
            (tier::KEPT_NS.to_string(), "ns", read.kept_ns),
        ];
        named.extend(
            state::ALL
                .map(|state: State| (tier::request_state(state), "ns", sums.in_requests[state as usize])),
        );
        let answering = &self.answering.sums;
        named.extend(
            tier::HELD_UP.map(|state| (tier::answering_state(state), "ns", answering[state as usize])),
        );
        let others = &read.others.in_requests;
        named.extend(tier::HELD_UP.map(|state| (tier::others_state(state), "ns", others[state as usize])));
        let values = named
            .iter()
            .map(|(metric, unit, sum)| value(recorder, host, (tier::TIER, metric, ""), unit, *sum));
        give(recorder, tier::TIER, taken, values.collect());
        // The sums of one that appears now were 0 before, and what they are is growth.
        let appeared: Vec<UpstreamSums> = read
            .upstreams
            .iter()
            .filter(|upstream| self.known.insert(upstream.address.clone()))
            .map(|upstream| UpstreamSums { address: upstream.address.clone(), ..UpstreamSums::default() })
            .collect();
        if let Some((begin_ns, end_ns)) = self.before.replace(taken) {
            give(recorder, tier::UPSTREAM, (begin_ns, end_ns), of_upstreams(recorder, host, &appeared));
        }
        give(recorder, tier::UPSTREAM, taken, of_upstreams(recorder, host, &read.upstreams));
    }
}

fn of_upstreams(recorder: &Recorder, host: &str, upstreams: &[UpstreamSums]) -> Vec<(SeriesId, Value)> {
    let of_one = |upstream: &UpstreamSums| {
        let of =
            |metric, unit, sum| value(recorder, host, (tier::UPSTREAM, metric, &upstream.address), unit, sum);
        [
            of(tier::ASKED, "1", upstream.asked),
            of(tier::WAIT_NS, "ns", upstream.wait_ns),
            of(tier::LATE_NS, "ns", upstream.late_ns),
            of(tier::WITHOUT_PORT, "1", upstream.without_port),
        ]
    };
    upstreams.iter().flat_map(of_one).collect()
}

fn value(
    recorder: &Recorder,
    host: &str,
    (source, metric, instance): (&str, &str, &str),
    unit: &str,
    sum: u64,
) -> (SeriesId, Value) {
    let [host, source, metric, instance, unit] = [host, source, metric, instance, unit].map(str::to_string);
    let id = recorder.series(&SeriesKey { host, source, metric, instance, kind: Kind::Counter, unit });
    (id, Value::Int(i64::try_from(sum).unwrap_or(i64::MAX)))
}

fn give(recorder: &Recorder, source: &str, (begin_ns, end_ns): (i64, i64), values: Vec<(SeriesId, Value)>) {
    if !values.is_empty() {
        let source = source.to_string();
        recorder.reading(data::Reading { source, begin_ns, end_ns, status: Status::Ok, values });
    }
}

#[cfg(test)]
mod tests {
    use whyso_model::Role;

    use super::*;

    #[test]
    fn only_threads_that_answer_count_and_what_they_did_stays_when_they_end() {
        let thread = |tid, requests, cpu_ns| {
            let mut states = [0; STATES];
            states[State::Cpu as usize] = cpu_ns;
            let name = "php".to_string();
            ThreadSums { pid: 1, tid, name, role: Role::Other, born_ns: 7, requests, states, now: State::Cpu }
        };
        let mut answering = Answering::default();
        let cpu = |answering: &Answering| answering.sums[State::Cpu as usize];
        answering.add(&[thread(1, 1, 10), thread(2, 0, 100)]);
        assert_eq!(cpu(&answering), 0);
        // The second one has answered its first request.
        answering.add(&[thread(1, 2, 15), thread(2, 1, 103)]);
        assert_eq!(cpu(&answering), 5);
        answering.add(&[thread(2, 1, 104)]);
        assert_eq!(cpu(&answering), 6);
    }
}

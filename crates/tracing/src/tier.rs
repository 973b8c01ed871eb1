//! The series of a program that is no database server: its requests, and the servers that they waited for.

use std::collections::HashSet;

use whyso_model::{State, state, tier};
use whyso_record::Recorder;
use whyso_record::data::{self, Kind, SeriesId, SeriesKey, Status, Value};
use whyso_trace::{Reading, UpstreamSums};

/// What of a program's requests was recorded up to now.
#[derive(Default)]
pub(crate) struct TierSeries {
    /// Addresses of servers behind that have their series.
    known: HashSet<String>,
    /// When the reading before was taken.
    before: Option<(i64, i64)>,
}

impl TierSeries {
    /// Records what a program's requests took up to a reading, which was taken between these times.
    pub(crate) fn record(&mut self, recorder: &Recorder, host: &str, read: &Reading, taken: (i64, i64)) {
        let sums = &read.server;
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

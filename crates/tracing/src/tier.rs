//! The series of a program that is no database server: its requests, and the servers that they waited for.

use whyso_model::{State, state, tier};
use whyso_record::Recorder;
use whyso_record::data::{self, Kind, SeriesId, SeriesKey, Status, Value};
use whyso_trace::Reading;

/// Records what a program's requests took up to a reading, which was taken between these times.
pub(crate) fn record(recorder: &Recorder, host: &str, read: &Reading, (begin_ns, end_ns): (i64, i64)) {
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
        state::ALL.map(|state: State| (tier::request_state(state), "ns", sums.in_requests[state as usize])),
    );
    let values =
        named.iter().map(|(metric, unit, sum)| value(recorder, host, (tier::TIER, metric, ""), unit, *sum));
    give(recorder, tier::TIER, (begin_ns, end_ns), values.collect());
    let of_upstreams = read.upstreams.iter().flat_map(|upstream| {
        let of =
            |metric, unit, sum| value(recorder, host, (tier::UPSTREAM, metric, &upstream.address), unit, sum);
        [
            of(tier::ASKED, "1", upstream.asked),
            of(tier::WAIT_NS, "ns", upstream.wait_ns),
            of(tier::LATE_NS, "ns", upstream.late_ns),
            of(tier::WITHOUT_PORT, "1", upstream.without_port),
        ]
    });
    give(recorder, tier::UPSTREAM, (begin_ns, end_ns), of_upstreams.collect());
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

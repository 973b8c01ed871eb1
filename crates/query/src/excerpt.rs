//! A window of a recording as a run of one level, so that it is explained and reported as such.

use std::collections::BTreeMap;

use whyso_explain::model::{Explanation, LevelInput};
use whyso_model::Pacing;
use whyso_record::Recording;
use whyso_record::data::{LoadInterval, SeriesKey};
use whyso_record::run::{Latency, Level, LevelResult, Purpose, RunEnd, RunInfo, StatementResult, Window};
use whyso_report::Excerpt;
use whyso_series::quantile_of_buckets;

use crate::compare_windows::TRANSACTION;
use crate::evidence::input_of;
use crate::{Error, add_chosen};

const NS_PER_MS: f64 = 1e6;
/// The tracer's source, and what it counts of requests.
const TRACER: &str = "trace";
const REQUESTS: &str = "requests";
const REQUEST_TIMES: [&str; 2] = ["request_ns", "transit_in_ns"];
/// Where nothing traced them: the server's own count.
const QUESTIONS: (&str, &str) = ("status", "Questions");

/// A window of a recording, with one level over it. What the load did comes from its intervals, of those that an edge cuts in part. Where
/// something else loaded the server, it comes from what was counted of its requests.
///
/// # Errors
/// - Nothing was recorded in the window, or levels of different numbers of users lie in it.
/// - The recording's files can't be read.
pub fn excerpt(recording: &Recording, window: Window) -> Result<Excerpt<'_>, Error> {
    let origin_ns = whyso_report::origin_ns(recording.run(), recording.load_begin_ns()?);
    let there = recording.window().unwrap_or(window);
    let window =
        Window { begin_ns: window.begin_ns.max(there.begin_ns), end_ns: window.end_ns.min(there.end_ns) };
    if window.begin_ns >= window.end_ns {
        return Err(Error::WrongUse(
            "nothing was recorded in that window: give a part of the run, in its seconds".to_string(),
        ));
    }
    let level = level_over(recording, &recording.run().levels, window)?;
    let run = RunInfo { levels: vec![level], ..recording.run().clone() };
    Ok(Excerpt { recording, window, run, origin_ns })
}

/// What `whyso_explain` makes of a window.
///
/// # Errors
/// The recording's files can't be read.
pub fn explain_excerpt(excerpt: &Excerpt<'_>) -> Result<Explanation, Error> {
    Ok(whyso_explain::explain(&input_of(excerpt.recording, &excerpt.run)?))
}

fn level_over(recording: &Recording, levels: &[Level], window: Window) -> Result<Level, Error> {
    let inside_ns = |level: &Level| {
        level.window.end_ns.min(window.end_ns).saturating_sub(level.window.begin_ns.max(window.begin_ns))
    };
    let within: Vec<&Level> = levels.iter().filter(|level| inside_ns(level) > 0).collect();
    if let Some(other) = within.iter().find(|level| level.users != within[0].users) {
        return Err(Error::WrongUse(format!(
            "levels of {} and of {} users lie in that window: give one of a single level",
            within[0].users, other.users
        )));
    }
    let of = within.into_iter().max_by_key(|level| inside_ns(level));
    let load = recording.load(Some(window))?;
    let measured = match load.is_empty() {
        true => result_by_counters(recording, window)?,
        false => result_of(&load, window),
    };
    let known = of.map(|level| level.result.clone()).unwrap_or_default();
    // A recording that is running has no level yet. Where nothing is known of a load of ours, something else loads the server.
    let pacing = if of.is_none() && load.is_empty() { Pacing::Recorded } else { known.pacing };
    let result = LevelResult { workload: known.workload, pacing, ..measured };
    Ok(Level {
        index: 0,
        users: of.map_or(0, |level| level.users),
        purpose: Purpose::Sweep,
        warmup: Window::default(),
        warmup_steady: false,
        window,
        result,
        ended: RunEnd::Complete { at_ns: window.end_ns },
    })
}

/// What the load did of one kind.
#[derive(Default)]
struct KindSum {
    count: f64,
    rows: f64,
    errors: f64,
    response_ns: f64,
    service_ns: f64,
    max_ns: u64,
    response: Vec<(u64, u64)>,
    service: Vec<(u64, u64)>,
}

impl KindSum {
    /// `share`: how much of the interval lies in the window.
    fn add(&mut self, interval: &LoadInterval, share: f64) {
        self.count += interval.count as f64 * share;
        self.rows += interval.rows as f64 * share;
        self.errors += interval.errors.iter().map(|(_, count)| *count as f64 * share).sum::<f64>();
        self.response_ns += interval.response_sum_ns as f64 * share;
        self.service_ns += interval.service_sum_ns as f64 * share;
        // A histogram can't be cut: one that lies more within the window than outside counts.
        if share >= 0.5 {
            self.max_ns = self.max_ns.max(interval.response_max_ns);
            self.response.extend(&interval.response);
            self.service.extend(&interval.service);
        }
    }

    fn latency(&self, sum_ns: f64, buckets: &[(u64, u64)], max_ns: u64) -> Latency {
        let mut buckets = buckets.to_vec();
        buckets.sort_unstable();
        // The bucket's upper bound may lie above all that it holds.
        let at =
            |share| quantile_of_buckets(&buckets, share).map_or(0.0, |ns| ns.min(max_ns) as f64 / NS_PER_MS);
        Latency {
            mean: if self.count > 0.0 { sum_ns / self.count / NS_PER_MS } else { 0.0 },
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: max_ns as f64 / NS_PER_MS,
            lower_bounds_above: None,
        }
    }

    fn response(&self) -> Latency {
        self.latency(self.response_ns, &self.response, self.max_ns)
    }
}

fn result_of(load: &[LoadInterval], window: Window) -> LevelResult {
    let mut kinds: BTreeMap<&str, KindSum> = BTreeMap::new();
    let mut errors_by_code: BTreeMap<String, f64> = BTreeMap::new();
    for interval in load {
        let inside_ns = interval.end_ns.min(window.end_ns) - interval.begin_ns.max(window.begin_ns);
        let length_ns = interval.end_ns - interval.begin_ns;
        if inside_ns <= 0 || length_ns <= 0 {
            continue;
        }
        let share = inside_ns as f64 / length_ns as f64;
        kinds.entry(&interval.statement).or_default().add(interval, share);
        for (code, count) in interval.errors.iter().filter(|_| interval.statement == TRANSACTION) {
            *errors_by_code.entry(code.clone()).or_default() += *count as f64 * share;
        }
    }
    let transactions = kinds.remove(TRANSACTION).unwrap_or_default();
    let whole = |count: f64| count.round() as u64;
    let queries: f64 = kinds.values().map(|kind| kind.count).sum();
    let statement = |(kind, sum): (&&str, &KindSum)| StatementResult {
        kind: (*kind).to_string(),
        count: whole(sum.count),
        errors: whole(sum.errors),
        rows: whole(sum.rows),
        latency_ms: sum.response(),
        error_ms: Latency::default(),
    };
    let seconds = window.seconds();
    LevelResult {
        seconds,
        transactions: whole(transactions.count),
        queries: whole(queries),
        errors: whole(transactions.errors),
        errors_by_code: errors_by_code.into_iter().map(|(code, count)| (code, whole(count))).collect(),
        transactions_per_s: transactions.count / seconds,
        queries_per_s: queries / seconds,
        latency_ms: transactions.response(),
        service_ms: transactions.latency(transactions.service_ns, &transactions.service, transactions.max_ns),
        by_statement: kinds.iter().map(statement).collect(),
        ..LevelResult::default()
    }
}

/// Of a load that something else drove: a request counts as a transaction, as in the levels of such a recording.
fn result_by_counters(recording: &Recording, window: Window) -> Result<LevelResult, Error> {
    let mut levels =
        [LevelInput { begin_ns: window.begin_ns, end_ns: window.end_ns, ..LevelInput::default() }];
    add_chosen(recording, &mut levels, |key: &SeriesKey| {
        let is_tracers = key.source == TRACER && key.instance.is_empty();
        is_tracers && (key.metric == REQUESTS || REQUEST_TIMES.contains(&key.metric.as_str()))
            || (key.source.as_str(), key.metric.as_str()) == QUESTIONS
    })?;
    let grown = |metric: &str| {
        let counters = levels.iter().flat_map(|level| &level.counters);
        counters.filter(|counter| counter.series.metric == metric).map(|counter| counter.increase).next()
    };
    let time_ns: f64 = REQUEST_TIMES.iter().filter_map(|metric| grown(metric)).sum();
    let requests = grown(REQUESTS).or(grown(QUESTIONS.1)).unwrap_or(0.0).max(0.0);
    let mean = if requests >= 1.0 { time_ns / requests / NS_PER_MS } else { 0.0 };
    let (seconds, latency) = (window.seconds(), Latency { mean, ..Latency::default() });
    Ok(LevelResult {
        seconds,
        transactions: requests.round() as u64,
        queries: requests.round() as u64,
        transactions_per_s: requests / seconds,
        queries_per_s: requests / seconds,
        latency_ms: latency,
        service_ms: latency,
        ..LevelResult::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_record::data::{Kind, Reading, Status, Value};
    use whyso_record::{Options, Recorder};

    const S: i64 = 1_000_000_000;

    fn recorder(dir: &std::path::Path) -> Recorder {
        let options = Options { reserve_bytes: 0, own_cost: false, ..Options::default() };
        let recorder = Recorder::create(dir, options).unwrap();
        let level = Level {
            index: 3,
            users: 16,
            purpose: Purpose::Sweep,
            warmup: Window::default(),
            warmup_steady: true,
            window: Window { begin_ns: 0, end_ns: 100 * S },
            result: LevelResult { workload: "shop".to_string(), ..LevelResult::default() },
            ended: RunEnd::Complete { at_ns: 100 * S },
        };
        recorder.set_run(&RunInfo { levels: vec![level], ..RunInfo::default() });
        recorder
    }

    fn series(recorder: &Recorder, metric: &str, growth_per_s: i64) {
        let key = SeriesKey {
            host: "server".to_string(),
            source: TRACER.to_string(),
            metric: metric.to_string(),
            instance: String::new(),
            kind: Kind::Counter,
            unit: "1".to_string(),
        };
        let id = recorder.series(&key);
        for second in 0..=100 {
            recorder.reading(Reading {
                source: TRACER.to_string(),
                begin_ns: second * S,
                end_ns: second * S,
                status: Status::Ok,
                values: vec![(id, Value::Int(second * growth_per_s))],
            });
        }
    }

    fn interval(second: i64, statement: &str, count: u64, response_ns: u64) -> LoadInterval {
        LoadInterval {
            begin_ns: second * S,
            end_ns: (second + 1) * S,
            level: 3,
            measured: true,
            statement: statement.to_string(),
            count,
            rows: 2 * count,
            errors: vec![("1213 (40001)".to_string(), 2)],
            response_sum_ns: count * response_ns,
            service_sum_ns: count * response_ns / 2,
            response_max_ns: response_ns,
            response: vec![(response_ns, count)],
            service: vec![(response_ns / 2, count)],
        }
    }

    #[test]
    fn a_windows_result_is_that_of_its_intervals_and_of_those_that_an_edge_cuts_in_part() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let recorder = recorder(&dir);
        series(&recorder, REQUESTS, 1);
        for second in 0..100 {
            // The second half is slower.
            let (count, response_ns) = if second < 50 { (100, 2_000_000) } else { (20, 10_000_000) };
            recorder.load(interval(second, TRANSACTION, count, response_ns));
            recorder.load(interval(second, "select", 3 * count, response_ns));
        }
        recorder.finish().unwrap();
        let recording = Recording::open(&dir).unwrap();
        let part = Window { begin_ns: 59 * S + S / 2, end_ns: 80 * S };
        let excerpt = excerpt(&recording, part).unwrap();
        let [level] = excerpt.run.levels.as_slice() else { panic!("{:?}", excerpt.run.levels) };
        let result = &level.result;
        assert_eq!((level.users, level.window, result.workload.as_str()), (16, part, "shop"));
        assert_eq!((result.transactions, result.queries, result.errors), (410, 1_230, 41));
        assert_eq!(result.transactions_per_s, 20.0);
        assert_eq!(
            (result.latency_ms.mean, result.latency_ms.p99, result.latency_ms.max),
            (10.0, 10.0, 10.0)
        );
        assert_eq!((result.service_ms.mean, result.service_ms.p50), (5.0, 5.0));
        assert_eq!((result.by_statement[0].kind.as_str(), result.by_statement[0].rows), ("select", 2_460));
        let explanation = explain_excerpt(&excerpt).unwrap();
        assert_eq!(explanation.levels.len(), 1);
        let nowhere = Window { begin_ns: 200 * S, end_ns: 300 * S };
        let refused = super::excerpt(&recording, nowhere).err().unwrap().to_string();
        assert_eq!(refused, "nothing was recorded in that window: give a part of the run, in its seconds");
    }

    #[test]
    fn a_window_over_levels_of_different_users_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let recorder = recorder(&dir);
        series(&recorder, REQUESTS, 1);
        recorder.finish().unwrap();
        let recording = Recording::open(&dir).unwrap();
        let mut run = recording.run().clone();
        let mut second = run.levels[0].clone();
        (second.users, second.window) = (64, Window { begin_ns: 100 * S, end_ns: 200 * S });
        run.levels.push(second);
        let over = |begin_s: i64, end_s: i64| {
            level_over(&recording, &run.levels, Window { begin_ns: begin_s * S, end_ns: end_s * S })
        };
        let refused = over(90, 110).unwrap_err().to_string();
        assert_eq!(refused, "levels of 16 and of 64 users lie in that window: give one of a single level");
        assert_eq!((over(10, 20).unwrap().users, over(110, 120).unwrap().users), (16, 64));
    }

    #[test]
    fn where_something_else_drove_the_load_requests_stand_for_transactions() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let recorder = recorder(&dir);
        for (metric, growth_per_s) in
            [(REQUESTS, 400), (REQUEST_TIMES[0], 400_000_000), (REQUEST_TIMES[1], 80_000_000)]
        {
            series(&recorder, metric, growth_per_s);
        }
        recorder.finish().unwrap();
        let recording = Recording::open(&dir).unwrap();
        let excerpt = excerpt(&recording, Window { begin_ns: 20 * S, end_ns: 30 * S }).unwrap();
        let result = &excerpt.run.levels[0].result;
        assert_eq!((result.transactions, result.transactions_per_s), (4_000, 400.0));
        assert!((result.latency_ms.mean - 1.2).abs() < 1e-9, "{:?}", result.latency_ms);
    }
}

//! A run that is put together piece by piece.

use whyso_explain::explain_at;
use whyso_explain::model::{
    Activity, Cause, Counter, CpuUse, Explanation, FileWait, Gauge, Input, LevelInput, LockObject, LoopKind,
    Machine, SampledActivity, SampledClass, SeriesName, StatementTime, StatementWork,
};

const SECONDS: f64 = 10.0;

/// A run on a machine of two CPUs that server and generator share.
pub(crate) struct RunBuilder(pub(crate) Input);

fn name(host: &str, source: &str, metric: &str, instance: &str) -> SeriesName {
    SeriesName {
        host: host.to_string(),
        source: source.to_string(),
        metric: metric.to_string(),
        instance: instance.to_string(),
    }
}

impl RunBuilder {
    pub(crate) fn new() -> RunBuilder {
        let machine = Machine { server_cpus: 2, client_cpus: 2, shared: true, ..Machine::default() };
        RunBuilder(Input { machine, ..Input::default() })
    }

    /// A level of this many users at this response time, in a closed loop, on CPUs that are idle by so much.
    pub(crate) fn level(mut self, users: u32, response_ms: f64, idle: f64) -> RunBuilder {
        let transactions = (f64::from(users) * SECONDS * 1e3 / response_ms) as u64;
        let begin_ns = 100_000_000_000 * (1 + self.0.levels.len() as i64);
        let busy_s = (1.0 - idle) * 2.0 * SECONDS;
        self.0.levels.push(LevelInput {
            index: self.0.levels.len() as u32,
            users,
            begin_ns,
            end_ns: begin_ns + 10_000_000_000,
            transactions,
            latency_mean_ms: response_ms,
            bins_100ms: vec![(transactions / 100) as u32; 100],
            client_cpu_s: busy_s * 0.25,
            server_cpu_s: Some(busy_s * 0.72),
            cpu: Some(CpuUse {
                user: 0.7 * (1.0 - idle),
                system: 0.3 * (1.0 - idle),
                idle,
                ..CpuUse::default()
            }),
            ..LevelInput::default()
        });
        self
    }

    pub(crate) fn last(&mut self) -> &mut LevelInput {
        self.0.levels.last_mut().unwrap()
    }

    /// What the tracer saw of the last level: shares of the response time.
    pub(crate) fn traced(mut self, shares: &[(&str, f64)]) -> RunBuilder {
        let level = self.last();
        let response_ns = level.latency_mean_ms * 1e6 * level.transactions as f64;
        for (metric, share) in [("request_ns", 0.9)].iter().chain(shares) {
            let series = name("server", "trace", metric, "");
            level.counters.push(Counter { series, unit: "ns".to_string(), increase: share * response_ns });
        }
        self
    }

    /// Counters of the server, as they grow by a transaction of the last level.
    pub(crate) fn status(mut self, counters: &[(&str, f64)]) -> RunBuilder {
        let level = self.last();
        for (metric, per_transaction) in counters {
            let increase = per_transaction * level.transactions as f64;
            level.counters.push(Counter {
                series: name("server", "status", metric, ""),
                unit: "1".to_string(),
                increase,
            });
        }
        self
    }

    /// A counter of any source, as it grows a second.
    pub(crate) fn counter(mut self, source: &str, metric: &str, instance: &str, per_s: f64) -> RunBuilder {
        let series = name("server", source, metric, instance);
        self.last().counters.push(Counter { series, unit: "1".to_string(), increase: per_s * SECONDS });
        self
    }

    pub(crate) fn gauge(mut self, metric: &str, mean: f64) -> RunBuilder {
        let series = name("server", "status", metric, "");
        self.last().gauges.push(Gauge { series, unit: "1".to_string(), mean, max: mean });
        self
    }

    /// A file that threads of a role were in, this share of the time.
    pub(crate) fn file(mut self, path: &str, state: &str, role: &str, busy: f64) -> RunBuilder {
        self.last().file_waits.push(FileWait {
            path: path.to_string(),
            state: state.to_string(),
            role: role.to_string(),
            count: 100.0,
            ns: busy * SECONDS * 1e9,
        });
        self
    }

    pub(crate) fn set(mut self, variable: &str, value: &str) -> RunBuilder {
        self.0.variables.insert(variable.to_string(), value.to_string());
        self
    }

    pub(crate) fn pacing(mut self, pacing: LoopKind, transactions: u64) -> RunBuilder {
        let level = self.last();
        level.pacing = pacing;
        level.transactions = transactions;
        level.bins_100ms = vec![(transactions / 100) as u32; 100];
        self
    }

    pub(crate) fn explained(&self) -> Explanation {
        explain_at(&self.0, None)
    }

    /// Stacks of connections' threads: how many waits of which class were sampled in sleep on locks.
    pub(crate) fn stacks(mut self, classes: &[(&str, u64)]) -> RunBuilder {
        let sampled = |(class, count): &(&str, u64)| SampledClass {
            state: "lock".to_string(),
            class: class.to_string(),
            count: *count,
            ns: *count as f64 * 1e6,
            seen_ns: 0.0,
        };
        self.last().wait_classes = classes.iter().map(sampled).collect();
        self
    }

    /// Stacks of threads on CPUs: how many samples of which activity.
    pub(crate) fn activities(mut self, activities: &[(Activity, u64)]) -> RunBuilder {
        let sampled = |(activity, count): &(Activity, u64)| SampledActivity {
            activity: *activity,
            role: "connection".to_string(),
            count: *count,
            ns: *count as f64 * 1e7,
        };
        self.last().activities = activities.iter().map(sampled).collect();
        self
    }

    /// Kinds of statements, each once per transaction, with what one takes.
    pub(crate) fn statements(mut self, kinds: &[(&str, f64)]) -> RunBuilder {
        let count = self.last().transactions;
        let time = |(kind, mean_ms): &(&str, f64)| StatementTime {
            kind: kind.to_string(),
            count,
            mean_ms: *mean_ms,
        };
        self.last().statements = kinds.iter().map(time).collect();
        self
    }

    pub(crate) fn work(mut self, work: &[StatementWork]) -> RunBuilder {
        self.0.statement_work = work.to_vec();
        self
    }

    /// A new connection for each transaction, which takes so long.
    pub(crate) fn connects(mut self, mean_ms: f64) -> RunBuilder {
        let count = self.last().transactions;
        self.last().statements = vec![StatementTime { kind: "connect".to_string(), count, mean_ms }];
        self
    }

    /// Connections that were found waiting for a kind of lock, this many at a time.
    pub(crate) fn found_waiting(mut self, kind: &str, mode: &str, connections: f64) -> RunBuilder {
        self.last().lock_objects.push(LockObject {
            kind: whyso_model::LockKind::of_name(kind),
            object: "shop.orders".to_string(),
            mode: mode.to_string(),
            samples: 200,
            share: 1.0,
            waited_ns: Some(connections * SECONDS * 1e9),
            ..LockObject::default()
        });
        self
    }

    /// A cause that nothing measured gets no share: it is possible, and the first suspect is another.
    #[track_caller]
    pub(crate) fn is_but_possible(&self, first: Cause, expected: Cause) {
        let Explanation { suspects, possible, findings, .. } = self.explained();
        assert_eq!(suspects[0].id, first, "{suspects:#?}");
        assert!(suspects.iter().all(|suspect| suspect.id != expected), "{suspects:#?}");
        let found = possible.iter().find(|possible| possible.id == expected);
        let found = found.unwrap_or_else(|| panic!("{expected:?} is not possible: {possible:#?}"));
        assert!(!found.evidence.is_empty() && found.text.ends_with('.'), "{found:#?}");
        let sentence = &findings.iter().find(|finding| finding.id == "possible").unwrap().text;
        assert!(
            sentence.starts_with("Possible, not measured: ") && sentence.contains(expected.name()),
            "{sentence}"
        );
    }

    #[track_caller]
    pub(crate) fn is(&self, expected: Cause) -> Explanation {
        let explanation = self.explained();
        let suspects: Vec<String> = explanation
            .suspects
            .iter()
            .map(|suspect| format!("{:.2} {}", suspect.share, suspect.text))
            .collect();
        let named = explanation.suspects.first().map(|suspect| suspect.id);
        assert_eq!(named, Some(expected), "{suspects:#?}");
        let first = &explanation.suspects[0];
        assert!(!first.evidence.is_empty(), "{first:#?}");
        assert!(
            first.text.ends_with('.') && first.text.matches(". ").count() == 0,
            "one sentence: {}",
            first.text
        );
        self.speaks_of_requests_where_recorded();
        explanation
    }

    /// Where something else loaded the server, nobody knows of its transactions: no sentence counts by them.
    #[track_caller]
    fn speaks_of_requests_where_recorded(&self) {
        let mut input = self.0.clone();
        for level in &mut input.levels {
            level.pacing = LoopKind::Recorded;
            level.bins_100ms.clear();
        }
        let explanation = explain_at(&input, None);
        let suspects = explanation.suspects.iter().map(|suspect| &suspect.text);
        for text in suspects.chain(explanation.findings.iter().map(|finding| &finding.text)) {
            for counted in
                ["transactions/s", "a transaction", "per transaction", "ne transaction", "too short"]
            {
                assert!(!text.contains(counted), "{text}");
            }
        }
    }
}

//! Reports in sysbench's layout, line for line: programs read them.

use std::collections::BTreeMap;
use std::fmt::Write;

use whyso_load::{CONNECT, Interval, LevelOutcome, TRANSACTION};

use crate::facts::IgnoreErrors;

/// sysbench's buckets of latency: 1,024 from 1 µs to 100 s, each as much longer than the one before.
const BUCKETS: usize = 1024;
const BUCKET_FIRST_MS: f64 = 0.001;
const BUCKET_LAST_MS: f64 = 100_000.0;
const STARS: f64 = 40.0;

/// What was done in some time; latencies are of events, from when they were due.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    pub(crate) seconds: f64,
    pub(crate) events: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) other: u64,
    pub(crate) errors: u64,
    pub(crate) reconnects: u64,
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
    pub(crate) sum_ns: u64,
    /// (upper bound in ns, count), ascending.
    pub(crate) buckets: BTreeMap<u64, u64>,
}

impl Sums {
    /// Adds an interval of the engine's.
    pub(crate) fn add(&mut self, interval: &Interval, ignored: &IgnoreErrors) {
        self.seconds += (interval.end_ns - interval.begin_ns) as f64 / 1e9;
        for row in &interval.rows {
            let of_ignored = row.errors.iter().filter(|(code, _)| ignored.contains(code.errno));
            let errors: u64 = of_ignored.map(|(_, count)| count).sum();
            match row.statement.as_str() {
                TRANSACTION => {
                    self.events += row.count;
                    self.sum_ns += row.response_sum_ns;
                    self.max_ns = self.max_ns.max(row.response_max_ns);
                    for (upper_ns, count) in &row.response {
                        *self.buckets.entry(*upper_ns).or_default() += count;
                    }
                    self.min_ns = self.buckets.keys().next().copied().unwrap_or(0);
                    continue;
                }
                CONNECT => self.reconnects += row.count,
                "read" => self.reads += row.count,
                "write" => self.writes += row.count,
                _ => self.other += row.count,
            }
            self.errors += errors;
        }
    }

    /// Those of a whole level.
    pub(crate) fn of_level(outcome: &LevelOutcome, ignored: &IgnoreErrors) -> Sums {
        let count_of = |name: &str| {
            outcome.kinds.iter().filter(|kind| kind.kind == name).map(|kind| kind.count).sum::<u64>()
        };
        Sums {
            seconds: (outcome.window_end_ns - outcome.window_begin_ns) as f64 / 1e9,
            events: outcome.transactions,
            reads: count_of("read"),
            writes: count_of("write"),
            other: count_of("other"),
            errors: outcome
                .errors_by_code
                .iter()
                .filter(|(code, _)| ignored.contains(code.errno))
                .map(|(_, count)| count)
                .sum(),
            reconnects: outcome.reconnects,
            min_ns: outcome.response.min_ns(),
            max_ns: outcome.response.max_ns(),
            sum_ns: outcome.response.sum_ns(),
            buckets: outcome.response.buckets().collect(),
        }
    }

    /// Adds what a script has counted itself.
    pub(crate) fn add_counters(&mut self, counters: &[u64]) {
        let of = |place: usize| counters.get(place).copied().unwrap_or(0);
        self.other += of(0);
        self.reads += of(1);
        self.writes += of(2);
        self.events += of(3);
        self.errors += of(4);
        self.reconnects += of(5);
    }

    fn quantile_ms(&self, percentile: u32) -> f64 {
        let count: u64 = self.buckets.values().sum();
        let wanted = (count as f64 * f64::from(percentile) / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (upper_ns, count) in &self.buckets {
            seen += count;
            if seen >= wanted {
                return (*upper_ns).min(self.max_ns) as f64 / 1e6;
            }
        }
        0.0
    }

    fn each_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }
}

/// What a script's report hooks are given; times in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stat {
    fields: Vec<(&'static str, f64)>,
}

impl Stat {
    pub(crate) fn intermediate(
        sums: &Sums,
        time_total: f64,
        threads: u32,
        percentile: u32,
        backlog: u64,
    ) -> Stat {
        let mut stat = Stat::common(sums, time_total, threads, percentile);
        stat.fields.push(("queue_length", backlog as f64));
        // Users at work on average: their time inside events, by Little's law.
        let at_work = if sums.seconds > 0.0 { sums.sum_ns as f64 / 1e9 / sums.seconds } else { 0.0 };
        stat.fields.push(("concurrency", at_work.round().min(f64::from(threads))));
        stat
    }

    pub(crate) fn cumulative(sums: &Sums, time_total: f64, threads: u32, percentile: u32) -> Stat {
        let mut stat = Stat::common(sums, time_total, threads, percentile);
        stat.fields.extend([
            ("latency_min", sums.min_ns as f64 / 1e9),
            ("latency_max", sums.max_ns as f64 / 1e9),
            ("latency_avg", sums.sum_ns as f64 / 1e9 / sums.events.max(1) as f64),
            ("latency_sum", sums.sum_ns as f64 / 1e9),
        ]);
        stat
    }

    fn common(sums: &Sums, time_total: f64, threads: u32, percentile: u32) -> Stat {
        let latency = if percentile > 0 { sums.quantile_ms(percentile) / 1e3 } else { 0.0 };
        let fields = vec![
            ("threads_running", f64::from(threads)),
            ("time_interval", sums.seconds),
            ("time_total", time_total),
            ("latency_pct", latency),
            ("events", sums.events as f64),
            ("reads", sums.reads as f64),
            ("writes", sums.writes as f64),
            ("other", sums.other as f64),
            ("errors", sums.errors as f64),
            ("reconnects", sums.reconnects as f64),
        ];
        Stat { fields }
    }

    pub(crate) fn fields(&self) -> &[(&'static str, f64)] {
        &self.fields
    }
}

/// The full report. `users`: events of each and the time that they took, in nanoseconds.
pub(crate) fn full(sums: &Sums, percentile: u32, users: &[(u64, u64)]) -> String {
    let mut text = String::new();
    let queries = sums.reads + sums.writes + sums.other;
    // Writing to a String can't fail.
    let _ = write!(
        text,
        "SQL statistics:\n    queries performed:\n        read:                            {}\n        write:                           {}\n        other:                           {}\n        total:                           {}\n",
        sums.reads, sums.writes, sums.other, queries
    );
    for (label, count) in [
        ("transactions:", sums.events),
        ("queries:", queries),
        ("ignored errors:", sums.errors),
        ("reconnects:", sums.reconnects),
    ] {
        let _ = writeln!(text, "    {label:<37}{count:<6} ({:.2} per sec.)", sums.each_second(count));
    }
    let _ = write!(
        text,
        "\nGeneral statistics:\n    total time:                          {:.4}s\n    total number of events:              {}\n",
        sums.seconds, sums.events
    );
    let ms = |ns: u64| ns as f64 / 1e6;
    let average = ms(sums.sum_ns) / sums.events.max(1) as f64;
    text.push_str("\nLatency (ms):\n");
    for (label, value) in [("min:", ms(sums.min_ns)), ("avg:", average), ("max:", ms(sums.max_ns))] {
        let _ = writeln!(text, "         {label}{value:>40.2}");
    }
    if percentile > 0 {
        let _ = writeln!(text, "        {percentile:>3}th percentile:{:>28.2}", sums.quantile_ms(percentile));
    } else {
        text.push_str("         percentile stats:               disabled\n");
    }
    let _ = writeln!(text, "         sum:{:>40.2}", ms(sums.sum_ns));
    let events: Vec<f64> = users.iter().map(|(events, _)| *events as f64).collect();
    let seconds: Vec<f64> = users.iter().map(|(_, busy_ns)| *busy_ns as f64 / 1e9).collect();
    let (events, events_spread) = mean_and_deviation(&events);
    let (seconds, seconds_spread) = mean_and_deviation(&seconds);
    let _ = write!(
        text,
        "\nThreads fairness:\n    events (avg/stddev):           {events:.4}/{events_spread:.2}\n    execution time (avg/stddev):   {seconds:.4}/{seconds_spread:.2}\n\n"
    );
    text
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// The histogram of `--histogram`.
pub(crate) fn histogram(sums: &Sums) -> String {
    let step = (BUCKET_LAST_MS.ln() - BUCKET_FIRST_MS.ln()) / (BUCKETS - 1) as f64;
    let mut counts = BTreeMap::new();
    for (upper_ns, count) in &sums.buckets {
        let place = ((*upper_ns as f64 / 1e6).ln() - BUCKET_FIRST_MS.ln()) / step;
        let place = place.round().clamp(0.0, (BUCKETS - 1) as f64) as usize;
        *counts.entry(place).or_insert(0) += count;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    let mut text = "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n".to_string();
    for (place, count) in counts {
        let value = (BUCKET_FIRST_MS.ln() + place as f64 * step).exp();
        let stars = "*".repeat((count as f64 * STARS / most as f64).floor() as usize);
        let _ = writeln!(text, "{value:>12.3} |{stars:<40} {count}");
    }
    text.push_str(" \n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_report_has_sysbench_s_layout() {
        let sums = Sums {
            seconds: 3.0053,
            events: 1567,
            reads: 21934,
            writes: 6268,
            other: 3132,
            errors: 0,
            reconnects: 0,
            min_ns: 770_000,
            max_ns: 6_010_000,
            sum_ns: 1_997_760_000,
            buckets: BTreeMap::from([(1_610_000, 1567)]),
        };
        let expected = "\
SQL statistics:
    queries performed:
        read:                            21934
        write:                           6268
        other:                           3132
        total:                           31334
    transactions:                        1567   (521.41 per sec.)
    queries:                             31334  (10426.25 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          3.0053s
    total number of events:              1567

Latency (ms):
         min:                                    0.77
         avg:                                    1.27
         max:                                    6.01
         95th percentile:                        1.61
         sum:                                 1997.76

Threads fairness:
    events (avg/stddev):           783.5000/16.50
    execution time (avg/stddev):   0.9989/0.00

";
        let report = full(&sums, 95, &[(800, 998_900_000), (767, 998_900_000)]);
        assert_eq!(report, expected);
        assert!(full(&sums, 0, &[]).contains("         percentile stats:               disabled\n"));
    }

    #[test]
    fn the_histogram_has_sysbench_s_buckets() {
        let sums = Sums { buckets: BTreeMap::from([(797_000, 2), (811_000, 1)]), ..Sums::default() };
        let lines: Vec<String> = histogram(&sums).lines().map(str::to_string).collect();
        assert_eq!(lines[2], "       0.797 |**************************************** 2");
        assert_eq!(lines[3], "       0.811 |********************                     1");
    }
}

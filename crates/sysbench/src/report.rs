//! Reports in sysbench's layout, line for line: programs read them.

use std::collections::BTreeMap;
use std::fmt::Write;

use whyso_load::{CONNECT, Interval, LevelOutcome, TRANSACTION};

use crate::driver::CONNECTION_LOST;
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
            let of_ignored = row.errors.iter().filter(|(code, _)| is_counted(code.errno, ignored));
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
                CONNECT => continue,
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
                .filter(|(code, _)| is_counted(code.errno, ignored))
                .map(|(_, count)| count)
                .sum(),
            reconnects: 0,
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
        let mut passed = 0;
        for (upper_ns, count) in &self.buckets {
            passed += count;
            if passed >= wanted {
                return (*upper_ns).min(self.max_ns) as f64 / 1e6;
            }
        }
        0.0
    }

    fn each_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }
}

/// Whether it is an ignored error. A lost connection counts as a reconnect instead.
fn is_counted(errno: u16, ignored: &IgnoreErrors) -> bool {
    ignored.contains(errno) && !CONNECTION_LOST.contains(&errno)
}

/// The argument of a script's report hooks; times in seconds.
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

    fn get(&self, name: &str) -> f64 {
        self.fields.iter().find(|(field, _)| *field == name).map_or(0.0, |(_, value)| *value)
    }

    pub(crate) fn fields(&self) -> &[(&'static str, f64)] {
        &self.fields
    }
}

/// What a report is about, in addition to the numbers that every report has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A script that has asked for the database driver.
    Sql,
    Script,
    /// The test `cpu`.
    Cpu,
}

/// The line of an intermediate report, without its end.
pub(crate) fn intermediate(subject: Subject, sums: &Sums, stat: &Stat, percentile: u32, rate: f64) -> String {
    let each = |count: u64| sums.each_second(count);
    let (time, threads) = (stat.get("time_total"), stat.get("threads_running"));
    let latency_ms = stat.get("latency_pct") * 1e3;
    let mut text = match subject {
        Subject::Sql => format!(
            "[ {time:.0}s ] thds: {threads:.0} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) \
             lat (ms,{percentile}%): {latency_ms:.2} err/s: {:.2} reconn/s: {:.2}\n",
            each(sums.events),
            each(sums.reads + sums.writes + sums.other),
            each(sums.reads),
            each(sums.writes),
            each(sums.other),
            each(sums.errors),
            each(sums.reconnects)
        ),
        _ => format!(
            "[ {time:.0}s ] thds: {threads:.0} eps: {:.2} lat (ms,{percentile}%): {latency_ms:.2}\n",
            each(sums.events)
        ),
    };
    if rate > 0.0 {
        let (queue, at_work) = (stat.get("queue_length"), stat.get("concurrency"));
        let comma = if subject == Subject::Sql { "," } else { "" };
        // Writing to a String can't fail.
        let _ = writeln!(text, "[ {time:.0}s ] queue length: {queue:.0}{comma} concurrency: {at_work:.0}");
    }
    text
}

/// The full report. `users`: events of each and the time that they took, in nanoseconds; `unfinished`: users within an
/// event when the run was abandoned.
pub(crate) fn full(
    subject: Subject,
    sums: &Sums,
    time_total: f64,
    percentile: u32,
    users: &[(u64, u64)],
    unfinished: usize,
) -> String {
    let mut text = match subject {
        Subject::Sql => sql_statistics(sums),
        Subject::Script => String::new(),
        Subject::Cpu => {
            format!("CPU speed:\n    events per second: {:>8.2}\n", sums.each_second(sums.events))
        }
    };
    if unfinished > 0 {
        // Writing to a String can't fail.
        let _ = write!(text, "\nNumber of unfinished transactions on forced shutdown: {unfinished}\n");
    }
    text.push_str(&general_statistics(sums, time_total, percentile));
    text.push_str(&fairness(users));
    text
}

fn sql_statistics(sums: &Sums) -> String {
    let queries = sums.reads + sums.writes + sums.other;
    let mut text = format!(
        "SQL statistics:\n    queries performed:\n        read:                            {}\n        write:                           {}\n        other:                           {}\n        total:                           {}\n",
        sums.reads, sums.writes, sums.other, queries
    );
    for (label, count) in [
        ("transactions:", sums.events),
        ("queries:", queries),
        ("ignored errors:", sums.errors),
        ("reconnects:", sums.reconnects),
    ] {
        // Writing to a String can't fail.
        let _ = writeln!(text, "    {label:<37}{count:<6} ({:.2} per sec.)", sums.each_second(count));
    }
    text
}

fn general_statistics(sums: &Sums, time_total: f64, percentile: u32) -> String {
    let mut text = format!(
        "\nGeneral statistics:\n    total time:                          {time_total:.4}s\n    total number of events:              {}\n",
        sums.events
    );
    let ms = |ns: u64| ns as f64 / 1e6;
    let average = ms(sums.sum_ns) / sums.events.max(1) as f64;
    text.push_str("\nLatency (ms):\n");
    // Writing to a String can't fail.
    for (label, value) in [("min:", ms(sums.min_ns)), ("avg:", average), ("max:", ms(sums.max_ns))] {
        let _ = writeln!(text, "         {label}{value:>40.2}");
    }
    if percentile > 0 {
        let _ = writeln!(text, "        {percentile:>3}th percentile:{:>28.2}", sums.quantile_ms(percentile));
    } else {
        text.push_str("         percentile stats:               disabled\n");
    }
    let _ = writeln!(text, "         sum:{:>40.2}", ms(sums.sum_ns));
    text
}

fn fairness(users: &[(u64, u64)]) -> String {
    let events: Vec<f64> = users.iter().map(|(events, _)| *events as f64).collect();
    let seconds: Vec<f64> = users.iter().map(|(_, busy_ns)| *busy_ns as f64 / 1e9).collect();
    let (events, events_spread) = mean_and_deviation(&events);
    let (seconds, seconds_spread) = mean_and_deviation(&seconds);
    format!(
        "\nThreads fairness:\n    events (avg/stddev):           {events:.4}/{events_spread:.2}\n    execution time (avg/stddev):   {seconds:.4}/{seconds_spread:.2}\n\n"
    )
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// The lines of `--histogram`, without its title.
pub(crate) fn histogram(sums: &Sums) -> String {
    let step = (BUCKET_LAST_MS.ln() - BUCKET_FIRST_MS.ln()) / (BUCKETS - 1) as f64;
    let mut counts = BTreeMap::new();
    for (upper_ns, count) in &sums.buckets {
        let place = ((*upper_ns as f64 / 1e6).ln() - BUCKET_FIRST_MS.ln()) / step;
        let place = place.round().clamp(0.0, (BUCKETS - 1) as f64) as usize;
        *counts.entry(place).or_insert(0) += count;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    let mut text = "       value  ------------- distribution ------------- count\n".to_string();
    for (place, count) in counts {
        let value = (BUCKET_FIRST_MS.ln() + place as f64 * step).exp();
        let stars = "*".repeat((count as f64 * STARS / most as f64).floor() as usize);
        let _ = writeln!(text, "{value:>12.3} |{stars:<40} {count}");
    }
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
        let users = [(800, 998_900_000), (767, 998_900_000)];
        let report = full(Subject::Sql, &sums, 3.0053, 95, &users, 0);
        assert_eq!(report, expected);
        let disabled = full(Subject::Sql, &sums, 3.0, 0, &[], 0);
        assert!(disabled.contains("         percentile stats:               disabled\n"));
        // A script that sends nothing has the general part only.
        let general = full(Subject::Script, &sums, 3.0053, 95, &users, 0);
        assert!(expected.ends_with(&general) && general.starts_with("\nGeneral statistics:\n"), "{general}");
        let cpu = full(Subject::Cpu, &sums, 3.0053, 95, &users, 2);
        let begin = "CPU speed:\n    events per second:   521.41\n\nNumber of unfinished transactions on forced \
                     shutdown: 2\n\nGeneral statistics:\n";
        assert!(cpu.starts_with(begin), "{cpu}");
    }

    #[test]
    fn the_histogram_has_sysbench_s_buckets() {
        let sums = Sums { buckets: BTreeMap::from([(797_000, 2), (811_000, 1)]), ..Sums::default() };
        let lines: Vec<String> = histogram(&sums).lines().map(str::to_string).collect();
        assert_eq!(lines[1], "       0.797 |**************************************** 2");
        assert_eq!(lines[2], "       0.811 |********************                     1");
    }
}

//! Adds up what the logs get, and puts it into readings.

use std::collections::BTreeMap;

use whyso_access_log::{KindBounds, LineError, LogFormat, RawLine, Request, Sums, Tally, TallyBounds};
use whyso_clock::monotonic_ns;
use whyso_model::LoggedRequests;
use whyso_record::data::{TextRows, Value};

use super::follower::Follower;
use super::metrics::{COUNTERS, OF_LOG, TIMES};
use super::rows::RecentRequests;
use super::spec::AccessLog;
use crate::sampler::{Failure, Sampler};
use crate::sink::Batch;

/// Each kind has twelve series. A tally has up to four names per kind.
const BOUNDS: TallyBounds =
    TallyBounds { kinds_max: 16, tree: KindBounds { segments_max: 20, places_max: 4096 } };
/// What is shown of all kinds together.
const ALL: &str = "all";
/// Least time between two tables of what the logs got.
const TABLE_NS: i64 = 900_000_000;

pub(crate) struct AccessLogSampler {
    logs: Vec<FollowedLog>,
    /// When the last table of what the logs got was taken.
    table_ns: Option<i64>,
}

/// One log with what was counted of it.
struct FollowedLog {
    name: String,
    /// What is before the instance: empty where only one log is followed.
    prefix: String,
    follower: Follower,
    format: Option<LogFormat>,
    was_opened: bool,
    counted: LogCounts,
}

/// Requests since the watching began, and since the reading before.
struct LogCounts {
    tally: Tally,
    /// By place in the tally.
    recent: BTreeMap<usize, Sums>,
    malformed: u64,
    /// Since the last table.
    for_table: RecentRequests,
    /// Places of the tally that were recorded.
    recorded: usize,
}

impl AccessLogSampler {
    pub(crate) fn new(logs: &[AccessLog]) -> AccessLogSampler {
        let followed = logs.iter().map(|log| {
            let is_named_twice = logs.iter().filter(|other| other.name() == log.name()).count() > 1;
            let name = if is_named_twice { log.path.display().to_string() } else { log.name() };
            FollowedLog {
                prefix: if logs.len() > 1 { format!("{name} ") } else { String::new() },
                name,
                follower: Follower::new(&log.path),
                format: log.format.clone(),
                was_opened: false,
                counted: LogCounts {
                    tally: Tally::new(BOUNDS),
                    recent: BTreeMap::new(),
                    malformed: 0,
                    for_table: RecentRequests::default(),
                    recorded: 0,
                },
            }
        });
        AccessLogSampler { logs: followed.collect(), table_ns: None }
    }
}

impl Sampler for AccessLogSampler {
    fn source(&self) -> &'static str {
        "access_log"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let mut failures = Vec::new();
        for log in &mut self.logs {
            if let Err(why) = log.read(batch) {
                failures.push(why);
            }
        }
        self.put_table(batch, false);
        // One log that can be read is a reading; the others are a gap of theirs.
        match failures.is_empty() || !batch.values.is_empty() {
            true => Ok(()),
            false => Err(Failure::quick(failures.join("; "))),
        }
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let outcome = self.read(batch);
        self.put_table(batch, true);
        outcome
    }
}

impl AccessLogSampler {
    /// Hands over what the logs got since the last table, about once per second.
    fn put_table(&mut self, batch: &Batch<'_>, is_last: bool) {
        let now_ns = monotonic_ns();
        // What came before the first reading is not followed.
        let begin_ns = *self.table_ns.get_or_insert(now_ns);
        if now_ns == begin_ns || (now_ns - begin_ns < TABLE_NS && !is_last) {
            return;
        }
        self.table_ns = Some(now_ns);
        let rows = self.logs.iter_mut().flat_map(|log| {
            let LogCounts { for_table, tally, .. } = &mut log.counted;
            std::mem::take(for_table).rows(&log.name, begin_ns, |place| tally.name_at(place))
        });
        let rows = rows.map(|row| row.into_cells().map(Some).to_vec()).collect();
        batch.sink.rows(TextRows {
            source: LoggedRequests::SOURCE.to_string(),
            t_ns: now_ns,
            columns: LoggedRequests::COLUMNS.map(str::to_string).to_vec(),
            rows,
        });
    }
}

impl FollowedLog {
    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), String> {
        let FollowedLog { follower, format, counted, name, .. } = self;
        let mut waiting = Vec::new();
        let outcome = follower.read(|line| {
            let text = match line {
                RawLine::Whole(bytes) => String::from_utf8_lossy(bytes),
                RawLine::TooLong => {
                    counted.add_malformed(1);
                    return;
                }
            };
            match format {
                Some(format) => counted.add(format.parse(&text)),
                None => waiting.push(text.into_owned()),
            }
        });
        let unread_bytes = outcome.map_err(|error| format!("can't read the access log {name}: {error}"))?;
        let is_new = !std::mem::replace(&mut self.was_opened, true);
        if self.format.is_none() && (is_new || !waiting.is_empty()) {
            self.guess(&waiting, batch);
        }
        self.put(unread_bytes, batch);
        Ok(())
    }

    /// Guesses the format by the lines before and those that came. Without one they count as malformed.
    fn guess(&mut self, waiting: &[String], batch: &Batch<'_>) {
        let before = self.follower.lines_before();
        let lines: Vec<&str> = before.iter().chain(waiting).map(String::as_str).collect();
        if lines.is_empty() {
            return;
        }
        self.format = LogFormat::guess(&lines);
        match &self.format {
            Some(format) => {
                batch.event("access_log", format!("{} has the format {}", self.name, format.description()));
                waiting.iter().for_each(|line| self.counted.add(format.parse(line)));
            }
            None => self.counted.add_malformed(waiting.len() as u64),
        }
    }

    fn put(&mut self, unread_bytes: u64, batch: &mut Batch<'_>) {
        let counted = &mut self.counted;
        batch.put(&OF_LOG[0], &self.name, counted.malformed);
        batch.put(&OF_LOG[1], &self.name, unread_bytes);
        let instance = |name: &str| format!("{}{name}", self.prefix);
        let values = |sums: &Sums| {
            [
                sums.requests,
                sums.errors_4xx,
                sums.errors_5xx,
                sums.aborted,
                sums.bytes,
                sums.duration_ns,
                sums.upstream_ns,
            ]
        };
        let all = instance(ALL);
        for (metric, value) in COUNTERS.iter().zip(values(&counted.tally.total())) {
            batch.put(metric, &all, value);
        }
        for place in 0..counted.tally.places() {
            let Some(line) = counted.tally.line(place) else { continue };
            let kind = instance(&line.name);
            for (metric, value) in COUNTERS.iter().zip(values(&line.sums)) {
                if place >= counted.recorded {
                    batch.put_before(metric, &kind, Value::Int(0));
                }
                batch.put(metric, &kind, value);
            }
        }
        counted.recorded = counted.tally.places();
        let recent = std::mem::take(&mut counted.recent);
        let mut together = Sums::default();
        for (place, sums) in &recent {
            together.join(sums);
            if let Some(line) = counted.tally.line(*place) {
                put_times(batch, &instance(&line.name), sums);
            }
        }
        put_times(batch, &all, &together);
    }
}

/// Puts nothing where no request has a duration.
fn put_times(batch: &mut Batch<'_>, instance: &str, sums: &Sums) {
    let quantiles = [0.5, 0.9, 0.99].map(|share| sums.quantile_ns(share));
    let times = [sums.mean_ns(), quantiles[0], quantiles[1], quantiles[2], Some(sums.duration_ns_max)];
    if sums.timed > 0 {
        for (metric, time_ns) in TIMES.iter().zip(times) {
            batch.put(metric, instance, time_ns.unwrap_or(0));
        }
    }
}

impl LogCounts {
    fn add(&mut self, parsed: Result<Request, LineError>) {
        match parsed {
            Ok(request) => {
                let place = self.tally.add(&request);
                self.recent.entry(place).or_default().add(&request);
                self.for_table.add(place, &request);
            }
            Err(_) => self.add_malformed(1),
        }
    }

    fn add_malformed(&mut self, lines: u64) {
        self.malformed += lines;
        self.for_table.malformed += lines;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use super::*;
    use crate::sink::memory::collect;

    fn append(path: &Path, lines: &[(&str, u16, u64)]) {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        for (target, status, us) in lines {
            let at = "28/Nov/2026:19:40:04 +0000";
            writeln!(file, "::1 - - [{at}] \"GET {target} HTTP/1.1\" {status} 5 {us}").unwrap();
        }
    }

    #[test]
    fn requests_since_the_begin_are_counted_by_kind_and_times_are_of_one_reading() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        append(&path, &[("/before", 200, 1)]);
        let mut sampler = AccessLogSampler::new(&[AccessLog { path: path.clone(), format: None }]);
        let mut read = || collect(|batch| sampler.read(batch).unwrap());
        assert_eq!(read()["requests all"], 0.0);
        append(&path, &[("/items/1", 200, 1000), ("/items/2", 503, 3000)]);
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"broken\n").unwrap();
        let values = read();
        for (name, expected) in [
            ("requests all", 2.0),
            ("requests GET /items/{}", 2.0),
            ("errors_5xx GET /items/{}", 1.0),
            ("duration_ns all", 4e6),
            ("mean_ns all", 2e6),
            ("max_ns GET /items/{}", 3e6),
            ("malformed_lines access.log", 1.0),
            ("unread_bytes access.log", 0.0),
        ] {
            assert_eq!(values.get(name), Some(&expected), "{name}: {values:#?}");
        }
        let values = read();
        assert_eq!(values["requests all"], 2.0);
        assert!(!values.contains_key("p99_ns all"), "nothing ended: {values:#?}");
    }

    #[test]
    fn several_logs_have_their_names_and_one_that_is_missing_stops_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let log = |name: &str| AccessLog { path: folder.path().join(name), format: None };
        append(&log("shop.log").path, &[]);
        let mut sampler = AccessLogSampler::new(&[log("shop.log"), log("gone.log")]);
        let mut read = || collect(|batch| sampler.read(batch).unwrap());
        read();
        append(&log("shop.log").path, &[("/", 200, 7)]);
        assert_eq!(read()["requests shop.log GET /"], 1.0);
        let mut alone = AccessLogSampler::new(&[log("gone.log")]);
        collect(|batch| assert!(matches!(alone.read(batch), Err(Failure::Broken { .. }))));
    }
}

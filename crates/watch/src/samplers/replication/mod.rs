//! Replication, of a replica (one instance per connection to a source) and of a source (how many replicas fetch from it).
//!
//! What there is, is found by asking, once per minute while there is nothing: a server that replicates nothing costs no more. Changes of the threads'
//! running states and of their errors are events of the kind `replication`.

mod channel;
mod lag;
mod questions;
mod state;
mod workers;

use whyso_clock::monotonic_ns;
use whyso_record::data::Kind;

use crate::metric::{Metric, gauge};
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{NOW_AND_THEN, SamplerEntry, ScheduledSampler, StartContext};
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::sql::Sql;
use channel::Channel;
pub use lag::{Lag, LagQuestion};
use questions::Questions;
use state::ReplicationState;

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["replication"],
    counts: "lag, positions and threads of a replica, replicas of a source",
    origin: "`SHOW REPLICA STATUS` and its older names, the process list, the Performance Schema",
    metrics: &[&channel::METRICS, &workers::METRICS, &SOURCE_METRICS],
    start,
};

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    vec![ScheduledSampler::of_server(Replication::new(sql)).at_least_every(NOW_AND_THEN)]
}

pub(crate) const SOURCE_METRICS: [Metric; 2] = [
    gauge("connected_replicas", "1", "connections that fetch the binary log"),
    crate::metric::counter("binary_log_pos", "bytes", "position in the binary log that is written"),
];

/// A reading that took 100 ms is followed by the next after 5 s at the earliest.
const PACE_FACTOR: i64 = 50;
/// A server that replicates nothing is asked again.
const PROBE_NS: i64 = 60_000_000_000;

pub(crate) struct Replication {
    sql: Sql,
    questions: Questions,
    /// When a server that replicated nothing is asked again.
    probe_at_ns: i64,
    pace: Pace,
    channels: Option<Vec<Channel>>,
}

impl Replication {
    pub(crate) fn new(sql: Sql) -> Replication {
        Replication {
            sql,
            questions: Questions::default(),
            probe_at_ns: 0,
            pace: Pace::default(),
            channels: None,
        }
    }

    fn take(&mut self, found: ReplicationState, batch: &mut Batch<'_>) {
        for line in found.refused {
            batch.absent(line);
        }
        for text in changes(self.channels.as_deref(), &found.channels) {
            batch.event("replication", text);
        }
        let is_source = found.replicas.is_some_and(|replicas| replicas > 0);
        let was_replica = self.channels.as_ref().is_some_and(|before| !before.is_empty());
        if found.channels.is_empty() && !is_source && !was_replica {
            self.probe_at_ns = monotonic_ns() + PROBE_NS;
        }
        for channel in &found.channels {
            for (name, value) in &channel.numbers {
                batch.put_named(name, &channel.name, *value, || described(name));
            }
        }
        for (metric, instance, value) in &found.workers {
            batch.put_value(metric, instance, *value);
        }
        if let Some(replicas) = found.replicas {
            batch.put(&SOURCE_METRICS[0], "", replicas);
        }
        if let Some(position) = found.binary_log_pos {
            batch.put(&SOURCE_METRICS[1], "", position);
        }
        self.channels = Some(found.channels);
    }
}

/// Kind and unit of a number; one that is not in the table is a level.
fn described(name: &str) -> (Kind, &'static str) {
    let found = channel::METRICS.iter().find(|metric| metric.name == name);
    found.map_or((Kind::Gauge, "1"), |metric| (metric.kind, metric.unit))
}

/// What happened from one reading to the next; at the first one only what is wrong already.
fn changes(before: Option<&[Channel]>, now: &[Channel]) -> Vec<String> {
    let named = |channel: &Channel| match channel.name.as_str() {
        "" => "the connection to the source".to_string(),
        name => format!("{name}: the connection to the source"),
    };
    let mut texts = Vec::new();
    for channel in now {
        match before.and_then(|before| before.iter().find(|then| then.name == channel.name)) {
            Some(then) => texts.extend(channel.changes_since(then)),
            None => {
                if before.is_some() {
                    texts.push(format!("{} is new", named(channel)));
                }
                texts.extend(
                    channel.changes_since(&Channel { name: channel.name.clone(), ..Channel::default() }),
                );
            }
        }
    }
    let gone = |then: &&Channel| !now.iter().any(|channel| channel.name == then.name);
    texts.extend(
        before.unwrap_or_default().iter().filter(gone).map(|then| format!("{} was removed", named(then))),
    );
    texts
}

impl Sampler for Replication {
    fn source(&self) -> &'static str {
        "replication"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let begin_ns = monotonic_ns();
        if begin_ns < self.probe_at_ns {
            batch.nothing_to_read();
            return Ok(());
        }
        if !self.pace.due(begin_ns) {
            batch.put_off();
            return Ok(());
        }
        let questions = &mut self.questions;
        let outcome = self.sql.run(async |conn| questions.ask(conn).await);
        self.pace.rest(begin_ns, monotonic_ns() - begin_ns, PACE_FACTOR);
        if outcome.is_err() {
            // It may be another server when it is back.
            self.questions = Questions::default();
            self.probe_at_ns = 0;
        }
        let found = outcome?;
        if self.questions.is_refused() {
            return Err(Failure::Absent(found.refused.join("; ")));
        }
        self.take(found, batch);
        Ok(())
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        if self.channels.as_ref().is_none_or(Vec::is_empty) {
            batch.nothing_to_read();
            return Ok(());
        }
        let questions = &mut self.questions;
        let found = self.sql.run_last(async |conn| questions.ask(conn).await)?;
        self.take(found, batch);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(name: &str, running: &str, error: &str) -> Channel {
        Channel::of([
            ("Channel_Name", Some(name)),
            ("Replica_SQL_Running", Some(running)),
            ("Last_SQL_Error", Some(error)),
        ])
    }

    #[test]
    fn connections_that_come_and_go_are_reported_by_name() {
        let (east, west) = (channel("east", "Yes", ""), channel("west", "No", "full"));
        assert_eq!(changes(None, std::slice::from_ref(&east)), [""; 0]);
        assert_eq!(changes(None, std::slice::from_ref(&west)), ["west: Last_SQL_Error: full"]);
        assert_eq!(
            changes(Some(&[east]), &[west]),
            [
                "west: the connection to the source is new",
                "west: Last_SQL_Error: full",
                "east: the connection to the source was removed"
            ]
        );
        let unnamed = channel("", "Yes", "");
        assert_eq!(changes(Some(&[unnamed]), &[]), ["the connection to the source was removed"]);
    }

    #[test]
    fn a_number_that_no_table_knows_is_a_level() {
        assert_eq!(described("exec_source_log_pos"), (Kind::Counter, "bytes"));
        assert_eq!(described("seconds_behind_source"), (Kind::Gauge, "s"));
        assert_eq!(described("skip_counter"), (Kind::Gauge, "1"));
    }
}

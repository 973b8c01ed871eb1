//! What the threads of a replica do that apply its source's changes: how often they were found in which state, by the server's own words.

use std::collections::BTreeMap;

use mysql_async::Error;
use whyso_clock::monotonic_ns;
use whyso_record::data::Value;

use crate::metric::{Metric, counter};
use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::sql::Sql;

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["applying"],
    counts: "states of a replica's threads that apply changes",
    origin: "the process list, the Performance Schema",
    metrics: &[&METRICS],
    start,
};

pub(crate) const METRICS: [Metric; 1] =
    [counter("samples", "1", "threads that were found in this state, over all readings")];

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    let pace = Pace::default();
    let sampler = Applying { sql, question: None, probe_at_ns: 0, pace, samples: BTreeMap::new() };
    vec![ScheduledSampler::of_server(sampler)]
}

/// Threads by state: of MariaDB, then of MySQL. Those of Galera keep the state of their last change, so that they are not counted.
const QUESTIONS: [&str; 2] = [
    "SELECT COALESCE(STATE, ''), COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'system user' \
     AND COMMAND IN ('Slave_worker', 'Slave_SQL') GROUP BY 1",
    "SELECT COALESCE(PROCESSLIST_STATE, ''), COUNT(*) FROM performance_schema.threads WHERE NAME IN \
     ('thread/sql/replica_sql', 'thread/sql/replica_worker', 'thread/sql/slave_sql', 'thread/sql/slave_worker') GROUP BY 1",
];
/// A server that never had such threads is asked again.
const PROBE_NS: i64 = 60_000_000_000;
/// A reading that took 20 ms is followed by the next after 1 s at the earliest.
const PACE_FACTOR: i64 = 50;
/// States that are counted by name; the others are counted together.
const STATES_MAX: usize = 32;
const LETTERS_MAX: usize = 80;
const OTHERS: &str = "other states";
const NAMELESS: &str = "no state";

struct Applying {
    sql: Sql,
    /// The one that found some.
    question: Option<&'static str>,
    probe_at_ns: i64,
    pace: Pace,
    /// By state.
    samples: BTreeMap<String, u64>,
}

impl Applying {
    /// Adds what was found, and gives the states that are new.
    fn enter(&mut self, found: Vec<(String, u64)>) -> Vec<String> {
        let mut new = Vec::new();
        for (state, threads) in found {
            let mut name = name_of(&state);
            if !self.samples.contains_key(&name) && self.samples.len() >= STATES_MAX {
                name = OTHERS.to_string();
            }
            if !self.samples.contains_key(&name) {
                new.push(name.clone());
            }
            *self.samples.entry(name).or_default() += threads;
        }
        new
    }
}

/// Numbers of transactions and the like would make a new state each time.
fn name_of(state: &str) -> String {
    let mut name = String::new();
    for letter in state.trim().chars().take(LETTERS_MAX) {
        match letter {
            '0'..='9' if name.ends_with('#') => {}
            '0'..='9' => name.push('#'),
            _ => name.push(letter),
        }
    }
    if name.is_empty() { NAMELESS.to_string() } else { name }
}

impl Sampler for Applying {
    fn source(&self) -> &'static str {
        "applying"
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
        let question = &mut self.question;
        let outcome = self.sql.run(async |conn| ask(conn, question).await);
        self.pace.rest(begin_ns, monotonic_ns() - begin_ns, PACE_FACTOR);
        let found = outcome?;
        if self.question.is_none() {
            self.probe_at_ns = begin_ns + PROBE_NS;
            batch.nothing_to_read();
            return Ok(());
        }
        for state in self.enter(found) {
            batch.put_before(&METRICS[0], &state, Value::Int(0));
        }
        for (state, samples) in &self.samples {
            batch.put(&METRICS[0], state, *samples);
        }
        Ok(())
    }
}

/// Threads by state; none where the server has none, or shows none to us.
async fn ask(
    conn: &mut ControlConnection<'_>,
    known: &mut Option<&'static str>,
) -> Result<Vec<(String, u64)>, Error> {
    for question in known.map_or(QUESTIONS.to_vec(), |question| vec![question]) {
        match conn.query::<(String, u64), _>(question).await {
            Ok(threads) if threads.is_empty() => {}
            Ok(threads) => {
                *known = Some(question);
                return Ok(threads);
            }
            // It has no such table or column, or does not show it to us.
            Err(Error::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_make_no_states_of_their_own() {
        assert_eq!(name_of("Committed 1234"), "Committed #");
        assert_eq!(name_of(" Applied write set (0,17) "), "Applied write set (#,#)");
        assert_eq!(name_of(""), NAMELESS);
        assert_eq!(name_of(&"é".repeat(500)).chars().count(), LETTERS_MAX);
    }

    #[test]
    fn states_are_summed_by_name_within_a_bound() {
        let opts = mysql_async::Opts::from_url("mysql://root@127.0.0.1:1/").unwrap();
        let sql = Sql::new(&opts, crate::stop::Stop::new());
        let mut sampler =
            Applying { sql, question: None, probe_at_ns: 0, pace: Pace::default(), samples: BTreeMap::new() };
        let new = sampler.enter(vec![("Committed 1".to_string(), 1), ("Committed 2".to_string(), 2)]);
        assert_eq!(new, ["Committed #"]);
        assert_eq!(sampler.samples, BTreeMap::from([("Committed #".to_string(), 3)]));
        let many = (0..100_u8)
            .map(|at| (format!("state {}{}", (b'a' + at % 26) as char, (b'a' + at / 26) as char), 1));
        assert_eq!(sampler.enter(many.collect()).len(), STATES_MAX);
        assert_eq!(sampler.samples.len(), STATES_MAX + 1);
        assert_eq!(sampler.samples.values().sum::<u64>(), 103);
        assert_eq!(sampler.samples[OTHERS], 103 - 3 - (STATES_MAX as u64 - 1));
    }
}

//! Global variables: at the start, each slow interval and at the end. The first reading goes to the
//! text table `variables`; a change becomes an event `variable` with the text `name: old → new`.
//!
//! Values of credentials are masked before anything else sees them, so that a change of a masked
//! one goes unseen. Variables that move by themselves, such as a GTID position, make no event.

mod mask;

use std::collections::BTreeMap;

use mysql_async::Error;
use whyso_record::data::TextRows;

use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::samplers::status::text_of;
use crate::sink::Batch;
use crate::sql::Sql;

use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};
pub use mask::mask_variable;

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["variables"],
    counts: "changes of global variables, as events",
    origin: "`SHOW GLOBAL VARIABLES`",
    metrics: &[],
    start,
};

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    vec![ScheduledSampler::of_server(Variables::new(sql)).slowly()]
}

/// What a variable was before and is now; `None` where it did not exist.
type Change = (String, Option<String>, Option<String>);

pub(crate) struct Variables {
    sql: Sql,
    values: Option<BTreeMap<String, String>>,
}

impl Variables {
    pub(crate) fn new(sql: Sql) -> Variables {
        Variables { sql, values: None }
    }

    fn take(&mut self, now: BTreeMap<String, String>, batch: &mut Batch<'_>) {
        match &self.values {
            None => {
                let rows = now.iter().map(|(name, value)| vec![Some(name.clone()), Some(value.clone())]);
                batch.sink.rows(TextRows {
                    source: "variables".to_string(),
                    t_ns: whyso_clock::monotonic_ns(),
                    columns: vec!["name".to_string(), "value".to_string()],
                    rows: rows.collect(),
                });
            }
            Some(before) => {
                for (name, old, new) in changes(before, &now) {
                    let old = old.unwrap_or_else(|| "(did not exist)".to_string());
                    let new = new.unwrap_or_else(|| "(does not exist)".to_string());
                    batch.event("variable", format!("{name}: {old} → {new}"));
                }
            }
        }
        self.values = Some(now);
    }
}

impl Sampler for Variables {
    fn source(&self) -> &'static str {
        "variables"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let now = self.sql.run(async |conn| read_variables(conn).await)?;
        self.take(now, batch);
        Ok(())
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let now = self.sql.run_last(async |conn| read_variables(conn).await)?;
        self.take(now, batch);
        Ok(())
    }
}

/// The statement that reads every global variable.
pub const GLOBAL_VARIABLES: &str = "SHOW GLOBAL VARIABLES";

/// Every global variable, name in lower case, credentials masked.
pub(crate) async fn read_variables(
    conn: &mut ControlConnection<'_>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut variables = BTreeMap::new();
    let mut result = conn.query_iter(GLOBAL_VARIABLES).await?;
    while let Some(row) = result.next().await? {
        let Some(name) = text_of(&row, 0) else {
            continue;
        };
        let name = name.to_ascii_lowercase();
        let value = mask_variable(&name, text_of(&row, 1).unwrap_or(""));
        variables.insert(name, value);
    }
    Ok(variables)
}

fn changes(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (name, new) in now {
        let old = before.get(name);
        if old != Some(new) && !moves_by_itself(name) {
            changes.push((name.clone(), old.cloned(), Some(new.clone())));
        }
    }
    for (name, old) in before {
        if !now.contains_key(name) && !moves_by_itself(name) {
            changes.push((name.clone(), Some(old.clone()), None));
        }
    }
    changes
}

/// State that the server shows as a variable, and what is about our session rather than the server.
pub(crate) fn moves_by_itself(name: &str) -> bool {
    const NAMES: [&str; 17] = [
        "error_count",
        "gtid_binlog_pos",
        "gtid_binlog_state",
        "gtid_current_pos",
        "gtid_executed",
        "gtid_owned",
        "gtid_purged",
        "gtid_slave_pos",
        "identity",
        "innodb_buffer_pool_load_now",
        "insert_id",
        "last_gtid",
        "last_insert_id",
        "pseudo_thread_id",
        "timestamp",
        "warning_count",
        "wsrep_last_written_gtid",
    ];
    NAMES.contains(&name) || name.starts_with("rand_seed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        owned.collect()
    }

    #[test]
    fn what_changed_is_reported_and_positions_are_not() {
        let before = map(&[("a", "1"), ("b", "2"), ("gone", "x"), ("gtid_executed", "1")]);
        let now = map(&[("a", "1"), ("b", "3"), ("new", "y"), ("gtid_executed", "2")]);
        let some = |text: &str| Some(text.to_string());
        let expected = vec![
            ("b".to_string(), some("2"), some("3")),
            ("new".to_string(), None, some("y")),
            ("gone".to_string(), some("x"), None),
        ];
        assert_eq!(changes(&before, &now), expected);
    }
}

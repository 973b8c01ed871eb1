//! Settings of one server that differ between sides, switched between their windows.

use std::sync::Arc;

use mysql_async::Conn;
use tokio::runtime::Runtime;
use whyso_server::Dsn;
use whyso_server::answers::{answered, log_out};
use whyso_server::knobs::{Scope, Undo, session_statement};
use whyso_workload::Workload;

use crate::Error;
use crate::server_under_test::{ServerUnderTest, SharedCell};

/// Settings of what a server fills or empties over minutes: windows of seconds would show what it held before the switch.
const SLOW: [&str; 11] = [
    "innodb_adaptive_hash_index",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_old_blocks_pct",
    "innodb_old_blocks_time",
    "innodb_redo_log_capacity",
    "key_buffer_size",
    "query_cache_size",
    "query_cache_type",
    "table_definition_cache",
    "table_open_cache",
];

/// The settings of one side, with their values. The last value of a setting holds.
pub(crate) type Settings<'a> = &'a [(String, String)];

/// The value that a side gives a setting.
pub(crate) fn value_of<'a>(settings: Settings<'a>, name: &str) -> Option<&'a str> {
    settings.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The names of all settings of any side, each once.
pub(crate) fn names_of<'a>(sides: &[Settings<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in sides.iter().copied().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// The first setting that a server can't be switched between in windows of seconds.
pub(crate) fn slow_name<'a>(sides: &[Settings<'a>]) -> Option<&'a str> {
    let is_slow = |name: &&str| SLOW.contains(&name.to_ascii_lowercase().replace('-', "_").as_str());
    names_of(sides).into_iter().find(is_slow)
}

/// What is switched.
pub(crate) struct Switch {
    dsn: Dsn,
    conn: Conn,
    undo: SharedCell<Undo>,
    knobs: Vec<Knob>,
    /// The side whose values the server has.
    side: Option<usize>,
}

struct Knob {
    name: String,
    /// One for each side.
    values: Vec<String>,
}

impl Switch {
    /// Tries the values of all sides. What takes effect in each session is set in those of its side, by its workload, and not switched. `None`
    /// where nothing is to be switched.
    ///
    /// # Errors
    /// The server refuses a value, or does not answer.
    pub(crate) async fn prepare(
        tested: &ServerUnderTest,
        sides: &[Settings<'_>],
        workloads: &mut [Workload],
    ) -> Result<Option<Switch>, Error> {
        let dsn = tested.dsn.clone();
        let mut switched = Vec::new();
        let mut conn = dsn.connect_without_schema().await?;
        let tried = async {
            for name in names_of(sides) {
                let values: Vec<Option<&str>> = sides.iter().map(|side| value_of(side, name)).collect();
                if Undo::scope(&mut conn, name).await? == Scope::Session {
                    for (workload, value) in workloads.iter_mut().zip(values) {
                        workload
                            .session
                            .extend(value.map(|value| session_statement(name, value)).transpose()?);
                    }
                    continue;
                }
                let given: Vec<&str> = values.iter().flatten().copied().collect();
                let (before, _) = tested.undo.lock().await.try_values(&mut conn, name, &given).await?;
                let or_before = |value: Option<&str>| value.map_or_else(|| before.clone(), str::to_string);
                switched.push(Knob {
                    name: name.to_string(),
                    values: values.into_iter().map(or_before).collect(),
                });
            }
            Ok::<_, Error>(())
        };
        answered(&dsn, "trying the settings of all sides", tried).await?;
        if switched.is_empty() {
            log_out(conn).await;
            return Ok(None);
        }
        Ok(Some(Switch { dsn, conn, undo: Arc::clone(&tested.undo), knobs: switched, side: None }))
    }

    /// Whether a setting is switched, and not one of the sessions of its side.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.knobs.iter().any(|knob| knob.name == name)
    }

    /// Gives the server the settings of a side.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub(crate) fn switch_to(&mut self, side: usize, runtime: &Runtime) -> Result<(), Error> {
        if self.side == Some(side) {
            return Ok(());
        }
        let Switch { dsn, conn, undo, knobs, side: now } = self;
        *now = None;
        runtime.block_on(answered(dsn, "switching to another side", async {
            for knob in knobs.iter() {
                undo.lock().await.switch(conn, &knob.name, &knob.values[side]).await?;
            }
            Ok::<_, Error>(())
        }))?;
        *now = Some(side);
        Ok(())
    }

    /// Ends its connection. The settings are put back with all others of the server.
    pub(crate) async fn close(self) {
        log_out(self.conn).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_holds_and_each_name_counts_once() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let (one, other) =
            (pairs(&[("a", "1"), ("a", "2")]), pairs(&[("b", "3"), ("Key-Buffer-Size", "8M")]));
        assert_eq!(value_of(&one, "a"), Some("2"));
        assert_eq!(value_of(&one, "b"), None);
        assert_eq!(names_of(&[&one, &other]), ["a", "b", "Key-Buffer-Size"]);
        assert_eq!(slow_name(&[&one, &other]), Some("Key-Buffer-Size"));
        assert_eq!(slow_name(&[&one]), None);
    }
}

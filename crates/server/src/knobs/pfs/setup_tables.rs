//! What a server's Performance Schema has and how it is set, found by asking.

use std::collections::{BTreeMap, BTreeSet};

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Value};
use whyso_model::performance_schema::{AvailableTimer, EffectiveClass, EffectiveSetup, InstrumentNames};

use super::change::{Row, denied};
use super::names::Names;
use crate::error::{Result, refused, server_code};
use crate::knobs::text_of;

const NO_SUCH_VARIABLE: u16 = 1193;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// A build without it.
    #[default]
    CompiledOut,
    Off,
    On,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instrument {
    pub(super) name: String,
    pub(super) enabled: String,
    /// Empty for what can't be timed.
    pub(super) timed: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) id: String,
    pub(super) user: String,
    pub(super) host: String,
    pub(super) instrumented: String,
}

/// The setup tables of one server. What it does not have is empty.
#[derive(Clone, Debug, Default)]
pub struct SetupTables {
    pub(super) state: State,
    /// "table.COLUMN".
    pub(super) columns: BTreeSet<String>,
    pub(super) instruments: Vec<Instrument>,
    /// (name, YES or NO).
    pub(super) consumers: Vec<(String, String)>,
    /// (what is timed, name of its timer).
    pub(super) timers: Vec<(String, String)>,
    pub(super) timers_there: Vec<AvailableTimer>,
    pub(super) actors: Vec<Row>,
    pub(super) objects: Vec<Row>,
    /// Threads of clients, except our own.
    pub(super) threads: Vec<Thread>,
}

impl SetupTables {
    /// Asks a server; changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::PerformanceSchema`](crate::Error::PerformanceSchema) where the user may not read, or
    /// [`Error::Refused`](crate::Error::Refused).
    pub async fn read(connection: &mut Conn) -> Result<SetupTables> {
        let mut found = SetupTables { state: state(connection).await?, ..SetupTables::default() };
        if found.state == State::Off {
            return Ok(found);
        }
        let columns: Vec<(String, String)> = connection
            .query(
                "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'performance_schema' \
                 AND TABLE_NAME IN ('setup_instruments', 'setup_consumers', 'setup_timers', 'setup_actors', 'setup_objects', \
                 'performance_timers', 'threads')",
            )
            .await
            .map_err(refused("show what its Performance Schema has"))?;
        found.columns = columns
            .into_iter()
            .map(|(table, column)| format!("{}.{}", table.to_ascii_lowercase(), column.to_ascii_uppercase()))
            .collect();
        if found.state == State::CompiledOut {
            return Ok(found);
        }
        for (name, enabled, timed) in found
            .rows::<(String, String, Option<String>)>(connection, "setup_instruments", "NAME, ENABLED, TIMED")
            .await?
        {
            found.instruments.push(Instrument { name, enabled, timed: timed.unwrap_or_default() });
        }
        found.consumers = found.rows(connection, "setup_consumers", "NAME, ENABLED").await?;
        found.timers = found.rows(connection, "setup_timers", "NAME, TIMER_NAME").await?;
        let columns = "TIMER_NAME, TIMER_FREQUENCY, TIMER_RESOLUTION, TIMER_OVERHEAD";
        for (name, frequency, resolution, overhead_cycles) in
            found.rows(connection, "performance_timers", columns).await?
        {
            found.timers_there.push(AvailableTimer { name, frequency, resolution, overhead_cycles });
        }
        found.actors =
            found.whole(connection, "setup_actors", &["HOST", "USER", "ROLE", "ENABLED", "HISTORY"]).await?;
        found.objects = found
            .whole(
                connection,
                "setup_objects",
                &["OBJECT_TYPE", "OBJECT_SCHEMA", "OBJECT_NAME", "ENABLED", "TIMED"],
            )
            .await?;
        if found.has("threads.INSTRUMENTED") {
            found.threads = threads(connection).await?;
        }
        Ok(found)
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn in_force(&self) -> EffectiveSetup {
        let enabled: Vec<&Instrument> =
            self.instruments.iter().filter(|instrument| instrument.enabled == "YES").collect();
        EffectiveSetup {
            instruments: self.instruments.len(),
            enabled: enabled.len(),
            timed: enabled.iter().filter(|instrument| instrument.timed == "YES").count(),
            consumers: self
                .consumers
                .iter()
                .filter(|(_, is)| is == "YES")
                .map(|(name, _)| name.clone())
                .collect(),
            timers: self.timers.iter().map(|(what, timer)| format!("{what} by {timer}")).collect(),
            timers_there: self.timers_there.clone(),
            classes: self.classes(),
            timed_instruments: Some(self.timed_instruments()),
        }
    }

    fn classes(&self) -> Vec<EffectiveClass> {
        let mut classes: BTreeMap<&str, EffectiveClass> = BTreeMap::new();
        for instrument in &self.instruments {
            let name = instrument.name.split('/').next().unwrap_or_default();
            let class = classes
                .entry(name)
                .or_insert_with(|| EffectiveClass { class: name.to_string(), ..EffectiveClass::default() });
            class.instruments += 1;
            if instrument.enabled == "YES" {
                class.enabled += 1;
                class.timed += usize::from(instrument.timed == "YES");
            }
        }
        classes.into_values().collect()
    }

    fn timed_instruments(&self) -> InstrumentNames {
        let all: BTreeSet<&str> =
            self.instruments.iter().map(|instrument| instrument.name.as_str()).collect();
        let timed = self.instruments.iter().filter(|instrument| instrument.timed == "YES");
        let Names { beginnings, names } =
            Names::cover(&timed.map(|instrument| instrument.name.as_str()).collect(), &all);
        InstrumentNames { beginnings, names }
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.contains(column)
    }

    fn has_table(&self, table: &str) -> bool {
        self.columns.iter().any(|column| column.split('.').next() == Some(table))
    }

    async fn rows<R>(&self, connection: &mut Conn, table: &str, columns: &str) -> Result<Vec<R>>
    where
        R: FromRow + Send + 'static,
    {
        if !self.has_table(table) {
            return Ok(Vec::new());
        }
        let sql = format!("SELECT {columns} FROM performance_schema.{table}");
        connection.query(sql).await.map_err(|error| denied(error, table))
    }

    /// Rows with those of the columns that there are.
    async fn whole(&self, connection: &mut Conn, table: &str, columns: &[&str]) -> Result<Vec<Row>> {
        let there: Vec<&str> =
            columns.iter().copied().filter(|column| self.has(&format!("{table}.{column}"))).collect();
        let rows: Vec<mysql_async::Row> = self.rows(connection, table, &there.join(", ")).await?;
        let of_row = |row: mysql_async::Row| {
            let values = row.unwrap().into_iter().map(|value| match value {
                Value::NULL => None,
                value => Some(text_of(value)),
            });
            there.iter().map(ToString::to_string).zip(values).collect()
        };
        Ok(rows.into_iter().map(of_row).collect())
    }
}

/// Whether a server has it, and whether it is on.
async fn state(connection: &mut Conn) -> Result<State> {
    match connection.query_first::<Option<Value>, _>("SELECT @@GLOBAL.performance_schema").await {
        Ok(value) => {
            let text = value.flatten().map(text_of).unwrap_or_default();
            Ok(if text == "1" || text == "ON" { State::On } else { State::Off })
        }
        Err(error) if server_code(&error) == Some(NO_SUCH_VARIABLE) => Ok(State::CompiledOut),
        Err(error) => Err(refused("show whether its Performance Schema is on")(error)),
    }
}

async fn threads(connection: &mut Conn) -> Result<Vec<Thread>> {
    let rows: Vec<(u64, Option<String>, Option<String>, String)> = connection
        .query(
            "SELECT THREAD_ID, PROCESSLIST_USER, PROCESSLIST_HOST, INSTRUMENTED FROM performance_schema.threads \
             WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID <> CONNECTION_ID()",
        )
        .await
        .map_err(|error| denied(error, "threads"))?;
    let of_row = |(id, user, host, instrumented): (u64, Option<String>, Option<String>, String)| Thread {
        id: id.to_string(),
        user: user.unwrap_or_default(),
        host: host.unwrap_or_default(),
        instrumented,
    };
    Ok(rows.into_iter().map(of_row).collect())
}

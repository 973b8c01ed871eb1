//! From what a server has to the changes that a preset asks for. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use super::change::{Row, SetupChange};
use super::names::Names;
use super::setup_tables::{SetupTables, State};
use super::{PfsRequest, Preset, Timing};
use crate::error::{Error, Result};

const YES: &str = "YES";
const NO: &str = "NO";
/// What the Performance Schema itself takes is counted whatever is set.
const ALWAYS_ON: &str = "memory/performance_schema/";
/// These have amounts and no times.
const MEMORY: &str = "memory/";

impl PfsRequest {
    /// What has to be changed on a server for this, in the order in which it is done.
    ///
    /// # Errors
    ///
    /// [`Error::PerformanceSchema`] where a running server can't do this; it says what it takes.
    pub fn changes(&self, found: &SetupTables) -> Result<Vec<SetupChange>> {
        self.check()?;
        self.check_state(found)?;
        if !self.preset.is_on() {
            return Ok(Vec::new());
        }
        if found.instruments.is_empty() || found.consumers.is_empty() {
            return no(
                "the Performance Schema's setup_instruments and setup_consumers are empty for this user: GRANT SELECT, UPDATE ON \
                 performance_schema.* TO it",
            );
        }
        let has_some =
            found.instruments.iter().any(|instrument| self.enables(&instrument.name) == Some(true));
        if !has_some && !matches!(self.preset, Preset::None | Preset::Default) {
            return Err(Error::PerformanceSchema(format!(
                "this server's Performance Schema has no instrument that --pfs {} turns on: give another preset, such as global",
                self.preset
            )));
        }
        let mut changes = self.instruments(found);
        changes.extend(self.timers(found)?);
        changes.extend(self.actors(found)?);
        changes.extend(self.objects(found)?);
        changes.extend(self.consumers(found));
        Ok(changes)
    }

    fn check_state(&self, found: &SetupTables) -> Result<()> {
        match (self.preset, found.state) {
            (Preset::CompiledOut, State::CompiledOut) if !found.columns.is_empty() => no(
                "this server has no variable performance_schema, yet tables of a Performance Schema, so whyso can't say that it is \
                 without one: --pfs compiled-out takes a build that has neither",
            ),
            (Preset::CompiledOut, State::CompiledOut) | (Preset::NotStarted, State::Off) => Ok(()),
            (Preset::CompiledOut, _) => no(
                "this server was built with the Performance Schema, and whyso can't take it out: --pfs compiled-out takes a build \
                 without it (cmake -DPLUGIN_PERFSCHEMA=NO for MariaDB, -DWITH_PERFSCHEMA_STORAGE_ENGINE=OFF for MySQL up to 5.7); give \
                 its folder with --server, or start it and give --dsn. For a server that has it and leaves it off: --pfs not-started",
            ),
            (_, State::CompiledOut) => no(
                "this server was built without the Performance Schema: leave out --pfs, or use another build",
            ),
            (Preset::NotStarted, State::On) => no(
                "the Performance Schema is on, and can be turned off only at the server's start: start the server with \
                 performance_schema=OFF",
            ),
            (_, State::Off) => no(
                "the Performance Schema is off, and can be turned on only at the server's start: start the server with \
                 performance_schema=ON",
            ),
            (_, State::On) => Ok(()),
        }
    }

    /// Whether an instrument is to count; `None`: as the server has it.
    fn enables(&self, name: &str) -> Option<bool> {
        let of_tables = || {
            let mut parts = name.split('/');
            let is_wait = parts.next() == Some("wait");
            name.starts_with("wait/io/file") || (is_wait && parts.nth(1) == Some("table"))
        };
        match self.preset {
            Preset::CompiledOut | Preset::NotStarted | Preset::Default => None,
            Preset::None => Some(false),
            Preset::Tables => Some(of_tables()),
            Preset::Statements => Some(name.starts_with("statement/")),
            Preset::Synch => name.starts_with("wait/synch/").then_some(true),
            Preset::Global | Preset::Thread => Some(true),
        }
    }

    fn instruments(&self, found: &SetupTables) -> Vec<SetupChange> {
        let all: BTreeSet<&str> =
            found.instruments.iter().map(|instrument| instrument.name.as_str()).collect();
        let mut enabled = Edits::new();
        let mut timed = Edits::new();
        for instrument in &found.instruments {
            let enables = self
                .enables(&instrument.name)
                .filter(|enables| *enables || !instrument.name.starts_with(ALWAYS_ON));
            if let Some(enables) = enables {
                enabled.add(&instrument.name, &instrument.enabled, yes_or_no(enables));
            }
            let counts = enables.unwrap_or(instrument.enabled == YES);
            let times = match self.timing {
                Some(Timing::No) => Some(false),
                Some(Timing::Yes | Timing::Cycles) => counts.then_some(true),
                None => enables,
            };
            if let Some(times) = times
                && !instrument.timed.is_empty()
                && !instrument.name.starts_with(MEMORY)
            {
                timed.add(&instrument.name, &instrument.timed, yes_or_no(times));
            }
        }
        let mut changes = enabled.changes("setup_instruments", "NAME", "ENABLED", &all);
        changes.extend(timed.changes("setup_instruments", "NAME", "TIMED", &all));
        changes
    }

    fn consumers(&self, found: &SetupTables) -> Vec<SetupChange> {
        // MySQL 5.5 has a consumer for each summary, and none for all.
        let by_summary = !found.consumers.iter().any(|(name, _)| name == "global_instrumentation");
        let mut edits = Edits::new();
        for (name, before) in &found.consumers {
            let after = if by_summary {
                match self.preset {
                    Preset::None => Some(false),
                    Preset::Default | Preset::CompiledOut | Preset::NotStarted | Preset::Synch => None,
                    Preset::Global => Some(!name.contains("_history") && !name.contains("by_thread")),
                    Preset::Tables | Preset::Statements | Preset::Thread => Some(!name.contains("_history")),
                }
            } else {
                let of_server = name == "global_instrumentation";
                let of_thread = name == "thread_instrumentation";
                match self.preset {
                    Preset::None => Some(false),
                    Preset::Default | Preset::CompiledOut | Preset::NotStarted => None,
                    Preset::Synch => of_server.then_some(true),
                    Preset::Global => Some(of_server),
                    Preset::Tables | Preset::Thread => Some(of_server || of_thread),
                    Preset::Statements => Some(of_server || of_thread || name == "statements_digest"),
                }
            };
            if let Some(after) = after {
                edits.add(name, before, yes_or_no(after));
            }
        }
        let all: BTreeSet<&str> = found.consumers.iter().map(|(name, _)| name.as_str()).collect();
        edits.changes("setup_consumers", "NAME", "ENABLED", &all)
    }

    fn timers(&self, found: &SetupTables) -> Result<Vec<SetupChange>> {
        if self.timing != Some(Timing::Cycles) {
            return Ok(Vec::new());
        }
        if found.timers.is_empty() {
            return no(
                "this server has no table setup_timers, so that its timers are fixed: leave out --pfs-timing cycles (waits are \
                 timed by cycles wherever the machine has them)",
            );
        }
        let is_there = |name: &str| {
            found.timers_there.iter().any(|timer| timer.name == name && timer.frequency.is_some())
        };
        if !is_there("CYCLE") {
            return no("the server has no timer CYCLE on this machine: give --pfs-timing yes or no");
        }
        let mut edits = Edits::new();
        for (what, before) in &found.timers {
            edits.add(what, before, "CYCLE");
        }
        let all: BTreeSet<&str> = found.timers.iter().map(|(what, _)| what.as_str()).collect();
        Ok(edits.changes("setup_timers", "NAME", "TIMER_NAME", &all))
    }

    fn actors(&self, found: &SetupTables) -> Result<Vec<SetupChange>> {
        if self.users.is_empty() && self.hosts.is_empty() {
            return Ok(Vec::new());
        }
        if !found.has("setup_actors.USER") {
            return no(
                "this server has no table setup_actors that this user may see, which --pfs-user and --pfs-host need: leave them \
                 out, or GRANT SELECT, INSERT, UPDATE, DELETE ON performance_schema.* TO it",
            );
        }
        let any = ["%".to_string()];
        let users = if self.users.is_empty() { &any[..] } else { &self.users };
        let hosts = if self.hosts.is_empty() { &any[..] } else { &self.hosts };
        let mut added = Vec::new();
        for user in users {
            for host in hosts {
                let values = [
                    ("HOST", host.as_str()),
                    ("USER", user),
                    ("ROLE", "%"),
                    ("ENABLED", YES),
                    ("HISTORY", YES),
                ];
                added.push(new_row(found, "setup_actors", &values));
            }
        }
        let mut changes = rows("setup_actors", &["HOST", "USER", "ROLE"], &found.actors, added);
        // Running threads keep what was decided when they began.
        let mut edits = Edits::new();
        let is_of = |names: &[String], name: &str| names.iter().any(|listed| listed == "%" || listed == name);
        for thread in &found.threads {
            let counts = is_of(users, &thread.user) && is_of(hosts, &thread.host);
            edits.add(&thread.id, &thread.instrumented, yes_or_no(counts));
        }
        changes.extend(edits.listed("threads", "THREAD_ID", "INSTRUMENTED"));
        Ok(changes)
    }

    fn objects(&self, found: &SetupTables) -> Result<Vec<SetupChange>> {
        if self.objects.is_empty() {
            return Ok(Vec::new());
        }
        if !found.has("setup_objects.OBJECT_NAME") {
            return no(
                "this server has no table setup_objects that this user may see, which --pfs-object needs: leave it out, or GRANT \
                 SELECT, INSERT, UPDATE, DELETE ON performance_schema.* TO it",
            );
        }
        let timed = yes_or_no(self.timing != Some(Timing::No));
        let mut added = Vec::new();
        for (schema, table) in &self.objects {
            let values = [
                ("OBJECT_TYPE", "TABLE"),
                ("OBJECT_SCHEMA", schema.as_str()),
                ("OBJECT_NAME", table),
                ("ENABLED", YES),
                ("TIMED", timed),
            ];
            added.push(new_row(found, "setup_objects", &values));
        }
        let is_table = |row: &&Row| {
            row.iter().any(|(column, value)| column == "OBJECT_TYPE" && value.as_deref() == Some("TABLE"))
        };
        let tables: Vec<Row> = found.objects.iter().filter(is_table).cloned().collect();
        Ok(rows("setup_objects", &["OBJECT_TYPE", "OBJECT_SCHEMA", "OBJECT_NAME"], &tables, added))
    }
}

fn no<T>(why: &str) -> Result<T> {
    Err(Error::PerformanceSchema(why.to_string()))
}

fn yes_or_no(is: bool) -> &'static str {
    if is { YES } else { NO }
}

/// A row with those of the columns that there are.
fn new_row(found: &SetupTables, table: &str, values: &[(&str, &str)]) -> Row {
    let there = values.iter().filter(|(column, _)| found.has(&format!("{table}.{column}")));
    there.map(|(column, value)| (column.to_string(), Some(value.to_string()))).collect()
}

/// The rows of a table changed into others; what is in both stays.
fn rows(table: &str, keys: &[&str], before: &[Row], after: Vec<Row>) -> Vec<SetupChange> {
    let removed: Vec<Row> = before.iter().filter(|row| !after.contains(row)).cloned().collect();
    let mut added: Vec<Row> = Vec::new();
    for row in after {
        if !before.contains(&row) && !added.contains(&row) {
            added.push(row);
        }
    }
    if removed.is_empty() && added.is_empty() {
        return Vec::new();
    }
    let keys = keys.iter().map(ToString::to_string).collect();
    vec![SetupChange::Rows { table: table.to_string(), keys, removed, added }]
}

/// Rows of a table by what a column is to become.
struct Edits<'n>(BTreeMap<(&'n str, &'static str), BTreeSet<&'n str>>);

impl<'n> Edits<'n> {
    fn new() -> Edits<'n> {
        Edits(BTreeMap::new())
    }

    fn add(&mut self, name: &'n str, before: &'n str, after: &'static str) {
        if before != after {
            self.0.entry((before, after)).or_default().insert(name);
        }
    }

    fn changes(self, table: &str, key: &str, column: &str, all: &BTreeSet<&str>) -> Vec<SetupChange> {
        self.each(table, key, column, |names| Names::cover(names, all))
    }

    fn listed(self, table: &str, key: &str, column: &str) -> Vec<SetupChange> {
        self.each(table, key, column, |names| Names::list(names.iter().map(ToString::to_string).collect()))
    }

    fn each(
        self,
        table: &str,
        key: &str,
        column: &str,
        named: impl Fn(&BTreeSet<&str>) -> Names,
    ) -> Vec<SetupChange> {
        let change = |((before, after), names): ((&str, &str), BTreeSet<&str>)| SetupChange::Column {
            table: table.to_string(),
            key: key.to_string(),
            names: named(&names),
            column: column.to_string(),
            before: before.to_string(),
            after: after.to_string(),
        };
        self.0.into_iter().map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(preset: Preset, found: &SetupTables) -> String {
        PfsRequest::new(preset)
            .changes(found)
            .map_or_else(|error| error.to_string(), |changes| format!("{changes:?}"))
    }

    #[test]
    fn a_server_without_it_is_verified_to_be_one() {
        let without = SetupTables { state: State::CompiledOut, ..SetupTables::default() };
        assert_eq!(refusal(Preset::CompiledOut, &without), "[]");
        assert!(refusal(Preset::Synch, &without).contains("built without the Performance Schema"));
        assert!(refusal(Preset::NotStarted, &without).contains("built without the Performance Schema"));

        let columns = BTreeSet::from(["setup_instruments.NAME".to_string()]);
        let half = SetupTables { columns, ..without };
        assert!(refusal(Preset::CompiledOut, &half).contains("a build that has neither"));
        for state in [State::On, State::Off] {
            let message = refusal(Preset::CompiledOut, &SetupTables { state, ..SetupTables::default() });
            assert!(message.contains("-DPLUGIN_PERFSCHEMA=NO") && message.contains("--server"), "{message}");
        }
    }
}

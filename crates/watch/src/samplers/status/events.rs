//! Events of a server, from its status: it was started again, definitions changed, it ran into its own limits.

use std::collections::BTreeMap;

use whyso_record::data::Value;

/// Statements that change definitions, by how the names of their counters begin; CREATE and DROP of temporary tables are none.
const DDL: [&str; 5] = ["Com_create_", "Com_alter_", "Com_drop_", "Com_rename_", "Com_truncate"];
const NO_DDL: [&str; 2] = ["Com_create_temporary_table", "Com_drop_temporary_table"];
/// Counters of which any growth is worth a line, and the text of that line. Deadlocks and the like are no such: under a load they happen
/// every second.
const ERRORS: [(&str, &str); 2] = [
    ("Connection_errors_max_connections", "connections refused: max_connections was reached"),
    ("Connection_errors_internal", "connections refused by an error within the server"),
];

/// Counters that events are made of, from one reading to the next.
#[derive(Default)]
pub(super) struct EventDetector {
    before: BTreeMap<String, i64>,
    now: BTreeMap<String, i64>,
}

impl EventDetector {
    /// A variable of the reading that is under way.
    pub(super) fn note(&mut self, name: &str, value: Value) {
        let Value::Int(value) = value else { return };
        if name == "Uptime" || is_ddl(name) || ERRORS.iter().any(|(error, _)| *error == name) {
            self.now.insert(name.to_string(), value);
        }
    }

    /// Ends a reading. Returns kind and text of each event since the previous reading.
    pub(super) fn take_events(&mut self) -> Vec<(&'static str, String)> {
        let now = std::mem::take(&mut self.now);
        let before = std::mem::replace(&mut self.before, now);
        if before.is_empty() || self.before.is_empty() {
            return Vec::new();
        }
        let uptime = |of: &BTreeMap<String, i64>| of.get("Uptime").copied().unwrap_or(0);
        if uptime(&self.before) < uptime(&before) {
            let seconds = uptime(&self.before);
            return vec![("restart", format!("the server was restarted, {seconds} s ago"))];
        }
        let grown = |name: &str| {
            let (then, now) = (before.get(name)?, self.before.get(name)?);
            (now > then).then(|| now - then)
        };
        let mut events = Vec::new();
        let ddl: Vec<String> = self
            .before
            .keys()
            .filter(|name| is_ddl(name))
            .filter_map(|name| Some((name, grown(name)?)))
            .map(|(name, count)| {
                let words = name.trim_start_matches("Com_").replace('_', " ").to_uppercase();
                if count > 1 { format!("{count} × {words}") } else { words }
            })
            .collect();
        if !ddl.is_empty() {
            events.push(("ddl", ddl.join(", ")));
        }
        for (name, words) in ERRORS {
            if let Some(count) = grown(name) {
                events.push(("server_error", format!("{count} {words}")));
            }
        }
        events
    }

    /// Drops the values of a reading that broke off: the next whole reading covers its time, too.
    pub(super) fn forget_half(&mut self) {
        self.now.clear();
    }
}

fn is_ddl(name: &str) -> bool {
    DDL.iter().any(|begin| name.starts_with(begin)) && !NO_DDL.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &mut EventDetector, values: &[(&str, i64)]) -> Vec<(&'static str, String)> {
        values.iter().for_each(|(name, value)| events.note(name, Value::Int(*value)));
        events.take_events()
    }

    #[test]
    fn what_happened_between_two_readings_is_reported_once() {
        let mut events = EventDetector::default();
        let first = [("Uptime", 100), ("Com_alter_table", 4), ("Com_create_index", 0), ("Com_select", 9)];
        assert_eq!(read(&mut events, &first), []);
        assert_eq!(read(&mut events, &first), []);
        let second = [
            ("Uptime", 101),
            ("Com_alter_table", 6),
            ("Com_create_index", 1),
            ("Com_create_temporary_table", 5),
        ];
        assert_eq!(read(&mut events, &second), [("ddl", "2 × ALTER TABLE, CREATE INDEX".to_string())]);
        // A reading that broke off reports nothing, and loses nothing.
        events.note("Com_alter_table", Value::Int(7));
        events.forget_half();
        let third = [("Uptime", 102), ("Com_alter_table", 7), ("Connection_errors_max_connections", 0)];
        assert_eq!(read(&mut events, &third), [("ddl", "ALTER TABLE".to_string())]);
        let fourth = [("Uptime", 103), ("Com_alter_table", 7), ("Connection_errors_max_connections", 3)];
        assert_eq!(
            read(&mut events, &fourth),
            [("server_error", "3 connections refused: max_connections was reached".to_string())]
        );
    }

    #[test]
    fn a_restart_makes_no_events_of_counters() {
        let mut events = EventDetector::default();
        read(&mut events, &[("Uptime", 1000), ("Com_drop_table", 1), ("Connection_errors_internal", 3)]);
        let events =
            read(&mut events, &[("Uptime", 2), ("Com_drop_table", 5), ("Connection_errors_internal", 4)]);
        assert_eq!(events, [("restart", "the server was restarted, 2 s ago".to_string())]);
    }
}

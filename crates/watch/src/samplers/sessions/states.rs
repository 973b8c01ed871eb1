//! The lines of a process list, added up by state.

use std::collections::BTreeMap;

use crate::samplers::lock_waits::RowWaiters;

/// Sessions that wait for a row, which no server names in its process list.
pub(crate) const ROW_LOCK: &str = "Waiting for row lock";
/// Sessions that have a statement, and of which the server shows nothing more.
pub(crate) const EXECUTING: &str = "executing";
/// Sessions that are about to log in.
pub(crate) const LOGIN: &str = "login";
/// States beyond the first [`STATES_MAX`].
pub(crate) const OTHER: &str = "other";

/// Bytes of a state's name that are kept.
const NAME_BYTES_MAX: usize = 64;
/// States that have a series of their own.
const STATES_MAX: usize = 64;

/// One session of the process list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) id: u64,
    pub(crate) user: String,
    pub(crate) command: String,
    pub(crate) state: String,
}

impl Line {
    /// A thread of the server's own, or of a replica that reads its binary log.
    pub(crate) fn is_of_server(&self) -> bool {
        let is_named_so = ["system user", "event_scheduler"].contains(&self.user.as_str());
        let command = self.command.as_str();
        let is_background = command == "Daemon" || command.starts_with("Binlog Dump");
        is_named_so || is_background || command.starts_with("Slave_") || command == "Delayed insert"
    }

    /// `None` where it is between statements.
    fn in_statement(&self) -> Option<String> {
        match self.command.as_str() {
            "Sleep" => None,
            "Connect" => Some(LOGIN.to_string()),
            _ => Some(name(&self.state)),
        }
    }
}

fn name(state: &str) -> String {
    let state = state.trim();
    let cut = (0..=NAME_BYTES_MAX.min(state.len())).rev().find(|at| state.is_char_boundary(*at)).unwrap_or(0);
    match &state[..cut] {
        "" => EXECUTING.to_string(),
        name => name.to_string(),
    }
}

/// A state in which a session may wait for a row: none that names what it waits for.
fn may_wait_for_rows(state: &str) -> bool {
    !state.starts_with("Waiting") && !["User lock", "User sleep", LOGIN].contains(&state)
}

/// Sessions in a statement, by state. `own` returns whether a connection is whyso's.
pub(crate) fn by_state(
    lines: &[Line],
    own: impl Fn(u64) -> bool,
    waiters: &RowWaiters,
) -> BTreeMap<String, u64> {
    let clients = lines.iter().filter(|line| !line.is_of_server() && !own(line.id));
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    let mut of_rows = 0;
    for line in clients {
        let Some(state) = line.in_statement() else { continue };
        let waits_for_row = may_wait_for_rows(&state)
            && match waiters {
                RowWaiters::These(ids) => ids.contains(&line.id),
                RowWaiters::Count(count) => of_rows < *count,
                RowWaiters::Unknown => false,
            };
        of_rows += u64::from(waits_for_row);
        *states.entry(if waits_for_row { ROW_LOCK.to_string() } else { state }).or_default() += 1;
    }
    states
}

/// Adds a snapshot's states to the sums; states beyond a bound share one.
pub(crate) fn add(sums: &mut BTreeMap<String, u64>, states: BTreeMap<String, u64>) {
    for (state, count) in states {
        let has_place = sums.contains_key(&state) || sums.len() < STATES_MAX;
        *sums.entry(if has_place { state } else { OTHER.to_string() }).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: u64, user: &str, command: &str, state: &str) -> Line {
        let text = str::to_string;
        Line { id, user: text(user), command: text(command), state: text(state) }
    }

    fn lines() -> Vec<Line> {
        vec![
            line(1, "app", "Sleep", ""),
            line(2, "app", "Query", "Updating"),
            line(3, "app", "Execute", "updating"),
            line(4, "app", "Query", "Waiting for table metadata lock"),
            line(5, "app", "Query", ""),
            line(6, "unauthenticated user", "Connect", "login"),
            line(7, "system user", "Slave_SQL", "Waiting for master"),
            line(8, "repl", "Binlog Dump", "Master has sent all"),
            line(9, "event_scheduler", "Daemon", "Waiting on empty queue"),
            line(10, "whyso", "Query", "Filling schema table"),
        ]
    }

    #[test]
    fn clients_in_a_statement_are_counted_by_state_and_nobody_else() {
        let states = by_state(&lines(), |id| id == 10, &RowWaiters::Unknown);
        let expected = [
            ("Updating", 1),
            ("Waiting for table metadata lock", 1),
            ("executing", 1),
            ("login", 1),
            ("updating", 1),
        ];
        let expected: BTreeMap<String, u64> =
            expected.into_iter().map(|(state, count)| (state.to_string(), count)).collect();
        assert_eq!(states, expected);
    }

    #[test]
    fn those_that_wait_for_rows_are_known_by_number_or_by_count() {
        let of = |waiters: RowWaiters| by_state(&lines(), |id| id == 10, &waiters);
        // 1 is between statements, and 4 waits for something else.
        let these = of(RowWaiters::These([1, 2, 4].into()));
        assert_eq!((these[ROW_LOCK], these["updating"]), (1, 1));
        assert_eq!(these["Waiting for table metadata lock"], 1);
        let counted = of(RowWaiters::Count(9));
        assert_eq!((counted[ROW_LOCK], counted[LOGIN]), (3, 1), "{counted:?}");
        assert!(!of(RowWaiters::Count(0)).contains_key(ROW_LOCK));
    }

    #[test]
    fn any_number_of_states_has_a_bound() {
        let mut sums = BTreeMap::new();
        for at in 0..200 {
            add(&mut sums, BTreeMap::from([(format!("state {at}"), 1)]));
        }
        add(&mut sums, BTreeMap::from([("state 0".to_string(), 1)]));
        assert_eq!(sums.len(), STATES_MAX + 1);
        assert_eq!((sums["state 0"], sums[OTHER]), (2, 200 - STATES_MAX as u64));
        assert_eq!(name(&"é".repeat(60)).len(), NAME_BYTES_MAX);
    }
}

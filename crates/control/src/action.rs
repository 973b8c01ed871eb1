//! What `--at` asks for during a run.

use std::time::Duration;

use crate::Error;
use crate::duration::parse_duration;

/// An action during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Since the first measured window began, counting only measured time.
    pub after: Duration,
    pub what: ActionKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ActionKind {
    /// SET GLOBAL of one variable, put back at the end of the run.
    Set { name: String, value: String },
    /// Any other statement, sent as it is.
    Sql(String),
    /// Restart the throw-away server under the load, or the nodes of the cluster. `data_set`: parameters of NDB's data nodes from then on.
    Restart { data_set: Vec<(String, String)> },
    /// A command for `/bin/sh -c`.
    Shell(String),
}

impl Action {
    /// Reads the two words of `--at TIME ACTION`.
    ///
    /// # Errors
    /// One sentence that says which word can't be read.
    pub fn parse(time: &str, action: &str) -> Result<Action, Error> {
        let after = parse_duration(time).ok_or_else(|| {
            Error::Plan(format!("--at {time}: can't read the time: give seconds such as 60 or 60s, or 2m"))
        })?;
        let action = action.trim().trim_end_matches(';').trim();
        if action.is_empty() {
            return Err(Error::Plan(format!(
                "--at {time}: the action is empty: give SQL, restart, or a command after a !"
            )));
        }
        let what = if action.eq_ignore_ascii_case("restart") {
            ActionKind::Restart { data_set: Vec::new() }
        } else if let Some(command) = action.strip_prefix('!') {
            ActionKind::Shell(command.trim().to_string())
        } else if let Some((name, value)) = parse_set_global(action) {
            ActionKind::Set { name, value }
        } else {
            ActionKind::Sql(action.to_string())
        };
        Ok(Action { after, what })
    }
}

impl std::fmt::Display for ActionKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ActionKind::Set { name, value } => write!(out, "SET GLOBAL {name} = {value}"),
            ActionKind::Sql(sql) => out.write_str(sql),
            ActionKind::Restart { data_set } if data_set.is_empty() => out.write_str("restart of the server"),
            ActionKind::Restart { data_set } => {
                let pairs: Vec<String> =
                    data_set.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(out, "restart of the manager and the data nodes with {}", pairs.join(", "))
            }
            ActionKind::Shell(command) => write!(out, "! {command}"),
        }
    }
}

/// The one assignment of a `SET GLOBAL name = value`; `None` for everything else, several at once included.
fn parse_set_global(sql: &str) -> Option<(String, String)> {
    let mut words = sql.splitn(3, char::is_whitespace);
    if !words.next()?.eq_ignore_ascii_case("set") {
        return None;
    }
    let scope = words.next()?;
    let rest = words.next().map(str::trim);
    let assignment = if scope.eq_ignore_ascii_case("global") {
        rest?.to_string()
    } else if scope.len() > 9 && scope[..9].eq_ignore_ascii_case("@@global.") {
        format!("{} {}", &scope[9..], rest.unwrap_or(""))
    } else {
        return None;
    };
    let (name, value) = assignment.split_once('=')?;
    let name = name.trim().trim_end_matches(':').trim();
    let value = value.trim().trim_matches(|c| c == '\'' || c == '"');
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    let is_one_value = !value.is_empty() && !value.contains([',', '(', '@', ';', '\'', '"', '\\']);
    (is_name && is_one_value).then(|| (name.to_string(), value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(action: &str) -> ActionKind {
        Action::parse("60s", action).unwrap().what
    }

    #[test]
    fn an_action_is_a_setting_sql_a_restart_or_a_command() {
        let set = |name: &str, value: &str| ActionKind::Set { name: name.into(), value: value.into() };
        assert_eq!(what("SET GLOBAL innodb_io_capacity = 2000;"), set("innodb_io_capacity", "2000"));
        assert_eq!(what("set @@global.sync_binlog=1"), set("sync_binlog", "1"));
        assert_eq!(what("SET GLOBAL a='ON'"), set("a", "ON"));
        assert_eq!(what("restart"), ActionKind::Restart { data_set: Vec::new() });
        assert_eq!(what("!sync"), ActionKind::Shell("sync".into()));
        assert_eq!(what("FLUSH TABLES"), ActionKind::Sql("FLUSH TABLES".into()));
        assert_eq!(what("SET GLOBAL a=1, GLOBAL b=2"), ActionKind::Sql("SET GLOBAL a=1, GLOBAL b=2".into()));
        assert_eq!(what("SET GLOBAL a=@@b"), ActionKind::Sql("SET GLOBAL a=@@b".into()));
        assert_eq!(what("SET SESSION a=1"), ActionKind::Sql("SET SESSION a=1".into()));
    }
}

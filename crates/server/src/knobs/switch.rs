//! Settings that an experiment switches between several values, and that are put back like any other.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::journal::Journal;
use super::{Undo, number_of, read_global, write_global};
use crate::error::{Result, server_code};
use crate::throwaway::normal_name;

/// It is a GLOBAL variable, or one that this session may only read.
const GLOBAL_ONLY: [u16; 4] = [1227, 1229, 1238, 1621];

/// Where a value of a setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In each session by itself: sessions take the global value when they begin.
    Session,
    Global,
}

/// The statement that gives a setting this value in one session.
///
/// # Errors
/// [`crate::Error::KnobValue`] where the name is none.
pub fn session_statement(name: &str, value: &str) -> Result<String> {
    let name = normal_name(name)?;
    let value = number_of(value).unwrap_or_else(|| mysql_async::Value::from(value).as_sql(false));
    Ok(format!("SET SESSION {name} = {value}"))
}

impl Undo {
    /// Where a setting takes effect.
    ///
    /// # Errors
    /// [`Error::UnknownKnob`], or what keeps the server from answering.
    pub async fn scope(connection: &mut Conn, name: &str) -> Result<Scope> {
        let name = normal_name(name)?;
        read_global(connection, &name).await?;
        match connection.query_drop(format!("SET SESSION {name} = @@SESSION.{name}")).await {
            Ok(()) => Ok(Scope::Session),
            Err(error) if server_code(&error).is_some_and(|code| GLOBAL_ONLY.contains(&code)) => {
                Ok(Scope::Global)
            }
            Err(error) => Err(super::explain(error, connection, &name, "").await),
        }
    }

    /// Sets a global variable to each of these values, and keeps the last one. The journal has all of them before [`Undo::switch`]
    /// may set them again. Returns what the setting was before, and each value as the server shows it.
    ///
    /// # Errors
    /// Those of [`Undo::set_global`].
    pub async fn try_values(
        &mut self,
        connection: &mut Conn,
        name: &str,
        values: &[&str],
    ) -> Result<(String, Vec<String>)> {
        let name = normal_name(name)?;
        let Some((first, rest)) = values.split_first() else {
            return Ok((read_global(connection, &name).await?, Vec::new()));
        };
        let change = self.set_global(connection, &name, first).await?;
        let mut all: Vec<String> = change.after.into_iter().collect();
        for value in rest {
            all.push(self.try_value(connection, &name, value).await?);
        }
        Ok((change.before, all))
    }

    /// One value more, of a setting that this run has changed.
    async fn try_value(&mut self, connection: &mut Conn, name: &str, value: &str) -> Result<String> {
        let _alone = Journal::alone(self.folder())?;
        self.read_again();
        let after = self.newest(name).and_then(|change| change.after.take());
        self.journal.write(&self.path)?;
        let done = write_global(connection, name, value).await;
        // Where the server did not answer, nobody knows which value it has: the journal says so.
        if done.as_ref().err().is_some_and(|error| !error.is_servers_answer()) {
            return done.map(|()| String::new());
        }
        let now = read_global(connection, name).await?;
        if let Some(change) = self.newest(name) {
            change.after = after;
            change.in_turn.push(now.clone());
        }
        self.journal.write(&self.path)?;
        done.map(|()| now)
    }

    /// Sets a global variable to a value that [`Undo::try_values`] has noted. Writes no journal: an experiment may do this many times.
    ///
    /// # Errors
    /// [`Error::Refused`], where the server does not take the value any more.
    pub async fn switch(&self, connection: &mut Conn, name: &str, value: &str) -> Result<()> {
        write_global(connection, &normal_name(name)?, value).await
    }

    fn newest(&mut self, name: &str) -> Option<&mut super::Change> {
        self.journal.changes.iter_mut().rev().find(|change| change.name == name)
    }
}

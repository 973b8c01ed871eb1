//! Settings of a running server, changed on request and put back.
//!
//! Each change is written to a journal on our own disk before it is made. What someone else changed
//! since is left alone. What a crashed run left is found by [`pending_undo`].

mod journal;
mod nearest;
pub mod pfs;
mod switch;

pub(crate) use nearest::nearest;
use std::fs::File;
use std::path::{Path, PathBuf};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::error::{Error, Result, refused, server_code};
use crate::paths::state_dir;
use crate::throwaway::normal_name;
use journal::{Journal, ServerId};

pub use journal::Change;
use pfs::SetupChange;
pub use switch::{Scope, session_statement};

/// The changes of one run to one server.
#[derive(Debug)]
pub struct Undo {
    path: PathBuf,
    journal: Journal,
    /// The journal is ours as long as this is open.
    _lock: File,
}

impl Drop for Undo {
    fn drop(&mut self) {
        // Of a journal that is left, the next run asks for the lock.
        if !self.path.exists() {
            let _ = std::fs::remove_file(Journal::lock_path(&self.path));
        }
    }
}

/// The run that set a setting next after the one that ends.
enum Next {
    /// There is none.
    Nobody,
    /// It has what the setting was, and puts that back.
    Took,
    /// It found another value, which someone else had set, and puts that back.
    FoundAnother,
}

/// What became of one change when it was to be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    PutBack(Change),
    /// Another run of whyso has set it since, and puts back what it was before this one.
    HandedOver(Change),
    /// Someone else changed it since, to `now`.
    LeftAlone {
        change: Change,
        now: String,
    },
    /// The server was restarted since, and has forgotten it.
    Forgotten(Change),
    /// A setup table of the Performance Schema is as it was, except for this many rows that someone else changed since.
    SetupPutBack {
        table: String,
        left_alone: u64,
    },
    /// The server was restarted since, and has forgotten what this setup table was.
    SetupForgotten {
        table: String,
    },
}

impl Undo {
    /// Begins a journal for the server of this connection, in `~/.local/state/whyso/undo`.
    pub async fn open(connection: &mut Conn) -> Result<Undo> {
        Undo::open_in(&undo_dir()?, connection).await
    }

    /// As [`Undo::open`], in another folder.
    pub async fn open_in(folder: &Path, connection: &mut Conn) -> Result<Undo> {
        let server = server_id(connection).await?;
        let path = Journal::new_path(folder);
        let _alone = Journal::alone(folder)?;
        let Some(lock) = Journal::own(&path)? else {
            return Err(Error::Build(format!("{} belongs to another run: try again", path.display())));
        };
        Ok(Undo { path, journal: Journal { server, changes: Vec::new(), setup: Vec::new() }, _lock: lock })
    }

    /// The changed knobs so far, oldest first.
    pub fn changes(&self) -> &[Change] {
        &self.journal.changes
    }

    /// Whether there is nothing to put back.
    pub fn is_empty(&self) -> bool {
        self.journal.is_empty()
    }

    /// Changes the Performance Schema's setup tables, as [`pfs::PfsRequest::changes`] has worked out.
    ///
    /// # Errors
    ///
    /// [`Error::PerformanceSchema`] where the user may not, or another running run has changed them;
    /// [`Error::Refused`]. What was changed until then is undone by [`Undo::undo_all`].
    pub async fn change_setup(&mut self, connection: &mut Conn, changes: Vec<SetupChange>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        for (path, journal) in Journal::all(folder)? {
            let is_of_server = journal.server.is_same_life(&self.journal.server);
            if path != self.path
                && is_of_server
                && !journal.setup.is_empty()
                && Journal::own(&path)?.is_none()
            {
                return Err(Error::PerformanceSchema(
                    "another run of whyso has changed the Performance Schema's setup of this server and is still running: wait for its \
                     end, or leave out --pfs"
                        .to_string(),
                ));
            }
        }
        self.journal.setup.extend(changes.iter().cloned());
        self.journal.write(&self.path)?;
        for change in &changes {
            change.make(connection).await?;
        }
        Ok(())
    }

    /// Sets a global variable. Numbers may end in K, M, G or T, as on the server's command line.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownKnob`], [`Error::ReadOnlyKnob`], [`Error::KnobValue`], [`Error::KnobPrivilege`], or
    /// [`Error::Refused`].
    pub async fn set_global(&mut self, connection: &mut Conn, name: &str, value: &str) -> Result<Change> {
        let name = normal_name(name)?;
        let _alone = Journal::alone(self.folder())?;
        self.read_again();
        let before = match read_global(connection, &name).await {
            Err(error @ Error::UnknownKnob { .. }) => return Err(add_nearest(error, connection).await),
            read => read?,
        };
        let order = self.next_order()?;
        self.journal.changes.push(Change {
            name: name.clone(),
            before,
            after: None,
            in_turn: Vec::new(),
            order,
        });
        self.journal.write(&self.path)?;
        if let Err(error) = write_global(connection, &name, value).await {
            // Where the server did not answer, it may have made the change: the journal keeps it.
            if error.is_servers_answer() {
                self.journal.changes.pop();
                self.write_or_remove()?;
            }
            return Err(error);
        }
        let after = read_global(connection, &name).await?;
        let Some(change) = self.journal.changes.last_mut() else {
            return Err(Error::KnobValue {
                name,
                value: value.to_string(),
                why: "its change was not noted".to_string(),
            });
        };
        change.after = Some(after);
        let change = change.clone();
        self.journal.write(&self.path)?;
        Ok(change)
    }

    /// Puts back what was changed, newest first, and ends the journal.
    ///
    /// # Errors
    ///
    /// Those of the first change that can't be put back; it and the older ones stay in the journal.
    pub async fn undo_all(&mut self, connection: &mut Conn) -> Result<Vec<Undone>> {
        let same_life = self.journal.server.is_same_life(&server_id(connection).await?);
        let _alone = Journal::alone(self.folder())?;
        self.read_again();
        let mut undone = Vec::new();
        while let Some(change) = self.journal.setup.last() {
            let table = change.table().to_string();
            undone.push(if same_life {
                let left_alone = change.unmake(connection).await?;
                Undone::SetupPutBack { table, left_alone }
            } else {
                Undone::SetupForgotten { table }
            });
            self.journal.setup.pop();
            self.write_or_remove()?;
        }
        while let Some(change) = self.journal.changes.last().cloned() {
            undone.push(match same_life {
                true => self.undo_newest(connection, change).await?,
                false => Undone::Forgotten(change),
            });
            self.journal.changes.pop();
            // A disk that is full keeps no older setting from being put back: what the journal says too much is found to be put back.
            let _ = self.write_or_remove();
        }
        self.write_or_remove()?;
        Ok(undone)
    }

    async fn undo_newest(&mut self, connection: &mut Conn, change: Change) -> Result<Undone> {
        let now = read_global(connection, &change.name).await?;
        match self.hand_over(&change)? {
            Next::Took => return Ok(Undone::HandedOver(change)),
            Next::FoundAnother => return Ok(Undone::LeftAlone { change, now }),
            Next::Nobody => {}
        }
        if now == change.before {
            return Ok(Undone::PutBack(change));
        }
        if !change.may_have_set(&now) {
            return Ok(Undone::LeftAlone { change, now });
        }
        // Where the server did not answer with the new value, nobody knows whose value it is; ours, most likely. The same where this process ends
        // before it can note that the value is back: an earlier run may hand over what it was meanwhile.
        if let Some(newest) = self.journal.changes.last_mut().filter(|newest| newest.after.is_some()) {
            newest.after = None;
            let _ = self.journal.write(&self.path);
        }
        write_global(connection, &change.name, &change.before).await?;
        Ok(Undone::PutBack(change))
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn read_again(&mut self) {
        if let Some(journal) = Journal::read(&self.path) {
            self.journal = journal;
        }
    }

    /// Passes the first value of a setting to the run that set it next after this one. The last run to end puts it back.
    fn hand_over(&self, change: &Change) -> Result<Next> {
        let mut next: Option<(PathBuf, Journal, usize)> = None;
        for (path, journal) in Journal::all(self.folder())? {
            if path == self.path || !journal.server.is_same_life(&self.journal.server) {
                continue;
            }
            let order_of = |(_, journal, at): &(PathBuf, Journal, usize)| journal.changes[*at].order;
            let later =
                journal.changes.iter().enumerate().filter(|(_, candidate)| candidate.is_later_than(change));
            let Some((at, first)) = later.min_by_key(|(_, candidate)| candidate.order) else { continue };
            if next.as_ref().is_none_or(|next| first.order < order_of(next)) {
                next = Some((path, journal, at));
            }
        }
        let Some((path, mut journal, at)) = next else { return Ok(Next::Nobody) };
        let next = &mut journal.changes[at];
        match &change.after {
            Some(_) if !change.may_have_set(&next.before) => return Ok(Next::FoundAnother),
            None if change.before == next.before => return Ok(Next::Took),
            _ => {}
        }
        next.before.clone_from(&change.before);
        journal.write(&path)?;
        Ok(Next::Took)
    }

    fn next_order(&self) -> Result<u64> {
        let others = Journal::all(self.folder())?;
        let journals = others.iter().map(|(_, journal)| journal).chain([&self.journal]);
        Ok(1 + journals.flat_map(|journal| &journal.changes).map(|change| change.order).max().unwrap_or(0))
    }

    fn write_or_remove(&self) -> Result<()> {
        if !self.journal.is_empty() {
            return self.journal.write(&self.path);
        }
        Journal::remove(&self.path)
    }
}

/// Journals of runs that are over and left changes on the server of this connection.
pub async fn pending_undo(connection: &mut Conn) -> Result<Vec<Undo>> {
    pending_undo_in(&undo_dir()?, connection).await
}

/// As [`pending_undo`], in another folder.
pub async fn pending_undo_in(folder: &Path, connection: &mut Conn) -> Result<Vec<Undo>> {
    let server = server_id(connection).await?;
    Journal::sweep(folder)?;
    let mut pending = Vec::new();
    // the newest run's changes are undone first
    for (path, journal) in Journal::all(folder)?.into_iter().rev() {
        if journal.server.is_same_server(&server)
            && let Some(lock) = Journal::own(&path)?
        {
            let mut undo = Undo { path, journal, _lock: lock };
            // Its owner, or another run that put its changes back, may have ended meanwhile.
            if undo.path.exists() {
                undo.read_again();
                pending.push(undo);
            }
        }
    }
    Ok(pending)
}

/// The changes that each journal in a folder still holds, whichever server they are of.
///
/// # Errors
///
/// [`Error::Io`] where the folder can't be listed.
pub fn changes_in(folder: &Path) -> Result<Vec<(PathBuf, Vec<Change>)>> {
    Ok(Journal::all(folder)?.into_iter().map(|(path, journal)| (path, journal.changes)).collect())
}

fn undo_dir() -> Result<PathBuf> {
    Ok(state_dir()?.join("undo"))
}

const UNKNOWN_VARIABLE: u16 = 1193;
const WRONG_TYPE: u16 = 1232;

/// The value as text; NULL is empty.
async fn read_global(connection: &mut Conn, name: &str) -> Result<String> {
    // a name has passed `normal_name`
    let value: std::result::Result<Option<Option<mysql_async::Value>>, _> =
        connection.query_first(format!("SELECT @@GLOBAL.{name}")).await;
    match value {
        Ok(value) => Ok(value.flatten().map(text_of).unwrap_or_default()),
        Err(error) => Err(explain(error, connection, name, "").await),
    }
}

fn text_of(value: mysql_async::Value) -> String {
    match value {
        mysql_async::Value::NULL => String::new(),
        mysql_async::Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        mysql_async::Value::Int(number) => number.to_string(),
        mysql_async::Value::UInt(number) => number.to_string(),
        mysql_async::Value::Float(number) => number.to_string(),
        mysql_async::Value::Double(number) => number.to_string(),
        other => other.as_sql(true),
    }
}

/// Sets it as a number where the text is one, and as a text where the server wants that.
async fn write_global(connection: &mut Conn, name: &str, value: &str) -> Result<()> {
    if let Some(number) = number_of(value) {
        match connection.query_drop(format!("SET GLOBAL {name} = {number}")).await {
            Ok(()) => return Ok(()),
            Err(error) if server_code(&error) == Some(WRONG_TYPE) => {}
            Err(error) => return Err(explain(error, connection, name, value).await),
        }
    }
    let literal = mysql_async::Value::from(value).as_sql(false);
    match connection.query_drop(format!("SET GLOBAL {name} = {literal}")).await {
        Ok(()) => Ok(()),
        Err(error) => Err(explain(error, connection, name, value).await),
    }
}

/// A number as SQL: "-1", "0.5", "1G" as 1073741824; `None` for anything else.
fn number_of(value: &str) -> Option<String> {
    let value = value.trim();
    let last = value.chars().last()?;
    let shift = match last.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => {
            let is_plain = value
                .chars()
                .all(|character| character.is_ascii_digit() || character == '.' || character == '-');
            return (is_plain && value.parse::<f64>().is_ok()).then(|| value.to_string());
        }
    };
    let number: u64 = value[..value.len() - 1].parse().ok()?;
    number.checked_mul(1 << shift).map(|bytes| bytes.to_string())
}

/// Adds the variable that may have been meant. Where the server does not list them, the error stays as it is.
async fn add_nearest(error: Error, connection: &mut Conn) -> Error {
    let listed: std::result::Result<Vec<(String, String)>, _> =
        connection.query("SHOW GLOBAL VARIABLES").await;
    let names = listed.unwrap_or_default();
    error.with_nearest(names.iter().map(|(name, _)| name.as_str()))
}

async fn explain(error: mysql_async::Error, connection: &Conn, name: &str, value: &str) -> Error {
    let message = match &error {
        mysql_async::Error::Server(server) => server.message.clone(),
        other => other.to_string(),
    };
    match server_code(&error) {
        Some(UNKNOWN_VARIABLE) => {
            let (major, minor, patch) = connection.server_version();
            Error::UnknownKnob {
                name: name.to_string(),
                server: format!("the server (version {major}.{minor}.{patch})"),
                nearest: None,
            }
        }
        Some(1238) => Error::ReadOnlyKnob { name: name.to_string() },
        // no global variable, no such value, wrong type, out of range
        Some(1228 | 1229 | 1231 | WRONG_TYPE | 1292) => {
            Error::KnobValue { name: name.to_string(), value: value.to_string(), why: message }
        }
        // 1227: a privilege is missing; 1142 and 1044 where a schema's are.
        Some(1227 | 1142 | 1044) => Error::KnobPrivilege { name: name.to_string(), server_says: message },
        _ => refused(format!("read or set the knob '{name}'"))(error),
    }
}

async fn server_id(connection: &mut Conn) -> Result<ServerId> {
    let asking = || refused("tell who it is");
    let variables: Vec<(String, String)> = connection
        .query(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid', 'hostname', 'port', 'socket', 'datadir')",
        )
        .await
        .map_err(asking())?;
    let value =
        |name: &str| variables.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.as_str());
    let own_name = value("server_uuid").or_else(|| value("server_uid")).filter(|name| !name.is_empty());
    let place = ["hostname", "port", "socket", "datadir"].into_iter().filter_map(value);
    let identity = own_name.into_iter().chain(place).collect::<Vec<&str>>().join(" ");
    let now_s: Option<i64> = connection.query_first("SELECT UNIX_TIMESTAMP()").await.map_err(asking())?;
    let uptime: Option<(String, i64)> =
        connection.query_first("SHOW GLOBAL STATUS LIKE 'Uptime'").await.map_err(asking())?;
    let started_s = now_s.unwrap_or(0) - uptime.map_or(0, |(_, seconds)| seconds);
    Ok(ServerId { identity, started_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinguished_from_words() {
        let number = |value: &str| number_of(value).unwrap_or("no".to_string());
        assert_eq!(number("1G"), "1073741824");
        assert_eq!(number("16k"), "16384");
        assert_eq!(number("-1"), "-1");
        assert_eq!(number("0.5"), "0.5");
        for word in ["", "ON", "M", "1.2.3", "O_DIRECT", "99999999999T", "1; DROP", "nan", "é"] {
            assert_eq!(number(word), "no", "{word}");
        }
    }
}

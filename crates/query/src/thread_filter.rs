//! Which threads are asked for, in every view alike.

use std::collections::BTreeSet;

use whyso_series::ThreadTime;

use crate::Error;

/// The role that stands for all of them.
pub(crate) const EVERY_ROLE: &str = "all";

/// Which threads are asked for: all that meet every condition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadFilter {
    /// Only this role; `None`, or "all": any.
    pub role: Option<String>,
    /// Names that contain this text, in any case.
    pub name: Option<String>,
    /// Only these numbers, as the kernel gives them; empty: any.
    pub tids: Vec<u32>,
    /// At work for one of these connections, by the server's numbers; empty: for any, or for none.
    pub connections: Vec<u64>,
    /// Executing a statement that contains this text, in any case, without its literals.
    pub statement: Option<String>,
    /// Stacks of the tracer's own probes and programs, and of what the server did for whyso's own connections, too.
    pub observer: bool,
}

impl ThreadFilter {
    /// Whether it asks for nothing of single threads: neither names, numbers, connections nor a statement.
    pub(crate) fn is_of_role_only(&self) -> bool {
        self.name.is_none() && self.tids.is_empty() && self.connections.is_empty() && self.statement.is_none()
    }

    /// The threads that are asked for, by the connection and the statement that each was last found with.
    ///
    /// # Errors
    /// There is none; the sentence has what there is.
    pub fn choose<'a>(&self, threads: &'a [ThreadTime]) -> Result<Vec<&'a ThreadTime>, Error> {
        let roles: BTreeSet<&str> = threads.iter().map(|thread| thread.role.as_str()).collect();
        if let Some(role) = self.role().filter(|role| !roles.contains(role)) {
            let there = roles.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::WrongUse(format!("no thread has the role {role:?}; there are: {there}")));
        }
        let wanted = |thread: &&ThreadTime| {
            self.role().is_none_or(|role| thread.role == role)
                && self.has_name(&thread.name)
                && self.has_tid(thread.tid)
                && (self.connections.is_empty()
                    || thread.connection.is_some_and(|connection| self.has_connection(connection)))
                && (self.statement.is_none()
                    || thread.statement.as_deref().is_some_and(|statement| self.has_statement(statement)))
        };
        let chosen: Vec<&ThreadTime> = threads.iter().filter(wanted).collect();
        if chosen.is_empty() {
            return Err(Error::WrongUse(format!(
                "no thread is left of {}: leave some of --role, --name, --thread, --connection and --statement away",
                threads.len()
            )));
        }
        Ok(chosen)
    }

    pub(crate) fn role(&self) -> Option<&str> {
        self.role.as_deref().filter(|role| *role != EVERY_ROLE)
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|part| name.to_lowercase().contains(&part.to_lowercase()))
    }

    pub(crate) fn has_tid(&self, tid: u32) -> bool {
        self.tids.is_empty() || self.tids.contains(&tid)
    }

    pub(crate) fn has_connection(&self, connection: u64) -> bool {
        self.connections.is_empty() || self.connections.contains(&connection)
    }

    pub(crate) fn has_statement(&self, statement: &str) -> bool {
        self.statement.as_ref().is_none_or(|part| statement.to_lowercase().contains(&part.to_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads() -> Vec<ThreadTime> {
        let thread = |tid, name: &str, role: &str| ThreadTime {
            tid,
            name: name.to_string(),
            role: role.to_string(),
            ..ThreadTime::default()
        };
        let at_work = ThreadTime {
            connection: Some(40),
            statement: Some("SELECT c FROM sbtest1 WHERE id=?".to_string()),
            ..thread(2, "One_Connection", "connection")
        };
        vec![thread(1, "mariadbd", "listener"), at_work, thread(3, "ib_purge", "purge")]
    }

    #[test]
    fn threads_are_chosen_by_role_name_number_connection_and_statement() {
        let chosen = |filter: ThreadFilter| {
            filter.choose(&threads()).unwrap().iter().map(|thread| thread.tid).collect::<Vec<_>>()
        };
        assert_eq!(chosen(ThreadFilter::default()), [1, 2, 3]);
        let text = |text: &str| Some(text.to_string());
        assert_eq!(chosen(ThreadFilter { role: text("purge"), ..ThreadFilter::default() }), [3]);
        assert_eq!(chosen(ThreadFilter { role: text("all"), ..ThreadFilter::default() }), [1, 2, 3]);
        assert_eq!(chosen(ThreadFilter { name: text("connect"), ..ThreadFilter::default() }), [2]);
        assert_eq!(chosen(ThreadFilter { tids: vec![1, 3], ..ThreadFilter::default() }), [1, 3]);
        assert_eq!(chosen(ThreadFilter { connections: vec![40, 41], ..ThreadFilter::default() }), [2]);
        assert_eq!(chosen(ThreadFilter { statement: text("from SBTEST1"), ..ThreadFilter::default() }), [2]);
    }

    #[test]
    fn what_is_not_there_is_reported_with_what_is() {
        let refused = |filter: ThreadFilter| filter.choose(&threads()).unwrap_err().to_string();
        let role = refused(ThreadFilter { role: Some("purger".to_string()), ..ThreadFilter::default() });
        assert_eq!(role, "no thread has the role \"purger\"; there are: connection, listener, purge");
        let name = refused(ThreadFilter { name: Some("x".to_string()), ..ThreadFilter::default() });
        assert!(name.starts_with("no thread is left of 3"), "{name}");
        let connection = refused(ThreadFilter { connections: vec![7], ..ThreadFilter::default() });
        assert!(connection.starts_with("no thread is left of 3"), "{connection}");
    }
}

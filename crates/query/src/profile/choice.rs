//! Which samples a profile has.

use std::collections::BTreeSet;
use std::sync::Arc;

use whyso_record::Recording;
use whyso_record::run::Window;
use whyso_series::{KnownBy, Spans};

use crate::thread_filter::EVERY_ROLE;
use crate::thread_times::thread_times;
use crate::{Error, ThreadFilter};

/// What there is, is listed up to this number where something that was asked for is not there.
const LISTED_MAX: usize = 20;

/// A sample or a wait: when, of which thread, and where.
pub(super) struct Candidate<'a> {
    pub(super) t_ns: i64,
    pub(super) tid: u32,
    pub(super) role: &'a str,
    pub(super) stack: u32,
}

/// What is asked for, and what was found meanwhile.
pub(super) struct Choice<'a> {
    filter: &'a ThreadFilter,
    /// Numbers of the threads whose name was asked for; `None`: any.
    named: Option<BTreeSet<u32>>,
    /// Read only where it was asked for.
    connections: Option<Spans<u64>>,
    statements: Option<Spans<Arc<str>>>,
    roles: BTreeSet<String>,
    /// Time of the threads that are asked for, and the part of which connection and statement are known.
    all_ns: u64,
    known_ns: u64,
}

impl<'a> Choice<'a> {
    /// # Errors
    /// What is asked for is not in the recording, or its files can't be read.
    pub(super) fn new(
        recording: &Recording,
        window: Window,
        filter: &'a ThreadFilter,
    ) -> Result<Choice<'a>, Error> {
        let mut named = None;
        if filter.name.is_some() {
            let threads = thread_times(recording, window)?.threads;
            let fitting = threads.into_iter().filter(|thread| filter.has_name(&thread.name));
            named = Some(fitting.map(|thread| thread.tid).collect());
        }
        let connections = (!filter.connections.is_empty())
            .then(|| recording.connections_at_work(Some(window)))
            .transpose()?;
        let statements =
            filter.statement.is_some().then(|| statements_at_work(recording, window)).transpose()?;
        let (roles, all_ns, known_ns) = (BTreeSet::new(), 0, 0);
        Ok(Choice { filter, named, connections, statements, roles, all_ns, known_ns })
    }

    /// Whether a sample that stands for this time is asked for.
    pub(super) fn wants(&mut self, candidate: &Candidate<'_>, weight_ns: u64) -> bool {
        if !self.roles.contains(candidate.role) {
            self.roles.insert(candidate.role.to_string());
        }
        let is_asked_for = self.filter.role().is_none_or(|role| role == candidate.role)
            && self.filter.has_tid(candidate.tid)
            && self.named.as_ref().is_none_or(|tids| tids.contains(&candidate.tid));
        if !is_asked_for {
            return false;
        }
        let connection = self.connections.as_ref().map(|spans| spans.at(candidate.tid, candidate.t_ns));
        let statement = self.statements.as_ref().map(|spans| spans.at(candidate.tid, candidate.t_ns));
        self.all_ns = self.all_ns.saturating_add(weight_ns);
        if connection != Some(None) && statement != Some(None) {
            self.known_ns = self.known_ns.saturating_add(weight_ns);
        }
        connection.is_none_or(|known| known.is_some_and(|number| self.filter.has_connection(*number)))
            && statement.is_none_or(|known| known.is_some_and(|text| self.filter.has_statement(text)))
    }

    /// The part, 0 to 1, of the time that meets the other conditions of which connection and statement are known. `None` where neither is
    /// asked for.
    pub(super) fn known_share(&self) -> Option<f64> {
        let is_asked_for = self.connections.is_some() || self.statements.is_some();
        is_asked_for.then(|| self.known_ns as f64 / self.all_ns.max(1) as f64)
    }

    /// Where a statement or a connection is asked for: from which source it is known.
    pub(super) fn known_by(&self) -> Option<KnownBy> {
        let of_connections = self.connections.as_ref().map(|spans| spans.by);
        self.statements.as_ref().map(|spans| spans.by).or(of_connections)
    }

    /// # Errors
    /// Nothing was chosen, and what was asked for is why.
    pub(super) fn check(&self, is_empty: bool) -> Result<(), Error> {
        if !is_empty {
            return Ok(());
        }
        if self.roles.is_empty() {
            return Err(Error::WrongUse("no stack was taken in this window: choose another".to_string()));
        }
        if let Some(role) = self.filter.role().filter(|role| !self.roles.contains(*role)) {
            let there: Vec<&str> = self.roles.iter().map(String::as_str).collect();
            return Err(Error::WrongUse(format!(
                "no stack is of a thread of role '{role}'; give one of: {}, {EVERY_ROLE}",
                there.join(", ")
            )));
        }
        if self.all_ns == 0 && (!self.filter.tids.is_empty() || self.named.is_some()) {
            return Err(Error::WrongUse(
                "no stack in this window is of a thread of that number or name, in the metrics of --by; `whyso threads RUN` \
                 lists the threads"
                    .to_string(),
            ));
        }
        let share = format!("{:.1} % of the time", self.known_share().unwrap_or(0.0) * 100.0);
        if self.statements.is_some() {
            let known: BTreeSet<&str> =
                self.statements.iter().flat_map(Spans::all).map(AsRef::as_ref).collect();
            return Err(Error::WrongUse(format!(
                "no stack in this window is known to be of such a statement: for {share} it is known which statement ran; \
                 those that are known in this run: {}",
                listed(&known)
            )));
        }
        if self.connections.is_some() {
            let known: BTreeSet<&u64> = self.connections.iter().flat_map(Spans::all).collect();
            return Err(Error::WrongUse(format!(
                "no stack in this window is known to be of such a connection: for {share} it is known of which; those that \
                 are known in this run: {}",
                listed(&known)
            )));
        }
        Ok(())
    }
}

fn statements_at_work(recording: &Recording, window: Window) -> Result<Spans<Arc<str>>, Error> {
    recording.statements_at_work(Some(window))?.ok_or_else(|| {
        Error::NotRecorded(
            "it was not recorded since when statements ran, so that no stack is known to be of one: record it again, or \
             leave --statement away"
                .to_string(),
        )
    })
}

fn listed<T: ToString>(all: &BTreeSet<T>) -> String {
    let mut list: Vec<String> = all.iter().take(LISTED_MAX).map(ToString::to_string).collect();
    if list.is_empty() {
        return "none".to_string();
    }
    if all.len() > LISTED_MAX {
        list.push(format!("and {} more", all.len() - LISTED_MAX));
    }
    list.join(", ")
}

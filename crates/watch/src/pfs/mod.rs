//! The Performance Schema, as far as the server counts in it: a source a view, such as `pfs_waits`, counters raw.
//!
//! All views are read by one thread on one connection, one after the other: a summary adds up what every thread of the server has counted,
//! and two of them at a time would only wait for each other. Each question has a bound in the server. What reading a view
//! takes has a budget, and a view that is due beyond it is put off ([`budget`]). Nothing is turned on, nothing is emptied.
//!
//! What there is, is found by asking which tables and columns the server has: 5.5 has waits and files, later servers the rest.

mod budget;
mod digests;
mod growing;
mod own_lines;
mod probe;
mod sampler;
mod sessions;
mod setup;
mod views;

use std::sync::{Arc, Mutex};

use crate::metric::Metric;
use crate::own_statements::OwnStatements;
use crate::sampler::Sampler;
use crate::sql::Sql;
use digests::Digests;
pub(crate) use sampler::Shared;
use sampler::{Reader, Summary};
pub(crate) use sessions::{Session, Sessions};
use setup::Setup;
pub(crate) use views::Often;

pub(crate) const METRICS: [&[Metric]; 2] = [&views::METRICS, &views::LOCK_METRICS];

/// The connection that everything here is asked on.
pub(crate) fn reader(sql: Sql) -> Shared {
    Arc::new(Mutex::new(Reader::new(sql)))
}

/// A sampler for each view, to be run in turn by one thread. `statements`: whyso's own, which are told from others' among the digests.
pub(crate) fn samplers(reader: &Shared, statements: &OwnStatements) -> Vec<(Often, Box<dyn Sampler>)> {
    let mut samplers: Vec<(Often, Box<dyn Sampler>)> = Vec::new();
    for view in &views::VIEWS {
        samplers.push((view.often, Box::new(Summary::new(view, reader.clone()))));
    }
    samplers.push((Often::NowAndThen, Box::new(Digests::new(reader.clone(), statements.clone()))));
    samplers.push((Often::Slowly, Box::new(Setup::new(reader.clone()))));
    samplers
}

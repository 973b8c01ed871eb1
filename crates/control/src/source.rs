//! Where a workload comes from: whyso's own, or the user's SQL.

use whyso_hub::LoadSource;
use whyso_workload::{SqlOptions, Workload};

use crate::Error;
use crate::server_plan::ServerPlan;

/// Run once on every connection of a load that only reads.
pub(crate) const READ_ONLY: &str = "SET SESSION TRANSACTION READ ONLY";

/// Where a workload comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// One of whyso's own.
    Builtin(String),
    /// A file of SQL, already read.
    File { name: String, text: String },
    /// A single statement.
    Query { name: String, sql: String },
}

impl From<&LoadSource> for Source {
    fn from(source: &LoadSource) -> Source {
        match source.clone() {
            LoadSource::Builtin { name } => Source::Builtin(name),
            LoadSource::File { name, text } => Source::File { name, text },
            LoadSource::Query { name, sql } => Source::Query { name, sql },
        }
    }
}

impl From<&Source> for LoadSource {
    fn from(source: &Source) -> LoadSource {
        match source.clone() {
            Source::Builtin(name) => LoadSource::Builtin { name },
            Source::File { name, text } => LoadSource::File { name, text },
            Source::Query { name, sql } => LoadSource::Query { name, sql },
        }
    }
}

/// The parts of a plan that a workload depends on, in addition to its source.
pub(crate) struct WorkloadContext<'p> {
    /// Options of the workload, (name, value). In the user's SQL, each is a variable of every transaction.
    pub(crate) options: &'p [(String, String)],
    pub(crate) tables: u32,
    pub(crate) rows: u64,
    pub(crate) servers: &'p [ServerPlan],
    pub(crate) allow_writes: Option<&'p str>,
}

impl Source {
    /// What results call it.
    pub fn name(&self) -> &str {
        match self {
            Source::Builtin(name) | Source::File { name, .. } | Source::Query { name, .. } => name,
        }
    }

    /// The workload, checked against the data set.
    pub(crate) fn workload(&self, around: &WorkloadContext<'_>) -> Result<Workload, Error> {
        let sql_options = SqlOptions { defines: around.options.to_vec(), ..SqlOptions::default() };
        let mut workload = match self {
            Source::Builtin(name) => {
                let mut options = whyso_workload::Options::default();
                options.set("tables", &around.tables.to_string())?;
                options.set("table-size", &around.rows.to_string())?;
                for (name, value) in around.options {
                    options.set(name, value)?;
                }
                let workload = Workload::builtin(name, &options)?;
                workload.check_data(around.tables, around.rows)?;
                workload
            }
            Source::File { name, text } => Workload::from_sql_file(name, text, &sql_options)?,
            Source::Query { name, sql } => {
                Workload { name: name.clone(), ..Workload::from_query(sql, &sql_options)? }
            }
        };
        if self.is_read_only(&workload, around) {
            workload.session.insert(0, READ_ONLY.to_string());
        }
        Ok(workload)
    }

    /// Returns whether sessions are restricted to reading: the user's SQL only reads by its text, and the server runs already.
    fn is_read_only(&self, workload: &Workload, around: &WorkloadContext<'_>) -> bool {
        let is_own = !matches!(self, Source::Builtin(_));
        let is_remote = around.servers.iter().any(|server| matches!(server, ServerPlan::Dsn { .. }));
        is_own && is_remote && around.allow_writes.is_none() && workload.only_reads()
    }
}

//! What is recorded here while a site is loaded.

use std::collections::BTreeMap;

use whyso_record::run::{Level, LevelResult};

use super::edges::Edge;
use super::session::RecordingSession;
use super::site_level::Meanwhile;
use crate::Error;

impl Meanwhile for RecordingSession<'_> {
    fn check(&self) {
        RecordingSession::check(self);
    }

    fn window_edge(&self) -> Result<Option<Edge>, Error> {
        self.watcher.note_window_edge();
        if let Some(tracing) = &self.tracing {
            tracing.mark();
        }
        self.edges().take().map(Some)
    }

    fn between_levels(&self) -> Result<(), Error> {
        if let Some(tracing) = &self.tracing {
            tracing.between_levels();
        }
        self.others.between_levels();
        Ok(())
    }

    /// With a database server, its statements replace the pages: causes in the server are shares of their time. The pages stay as kinds of
    /// transactions.
    fn with_requests(&self, loaded: Level, edges: &[Edge]) -> Level {
        let (true, [begin, end]) = (self.dsn.is_some(), edges) else { return loaded };
        let seen = self.level(loaded.index, begin, end, loaded.ended.clone());
        let result = LevelResult {
            workload: loaded.result.workload,
            by_transaction: loaded.result.by_transaction,
            // They are of pages, which keep them: as a share of statements they would be another number.
            errors: 0,
            errors_by_code: BTreeMap::new(),
            slo: loaded.result.slo,
            arrivals: loaded.result.arrivals,
            ..seen.result
        };
        Level { users: loaded.users, result, warmup: loaded.warmup, ..seen }
    }
}

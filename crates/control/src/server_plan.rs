//! Which server a run loads.

use std::path::PathBuf;

/// The server that a run loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerPlan {
    /// One that runs already.
    Dsn { dsn: String, set: Vec<(String, String)> },
    /// One that is started for this run alone, and removed after it.
    ThrowAway {
        /// Folder of the build; `None` for the one on the PATH.
        build: Option<PathBuf>,
        /// Folder in which the server's own folder is created.
        parent: Option<PathBuf>,
        set: Vec<(String, String)>,
        defaults_file: Option<PathBuf>,
        cpus: Option<String>,
        /// Bound on its memory, the page cache of its files included.
        memory_bytes: Option<u64>,
        /// It is outside of the quota of CPU time that whyso itself has.
        is_without_quota: bool,
        /// A library that it loads before its own.
        preload: Option<PathBuf>,
    },
}

impl ServerPlan {
    /// Whether whyso starts it, and may start it again.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, ServerPlan::ThrowAway { .. })
    }

    /// The same server with these settings, too.
    pub(crate) fn with_settings(&self, more: &[(String, String)]) -> ServerPlan {
        let mut plan = self.clone();
        let (ServerPlan::Dsn { set, .. } | ServerPlan::ThrowAway { set, .. }) = &mut plan;
        set.extend_from_slice(more);
        plan
    }

    /// What it is asked to be set to.
    pub(crate) fn settings(&self) -> &[(String, String)] {
        let (ServerPlan::Dsn { set, .. } | ServerPlan::ThrowAway { set, .. }) = self;
        set
    }

    /// The same server with these settings alone.
    pub(crate) fn with_only(&self, settings: &[(String, String)]) -> ServerPlan {
        let mut plan = self.clone();
        let (ServerPlan::Dsn { set, .. } | ServerPlan::ThrowAway { set, .. }) = &mut plan;
        *set = settings.to_vec();
        plan
    }

    /// What distinguishes it from another one.
    pub(crate) fn difference_from(&self, other: &ServerPlan) -> String {
        let is_without_quota =
            |plan: &ServerPlan| matches!(plan, ServerPlan::ThrowAway { is_without_quota: true, .. });
        match (is_without_quota(self), is_without_quota(other)) {
            (true, false) => "without quota".to_string(),
            (false, true) => "with its quota".to_string(),
            _ => self.name(),
        }
    }

    /// What a user calls it: its address, or its build.
    pub(crate) fn name(&self) -> String {
        match self {
            ServerPlan::Dsn { dsn, .. } => whyso_server::redact::text(dsn),
            ServerPlan::ThrowAway { build: Some(build), .. } => build.display().to_string(),
            ServerPlan::ThrowAway { build: None, .. } => "the server on the PATH".to_string(),
        }
    }
}

//! A server that is ready to be loaded.

use std::path::PathBuf;
use std::sync::Arc;

use whyso_load::{Address, Target, Tls};
use whyso_server::knobs::Undo;
use whyso_server::{Dsn, ThrowAway, dsn};

/// Shared so that an action may restart the server while the sweep asks whether it has died.
pub(crate) type SharedCell<T> = Arc<tokio::sync::Mutex<T>>;

pub(crate) fn shared<T>(value: T) -> SharedCell<T> {
    Arc::new(tokio::sync::Mutex::new(value))
}

/// A server that is ready to be loaded.
pub(crate) struct ServerUnderTest {
    pub(crate) dsn: Dsn,
    pub(crate) throw_away: Option<SharedCell<ThrowAway>>,
    /// The schema is the user's, who named it with `--allow-writes`: it is used as it is.
    pub(crate) consented: bool,
    /// Of the tables that whyso makes.
    pub(crate) table_engine: String,
    /// What was changed on the running server, to be put back.
    pub(crate) undo: SharedCell<Undo>,
    pub(crate) pid: Option<u32>,
    pub(crate) log: Option<PathBuf>,
    pub(crate) data_dir: Option<PathBuf>,
    /// Description of the CPUs that the server was bound to; empty where it was not.
    pub(crate) cpus_words: String,
    pub(crate) cpus: Option<Vec<u32>>,
    /// What the user should know of it.
    pub(crate) notes: Vec<String>,
    /// Settings that it was started with, or that were set, and why.
    pub(crate) settings: Vec<(String, String, String)>,
    /// What the Performance Schema was set to; `None` if nothing was asked for.
    pub(crate) performance_schema: Option<whyso_model::PerformanceSchema>,
}

impl ServerUnderTest {
    /// Where the load goes.
    pub(crate) fn target(&self) -> Target {
        target(&self.dsn)
    }
}

/// Where a load of this server goes.
pub(crate) fn target(dsn: &Dsn) -> Target {
    let address = match &dsn.socket {
        Some(socket) => Address::Unix(socket.clone()),
        None => Address::Tcp { host: dsn.host.clone(), port: dsn.port },
    };
    let tls = match &dsn.tls {
        dsn::Tls::Disabled => Tls::Off,
        dsn::Tls::Verify { ca } => Tls::Verify { ca: ca.clone(), host: dsn.host.clone() },
        dsn::Tls::Insecure => Tls::Insecure,
    };
    Target {
        address,
        user: dsn.user.clone(),
        password: dsn.password.clone().unwrap_or_default(),
        schema: dsn.schema.clone(),
        tls,
    }
}

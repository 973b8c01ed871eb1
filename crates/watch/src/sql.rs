//! One connection of a sampler to the server under test: bounded, reconnecting, read-only.
//!
//! It runs on a runtime of its own, inside the sampler's thread, so that the thread's CPU time is
//! the sampler's. Nothing is sent but SHOW and SELECT.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mysql_async::{Conn, Error, Opts, OptsBuilder};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use whyso_connect::caught;

use crate::own_statements::{ControlConnection, OwnStatements, SCHEMA};
use crate::sampler::Failure;
use crate::schedule::Patience;
use crate::stop::Stop;

/// A reading that takes longer is given up: the server hangs.
pub(crate) const READING_TIME_MAX: Duration = Duration::from_secs(5);
/// The last reading must leave room for `Watcher::stop`'s two seconds.
pub(crate) const LAST_READING_TIME_MAX: Duration = Duration::from_secs(1);

const GOODBYE_TIME_MAX: Duration = Duration::from_millis(200);

const ACCESS_DENIED: [u16; 4] = [1044, 1045, 1698, 3118];
/// No such table or column, no privilege for it: the server has it not, for us.
const NOT_FOR_US: [u16; 8] = [1054, 1109, 1142, 1143, 1146, 1227, 1235, 1286];
/// The server gave up at the bound of [`bounded_select`].
const TOOK_TOO_LONG: [u16; 2] = [1969, 3024];

/// Whether a server's error means that it does not have what was asked for, or not for this user.
pub(crate) fn is_not_for_us(code: u16) -> bool {
    NOT_FOR_US.contains(&code)
}

/// A SELECT that the server itself gives up after two seconds, where it can. That is sooner than [`READING_TIME_MAX`]. So a question that
/// is given up here is not still being answered there when the next one is sent. MariaDB knows it as a setting of one statement, which only
/// MariaDB reads, MySQL as a hint; to any other both are comments.
pub(crate) fn bounded_select(what: &str) -> String {
    format!(
        "/*M!100101 SET STATEMENT max_statement_time=2 FOR */ SELECT /*+ MAX_EXECUTION_TIME(2000) */ {what}"
    )
}

/// Numbers of the connections that samplers hold to the server, so that none counts as a client's.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnConnections(Arc<Mutex<BTreeSet<u64>>>);

impl OwnConnections {
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.ids().contains(&id)
    }

    pub(crate) fn add(&self, id: u64) {
        self.ids().insert(id);
    }

    fn remove(&self, id: u64) {
        self.ids().remove(&id);
    }

    fn ids(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Sql {
    opts: Opts,
    own: OwnConnections,
    statements: OwnStatements,
    /// Made in the sampler's thread: a runtime must not be dropped inside another one, which is
    /// where the thread that starts the watching may be.
    runtime: Option<Runtime>,
    conn: Option<Conn>,
    stop: Stop,
}

impl Sql {
    /// `opts` with another schema than theirs, which may not exist yet.
    pub(crate) fn new(opts: &Opts, stop: Stop) -> Sql {
        let opts = OptsBuilder::from_opts(opts.clone()).db_name(Some(SCHEMA)).into();
        let (own, statements) = (OwnConnections::default(), OwnStatements::default());
        Sql { opts, own, statements, runtime: None, conn: None, stop }
    }

    /// Enters its connections among these.
    pub(crate) fn with_own_connections(mut self, own: &OwnConnections) -> Sql {
        self.own = own.clone();
        self
    }

    /// Counts its statements among these.
    pub(crate) fn counted_in(mut self, statements: &OwnStatements) -> Sql {
        self.statements = statements.clone();
        self
    }

    /// Runs `query` on a connection that is made when there is none. Ends early when the watching
    /// ends, and after [`READING_TIME_MAX`].
    pub(crate) fn run<T>(
        &mut self,
        query: impl AsyncFnOnce(&mut ControlConnection<'_>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        self.run_within(READING_TIME_MAX, query)
    }

    /// The same with another bound.
    pub(crate) fn run_within<T>(
        &mut self,
        bound: Duration,
        query: impl AsyncFnOnce(&mut ControlConnection<'_>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let (opts, conn, stop) = (&self.opts, &mut self.conn, &self.stop);
        let own = (&self.own, &self.statements);
        let outcome = runtime(&mut self.runtime)?.block_on(async {
            tokio::select! {
                biased;
                () = stop.stopped() => Err(Failure::Stopped),
                outcome = bounded(opts, own, conn, bound, query) => outcome,
            }
        });
        self.clean_up(outcome)
    }

    /// The same for the last reading, when the watching has ended already.
    pub(crate) fn run_last<T>(
        &mut self,
        query: impl AsyncFnOnce(&mut ControlConnection<'_>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let (opts, conn, own) = (&self.opts, &mut self.conn, (&self.own, &self.statements));
        let bounded = bounded(opts, own, conn, LAST_READING_TIME_MAX, query);
        let outcome = runtime(&mut self.runtime)?.block_on(bounded);
        self.clean_up(outcome)
    }

    /// After a failure the state of the connection is not known: the next reading has a new one.
    fn clean_up<T>(&mut self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        if outcome.is_err() {
            let _in_runtime = self.runtime.as_ref().map(Runtime::enter);
            if let Some(conn) = self.conn.take() {
                self.own.remove(u64::from(conn.id()));
            }
        }
        outcome
    }
}

impl Drop for Sql {
    fn drop(&mut self) {
        let (Some(conn), Some(runtime)) = (self.conn.take(), &self.runtime) else {
            return;
        };
        self.own.remove(u64::from(conn.id()));
        // A proper good-bye saves the server an aborted connection in its log.
        let _ = runtime.block_on(async { timeout(GOODBYE_TIME_MAX, whyso_connect::disconnect(conn)).await });
    }
}

fn runtime(slot: &mut Option<Runtime>) -> Result<&Runtime, Failure> {
    match slot {
        Some(runtime) => Ok(runtime),
        None => {
            let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = built.map_err(|error| Failure::quick(no_runtime(&error)))?;
            Ok(slot.insert(runtime))
        }
    }
}

fn no_runtime(error: &std::io::Error) -> String {
    format!("no connection can be made: {error}; raise the limit of open files (ulimit -n)")
}

async fn bounded<T>(
    opts: &Opts,
    (own, statements): (&OwnConnections, &OwnStatements),
    conn: &mut Option<Conn>,
    bound: Duration,
    query: impl AsyncFnOnce(&mut ControlConnection<'_>) -> Result<T, Error>,
) -> Result<T, Failure> {
    let work = async {
        let conn = match conn {
            Some(conn) => conn,
            None => {
                let connected = conn.insert(ControlConnection::connect(opts.clone(), statements).await?);
                own.add(u64::from(connected.id()));
                connected
            }
        };
        let mut conn = ControlConnection::new(conn, statements);
        let outcome = query(&mut conn).await;
        if outcome.is_ok() {
            conn.settle();
        }
        outcome
    };
    match timeout(bound, caught(work)).await {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(error))) => Err(failure(&error)),
        Ok(Err(panic)) => {
            let why = format!("the server cannot be understood: {panic}");
            Err(Failure::Broken { why, patience: Patience::Slow })
        }
        Err(_) => Err(Failure::Broken {
            why: format!("the server did not answer within {} s", bound.as_secs()),
            patience: Patience::Slow,
        }),
    }
}

fn failure(error: &Error) -> Failure {
    let patience = match error {
        Error::Server(error) if ACCESS_DENIED.contains(&error.code) => Patience::Slow,
        Error::Server(error) if TOOK_TOO_LONG.contains(&error.code) => Patience::Slow,
        _ => Patience::Quick,
    };
    match error {
        Error::Server(error) if is_not_for_us(error.code) => {
            Failure::Absent(format!("{} (error {})", error.message, error.code))
        }
        Error::Server(error) if error.code == whyso_connect::MALFORMED => {
            Failure::Broken { why: format!("the server cannot be understood: {}", error.message), patience }
        }
        Error::Server(error) => Failure::Broken {
            why: format!("the server answers: {} (error {})", error.message, error.code),
            patience,
        },
        error => {
            Failure::Broken { why: format!("the server cannot be asked: {}", root_cause(error)), patience }
        }
    }
}

/// The driver wraps the system's words several times in its own.
fn root_cause(error: &Error) -> String {
    const DEPTH_MAX: usize = 8;
    let mut cause: &dyn std::error::Error = error;
    for _ in 0..DEPTH_MAX {
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => break,
        }
    }
    cause.to_string()
}

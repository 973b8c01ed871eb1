use std::io;
use std::path::PathBuf;

use thiserror::Error;
use whyso_wire::ProtocolError;

/// Why the load could not be started. What ends a running level is a [`Failure`](crate::Failure) instead.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    #[error("can't connect to {address}: {source}; check that the server runs and listens there")]
    Connect { address: String, source: io::Error },
    #[error("the server at {address} closed the connection or did not answer in time: {source}")]
    Broken { address: String, source: io::Error },
    #[error("the server at {address} refused user '{user}': {message}")]
    Refused { address: String, user: String, message: String },
    #[error("what answered at {address} does not speak the MySQL protocol: {source}")]
    Protocol { address: String, source: ProtocolError },
    #[error("can't log in to {address}: {why}")]
    Login { address: String, why: String },
    #[error("can't use TLS with {address}: {why}")]
    Tls { address: String, why: String },
    #[error("can't read the certificates in {}: {why}", path.display())]
    Certificates { path: PathBuf, why: String },
    #[error("the server refused to prepare the statement {kind} ({sql}): {message}")]
    Prepare { kind: String, sql: String, message: String },
    #[error("the server refused '{sql}', which is run once on every connection: {message}")]
    Session { sql: String, message: String },
    #[error(
        "can't start a thread for user {user} of {users}: {source}; ask for fewer users or raise the limit on threads"
    )]
    Thread { user: u32, users: u32, source: io::Error },
    #[error("{users} users were asked for, and {users_max} connections are open: ask for 1 to {users_max}")]
    Users { users: u32, users_max: u32 },
    #[error("a load of 0 users was asked for: ask for at least 1")]
    NoUsers,
    #[error("the arrivals can't be scheduled: {why}")]
    Schedule { why: String },
    #[error("{0}")]
    Spec(String),
    #[error("the load's users could not be made: {0}")]
    Drivers(String),
    #[error("the engine {engine} can't be had: {source}; leave --engine out, or take another one")]
    Engine { engine: crate::spec::EngineKind, source: io::Error },
    #[error(
        "the load can't run under the scheduling policy {policy}: {source}; fifo and rr need the capability CAP_SYS_NICE, batch and \
         idle do not"
    )]
    SchedulingPolicy { policy: crate::tuning::SchedulingPolicy, source: io::Error },
    #[error("a level is still running: stop it before the next one is begun")]
    Busy,
    #[error(
        "can't keep the load on the CPUs {cpus:?}: {source}; name CPUs that this machine has and this process may use"
    )]
    Cpus { cpus: Vec<u32>, source: io::Error },
}

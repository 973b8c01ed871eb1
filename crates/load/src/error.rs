use std::io;
use std::path::PathBuf;

use thiserror::Error;
use whyso_wire::ProtocolError;

use crate::target::Address;
use crate::tuning::TuningError;

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
    /// What was asked for contradicts itself, or is outside its range.
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error("a bound on the waits can't be set: {source}")]
    WaitBound { source: io::Error },
    #[error("a socket can't be opened: {source}; raise the limit on open files, or ask for fewer users")]
    Socket { source: io::Error },
    /// Every local port is in use. `ports`: `first` to `last`, each kept for `kept_s` seconds after its connection was closed;
    /// `tcp_tw_reuse`: the kernel's setting.
    #[error(
        "the client ran out of local ports: {ports} ports ({first} to {last}), each kept for {kept_s} s after its connection was \
         closed (on the loopback for 1 s where net.ipv4.tcp_tw_reuse is 2; it is {tcp_tw_reuse}), allow {} new connections per \
         second to one address; widen net.ipv4.ip_local_port_range, or use a Unix socket or several addresses",
        ports / kept_s
    )]
    OutOfPorts { ports: u64, first: u64, last: u64, kept_s: u64, tcp_tw_reuse: String },
    #[error("the engine {engine} is not available: {source}; leave out --engine, or take another one")]
    Engine { engine: crate::engine_kind::EngineKind, source: io::Error },
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

/// What is wrong with a [`LoadSpec`](crate::LoadSpec).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    #[error("a load needs at least one server to go to")]
    NoServer,
    #[error("the weight {weight} of {address} is too large: give 0 to {weight_max}")]
    Weight { weight: u32, weight_max: u32, address: Address },
    #[error("0 connections carry no load: give 1 or more")]
    NoConnections,
    #[error("0 event loops drive no load: give 1 or more")]
    NoLoops,
    #[error("users that share connections need event loops: leave out --engine threads")]
    SharedByThreads,
    #[error(transparent)]
    Tuning(#[from] TuningError),
}

/// Why a driver could not be carried out without a load.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// No connection could be opened.
    #[error(transparent)]
    Connect(#[from] LoadError),
    /// The server asked for a file of this machine.
    #[error("the server asked for the local file '{name}', which is refused")]
    LocalFile { name: String },
    /// The server's answer can't be read.
    #[error("the server's answer breaks the protocol: {0}")]
    Protocol(ProtocolError),
    /// The driver gave up, for the reason that it gave.
    #[error("{message}")]
    Driver { message: String },
}

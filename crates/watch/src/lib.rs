//! What is counted: the machine, the server's process, the server's own counters.
//!
//! One folder of `samplers` is one sampler, and `samplers/mod.rs` lists them: the catalogue. Each sampler runs in a thread and on a
//! schedule of its own, of absolute times on one grid. So nothing drifts, and one that hangs delays no other. Every reading carries the
//! window in which it was taken. The cost of each sampler is itself a series (source `watch`).
//!
//! `docs/reference/watched.md` lists the sources.
//!
//! Events: `gap` when a source fails, once, with the reason; `gap_end` when it is back; `slowed` and `slowed_end` when it is read less often,
//! to keep to its budget; `variable` when a global variable changed; `restart`, `ddl` and `server_error` by the server's status;
//! `replication` when a replica's thread started, stopped or met an error.
//!
//! This crate never writes to the server under test: it sends SHOW and SELECT, and SET SESSION for bounds
//! on its own connections. It never infers from a version number what a server has, and computes no rates: counters are
//! recorded raw, as the source gives them.
//!
//! ```no_run
//! use std::time::Duration;
//! use whyso_record::{Options, Recorder};
//! use whyso_watch::{WatchSpec, Watcher};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recorder = Recorder::create("runs/example".as_ref(), Options::default())?;
//! let spec = WatchSpec {
//!     interval: Duration::from_millis(500),
//!     server: Some(mysql_async::Opts::from_url("mysql://root@localhost/")?),
//!     ..WatchSpec::default()
//! };
//! let watcher = Watcher::start(spec, recorder.clone())?;
//! std::thread::sleep(Duration::from_secs(10));
//! for line in watcher.not_measured() {
//!     println!("not measured: {line}");
//! }
//! watcher.stop();
//! recorder.finish()?;
//! # Ok(())
//! # }
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cost;
mod digest;
mod error;
mod facts;
mod metric;
mod own_statements;
mod pid;
mod sampler;
mod sampler_entry;
mod samplers;
mod schedule;
mod settle;
mod sink;
mod sock_diag;
mod spec;
mod sql;
mod stop;
mod text;
mod watcher;

pub use digest::{digest, may_be_recorded};
pub use error::Error;
pub use facts::{global_variables, host_facts, server_facts};
pub use metric::Metric;
pub use own_statements::OwnExecution;
pub use samplers::access_log::AccessLog;
pub use samplers::addon::{
    AddOn, AddOnError, AddOnSeries, StatementError, check as check_add_on, shipped as shipped_add_ons,
};
pub use samplers::connections::{Connection, connections};
pub use samplers::lock_waits::{LockSnapshot, lock_waits};
pub use samplers::process::process_cpu_ns;
pub use samplers::replication::{Lag, LagQuestion};
pub use samplers::sessions::SessionSums;
pub use samplers::variables::{GLOBAL_VARIABLES, mask_variable};
pub use samplers::{SourceDescription, describe, sources};
pub use settle::{Settling, dirty_and_purge};
pub use sink::Sink;
pub use spec::WatchSpec;
pub use watcher::Watcher;

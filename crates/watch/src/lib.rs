//! What is counted: the machine, the server's process, the server's own counters.
//!
//! One folder is one sampler, with its numbers and what they mean. Each sampler runs in a thread
//! and on a schedule of its own, of absolute times on one grid, so that nothing drifts and one that
//! hangs delays no other. Every reading carries the window in which it was taken; what each sampler
//! costs is itself a series (source `watch`).
//!
//! | source | what | from |
//! | --- | --- | --- |
//! | `cpu` | CPU time, switches, load | `/proc/stat`, `/proc/loadavg` |
//! | `pressure` | time held up for want of CPU, memory, disk | `/proc/pressure` |
//! | `memory` | memory and paging | `/proc/meminfo`, `/proc/vmstat` |
//! | `disk` | whole disks | `/proc/diskstats` |
//! | `net` | interfaces and TCP | `/proc/net` |
//! | `server_process`, `generator_process` | one process and its threads | `/proc/PID` |
//! | `neighbours` | CPU, disk and memory of other programs, by name | `/proc`, the kernel's list of sockets |
//! | `cgroup` | limits of the server's group, throttling | `/sys/fs/cgroup`, v1 and v2 |
//! | `status` | every numeric status variable | `SHOW GLOBAL STATUS` |
//! | `innodb_metrics` | InnoDB's enabled counters | `information_schema.INNODB_METRICS` |
//! | `innodb_status` | the purge's backlog, the redo log's positions, pending reads and writes, spins | `SHOW ENGINE INNODB STATUS` |
//! | `connections` | thread, statement, stage and wait of each connection, as a table | the process list, the Performance Schema |
//! | `sessions` | what clients' sessions do and wait for, by state, as samples | the process list |
//! | `lock_waits` | who waits for whom in locks, as a table, while anybody does | InnoDB's and the Performance Schema's tables, the process list |
//! | `innodb_mutexes` | waits for InnoDB's locks | `SHOW ENGINE INNODB MUTEX` |
//! | `pfs_…` | waits, stages, statements, files, tables, memory and more, a source a view | the Performance Schema |
//! | `replication` | lag, positions and threads of a replica, replicas of a source | `SHOW REPLICA STATUS` and its older names, the process list, the Performance Schema |
//! | `pfs_setup` | what the Performance Schema is set to count, as a table; changes, as events | its setup tables |
//! | `variables` | changes of global variables, as events | `SHOW GLOBAL VARIABLES` |
//! | `addon.NAME` | whatever a program prints or a statement gives | a TOML file of the user, or one of `addons/` |
//! | `watch` | cost, missed and failed readings of each sampler | itself |
//!
//! Events: `gap` when a source fails, once, with the reason; `gap_end` when it is back; `slowed` and `slowed_end` when it is read less often,
//! to keep to its budget; `variable` when a global variable changed; `restart`, `ddl` and `server_error` as the server's status tells;
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

mod addon;
mod cgroup;
mod connections;
mod cost;
mod cpu;
mod digest;
mod disk;
mod error;
mod facts;
mod innodb_metrics;
mod innodb_mutexes;
mod innodb_status;
mod lock_waits;
mod memory;
mod metric;
mod neighbours;
mod net;
mod own_statements;
mod pfs;
mod pressure;
mod process;
mod replication;
mod sampler;
mod schedule;
mod sessions;
mod settle;
mod sink;
mod sql;
mod status;
mod stop;
mod text;
mod variables;
mod watcher;

pub use addon::{AddOn, Checked, check as check_add_on, shipped as shipped_add_ons};
pub use connections::{Connection, connections};
pub use digest::{digest, may_be_kept};
pub use error::Error;
pub use facts::{global_variables, host_facts, server_facts};
pub use lock_waits::{LockLook, lock_waits};
pub use metric::{Metric, describe};
pub use own_statements::OwnExecution;
pub use sessions::SessionSums;
pub use settle::{Settling, dirty_and_purge};
pub use sink::Sink;
pub use variables::{GLOBAL_VARIABLES, mask_variable};
pub use watcher::{WatchSpec, Watcher};

//! What is tested: find, start and stop servers; log in to them; knobs and their undo; data sets;
//! snapshots.
//!
//! Only this crate changes a server's settings and files, and only when asked. These are a schema that it created and
//! marked ([`schema`]), settings that it puts back ([`knobs`]), and servers of its own ([`throwaway`]). It ends a
//! statement of somebody else only where the user allowed it ([`sessions`]). It never
//! measures, and never starts or stops a server that it did not create. It pauses a program of others only where the user named it ([`pause`]). It writes into a schema that holds anything
//! else only where the user named that schema. It answers no server's request for a file except for the rows that it
//! loads.
//!
//! ```no_run
//! use whyso_server::{Dataset, StartSpec, ThrowAway, find, snapshot::Store};
//!
//! # async fn example() -> whyso_server::Result<()> {
//! let mut spec = StartSpec::new(find(None)?);
//! spec.set.push(("innodb_flush_log_at_trx_commit".into(), "2".into()));
//! let (server, how) =
//!     ThrowAway::start_with_dataset(spec, &Dataset::default(), &Store::of_user()?, &|_| ()).await?;
//! println!("{} is up, its data {how:?}", server.dsn().display_masked());
//! server.stop().await?;
//! # Ok(())
//! # }
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod answers;
pub mod app;
mod argv;
pub mod builds;
pub mod cluster;
pub mod containers;
pub mod cpus;
pub mod dataset;
pub mod dsn;
mod error;
pub mod find;
mod forked;
pub mod knobs;
mod page_cache;
mod paths;
pub mod pause;
mod process;
pub mod redact;
pub mod schema;
pub mod sessions;
pub mod snapshot;
pub mod throwaway;

pub use argv::{Arguments, take_arguments};
pub use builds::find;
pub use cpus::CpuSet;
pub use dataset::Dataset;
pub use dsn::Dsn;
pub use error::{Error, Result};
pub use find::{Binary, Flavor, Launch};
pub use page_cache::drop_page_cache;
pub use paths::{FileSystem, cache_dir, file_system, state_dir};
pub use pause::{Neighbour, Pauser};
pub use throwaway::{Death, Slower, StartSpec, ThrowAway, sweep};

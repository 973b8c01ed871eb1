//! What is tested: find, start and stop servers; knobs and their undo; data sets; snapshots.

mod argv;
pub mod cpus;
pub mod dataset;
pub mod dsn;
mod error;
pub mod find;
mod paths;
pub mod schema;
pub mod throwaway;

pub use argv::overwrite_in_arguments;
pub use cpus::CpuSet;
pub use dataset::Dataset;
pub use dsn::Dsn;
pub use error::{Error, Result};
pub use find::{Binary, Flavor, find};
pub use paths::{FileSystem, cache_dir, file_system, state_dir};
pub use throwaway::{Death, StartSpec, ThrowAway, sweep};

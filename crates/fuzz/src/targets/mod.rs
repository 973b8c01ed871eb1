//! The targets. Each reads a case's bytes as choices, and panics where a promise is broken.

mod access_logs;
mod change;
mod digests;
mod folders;
mod frames;
mod imports;
mod json;
mod pages;
mod read;
mod recordings;
mod run_json;
mod small_files;
mod write_ahead;

pub use access_logs::access_logs;
pub use digests::digests;
pub use frames::frames;
pub use imports::imports;
pub use pages::pages;
pub use recordings::recordings;
pub use run_json::run_json;
pub use small_files::small_files;
pub use write_ahead::write_ahead;

//! The web API over a folder of recordings, and the page that draws them.
//!
//! [`Server::bind`] listens, and [`Server::run`] answers until it is stopped. The page is embedded when this crate is built. Everything that it
//! shows comes from the API under `/api/v1`: `docs/reference/web-api.md` lists its addresses.
//!
//! Nothing that a browser sends is run as a command, a path or SQL. A run is named by one of the names that its folder has, a series by its
//! number, a window by two numbers. Every request needs the token, except those for the page itself. Requests by another host's name, or from
//! another site's page, are refused. This crate judges nothing: it calls `query`, `explain`, `series`, `study` and `report`. It drives nothing either: a
//! [`LiveRecorder`] of the caller records servers.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod access;
mod api;
mod archive;
mod bookmarks;
mod connections;
mod encode;
mod error;
mod live;
mod page;
mod plan;
mod plot;
mod recorder;
mod recordings;
mod series;
mod server;
mod servers_file;
mod session;
mod site;
mod studies;
mod verdict_file;
mod verdicts;

pub use access::Token;
pub use error::{Error, ServersFileError};
pub use plan::ServePlan;
pub use plot::{PlotPlan, plot};
pub use recorder::{LiveRecorder, LiveTarget, PfsSetup, RecordProgress, RecordRequest, RecorderError};
pub use series::Mode;
pub use server::Server;
pub use servers_file::LiveServer;

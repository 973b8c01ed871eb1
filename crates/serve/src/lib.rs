//! The web API over a folder of recordings, and the page that draws them.
//!
//! [`Server::bind`] listens, [`Server::run`] answers until it is told to stop. The page is embedded when this crate is built;
//! everything that it shows comes from the API under `/api/v1`, which `docs/reference/web-api.md` gives in full.
//!
//! Nothing that a browser sends is run as a command, a path or SQL: a run is named by one of the names that its folder has, a
//! series by its number, a window by two numbers. Every request but those for the page itself needs the token, and none is answered that came by
//! another host's name or from another site's page. This crate judges nothing: it calls `query`, `explain`,
//! `series` and `report`. It drives nothing either: what records a server is handed in as a [`LiveRecorder`].

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod access;
mod api;
mod bookmarks;
mod encode;
mod error;
mod found;
mod kept;
mod listen;
mod live;
mod moving;
mod open;
mod page;
mod plot;
mod series;
mod session;

pub use access::Token;
pub use error::Error;
pub use listen::{ServePlan, Server};
pub use live::{LiveRecorder, LiveServer, RecordProgress, RecordRequest};
pub use plot::{PlotPlan, plot};
pub use series::Mode;

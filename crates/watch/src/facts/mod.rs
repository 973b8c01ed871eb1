//! What a run stands on: the machine and the server, read once.

mod host;
mod server;

pub use host::host_facts;
pub(crate) use server::answer;
pub use server::{global_variables, server_facts};

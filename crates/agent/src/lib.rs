//! One host of several: an agent that records what it may, and hands it to the hub.
//!
//! What an agent may do is set in a file on its own host ([`Settings`]), and nobody can change it from elsewhere. Passwords of servers are
//! that host's, too: none goes over the bus. What is recorded goes into a folder of its own first ([`Outbox`]), and is removed once the hub
//! keeps it. So a link that is down loses nothing, nor does an agent that is killed.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod agent;
mod error;
mod outbox;
mod publisher;
mod settings;
mod task;
mod worker;

pub use agent::{Agent, AgentFolder};
pub use error::{Error, Result};
pub use outbox::{Outbox, OutboxSpace};
pub use publisher::publish_outbox;
pub use settings::{AgentServer, AgentTarget, Settings};

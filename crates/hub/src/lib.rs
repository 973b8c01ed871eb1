//! The bus between hosts: one server of NATS with JetStream, who may use it, and what is sent over it.
//!
//! A hub is a folder ([`HubFolder`]) and a server that is started on it ([`HubServer`]). The folder has the server's certificate, the
//! members' public keys and the rights of each. A member joins by a [`Token`], which has its private key. [`Bus`] is a member's connection.
//!
//! The commander asks agents, and receives what they record. An agent answers, and publishes frames under its own name. The rights are the
//! server's: no member needs to be honest for them. What a member sends is data of a stranger all the same, and is bounded.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bus;
mod error;
mod folder;
mod frame;
mod host_name;
mod load_order;
mod member;
mod message;
mod nats_config;
mod nats_server;
mod packing;
mod recording_id;
mod reload;
mod subject;
mod token;
mod work;

pub use bus::{Bus, Frames, Question, Questions, ReceivedFrame};
pub use error::{Error, Result};
pub use folder::HubFolder;
pub use frame::{ENTRIES_BYTES_MAX, FRAME_BYTES_MAX, Frame};
pub use host_name::HostName;
pub use load_order::{LoadOrder, LoadPhase, LoadRequest, LoadSource, LoadState, LoadStep};
pub use member::{HubSettings, Member, MemberKind};
pub use message::{Answer, HostCpus, HostState, Order, RecordOrder, Right, WorkOrder, WorkState, WorkStep};
pub use nats_server::{HubServer, NATS_SERVER};
pub use recording_id::RecordingId;
pub use token::Token;
pub use work::{AGENT_LOST_AFTER, PartReceipt, ReceivedPart, Results, WorkPiece};

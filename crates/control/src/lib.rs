//! The order of things: server, load and watch on one clock, into one recording.
//!
//! [`run`] carries out a [`Plan`]. It starts or reaches the server, loads its data, opens a recording and starts the
//! samplers. Then it drives the load through its levels, and puts everything back. [`LoadRecording`] records a load
//! that something else drives.
//!
//! Only this crate knows in which order things happen. It reads recordings by `whyso_query`, does no arithmetic on series and judges
//! nothing: that is for `whyso_series` and `whyso_explain`.
//!
//! ```no_run
//! use whyso_control::{Listener, News, Plan, Stop};
//!
//! struct Quiet;
//! impl Listener for Quiet {
//!     fn hear(&self, _: News<'_>) {}
//! }
//!
//! # fn plan() -> Plan { unimplemented!() }
//! static STOP: Stop = Stop::new();
//! let plan: Plan = plan();
//! let outcome = whyso_control::run(&plan, &Quiet, &STOP, &|_| None)?;
//! println!("recorded in {}", outcome.path.display());
//! # Ok::<(), whyso_control::Error>(())
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ab;
mod action;
mod action_runner;
mod bisect;
mod cluster_node;
pub mod doctor;
mod driven_load;
mod duration;
mod engine;
mod error;
mod facts;
mod generator;
mod held_command;
mod hosts;
mod level;
pub mod load;
mod locks_now;
mod login;
mod node_processes;
mod other_nodes;
mod own_data;
mod pacing;
mod pfs_setup;
mod plan;
mod process;
mod progress;
mod prove;
mod put_back;
mod record;
mod recording;
mod result;
mod run;
mod runtime;
mod server_identity;
mod server_plan;
mod server_setup;
mod server_under_test;
mod service_level;
mod session_actions;
mod settle;
mod setup_tracing;
mod several_servers;
mod source;
mod stacks_choice;
mod stacks_now;
mod statement_work;
mod study;
mod sweep;
mod threads_now;
mod tuning;
mod warmup;

pub use ab::{AbPlan, AbSide, SideChange, ab};
pub use action::{Action, ActionKind};
pub use bisect::{BisectPlan, bisect};
pub use cluster_node::{ClusterNode, OwnCluster};
pub use driven_load::{DrivenLoad, LoadRecording};
pub use error::Error;
pub use facts::host_cpus;
pub use generator::{Generator, GeneratorTarget};
pub use hosts::{HostPlan, HostsPlan, connected_agents};
pub use locks_now::{LocksNow, locks_now};
pub use login::AskPassword;
pub use pacing::{Quantity, Stages, parse_stages, parse_think};
pub use pfs_setup::{pfs_dry_run, undo};
pub use plan::{Plan, USERS_MAX, parse_knob};
pub use process::check_processes;
pub use progress::{IntervalNews, Listener, News, Quiet, Running};
pub use prove::{ProvePlan, proposals_for, prove};
pub use record::{
    RecordPlan, RecordTarget, Show, ShowHosts, SiteLoad, Taps, WatchedHosts, WatchedServer, record, watch,
    watch_hosts,
};
pub use recording::Outcome;
pub use run::run;
pub use server_identity::identity_of;
pub use server_plan::ServerPlan;
pub use session_actions::SessionActions;
pub use setup_tracing::{
    DEFAULT_TRACED_PROGRAM, SetupTracing, TRACING_CAPABILITIES, set_up_tracing, undo_tracing_setup,
};
pub use source::Source;
pub use stacks_now::stacks_now;
pub use study::{
    ReachedServer, StudyPlace, StudyWorkers, check_study_of_others, pack_unit, plan_study, study,
    study_answer, study_programs, study_unit,
};
pub use threads_now::threads_now;
pub use tuning::{parse_busy_poll, parse_min_complete};
pub use whyso_model::Stop;
pub use whyso_relay::RelayTargets;
pub use whyso_trace::{StackSampling, StacksOf};
pub use whyso_tracing::{BusyFunctions, Literals};

/// What the plan's workload sends, as text for people.
///
/// # Errors
/// Where the workload or one of its options is unknown, or the data set is too small for it.
pub fn describe(plan: &Plan) -> Result<String, Error> {
    Ok(run::workload(plan)?.describe())
}

/// A command line as it may be recorded: without passwords.
pub fn masked_command_line(arguments: impl Iterator<Item = String>) -> Vec<String> {
    whyso_server::redact::arguments(arguments)
}

//! One run: server, load and watch on one clock, into one recording.
//!
//! [`run`] carries out a [`Plan`]: it starts or reaches the server, loads its data, opens a recording, starts the samplers, drives the
//! load through its levels, and puts everything back. [`Beside`] records a load that something else drives. [`explain`]
//! turns a recording into findings.
//!
//! This crate alone knows in which order things happen. It does no arithmetic on series and judges nothing: that is for
//! `whyso_series` and `whyso_explain`.
//!
//! ```no_run
//! use whyso_lab::{Listener, News, Plan, Stop};
//!
//! struct Quiet;
//! impl Listener for Quiet {
//!     fn hear(&self, _: News<'_>) {}
//! }
//!
//! # fn plan() -> Plan { unimplemented!() }
//! static STOP: Stop = Stop::new();
//! let plan: Plan = plan();
//! let outcome = whyso_lab::run(&plan, &Quiet, &STOP, &|_| None)?;
//! println!("recorded in {}", outcome.path.display());
//! # Ok::<(), whyso_lab::Error>(())
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod actions;
mod agreement;
mod beside;
mod compare;
mod compare_windows;
mod cost;
mod counting;
pub mod doctor;
mod engine;
mod error;
mod evidence;
mod facts;
mod file_waits;
mod for_report;
mod held_command;
mod leave;
mod level;
pub mod load;
mod locks;
mod login;
mod notes;
mod own_data;
mod pacing;
mod pauses;
mod pfs;
mod pfs_setup;
mod plan;
mod prepare;
mod processes;
mod profile;
mod progress;
mod record;
mod recording;
mod result;
mod run;
mod service_level;
mod settle;
mod setup_tracing;
mod size;
mod source;
mod source_files;
mod sql_trace;
mod stacks;
mod stacks_now;
mod statement_work;
mod statements;
mod study;
mod sweep;
mod thread_filter;
mod thread_states;
mod threads;
mod timeline;
mod tracing;
mod tuning;
mod wait_classes;
mod warmup;

pub use agreement::thread_disagreement;
pub use beside::{Beside, DrivenLoad};
pub use compare::{CompareBy, compare, history, runs_at};
pub use compare_windows::{Stretch, compare_windows, stretch_name, transactions_in};
pub use error::Error;
pub use evidence::{explain, explain_at, input, judge_alone};
pub use file_waits::{MainFiles, main_files};
pub use for_report::ForReport;
pub use locks::{LocksNow, LocksOver, locks_in, locks_now};
pub use notes::{note_now, note_on};
pub use pacing::{Quantity, Stages, parse_stages, parse_think};
pub use pfs::{PfsOver, pfs_in, timing_in, timing_is_known};
pub use pfs_setup::{pfs_dry_run, undo};
pub use plan::{Action, Plan, ServerPlan, USERS_MAX, What, parse_knob};
pub use prepare::AskPassword;
pub use profile::{Sampled, profile_in, stack_metrics, states_by_role};
pub use progress::{IntervalNews, Listener, News, Running, Stop};
pub use record::{RecordPlan, Recorded, Show, Watched, record, watch};
pub use run::{Outcome, run};
pub use setup_tracing::{DEFAULT_TRACED_PROGRAM, SetupTracing, set_up_tracing, undo_tracing_setup};
pub use size::parse_size;
pub use source::Source;
pub use source_files::{SourceFile, SourcePath, source_file};
pub use sql_trace::Literals;
pub use stacks::BusyFunctions;
pub use stacks_now::stacks_now;
pub use statements::{CommandFilter, CommandsIn, commands_in, sql_trace_cost};
pub use study::{plan_study, study, study_answer, study_programs};
pub use thread_filter::ThreadFilter;
pub use threads::{ThreadsOver, threads_in, threads_now};
pub use timeline::{TimelineOf, timeline_in};
pub use tuning::{parse_busy_poll, parse_min_complete};
pub use whyso_relay::Wanted as RelayWanted;
pub use whyso_trace::StackSampling;

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

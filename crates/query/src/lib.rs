//! Reads recordings: turns one into what `explain`, `profile` and `report` take.
//!
//! - [`explain`] turns a recording into findings.
//! - [`threads_in`], [`locks_in`], [`pfs_in`], [`profile_in`], [`timeline_in`] and [`commands_in`] answer one question about a window.
//! - [`compare`] and [`compare_windows`] put two recordings side by side.
//!
//! This crate reads only. It starts nothing, writes nothing and talks to no server, so that whatever it shows comes from the
//! recording. It does no statistics and judges nothing: that is for `whyso_series` and `whyso_explain`.
//!
//! ```no_run
//! use whyso_record::Recording;
//!
//! let recording = Recording::open("runs/20260131-235959-1234".as_ref())?;
//! let explanation = whyso_query::explain(&recording)?;
//! println!("{} levels were judged", explanation.levels.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod agreement;
mod compare;
mod compare_windows;
mod error;
mod evidence;
mod excerpt;
mod file_waits;
mod for_report;
mod level_series;
mod locks;
mod logged_requests;
mod pauses;
mod pfs;
mod pfs_setup;
mod profile;
mod programs;
mod source_files;
mod statements;
mod thread_filter;
mod thread_times;
mod threads;
mod timeline;
mod wait_classes;
mod workers;

pub use agreement::thread_disagreement;
pub use compare::{CompareBy, compare, history, runs_at};
pub use compare_windows::{Stretch, compare_windows, stretch_name, transactions_in};
pub use error::Error;
pub use evidence::{explain, explain_at, input, judge_alone, level_input, machine};
pub use excerpt::{excerpt, explain_excerpt};
pub use file_waits::{MainFiles, main_files};
pub use for_report::{ForReport, PROOFS, proofs};
pub use level_series::add_chosen;
pub use locks::{LocksOver, locks_in};
pub use pfs::{PfsOver, pfs_in, timing_in, timing_is_known};
pub use profile::{RecordedProfile, profile_in, profile_with_wakes_in, stack_metrics, states_by_role};
pub use programs::{ProgramsIn, program_has_waits, program_profile_in, programs_in};
pub use source_files::{SourceFile, SourcePath, source_file};
pub use statements::{CommandFilter, CommandsIn, commands_in, sql_trace_cost};
pub use thread_filter::ThreadFilter;
pub use threads::{ThreadsOver, threads_in};
pub use timeline::{TimelineOf, timeline_in};

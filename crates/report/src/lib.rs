//! HTML, Markdown and SVG from a recording and what `explain` found in it.
//!
//! The HTML report is one file that works offline from `file://`. It is the page of `web/`, embedded when this crate is built, with
//! the run, the findings and every sample inlined. Samples lie in deflated blocks of some thirty series ([`codec`]) that the page
//! decodes when a chart asks for them.
//!
//! This crate judges nothing and finds nothing: sentences, regimes and intervals come from [`whyso_explain`], arithmetic on series
//! from [`whyso_series`]. It never reads a recording's files (that is `whyso_record`'s) and never opens a socket. Text of
//! a server is data: it can't end a script element, open an HTML tag or break a Markdown table.
//!
//! ```
//! use whyso_explain::model::Explanation;
//! use whyso_record::run::RunInfo;
//!
//! let run = RunInfo { id: "20260101-120000".to_string(), ..RunInfo::default() };
//! let text = whyso_report::markdown(&run, &Explanation::default(), &whyso_report::Extras::default());
//! assert!(text.starts_with("# "));
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod ab;
mod access_log;
mod answer;
mod axis;
pub mod bisect;
pub mod codec;
mod compare;
mod derived;
mod differences;
mod excerpt;
mod extras;
mod flame;
mod history;
pub mod html;
mod json;
pub mod load;
mod locks;
mod markdown;
mod over_time;
mod pauses;
pub mod payload;
mod pfs;
mod plan;
mod processes;
mod profile;
mod programs;
pub mod prove;
mod run_list;
pub mod source;
mod stacks_now;
mod statements;
mod study;
mod svg;
mod terminal;
mod text;
mod thin;
mod threads;
mod timeline;
#[cfg(test)]
mod typescript;
mod why;

pub use access_log::{RequestsOf, requests, requests_json};
pub use answer::{
    Answer, AnswerCause, AnswerPlace, LINES_MAX, Line, RunBefore, Span, Tone, answer, answer_lines,
};
pub use compare::{CompareTable, compare, compare_markdown, compare_tables};
pub use differences::differences;
pub use excerpt::Excerpt;
pub use extras::Extras;
pub use history::history;
pub use json::json;
pub use locks::{LevelLocks, LocksNowOf, LocksOf, locks, locks_json, locks_now, locks_now_json};
pub use markdown::markdown;
pub use pauses::pauses;
pub use payload::origin_ns;
pub use pfs::{
    LevelPfs, PfsOf, PfsTimersOf, RunPfs, observer_words, own_label, pfs, pfs_differences,
    pfs_differences_json, pfs_evenness, pfs_evenness_json, pfs_json, pfs_timers, pfs_timers_json,
};
pub use plan::plan;
pub use profile::{
    AnnotatedSource, FilesByRole, ForPprof, OfRoles, ProfilePair, ReadSource, Relation, SampledIn,
    SourceText, StatesByRole, annotated, annotated_json, classes, classes_json, folded, folded_against,
    function_differences, function_differences_json, functions, functions_json, known_words, pprof,
    relatives, relatives_json, wakers, wakers_json,
};
pub use programs::{ProgramsOf, programs, programs_json};
pub use run_list::{is_found, run_details, run_line};
pub use source::{Column, Source, Stacks};
pub use stacks_now::{grouped_stacks, stacks, stacks_json};
pub use statements::{
    CommandsOf, LevelStatements, RunStatements, commands, commands_json, statements, statements_json,
};
pub use study::{
    Row, Sheet, study, study_doubt, study_found, study_head_json, study_html, study_markdown, study_notes,
    study_sheets,
};
pub use svg::plot::{PlotLine, PlotPanel, PlotRow, plot, plot_panel_width};
pub use svg::svg;
pub use terminal::terminal;
pub use text::requirements::pages;
pub use text::statements::sql_trace_words;
pub use threads::{ThreadsWindow, threads, threads_json};
pub use timeline::{TimelineRow, TimelineView, timeline, timeline_columns, timeline_json};
pub use why::{why, why_json};

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("can't write the report: {0}")]
    Write(#[from] std::io::Error),
    #[error("can't put the run into the report: {0}")]
    Json(#[from] serde_json::Error),
    #[error("can't read the recording: {0}")]
    Read(#[from] whyso_record::Error),
}

//! A run on disk: what is recorded during it, and what is read back afterwards.
//!
//! [`Recorder`] takes readings, text tables, events and the load's intervals. It never holds its caller up.
//! [`Recording`] opens what it wrote, also during the run and after a crash. Only this crate knows the names and columns of the files,
//! which `docs/reference/recording.md` gives in full for other tools. It never judges what it records, never computes a rate except for
//! roll-ups and envelopes, and never changes a recording that it opened for reading.
//!
//! | file | one row is | sorted by |
//! | --- | --- | --- |
//! | `run.json` | | |
//! | `series.parquet` | a series: id, host, source, metric, instance, kind, unit | id |
//! | `collections-*.parquet` | a reading of a source: id, source, t_begin_ns, t_end_ns, status | id |
//! | `samples-*.parquet` | a value: series, collection, value_i64 or value_f64 | series, collection |
//! | `rollup-10s-*`, `rollup-2min-*` | a bucket of a series: series, t_ns, min, max, sum, count, first, last, hidden_growth | series, t_ns |
//! | `rows-<source>-*.parquet` | a row of a text table: t_ns, its columns | time |
//! | `load-*.parquet` | a statement kind in an interval, with histograms | time |
//! | `states-*.parquet` | a thread's time by state between two snapshots: begin_ns, t_ns, tid, …, `<state>_ms` | time |
//! | `states-10s-*`, `states-2min-*`, `states-1h-*` | the same, added up | time |
//! | `profile-2min-*`, `profile-1h-*` | samples and waits added up by role, state and stack | time |
//! | `stacks-*.parquet` | a thread that was found on a CPU: t_ns, tid, role, stack, weight_ns | time |
//! | `waits-*.parquet` | a wait that was chosen: t_ns, wait, tid, role, state, lengths, stacks | time |
//! | `commands-*.parquet` | a command of a client: t_ns, tid, client, command, times, length, prepared, statement, text | time |
//! | `statements-*.parquet` | a statement of commands: statement, text | statement |
//! | `frames-*.parquet` | a function of a stack: stack, depth, function, module, file, line | stack, depth |
//! | `events-*.parquet` | an event: t_ns, host, kind, text | time |
//! | `*.wal` | frames of what is not yet sealed | |
//!
//! `*` is the number of a segment, or two with `_` between: a range that was compacted into one file.
//!
//! ```
//! use whyso_record::{Options, Recorder, Recording};
//! use whyso_record::data::{Kind, Reading, SeriesKey, Status, Value};
//!
//! # let folder = tempfile::tempdir()?;
//! # let dir = folder.path().join("run");
//! let recorder = Recorder::create(&dir, Options::default())?;
//! let rows_read = recorder.series(&SeriesKey {
//!     host: "server".into(), source: "status".into(), metric: "Innodb_rows_read".into(),
//!     instance: String::new(), kind: Kind::Counter, unit: "1".into(),
//! });
//! for second in 0..10 {
//!     let begin_ns = second * 1_000_000_000;
//!     let values = vec![(rows_read, Value::Int(second * 500))];
//!     recorder.reading(Reading { source: "status".into(), begin_ns, end_ns: begin_ns + 800_000, status: Status::Ok, values });
//! }
//! recorder.finish()?;
//!
//! let recording = Recording::open(&dir)?;
//! let read = recording.samples(rows_read, None)?;
//! assert_eq!(read.value[9], 4500.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod data;
pub mod export;
pub mod private;
pub mod run;
pub mod sql;

mod backup;
mod catalogue;
mod coming;
mod command_table;
mod compact;
mod elsewhere;
mod entry;
mod error;
mod folder;
mod frame;
mod index;
mod keep;
mod labels;
mod layout;
mod list;
mod lock;
mod manifest;
mod note_file;
mod notes;
mod pages;
mod parquet_file;
mod program_table;
mod prune;
mod read;
mod replay;
mod run_facts;
mod segment_facts;
mod sorted;
mod stack_rollup;
mod stack_table;
mod state_table;
mod sweep;
mod table;
mod transfer;
mod wal;
mod write;

pub use backup::{backup_runs, backup_to, import_from, import_runs};
pub use elsewhere::{CATALOGUE, RunsElsewhere};
pub use entry::{ENTRY_BYTES_MAX, Entry, EntryTap};
pub use error::{Error, Result};
pub use keep::{prune_run, remove_run, stamp};
pub use labels::{Labels, labels_of, set_labels};
pub use list::{LoadedRun, RunSummary, list_runs, load_run, load_runs, write_catalogue};
pub use manifest::{CheckResult, check_run};
pub use note_file::{NOTE, notes as notes_of};
pub use notes::{add_note, change_note, note_now, note_on};
pub use read::{
    LastWork, ProgramTotal, ProgramWaitTotal, Recording, Samples, SeriesInfo, StackSpread, StackTotal,
    StateTimes, ThreadTimes, WindowValue, is_whole_list, spread,
};
pub use replay::Replay;
pub use run_facts::{BestLevel, RunFacts};
pub use stack_rollup::{StackSum, UNKNOWN_THREAD};
pub use transfer::{Arrival, DESCRIPTION_FILES, FILE_LIST, ListedFile, RunFiles, parse_file_list};
pub use write::{Options, OwnCost, Recorder, Summary, Tap};

use std::path::{Path, PathBuf};

/// Where the log of a server that whyso started belongs in a recording.
pub fn server_log_path(dir: &Path) -> PathBuf {
    dir.join("server.log")
}

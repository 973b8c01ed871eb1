//! Entries of another host's recorder, received by one of here.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow::datatypes::UInt32Type;
use whyso_model::{FileWait, Worker};

use crate::data::{SeriesId, SeriesKey, StatesInterval, TextRows};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::layout;
use crate::wal;
use crate::write::Recorder;

/// Columns that hold a time of the host's clock.
const TIMES: [&str; 4] = ["t_ns", "begin_ns", "end_ns", "born_ns"];
/// Streams of a recorder's own that another one may hand over.
const STREAMS: [&str; 5] =
    [layout::STACKS, layout::WAITS, layout::FRAMES, layout::COMMANDS, layout::STATEMENTS];
/// Streams of the stacks of programs.
const STREAMS_OF_PROGRAMS: [&str; 3] =
    [layout::PROGRAM_STACKS, layout::PROGRAM_WAITS, layout::PROGRAM_FRAMES];
/// Numbers of stacks of programs that one host has: those of the next host begin there.
const STACKS_OF_HOST: u32 = 10_000_000;
/// Tables of programs, each with the column that names these.
const OF_PROGRAMS: [(&str, &str); 2] =
    [(FileWait::OF_PROGRAMS, FileWait::ROLE), (Worker::SOURCE, Worker::PROGRAM)];
/// What a host calls itself, and its own connections.
const OF_HOST: [&str; 2] = ["server", "client"];
/// Series of one host, at most: beyond it, what it sends is refused.
const SERIES_MAX: usize = 200_000;
/// Births of threads that are kept.
const BIRTHS_MAX: usize = 1_000_000;
/// Length of a table's name, at most.
const NAME_MAX: usize = 64;

/// Receives one host's entries for a recorder of here.
pub struct Replay {
    recorder: Recorder,
    host: String,
    has_clients: bool,
    has_server: bool,
    /// Where the numbers of the stacks of its programs begin here; `None`: none were recorded.
    stacks_from: Option<u32>,
    /// Births of threads on this clock. A thread is known by its birth, so that it stays the same while the clock is known better.
    births: HashMap<i64, i64>,
    /// `None`: a series that is left out.
    ids: HashMap<SeriesId, Option<SeriesId>>,
}

impl Replay {
    /// `host`: what all that it sends is about, whatever it calls itself.
    /// `has_clients`: what it knows of its own connections to the server counts, because no other host knows of its clients.
    /// `has_server`: the recording's server runs there. Of another host, threads and stacks are refused.
    pub fn new(recorder: Recorder, host: &str, has_clients: bool, has_server: bool) -> Replay {
        let host = host.to_string();
        let (births, ids) = (HashMap::new(), HashMap::new());
        Replay { recorder, host, has_clients, has_server, stacks_from: None, births, ids }
    }

    /// Programs were recorded there next to the machine and the server: each is a node of its own, such as "web1/apache2". `place`: of the host
    /// among those of the recording, as the stacks of programs of two hosts have different numbers here.
    pub fn with_programs(self, place: u32) -> Replay {
        Replay { stacks_from: Some(place.saturating_mul(STACKS_OF_HOST)), ..self }
    }

    /// What a program of the host is called here.
    pub fn program_name(host: &str, program: &str) -> String {
        format!("{host}/{program}")
    }

    /// Records an entry, its times as `here` gives them on this machine's clock. Returns `run.json` where it is one.
    ///
    /// # Errors
    /// It is damaged, or it is none that a recorder makes. Nothing of it is recorded then.
    pub fn entry(&mut self, entry: Entry, here: impl Fn(i64) -> i64) -> Result<Option<Vec<u8>>> {
        match entry {
            Entry::Series(id, key) => self.series(id, key)?,
            Entry::Reading(mut reading) => {
                if !reading.values.is_empty()
                    && reading.values.iter().all(|(id, _)| !self.ids.contains_key(id))
                {
                    return Err(refused("values of series that it did not name"));
                }
                // The name of a series may have been lost: its values are lost with it.
                reading.values.retain_mut(|(id, _)| match self.ids.get(id) {
                    Some(Some(here)) => {
                        *id = *here;
                        true
                    }
                    _ => false,
                });
                (reading.begin_ns, reading.end_ns) = (here(reading.begin_ns), here(reading.end_ns));
                self.recorder.reading(reading);
            }
            Entry::Rows(mut rows) => {
                if rows.rows.iter().any(|row| row.len() != rows.columns.len()) {
                    return Err(refused("a row with other columns than its table"));
                }
                if !is_name(&rows.source) {
                    return Err(refused("a table whose name is none"));
                }
                rows.t_ns = here(rows.t_ns);
                self.move_cells(&mut rows, &here);
                let of_programs = OF_PROGRAMS.iter().find(|(source, _)| *source == rows.source);
                if let Some((_, column)) = of_programs {
                    self.name_programs(&mut rows, column);
                }
                self.recorder.rows(rows);
            }
            Entry::Event(mut event) => {
                event.t_ns = here(event.t_ns);
                event.host.clone_from(&self.host);
                self.recorder.event(event);
            }
            // Only this machine's load is measured.
            Entry::Load(_) => return Err(refused("a load of its own")),
            Entry::Batch { stream, ipc } if STREAMS_OF_PROGRAMS.contains(&stream.as_str()) => {
                let Some(from) = self.stacks_from else {
                    return Err(refused("stacks of programs that it was not asked for"));
                };
                for batch in decoded(&ipc)? {
                    let batch = self.of_programs(&moved(&batch, &here)?, from)?;
                    self.recorder.tapped_batch(&stream, batch);
                }
            }
            Entry::States(_) | Entry::Batch { .. } if !self.has_server => {
                return Err(refused("threads of a server that it does not have"));
            }
            Entry::States(mut interval) => {
                check(&interval)?;
                (interval.begin_ns, interval.t_ns) = (here(interval.begin_ns), here(interval.t_ns));
                for thread in &mut interval.threads {
                    thread.born_ns = self.birth(thread.born_ns, &here);
                }
                self.recorder.states(&interval);
            }
            Entry::Batch { stream, ipc } => {
                for batch in decoded(&ipc)? {
                    let batch = moved(&batch, &here)?;
                    match STREAMS.contains(&stream.as_str()) {
                        true => self.recorder.tapped_batch(&stream, batch),
                        false => self.recorder.batch(&stream, batch)?,
                    }
                }
            }
            Entry::Run(json) => return Ok(Some(json)),
        }
        Ok(None)
    }

    fn birth(&mut self, there_ns: i64, here: &impl Fn(i64) -> i64) -> i64 {
        if self.births.len() >= BIRTHS_MAX {
            self.births.clear();
        }
        *self.births.entry(there_ns).or_insert_with(|| here(there_ns))
    }

    /// Moves the times in a table's cells to this machine's clock.
    fn move_cells(&mut self, rows: &mut TextRows, here: &impl Fn(i64) -> i64) {
        let places: Vec<usize> =
            (0..rows.columns.len()).filter(|at| rows.columns[*at] == "born_ns").collect();
        for row in &mut rows.rows {
            for at in &places {
                let there_ns = row[*at].as_ref().and_then(|cell| cell.parse().ok());
                if let Some(there_ns) = there_ns {
                    row[*at] = Some(self.birth(there_ns, here).to_string());
                }
            }
        }
    }

    /// Stacks of programs under the names and the numbers that they have here.
    fn of_programs(&self, batch: &RecordBatch, from: u32) -> Result<RecordBatch> {
        let schema = batch.schema();
        let columns =
            schema.fields().iter().zip(batch.columns()).map(|(field, column)| -> Result<ArrayRef> {
                if let ("program", Some(names)) = (field.name().as_str(), column.as_string_opt::<i32>()) {
                    let named = |name: Option<&str>| name.map(|name| Replay::program_name(&self.host, name));
                    return Ok(Arc::new(names.iter().map(named).collect::<StringArray>()));
                }
                let ("stack", Some(stacks)) =
                    (field.name().as_str(), column.as_primitive_opt::<UInt32Type>())
                else {
                    return Ok(Arc::clone(column));
                };
                if stacks.iter().flatten().any(|stack| stack >= STACKS_OF_HOST) {
                    return Err(refused("more stacks than one host can have"));
                }
                let here = stacks.iter().map(|stack| stack.map(|stack| from.saturating_add(stack)));
                Ok(Arc::new(here.collect::<UInt32Array>()))
            });
        RecordBatch::try_new(schema.clone(), columns.collect::<Result<Vec<_>>>()?)
            .map_err(|cause| Error::damaged(Path::new("what a host sent"), "a table", cause))
    }

    /// The programs of several hosts have tables of their own, and names that differ.
    fn name_programs(&self, rows: &mut TextRows, column: &str) {
        rows.source = format!("{}-{}", rows.source, self.host.to_ascii_lowercase());
        let Some(at) = rows.columns.iter().position(|known| known == column) else { return };
        for role in rows.rows.iter_mut().filter_map(|row| row[at].as_mut()) {
            *role = Replay::program_name(&self.host, role);
        }
    }

    fn series(&mut self, id: SeriesId, key: SeriesKey) -> Result<()> {
        if self.ids.len() >= SERIES_MAX {
            return Err(refused("more series than one host can have"));
        }
        let is_left_out = !self.has_clients && key.host == "client" && key.source == "trace";
        let host = match key.host.as_str() {
            program if self.stacks_from.is_some() && !OF_HOST.contains(&program) => {
                Replay::program_name(&self.host, program)
            }
            _ => self.host.clone(),
        };
        let here = (!is_left_out).then(|| self.recorder.series(&SeriesKey { host, ..key }));
        self.ids.insert(id, here);
        Ok(())
    }
}

fn refused(what: &str) -> Error {
    Error::damaged(Path::new("what a host sent"), "entries", what.to_string())
}

/// The parts of a table, at least one.
fn decoded(ipc: &[u8]) -> Result<Vec<RecordBatch>> {
    let batches = wal::decode(ipc).ok_or_else(|| refused("a table that can't be read"))?;
    if batches.is_empty() { Err(refused("a table without a part")) } else { Ok(batches) }
}

/// It becomes a part of a file's name.
fn is_name(source: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=NAME_MAX).contains(&source.len()) && source.bytes().all(is_letter)
}

fn check(interval: &StatesInterval) -> Result<()> {
    let states = interval.states.len();
    match interval.threads.iter().all(|thread| thread.states_ms.len() == states) {
        true => Ok(()),
        false => Err(refused("a thread with other states than its table")),
    }
}

/// The same rows with their times on this machine's clock.
fn moved(batch: &RecordBatch, here: &impl Fn(i64) -> i64) -> Result<RecordBatch> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| -> ArrayRef {
        match column.as_any().downcast_ref::<Int64Array>() {
            Some(times) if TIMES.contains(&field.name().as_str()) => {
                Arc::new(times.iter().map(|time| time.map(here)).collect::<Int64Array>())
            }
            _ => Arc::clone(column),
        }
    });
    RecordBatch::try_new(schema.clone(), columns.collect())
        .map_err(|cause| Error::damaged(Path::new("what a host sent"), "a table", cause))
}

#[cfg(test)]
mod tests;

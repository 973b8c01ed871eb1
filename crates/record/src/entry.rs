//! What a recorder receives, one thing after the other, in a form that another recorder can receive elsewhere.

use std::path::Path;

use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::data::{Event, LoadInterval, Reading, SeriesId, SeriesKey, StatesInterval, TextRows};
use crate::error::{Error, Result};
use crate::wal;
use crate::write::Tap;

/// One thing that a recorder received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// A series that is new; it comes before every reading with its number.
    Series(SeriesId, SeriesKey),
    Reading(Reading),
    Rows(TextRows),
    Event(Event),
    Load(LoadInterval),
    States(StatesInterval),
    /// Rows of a stream, as an Arrow IPC stream.
    Batch {
        stream: String,
        ipc: Vec<u8>,
    },
    /// `run.json` as it is from then on.
    Run(Vec<u8>),
}

impl Entry {
    fn batch(stream: &str, batch: &RecordBatch) -> Result<Entry> {
        Ok(Entry::Batch { stream: stream.to_string(), ipc: wal::encode(batch)? })
    }

    /// Appends it to others.
    ///
    /// # Errors
    /// It can't be encoded, which no entry of a recorder's causes.
    pub fn append_to(&self, out: &mut Vec<u8>) -> Result<()> {
        let grown = postcard::to_extend(self, std::mem::take(out)).map_err(undecodable)?;
        *out = grown;
        Ok(())
    }

    /// The entries of `bytes`, one at a time: together they may take many times the memory. The last one is an error where what is left
    /// is none, or has more than [`ENTRY_BYTES_MAX`].
    pub fn read_all(bytes: &[u8]) -> impl Iterator<Item = Result<Entry>> + '_ {
        let mut left = bytes;
        std::iter::from_fn(move || {
            if left.is_empty() {
                return None;
            }
            let bounded = &left[..left.len().min(ENTRY_BYTES_MAX)];
            match postcard::take_from_bytes(bounded) {
                Ok((entry, rest)) => {
                    left = &left[bounded.len() - rest.len()..];
                    Some(Ok(entry))
                }
                Err(error) => {
                    left = &[];
                    Some(Err(undecodable(error)))
                }
            }
        })
    }
}

/// The most bytes of an entry.
pub const ENTRY_BYTES_MAX: usize = 8 << 20;

fn undecodable(cause: postcard::Error) -> Error {
    Error::damaged(Path::new("what a host sent"), "entries", cause)
}

/// Makes entries of what a recorder receives.
pub struct EntryTap<F> {
    receive: F,
}

impl<F: Fn(Entry) + Send + Sync> EntryTap<F> {
    /// `receive` is called in the threads of the recorder's callers: it must not wait.
    pub fn new(receive: F) -> EntryTap<F> {
        EntryTap { receive }
    }
}

impl<F: Fn(Entry) + Send + Sync> Tap for EntryTap<F> {
    fn series(&self, id: SeriesId, key: &SeriesKey) {
        (self.receive)(Entry::Series(id, key.clone()));
    }
    fn reading(&self, reading: &Reading) {
        (self.receive)(Entry::Reading(reading.clone()));
    }
    fn load(&self, interval: &LoadInterval) {
        (self.receive)(Entry::Load(interval.clone()));
    }
    fn rows(&self, rows: &TextRows) {
        (self.receive)(Entry::Rows(rows.clone()));
    }
    fn event(&self, event: &Event) {
        (self.receive)(Entry::Event(event.clone()));
    }
    fn states(&self, interval: &StatesInterval) {
        (self.receive)(Entry::States(interval.clone()));
    }
    fn batch(&self, stream: &str, batch: &RecordBatch) {
        // What a frame can't hold was refused by the recorder, too.
        if let Ok(entry) = Entry::batch(stream, batch) {
            (self.receive)(entry);
        }
    }
    fn run(&self, json: &[u8]) {
        (self.receive)(Entry::Run(json.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Kind, Status, Value};
    use proptest::prelude::*;

    fn entries() -> Vec<Entry> {
        let key = SeriesKey {
            host: "db".to_string(),
            source: "cpu".to_string(),
            metric: "user_ns".to_string(),
            instance: "all".to_string(),
            kind: Kind::Counter,
            unit: "ns".to_string(),
        };
        let values = vec![(SeriesId(0), Value::Int(-3)), (SeriesId(0), Value::Float(0.5))];
        vec![
            Entry::Series(SeriesId(0), key),
            Entry::Reading(Reading {
                source: "cpu".to_string(),
                begin_ns: 5,
                end_ns: 9,
                status: Status::Ok,
                values,
            }),
            Entry::Run(b"{}".to_vec()),
        ]
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        for entry in entries() {
            entry.append_to(&mut bytes).unwrap();
        }
        assert_eq!(Entry::read_all(&bytes).collect::<Result<Vec<_>>>().unwrap(), entries());
    }

    #[test]
    fn an_entry_that_is_too_large_ends_what_is_read() {
        let mut bytes = Vec::new();
        Entry::Run(vec![b' '; ENTRY_BYTES_MAX]).append_to(&mut bytes).unwrap();
        Entry::Run(Vec::new()).append_to(&mut bytes).unwrap();
        let found: Vec<Result<Entry>> = Entry::read_all(&bytes).collect();
        assert!(matches!(&found[..], [Err(_)]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            // Each entry takes a byte at least.
            prop_assert!(Entry::read_all(&bytes).count() <= bytes.len());
        }
    }
}

//! What waits for the hub, as files: one frame each, in order. It outlives the agent, and a link that is down.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::Notify;
use whyso_hub::Frame;
use whyso_record::{ENTRY_BYTES_MAX, Entry};

use crate::error::{Error, Result};

/// Longest time that an entry waits for others in its frame.
const FRAME_TIME: Duration = Duration::from_millis(250);
/// A frame is closed from this size on, before it is packed.
const FRAME_BYTES: usize = 512 << 10;
/// What may wait for its file. Beyond it, what comes is lost, and counted.
const QUEUE_BYTES_MAX: usize = 64 << 20;
const ENDING: &str = "frame";

/// Frames of one recording that wait for the hub.
pub struct Outbox {
    shared: Arc<SharedOutbox>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// Space for all that waits for the hub on this host. Clones share it.
#[derive(Clone, Debug)]
pub struct OutboxSpace {
    bytes_max: u64,
    taken: Arc<AtomicU64>,
}

impl OutboxSpace {
    /// `taken`: by what an agent before this one left.
    pub fn new(bytes_max: u64, taken: u64) -> OutboxSpace {
        OutboxSpace { bytes_max, taken: Arc::new(AtomicU64::new(taken)) }
    }

    fn take(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        // Never below nothing, where a file was changed meanwhile.
        let left = |taken: u64| Some(taken.saturating_sub(bytes));
        let _ = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
    }

    fn is_full(&self) -> bool {
        self.taken.load(Ordering::Relaxed) > self.bytes_max
    }
}

struct SharedOutbox {
    folder: PathBuf,
    space: OutboxSpace,
    state: Mutex<State>,
    /// An entry came, or the last one.
    came: Condvar,
    /// A frame is written, or the last of all.
    written: Notify,
}

#[derive(Default)]
struct State {
    /// Entries that are in no file yet: each element becomes a frame.
    pieces: Vec<Vec<u8>>,
    queued_bytes: usize,
    /// Number of the frame that is written next.
    next: u64,
    lost: u64,
    is_ended: bool,
    /// The last frame is written.
    is_closed: bool,
}

impl Outbox {
    /// Begins a recording's outbox in a folder of its own.
    ///
    /// # Errors
    /// The folder can't be made.
    pub fn begin(folder: &Path, space: OutboxSpace) -> Result<Outbox> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|cause| Error::io(folder, cause))?;
        let numbers = frame_numbers(folder)?;
        let state = State { next: numbers.last().map_or(1, |last| last + 1), ..State::default() };
        let shared = Arc::new(SharedOutbox {
            folder: folder.to_path_buf(),
            space,
            state: Mutex::new(state),
            came: Condvar::new(),
            written: Notify::new(),
        });
        let of_writer = Arc::clone(&shared);
        let writer = std::thread::Builder::new().name("outbox".to_string()).spawn(move || of_writer.write());
        let writer = writer.map_err(|cause| Error::io(folder, cause))?;
        Ok(Outbox { shared, writer: Mutex::new(Some(writer)) })
    }

    /// Puts an entry into the next frame. Never waits for the disk.
    pub fn put(&self, entry: &Entry) {
        let mut state = self.shared.lock();
        let mut bytes = Vec::new();
        let is_encoded = entry.append_to(&mut bytes).is_ok();
        let fits = bytes.len() <= ENTRY_BYTES_MAX && state.queued_bytes + bytes.len() <= QUEUE_BYTES_MAX;
        if !is_encoded || !fits || state.is_ended {
            state.lost += 1;
            return;
        }
        state.queued_bytes += bytes.len();
        match state.pieces.last_mut() {
            Some(piece) if piece.len() + bytes.len() <= FRAME_BYTES => piece.extend_from_slice(&bytes),
            _ => state.pieces.push(bytes),
        }
        if state.pieces.len() > 1 {
            self.shared.came.notify_one();
        }
    }

    /// Writes what is left and the last frame, and returns when that is done.
    pub fn end(&self) {
        self.shared.lock().is_ended = true;
        self.shared.came.notify_one();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A panic there is no reason to lose what is written.
            let _ = writer.join();
        }
    }

    /// The hub keeps a frame: its file goes.
    pub(crate) fn forget(&self, number: u64) {
        self.shared.space.give_back(remove_frame(&self.shared.folder, number));
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Wakes who waits for frames.
    pub(crate) fn written(&self) -> &Notify {
        &self.shared.written
    }

    /// The last frame is written.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.lock().is_closed
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.end();
    }
}

impl SharedOutbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds this lock can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) {
        loop {
            let (pieces, is_ended) = {
                let state = self.lock();
                let waited = self
                    .came
                    .wait_timeout_while(state, FRAME_TIME, |state| !state.is_ended && state.pieces.len() < 2);
                let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
                (std::mem::take(&mut state.pieces), state.is_ended)
            };
            for entries in pieces {
                let bytes = entries.len();
                self.write_frame(entries, false);
                let mut state = self.lock();
                state.queued_bytes = state.queued_bytes.saturating_sub(bytes);
            }
            if is_ended {
                self.write_frame(Vec::new(), true);
                self.lock().is_closed = true;
                self.written.notify_one();
                return;
            }
        }
    }

    /// What can't be written is lost, and counted. The last frame is written even where there is no space left for others.
    fn write_frame(&self, entries: Vec<u8>, is_last: bool) {
        let (number, lost, is_full) = {
            let state = self.lock();
            (state.next, state.lost, self.space.is_full())
        };
        let frame = Frame { number, is_last, lost, entries };
        let written = match is_full && !is_last {
            true => None,
            false => write(&self.folder, &frame),
        };
        let mut state = self.lock();
        match written {
            Some(bytes) => {
                state.next += 1;
                self.space.take(bytes);
                self.written.notify_one();
            }
            None => state.lost += Entry::read_all(&frame.entries).count() as u64,
        }
    }
}

/// Writes a frame's file as a whole; `None` where it can't be written.
fn write(folder: &Path, frame: &Frame) -> Option<u64> {
    let bytes = frame.to_bytes().ok()?;
    let unfinished = folder.join("unfinished");
    let mut options = fs::OpenOptions::new();
    let written = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| fs::rename(&unfinished, frame_path(folder, frame.number)));
    written.ok().map(|()| bytes.len() as u64)
}

/// Writes a last frame after those of an agent that was killed.
pub(crate) fn close_left(folder: &Path) -> Result<()> {
    let numbers = frame_numbers(folder)?;
    let last = numbers.last().copied().unwrap_or(0);
    let is_closed = read_frame(folder, last)
        .is_some_and(|bytes| Frame::from_bytes("this host", &bytes).is_ok_and(|frame| frame.is_last));
    if !is_closed {
        // Frames before it may have been forgotten, and their numbers with them.
        let number = if last == 0 { 0 } else { last + 1 };
        write(folder, &Frame { number, is_last: true, lost: 0, entries: Vec::new() });
    }
    Ok(())
}

/// The numbers of the frames that wait, in order.
pub(crate) fn frame_numbers(folder: &Path) -> Result<BTreeSet<u64>> {
    let entries = fs::read_dir(folder).map_err(|cause| Error::io(folder, cause))?;
    let number = |entry: fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()?.strip_suffix(ENDING)?.strip_suffix('.')?.parse().ok()
    };
    Ok(entries.flatten().filter_map(number).collect())
}

pub(crate) fn read_frame(folder: &Path, number: u64) -> Option<Vec<u8>> {
    fs::read(frame_path(folder, number)).ok()
}

/// Removes a frame's file, and returns its size.
pub(crate) fn remove_frame(folder: &Path, number: u64) -> u64 {
    let path = frame_path(folder, number);
    let bytes = fs::metadata(&path).map_or(0, |facts| facts.len());
    // One that stays is published again, which is known by its number.
    let _ = fs::remove_file(path);
    bytes
}

fn frame_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.{ENDING}"))
}

#[cfg(test)]
mod tests {
    use whyso_record::data::Event;

    use super::*;

    fn event(text: &str) -> Entry {
        let [host, kind] = ["client", "note"].map(str::to_string);
        Entry::Event(Event { t_ns: 1, host, kind, text: text.to_string() })
    }

    /// What all frames of a folder hold together, each with whether it is the last.
    fn frames_in(folder: &Path) -> (Vec<Entry>, Vec<bool>, u64) {
        let (mut entries, mut last, mut lost) = (Vec::new(), Vec::new(), 0);
        for number in frame_numbers(folder).unwrap() {
            let frame = Frame::from_bytes("db", &read_frame(folder, number).unwrap()).unwrap();
            assert_eq!(frame.number, number);
            entries.extend(frame.entries("db").map(|entry| entry.unwrap()));
            last.push(frame.is_last);
            lost = frame.lost;
        }
        (entries, last, lost)
    }

    #[test]
    fn entries_come_out_in_order_and_the_last_frame_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::begin(folder.path(), OutboxSpace::new(1 << 30, 0)).unwrap();
        let texts: Vec<String> = (0..2000).map(|number| format!("{number} {}", "x".repeat(700))).collect();
        texts.iter().for_each(|text| outbox.put(&event(text)));
        outbox.end();
        outbox.put(&event("too late"));
        let (entries, last, lost) = frames_in(folder.path());
        assert_eq!(entries, texts.iter().map(|text| event(text)).collect::<Vec<_>>());
        assert!(last.len() > 2 && last.iter().rev().skip(1).all(|is_last| !is_last) && last[last.len() - 1]);
        assert_eq!(lost, 0);
    }

    #[test]
    fn what_does_not_fit_is_counted_and_what_was_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::begin(folder.path(), OutboxSpace::new(0, 0)).unwrap();
        outbox.put(&event("fits"));
        while frame_numbers(folder.path()).unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        outbox.put(&event("lost"));
        outbox.put(&event("lost"));
        outbox.end();
        let (entries, last, lost) = frames_in(folder.path());
        assert_eq!((entries, last, lost), (vec![event("fits")], vec![false, true], 2));
    }

    #[test]
    fn an_outbox_of_an_agent_that_was_killed_is_closed_once() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &Frame { number: 7, is_last: false, lost: 0, entries: Vec::new() }).unwrap();
        close_left(folder.path()).unwrap();
        close_left(folder.path()).unwrap();
        assert_eq!(frames_in(folder.path()).1, [false, true]);
        let all_forgotten = tempfile::tempdir().unwrap();
        close_left(all_forgotten.path()).unwrap();
        close_left(all_forgotten.path()).unwrap();
        assert_eq!(frame_numbers(all_forgotten.path()).unwrap().into_iter().collect::<Vec<_>>(), [0]);
    }
}

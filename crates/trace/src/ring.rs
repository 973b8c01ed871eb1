//! A ring buffer of the kernel's, read at short intervals.

use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};

use crate::error::Error;

/// Records that are handed over at a time: the unwinder may be slower than the sampling.
const RECORDS_AT_ONCE: usize = 10_000;
/// Memory that the inbox keeps between two readings, in bytes.
const INBOX_KEPT_BYTES: usize = 1 << 20;

/// The records of one ring buffer.
pub(crate) struct Records {
    ring: RingBuffer<'static>,
    inbox: Arc<Mutex<Inbox>>,
}

impl Records {
    /// # Errors
    /// The ring buffer can't be mapped.
    pub(crate) fn of(map: &dyn MapCore) -> Result<Records, Error> {
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        let arriving = Arc::clone(&inbox);
        let mut builder = RingBufferBuilder::new();
        let arrived = move |record: &[u8]| {
            arriving.lock().unwrap_or_else(PoisonError::into_inner).push(record);
            0
        };
        builder.add(map, arrived).map_err(Error::of)?;
        Ok(Records { ring: builder.build().map_err(Error::of)?, inbox })
    }

    /// Hands over what came since the last time, in order, 10,000 records at most.
    ///
    /// # Errors
    /// The buffer can't be read.
    pub(crate) fn take(&mut self, each: impl FnMut(&[u8])) -> Result<(), Error> {
        let status = self.ring.consume_raw_n(RECORDS_AT_ONCE);
        if status < 0 {
            return Err(Error::of(std::io::Error::from_raw_os_error(-status).into()));
        }
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).drain(each);
        Ok(())
    }
}

/// Records as they were read from the ring buffer, one after the other.
#[derive(Default)]
struct Inbox {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Inbox {
    fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    fn drain(&mut self, mut each: impl FnMut(&[u8])) {
        let mut begin = 0;
        for end in self.ends.drain(..) {
            each(&self.bytes[begin..end]);
            begin = end;
        }
        self.bytes.clear();
        self.bytes.shrink_to(INBOX_KEPT_BYTES);
    }
}

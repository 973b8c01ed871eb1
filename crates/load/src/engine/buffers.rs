//! Buffers that the kernel receives into as it needs them, handed to it through a ring that both sides see.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering::Release};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// Memory that is mapped anonymously and goes with its value.
struct Mapping {
    begin: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    fn new(bytes: usize) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping touches no memory that is in use.
        let begin = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        match NonNull::new(begin.cast::<u8>()) {
            Some(begin) if begin.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { begin, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.begin.as_ptr().cast(), self.bytes) };
    }
}

pub(crate) struct Buffers {
    ring: Mapping,
    content: Mapping,
    count: u16,
    bytes_each: usize,
    tail: u16,
}

impl Buffers {
    /// The group that they are registered as.
    pub(crate) const GROUP: u16 = 0;

    /// `count`: a power of two.
    pub(crate) fn new(submitter: &Submitter<'_>, count: u16, bytes_each: usize) -> io::Result<Buffers> {
        let ring = Mapping::new(usize::from(count) * size_of::<BufRingEntry>())?;
        let content = Mapping::new(usize::from(count) * bytes_each)?;
        // SAFETY: the ring lies on a page of its own, has room for `count` entries, and lives as long as the io_uring
        // that it is registered with: whoever owns both drops the io_uring first.
        unsafe {
            submitter.register_buf_ring_with_flags(ring.begin.as_ptr() as u64, count, Self::GROUP, 0)?;
        }
        let mut buffers = Buffers { ring, content, count, bytes_each, tail: 0 };
        for buffer in 0..count {
            buffers.put(buffer);
        }
        buffers.publish();
        Ok(buffers)
    }

    /// What the kernel wrote into one of them.
    #[inline]
    pub(crate) fn content(&self, buffer: u16, length: usize) -> &[u8] {
        let begin = usize::from(buffer) * self.bytes_each;
        debug_assert!(buffer < self.count && length <= self.bytes_each);
        // SAFETY: the range lies within the mapping, and the kernel, which has handed this buffer to us, does not write
        // to it until it is returned.
        unsafe {
            std::slice::from_raw_parts(self.content.begin.as_ptr().add(begin), length.min(self.bytes_each))
        }
    }

    /// Gives one back; the kernel sees it at the next [`publish`](Buffers::publish).
    #[inline]
    pub(crate) fn put(&mut self, buffer: u16) {
        let place = usize::from(self.tail & (self.count - 1));
        // SAFETY: the place lies within the ring, and the kernel reads it only once the tail is beyond it.
        let entry = unsafe { &mut *self.ring.begin.as_ptr().cast::<BufRingEntry>().add(place) };
        entry.set_addr(self.content.begin.as_ptr() as u64 + u64::from(buffer) * self.bytes_each as u64);
        entry.set_len(self.bytes_each as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    pub(crate) fn publish(&self) {
        // SAFETY: the ring begins at a page and has at least one entry; its tail is two aligned bytes in it.
        unsafe {
            let tail = BufRingEntry::tail(self.ring.begin.as_ptr().cast::<BufRingEntry>());
            (*tail.cast::<AtomicU16>()).store(self.tail, Release);
        }
    }
}

//! Bounds on one case: memory, and time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, Once};
use std::time::Duration;

/// What one case may allocate, above what was allocated when it began.
pub const BYTES_MAX: usize = 512 << 20;
/// CPU time of this process that one case may take.
const CPU_S_MAX: u64 = 5;
/// How long one case may take where it waits, or where other programs have the CPUs.
const WALL_S_MAX: u64 = 60;
/// How often the running case is checked, and the CPU time that it may have used since: 2 CPUs, and as much again.
const INTERVAL_MS: u64 = 200;
const INTERVAL_CPU_MS_MAX: u64 = 800;
/// Bytes of a case that a report holds.
const SHOWN_BYTES_MAX: usize = 4096;

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Bytes that may be allocated; a case sets it.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Number of the case that runs; 0 where none does.
static RUNNING: AtomicU64 = AtomicU64::new(0);
/// What a report names and shows of the running case.
static TARGET: Mutex<&str> = Mutex::new("?");
static SHOWN: Mutex<([u8; SHOWN_BYTES_MAX], usize)> = Mutex::new(([0; SHOWN_BYTES_MAX], 0));

/// An allocator that counts, and ends the process with a report where a case allocates more than [`BYTES_MAX`].
///
/// What C code allocates, such as zstd's, is not counted.
pub struct CappedAllocator;

// SAFETY: each call goes to `System` with what the caller gave; counting returns, or ends the process.
unsafe impl GlobalAlloc for CappedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller promises what `System` needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller promises what `System` needs.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller promises what `System` needs.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller promises what `System` needs.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

fn count(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed).wrapping_add(bytes);
    PEAK.fetch_max(live, Relaxed);
    if live > LIMIT.load(Relaxed) && LIMIT.swap(usize::MAX, Relaxed) != usize::MAX {
        report("allocates more than 512 MiB");
        std::process::abort();
    }
}

/// Ends when it is dropped.
pub(crate) struct Case<'a> {
    _alone: MutexGuard<'a, ()>,
    base: usize,
}

impl Case<'_> {
    /// Begins a case; one at a time runs.
    pub(crate) fn begin(target: &'static str, bytes: &[u8]) -> Case<'static> {
        static ALONE: Mutex<()> = Mutex::new(());
        static WATCH: Once = Once::new();
        let alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        WATCH.call_once(|| {
            std::thread::spawn(watch);
        });
        if let Ok(mut name) = TARGET.lock() {
            *name = target;
        }
        if let Ok(mut shown) = SHOWN.lock() {
            let length = bytes.len().min(SHOWN_BYTES_MAX);
            shown.0[..length].copy_from_slice(&bytes[..length]);
            shown.1 = length;
        }
        let base = LIVE.load(Relaxed);
        PEAK.store(base, Relaxed);
        LIMIT.store(base.saturating_add(BYTES_MAX), Relaxed);
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        RUNNING.store(BEGUN.fetch_add(1, Relaxed) + 1, Relaxed);
        Case { _alone: alone, base }
    }

    /// The most bytes that the case had allocated at one time.
    pub(crate) fn peak_bytes(&self) -> usize {
        PEAK.load(Relaxed).saturating_sub(self.base)
    }
}

impl Drop for Case<'_> {
    fn drop(&mut self) {
        RUNNING.store(0, Relaxed);
        LIMIT.store(usize::MAX, Relaxed);
    }
}

/// Adds up what it sees of one case. A virtual machine that is stopped for seconds counts them as its process's CPU time: one interval counts
/// no more than [`INTERVAL_CPU_MS_MAX`].
fn watch() {
    let (mut case, mut case_cpu_ms, mut intervals, mut before_ms) = (0, 0, 0, 0);
    loop {
        std::thread::sleep(Duration::from_millis(INTERVAL_MS));
        let now_ms = cpu_ms();
        let interval_cpu_ms = now_ms.saturating_sub(before_ms).min(INTERVAL_CPU_MS_MAX);
        before_ms = now_ms;
        let running = RUNNING.load(Relaxed);
        if running == 0 || running != case {
            (case, case_cpu_ms, intervals) = (running, 0, 0);
            continue;
        }
        case_cpu_ms += interval_cpu_ms;
        intervals += 1;
        if case_cpu_ms > CPU_S_MAX * 1000 || intervals * INTERVAL_MS > WALL_S_MAX * 1000 {
            report("takes longer than 5 s of CPU time or a minute");
            std::process::abort();
        }
    }
}

fn cpu_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Past the test harness, which would hide it.
fn report(what: &str) {
    let target = TARGET.try_lock().map_or("?", |name| *name);
    let mut text = format!("\nfuzz target {target}: a case {what}; its bytes in hex:\n");
    if let Ok(shown) = SHOWN.try_lock() {
        for byte in &shown.0[..shown.1] {
            let _ = write!(text, "{byte:02x}");
        }
    }
    text.push('\n');
    // SAFETY: standard error is open, and stays so as it is not dropped.
    let mut error = ManuallyDrop::new(unsafe { File::from_raw_fd(2) });
    let _ = error.write_all(text.as_bytes());
}

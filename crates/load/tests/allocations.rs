//! Once a level is warm, a statement allocates nothing.

// Runs alone: it judges what a warm level allocates.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use support::Server;
use whyso_load::{Engine, EngineKind, LoadSpec, NativeWork};
use whyso_workload::{Options, SqlOptions, Workload};

/// Counts what every thread of the process allocates.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps to the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps to the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const QUERIES: u64 = 20_000;

/// Each has histograms of its own.
const TWO_KINDS: &str = "\\set id random(1, 1000)\n\\transaction read@3\nSELECT c FROM sbtest1 WHERE id = :id;\n\
                         \\transaction sum\nSELECT SUM(k) FROM sbtest2 WHERE id < :id;\n";

/// One interval per second is reported meanwhile: a dozen rows, their names and their buckets.
const ALLOWED_PER_SECOND: u64 = 300;

#[test]
fn a_warm_level_allocates_for_its_intervals_and_not_for_its_statements() {
    let server = Server::start(&[]);
    server.load_tables(2, 1000);
    let engines = [EngineKind::Threads, EngineKind::Epoll, EngineKind::IoUring];
    let wanted = engines
        .map(|kind| ("oltp-read-write", kind))
        .into_iter()
        .chain([("oltp-insert", EngineKind::IoUring), ("two-kinds", EngineKind::Epoll)]);
    for (name, kind) in wanted {
        let options = Options { tables: 2, table_size: 1000, ..Options::default() };
        let workload = match name {
            "two-kinds" => Workload::from_sql_file(name, TWO_KINDS, &SqlOptions::default()).unwrap(),
            name => Workload::builtin(name, &options).unwrap(),
        };
        let spec = LoadSpec { engine: kind, ..LoadSpec::new(server.target(), 4, 1) };
        let mut engine = Engine::open(&spec, Arc::new(NativeWork::new(&workload, 1))).unwrap();
        let mut level = engine.level(4).unwrap();
        level.begin_measuring();
        let wait_until = |queries: u64| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while level.live().queries < queries {
                assert!(Instant::now() < deadline, "{name} made no progress");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        wait_until(2_000);
        let begin = Instant::now();
        let before = (ALLOCATIONS.load(Relaxed), level.live().queries);
        wait_until(before.1 + QUERIES);
        let allocations = ALLOCATIONS.load(Relaxed) - before.0;
        let queries = level.live().queries - before.1;
        let seconds = begin.elapsed().as_secs() + 2;
        assert_eq!(level.stop().failure, None);
        assert!(
            allocations <= ALLOWED_PER_SECOND * seconds && allocations < queries / 5,
            "{name}, {kind}: {allocations} allocations in {queries} queries and less than {seconds} s"
        );
        println!("{name}, {kind}: {allocations} allocations in {queries} queries");
    }
}

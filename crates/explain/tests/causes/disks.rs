//! Causes that lie with memory, files and disks.

use whyso_explain::model::Cause;

use crate::{locked, stopped};

const WRITES: [(&str, f64); 2] = [("Handler_commit", 1.0), ("Handler_update", 2.0)];

#[test]
fn memory_that_is_swapped() {
    let shares = [("request_cpu_ns", 0.1), ("request_page_fault_ns", 0.7), ("request_lock_ns", 0.1)];
    stopped(16, 20.0, 0.7)
        .traced(&shares)
        .counter("memory", "pswpin", "", 4_000.0)
        .counter("memory", "pswpout", "", 4_000.0)
        .is(Cause::Swap);
}

#[test]
fn flushes_of_the_redo_log() {
    // A few users are in fsync themselves.
    let shares = [("request_cpu_ns", 0.1), ("request_file_sync_ns", 0.8)];
    let build =
        stopped(8, 20.0, 0.6).traced(&shares).status(&WRITES).set("innodb_flush_log_at_trx_commit", "1");
    let explanation = build.file("/data/ib_logfile0", "file_sync", "connection", 6.4).is(Cause::RedoFlush);
    assert!(
        explanation.suspects[0].text.contains("in fsync 100 % of the time"),
        "{:#?}",
        explanation.suspects
    );
    // One of many commits for all; that the others sleep until it is done, only their stacks show.
    let build = || locked(64).status(&WRITES).set("innodb_flush_log_at_trx_commit", "1");
    let one_syncs = || build().file("/data/ib_logfile0", "file_sync", "connection", 0.95);
    one_syncs().is_but_possible(Cause::Unknown, Cause::RedoFlush);
    one_syncs().stacks(&[("redo_flush", 300)]).is(Cause::RedoFlush);
    let others = one_syncs().stacks(&[("metadata_lock", 300)]);
    let explanation = others.is(Cause::MetadataLock);
    assert!(
        explanation.possible.iter().all(|possible| possible.id != Cause::RedoFlush),
        "stacks show that nobody waited for it"
    );
    // MySQL 8 has a thread of its own for it.
    build()
        .file("/data/#innodb_redo/#ib_redo7", "file_sync", "log flusher", 0.9)
        .is_but_possible(Cause::Unknown, Cause::RedoFlush);
    // Without a trace, by the disk's own counters.
    let build = stopped(64, 20.0, 0.6).status(&WRITES).set("innodb_flush_log_at_trx_commit", "1");
    build.counter("disk", "flush_ns", "vda", 0.9e9).is_but_possible(Cause::Unknown, Cause::RedoFlush);
}

#[test]
fn writes_of_the_redo_log() {
    let build = || locked(64).status(&WRITES).status(&[("Innodb_log_waits", 0.2)]);
    build().is_but_possible(Cause::Unknown, Cause::RedoWrite);
    build().stacks(&[("redo_write", 300)]).is(Cause::RedoWrite);
}

#[test]
fn the_binary_log() {
    let run = locked(64).status(&WRITES).set("log_bin", "ON").set("sync_binlog", "1");
    let run = run.set("innodb_flush_log_at_trx_commit", "2");
    let run = run.file("/data/mysql-bin.000002", "file_sync", "connection", 0.9);
    run.is_but_possible(Cause::Unknown, Cause::Binlog);
    run.stacks(&[("binlog", 300)]).is(Cause::Binlog);
}

#[test]
fn a_checkpoint_that_holds_writers_back() {
    locked(64)
        .status(&WRITES)
        .set("innodb_flush_log_at_trx_commit", "2")
        .gauge("Innodb_checkpoint_age", 7.9e6)
        .gauge("Innodb_checkpoint_max_age", 8.0e6)
        .is_but_possible(Cause::Unknown, Cause::Checkpoint);
}

#[test]
fn the_doublewrite_buffer() {
    let shares = [("request_cpu_ns", 0.1), ("request_file_write_ns", 0.4), ("request_file_sync_ns", 0.4)];
    let run = stopped(16, 20.0, 0.7).traced(&shares).status(&[("Innodb_buffer_pool_wait_free", 0.01)]);
    run.file("/data/#ib_16384_0.dblwr", "file_sync", "connection", 6.4)
        .file("/data/#ib_16384_0.dblwr", "file_write", "connection", 6.4)
        .is(Cause::Doublewrite);
}

#[test]
fn pages_that_are_not_in_memory() {
    let shares = [("request_cpu_ns", 0.1), ("request_file_read_ns", 0.8)];
    let reads = [("Innodb_buffer_pool_reads", 8.0), ("Innodb_buffer_pool_read_requests", 90.0)];
    let build = || stopped(16, 10.0, 0.7).traced(&shares).status(&reads);
    build().file("/data/shop/orders.ibd", "file_read", "connection", 12.8).is(Cause::BufferPoolMiss);
    // Where the tracer does not know the files, nobody measured what was read.
    build().is_but_possible(Cause::Unknown, Cause::BufferPoolMiss);
}

#[test]
fn pages_that_must_be_written_first() {
    let build = || locked(64).status(&WRITES).status(&[("Innodb_buffer_pool_wait_free", 0.5)]);
    build().is_but_possible(Cause::Unknown, Cause::PageFlush);
    build().stacks(&[("buffer_pool", 300)]).is(Cause::PageFlush);
}

#[test]
fn locks_of_an_inode() {
    let shares = [("request_cpu_ns", 0.1), ("request_kernel_lock_ns", 0.7), ("request_file_write_ns", 0.1)];
    let run = stopped(32, 10.0, 0.7).traced(&shares);
    let explanation =
        run.file("/data/sbtest/sbtest1.ibd", "kernel_lock", "connection", 20.0).is(Cause::KernelInodeLock);
    assert!(explanation.suspects[0].text.contains("sbtest1.ibd"));
}

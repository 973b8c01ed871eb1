//! What tests of recordings begin and end with.

use std::path::Path;

use whyso_record::{Options, Recorder, list_runs};

pub(crate) fn options() -> Options {
    Options { reserve_bytes: 1 << 20, own_cost: false, ..Options::default() }
}

/// Ends a recorder as a crash would: what it gave to the system is there, nothing is sealed.
pub(crate) fn abandon(recorder: Recorder, dir: &Path) {
    drop(recorder);
    let waited = std::time::Instant::now();
    while list_runs(dir.parent().unwrap()).unwrap().iter().any(|run| run.path == dir && run.live) {
        assert!(waited.elapsed().as_secs() < 20, "the recorder does not end");
        std::thread::yield_now();
    }
}

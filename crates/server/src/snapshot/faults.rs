//! A store of snapshots whose file system fails at any call: a snapshot is whole or none, and the next run can keep one again.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use whyso_testing::faults::{Fault, Faults, spread};

use super::tests::facts;
use super::{Store, UNFINISHED_PREFIX};
use crate::error::Result;

const CHILD_DIR: &str = "WHYSO_SNAPSHOT_FAULTS_CHILD";
const CONTENT: &[u8] = &[7; 10_000];

fn store(folder: &Path) -> Store {
    Store { folder: folder.join("snapshots"), max_bytes: u64::MAX }
}

/// Keeps one snapshot, uses another, and removes a third.
fn work(folder: &Path) -> Result<()> {
    let (store, used) = (store(folder), folder.join("used"));
    store.save(&facts(1), &folder.join("data"))?;
    store.restore(&facts(2), &used)?;
    store.trim(&facts(1).key()?)?;
    store.remove(&facts(3).key()?)
}

#[test]
fn the_child_keeps_a_snapshot() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    std::process::exit(i32::from(work(Path::new(&dir)).is_err()));
}

/// A snapshot in the store can be restored whole.
fn is_whole(store: &Store, rows: u64) -> bool {
    let target = tempfile::tempdir().unwrap();
    let restored = store.restore(&facts(rows), target.path()).unwrap();
    let content = std::fs::read(target.path().join("mysql/ibdata1"));
    assert!(!restored || content.is_ok_and(|content| content == CONTENT), "snapshot {rows} is torn");
    restored
}

fn check(folder: &Path, output: &Output, what: &str) {
    let output_text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!output_text.contains("panicked") && output.status.code() != Some(101), "{what}\n{output_text}");
    let store = store(folder);
    assert!(is_whole(&store, 1) || !output.status.success(), "{what}\n{output_text}");
    assert!(is_whole(&store, 2), "a snapshot that was only used is gone: {what}\n{output_text}");
    is_whole(&store, 3);
    // The next run keeps it, also where it is in the way.
    store.save(&facts(1), &folder.join("data")).unwrap();
    assert!(is_whole(&store, 1), "{what}\n{output_text}");
    store.remove(&facts(3).key().unwrap()).unwrap();
    let keys = [facts(1).key().unwrap(), facts(2).key().unwrap()];
    for entry in std::fs::read_dir(&store.folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // A later trim removes what is unfinished.
        assert!(keys.contains(&name) || name.starts_with(UNFINISHED_PREFIX), "{name}: {what}\n{output_text}");
    }
}

#[test]
fn a_snapshot_is_whole_or_none_after_a_fault_at_any_call() {
    let Some(faults) = Faults::compile() else { return };
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let make = |name: String| {
        let folder = place.path().join(name);
        std::fs::create_dir_all(folder.join("data/mysql")).unwrap();
        std::fs::create_dir(folder.join("used")).unwrap();
        std::fs::write(folder.join("data/mysql/ibdata1"), CONTENT).unwrap();
        for rows in [2, 3] {
            store(&folder).save(&facts(rows), &folder.join("data")).unwrap();
        }
        folder
    };
    let run = |folder: &Path, fault| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["snapshot::faults::the_child_keeps_a_snapshot", "--exact", "--nocapture"]);
        child.env(CHILD_DIR, folder);
        faults.inject(&mut child, &folder.join("snapshots"), fault);
        child.stdin(Stdio::null()).output().unwrap()
    };
    let counted = make("counted".to_string());
    let output = run(&counted, None);
    let calls = faults.calls();
    assert!(output.status.success() && calls.len() > 10, "{} calls, {output:?}", calls.len());
    check(&counted, &output, "without a fault");
    let mut cases = 0;
    for fault in Fault::ALL {
        for at in spread(calls.len(), usize::MAX).into_iter().filter(|at| fault.matters_at(&calls[at - 1])) {
            let folder = make(format!("{fault:?}-{at}"));
            let output = run(&folder, Some((fault, at)));
            check(&folder, &output, &format!("{fault:?} at call {at}, {:?}", calls[at - 1]));
            cases += 1;
        }
    }
    println!("{cases} cases of {} calls", calls.len());
}

#[test]
fn a_snapshot_that_cannot_be_read_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("data/mysql")).unwrap();
    std::fs::write(place.path().join("data/mysql/ibdata1"), CONTENT).unwrap();
    let store = store(place.path());
    store.save(&facts(1), &place.path().join("data")).unwrap();
    std::fs::write(store.folder.join(facts(1).key().unwrap()).join(super::FACTS_FILE), "").unwrap();
    assert!(!is_whole(&store, 1));
    store.save(&facts(1), &place.path().join("data")).unwrap();
    assert!(is_whole(&store, 1));
}

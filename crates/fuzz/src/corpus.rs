//! What is kept in this folder: two small recordings of a real server, and cases.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde_json::Value;

pub const RUN: &str = "run.json";

/// One was finished; the recorder of the other was killed, so that it has write-ahead files of all streams.
const RECORDINGS: &[u8] = include_bytes!("../corpus/recordings.tar.gz");

/// A recording's files by name.
pub type Files = Vec<(String, Vec<u8>)>;

/// The finished one, and the one whose recorder was killed.
pub static WHOLE: LazyLock<Files> = LazyLock::new(|| files_of("whole"));
pub static KILLED: LazyLock<Files> = LazyLock::new(|| files_of("killed"));
/// The killed one with the levels of the other, moved to its time: whatever changes in a write-ahead file reaches the findings.
pub static KILLED_WITH_LEVELS: LazyLock<Files> = LazyLock::new(with_levels);

/// # Panics
/// The archive is not as it was committed.
fn files_of(run: &str) -> Files {
    let mut archive = tar::Archive::new(GzDecoder::new(RECORDINGS));
    let mut files = Files::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").into_owned();
        if path.starts_with(run) && entry.header().entry_type().is_file() {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("its content");
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            files.push((name, content));
        }
    }
    files.sort();
    files
}

/// # Panics
/// The recordings are not as they were committed.
fn with_levels() -> Files {
    let mut files = KILLED.clone();
    let run = files.iter_mut().find(|(name, _)| name == RUN).expect("a run.json");
    let whole = WHOLE.iter().find(|(name, _)| name == RUN).expect("a run.json");
    let mut killed: Value = serde_json::from_slice(&run.1).expect("JSON");
    let whole: Value = serde_json::from_slice(&whole.1).expect("JSON");
    let began_ns = |run: &Value| run["anchors"][0]["monotonic_ns"].as_i64().expect("an anchor");
    let later_ns = began_ns(&killed) - began_ns(&whole);
    killed["levels"] = whole["levels"].clone();
    for level in killed["levels"].as_array_mut().expect("levels") {
        for name in ["begin_ns", "end_ns"] {
            let at_ns = &mut level["window"][name];
            *at_ns = (at_ns.as_i64().expect("a time") + later_ns).into();
        }
    }
    run.1 = serde_json::to_vec(&killed).expect("JSON");
    files
}

fn folder(of: &str, target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of).join(target)
}

/// Cases of a target, with their names: those that reach code that others do not, and those that failed once.
pub fn cases(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut cases = Vec::new();
    for from in [folder("corpus", target), folder("failed", target)] {
        for entry in fs::read_dir(from).into_iter().flatten().flatten() {
            if let Ok(bytes) = fs::read(entry.path()) {
                cases.push((entry.file_name().to_string_lossy().into_owned(), bytes));
            }
        }
    }
    cases.sort();
    cases
}

/// Keeps a case that failed, for the next run of the tests. Returns where.
pub fn keep_failed(target: &str, bytes: &[u8]) -> PathBuf {
    let path = folder("failed", target).join(format!("{:08x}", crc32c::crc32c(bytes)));
    // Where the sources can't be written, the report still shows the bytes.
    let _ = fs::create_dir_all(folder("failed", target)).and_then(|()| fs::write(&path, bytes));
    path
}

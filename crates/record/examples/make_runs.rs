//! Makes many runs out of a few for benches: `make_runs FOLDER COUNT RUN…`. Each has the files of one of the given runs as hard links, and a
//! `run.json` of its own that is as large. Runs that are in the folder stay.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

const RUN: &str = "run.json";
const MANIFEST: &str = "manifest.jsonl";
const NOTES: &str = "notes.jsonl";
/// Between the starts of two runs.
const EVERY_NS: i64 = 600_000_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.get(1).and_then(|count| count.parse::<usize>().ok());
    let (Some(folder), Some(count), true) = (arguments.first(), count, arguments.len() > 2) else {
        eprintln!("give a folder, a number of runs, and the folders of one or more runs to copy");
        return ExitCode::from(2);
    };
    let originals: Vec<PathBuf> = arguments[2..].iter().map(PathBuf::from).collect();
    match make(Path::new(folder), count, &originals) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn make(folder: &Path, count: usize, originals: &[PathBuf]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let there = fs::read_dir(folder)?.count();
    for number in there..there + count {
        let original = &originals[number % originals.len()];
        let name = format!("run-{number:06}");
        let dir = folder.join(&name);
        DirBuilder::new().mode(0o700).create(&dir)?;
        let mut run: Value = serde_json::from_slice(&fs::read(original.join(RUN))?)?;
        vary(&mut run, &name, number);
        let json = serde_json::to_vec_pretty(&run)?;
        fs::write(dir.join(RUN), &json)?;
        fs::write(dir.join(MANIFEST), manifest(&original.join(MANIFEST), &json)?)?;
        if number % 10 == 0 {
            let note = json!({ "t_ns": 0, "text": format!("note on number {number}") });
            fs::write(dir.join(NOTES), format!("{note}\n"))?;
        }
        for entry in fs::read_dir(original)? {
            let entry = entry?;
            let is_own = [RUN, MANIFEST, NOTES].iter().any(|own| entry.file_name() == *own);
            if entry.file_type()?.is_file() && !is_own {
                fs::hard_link(entry.path(), dir.join(entry.file_name()))?;
            }
        }
    }
    Ok(())
}

/// Changes what a list shows, and leaves the size as it is.
fn vary(run: &mut Value, name: &str, number: usize) {
    run["id"] = name.into();
    run["host"]["hostname"] = format!("db{}", number % 7).into();
    for anchor in run["anchors"].as_array_mut().into_iter().flatten() {
        let wall_ns = anchor["wall_ns"].as_i64().unwrap_or_default();
        anchor["wall_ns"] = (wall_ns + number as i64 * EVERY_NS).into();
    }
    for level in run["levels"].as_array_mut().into_iter().flatten() {
        let per_s = level["result"]["transactions_per_s"].as_f64().unwrap_or_default();
        level["result"]["transactions_per_s"] = (per_s * (1.0 + (number % 100) as f64 / 1e3)).into();
    }
}

/// The original's manifest, with the line of the new `run.json` last. A file may have several lines.
fn manifest(original: &Path, run: &[u8]) -> io::Result<String> {
    let line = json!({ "file": RUN, "bytes": run.len(), "crc32c": crc32c::crc32c(run) }).to_string();
    Ok(fs::read_to_string(original)? + &format!("{:08x} {line}\n", crc32c::crc32c(line.as_bytes())))
}

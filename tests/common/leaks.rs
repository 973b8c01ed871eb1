//! Whether a password is anywhere in what the program leaves behind or shows.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use arrow::array::{Array, AsArray};
use base64::Engine;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// How often the process list is read.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Those of `secrets` that are in a file or a folder. Parquet files and compressed parts of a report are searched, too.
pub(crate) fn found_in(path: &Path, secrets: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let about = fs::symlink_metadata(path).unwrap();
    if about.is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            found.extend(found_in(&entry.path(), secrets));
        }
    } else if about.is_file() {
        let bytes = fs::read(path).unwrap();
        let name = path.display().to_string();
        found.extend(found_in_bytes(&name, &bytes, secrets));
        if name.ends_with(".parquet") {
            for text in texts_of(path) {
                found.extend(found_in_bytes(&name, text.as_bytes(), secrets));
            }
        } else if name.ends_with(".html") {
            for part in inflated(&String::from_utf8_lossy(&bytes)) {
                found.extend(found_in_bytes(&name, &part, secrets));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

pub(crate) fn found_in_bytes(name: &str, bytes: &[u8], secrets: &[String]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    secrets
        .iter()
        .filter(|secret| text.contains(*secret))
        .map(|secret| format!("{secret} in {name}"))
        .collect()
}

fn texts_of(path: &Path) -> Vec<String> {
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap().build().unwrap();
    let mut texts = Vec::new();
    for batch in reader {
        for column in batch.unwrap().columns() {
            let Some(strings) = column.as_string_opt::<i32>() else { continue };
            texts.extend((0..strings.len()).map(|row| strings.value(row).to_string()));
        }
    }
    texts.sort();
    texts.dedup();
    texts
}

/// The parts of a page that are compressed.
fn inflated(page: &str) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    for part in page.split("<script").skip(1) {
        let Some((_, from)) = part.split_once('>') else { continue };
        let text = from.split_once("</script>").map_or(from, |(text, _)| text);
        if let Ok(deflated) = base64::engine::general_purpose::STANDARD.decode(text.trim()) {
            let mut bytes = Vec::new();
            // What is not compressed was searched as it is.
            let _ = flate2::read::DeflateDecoder::new(&deflated[..]).read_to_end(&mut bytes);
            parts.push(bytes);
        }
    }
    parts
}

/// Reads the process list until it is ended: command lines of a process and its children, and the children's environment.
pub(crate) struct ProcessList {
    stop: Arc<AtomicBool>,
    reader: JoinHandle<Vec<String>>,
}

impl ProcessList {
    /// `for_environment`: secrets that no child is to have in its environment. `may_show`: the beginnings of command lines of children that the
    /// user gave a password himself.
    pub(crate) fn watch(pid: u32, secrets: Vec<String>, may_show: &'static [&'static str]) -> ProcessList {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let reader = std::thread::spawn(move || {
            let mut found = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                for child in descendants(pid) {
                    let Ok(shown) = fs::read(format!("/proc/{child}/cmdline")) else { continue };
                    let shown_text = String::from_utf8_lossy(&shown).replace('\0', " ");
                    let is_given = may_show.iter().any(|beginning| shown_text.starts_with(beginning));
                    if child == pid || !is_given {
                        found.extend(found_in_bytes(&shown_text, &shown, &secrets));
                    }
                    // Between fork and exec a child is a copy of its parent.
                    let is_copy = fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|own| own == shown);
                    if child != pid && !is_given && !is_copy {
                        let environment = fs::read(format!("/proc/{child}/environ")).unwrap_or_default();
                        found.extend(found_in_bytes(
                            &format!("environment of {shown_text}"),
                            &environment,
                            &secrets,
                        ));
                    }
                }
                found.sort();
                found.dedup();
                sleep(CHECK_INTERVAL);
            }
            found
        });
        ProcessList { stop, reader }
    }

    pub(crate) fn into_leaks(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.reader.join().unwrap()
    }
}

/// A process and all that it started.
fn descendants(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while at < all.len() {
        let tasks = fs::read_dir(format!("/proc/{}/task", all[at])).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        at += 1;
    }
    all
}

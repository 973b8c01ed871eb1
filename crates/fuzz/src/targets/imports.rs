//! Backups that a stranger made.

use std::fs;

use whyso_record::{Recording, import_from, list_runs};

use super::change::damage;
use super::folders;
use crate::choices::Choices;

const BLOCK: usize = 512;
const ENTRIES_MAX: usize = 7;
const CONTENT_BYTES_MAX: usize = 2000;

const NAMES: [&str; 18] = [
    "one/run.json",
    "two/run.json",
    "one/notes.jsonl",
    "one/samples-000001.wal",
    "./one/events-000001.parquet",
    "one/",
    "one",
    "../outside",
    "one/../../outside",
    "/tmp/whyso-fuzz-outside",
    "one/two/three",
    "..",
    ".importing-0/run.json",
    ".hidden/run.json",
    "one/.reserve",
    "one\\..\\x",
    "one/\u{1b}[31m",
    "",
];

/// An archive is imported, or nothing of it is. Whatever it contains, only runs lie where runs are.
///
/// # Panics
/// Something lies elsewhere, or is no plain file.
pub fn imports(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut archive = Vec::new();
    for _ in 0..=choices.below(ENTRIES_MAX) {
        entry(&mut choices, &mut archive);
    }
    if !choices.once_in(8) {
        archive.resize(archive.len() + 2 * BLOCK, 0);
    }
    if choices.once_in(4) {
        damage(&mut choices, &mut archive);
    }
    let folder = folders::temporary();
    let runs = folder.path().join("runs");
    let result = import_from(&archive[..], "it", &runs);
    assert_eq!(fs::read_dir(folder.path()).map_or(0, Iterator::count), 1, "something lies outside");
    assert!(!std::path::Path::new("/tmp/whyso-fuzz-outside").exists(), "something lies outside");
    let mut found = Vec::new();
    for run in fs::read_dir(&runs).into_iter().flatten().flatten() {
        assert!(run.file_type().is_ok_and(|kind| kind.is_dir()), "{run:?} is no folder");
        found.push(run.file_name().to_string_lossy().into_owned());
        for file in fs::read_dir(run.path()).into_iter().flatten().flatten() {
            assert!(file.file_type().is_ok_and(|kind| kind.is_file()), "{file:?} is no plain file");
        }
        let _ = Recording::open(&run.path());
    }
    found.sort();
    let mut imported = result.map(|(imported, _)| imported).unwrap_or_default();
    imported.sort();
    assert_eq!(imported, found, "what was imported is what lies there");
    assert_eq!(list_runs(&runs).map_or(0, |listed| listed.len()), found.len());
}

fn entry(choices: &mut Choices<'_>, archive: &mut Vec<u8>) {
    let name = *choices.one_of(&NAMES);
    let content = match choices.byte() % 4 {
        0 | 1 if name.ends_with("run.json") => b"{\"format\":1,\"id\":\"one\"}".to_vec(),
        0 | 1 => choices.some(40).to_vec(),
        2 => NAMES[choices.below(NAMES.len())].as_bytes().to_vec(),
        _ => b"12 path=../x\n".repeat(choices.below(CONTENT_BYTES_MAX / 13)),
    };
    let mut header = tar::Header::new_gnu();
    let kinds = b"0000000015LKxgVS2346\0D7";
    let is_plain = !choices.once_in(3);
    let kind = if is_plain { b'0' } else { *choices.one_of(kinds) };
    header.as_mut_bytes()[156] = kind;
    let name_bytes = name.as_bytes();
    header.as_mut_bytes()[..name_bytes.len()].copy_from_slice(name_bytes);
    if choices.once_in(6) {
        // As the format's own writers would refuse to.
        let link = NAMES[choices.below(NAMES.len())].as_bytes();
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link);
    }
    let size = if choices.once_in(10) { choices.number() } else { content.len() as u64 };
    header.set_size(size);
    header.set_mode(0o4777);
    header.set_cksum();
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(&content);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

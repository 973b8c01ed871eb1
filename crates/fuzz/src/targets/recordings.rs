//! Whole folders of recordings.

use std::fs;
use std::path::Path;

use super::change::{damage, damage_write_ahead, fit_manifest};
use super::{folders, read};
use crate::choices::Choices;
use crate::corpus::{Files, KILLED, KILLED_WITH_LEVELS, WHOLE};

const CHANGES_MAX: usize = 5;

/// A recording with changed files is read as far as it goes, by everything that reads recordings.
pub fn recordings(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let (base, other): (&Files, &Files) = match choices.byte() % 3 {
        0 => (&WHOLE, &KILLED),
        1 => (&KILLED_WITH_LEVELS, &WHOLE),
        _ => (&KILLED, &WHOLE),
    };
    let mut files = base.clone();
    for _ in 0..=choices.below(CHANGES_MAX) {
        change(&mut choices, &mut files, other);
    }
    if !choices.once_in(4) {
        fit_manifest(&mut files);
    }
    let folder = folders::temporary();
    let dir = folders::write(folder.path(), "run", &files);
    if choices.once_in(8) {
        put_no_plain_file(&mut choices, &dir, &files);
    }
    read::everything(&dir);
}

fn change(choices: &mut Choices<'_>, files: &mut Files, other: &Files) {
    let at = choices.below(files.len());
    let from = choices.below(other.len());
    let within = choices.below(files.len());
    match choices.byte() % 16 {
        0 => drop(files.remove(at)),
        1 => files[at].1.clone_from(&other[from].1),
        2 => files[at].1 = files[within].1.clone(),
        // What one stream holds, under another's name.
        3 => files.push((other[from].0.clone(), other[from].1.clone())),
        4 => {
            let name = renumbered(choices, &files[at].0);
            files.push((name, files[at].1.clone()));
        }
        5 => files[at].1.clear(),
        _ if files[at].0.ends_with(".wal") => damage_write_ahead(choices, &mut files[at].1),
        _ => damage(choices, &mut files[at].1),
    }
    if files.is_empty() {
        files.push(("run.json".to_string(), Vec::new()));
    }
}

/// The name of another segment of a file's stream.
fn renumbered(choices: &mut Choices<'_>, name: &str) -> String {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let stream = stem.rsplit_once('-').map_or(stem, |(stream, _)| stream);
    let segments =
        ["000002", "000001_000002", "000000", "4294967295", "000001_4294967295", "000009_000008", "01", ""];
    let extension = if choices.once_in(4) { "wal" } else { extension };
    format!("{stream}-{}.{extension}", choices.one_of(&segments))
}

/// A link, a pipe or a folder in place of a file: none is followed, and none is waited for.
fn put_no_plain_file(choices: &mut Choices<'_>, dir: &Path, files: &Files) {
    let path = dir.join(&files[choices.below(files.len())].0);
    let _ = fs::remove_file(&path);
    let _ = match choices.byte() % 4 {
        0 => std::os::unix::fs::symlink("/dev/zero", &path),
        1 => std::os::unix::fs::symlink(dir, &path),
        2 => fs::create_dir(&path),
        _ => {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).map_err(Into::into)
        }
    };
}

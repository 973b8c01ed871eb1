//! Write-ahead files whose checksums are right.

use super::change::damage_write_ahead;
use super::{folders, read};
use crate::choices::Choices;
use crate::corpus::{Files, KILLED, RUN};

const CHANGES_MAX: usize = 6;
const SERIES: &str = "series.wal";

/// Any content of a frame is read or left out.
pub fn write_ahead(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let is_needed = |name: &str| name == RUN || name == SERIES || name.starts_with("collections-");
    let mut files: Files = KILLED.iter().filter(|(name, _)| is_needed(name)).cloned().collect();
    let streams: Vec<_> = KILLED.iter().filter(|(name, _)| name.ends_with(".wal")).collect();
    let (name, content) = choices.one_of(&streams);
    files.retain(|(other, _)| other != name);
    let mut content = content.clone();
    for _ in 0..=choices.below(CHANGES_MAX) {
        damage_write_ahead(&mut choices, &mut content);
    }
    files.push((name.clone(), content));
    let folder = folders::temporary();
    read::tables(&folders::write(folder.path(), "run", &files));
}

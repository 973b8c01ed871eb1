//! The size of a folder that others write to.

use std::path::Path;

/// Folders within folders that are counted.
const MAX_DEPTH: u32 = 24;

/// Returns the bytes of all files below a folder. Files that come and go meanwhile may be missed.
pub(super) fn bytes_below(folder: &Path) -> u64 {
    fn count(folder: &Path, depth: u32) -> u64 {
        let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
        let mut bytes = 0;
        for entry in entries.flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            bytes += match facts.is_dir() {
                true if depth > 0 => count(&entry.path(), depth - 1),
                true => 0,
                false => facts.len(),
            };
        }
        bytes
    }
    count(folder, MAX_DEPTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_below_a_folder_are_those_of_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/b/c"), [0; 10]).unwrap();
        std::fs::write(folder.path().join("d"), [0; 5]).unwrap();
        assert_eq!(bytes_below(folder.path()), 15);
        assert_eq!(bytes_below(&folder.path().join("none")), 0);
    }
}

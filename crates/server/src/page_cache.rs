//! The kernel's cache of files.

use std::path::Path;

use rustix::fs::{Advice, fadvise, fdatasync};

use crate::error::{Result, io};

/// Folders in a data folder lie no deeper.
const DEPTH_MAX: u32 = 8;

/// Takes the files below a folder out of the page cache, after what was changed of them has been written.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io) where the folder can't be read. A file that goes away meanwhile is none of it.
pub fn drop_page_cache(folder: &Path) -> Result<()> {
    drop_below(folder, DEPTH_MAX)
}

fn drop_below(folder: &Path, depth: u32) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(io("cannot read the folder", folder))?.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => drop_below(&path, depth - 1)?,
            Ok(kind) if kind.is_file() => {
                let Ok(file) = std::fs::File::open(&path) else { continue };
                // The kernel drops no page that is not on the disk yet.
                let _ = fdatasync(&file).and_then(|()| fadvise(&file, 0, None, Advice::DontNeed));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of a file that are in memory, by mincore(2).
    fn resident_pages(path: &Path) -> usize {
        let file = std::fs::File::open(path).unwrap();
        let length = file.metadata().unwrap().len() as usize;
        let mut pages = vec![0_u8; length.div_ceil(4096)];
        // SAFETY: a mapping of our own, of the file's whole length, that is only asked about and then removed.
        unsafe {
            use std::os::fd::AsRawFd;
            let at = libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            );
            assert_ne!(at, libc::MAP_FAILED);
            assert_eq!(libc::mincore(at, length, pages.as_mut_ptr()), 0);
            libc::munmap(at, length);
        }
        pages.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn files_are_out_of_memory_afterwards() {
        // In memory there is nothing to drop to.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let below = folder.path().join("schema");
        std::fs::create_dir(&below).unwrap();
        let path = below.join("t.ibd");
        std::fs::write(&path, vec![7_u8; 4 << 20]).unwrap();
        assert_eq!(resident_pages(&path), 1024);
        drop_page_cache(folder.path()).unwrap();
        assert!(resident_pages(&path) < 64, "{}", resident_pages(&path));
        assert!(drop_page_cache(&folder.path().join("nothing")).is_err());
    }
}

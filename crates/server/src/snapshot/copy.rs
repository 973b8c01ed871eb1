//! Copies a data folder: by reflink where the file system can, else as the kernel copies best.

use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{SeekFrom, copy_file_range, ftruncate, ioctl_ficlone, seek};

use crate::error::{Error, Result, io};

/// Folders within folders of a data folder.
const MAX_DEPTH: u32 = 8;
const MAX_COPIERS: usize = 8;

/// Size and way of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CopyResult {
    /// Allocated on disk; holes are left out.
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    pub(crate) reflinked_files: u64,
}

/// Copies the content of `from` into the existing folder `to`, leaving out what `skip` names.
pub(crate) fn copy_folder(from: &Path, to: &Path, skip: fn(&str) -> bool) -> Result<CopyResult> {
    let mut files = Vec::new();
    list(from, Path::new(""), to, skip, MAX_DEPTH, &mut files)?;
    // the longest first, so that no copier is left alone with one at the end
    files.sort_by_key(|(_, bytes)| *bytes);
    let copiers = std::thread::available_parallelism().map_or(1, |cpus| cpus.get()).min(MAX_COPIERS);
    let queue = Mutex::new(files);
    let total = Mutex::new(Ok(CopyResult::default()));
    std::thread::scope(|scope| {
        for _ in 0..copiers {
            scope.spawn(|| copy_files(from, to, &queue, &total));
        }
    });
    total.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn copy_files(from: &Path, to: &Path, queue: &Mutex<Vec<(PathBuf, u64)>>, total: &Mutex<Result<CopyResult>>) {
    let next = || queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
    while let Some((name, _)) = next() {
        let outcome = copy_file(&from.join(&name), &to.join(&name));
        let mut total = total.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match (&mut *total, outcome) {
            (Ok(so_far), Ok(copied)) => {
                so_far.bytes += copied.bytes;
                so_far.files += copied.files;
                so_far.reflinked_files += copied.reflinked_files;
            }
            (Ok(_), Err(error)) => *total = Err(error),
            // another one failed: the copy is worth nothing any more
            (Err(_), _) => return,
        }
    }
}

/// Lists the files below a folder and makes the folders of the copy.
fn list(
    from: &Path,
    below: &Path,
    to: &Path,
    skip: fn(&str) -> bool,
    depth: u32,
    files: &mut Vec<(PathBuf, u64)>,
) -> Result<()> {
    let folder = from.join(below);
    let entries = std::fs::read_dir(&folder).map_err(io("cannot list", &folder))?;
    for entry in entries {
        let entry = entry.map_err(io("cannot list", &folder))?;
        let name = below.join(entry.file_name());
        let path = from.join(&name);
        let facts = entry.metadata().map_err(io("cannot examine", &path))?;
        if facts.is_dir() {
            if depth == 0 {
                return Err(Error::Binary(format!(
                    "the data folder '{}' is nested too deep to be copied",
                    from.display()
                )));
            }
            let subfolder = to.join(&name);
            std::fs::create_dir(&subfolder).map_err(io("cannot make the folder", &subfolder))?;
            list(from, &name, to, skip, depth - 1, files)?;
        } else if facts.is_file() && !entry.file_name().to_str().is_some_and(skip) {
            files.push((name, facts.len()));
        }
        // sockets and links are no data; a link would lead out of the folder
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<CopyResult> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
    let source = File::open(from).map_err(io("cannot read", from))?;
    let facts = source.metadata().map_err(io("cannot examine", from))?;
    let target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(facts.permissions().mode() & 0o777)
        .open(to)
        .map_err(io("cannot write", to))?;
    let mut copied = CopyResult { bytes: facts.blocks() * 512, files: 1, reflinked_files: 0 };
    if ioctl_ficlone(&target, &source).is_ok() {
        copied.reflinked_files = 1;
        return Ok(copied);
    }
    copy_content(&source, &target, &facts).map_err(|errno| io("cannot copy", from)(errno.into()))?;
    Ok(copied)
}

/// Copies what is written, and leaves holes as holes: a redo log is mostly empty.
fn copy_content(source: &File, target: &File, facts: &Metadata) -> rustix::io::Result<()> {
    ftruncate(target, facts.len())?;
    let mut at = 0;
    while at < facts.len() {
        let begin = match seek(source, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            // nothing but a hole up to the end
            Err(rustix::io::Errno::NXIO) => break,
            // a file system that knows no holes
            Err(_) => at,
        };
        let end = seek(source, SeekFrom::Hole(begin)).unwrap_or(facts.len()).min(facts.len());
        copy_range(source, target, begin, end)?;
        at = end.max(begin + 1);
    }
    Ok(())
}

fn copy_range(source: &File, target: &File, begin: u64, end: u64) -> rustix::io::Result<()> {
    let (mut read_at, mut write_at) = (begin, begin);
    while read_at < end {
        let wanted = (end - read_at).min(1 << 30) as usize;
        match copy_file_range(source.as_fd(), Some(&mut read_at), target.as_fd(), Some(&mut write_at), wanted)
        {
            // it was cut short meanwhile
            Ok(0) => return Err(rustix::io::Errno::IO),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {}
            // file systems between which the kernel does not copy
            Err(_) => return copy_by_hand(source, target, read_at, end),
        }
    }
    Ok(())
}

fn copy_by_hand(source: &File, target: &File, begin: u64, end: u64) -> rustix::io::Result<()> {
    let mut buffer = vec![0_u8; 1 << 20];
    let mut at = begin;
    while at < end {
        let wanted = (end - at).min(buffer.len() as u64) as usize;
        let read = rustix::io::pread(source, &mut buffer[..wanted], at)?;
        if read == 0 {
            return Err(rustix::io::Errno::IO);
        }
        let mut written = 0;
        while written < read {
            written += rustix::io::pwrite(target, &buffer[written..read], at + written as u64)?;
        }
        at += read as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_copy_holds_the_same_with_holes_left_as_holes() {
        let (from, to) =
            (tempfile::tempdir_in("/var/tmp").unwrap(), tempfile::tempdir_in("/var/tmp").unwrap());
        std::fs::create_dir_all(from.path().join("a/b")).unwrap();
        std::fs::write(from.path().join("a/b/full"), vec![7_u8; 3_000_000]).unwrap();
        std::fs::write(from.path().join("empty"), "").unwrap();
        std::fs::write(from.path().join("left.pid"), "1").unwrap();
        let mut sparse = File::create(from.path().join("sparse")).unwrap();
        sparse.write_all(b"begin").unwrap();
        sparse.seek(std::io::SeekFrom::Start(50 << 20)).unwrap();
        sparse.write_all(b"middle").unwrap();
        sparse.set_len(100 << 20).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", from.path().join("link")).unwrap();

        let copied = copy_folder(from.path(), to.path(), |name| name.ends_with(".pid")).unwrap();
        assert_eq!(copied.files, 3);
        for name in ["a/b/full", "empty", "sparse"] {
            let (before, after) = (
                std::fs::read(from.path().join(name)).unwrap(),
                std::fs::read(to.path().join(name)).unwrap(),
            );
            assert!(before == after, "{name} differs");
        }
        assert!(!to.path().join("left.pid").exists());
        assert!(!to.path().join("link").exists());
        assert!(std::fs::metadata(to.path().join("sparse")).unwrap().blocks() * 512 < 1 << 20);
    }

    #[test]
    fn ranges_are_copied_by_hand_too() {
        let folder = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
        std::fs::write(folder.path().join("a"), &content).unwrap();
        let source = File::open(folder.path().join("a")).unwrap();
        let target = File::create(folder.path().join("b")).unwrap();
        copy_by_hand(&source, &target, 0, content.len() as u64).unwrap();
        assert!(std::fs::read(folder.path().join("b")).unwrap() == content);
        assert!(copy_by_hand(&source, &target, 0, content.len() as u64 + 1).is_err());
    }
}

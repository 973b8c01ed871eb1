//! Follows a file as it grows, also through its rotation.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use whyso_access_log::{LineBuffer, RawLine};

/// What is read of a log in one reading.
const BYTES_MAX: u64 = 8 * 1024 * 1024;
const PIECE_BYTES: usize = 256 * 1024;
/// Lines before the end that show the log's format.
const TAIL_BYTES: u64 = 64 * 1024;
/// Servers write to a renamed log for a while: so many more readings of it.
const READINGS_AFTER_RENAME: u32 = 10;

/// An open file, up to where it was read.
struct OpenLog {
    file: File,
    offset: u64,
    buffer: LineBuffer,
    /// It was opened within a line, which is left out.
    is_within_line: bool,
}

/// A log under its name.
pub(crate) struct Follower {
    path: PathBuf,
    current: Option<OpenLog>,
    /// The file that had the name before, and in how many more readings it is read.
    renamed: Option<(OpenLog, u32)>,
    /// A log that appears later is read from its begin.
    was_looked_for: bool,
    piece: Vec<u8>,
}

impl Follower {
    pub(crate) fn new(path: &Path) -> Follower {
        let path = path.to_path_buf();
        Follower { path, current: None, renamed: None, was_looked_for: false, piece: Vec::new() }
    }

    /// Hands each line that is complete to `take`, from where the last reading ended. Returns how many bytes are left for the next one.
    ///
    /// # Errors
    /// The log can't be read. What was read is kept.
    pub(crate) fn read(&mut self, mut take: impl FnMut(RawLine<'_>)) -> io::Result<u64> {
        self.piece.resize(PIECE_BYTES, 0);
        let mut bytes_left = BYTES_MAX;
        if let Some((log, readings)) = &mut self.renamed {
            log.read(&mut self.piece, &mut bytes_left, &mut take)?;
            // What is left of it is read first.
            *readings -= u32::from(bytes_left > 0);
            if *readings == 0 {
                log.buffer.finish(&mut take);
                self.renamed = None;
            }
        }
        if self.current.is_none() {
            self.open()?;
        }
        let Some(log) = &mut self.current else { return Ok(0) };
        log.restart_where_truncated()?;
        log.read(&mut self.piece, &mut bytes_left, &mut take)?;
        if bytes_left > 0 && self.is_renamed()? {
            if let Some((mut before, _)) = self.renamed.take() {
                before.buffer.finish(&mut take);
            }
            self.renamed = self.current.take().map(|log| (log, READINGS_AFTER_RENAME));
            self.open()?;
            if let Some(log) = &mut self.current {
                log.read(&mut self.piece, &mut bytes_left, &mut take)?;
            }
        }
        match &self.current {
            Some(log) => Ok(log.file.metadata()?.len().saturating_sub(log.offset)),
            None => Ok(0),
        }
    }

    /// Returns lines before the place where reading begins, to guess the format by.
    pub(crate) fn lines_before(&self) -> Vec<String> {
        let Some(log) = &self.current else { return Vec::new() };
        let begin = log.offset.saturating_sub(TAIL_BYTES);
        let mut bytes = vec![0; usize::try_from(log.offset - begin).unwrap_or(0)];
        let Ok(length) = log.file.read_at(&mut bytes, begin) else { return Vec::new() };
        let text = String::from_utf8_lossy(&bytes[..length]);
        // The first one can be cut.
        let lines = text.lines().skip(usize::from(begin > 0)).filter(|line| !line.is_empty());
        lines.map(str::to_string).collect()
    }

    fn open(&mut self) -> io::Result<()> {
        let is_first_time = !std::mem::replace(&mut self.was_looked_for, true);
        // Opening a pipe would wait for who writes to it.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&self.path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
        }
        let offset = if is_first_time { metadata.len() } else { 0 };
        let mut last = [b'\n'];
        if offset > 0 {
            file.read_at(&mut last, offset - 1)?;
        }
        let is_within_line = last != [b'\n'];
        self.current = Some(OpenLog { file, offset, buffer: LineBuffer::default(), is_within_line });
        Ok(())
    }

    /// Whether another file has the log's name.
    fn is_renamed(&self) -> io::Result<bool> {
        let Some(log) = &self.current else { return Ok(false) };
        let ours = log.file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(named) => Ok((named.dev(), named.ino()) != (ours.dev(), ours.ino())),
            // Between the renaming and the new file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl OpenLog {
    /// A file that is shorter than what was read of it was emptied.
    fn restart_where_truncated(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() < self.offset {
            self.offset = 0;
            self.is_within_line = false;
            self.buffer.clear();
        }
        Ok(())
    }

    fn read(
        &mut self,
        piece: &mut [u8],
        bytes_left: &mut u64,
        take: &mut impl FnMut(RawLine<'_>),
    ) -> io::Result<()> {
        while *bytes_left > 0 {
            let wanted = piece.len().min(usize::try_from(*bytes_left).unwrap_or(usize::MAX));
            let length = match self.file.read_at(&mut piece[..wanted], self.offset) {
                Ok(0) => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.offset += length as u64;
            *bytes_left -= length as u64;
            let mut bytes = &piece[..length];
            if self.is_within_line {
                let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { continue };
                bytes = &bytes[end + 1..];
                self.is_within_line = false;
            }
            self.buffer.push(bytes, &mut *take);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn read(follower: &mut Follower) -> Vec<String> {
        let mut lines = Vec::new();
        let outcome = follower.read(|line| match line {
            RawLine::Whole(bytes) => lines.push(String::from_utf8_lossy(bytes).into_owned()),
            RawLine::TooLong => lines.push("too long".to_string()),
        });
        assert_eq!(outcome.unwrap(), 0);
        lines
    }

    fn append(path: &Path, text: &str) {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn reading_begins_at_the_end_and_waits_for_the_end_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        append(&path, "before\nbegun ");
        let mut follower = Follower::new(&path);
        assert_eq!(read(&mut follower), [] as [&str; 0]);
        assert_eq!(follower.lines_before(), ["before", "begun "]);
        append(&path, "before\none\ntw");
        assert_eq!(read(&mut follower), ["one"]);
        append(&path, "o\n");
        assert_eq!(read(&mut follower), ["two"]);
    }

    #[test]
    fn no_line_is_lost_when_a_log_is_renamed_or_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
        append(&path, "");
        let mut follower = Follower::new(&path);
        read(&mut follower);
        append(&path, "one\n");
        fs::rename(&path, &old).unwrap();
        append(&old, "two\n");
        assert_eq!(read(&mut follower), ["one", "two"]);
        append(&path, "four\n");
        append(&old, "three\n");
        assert_eq!(read(&mut follower), ["three", "four"]);
        append(&old, "late\n");
        append(&path, "five\n");
        assert_eq!(read(&mut follower), ["late", "five"]);
        fs::write(&path, "six\n").unwrap();
        assert_eq!(read(&mut follower), ["six"]);
    }

    #[test]
    fn a_log_that_appears_later_is_read_from_its_begin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut follower = Follower::new(&path);
        assert!(follower.read(|_| {}).is_err());
        append(&path, "one\n");
        assert_eq!(read(&mut follower), ["one"]);
        assert!(Follower::new(folder.path()).read(|_| {}).is_err(), "a folder");
    }

    #[test]
    fn what_one_reading_does_not_reach_the_next_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        append(&path, "");
        let mut follower = Follower::new(&path);
        read(&mut follower);
        let lines = BYTES_MAX / 8 + 10;
        append(&path, &"1234567\n".repeat(usize::try_from(lines).unwrap()));
        let mut count = 0;
        let mut count_lines = |follower: &mut Follower| follower.read(|_| count += 1).unwrap();
        assert_eq!(count_lines(&mut follower), 80);
        assert_eq!(count_lines(&mut follower), 0);
        assert_eq!(count, lines);
    }
}

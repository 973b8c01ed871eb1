//! Reading and cutting up the kernel's text files without an allocation a line.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// No file that we read is larger; one that is gets cut off, not followed for ever.
const FILE_BYTES_MAX: usize = 8 << 20;

/// A file that stays open and is read from its start each time, into a buffer that is kept.
pub(crate) struct KernelFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl KernelFile {
    pub(crate) fn new(path: impl Into<PathBuf>) -> KernelFile {
        KernelFile { path: path.into(), file: None, buffer: Vec::new() }
    }

    /// The whole content as it is now. After an error the file is opened again the next time.
    pub(crate) fn read(&mut self) -> io::Result<Cow<'_, str>> {
        let length = match self.fill() {
            Ok(length) => length,
            Err(error) => {
                self.file = None;
                return Err(error);
            }
        };
        Ok(String::from_utf8_lossy(&self.buffer[..length]))
    }

    pub(crate) fn failure(&self, error: &io::Error) -> String {
        format!("cannot read {}: {error}", self.path.display())
    }

    fn fill(&mut self) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(File::open(&self.path)?);
        }
        let Some(file) = &self.file else {
            return Ok(0);
        };
        read_whole(file, &mut self.buffer)
    }
}

/// Reads `file` from its start into `buffer`, which grows as needed; returns the length.
pub(crate) fn read_whole(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    if buffer.is_empty() {
        buffer.resize(4096, 0);
    }
    let mut length = 0;
    loop {
        if length == buffer.len() {
            if length >= FILE_BYTES_MAX {
                return Ok(length);
            }
            buffer.resize(length * 2, 0);
        }
        let count = match file.read_at(&mut buffer[length..], length as u64) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if count == 0 {
            return Ok(length);
        }
        length += count;
    }
}

/// An unsigned number, or `None` for anything else.
pub(crate) fn number(word: &str) -> Option<u64> {
    word.parse().ok()
}

/// The first number of `text`, such as that of `"  12 kB"`.
pub(crate) fn first_number(text: &str) -> Option<u64> {
    number(text.split_ascii_whitespace().next()?)
}

/// A count as the recording keeps it; what does not fit stays at the limit.
pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Parses a list of CPUs such as `0-3,8`. Parts that are no numbers are left out; the list is
/// bounded to the 8,192 CPUs that Linux knows.
pub(crate) fn cpu_list(text: &str) -> Vec<u32> {
    const CPUS_MAX: u32 = 8192;
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
            continue;
        };
        for cpu in first..=last.min(CPUS_MAX - 1) {
            cpus.push(cpu);
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// What the kernel hands to each program about itself at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Length of a tick of `/proc/*/stat`.
    pub(crate) tick_ns: u64,
    pub(crate) page_bytes: u64,
}

impl Machine {
    /// From `/proc/self/auxv` (`AT_CLKTCK` and `AT_PAGESZ`, see getauxval(3)). Where that cannot be
    /// read, the values that every common Linux has: 100 ticks per second, pages of 4 KiB.
    pub(crate) fn read() -> Machine {
        parse_auxv(&std::fs::read("/proc/self/auxv").unwrap_or_default())
    }
}

fn parse_auxv(bytes: &[u8]) -> Machine {
    const AT_PAGESZ: u64 = 6;
    const AT_CLKTCK: u64 = 17;
    let mut machine = Machine { tick_ns: 10_000_000, page_bytes: 4096 };
    for pair in bytes.chunks_exact(16) {
        let (key, value) = pair.split_at(8);
        let key = u64::from_ne_bytes(key.try_into().unwrap_or_default());
        let value = u64::from_ne_bytes(value.try_into().unwrap_or_default());
        match key {
            AT_CLKTCK if (1..=1_000_000_000).contains(&value) => {
                machine.tick_ns = 1_000_000_000 / value;
            }
            AT_PAGESZ if value.is_power_of_two() => machine.page_bytes = value,
            _ => {}
        }
    }
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_expanded_and_bounded() {
        assert_eq!(cpu_list("0-3,8\n"), vec![0, 1, 2, 3, 8]);
        assert_eq!(cpu_list(""), Vec::<u32>::new());
        assert_eq!(cpu_list("x,5,9-7"), vec![5]);
        assert_eq!(cpu_list("0-4000000000").len(), 8192);
    }

    #[test]
    fn the_auxiliary_vector_gives_tick_and_page() {
        let mut bytes = Vec::new();
        for word in [6_u64, 16384, 17, 250, 0, 0] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        let machine = parse_auxv(&bytes);
        assert_eq!((machine.tick_ns, machine.page_bytes), (4_000_000, 16384));
        assert_eq!(parse_auxv(&[1, 2, 3]).tick_ns, 10_000_000);
    }

    #[test]
    fn a_file_is_read_whole_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        let long = "x".repeat(10_000);
        std::fs::write(&path, &long).unwrap();
        let mut file = KernelFile::new(&path);
        assert_eq!(file.read().unwrap(), long);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(file.read().unwrap(), "short");
    }
}

//! `/proc/PID/stat`, as far as neighbours are concerned; see proc_pid_stat(5).

use std::fs::File;
use std::io;

use crate::text::{number, read_whole};

/// The flag of the kernel's own threads (`PF_KTHREAD` in `include/linux/sched.h`).
const KERNEL_THREAD: u64 = 0x0020_0000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) parent: u32,
    pub(super) is_kernels: bool,
    /// In user code and in the kernel.
    pub(super) cpu_ticks: u64,
    pub(super) start_ticks: u64,
    pub(super) resident_pages: u64,
}

/// `None` for what is no `stat` line, or one of a process that has ended.
pub(super) fn parse(text: &str) -> Option<Stat> {
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut words = rest.split_ascii_whitespace();
    if words.next()? == "Z" {
        return None;
    }
    let numbers: Vec<u64> = words.take(21).map(|word| number(word).unwrap_or(0)).collect();
    let at = |place: usize| numbers.get(place).copied();
    Some(Stat {
        pid: number(pid)?.try_into().ok()?,
        name: name.to_string(),
        parent: u32::try_from(at(0)?).ok()?,
        is_kernels: at(5)? & KERNEL_THREAD != 0,
        cpu_ticks: at(10)?.saturating_add(at(11)?),
        start_ticks: at(18)?,
        resident_pages: at(20)?,
    })
}

/// Every process that can be seen now, in order of their numbers.
pub(super) fn all(buffer: &mut Vec<u8>) -> io::Result<Vec<Stat>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) else {
            continue;
        };
        // It may have ended meanwhile.
        let Ok(file) = File::open(format!("/proc/{pid}/stat")) else { continue };
        let Ok(length) = read_whole(&file, buffer) else { continue };
        found.extend(parse(&String::from_utf8_lossy(&buffer[..length])));
    }
    found.sort_by_key(|stat| stat.pid);
    Ok(found)
}

/// Bytes that a process read from devices and sent towards them; `None` where that may not be read.
pub(super) fn disk_bytes(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| number(value.trim())).unwrap_or(0)
    };
    Some(of("read_bytes:").saturating_add(of("write_bytes:")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str = include_str!("../../../tests/data/pid_stat");

    #[test]
    fn a_process_is_read_from_its_line() {
        let stat = parse(STAT).unwrap();
        assert_eq!((stat.cpu_ticks, stat.start_ticks), (812 + 365, 170_164));
        assert_eq!(stat.resident_pages, 22_412);
        assert!(!stat.is_kernels);
        let thread = "2 (kthread d) S 0 0 0 0 -1 2129984 0 0 0 0 0 3 0 0 20 0 1 0 9 0 0 18446744073709551615";
        let thread = parse(thread).unwrap();
        assert!(thread.is_kernels && thread.name == "kthread d" && thread.cpu_ticks == 3);
        assert_eq!(parse(&STAT.replacen(" S ", " Z ", 1)), None, "it has ended");
    }

    #[test]
    fn this_process_is_among_all() {
        let all = all(&mut Vec::new()).unwrap();
        let own = all.iter().find(|stat| stat.pid == std::process::id()).unwrap();
        assert!(own.resident_pages > 0 && own.start_ticks > 0);
        assert!(disk_bytes(own.pid).is_some());
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)(1 \\(a\\) S )?[0-9 -]{0,80}.{0,100}") {
            parse(&text);
        }
    }
}

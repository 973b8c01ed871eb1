//! How much the programs' maps hold, by what is watched and by the machine's memory. The kernel takes the memory of most of them when they
//! are loaded, so they are no larger than the machine can well spare. `docs/explanation/limits.md` has the formulas.

use std::path::{Path, PathBuf};

use crate::account::Account;

/// Bytes of a `struct past` of `bpf/account.h`.
const PAST_BYTES: u64 = 520;
/// About what the kernel keeps for an entry of a hash map, in addition to key and value.
const ENTRY_BYTES: u64 = 64;
const PAUSE_BYTES: u64 = 16 + 80 + ENTRY_BYTES;
const PATH_BYTES: u64 = 16 + 776 + ENTRY_BYTES;
const FILE_WAIT_BYTES: u64 = 16 + 16 + ENTRY_BYTES;
const SOCKET_BYTES: u64 = 8 + 8 + ENTRY_BYTES;

/// Threads that no connection needs: those of the background, and the generator's.
const OTHER_THREADS: u64 = 1_024;
/// States and roles in which a file is waited for.
const WAITS_PER_FILE: u64 = 4;
/// Memory of the machine, divided by what all accounts may take of it.
const ACCOUNTS_SHARE: u64 = 512;
/// The same for each other map.
const SHARE: u64 = 2_048;

/// Entries of each map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Threads that can be watched at a time.
    pub(crate) accounts: u32,
    /// Kinds of pauses of threads.
    pub(crate) pauses: u32,
    /// Files and folders whose path the programs walk up.
    pub(crate) paths: u32,
    /// Files by state and role.
    pub(crate) file_waits: u32,
    /// Requests that their thread left for another one to answer.
    pub(crate) left: u32,
    /// Clients of threads that are shared.
    pub(crate) server_of: u32,
}

/// What is watched, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    /// Threads that there can be, by the kernel's settings.
    pub(crate) threads_max: u64,
    /// Files and sockets that one of the watched processes may open.
    pub(crate) files_max: u64,
    /// Memory that this program may use.
    pub(crate) memory_bytes: u64,
}

impl Surroundings {
    /// Reads them for processes. What can't be read counts as small.
    pub(crate) fn of(pids: &[u32]) -> Surroundings {
        let number = |path: &str| first_number(Path::new(path));
        let threads_max = number("/proc/sys/kernel/threads-max").min(number("/proc/sys/kernel/pid_max"));
        let files_max = pids.iter().filter_map(|pid| files_max_of(*pid)).max().unwrap_or(0);
        let memory = std::fs::read_to_string("/proc/meminfo").ok();
        let memory_kib = memory.as_deref().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        });
        // The kernel charges maps to the group of who loads them.
        let group_bytes = own_group().iter().map(|path| first_number(path)).filter(|bytes| *bytes > 0).min();
        let memory_bytes = memory_kib.unwrap_or(0) << 10;
        Surroundings {
            threads_max,
            files_max,
            memory_bytes: memory_bytes.min(group_bytes.unwrap_or(memory_bytes)),
        }
    }
}

impl Capacity {
    /// `keeps_pasts`: whether threads keep what they did last.
    pub(crate) fn of(around: Surroundings, keeps_pasts: bool) -> Capacity {
        let account_bytes = size_of::<Account>() as u64 + if keeps_pasts { PAST_BYTES } else { 0 };
        let within = |wanted: u64, bytes_each: u64, share: u64, least: u32, most: u32| {
            let affordable = around.memory_bytes / share / bytes_each;
            wanted.min(affordable).clamp(u64::from(least), u64::from(most)) as u32
        };
        // A server opens a socket for each connection, and has a thread for each at most.
        let connections = around.files_max.min(around.threads_max);
        let threads = connections.saturating_add(OTHER_THREADS).min(around.threads_max);
        let accounts = within(threads, account_bytes, ACCOUNTS_SHARE, 16_384, 262_144);
        let waits = around.files_max.saturating_mul(WAITS_PER_FILE);
        Capacity {
            accounts,
            pauses: within(u64::from(accounts), PAUSE_BYTES, SHARE, 8_192, 131_072),
            paths: within(around.files_max, PATH_BYTES, SHARE, 4_096, 65_536),
            file_waits: within(waits, FILE_WAIT_BYTES, SHARE, 16_384, 262_144),
            left: within(connections, SOCKET_BYTES, SHARE, 8_192, 131_072),
            server_of: within(connections, SOCKET_BYTES, SHARE, 16_384, 262_144),
        }
    }
}

/// The soft limit of open files.
fn files_max_of(pid: u32) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    Some(soft.parse().unwrap_or(u64::MAX))
}

/// Files with the memory limits of this program's group and of those above it.
fn own_group() -> Vec<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let folder = Path::new("/sys/fs/cgroup").join(own);
    folder
        .ancestors()
        .take_while(|path| path.starts_with("/sys/fs/cgroup"))
        .map(|path| path.join("memory.max"))
        .collect()
}

/// The number that a file begins with; 0 where it has none, such as "max".
fn first_number(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn capacity(files_max: u64, memory_gib: u64) -> Capacity {
        let around = Surroundings { threads_max: 4_000_000, files_max, memory_bytes: memory_gib * GIB };
        Capacity::of(around, true)
    }

    #[test]
    fn a_small_machine_has_what_every_machine_had() {
        let least = Capacity {
            accounts: 16_384,
            pauses: 8_192,
            paths: 4_096,
            file_waits: 16_384,
            left: 8_192,
            server_of: 16_384,
        };
        assert_eq!(capacity(1_024, 2), least);
        assert_eq!(capacity(u64::MAX, 1), least);
        let nothing = Surroundings { threads_max: 0, files_max: 0, memory_bytes: 0 };
        assert_eq!(Capacity::of(nothing, false), least);
    }

    #[test]
    fn a_large_machine_has_room_for_a_hundred_thousand_connections_and_ten_thousand_tables() {
        let large = capacity(150_000, 256);
        assert!(large.accounts >= 101_024 && large.pauses >= 100_000, "{large:?}");
        assert!(large.paths >= 10_000 && large.file_waits >= 40_000, "{large:?}");
        assert!(large.left >= 100_000 && large.server_of >= 100_000, "{large:?}");
        assert_eq!(capacity(u64::MAX, 4_096).accounts, 262_144);
    }

    #[test]
    fn maps_take_no_more_than_their_share_of_the_memory() {
        for memory_gib in [16, 64, 256] {
            let capacity = capacity(u64::MAX, memory_gib);
            let accounts = u64::from(capacity.accounts) * (size_of::<Account>() as u64 + PAST_BYTES);
            let bytes = accounts
                + u64::from(capacity.pauses) * PAUSE_BYTES
                + u64::from(capacity.paths) * PATH_BYTES
                + u64::from(capacity.file_waits) * FILE_WAIT_BYTES
                + u64::from(capacity.left) * SOCKET_BYTES
                + u64::from(capacity.server_of) * SOCKET_BYTES;
            assert!(bytes * 200 <= memory_gib * GIB, "{bytes} bytes of {memory_gib} GiB");
        }
    }

    #[test]
    fn this_machine_is_read() {
        let around = Surroundings::of(&[std::process::id()]);
        assert!(around.threads_max > 0 && around.files_max > 0 && around.memory_bytes > 0, "{around:?}");
    }
}

//! The process's own argument memory, as `ps` shows it.

use std::io::Write;

/// Overwrites every occurrence of `secret` among this process's arguments with `x`, so that process
/// lists no longer show it. Returns whether it was there. Call it before any thread is started that
/// might read the arguments.
///
/// The kernel keeps the arguments in the process's own memory (`arg_start`, `arg_end` of proc(5)), and
/// we write there through `/proc/self/mem`, which can't do harm where that range were wrong.
pub fn overwrite_in_arguments(secret: &str) -> bool {
    if secret.is_empty() {
        return false;
    }
    let Some((start, end)) = argument_range() else { return false };
    let Ok(shown) = std::fs::read("/proc/self/cmdline") else { return false };
    let secret = secret.as_bytes();
    let mut found = false;
    let mut at = 0;
    while at + secret.len() <= shown.len() {
        if &shown[at..at + secret.len()] != secret {
            at += 1;
            continue;
        }
        let address = start + at as u64;
        if address + secret.len() as u64 > end {
            break;
        }
        found = write_own_memory(address, &vec![b'x'; secret.len()]) || found;
        at += secret.len();
    }
    found
}

/// Where this process's arguments lie: start and end address.
pub(crate) fn argument_range() -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // the name, field 2, is in parentheses and may hold anything; what follows begins with field 3
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let start: u64 = fields.get(48 - 3)?.parse().ok()?;
    let end: u64 = fields.get(49 - 3)?.parse().ok()?;
    (start != 0 && end > start).then_some((start, end))
}

fn write_own_memory(address: u64, bytes: &[u8]) -> bool {
    use std::io::Seek;
    let Ok(mut memory) = std::fs::OpenOptions::new().write(true).open("/proc/self/mem") else {
        return false;
    };
    memory.seek(std::io::SeekFrom::Start(address)).is_ok() && memory.write_all(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_overwritten_in_the_process_list() {
        // the test's own first argument stands for the secret; nothing reads it again
        let before = std::fs::read("/proc/self/cmdline").unwrap();
        let first = before.split(|byte| *byte == 0).next().unwrap();
        let last_part = &first[first.len().saturating_sub(6)..];
        let secret = String::from_utf8(last_part.to_vec()).unwrap();
        assert!(overwrite_in_arguments(&secret));
        let after = std::fs::read("/proc/self/cmdline").unwrap();
        assert_eq!(after.len(), before.len());
        assert!(!after.windows(secret.len()).any(|window| window == secret.as_bytes()));
        assert!(!overwrite_in_arguments("no such argument anywhere"));
        assert!(!overwrite_in_arguments(""));
    }
}

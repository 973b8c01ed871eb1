//! The process's own argument memory, as `ps` shows it.

use std::ffi::OsString;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use crate::error::{Error, Result};
use crate::redact;

const SHOWN: &str = "/proc/self/cmdline";

/// What stands in process lists in the place of a password.
const OVERWRITTEN: u8 = b'x';

/// A command line as it was given.
#[derive(Debug, Default)]
pub struct Arguments {
    /// All of them, the program's name first. The process's own memory does not have them any more.
    pub all: Vec<OsString>,
    /// The passwords among them, as they stand there.
    pub passwords: Vec<String>,
}

/// Takes this process's arguments, and overwrites the passwords among them, so that process lists no longer show them. Call it before anything
/// that takes time or reads the arguments.
///
/// # Errors
/// [`Error::PasswordVisible`] where a password is still shown afterwards.
pub fn take_arguments() -> Result<Arguments> {
    let all: Vec<OsString> = std::env::args_os().collect();
    let arguments: Vec<Vec<u8>> = all.iter().map(|argument| argument.as_bytes().to_vec()).collect();
    let secrets = secrets(&arguments);
    if secrets.is_empty() {
        return Ok(Arguments { all, passwords: Vec::new() });
    }
    let Some((start, end)) = argument_range() else { return Err(Error::PasswordVisible) };
    for secret in &secrets {
        let (from, to) = (start + secret.start as u64, start + secret.end as u64);
        if to > end || !overwrite(from, secret.len()) {
            return Err(Error::PasswordVisible);
        }
    }
    let shown = fs::read(SHOWN).map_err(|_| Error::PasswordVisible)?;
    let is_hidden = |secret: &Range<usize>| {
        shown.get(secret.clone()).is_some_and(|bytes| bytes.iter().all(|byte| *byte == OVERWRITTEN))
    };
    if !secrets.iter().all(is_hidden) {
        return Err(Error::PasswordVisible);
    }
    let whole = arguments.join(&0);
    let text = |secret: Range<usize>| String::from_utf8_lossy(&whole[secret]).into_owned();
    Ok(Arguments { all, passwords: secrets.into_iter().map(text).collect() })
}

/// Where passwords lie in the arguments, as `/proc/PID/cmdline` shows them: one after the other, each with a zero at its end.
fn secrets(arguments: &[Vec<u8>]) -> Vec<Range<usize>> {
    let texts: Vec<String> =
        arguments.iter().map(|argument| String::from_utf8_lossy(argument).into_owned()).collect();
    let without_passwords = redact::arguments(texts.iter().cloned());
    let (mut found, mut begin) = (Vec::new(), 0);
    for ((argument, text), shown) in arguments.iter().zip(&texts).zip(&without_passwords) {
        if text != shown {
            let is_text = text.as_bytes() == argument;
            let secret = if is_text { difference(argument, shown.as_bytes()) } else { 0..argument.len() };
            found.push(begin + secret.start..begin + secret.end);
        }
        begin += argument.len() + 1;
    }
    found
}

/// What of `whole` lies between the beginning and the end that both have in common.
fn difference(whole: &[u8], shown: &[u8]) -> Range<usize> {
    let most = whole.len().min(shown.len());
    let begin = whole.iter().zip(shown).take_while(|(left, right)| left == right).count();
    let pairs = whole.iter().rev().zip(shown.iter().rev());
    let end = pairs.take_while(|(left, right)| left == right).count().min(most - begin);
    begin..whole.len() - end
}

/// Where this process's arguments lie: start and end address.
pub(crate) fn argument_range() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // the name, field 2, is in parentheses and may hold anything; what follows begins with field 3
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let start: u64 = fields.get(48 - 3)?.parse().ok()?;
    let end: u64 = fields.get(49 - 3)?.parse().ok()?;
    (start != 0 && end > start).then_some((start, end))
}

/// Overwrites memory of this process. Both ways fail where `address` is wrong, and do no harm. A process with file capabilities may not
/// open `/proc/self/mem`; where a filter of system calls forbids the first way, the second one is left.
fn overwrite(address: u64, length: usize) -> bool {
    let bytes = vec![OVERWRITTEN; length];
    let here = libc::iovec { iov_base: bytes.as_ptr() as *mut libc::c_void, iov_len: length };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    // SAFETY: `here` is read only, and lives until the call returns; `there` is where the kernel keeps the arguments, which no Rust value
    // refers to; the kernel checks both.
    let written = unsafe { libc::process_vm_writev(libc::getpid(), &here, 1, &there, 1, 0) };
    if written == length as isize {
        return true;
    }
    let Ok(mut memory) = fs::OpenOptions::new().write(true).open("/proc/self/mem") else { return false };
    memory.seek(SeekFrom::Start(address)).is_ok() && memory.write_all(&bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_overwritten_in_the_process_list() {
        // the test's own first argument stands for the secret; nothing reads it again
        let before = fs::read(SHOWN).unwrap();
        let first = before.split(|byte| *byte == 0).next().unwrap().len();
        let (start, _) = argument_range().unwrap();
        assert!(overwrite(start + first as u64 - 6, 6));
        let after = fs::read(SHOWN).unwrap();
        assert_eq!(after.len(), before.len());
        assert_eq!(&after[first - 6..first], b"xxxxxx");
        assert!(!overwrite(8, 6), "an address that is not ours");
        assert!(take_arguments().unwrap().passwords.is_empty(), "a test has none among its arguments");
    }

    #[test]
    fn passwords_are_found_where_the_process_list_shows_them() {
        let cases: &[(&[&str], &[&str])] = &[
            (&["whyso", "load", "--dsn", "mysql://u:geheim@h/x"], &["geheim"]),
            (&["whyso", "--dsn=mysql://u:ge heim@h/x", "--dsn", "u:other@h"], &["ge heim", "other"]),
            (&["whyso", "record", "--", "mysql", "-pgeheim", "-e", "SELECT 1"], &["geheim"]),
            (&["whyso", "--at", "2s SET PASSWORD = 'geheim'"], &["geheim"]),
            (&["whyso", "--at", "2s !mysql --password=geheim"], &["geheim"]),
            (&["whyso", "sysbench", "--mysql-password=xx x"], &["xx x"]),
            (&["whyso", "load", "--dsn", "mysql://u@h/x", "--users", "8"], &[]),
        ];
        for (arguments, expected) in cases {
            let arguments: Vec<Vec<u8>> =
                arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
            let shown = arguments.join(&0);
            let found: Vec<_> = secrets(&arguments)
                .into_iter()
                .map(|at| String::from_utf8_lossy(&shown[at]).into_owned())
                .collect();
            assert_eq!(found, *expected);
        }
        let odd = [b"--password=\xff\xfe".to_vec(), b"x".to_vec()];
        assert_eq!(secrets(&odd).first(), Some(&(0..13)));
    }
}

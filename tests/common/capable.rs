//! A copy of the program with file capabilities, as a user without rights runs it: such a process may not open its own memory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Place;

/// `nobody`.
pub(crate) const USER: u32 = 65534;
const CAPABILITIES: &str = "cap_bpf,cap_perfmon,cap_sys_ptrace+ep";

/// A copy of the program in a place that `nobody` may use, with or without capabilities; `None` where that can't be tested here.
pub(crate) fn program_for_nobody(place: &Place, has_capabilities: bool) -> Option<PathBuf> {
    // SAFETY: it has no effects.
    if unsafe { libc::geteuid() } != 0 {
        whyso_testing::not_tested("becoming another user needs root");
        return None;
    }
    let program = place.path().join(if has_capabilities { "whyso-capable" } else { "whyso-plain" });
    // A program of its own copies it: what another test starts meanwhile would inherit our descriptor, and a file that anybody
    // can still write can't be executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_whyso")).arg(&program).status().unwrap();
    assert!(copied.success(), "{copied}");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(home(place), Some(USER), Some(USER)).unwrap();
    if has_capabilities {
        let set = Command::new("setcap").arg(CAPABILITIES).arg(&program).output();
        if !set.is_ok_and(|done| done.status.success()) {
            whyso_testing::not_tested("setcap does not work here");
            return None;
        }
    }
    Some(program)
}

pub(crate) fn home(place: &Place) -> PathBuf {
    let home = place.path().join("nobody");
    fs::create_dir_all(&home).unwrap();
    home
}

/// The program with these arguments, as `nobody`.
pub(crate) fn as_nobody(place: &Place, program: &Path, args: &[&str]) -> Command {
    let mut command = for_nobody(place, program, args);
    become_nobody(&mut command, &[]);
    command
}

/// The same, but for becoming that user.
pub(crate) fn for_nobody(place: &Place, program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(home(place))
        .env("HOME", home(place))
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_STATE_HOME")
        .env_remove("MYSQL_PWD")
        .stdin(Stdio::null());
    command
}

/// Before the program starts. `setpriv` would start it with root's capabilities, which makes another process of it.
pub(crate) fn become_nobody(command: &mut Command, groups: &'static [u32]) {
    let checked = |result: i32| if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    // SAFETY: only system calls on memory that lives as long as the program.
    unsafe {
        command.pre_exec(move || {
            checked(libc::setgroups(groups.len(), groups.as_ptr()))?;
            checked(libc::setgid(USER))?;
            checked(libc::setuid(USER))
        });
    }
}

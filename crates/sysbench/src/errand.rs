//! Shell commands of scripts (`os.execute`): run off the loop, so that the loop's other users work meanwhile.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

/// What system(3) gives where no shell can be started.
const NO_SHELL: i32 = 127 << 8;

/// A command that was started, in a process group of its own. Dropping it ends the group.
#[derive(Debug)]
pub(crate) struct Errand {
    /// `None`: no shell could be started.
    child: Option<Mutex<Child>>,
}

impl Errand {
    /// Starts a command in a shell.
    pub(crate) fn start(command: &str) -> Errand {
        let spawned = Command::new("sh").arg("-c").arg(command).process_group(0).spawn();
        Errand { child: spawned.ok().map(Mutex::new) }
    }

    /// The command's wait status, once it has ended.
    pub(crate) fn status(&self) -> Option<i32> {
        let Some(child) = &self.child else { return Some(NO_SHELL) };
        match child.lock().unwrap_or_else(PoisonError::into_inner).try_wait() {
            Ok(status) => status.map(ExitStatusExt::into_raw),
            Err(_) => Some(-1),
        }
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        if self.status().is_some() {
            return;
        }
        let Some(child) = &mut self.child else { return };
        let child = child.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Ok(group) = i32::try_from(child.id()) {
            // SAFETY: the call takes two numbers; the process was not waited for, so its group is still its own.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        // It was killed: the wait is short.
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_command_gives_its_wait_status() {
        for (command, wanted) in [("exit 3", 3 << 8), ("true", 0)] {
            let errand = Errand::start(command);
            let deadline = Instant::now() + Duration::from_secs(20);
            while errand.status().is_none() {
                assert!(Instant::now() < deadline, "the command does not end");
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(errand.status(), Some(wanted));
        }
    }

    #[test]
    fn a_command_that_nobody_waits_for_any_more_is_ended_with_its_children() {
        let began = Instant::now();
        let errand = Errand::start("sleep 1000 & wait");
        assert_eq!(errand.status(), None);
        drop(errand);
        assert!(began.elapsed() < Duration::from_secs(20));
    }
}

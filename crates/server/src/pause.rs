//! Programs of others, paused for as long as a window of an experiment takes. Only those that the user named.
//!
//! SIGSTOP pauses a program, and SIGCONT resumes it. A forked process sends both. It resumes the programs when this process
//! ends, however it ends, and when it hears nothing from it for a minute.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, test_kill_process};

use crate::argv::argument_range;
use crate::error::{Error, Result};
use crate::forked::{Helper, NS_PER_S, SILENCE_SECONDS_MAX, answer, detach, is_readable, message};
use crate::process::ProcessId;

/// Programs that can be paused at one time.
pub const PAUSED_MAX: usize = 16;
/// Parents of parents that are looked at.
const ANCESTORS_MAX: usize = 64;

const PAUSE: u8 = b'p';
const RESUME: u8 = b'r';
const DONE: u8 = b'+';
const GONE: u8 = b'-';

/// A program of others, by its number and its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    process: ProcessId,
    name: String,
}

impl Neighbour {
    /// Reads `PID` or `PID@START`, where START is field 22 of `/proc/PID/stat`: clock ticks between the machine's start and its own.
    ///
    /// # Errors
    /// No such process runs, or it is none that may be paused.
    pub fn named(text: &str) -> Result<Neighbour> {
        let refused = |why: String| Error::Neighbour(format!("{text} can't be paused: {why}"));
        let (pid, start_ticks) = match text.split_once('@') {
            Some((pid, start)) => (pid, Some(start.parse::<u64>().ok())),
            None => (text, None),
        };
        let (Ok(pid), true) = (pid.parse::<u32>(), start_ticks != Some(None)) else {
            return Err(refused("give the number of a process, or PID@START".to_string()));
        };
        let process = ProcessId::of(pid).ok_or_else(|| refused("no process has this number".to_string()))?;
        if start_ticks.flatten().is_some_and(|start_ticks| start_ticks != process.start_ticks) {
            return Err(refused(format!(
                "process {pid} began at {}, so it is another one",
                process.start_ticks
            )));
        }
        if process.executable.as_os_str().is_empty() && is_of_kernel(pid) {
            return Err(refused("it is a thread of the kernel".to_string()));
        }
        if pid == 1 || ancestors().contains(&pid) {
            return Err(refused("whyso was started by it, so it would stop, too".to_string()));
        }
        let may = Pid::from_raw(pid as i32).is_some_and(|pid| test_kill_process(pid).is_ok());
        if !may {
            return Err(refused("it belongs to another user: run whyso as that user or as root".to_string()));
        }
        if state_of(pid).is_some_and(|state| matches!(state, 'T' | 't')) {
            return Err(refused("it is paused already, and would run afterwards".to_string()));
        }
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Ok(Neighbour { process, name: name.trim().to_string() })
    }

    pub fn pid(&self) -> u32 {
        self.process.pid
    }
}

/// Such as "stress-ng (4711)".
impl std::fmt::Display for Neighbour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.process.pid)
    }
}

/// The fields of `/proc/PID/stat` behind the name.
fn stat_of(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    Some(after_name.split_ascii_whitespace().map(str::to_string).collect())
}

fn state_of(pid: u32) -> Option<char> {
    stat_of(pid)?.first()?.chars().next()
}

/// By the flag PF_KTHREAD.
fn is_of_kernel(pid: u32) -> bool {
    let flags = stat_of(pid).and_then(|fields| fields.get(9 - 3)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & 0x0020_0000 != 0)
}

/// This process, its parent, and so on.
fn ancestors() -> Vec<u32> {
    let mut pids = vec![std::process::id()];
    while let Some(parent) = pids.last().and_then(|pid| stat_of(*pid)?.get(4 - 3)?.parse::<u32>().ok()) {
        if parent == 0 || pids.len() > ANCESTORS_MAX {
            break;
        }
        pids.push(parent);
    }
    pids
}

/// Pauses programs and resumes them. Dropping it resumes them.
pub struct Pauser {
    keeper: Helper,
    neighbours: Vec<Neighbour>,
}

impl Pauser {
    /// Starts the keeper. Nothing is paused yet.
    ///
    /// # Errors
    /// There are too many, one of them has ended, or no process can be made.
    pub fn start(neighbours: &[Neighbour]) -> Result<Pauser> {
        if neighbours.len() > PAUSED_MAX {
            return Err(Error::Neighbour(format!(
                "at most {PAUSED_MAX} programs can be paused, and these are {}",
                neighbours.len()
            )));
        }
        let mut pids = [None; PAUSED_MAX];
        for (pid, neighbour) in pids.iter_mut().zip(neighbours) {
            *pid = Pid::from_raw(neighbour.pid() as i32);
        }
        let arguments = argument_range();
        let keeper = Helper::fork(|socket| keep(socket, &pids, arguments));
        let keeper =
            keeper.map_err(|error| Error::Neighbour(format!("other programs can't be paused: {error}")))?;
        let mut pauser = Pauser { keeper, neighbours: neighbours.to_vec() };
        // By then the keeper holds a handle of each; what was checked before may have ended meanwhile.
        pauser.ask(RESUME)?;
        pauser.check()?;
        Ok(pauser)
    }

    pub fn neighbours(&self) -> &[Neighbour] {
        &self.neighbours
    }

    /// Pauses the programs, or resumes them.
    ///
    /// # Errors
    /// One of them has ended, or they were resumed because too much time had passed.
    pub fn set_paused(&mut self, is_paused: bool) -> Result<()> {
        self.ask(if is_paused { PAUSE } else { RESUME })
    }

    fn ask(&mut self, what: u8) -> Result<()> {
        match self.keeper.ask(what) {
            Some(DONE) => Ok(()),
            Some(GONE) => self.check().and(Err(Error::Neighbour("a paused program has ended".to_string()))),
            _ => Err(Error::Neighbour("the process that pauses other programs has ended".to_string())),
        }
    }

    /// Whether all of them still are who they were.
    fn check(&self) -> Result<()> {
        match self.neighbours.iter().find(|neighbour| !neighbour.process.is_alive()) {
            None => Ok(()),
            Some(gone) => Err(Error::Neighbour(format!("{gone} has ended, so it can't be paused any more"))),
        }
    }
}

impl Drop for Pauser {
    fn drop(&mut self) {
        let _ = self.ask(RESUME);
    }
}

/// What the keeper does from its birth to its end. Runs in a forked child: no allocation, no panic, system calls only.
fn keep(socket: RawFd, pids: &[Option<Pid>; PAUSED_MAX], arguments: Option<(u64, u64)>) {
    detach(socket, c"whyso-pauser", arguments);
    let mut handles: [Option<OwnedFd>; PAUSED_MAX] = [const { None }; PAUSED_MAX];
    for (handle, pid) in handles.iter_mut().zip(pids) {
        *handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    }
    let all_found = handles.iter().flatten().count() == pids.iter().flatten().count();
    // SAFETY: `detach` kept this one descriptor open.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let signal_all = |signal: Signal| {
        let mut reached = all_found;
        for handle in handles.iter().flatten() {
            reached &= pidfd_send_signal(handle, signal).is_ok();
        }
        reached
    };
    while is_readable(socket, SILENCE_SECONDS_MAX * NS_PER_S) {
        let done = match message(socket) {
            Some(PAUSE) => signal_all(Signal::STOP),
            Some(RESUME) => signal_all(Signal::CONT),
            _ => break,
        };
        if !answer(socket, if done { DONE } else { GONE }) {
            break;
        }
    }
    signal_all(Signal::CONT);
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Sleeper {
            Sleeper(Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap())
        }

        fn named(&self) -> Neighbour {
            Neighbour::named(&self.0.id().to_string()).unwrap()
        }

        fn is_paused(&self, expected: bool) -> bool {
            let deadline = Instant::now() + Duration::from_secs(10);
            while Instant::now() < deadline {
                if (state_of(self.0.id()) == Some('T')) == expected {
                    return true;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            false
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn programs_are_paused_and_run_again_at_the_end() {
        let (one, other) = (Sleeper::start(), Sleeper::start());
        let mut pauser = Pauser::start(&[one.named(), other.named()]).unwrap();
        assert!(one.is_paused(false));
        pauser.set_paused(true).unwrap();
        assert!(one.is_paused(true) && other.is_paused(true));
        pauser.set_paused(false).unwrap();
        assert!(one.is_paused(false) && other.is_paused(false));
        pauser.set_paused(true).unwrap();
        assert!(one.is_paused(true));
        drop(pauser);
        assert!(one.is_paused(false) && other.is_paused(false));
    }

    #[test]
    fn they_run_again_when_the_one_that_paused_them_is_killed() {
        let sleeper = Sleeper::start();
        let neighbour = sleeper.named();
        // SAFETY: this child makes the calls of the test and is killed; it takes no lock that another thread of the test may hold.
        let child = unsafe { libc::fork() };
        if child == 0 {
            if let Ok(mut pauser) = Pauser::start(&[neighbour])
                && pauser.set_paused(true).is_ok()
            {
                // SAFETY: ends this process as the kernel would end it for another.
                unsafe { libc::raise(libc::SIGKILL) };
            }
            // SAFETY: nothing of the test is run in the child.
            unsafe { libc::_exit(1) }
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(libc::WTERMSIG(status), libc::SIGKILL, "it was killed while the program was paused");
        assert!(sleeper.is_paused(false));
    }

    #[test]
    fn a_program_that_ends_meanwhile_is_named() {
        let sleeper = Sleeper::start();
        let mut pauser = Pauser::start(&[sleeper.named()]).unwrap();
        let name = format!("sleep ({})", sleeper.0.id());
        drop(sleeper);
        let said = pauser.set_paused(true).unwrap_err().to_string();
        assert!(said.contains(&name) && said.contains("has ended"), "{said}");
    }

    #[test]
    fn what_may_not_be_paused_is_refused() {
        let sleeper = Sleeper::start();
        let pid = sleeper.0.id();
        let start = sleeper.named().process.start_ticks;
        let refused = |text: &str| Neighbour::named(text).unwrap_err().to_string();
        assert!(Neighbour::named(&format!("{pid}@{start}")).is_ok());
        assert!(refused(&format!("{pid}@{}", start + 1)).contains("another one"));
        assert!(refused(&std::process::id().to_string()).contains("started by it"));
        assert!(refused("1").contains("started by it"));
        assert!(refused("2000000000").contains("no process has this number"));
        assert!(refused("stress").contains("give the number"));
        assert!(refused("12@").contains("give the number"));
        rustix::process::kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::STOP).unwrap();
        assert!(sleeper.is_paused(true));
        assert!(refused(&pid.to_string()).contains("paused already"));
    }
}

//! A process that we started and the supervisor knows of.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::home::Home;
use super::supervise::announce;
use crate::cpus::CpuSet;

/// Ends its process, and all that this started, when dropped.
pub(super) struct ChildProcess {
    child: Child,
    ended: Option<ExitStatus>,
}

impl ChildProcess {
    /// Starts a process in a group of its own, on its CPUs. The supervisor learns of it before it becomes the program
    /// that it is to be.
    pub(super) fn spawn(
        mut command: Command,
        home: &Home,
        cpus: Option<&CpuSet>,
    ) -> std::io::Result<ChildProcess> {
        let pipe = home.supervisor.pipe();
        let procs: Vec<RawFd> = home.cgroups.iter().map(|cgroup| cgroup.procs().as_raw_fd()).collect();
        let affinity = cpus.map(CpuSet::affinity);
        command.process_group(0);
        // Held by the process and whatever it starts, until all have ended.
        let lock = super::lock::for_server(&home.folder)?;
        let inherited = lock.as_raw_fd();
        let prepare = move || {
            announce(pipe)?;
            // SAFETY: the parent holds the file open across fork and exec.
            unsafe { prepare_server(inherited) }?;
            for procs in &procs {
                // SAFETY: the parent holds the file open across fork and exec.
                let procs = unsafe { std::os::fd::BorrowedFd::borrow_raw(*procs) };
                rustix::io::write(procs, b"0\n")?;
            }
            if let Some(affinity) = &affinity {
                rustix::thread::sched_setaffinity(None, affinity)?;
            }
            Ok(())
        };
        // SAFETY: system calls only, on memory that was prepared before.
        let child = unsafe { command.pre_exec(prepare) }.spawn()?;
        Ok(ChildProcess { child, ended: None })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, where it did.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Waits for its end; `None` when the time is up.
    pub(super) async fn wait(&mut self, bound: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + bound;
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let (None, Some(group)) = (self.ended, Pid::from_raw(self.pid() as i32)) {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Kills it, if it still runs, and whatever it started, and reports it to the supervisor.
    pub(super) fn bury(mut self, home: &Home) {
        self.kill();
        home.supervisor.forget(self.pid());
    }

    fn kill(&mut self) {
        if self.ended().is_none() {
            self.signal(Signal::KILL);
            self.ended = self.child.wait().ok();
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In a server's process before it becomes the server: it keeps the lock on its folder, and may open many files.
///
/// # Safety
/// `lock` is open.
pub(super) unsafe fn prepare_server(lock: RawFd) -> std::io::Result<()> {
    // SAFETY: as the caller says.
    let lock = unsafe { std::os::fd::BorrowedFd::borrow_raw(lock) };
    rustix::io::fcntl_setfd(lock, rustix::io::FdFlags::empty())?;
    allow_many_files();
    Ok(())
}

/// Raises the limit of open files to the highest allowed: each connection and each table takes some.
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // a lower limit is no failure: the server adapts, and says so in its log
    let _ = setrlimit(Resource::Nofile, limit);
}

/// "exited with status 1", "was killed by signal 9".
pub(super) fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with status {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended".to_string(),
    }
}

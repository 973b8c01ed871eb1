//! CPUs that are taken away for a part of each 200 µs, so that all work on them takes longer by a known amount.
//!
//! A forked process on each CPU computes with real-time priority for its part of each period, so nothing else runs there meanwhile. All of them
//! do so at the same time: to what runs on these CPUs, time stands still. What it waits for does not.
//!
//! They end when this process ends, however it ends, and when they hear nothing from it for a minute.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::thread::{CpuSet as Affinity, sched_setaffinity};

use crate::argv::argument_range;
use crate::error::{Error, Result};
use crate::forked::{Helper, NS_PER_S, SILENCE_SECONDS_MAX, answer, detach, is_readable, message, now_ns};

/// Short, as waits of a transaction are: one that ends while its CPU is taken goes on until the CPU is free again.
const PERIOD_NS: i64 = 200_000;
/// Real-time priority: the lowest is above every ordinary program.
const PRIORITY: libc::c_int = 1;

// Messages are per cents of the time that are left to others. At full speed a process wakes as often, and takes nothing: what waking costs is the
// same at each speed. This one ends that.
const FULL_SPEED: u8 = 100;
const AT_REST: u8 = 0;
const DONE: u8 = b'+';
const REFUSED: u8 = b'-';

/// Slows what runs on some CPUs. Dropping it ends that.
pub struct Brake {
    helpers: Vec<Helper>,
}

impl Brake {
    /// Starts a process on each CPU, at rest. Nothing is taken away yet.
    ///
    /// # Errors
    /// Real-time priority is refused, or no process can be made.
    pub fn start(cpus: &[u32]) -> Result<Brake> {
        let failed = |why: &dyn std::fmt::Display| Error::Brake(format!("CPUs can't be taken away: {why}"));
        let arguments = argument_range();
        let mut brake = Brake { helpers: Vec::new() };
        for cpu in cpus.iter().copied() {
            let helper = Helper::fork(|socket| take(socket, cpu, arguments));
            brake.helpers.push(helper.map_err(|error| failed(&error))?);
        }
        match brake.ask(AT_REST) {
            Some(DONE) => Ok(brake),
            Some(_) => Err(failed(&"real-time priority is refused; run whyso as root")),
            None => Err(failed(&"the process that takes them has ended")),
        }
    }

    /// Leaves this part of the time to what runs on the CPUs, 1 to 99 per cent; at 100, all of it.
    ///
    /// # Errors
    /// A process has ended, or has heard nothing for too long.
    pub fn slow_to(&mut self, percent: u8) -> Result<()> {
        match self.ask(percent.clamp(1, FULL_SPEED)) {
            Some(DONE) => Ok(()),
            _ => Err(Error::Brake("the process that takes CPUs away has ended".to_string())),
        }
    }

    /// The first answer that is not DONE, if there is one.
    fn ask(&self, what: u8) -> Option<u8> {
        let mut answers = self.helpers.iter().map(|helper| helper.ask(what));
        answers.find(|answer| *answer != Some(DONE)).unwrap_or(Some(DONE))
    }
}

/// What a process does from its birth to its end. Runs in a forked child: no allocation, no panic, system calls only.
fn take(socket: RawFd, cpu: u32, arguments: Option<(u64, u64)>) {
    detach(socket, c"whyso-brake", arguments);
    // SAFETY: `detach` kept this one descriptor open.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let may = is_alone_on(cpu);
    let mut percent = AT_REST;
    loop {
        let has_message = match percent {
            AT_REST => is_readable(socket, SILENCE_SECONDS_MAX * NS_PER_S),
            percent => take_periods(socket, i64::from(percent)),
        };
        let Some(asked) = message(socket).filter(|_| has_message) else { return };
        percent = if may { asked } else { AT_REST };
        if !answer(socket, if may { DONE } else { REFUSED }) {
            return;
        }
    }
}

/// Keeps this process on one CPU, before every ordinary program; false where that is refused.
fn is_alone_on(cpu: u32) -> bool {
    if cpu as usize >= Affinity::MAX_CPU {
        return false;
    }
    let mut affinity = Affinity::new();
    affinity.set(cpu as usize);
    let priority = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the kernel reads this structure during the call.
    let refused =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority) };
    sched_setaffinity(None, &affinity).is_ok() && refused == 0
}

/// Computes for a part of each period, until a message comes; false where none comes in time.
fn take_periods(socket: BorrowedFd<'_>, percent_left: i64) -> bool {
    let end_ns = now_ns() + SILENCE_SECONDS_MAX * NS_PER_S;
    loop {
        let now = now_ns();
        if now > end_ns {
            return false;
        }
        let begin_ns = (now / PERIOD_NS + 1) * PERIOD_NS;
        if is_readable(socket, begin_ns - now) {
            return true;
        }
        // It may have come late, and takes its part all the same.
        let until_ns = now_ns() + PERIOD_NS * (100 - percent_left) / 100;
        while now_ns() < until_ns {
            std::hint::spin_loop();
        }
    }
}

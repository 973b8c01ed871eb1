//! The machine's CPU time, by the kernel's account of it.

use std::io;

/// USER_HZ: the unit of `/proc/stat`.
const TICK_NS: u64 = 10_000_000;

/// CPU time of a process up to now, with that of its threads that are gone.
pub(crate) fn process_cpu_ns(pid: u32) -> io::Result<u64> {
    let mut clock = 0;
    // SAFETY: a place for the clock's number.
    let status = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &raw mut clock) };
    if status != 0 {
        return Err(io::Error::from_raw_os_error(status));
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the time.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

/// CPU time of all CPUs, in nanoseconds: since boot, or of a window.
#[derive(Clone, Copy)]
pub(crate) struct CpuTime {
    pub busy_ns: u64,
    /// Of `busy_ns`: in interrupts and what they leave to do (irq, softirq).
    pub interrupts_ns: u64,
    /// What the hypervisor gave to other machines (steal).
    pub stolen_ns: u64,
    pub all_ns: u64,
}

impl CpuTime {
    pub(crate) fn now() -> io::Result<CpuTime> {
        let stat = std::fs::read_to_string("/proc/stat")?;
        let ticks: Vec<u64> =
            stat.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks[..] else {
            return Err(io::Error::other("/proc/stat does not begin with the eight accounts of all CPUs"));
        };
        let busy = user + nice + system + irq + softirq;
        Ok(CpuTime {
            busy_ns: busy * TICK_NS,
            interrupts_ns: (irq + softirq) * TICK_NS,
            stolen_ns: steal * TICK_NS,
            all_ns: (busy + idle + iowait + steal) * TICK_NS,
        })
    }

    /// What passed since `self`.
    pub(crate) fn until_now(&self) -> io::Result<CpuTime> {
        let now = CpuTime::now()?;
        Ok(CpuTime {
            busy_ns: now.busy_ns.saturating_sub(self.busy_ns),
            interrupts_ns: now.interrupts_ns.saturating_sub(self.interrupts_ns),
            stolen_ns: now.stolen_ns.saturating_sub(self.stolen_ns),
            all_ns: now.all_ns.saturating_sub(self.all_ns),
        })
    }

    /// Of all CPU time.
    pub(crate) fn per_cent(&self, ns: u64) -> f64 {
        ns as f64 / self.all_ns.max(1) as f64 * 100.0
    }
}

//! What the programs in the kernel cost, as the kernel counts it, and the samplers of CPUs.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::{Link, ProgramMut};

use crate::error::Error;

/// Samples per second on each CPU: not a divisor of the rates at which kernels tick.
pub(crate) const SAMPLES_PER_S: u64 = 99;

/// The program that only returns: its run time is the counting's own. It runs where the cost is asked for.
pub const NOTHING: &str = "nothing";

/// What one program has cost since it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    pub program: String,
    pub runs: u64,
    pub ns: u64,
}

/// What a program has cost, as the kernel counted it.
pub(crate) fn cost_of(name: &str, fd: BorrowedFd<'_>) -> Option<Cost> {
    // SAFETY: all zeros are a `bpf_prog_info` that asks for nothing more.
    let mut info: libbpf_rs::libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: the descriptor is a program's, and `info` has `bytes` bytes.
    let status = unsafe {
        libbpf_rs::libbpf_sys::bpf_obj_get_info_by_fd(fd.as_raw_fd(), (&raw mut info).cast(), &raw mut bytes)
    };
    (status == 0).then(|| Cost { program: name.to_string(), runs: info.run_cnt, ns: info.run_time_ns })
}

/// While it lives, the kernel counts what each run of a BPF program takes, of every program on the machine. That adds
/// some 40 ns to each run, which are in what it counts.
#[derive(Debug)]
pub struct CountingCost {
    /// The kernel counts for as long as it is open.
    _open: OwnedFd,
}

impl CountingCost {
    /// `None` where that is not allowed.
    pub fn begin() -> Option<CountingCost> {
        // SAFETY: a plain system call, without pointers.
        let fd =
            unsafe { libbpf_rs::libbpf_sys::bpf_enable_stats(libbpf_rs::libbpf_sys::BPF_STATS_RUN_TIME) };
        // SAFETY: a descriptor that only we have.
        (fd >= 0).then(|| CountingCost { _open: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Whether somebody has the kernel count all the time (`sysctl kernel.bpf_stats_enabled=1`).
    pub fn is_always() -> bool {
        std::fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled").is_ok_and(|set| set.trim() != "0")
    }
}

/// Runs a program `samples_per_s` times per second on one CPU, until the link is dropped. None where the CPU is offline: it has no samples.
///
/// # Errors
/// Where the kernel does not take the program.
pub(crate) fn attach_sampler(
    program: &ProgramMut<'_>,
    cpu: usize,
    samples_per_s: u64,
) -> Result<Option<Link>, Error> {
    let Ok(sampler) = open_sampler(cpu, samples_per_s) else { return Ok(None) };
    let link = program.attach_perf_event(sampler.as_raw_fd()).map_err(Error::of)?;
    // The link closes the descriptor. Closed twice, it could by then be another thread's file.
    let _closed_by_link = sampler.into_raw_fd();
    Ok(Some(link))
}

/// Samples of one CPU, by the kernel's own clock.
fn open_sampler(cpu: usize, samples_per_s: u64) -> std::io::Result<OwnedFd> {
    // SAFETY: all zeros are attributes that ask for nothing.
    let mut attributes: libbpf_rs::libbpf_sys::perf_event_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of_val(&attributes) as u32;
    attributes.type_ = libbpf_rs::libbpf_sys::PERF_TYPE_SOFTWARE;
    attributes.config = u64::from(libbpf_rs::libbpf_sys::PERF_COUNT_SW_CPU_CLOCK);
    attributes.__bindgen_anon_1.sample_freq = samples_per_s;
    attributes.set_freq(1);
    let everyone: libc::pid_t = -1;
    let no_group: libc::c_int = -1;
    // SAFETY: the attributes live through the call, and hold their own size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            everyone,
            cpu as libc::c_int,
            no_group,
            libc::c_ulong::from(libbpf_rs::libbpf_sys::PERF_FLAG_FD_CLOEXEC),
        )
    };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a descriptor that only we have.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

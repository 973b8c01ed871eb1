//! Which CPUs a process may run on: requested as a list or as text, resolved on the machine's topology.
//!
//! ```
//! use whyso_server::cpus::{Cpu, Topology, resolve};
//!
//! // one socket, two cores with two threads each
//! let cpus = (0..4).map(|id| Cpu { id, socket: 0, core: id % 2 }).collect();
//! let topology = Topology::new(cpus);
//! assert_eq!(resolve("2 cores", &topology)?.list(), "0-3");
//! assert_eq!(resolve("2 cores no HT", &topology)?.list(), "0-1");
//! assert_eq!(resolve("0,3", &topology)?.cpus(), [0, 3]);
//! # Ok::<(), whyso_server::Error>(())
//! ```

mod cgroup;
mod request;
mod topology;

use std::fmt;

pub(crate) use cgroup::Cgroup;
pub use request::resolve;
pub use topology::{Cpu, Topology};

/// CPUs that a process is to run on: never empty, ascending, without repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet {
    cpus: Vec<u32>,
    asked: String,
    sockets: usize,
    cores: usize,
}

impl CpuSet {
    /// Resolves a list ("0-3,8") or words ("1 socket", "4 cores no HT") on this machine, among the
    /// CPUs that this process may use.
    ///
    /// # Errors
    ///
    /// [`Error::Cpus`](crate::Error::Cpus) where it can't be understood or the machine lacks it.
    pub fn resolve(asked: &str) -> crate::Result<CpuSet> {
        resolve(asked, &Topology::of_this_machine()?)
    }

    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// For the kernel.
    pub(crate) fn affinity(&self) -> rustix::thread::CpuSet {
        affinity(&self.cpus)
    }

    /// What was asked for, as it was typed.
    pub fn request(&self) -> &str {
        &self.asked
    }

    /// In the kernel's notation, such as "0-3,8".
    pub fn list(&self) -> String {
        let mut list = String::new();
        let mut at = 0;
        while at < self.cpus.len() {
            let first = self.cpus[at];
            while at + 1 < self.cpus.len() && self.cpus[at + 1] == self.cpus[at] + 1 {
                at += 1;
            }
            if !list.is_empty() {
                list.push(',');
            }
            list.push_str(&first.to_string());
            if self.cpus[at] > first {
                list.push_str(&format!("-{}", self.cpus[at]));
            }
            at += 1;
        }
        list
    }
}

/// CPUs for the kernel.
pub(crate) fn affinity(cpus: &[u32]) -> rustix::thread::CpuSet {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize);
    }
    set
}

impl fmt::Display for CpuSet {
    /// What it resolved to: "CPUs 0-3 (1 socket, 4 cores, 4 threads)".
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        write!(
            formatter,
            "CPU{} {} ({} socket{}, {} core{}, {} thread{})",
            plural(self.cpus.len()),
            self.list(),
            self.sockets,
            plural(self.sockets),
            self.cores,
            plural(self.cores),
            self.cpus.len(),
            plural(self.cpus.len()),
        )
    }
}

/// What keeps a process on its CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Means {
    /// A cpuset cgroup in addition to the affinity: the process can't widen it itself.
    Cgroup { version: u8, path: std::path::PathBuf },
    /// Only the affinity, which threads inherit but may change; with why there is no cgroup.
    Affinity { why_no_cgroup: String },
}

impl fmt::Display for Means {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Means::Cgroup { version, .. } => write!(formatter, "affinity and a cpuset cgroup (v{version})"),
            Means::Affinity { why_no_cgroup } => write!(formatter, "affinity alone ({why_no_cgroup})"),
        }
    }
}

//! The machine's sockets, cores and threads.

use std::path::Path;

use crate::error::{Error, Result, io};

/// One logical CPU. `core` is unique within its socket only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    pub id: u32,
    pub socket: u32,
    pub core: u32,
}

/// The logical CPUs that may be used, in the order in which they are handed out. That is socket by socket and core by
/// core, with the threads of a core together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
}

impl Topology {
    pub fn new(mut cpus: Vec<Cpu>) -> Topology {
        // the lowest CPU of a socket or of a core decides its place, as their own numbers mean nothing
        let lowest_of_socket =
            |socket: u32, all: &[Cpu]| all.iter().filter(|cpu| cpu.socket == socket).map(|cpu| cpu.id).min();
        let lowest_of_core = |wanted: &Cpu, all: &[Cpu]| {
            all.iter()
                .filter(|cpu| cpu.socket == wanted.socket && cpu.core == wanted.core)
                .map(|cpu| cpu.id)
                .min()
        };
        let all = cpus.clone();
        cpus.sort_by_cached_key(|cpu| {
            (lowest_of_socket(cpu.socket, &all), lowest_of_core(cpu, &all), cpu.id)
        });
        cpus.dedup_by_key(|cpu| cpu.id);
        Topology { cpus }
    }

    /// Reads `/sys/devices/system/cpu`, and leaves out what this process may not use.
    pub fn of_this_machine() -> Result<Topology> {
        let root = Path::new("/sys/devices/system/cpu");
        let allowed = rustix::thread::sched_getaffinity(None)
            .map_err(|errno| Error::Cpus(format!("cannot ask which CPUs this process may use: {errno}")))?;
        let online_path = root.join("online");
        let online = std::fs::read_to_string(&online_path).map_err(io("cannot read", &online_path))?;
        let mut cpus = Vec::new();
        for id in parse_list(online.trim())
            .ok_or_else(|| Error::Cpus("the kernel's list of CPUs is unreadable".into()))?
        {
            if (id as usize) < rustix::thread::CpuSet::MAX_CPU && allowed.is_set(id as usize) {
                let folder = root.join(format!("cpu{id}/topology"));
                let number = |file: &str| -> Option<u32> {
                    std::fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
                };
                // some virtual machines show no topology: then each CPU is a core of one socket
                let socket = number("physical_package_id").unwrap_or(0);
                let core = number("core_id").unwrap_or(id);
                cpus.push(Cpu { id, socket, core });
            }
        }
        Ok(Topology::new(cpus))
    }

    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The sockets' numbers, in order.
    pub(super) fn sockets(&self) -> Vec<u32> {
        let mut sockets: Vec<u32> = self.cpus.iter().map(|cpu| cpu.socket).collect();
        sockets.dedup();
        sockets
    }

    /// The cores of a socket, each as its threads.
    pub(super) fn cores_of(&self, socket: u32) -> Vec<Vec<Cpu>> {
        let mut cores: Vec<Vec<Cpu>> = Vec::new();
        for cpu in self.cpus.iter().filter(|cpu| cpu.socket == socket) {
            match cores.last_mut() {
                Some(core) if core[0].core == cpu.core => core.push(*cpu),
                _ => cores.push(vec![*cpu]),
            }
        }
        cores
    }
}

/// A list in the kernel's notation, such as "0-3,8"; `None` where it is none.
pub(super) fn parse_list(text: &str) -> Option<Vec<u32>> {
    /// More than any kernel is built for.
    const MAX_CPU: u32 = 8192;
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().ok()?;
        let last: u32 = last.trim().parse().ok()?;
        if first > last || last > MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

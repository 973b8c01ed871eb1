//! The program that takes stacks of all other programs on the machine.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject};

use crate::cost::{Cost, attach_sampler, cost_of};
use crate::error::Error;
use crate::namespace::PidNamespace;
use crate::programs_skeleton::{ProgramsSkel, ProgramsSkelBuilder};
use crate::ring::Records;
use crate::stack_record::StackRecord;
use crate::stack_sampling::StackSampling;

/// Bytes before the stack: `struct program_sample` of `bpf/program_sample.h`.
const HEADER_BYTES: usize = 24;
const NAME_BYTES: usize = 16;
/// Bytes of the buffer for each CPU: room for a late reader.
const RING_BYTES_PER_CPU: u32 = 1 << 18;

/// What a program is to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramOrigin {
    /// A process.
    Process,
    /// A thread of the kernel.
    Kernel,
    /// The program that watches.
    Own,
}

/// A program that was found on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRecord<'a> {
    /// The name of the process, as `ps -e` shows it; 15 bytes at most. Of the kernel's threads, the thread's name.
    pub name: String,
    pub origin: ProgramOrigin,
    pub stack: StackRecord<'a>,
}

impl<'a> ProgramRecord<'a> {
    /// `None` for bytes that no program of ours wrote.
    fn of(bytes: &'a [u8]) -> Option<ProgramRecord<'a>> {
        let (header, stack) = bytes.split_at_checked(HEADER_BYTES)?;
        let name = header[..NAME_BYTES].split(|byte| *byte == 0).next().unwrap_or_default();
        let origin = match (header[NAME_BYTES], header[NAME_BYTES + 1]) {
            (0, 0) => ProgramOrigin::Process,
            (0, 1) => ProgramOrigin::Own,
            (1, 0) => ProgramOrigin::Kernel,
            _ => return None,
        };
        let name = String::from_utf8_lossy(name).into_owned();
        Some(ProgramRecord { name, origin, stack: StackRecord::of(stack)? })
    }
}

/// Samples of every program except the server; they end when this is dropped.
pub struct ProgramStacks {
    // Declared before what they refer to, so that they end first.
    links: Vec<Link>,
    records: Records,
    skeleton: ProgramsSkel<'static>,
    _object: Box<MaybeUninit<OpenObject>>,
    odd: u64,
}

impl ProgramStacks {
    /// Samples all programs on this machine: no server is traced.
    ///
    /// # Errors
    /// Where the kernel or the rights do not allow it.
    pub fn of_machine(sampling: StackSampling) -> Result<ProgramStacks, Error> {
        if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(Error::NoBtf);
        }
        libbpf_rs::set_print(None);
        ProgramStacks::start(sampling, None)
    }

    /// `accounts`: the tracer's maps, by which threads of the server are left out.
    pub(crate) fn start(
        sampling: StackSampling,
        accounts: Option<(BorrowedFd<'_>, BorrowedFd<'_>)>,
    ) -> Result<ProgramStacks, Error> {
        let namespace = PidNamespace::own()?;
        let cpus = libbpf_rs::num_possible_cpus().map_err(Error::of)?;
        let mut object = Box::new(MaybeUninit::uninit());
        // SAFETY: the box outlives the skeleton, which is declared before it, and its content does not move.
        let place: &'static mut MaybeUninit<OpenObject> =
            unsafe { &mut *std::ptr::from_mut(object.as_mut()) };
        let mut open = ProgramsSkelBuilder::default().open(place).map_err(Error::of)?;
        let samples_per_s = sampling.samples_per_s().max(1);
        if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
            constants.clock_offset_ns = whyso_clock::namespace_offset_ns();
            constants.sample_ns = 1_000_000_000 / samples_per_s;
            constants.own_tgid = std::process::id();
            constants.pid_namespace = namespace.inode;
            constants.pid_namespace_level = namespace.level;
        }
        let maps = &mut open.maps;
        match accounts {
            Some((accounts, account_of)) => {
                maps.accounts.reuse_fd(accounts).map_err(Error::of)?;
                maps.account_of.reuse_fd(account_of).map_err(Error::of)?;
            }
            None => maps.accounts.set_max_entries(1).map_err(Error::of)?,
        }
        maps.pasts.set_max_entries(1).map_err(Error::of)?;
        let cpus_u32 = u32::try_from(cpus).unwrap_or(1);
        maps.scratches.set_max_entries(cpus_u32).map_err(Error::of)?;
        let ring_bytes = (cpus_u32.clamp(4, 64) * RING_BYTES_PER_CPU).next_power_of_two();
        maps.records.set_max_entries(ring_bytes).map_err(Error::of)?;
        let skeleton = open.load().map_err(Error::of)?;
        let records = Records::of(&skeleton.maps.records)?;
        let mut stacks = ProgramStacks { links: Vec::new(), records, skeleton, _object: object, odd: 0 };
        for cpu in 0..cpus {
            let link = attach_sampler(&stacks.skeleton.progs.on_program, cpu, samples_per_s)?;
            stacks.links.extend(link);
        }
        Ok(stacks)
    }

    /// Hands over what was sampled since the last time, in order, 10,000 records at most.
    ///
    /// # Errors
    /// The buffer can't be read.
    pub fn take(&mut self, mut each: impl FnMut(&ProgramRecord<'_>)) -> Result<(), Error> {
        let odd = &mut self.odd;
        self.records.take(|bytes| match ProgramRecord::of(bytes) {
            Some(record) => each(&record),
            None => *odd += 1,
        })
    }

    /// Of how many samples one is recorded, which stands for all of them.
    pub fn sample_every(&self) -> u64 {
        self.skeleton.maps.data_data.as_deref().map_or(1, |data| data.sample_every)
    }

    /// Sets of how many samples one is recorded, from 1.
    pub fn set_sample_every(&mut self, every: u64) {
        if let Some(data) = self.skeleton.maps.data_data.as_deref_mut() {
            data.sample_every = every.max(1);
        }
    }

    /// Records that were not read in time.
    pub fn lost(&self) -> u64 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |data| data.records_lost)
    }

    /// Records that were not what the program writes.
    pub fn odd(&self) -> u64 {
        self.odd
    }

    /// What the program has cost, of the runs that the kernel counted ([`crate::CountingCost`]).
    pub fn cost(&self) -> Vec<Cost> {
        cost_of("perf_event", self.skeleton.progs.on_program.as_fd()).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &[u8], is_kernel: u8, is_own: u8) -> Vec<u8> {
        let mut bytes = name.to_vec();
        bytes.resize(NAME_BYTES, 0);
        bytes.extend([is_kernel, is_own, 0, 0, 0, 0, 0, 0]);
        let mut stack = vec![0; 88 + 8 * 64];
        stack[0] = 1;
        stack[8..12].copy_from_slice(&77u32.to_ne_bytes());
        bytes.extend(stack);
        bytes
    }

    #[test]
    fn a_record_has_the_name_of_its_program_and_what_it_is() {
        let bytes = record(b"python3", 0, 0);
        let read = ProgramRecord::of(&bytes).unwrap();
        assert_eq!(
            (read.name.as_str(), read.origin, read.stack.pid),
            ("python3", ProgramOrigin::Process, 77)
        );
        let of =
            |is_kernel, is_own| ProgramRecord::of(&record(b"x", is_kernel, is_own)).map(|read| read.origin);
        assert_eq!(of(1, 0), Some(ProgramOrigin::Kernel));
        assert_eq!(of(0, 1), Some(ProgramOrigin::Own));
        assert_eq!(of(1, 1), None, "the kernel has no process of ours");
        let long = record(b"0123456789abcdef", 0, 0);
        assert_eq!(ProgramRecord::of(&long).unwrap().name, "0123456789abcdef");
    }

    #[test]
    fn what_no_program_wrote_is_no_record() {
        let bytes = record(b"sh", 0, 0);
        assert_eq!(ProgramRecord::of(&bytes[..HEADER_BYTES]), None);
        assert_eq!(ProgramRecord::of(&bytes[..HEADER_BYTES - 1]), None);
        assert_eq!(ProgramRecord::of(&[]), None);
    }
}

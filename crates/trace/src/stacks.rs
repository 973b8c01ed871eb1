//! The programs that take stacks, in addition to those that keep the accounts.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject};

use crate::cost::{Cost, attach_sampler, cost_of};
use crate::error::Error;
use crate::namespace::PidNamespace;
use crate::ring::Records;
use crate::stack_record::StackRecord;
use crate::stack_sampling::StackSampling;
use crate::stacks_skeleton::{StacksSkel, StacksSkelBuilder};

/// Records that a CPU can be at work on at a time; `bpf/stacks.bpf.c` has the same number.
const SCRATCHES_OF_A_CPU: u32 = 3;
/// Bounds of the period: a wait that is as long is always chosen. The programs rely on the upper one.
const PERIOD_NS_MIN: u64 = 1_000_000;
const PERIOD_NS_MAX: u64 = 1_000_000_000;

/// Records that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StacksLost {
    /// They were not read in time.
    pub records: u64,
    /// There was no memory for a thread's wait.
    pub storage: u64,
    /// They were not what the programs write.
    pub odd: u64,
}

/// Programs that take stacks; they are gone when this is dropped. The [`crate::Tracer`] that made it has to live as long:
/// its programs record what each thread is in.
pub struct Stacks {
    // Declared before what they refer to, so that they end first.
    links: Vec<Link>,
    records: Records,
    skeleton: StacksSkel<'static>,
    _object: Box<MaybeUninit<OpenObject>>,
    sampling: StackSampling,
    odd: u64,
}

/// Waits that are chosen on each CPU between two readings before the period is doubled.
pub const WAITS_PER_READING_AND_CPU: u64 = 50;

/// Bytes of the buffer: a power of two, with room for what is taken between two readings by a late reader. With waits that is
/// some 200 per second and CPU, with two stacks each, of 32 KiB at most and mostly a quarter of that. Without, it is 49 stacks per second
/// and CPU.
fn ring_bytes(sampling: StackSampling, cpus: usize) -> u32 {
    let cpus = u32::try_from(cpus).unwrap_or(64).clamp(4, 64);
    let bytes_per_cpu = if sampling.takes_waits() { 1 << 20 } else { 1 << 18 };
    (cpus * bytes_per_cpu).next_power_of_two()
}

impl Stacks {
    pub(crate) fn start(
        sampling: StackSampling,
        namespace: PidNamespace,
        accounts: BorrowedFd<'_>,
        account_of: BorrowedFd<'_>,
        pasts: BorrowedFd<'_>,
    ) -> Result<Stacks, Error> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(Error::of)?;
        let mut object = Box::new(MaybeUninit::uninit());
        // SAFETY: the box outlives the skeleton, which is declared before it, and its content does not move.
        let place: &'static mut MaybeUninit<OpenObject> =
            unsafe { &mut *std::ptr::from_mut(object.as_mut()) };
        let mut open = StacksSkelBuilder::default().open(place).map_err(Error::of)?;
        if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
            constants.clock_offset_ns = whyso_clock::namespace_offset_ns();
            constants.pid_namespace = namespace.inode;
            constants.pid_namespace_level = namespace.level;
            constants.sample_ns = 1_000_000_000 / sampling.samples_per_s().max(1);
            constants.waits_max = WAITS_PER_READING_AND_CPU * cpus as u64;
        }
        open.maps.accounts.reuse_fd(accounts).map_err(Error::of)?;
        open.maps.account_of.reuse_fd(account_of).map_err(Error::of)?;
        open.maps.pasts.reuse_fd(pasts).map_err(Error::of)?;
        open.maps.scratches.set_max_entries(cpus as u32 * SCRATCHES_OF_A_CPU).map_err(Error::of)?;
        open.maps.records.set_max_entries(ring_bytes(sampling, cpus)).map_err(Error::of)?;
        open.progs.on_waking.set_autoload(sampling.takes_waits());
        open.progs.on_back.set_autoload(sampling.takes_waits());
        let skeleton = open.load().map_err(Error::of)?;
        let records = Records::of(&skeleton.maps.records)?;
        let mut stacks = Stacks { links: Vec::new(), records, skeleton, _object: object, sampling, odd: 0 };
        stacks.attach(cpus)?;
        Ok(stacks)
    }

    fn attach(&mut self, cpus: usize) -> Result<(), Error> {
        let programs = &mut self.skeleton.progs;
        if self.sampling.takes_waits() {
            // First what completes a wait, then what begins one.
            for program in [&mut programs.on_back, &mut programs.on_waking] {
                self.links.push(program.attach().map_err(Error::of)?);
            }
        }
        for cpu in 0..cpus {
            self.links.extend(attach_sampler(&programs.on_sample, cpu, self.sampling.samples_per_s())?);
        }
        Ok(())
    }

    /// Hands over what was taken since the last time, in the order in which it was, 10,000 records at most. To be called about ten times
    /// per second: more than the buffer holds is lost, and counted.
    ///
    /// # Errors
    /// The buffer can't be read.
    pub fn take(&mut self, mut each: impl FnMut(&StackRecord<'_>)) -> Result<(), Error> {
        let odd = &mut self.odd;
        self.records.take(|bytes| match StackRecord::of(bytes) {
            Some(record) => each(&record),
            None => *odd += 1,
        })
    }

    /// A wait that is as long as the period is always chosen, a shorter one with probability length / period.
    pub fn period_ns(&self) -> u64 {
        self.skeleton.maps.data_data.as_deref().map_or(PERIOD_NS_MIN, |data| data.period_ns)
    }

    /// Sets the period, within 1 ms and 1 s. Each record carries its weight: no sum is wrong for it.
    pub fn set_period_ns(&mut self, period_ns: u64) {
        if let Some(data) = self.skeleton.maps.data_data.as_deref_mut() {
            data.period_ns = period_ns.clamp(PERIOD_NS_MIN, PERIOD_NS_MAX);
        }
    }

    /// Starts the count of waits again, after each [`Stacks::take`]. At more than [`WAITS_PER_READING_AND_CPU`] per CPU the period is
    /// doubled at once, and again.
    pub fn begin_reading(&mut self) {
        if let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() {
            data.bounded_from = data.waits_chosen;
        }
    }

    /// What is taken.
    pub fn sampling(&self) -> StackSampling {
        self.sampling
    }

    pub fn lost(&self) -> StacksLost {
        let lost = self.skeleton.maps.bss_data.as_deref().map(|data| data.stacks_lost).unwrap_or_default();
        StacksLost { records: lost.records, storage: lost.storage, odd: self.odd }
    }

    /// What the programs have cost, of the runs that the kernel counted ([`crate::CountingCost`]).
    pub fn cost(&self) -> Vec<Cost> {
        let programs = &self.skeleton.progs;
        let mut all = vec![("perf_event", programs.on_sample.as_fd())];
        if self.sampling.takes_waits() {
            all.extend([
                ("sched_waking", programs.on_waking.as_fd()),
                ("rseq_update", programs.on_back.as_fd()),
            ]);
        }
        all.into_iter().filter_map(|(name, fd)| cost_of(name, fd)).collect()
    }
}

//! The programs that follow the commands of clients, in addition to those that keep the accounts.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, ProgramMut, RingBufferBuilder};

use crate::command::Command;
use crate::cost::{Cost, NOTHING, cost_of};
use crate::dispatcher::Dispatcher;
use crate::error::Error;
use crate::namespace::PidNamespace;
use crate::places::Places;
use crate::sql_skeleton::{SqlSkel, SqlSkelBuilder};

/// Records that are handed over at a time.
pub const COMMANDS_AT_ONCE: usize = 50_000;
/// Bytes of the buffer of commands, by the number of CPUs: a power of two. A command takes some 200 bytes. So a reading that is 50 ms late has room
/// for 1.6 million commands per second at 16 CPUs.
pub fn commands_ring_bytes(cpus: usize) -> u32 {
    let cpus = u32::try_from(cpus).unwrap_or(64).clamp(16, 64);
    (cpus << 20).next_power_of_two()
}

/// Rounds by which it is measured what the probes cost, and calls of each: some milliseconds.
const MEASURED_ROUNDS: u32 = 10;
const MEASURED_CALLS: u32 = 200;

/// `struct copy` of `bpf/sql.h`, up to the object.
const COPY_HEADER_BYTES: usize = 16;

/// Commands that could not be handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandsLost {
    /// They were not read in time.
    pub records: u64,
    /// There was no memory for a thread's command.
    pub storage: u64,
    /// Their end was not seen.
    pub ends: u64,
    /// They were not what the programs write.
    pub odd: u64,
}

/// Programs that follow the commands of clients; they are gone when this is dropped. The [`crate::Tracer`] that made it has to live
/// as long: its programs record what each thread is in.
pub struct SqlTrace {
    // Declared before what they refer to, so that they end first.
    links: Vec<Link>,
    skeleton: SqlSkel<'static>,
    _object: Box<MaybeUninit<OpenObject>>,
    odd: u64,
}

impl SqlTrace {
    /// `pid`: the server's process, which has `file` mapped, where the dispatcher is.
    pub(crate) fn start(
        namespace: PidNamespace,
        accounts: BorrowedFd<'_>,
        account_of: BorrowedFd<'_>,
        pid: u32,
        file: &Path,
        dispatcher: &Dispatcher,
    ) -> Result<SqlTrace, Error> {
        let mut object = Box::new(MaybeUninit::uninit());
        // SAFETY: the box outlives the skeleton, which is declared before it, and its content does not move.
        let place: &'static mut MaybeUninit<OpenObject> =
            unsafe { &mut *std::ptr::from_mut(object.as_mut()) };
        let mut open = SqlSkelBuilder::default().open(place).map_err(Error::of)?;
        if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
            constants.clock_offset_ns = whyso_clock::namespace_offset_ns();
            constants.pid_namespace = namespace.inode;
            constants.pid_namespace_level = namespace.level;
            constants.signature = dispatcher.signature as u32;
        }
        open.maps.accounts.reuse_fd(accounts).map_err(Error::of)?;
        open.maps.account_of.reuse_fd(account_of).map_err(Error::of)?;
        let cpus = libbpf_rs::num_possible_cpus().map_err(Error::of)?;
        open.maps.commands.set_max_entries(commands_ring_bytes(cpus)).map_err(Error::of)?;
        let skeleton = open.load().map_err(Error::of)?;
        let mut trace = SqlTrace { links: Vec::new(), skeleton, _object: object, odd: 0 };
        trace.follow(pid, file, dispatcher)?;
        Ok(trace)
    }

    /// Goes over to another process of the same build, after the server was started again.
    ///
    /// # Errors
    /// Where the kernel does not take the probes; then no process is followed.
    pub fn follow(&mut self, pid: u32, file: &Path, dispatcher: &Dispatcher) -> Result<(), Error> {
        self.links.clear();
        let programs = &mut self.skeleton.progs;
        let mut links = Vec::new();
        // First what completes a command, then what begins one.
        for end in &dispatcher.ends {
            links.push(attach(&mut programs.on_end, pid, file, end.offset)?);
        }
        links.push(attach(&mut programs.on_begin, pid, file, dispatcher.begin.offset)?);
        self.links = links;
        Ok(())
    }

    /// Hands over the commands that ended since the last time, in that order, 50,000 at most. To be called about ten times
    /// per second: more than the buffer holds is lost, and counted. Returns whether there may be more.
    ///
    /// # Errors
    /// The buffer can't be read.
    pub fn take(&mut self, each: impl FnMut(&Command<'_>)) -> Result<bool, Error> {
        let each = Rc::new(RefCell::new((each, 0)));
        let shared = Rc::clone(&each);
        let mut builder = RingBufferBuilder::new();
        let receive = move |bytes: &[u8]| {
            let (each, odd) = &mut *shared.borrow_mut();
            match Command::of(bytes) {
                Some(command) => each(&command),
                None => *odd += 1,
            }
            0
        };
        builder.add(&self.skeleton.maps.commands, receive).map_err(Error::of)?;
        let ring = builder.build().map_err(Error::of)?;
        let status = ring.consume_raw_n(COMMANDS_AT_ONCE);
        if status < 0 {
            return Err(Error::of(std::io::Error::from_raw_os_error(-status).into()));
        }
        drop(ring);
        self.odd += each.borrow().1;
        Ok(usize::try_from(status).is_ok_and(|taken| taken >= COMMANDS_AT_ONCE))
    }

    /// From now on each command has what the connection's object holds at these places.
    pub fn set_places(&mut self, places: &Places) {
        let Some(data) = self.skeleton.maps.data_data.as_deref_mut() else { return };
        let place = |place: Option<u32>| place.unwrap_or(u32::MAX);
        data.places.rows_sent = place(places.rows_sent);
        data.places.rows_examined = place(places.rows_examined);
        data.places.rows_affected = place(places.rows_affected);
        data.places.error = place(places.error);
        data.places.connection_id = place(places.connection_id);
    }

    /// From now on this connection's object is copied when one of its commands ends: what costs some microseconds; `None`: no more.
    pub fn copy_object(&mut self, connection: Option<u64>) {
        if let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() {
            data.copied_connection = connection.unwrap_or(0);
        }
    }

    /// The object as it was when the last command ended of the connection that [`SqlTrace::copy_object`] names, with that command's end; `None`
    /// before there was one.
    ///
    /// # Errors
    /// The kernel does not give it.
    pub fn copied(&self) -> Result<Option<(i64, Vec<u8>)>, Error> {
        let value =
            self.skeleton.maps.copies.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(Error::of)?;
        let Some(value) = value.filter(|value| value.len() >= COPY_HEADER_BYTES) else { return Ok(None) };
        let (header, object) = value.split_at(COPY_HEADER_BYTES);
        let long = |at: usize| header[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        let bytes = object.len().min(usize::try_from(long(8)).unwrap_or(0));
        Ok((bytes > 0).then(|| (long(0) as i64, object[..bytes].to_vec())))
    }

    pub fn lost(&self) -> CommandsLost {
        let lost = self.skeleton.maps.bss_data.as_deref().map(|data| data.sql_lost).unwrap_or_default();
        CommandsLost { records: lost.records, storage: lost.storage, ends: lost.ends, odd: self.odd }
    }

    /// What the programs have cost, without what it costs to enter them; nothing where the kernel does not count it.
    pub fn cost(&self) -> Vec<Cost> {
        let programs = &self.skeleton.progs;
        let all = [
            ("sql begin", programs.on_begin.as_fd()),
            ("sql end", programs.on_end.as_fd()),
            (NOTHING, programs.on_nothing.as_fd()),
        ];
        all.into_iter().filter_map(|(name, fd)| cost_of(name, fd)).collect()
    }

    /// What the two probes of a command cost the server's thread on this machine, in nanoseconds of CPU. This is the cost of the traps,
    /// without what the programs at them do. It is measured on a function of our own, in the round that was disturbed least.
    ///
    /// # Errors
    /// The kernel does not take the probes.
    pub fn probes_cost_ns(&mut self, dispatcher: &Dispatcher) -> Result<f64, Error> {
        let is_end_emulated = dispatcher.ends.iter().all(|end| end.is_emulated);
        let begin_ns = self.probe_cost_ns(dispatcher.begin.is_emulated)?;
        Ok(begin_ns + self.probe_cost_ns(is_end_emulated)?)
    }

    fn probe_cost_ns(&mut self, is_emulated: bool) -> Result<f64, Error> {
        let without = measure();
        let Some(offset) = offset_in_own_program(probed as *const () as u64) else {
            return Err(Error::of(std::io::Error::from_raw_os_error(libc::ENOENT).into()));
        };
        let (own, file) = (std::process::id(), Path::new("/proc/self/exe"));
        let place = offset + if is_emulated { EMULATED } else { STEPPED };
        let link = attach(&mut self.skeleton.progs.on_nothing, own, file, place)?;
        let with = measure();
        drop(link);
        Ok((with - without).max(0.0))
    }
}

fn attach(program: &mut ProgramMut<'_>, pid: u32, file: &Path, offset: u64) -> Result<Link, Error> {
    program.attach_uprobe(false, pid as i32, file, offset as usize).map_err(Error::of)
}

/// What the cost of the probes is measured on. It begins as functions do, by saving a register. The kernel does that itself in place of the
/// instruction. A move follows. The kernel has the CPU execute only that instruction in another place.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn probed(value: u32) -> u32 {
    core::arch::naked_asm!("push rbp", "mov eax, edi", "pop rbp", "ret")
}
#[cfg(target_arch = "x86_64")]
const EMULATED: u64 = 0;
#[cfg(target_arch = "x86_64")]
const STEPPED: u64 = 1;

/// What the cost of the probes is measured on: the begin of a function, and a move.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn probed(value: u32) -> u32 {
    core::arch::naked_asm!("stp x29, x30, [sp, #-16]!", "mov x9, x0", "ldp x29, x30, [sp], #16", "ret")
}
#[cfg(target_arch = "aarch64")]
const EMULATED: u64 = 0;
#[cfg(target_arch = "aarch64")]
const STEPPED: u64 = 4;

/// Nanoseconds per call.
fn measure() -> f64 {
    let round = |_| {
        let began_ns = whyso_clock::thread_cpu_ns();
        for call in 0..MEASURED_CALLS {
            std::hint::black_box(probed(call));
        }
        (whyso_clock::thread_cpu_ns() - began_ns) as f64 / f64::from(MEASURED_CALLS)
    };
    (0..MEASURED_ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Where in this program's file an address of its memory comes from.
fn offset_in_own_program(address: u64) -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let hex = |digits| u64::from_str_radix(digits, 16).ok();
        let (begin, end, offset) = (hex(begin)?, hex(end)?, hex(words.nth(1)?)?);
        (begin..end).contains(&address).then(|| address - begin + offset)
    })
}

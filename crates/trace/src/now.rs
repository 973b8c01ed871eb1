//! What single threads do now: their stacks, read without stopping them.

use std::cell::RefCell;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{OpenObject, RingBufferBuilder};

use crate::error::Error;
use crate::namespace::PidNamespace;
use crate::now_skeleton::{NowSkel, NowSkelBuilder};
use crate::stack_record::Registers;
use crate::system_calls::state_of_syscall;
use whyso_model::State;

const KERNEL_FRAMES_MAX: usize = 64;
/// Up to where the user's bytes begin: `struct thread_now` of `bpf/now.h`.
const HEADER_BYTES: usize = 96 + 8 * KERNEL_FRAMES_MAX;

/// A thread as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadNow {
    pub tid: u32,
    pub pid: u32,
    /// Its own name, cut by the kernel to 15 bytes.
    pub name: String,
    /// What it is in, by its system call. So a file may be a socket, and a wait for a lock in the kernel has the state of the call that
    /// waits.
    pub state: State,
    /// It was on a CPU, or moved while it was read: it has no stack in this snapshot.
    pub is_running: bool,
    /// The number of the system call that it is in; `None` where it is in none.
    pub call: Option<i64>,
    /// The first argument of that, often a descriptor.
    pub argument: u64,
    /// Addresses in the kernel, innermost first.
    pub kernel: Vec<u64>,
    pub registers: Registers,
    /// The user's stack from its pointer on.
    pub user: Vec<u8>,
    /// How much of the user's stack was left out; `None` where its end is not known.
    pub user_rest_bytes: Option<u32>,
}

/// A program in the kernel that reads one thread when it is asked to. It attaches to no process and stops none.
pub struct ThreadSnapshot {
    skeleton: NowSkel<'static>,
    _object: Box<MaybeUninit<OpenObject>>,
}

impl ThreadSnapshot {
    /// Loads the program.
    ///
    /// # Errors
    /// The kernel is older than 6.1, or the rights are missing.
    pub fn start() -> Result<ThreadSnapshot, Error> {
        if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(Error::NoBtf);
        }
        libbpf_rs::set_print(None);
        let namespace = PidNamespace::own()?;
        let mut object = Box::new(MaybeUninit::uninit());
        // SAFETY: the box outlives the skeleton, which is declared before it, and its content does not move.
        let place: &'static mut MaybeUninit<OpenObject> =
            unsafe { &mut *std::ptr::from_mut(object.as_mut()) };
        let mut open = NowSkelBuilder::default().open(place).map_err(Error::of)?;
        if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
            constants.pid_namespace = namespace.inode;
            constants.pid_namespace_level = namespace.level;
        }
        let skeleton = open.load().map_err(Error::of)?;
        Ok(ThreadSnapshot { skeleton, _object: object })
    }

    /// Reads one thread; `None` where it is gone.
    ///
    /// # Errors
    /// The kernel does not let it be read.
    pub fn at(&mut self, tid: u32) -> Result<Option<ThreadNow>, Error> {
        match self.iterate(tid) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
            other => other.map_err(|error| Error::of(error.into()))?,
        }
        let found = Rc::new(RefCell::new(None));
        let receiver = Rc::clone(&found);
        let mut builder = RingBufferBuilder::new();
        let receive = move |bytes: &[u8]| {
            *receiver.borrow_mut() = ThreadNow::of(bytes);
            0
        };
        builder.add(&self.skeleton.maps.snapshots, receive).map_err(Error::of)?;
        let ring = builder.build().map_err(Error::of)?;
        ring.consume().map_err(Error::of)?;
        drop(ring);
        Ok(found.take().filter(|found: &ThreadNow| found.tid == tid))
    }

    /// Has the program run for one thread.
    fn iterate(&self, tid: u32) -> std::io::Result<()> {
        use libbpf_rs::libbpf_sys as sys;
        // SAFETY: all zeros ask for nothing.
        let mut which: sys::bpf_iter_link_info = unsafe { std::mem::zeroed() };
        which.task.tid = tid;
        // SAFETY: as above.
        let mut options: sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
        options.sz = size_of_val(&options) as u64;
        options.iter_info = &raw mut which;
        options.iter_info_len = size_of_val(&which) as u32;
        let program = self.skeleton.progs.on_thread.as_fd().as_raw_fd();
        // SAFETY: the options live through the call, and hold their own size.
        let link =
            owned(unsafe { sys::bpf_link_create(program, 0, sys::BPF_TRACE_ITER, &raw const options) })?;
        // SAFETY: a plain system call.
        let iterator = owned(unsafe { sys::bpf_iter_create(link.as_raw_fd()) })?;
        // It writes nothing here, but runs until it has been through.
        std::fs::File::from(iterator).read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

/// A new descriptor, or a negative error number.
fn owned(fd: i32) -> std::io::Result<OwnedFd> {
    if fd < 0 {
        return Err(std::io::Error::from_raw_os_error(-fd));
    }
    // SAFETY: a descriptor that only we have.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl ThreadNow {
    /// `None` for bytes that the program did not write.
    fn of(bytes: &[u8]) -> Option<ThreadNow> {
        let (header, user) = bytes.split_at_checked(HEADER_BYTES)?;
        let long = |at: usize| Some(u64::from_ne_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let int = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let (task_state, on_cpu, moved) = (int(8)?, header[12] != 0, header[13] != 0);
        let call = Some(long(16)?.cast_signed()).filter(|call| *call >= 0);
        let name = &header[80..96];
        let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())];
        let kernel_frames = (int(64)? as usize / 8).min(KERNEL_FRAMES_MAX);
        let rest_bytes = int(72)?;
        Some(ThreadNow {
            tid: int(0)?,
            pid: int(4)?,
            name: String::from_utf8_lossy(name).into_owned(),
            state: match (on_cpu, task_state) {
                (true, _) => State::Cpu,
                (false, 0) => State::Runqueue,
                _ => call.map_or(State::PageFault, state_of_syscall),
            },
            is_running: on_cpu || moved,
            call,
            argument: long(24)?,
            kernel: (0..kernel_frames).map_while(|frame| long(96 + 8 * frame)).collect(),
            registers: Registers {
                instruction_pointer: long(32)?,
                stack_pointer: long(40)?,
                frame_pointer: long(48)?,
                link_register: long(56)?,
            },
            user: user.get(..int(68)? as usize)?.to_vec(),
            user_rest_bytes: (rest_bytes != u32::MAX).then_some(rest_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[8..12].copy_from_slice(&1_u32.to_ne_bytes());
        bytes[16..24].copy_from_slice(&libc::SYS_futex.to_ne_bytes());
        bytes[64..68].copy_from_slice(&8_u32.to_ne_bytes());
        bytes[68..72].copy_from_slice(&3_u32.to_ne_bytes());
        bytes[80..84].copy_from_slice(b"name");
        bytes[96..104].copy_from_slice(&0xabc_u64.to_ne_bytes());
        bytes.extend([1, 2, 3, 0]);
        bytes
    }

    #[test]
    fn a_thread_is_read_as_it_was_written() {
        let read = ThreadNow::of(&snapshot()).unwrap();
        assert_eq!((read.tid, read.name.as_str(), read.state), (7, "name", State::Lock));
        assert_eq!((read.kernel, read.user, read.is_running), (vec![0xabc], vec![1, 2, 3], false));
        let changed = |at: usize, value: u8| {
            let mut bytes = snapshot();
            bytes[at] = value;
            ThreadNow::of(&bytes).unwrap()
        };
        assert_eq!(changed(12, 1).state, State::Cpu);
        assert_eq!(changed(8, 0).state, State::Runqueue);
        assert!(changed(13, 1).is_running, "it moved while it was read");
        let outside = [0xff; 8].iter().enumerate().fold(snapshot(), |mut bytes, (at, byte)| {
            bytes[16 + at] = *byte;
            bytes
        });
        assert_eq!(ThreadNow::of(&outside).unwrap().state, State::PageFault, "it waits in no system call");
    }

    #[test]
    fn what_is_too_short_is_no_thread() {
        assert_eq!(ThreadNow::of(&[]), None);
        assert_eq!(ThreadNow::of(&snapshot()[..HEADER_BYTES]), None, "without the bytes that it announces");
    }
}

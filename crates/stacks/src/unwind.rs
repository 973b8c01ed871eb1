//! From copied bytes to the functions that called each other.

use std::collections::HashMap;

use framehop::{CacheNative, Error as Broken, UnwindRegsNative, Unwinder};

use crate::module::{Module, ModuleId};
use crate::process::{NativeUnwinder, Process};

/// Deeper stacks are cut: a thread of 8 MiB that recurses has no more to tell.
const FRAMES_MAX: usize = 512;
/// Processes that are known at a time; those that come later push the others out.
const PROCESSES_MAX: usize = 16;

/// The registers that unwinding begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub instruction_pointer: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// On aarch64 alone.
    pub link_register: u64,
}

/// An address of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    pub module: ModuleId,
    /// As the module's file states it; of the kernel: as it is. Of a function that called another: within the call.
    pub address: u64,
}

/// How a stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// At the function that the thread began with.
    Root,
    /// Where the copied bytes end.
    Cut,
    /// Where the way on was not known.
    Lost,
}

/// A thread's stack in user space, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserStack {
    pub frames: Vec<Frame>,
    pub end: End,
}

/// What is known of the processes whose stacks are unwound.
pub struct Unwinding {
    modules: Vec<Module>,
    processes: HashMap<u32, Process>,
    cache: CacheNative<framehop::MayAllocateDuringUnwind>,
}

impl Default for Unwinding {
    fn default() -> Unwinding {
        Unwinding { modules: Vec::new(), processes: HashMap::new(), cache: CacheNative::new() }
    }
}

impl Unwinding {
    /// The stack of a thread of process `pid`, whose bytes from the stack pointer on were copied. The process's mappings are read when it
    /// is seen first, and again, at most once a second, when an address is in none of them.
    pub fn user(&mut self, pid: u32, registers: Registers, bytes: &[u8]) -> UserStack {
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&pid) {
            self.processes.clear();
        }
        let process = self.processes.entry(pid).or_insert_with(|| Process::new(pid));
        let mut unwound = unwind(&process.unwinder, &mut self.cache, registers, bytes);
        let unknown = |process: &Process, unwound: &(Vec<u64>, End)| {
            unwound.0.iter().any(|address| process.place(*address).is_none())
        };
        if unknown(process, &unwound) && process.may_look() && process.look(&mut self.modules).is_ok() {
            unwound = unwind(&process.unwinder, &mut self.cache, registers, bytes);
        }
        let (addresses, end) = unwound;
        let frame = |address: u64| match process.place(address) {
            Some((module, address)) => Frame { module, address },
            None => Frame { module: ModuleId::NONE, address: 0 },
        };
        let frames: Vec<Frame> = addresses.into_iter().map(frame).collect();
        // No thread begins where there is no function: a frame pointer of 0 ended it there.
        let begins_nowhere = frames.last().is_some_and(|frame| frame.module == ModuleId::NONE);
        let end = if end == End::Root && begins_nowhere { End::Lost } else { end };
        UserStack { frames, end }
    }

    /// A module by its number; `None` for the kernel and for what is in no module.
    pub fn module(&self, id: ModuleId) -> Option<&Module> {
        self.modules.get(id.0.checked_sub(ModuleId::FIRST_FILE)? as usize)
    }
}

/// Addresses within each function, innermost first.
fn unwind(
    unwinder: &NativeUnwinder,
    cache: &mut CacheNative<framehop::MayAllocateDuringUnwind>,
    registers: Registers,
    bytes: &[u8],
) -> (Vec<u64>, End) {
    let from = registers.stack_pointer;
    let mut past_the_end = false;
    let mut read = |address: u64| {
        let at = address.checked_sub(from).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
        let word = at.checked_add(8).and_then(|end| bytes.get(at..end)).and_then(|word| word.try_into().ok());
        past_the_end |= word.is_none();
        word.map(u64::from_le_bytes).ok_or(())
    };
    let mut addresses = Vec::new();
    let native = native(unwinder, registers);
    let mut frames = unwinder.iter_frames(registers.instruction_pointer, native, cache, &mut read);
    let end = loop {
        if addresses.len() == FRAMES_MAX {
            break End::Cut;
        }
        match frames.next() {
            Ok(Some(frame)) => addresses.push(frame.address_for_lookup()),
            Ok(None) => break End::Root,
            Err(Broken::CouldNotReadStack(_)) => break End::Cut,
            Err(_) => break End::Lost,
        }
    };
    match end {
        End::Cut if addresses.len() < FRAMES_MAX && !past_the_end => (addresses, End::Lost),
        end => (addresses, end),
    }
}

#[cfg(target_arch = "x86_64")]
fn native(_: &NativeUnwinder, registers: Registers) -> UnwindRegsNative {
    UnwindRegsNative::new(registers.instruction_pointer, registers.stack_pointer, registers.frame_pointer)
}

#[cfg(target_arch = "aarch64")]
fn native(unwinder: &NativeUnwinder, registers: Registers) -> UnwindRegsNative {
    let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(unwinder.max_known_code_address());
    UnwindRegsNative::new_with_ptr_auth_mask(
        mask,
        registers.link_register,
        registers.stack_pointer,
        registers.frame_pointer,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A place in our own code, so that unwinding begins with call frame information.
    fn somewhere() -> u64 {
        unwind as *const () as u64 + 8
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn any_bytes_end_somewhere(
            bytes in prop::collection::vec(any::<u8>(), 0..512),
            words in prop::collection::vec((0usize..64, -4096i64..4096), 0..32),
            stack_pointer in prop_oneof![any::<u64>(), Just(0x7fff_0000_0000)],
            frame_pointer in prop_oneof![any::<u64>(), Just(0x7fff_0000_0080)],
            ours in any::<bool>(),
            address: u64,
        ) {
            let mut bytes = bytes;
            for (place, offset) in words {
                if let Some(word) = bytes.get_mut(place * 8..place * 8 + 8) {
                    word.copy_from_slice(&somewhere().wrapping_add_signed(offset).to_le_bytes());
                }
            }
            let instruction_pointer = if ours { somewhere() } else { address };
            let registers = Registers { instruction_pointer, stack_pointer, frame_pointer, link_register: address };
            let mut unwinding = Unwinding::default();
            let stack = unwinding.user(std::process::id(), registers, &bytes);
            prop_assert!((1..=FRAMES_MAX).contains(&stack.frames.len()));
        }
    }

    #[test]
    fn a_process_that_is_not_there_gives_frames_without_a_module() {
        let mut unwinding = Unwinding::default();
        let registers =
            Registers { instruction_pointer: 0x1234, stack_pointer: 0x7000, ..Registers::default() };
        let stack = unwinding.user(u32::MAX, registers, &[0; 64]);
        assert_eq!(stack.frames, [Frame { module: ModuleId::NONE, address: 0 }]);
        assert!(unwinding.module(ModuleId::NONE).is_none() && unwinding.module(ModuleId::KERNEL).is_none());
    }
}

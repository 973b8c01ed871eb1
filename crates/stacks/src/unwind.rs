//! From copied bytes to the functions that called each other.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use framehop::{CacheNative, Error as Broken, UnwindRegsNative, Unwinder};

use crate::module::{Module, ModuleId};
use crate::process::{Layout, NativeUnwinder, mappings};

/// Deeper stacks are cut: a thread of 8 MiB that recurses shows nothing new.
const FRAMES_MAX: usize = 512;
/// Layouts that are held at a time; a later one pushes the others out.
const LAYOUTS_MAX: usize = 64;
/// Processes that are held at a time; a later one pushes the others out.
const PROCESSES_MAX: usize = 16_384;
/// Between two readings of a process's mappings that an unknown address asks for: they change when a library is loaded.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// The registers that unwinding begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub instruction_pointer: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// Only on aarch64.
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
    /// The first one is empty: of processes of which nothing is known.
    layouts: Vec<Layout>,
    /// Places among the layouts that no process has.
    free_layouts: Vec<usize>,
    processes: HashMap<u32, ProcessState>,
    cache: CacheNative<framehop::MayAllocateDuringUnwind>,
}

/// What is known of a process.
#[derive(Clone, Copy, Default)]
struct ProcessState {
    /// Place of its layout: forked processes have that of their parent.
    layout: usize,
    read_at: Option<Instant>,
}

impl Default for Unwinding {
    fn default() -> Unwinding {
        Unwinding {
            modules: Vec::new(),
            layouts: vec![Layout::default()],
            free_layouts: Vec::new(),
            processes: HashMap::new(),
            cache: CacheNative::new(),
        }
    }
}

impl Unwinding {
    /// The stack of a thread of process `pid`, whose bytes from the stack pointer on were copied. The process's mappings are read when it
    /// is seen first, and again, at most once per second, when an address is in none of them.
    pub fn user(&mut self, pid: u32, registers: Registers, bytes: &[u8]) -> UserStack {
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&pid) {
            self.processes.clear();
        }
        let state = *self.processes.entry(pid).or_default();
        let mut layout = &self.layouts[state.layout];
        let mut unwound = unwind(&layout.unwinder, &mut self.cache, registers, bytes);
        let is_unknown = unwound.0.iter().any(|address| layout.place(*address).is_none());
        let may_read = state.read_at.is_none_or(|read_at| read_at.elapsed() >= READ_INTERVAL);
        if is_unknown && may_read {
            let place = self.read_mappings(pid, state.layout);
            layout = &self.layouts[place];
            unwound = unwind(&layout.unwinder, &mut self.cache, registers, bytes);
        }
        let (addresses, end) = unwound;
        let frame = |address: u64| match layout.place(address) {
            Some((module, address)) => Frame { module, address },
            None => Frame { module: ModuleId::NONE, address: 0 },
        };
        let frames: Vec<Frame> = addresses.into_iter().map(frame).collect();
        // No thread begins where there is no function: a frame pointer of 0 ended it there.
        let begins_nowhere = frames.last().is_some_and(|frame| frame.module == ModuleId::NONE);
        let end = if end == End::Root && begins_nowhere { End::Lost } else { end };
        UserStack { frames, end }
    }

    /// Reads what a process has mapped, and returns the place of its layout. If that can't be read, the layout `before` stays.
    fn read_mappings(&mut self, pid: u32, before: usize) -> usize {
        let read_at = Some(Instant::now());
        let Ok(found) = mappings(pid) else {
            self.processes.insert(pid, ProcessState { layout: before, read_at });
            return before;
        };
        let same = self.layouts.iter().position(|layout| layout.is_of(&found));
        let layout = same.unwrap_or_else(|| {
            let sharers = self.processes.values().filter(|state| state.layout == before).count();
            let own = if before > 0 && sharers == 1 { before } else { self.new_layout() };
            self.layouts[own].follow(pid, found, &mut self.modules);
            own
        });
        self.processes.insert(pid, ProcessState { layout, read_at });
        layout
    }

    /// Gives up what is known of a process: its memory is free unless another process has the same mappings.
    pub fn forget(&mut self, pid: u32) {
        let Some(ProcessState { layout, .. }) = self.processes.remove(&pid) else { return };
        if layout > 0 && !self.processes.values().any(|state| state.layout == layout) {
            self.layouts[layout] = Layout::default();
            self.free_layouts.push(layout);
        }
    }

    /// How many modules have been seen.
    pub fn module_count(&self) -> usize {
        self.modules.len()
    }

    fn new_layout(&mut self) -> usize {
        if let Some(free) = self.free_layouts.pop() {
            return free;
        }
        if self.layouts.len() == LAYOUTS_MAX {
            self.layouts.truncate(1);
            self.free_layouts.clear();
            self.processes.clear();
        }
        self.layouts.push(Layout::default());
        self.layouts.len() - 1
    }

    /// A module by its number; `None` for the kernel and for what is in no module.
    pub fn module(&self, id: ModuleId) -> Option<&Module> {
        self.modules.get(id.0.checked_sub(ModuleId::FIRST_FILE)? as usize)
    }

    /// Where the function begins that a frame is in, by its file's call frame information; the frame itself where that does not tell.
    pub fn function_of(&self, frame: Frame) -> Frame {
        let start = self.module(frame.module).and_then(|module| module.function_start(frame.address));
        Frame { address: start.unwrap_or(frame.address), ..frame }
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

    #[test]
    fn a_process_that_is_forgotten_leaves_its_place_to_the_next() {
        let registers = Registers { instruction_pointer: somewhere(), ..Registers::default() };
        let own = std::process::id();
        let mut unwinding = Unwinding::default();
        for _ in 0..3 {
            let stack = unwinding.user(own, registers, &[0; 64]);
            assert_ne!(stack.frames[0].module, ModuleId::NONE);
            assert_eq!((unwinding.layouts.len(), unwinding.processes.len()), (2, 1));
            unwinding.forget(own);
            assert!(unwinding.processes.is_empty());
            assert!(unwinding.layouts[1].place(somewhere()).is_none(), "its modules are gone");
        }
        unwinding.forget(own);
        assert_eq!(unwinding.free_layouts, [1]);
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

    #[test]
    fn processes_of_one_layout_share_it_and_one_that_is_gone_keeps_the_empty_one() {
        let mut unwinding = Unwinding::default();
        let registers =
            Registers { instruction_pointer: somewhere(), stack_pointer: 0x7000, ..Registers::default() };
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        for pid in [std::process::id(), child.id(), u32::MAX] {
            let _ = unwinding.user(pid, registers, &[0; 64]);
        }
        let layout = |unwinding: &Unwinding, pid: u32| unwinding.processes[&pid].layout;
        assert_eq!(layout(&unwinding, u32::MAX), 0);
        assert_ne!(layout(&unwinding, std::process::id()), layout(&unwinding, child.id()));
        let before = unwinding.layouts.len();
        // What a fork has mapped is what this process has.
        let found = mappings(std::process::id()).unwrap();
        assert!(unwinding.layouts[layout(&unwinding, std::process::id())].is_of(&found));
        unwinding.processes.remove(&std::process::id());
        let _ = unwinding.user(std::process::id(), registers, &[0; 64]);
        assert_eq!(unwinding.layouts.len(), before, "known by its mappings");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

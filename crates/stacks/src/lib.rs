//! Stacks: unwound from copied bytes, named by function, file and line, each kept once.
//!
//! [`Unwinding::user`] follows a thread's stack by the call frame information (`.eh_frame`) of the modules that its process has
//! mapped. It never uses frame pointers where there is such information. [`Names`] gives the functions of an address by DWARF or by
//! symbols. Where there are neither, it gives the place where the function begins: an address never gets the name of a neighbour. A
//! [`Table`] keeps each stack once, by number.
//!
//! Nothing here attaches to a process or stops one: it reads `/proc/PID/maps` and the files that are named there. Bytes
//! of a stack, of an ELF file or of `/proc` may be anything: they end a stack early, they never panic.
//!
//! ```
//! use whyso_stacks::{End, Registers, Unwinding};
//!
//! let mut unwinding = Unwinding::default();
//! // Registers of nowhere: one frame, which is in no module.
//! let registers = Registers { instruction_pointer: 0x10, stack_pointer: 0x1000, ..Registers::default() };
//! let stack = unwinding.user(std::process::id(), registers, &[0; 64]);
//! assert_eq!(stack.frames.len(), 1);
//! assert_eq!(stack.end, End::Lost);
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod code;
mod debug_info;
mod elf;
mod error;
mod function_starts;
mod interrupts;
mod maps;
mod module;
mod names;
mod process;
mod table;
mod unwind;

pub use code::{FunctionCode, MappedFunctions, functions_of_process};
pub use debug_info::{ProgramSymbols, program_symbols};
pub use error::Error;
pub use interrupts::Interrupts;
pub use module::{Module, ModuleId};
pub use names::{Function, Names};
pub use table::{Stack, StackId, Table};
pub use unwind::{End, Frame, Registers, Unwinding, UserStack};

//! From addresses to functions, files and lines.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use whyso_debuginfo::DebugFiles;

use crate::module::{Module, ModuleId};
use crate::unwind::{Frame, Unwinding};

/// Addresses that are asked for at once.
const ADDRESSES_AT_ONCE: usize = 1024;
const KERNEL: &str = "[kernel]";
const UNKNOWN: &str = "[unknown]";

/// A function that an address is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Demangled. Where neither debug information nor a symbol names it: `FILE+0xADDRESS`, the place in the file where it begins, or
    /// where that is not known either, of the address itself.
    pub name: String,
    /// The file's name without its folder, `[kernel]`, or `[unknown]`.
    pub module: String,
    /// Source file and line of the address, where the build has line tables.
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// Names functions. What it has read of files is kept until it is dropped.
pub struct Names {
    symbolizer: Symbolizer,
    /// Reads only symbol tables, which takes a hundredth of the time.
    by_symbols: Symbolizer,
    /// Whether debug information is read where a build has it.
    reads_debug: bool,
    /// The file that a module's names are read from; `None` where none may be.
    sources: HashMap<ModuleId, Option<PathBuf>>,
    debug_files: DebugFiles,
}

impl Default for Names {
    fn default() -> Names {
        Names::new(true)
    }
}

impl Names {
    /// Names by symbol tables only: without files and lines, and without the functions that the compiler put into others. Of a large build
    /// with debug information that takes a hundredth of the time.
    pub fn of_symbols_only() -> Names {
        Names::new(false)
    }

    fn new(reads_debug: bool) -> Names {
        let by_symbols = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build();
        Names {
            symbolizer: Symbolizer::new(),
            by_symbols,
            reads_debug,
            sources: HashMap::new(),
            debug_files: DebugFiles::here(),
        }
    }

    /// The functions that each frame is in, the innermost first: those that the compiler put into others come before those that they were
    /// put into. At least one for each frame.
    pub fn of(&mut self, frames: &[Frame], unwinding: &Unwinding) -> HashMap<Frame, Vec<Function>> {
        let mut by_module: HashMap<ModuleId, Vec<u64>> = HashMap::new();
        for frame in frames {
            by_module.entry(frame.module).or_default().push(frame.address);
        }
        let mut named = HashMap::new();
        for (id, mut addresses) in by_module {
            addresses.sort_unstable();
            addresses.dedup();
            for part in addresses.chunks(ADDRESSES_AT_ONCE) {
                let functions = match (id, unwinding.module(id)) {
                    (ModuleId::KERNEL, _) => self.of_kernel(part),
                    (_, Some(module)) => self.of_file(id, module, part),
                    _ => part.iter().map(|_| vec![plain(UNKNOWN, UNKNOWN)]).collect(),
                };
                let frame = |address: &u64| Frame { module: id, address: *address };
                named.extend(part.iter().map(frame).zip(functions));
            }
        }
        named
    }

    /// The name of the function that a frame is in, by its file's symbols without debug information: quick enough for use during a run. What
    /// the compiler put into a function has that one's name.
    pub fn symbol_of(&mut self, frame: Frame, unwinding: &Unwinding) -> String {
        let address = [frame.address];
        let (module, source, input) = match unwinding.module(frame.module) {
            _ if frame.module == ModuleId::KERNEL => {
                return self.of_kernel(&address).remove(0).remove(0).name;
            }
            Some(module) => match self.source_of(frame.module, module) {
                Some(file) => (module, elf_of(&file, false), Input::VirtOffset(&address[..])),
                None => return unnamed(module, frame.address).name,
            },
            None => return UNKNOWN.to_string(),
        };
        match self.by_symbols.symbolize(&source, input).unwrap_or_default().first() {
            Some(Symbolized::Sym(symbol)) if is_its_own(symbol, module, frame.address) => {
                symbol.name.to_string()
            }
            _ => unnamed(module, frame.address).name,
        }
    }

    fn symbolizer_for_all(&self) -> &Symbolizer {
        if self.reads_debug { &self.symbolizer } else { &self.by_symbols }
    }

    /// The module's own file, or one with its debug information.
    fn source_of(&mut self, id: ModuleId, module: &Module) -> Option<PathBuf> {
        if let Some(known) = self.sources.get(&id) {
            return known.clone();
        }
        let is_complete = if self.reads_debug { module.has_debug } else { module.has_symbols };
        let apart = match (&module.build_id, is_complete) {
            (Some(build_id), false) => self.debug_files.find(build_id),
            _ => None,
        };
        let source = apart.or_else(|| module.is_still_there().then(|| module.file.clone()));
        self.sources.insert(id, source.clone());
        source
    }

    fn of_kernel(&self, addresses: &[u64]) -> Vec<Vec<Function>> {
        let source = Source::Kernel(Kernel { debug_syms: self.reads_debug, ..Kernel::default() });
        let found =
            self.symbolizer_for_all().symbolize(&source, Input::AbsAddr(addresses)).unwrap_or_default();
        let function = |place: usize| match found.get(place) {
            Some(Symbolized::Sym(symbol)) => vec![plain(&symbol.name, KERNEL)],
            _ => vec![plain(UNKNOWN, KERNEL)],
        };
        (0..addresses.len()).map(function).collect()
    }

    fn of_file(&mut self, id: ModuleId, module: &Module, addresses: &[u64]) -> Vec<Vec<Function>> {
        let found = match self.source_of(id, module) {
            Some(file) => {
                let source = elf_of(&file, self.reads_debug);
                self.symbolizer_for_all().symbolize(&source, Input::VirtOffset(addresses)).unwrap_or_default()
            }
            None => Vec::new(),
        };
        let functions = |(place, address): (usize, &u64)| match found.get(place) {
            Some(Symbolized::Sym(symbol)) if is_its_own(symbol, module, *address) => {
                functions_of(symbol, module)
            }
            _ => vec![unnamed(module, *address)],
        };
        addresses.iter().enumerate().map(functions).collect()
    }
}

fn elf_of(file: &Path, reads_debug: bool) -> Source<'static> {
    let mut elf = Elf::new(file);
    elf.debug_syms = reads_debug;
    Source::Elf(elf)
}

/// Whether a symbol names the function of an address, rather than one that lies before it.
fn is_its_own(symbol: &Sym<'_>, module: &Module, address: u64) -> bool {
    let within =
        symbol.size.is_some_and(|bytes| bytes > 0 && address - symbol.addr.min(address) < bytes as u64);
    within
        || symbol.code_info.is_some()
        || module.function_start(address).is_none_or(|start| start <= symbol.addr)
}

fn functions_of(symbol: &Sym<'_>, module: &Module) -> Vec<Function> {
    let module = module.name();
    let function = |name: &str, code: Option<&CodeInfo<'_>>| Function {
        name: name.to_string(),
        module: module.clone(),
        file: code.map(|code| code.to_path().to_string_lossy().into_owned()),
        line: code.and_then(|code| code.line),
    };
    let inlined = symbol.inlined.iter().rev().map(|inner| function(&inner.name, inner.code_info.as_ref()));
    inlined.chain([function(&symbol.name, symbol.code_info.as_deref())]).collect()
}

fn unnamed(module: &Module, address: u64) -> Function {
    let begin = module.function_start(address).unwrap_or(address);
    let module = module.name();
    plain(&format!("{module}+{begin:#x}"), &module)
}

fn plain(name: &str, module: &str) -> Function {
    Function { name: name.to_string(), module: module.to_string(), file: None, line: None }
}

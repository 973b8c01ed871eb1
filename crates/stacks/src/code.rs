//! The code of a process's functions, by their names.

use std::collections::HashSet;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use blazesym::inspect::Inspector;
use blazesym::inspect::source::{Elf, Source};

use crate::error::Error;
use crate::maps;

/// Files of a process that are read, at most.
const FILES_MAX: usize = 64;
/// Code of a function that is read, at most.
const CODE_BYTES_MAX: usize = 1 << 20;

/// A function as its file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCode {
    /// As the compiler wrote it.
    pub name: String,
    /// As the file states it.
    pub address: u64,
    /// Where in the file it begins.
    pub offset: u64,
    pub code: Vec<u8>,
}

/// Functions of one file that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFunctions {
    /// A path by which this process can open the file, whatever the other's root folder is.
    pub file: PathBuf,
    pub functions: Vec<FunctionCode>,
}

/// The functions that are wanted of the first file of a process that has any, in order of address; `None` where no file has one. Names are looked for
/// only in the symbol tables (`.symtab`, `.dynsym`), so that a build without debug information serves, too.
///
/// # Errors
/// The process is gone, or may not be read. A file that can't be read has no functions.
pub fn functions_of_process(
    pid: u32,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Option<MappedFunctions>, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/maps"));
    let text = std::fs::read(&path).map_err(|cause| Error::NoMaps { pid, cause })?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let mut paths = HashSet::new();
    for mapping in maps::parse(&String::from_utf8_lossy(&text)) {
        let is_file = mapping.path.is_absolute();
        if !is_file || paths.len() >= FILES_MAX || !paths.insert(mapping.path.clone()) {
            continue;
        }
        let file = if program.as_ref() == Some(&mapping.path) {
            PathBuf::from(format!("/proc/{pid}/exe"))
        } else {
            let relative = mapping.path.strip_prefix("/").unwrap_or(&mapping.path);
            Path::new(&format!("/proc/{pid}/root")).join(relative)
        };
        let functions = functions_of_file(&file, &is_wanted);
        if !functions.is_empty() {
            return Ok(Some(MappedFunctions { file, functions }));
        }
    }
    Ok(None)
}

fn functions_of_file(path: &Path, is_wanted: &impl Fn(&str) -> bool) -> Vec<FunctionCode> {
    let mut source = Elf::new(path);
    source.debug_syms = false;
    let mut functions: Vec<FunctionCode> = Vec::new();
    let Ok(file) = File::open(path) else { return functions };
    // A file whose symbols can't be read has none.
    let _ = Inspector::new().for_each(&Source::Elf(source), |symbol| {
        let has_address = functions.iter().any(|function| function.address == symbol.addr);
        if let (true, false, Some(offset)) = (is_wanted(&symbol.name), has_address, symbol.file_offset) {
            let mut code = vec![0; symbol.size.unwrap_or(0).min(CODE_BYTES_MAX)];
            if file.read_exact_at(&mut code, offset).is_ok() {
                let (name, address) = (symbol.name.to_string(), symbol.addr);
                functions.push(FunctionCode { name, address, offset, code });
            }
        }
        ControlFlow::Continue(())
    });
    functions.sort_by_key(|function| function.address);
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[unsafe(no_mangle)]
    extern "C" fn whyso_stacks_found_by_its_name(value: u64) -> u64 {
        std::hint::black_box(value + 1)
    }

    #[test]
    fn a_function_of_a_process_is_found_by_its_name_with_its_code() {
        assert_eq!(whyso_stacks_found_by_its_name(1), 2);
        let wanted = |name: &str| name == "whyso_stacks_found_by_its_name";
        let found = functions_of_process(std::process::id(), wanted).unwrap().unwrap();
        let [function] = &found.functions[..] else { panic!("{found:?}") };
        assert!(found.file.ends_with("exe"), "{found:?}");
        let in_memory = whyso_stacks_found_by_its_name as *const () as *const u8;
        // SAFETY: the function's own code, as long as its symbol has it.
        let code = unsafe { std::slice::from_raw_parts(in_memory, function.code.len()) };
        assert!(!code.is_empty() && function.code == code);
    }

    #[test]
    fn what_no_file_has_is_not_found_and_a_process_that_is_gone_is_an_error() {
        assert_eq!(
            functions_of_process(std::process::id(), |name| name == "no such function").unwrap(),
            None
        );
        assert!(functions_of_process(u32::MAX, |_| true).is_err());
    }
}

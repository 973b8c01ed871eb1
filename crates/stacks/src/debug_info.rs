//! Whether a program's functions have names, and what would give them some.

use std::path::{Path, PathBuf};

use whyso_debuginfo::DebugFiles;

use crate::elf::Elf;
use crate::module::readable_path;

/// Where a package manager lists the files of its packages.
const PACKAGE_LISTS: &str = "var/lib/dpkg/info";
/// Larger lists belong to no server.
const LIST_BYTES_MAX: u64 = 4 << 20;

/// What is known of the functions of a process's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSymbols {
    /// Such as "/usr/sbin/mariadbd".
    pub program: PathBuf,
    /// Whether the program itself, or a file here, names all of its functions.
    pub are_complete: bool,
    /// Why servers of debug information did not send it.
    pub failures: Vec<String>,
    /// The package that would bring it, such as "mariadb-server-core-dbgsym"; `None` where no list names the program.
    pub package: Option<String>,
}

/// Looks for the symbols of the program that process `pid` executes, and fetches them where `DEBUGINFOD_URLS` names servers. `None` where
/// the process can't be read. It may take minutes if a server sends a large file.
pub fn program_symbols(pid: u32) -> Option<ProgramSymbols> {
    let link = PathBuf::from(format!("/proc/{pid}/exe"));
    let program = std::fs::read_link(&link).ok()?;
    let elf = Elf::read(&std::fs::File::open(&link).ok()?).ok()?;
    let mut symbols =
        ProgramSymbols { are_complete: elf.has_symbols, program, failures: Vec::new(), package: None };
    if symbols.are_complete {
        return Some(symbols);
    }
    let mut files = DebugFiles::of_environment();
    symbols.are_complete = elf.build_id.is_some_and(|id| files.find(&id).is_some());
    symbols.failures = files.failures().iter().map(ToString::to_string).collect();
    if !symbols.are_complete {
        let root = readable_path(pid, Path::new("/"));
        symbols.package = package_of(&root, &symbols.program).map(|package| format!("{package}-dbgsym"));
    }
    Some(symbols)
}

/// The package whose list has the program, by its path or by where that was before /usr took the other folders in.
fn package_of(root: &Path, program: &Path) -> Option<String> {
    let program = program.to_str()?;
    let old = program.strip_prefix("/usr");
    let lists = std::fs::read_dir(root.join(PACKAGE_LISTS)).ok()?;
    for list in lists.flatten() {
        let name = list.file_name().into_string().unwrap_or_default();
        let Some(package) = name.strip_suffix(".list") else { continue };
        let is_small = list.metadata().is_ok_and(|about| about.is_file() && about.len() <= LIST_BYTES_MAX);
        let text =
            if is_small { std::fs::read_to_string(list.path()).unwrap_or_default() } else { String::new() };
        if text.lines().any(|line| line == program || Some(line) == old) {
            return Some(package.split(':').next().unwrap_or(package).to_string());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_symbols_needs_no_package() {
        let own = program_symbols(std::process::id()).unwrap();
        assert!(own.are_complete && own.package.is_none(), "{own:?}");
        assert_eq!(program_symbols(u32::MAX), None);
    }

    #[test]
    fn the_package_of_a_program_is_in_the_lists() {
        let root = tempfile::tempdir().unwrap();
        let lists = root.path().join(PACKAGE_LISTS);
        std::fs::create_dir_all(&lists).unwrap();
        std::fs::write(lists.join("bash.list"), "/.\n/bin/bash\n").unwrap();
        std::fs::write(lists.join("some-server:amd64.list"), "/.\n/usr/sbin/mariadbd\n").unwrap();
        let of = |program: &str| package_of(root.path(), Path::new(program));
        assert_eq!(of("/usr/sbin/mariadbd").as_deref(), Some("some-server"));
        assert_eq!(of("/usr/bin/bash").as_deref(), Some("bash"));
        assert_eq!(of("/opt/own/mariadbd"), None);
    }
}

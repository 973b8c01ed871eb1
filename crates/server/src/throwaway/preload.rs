//! Libraries that a server loads before its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// Where programs search for libraries that are named without a folder.
const FOLDERS: [&str; 6] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/lib",
];

/// The file that is meant: a path, or a name such as "libjemalloc.so.2".
pub(super) fn library(named: &Path) -> Result<PathBuf> {
    let with_folder = named.components().count() > 1;
    let places: Vec<PathBuf> = match with_folder {
        true => vec![named.to_path_buf()],
        false => FOLDERS.iter().map(|folder| Path::new(folder).join(named)).collect(),
    };
    let found = places.iter().find(|place| place.is_file()).and_then(|place| place.canonicalize().ok());
    let is_writable = |path: &Path| !path.to_string_lossy().contains([' ', ':']);
    found.filter(|path| is_writable(path)).ok_or_else(|| {
        Error::Binary(format!(
            "there is no library '{}' to preload: give the path of one, without spaces or colons in it",
            named.display()
        ))
    })
}

/// Lets a program load these first, in this order.
pub(super) fn load_before(command: &mut Command, libraries: &[PathBuf]) {
    if !libraries.is_empty() {
        let paths: Vec<_> = libraries.iter().map(|path| path.to_string_lossy()).collect();
        command.env("LD_PRELOAD", paths.join(":"));
    }
}

/// Whether the process has loaded it: the loader leaves out what it can't use, and reports it only in the server's log.
pub(super) fn check(pid: u32, library: &Path) -> Result<()> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let name = library.to_string_lossy();
    if maps.lines().any(|line| line.ends_with(name.as_ref())) {
        return Ok(());
    }
    Err(Error::Binary(format!(
        "the server did not load '{}': it is no library for this server's architecture or C library",
        library.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_its_path_or_its_name() {
        let path = library(Path::new("libc.so.6")).unwrap();
        assert!(path.is_absolute() && path.is_file());
        assert_eq!(library(&path).unwrap(), path);
        let wrong = library(Path::new("/nowhere/libx.so")).unwrap_err();
        assert!(wrong.to_string().contains("/nowhere/libx.so"));
        assert!(library(Path::new("libnothing.so.77")).is_err());
    }

    #[test]
    fn what_a_process_has_loaded_is_in_its_maps() {
        let own = std::process::id();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let loaded = maps.lines().find_map(|line| line.find('/').map(|at| line[at..].to_string())).unwrap();
        check(own, Path::new(&loaded)).unwrap();
        assert!(check(own, Path::new("/nowhere/libx.so")).is_err());
    }
}

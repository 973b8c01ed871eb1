//! A tree of wrappers for installation scripts. These run a server's programs by their paths, and don't know of a
//! loader that the tree brings along.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Result, io};
use crate::find::{Binary, is_program};

/// What the scripts run.
const PROGRAMS: [&str; 4] = ["mariadbd", "mysqld", "my_print_defaults", "resolveip"];
const FOLDERS: [&str; 4] = ["bin", "sbin", "libexec", "extra"];
const LINKED: [&str; 2] = ["share", "lib"];

/// Creates a tree in `at` that has the programs of the server's tree, and links to its other files. Each program is a
/// script that runs the real one by its own loader.
pub(super) fn tree(binary: &Binary, at: &Path) -> Result<PathBuf> {
    for folder in FOLDERS {
        for name in PROGRAMS {
            let program = binary.basedir.join(folder).join(name);
            if !is_program(&program) {
                continue;
            }
            let wrapper = at.join(folder).join(name);
            std::fs::create_dir_all(at.join(folder)).map_err(io("cannot make the folder", at))?;
            std::fs::write(&wrapper, script(&binary.launch.command(&program)))
                .map_err(io("cannot write", &wrapper))?;
            std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o700))
                .map_err(io("cannot write", &wrapper))?;
        }
    }
    for name in LINKED {
        let link = at.join(name);
        symlink(binary.basedir.join(name), &link).map_err(io("cannot make the link", &link))?;
    }
    Ok(at.to_path_buf())
}

fn script(command: &Command) -> Vec<u8> {
    let mut text = b"#!/bin/sh\nexec".to_vec();
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        text.extend(b" '");
        for byte in word.as_bytes() {
            match byte {
                b'\'' => text.extend(b"'\\''"),
                byte => text.push(*byte),
            }
        }
        text.push(b'\'');
    }
    text.extend(b" \"$@\"\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapper_hands_its_arguments_on_whatever_its_path_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wrapper");
        let mut command = Command::new("printf");
        command.args(["%s|", "it's $HOME", "a b"]);
        std::fs::write(&path, script(&command)).unwrap();
        let output = Command::new("sh").arg(&path).args(["--x=$y", "'z'"]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's $HOME|a b|--x=$y|'z'|");
    }
}

//! How a program out of an unpacked tree is run, where the machine's own libraries do not serve it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Folders with libraries that a tarball brings along.
const LIBRARIES_OF_A_TARBALL: [&str; 3] = ["libs", "lib/private", "lib64/private"];
/// Where a tree keeps its error messages.
const MESSAGES: [&str; 3] = ["share", "share/mysql", "share/mariadb"];
/// Where a tree keeps its plugins, in addition to `lib/ARCHITECTURE-linux-gnu`.
const PLUGINS: [&str; 4] = ["lib/plugin", "lib64/plugin", "lib/mysql/plugin", "lib64/mysql/plugin"];

/// What the tree of a server brings along. Everything is empty for a server that the machine itself
/// has installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Launch {
    /// The tree's own dynamic loader: it was unpacked from packages of another release, together with
    /// the C library that they were built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loader: Option<PathBuf>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugins: Option<PathBuf>,
}

impl Launch {
    /// Looks at what lies in the tree below `basedir`.
    pub(super) fn of(basedir: &Path) -> Launch {
        if basedir == Path::new("/usr") || basedir == Path::new("/usr/local") {
            return Launch::default();
        }
        let mut libraries = existing(basedir, &LIBRARIES_OF_A_TARBALL);
        let root = match basedir.parent() {
            Some(above) if basedir.ends_with("usr") => above,
            _ => basedir,
        };
        let multiarch = multiarch_folders(root);
        let loader = multiarch.iter().find_map(|folder| loader_in(folder));
        if loader.is_some() {
            libraries.extend(multiarch.iter().cloned());
        }
        let messages = existing(basedir, &MESSAGES)
            .into_iter()
            .find(|folder| folder.join("english/errmsg.sys").is_file());
        let plugins = existing(basedir, &PLUGINS)
            .into_iter()
            .chain(multiarch.iter().flat_map(|folder| plugin_folders_below(folder)))
            .next();
        Launch { loader, libraries, messages, plugins }
    }

    pub(crate) fn is_plain(&self) -> bool {
        *self == Launch::default()
    }

    /// A command that runs a program of the tree.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let Some(loader) = &self.loader else {
            let mut command = Command::new(program);
            if let Some(path) = self.library_path() {
                command.env("LD_LIBRARY_PATH", path);
            }
            return command;
        };
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(joined(self.libraries.clone()));
        // what the program believes to be called, in its messages and in the process list
        command.arg("--argv0").arg(program).arg(program);
        command
    }

    /// For `LD_LIBRARY_PATH`; `None` where it can stay as it is. Also `None` for a tree with a loader of its own, whose
    /// libraries no other program must use.
    pub(crate) fn library_path(&self) -> Option<OsString> {
        if self.libraries.is_empty() || self.loader.is_some() {
            return None;
        }
        let mut all = self.libraries.clone();
        if let Some(before) = std::env::var_os("LD_LIBRARY_PATH") {
            all.extend(std::env::split_paths(&before));
        }
        Some(joined(all))
    }

    /// Options that a server of the tree needs to find its own files.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(messages) = &self.messages {
            options.push(format!("--loose-lc-messages-dir={}", messages.display()));
        }
        if let Some(plugins) = &self.plugins {
            options.push(format!("--plugin-dir={}", plugins.display()));
        }
        options
    }
}

/// Folders as the loader reads them. One with a colon in its name can't be written so, and is left out.
fn joined(folders: Vec<PathBuf>) -> OsString {
    let writable = folders.into_iter().filter(|folder| !folder.to_string_lossy().contains(':'));
    std::env::join_paths(writable).unwrap_or_default()
}

fn existing(basedir: &Path, below: &[&str]) -> Vec<PathBuf> {
    below.iter().map(|name| basedir.join(name)).filter(|folder| folder.is_dir()).collect()
}

/// Folders such as `usr/lib/x86_64-linux-gnu` of an unpacked root.
fn multiarch_folders(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for lib in [root.join("usr/lib"), root.join("lib")] {
        let Ok(entries) = std::fs::read_dir(lib) else { continue };
        let folders = entries.flatten().map(|entry| entry.path());
        found.extend(folders.filter(|path| path.to_string_lossy().ends_with("-linux-gnu") && path.is_dir()));
    }
    found.sort();
    found
}

/// The dynamic loader of a C library, such as `ld-linux-x86-64.so.2`.
fn loader_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("ld-linux") && name.contains(".so") && path.is_file()
    })
}

fn plugin_folders_below(multiarch: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(multiarch) else { return Vec::new() };
    let plugins = entries.flatten().map(|entry| entry.path().join("plugin"));
    plugins
        .filter(|path| {
            let above = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            (above.starts_with("mariadb") || above.starts_with("mysql")) && path.is_dir()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    #[test]
    fn a_server_that_the_machine_installed_is_run_as_it_is() {
        let launch = Launch::of(Path::new("/usr"));
        assert!(launch.is_plain());
        assert_eq!(launch.command(Path::new("/usr/sbin/mysqld")).get_program(), "/usr/sbin/mysqld");
        assert!(launch.options().is_empty());
    }

    #[test]
    fn a_tarball_s_libraries_messages_and_plugins_are_its_own() {
        let root = folder_with(&["libs/libaio.so.1", "share/english/errmsg.sys", "lib/plugin/ha_x.so"]);
        let launch = Launch::of(root.path());
        let command = launch.command(Path::new("/t/bin/mysqld"));
        assert_eq!(command.get_program(), "/t/bin/mysqld");
        let libraries = command.get_envs().find(|(name, _)| *name == "LD_LIBRARY_PATH").unwrap().1.unwrap();
        assert!(libraries.to_string_lossy().starts_with(&format!("{}/libs", root.path().display())));
        assert_eq!(
            launch.options(),
            [
                format!("--loose-lc-messages-dir={}/share", root.path().display()),
                format!("--plugin-dir={}/lib/plugin", root.path().display()),
            ]
        );
    }

    #[test]
    fn what_was_unpacked_with_its_own_c_library_is_run_by_its_own_loader() {
        let root = folder_with(&[
            "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            "usr/lib/x86_64-linux-gnu/libc.so.6",
            "usr/lib/x86_64-linux-gnu/mariadb19/plugin/auth_socket.so",
            "usr/share/mysql/english/errmsg.sys",
        ]);
        let launch = Launch::of(&root.path().join("usr"));
        let command = launch.command(Path::new("/r/usr/sbin/mysqld"));
        let lib = format!("{}/usr/lib/x86_64-linux-gnu", root.path().display());
        assert_eq!(command.get_program(), format!("{lib}/ld-linux-x86-64.so.2").as_str());
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(
            arguments,
            ["--library-path", &lib, "--argv0", "/r/usr/sbin/mysqld", "/r/usr/sbin/mysqld"]
        );
        assert!(launch.plugins.unwrap().ends_with("mariadb19/plugin"));
        assert!(launch.messages.unwrap().ends_with("share/mysql"));
    }
}

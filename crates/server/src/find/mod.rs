//! Finds server programs and asks them what they are.

mod knobs;
mod launch;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, io};
pub use launch::Launch;

/// Bound on `--version`.
const PROBE_TIMEOUT: Duration = Duration::from_secs(15);
const NAMES: [&str; 2] = ["mariadbd", "mysqld"];
/// Where distributions put servers; often missing from a user's PATH.
const USUAL_FOLDERS: [&str; 5] =
    ["/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/local/libexec", "/usr/local/mysql/bin"];
const FOLDERS_OF_A_TREE: [&str; 8] =
    ["", "bin", "sbin", "libexec", "usr/bin", "usr/sbin", "usr/libexec", "sql"];

/// Whose server it is, as far as options and start-up differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flavor {
    MariaDB,
    MySQL,
}

impl std::fmt::Display for Flavor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Flavor::MariaDB => "MariaDB",
            Flavor::MySQL => "MySQL",
        })
    }
}

/// A server program that answered `--version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binary {
    pub path: PathBuf,
    /// What the server calls basedir: the folder above `bin`, `sbin` or `libexec`.
    pub basedir: PathBuf,
    /// Such as "10.11.14-MariaDB-0+deb12u2" or "8.4.3".
    pub version: String,
    pub flavor: Flavor,
    /// What its tree brings along to run it.
    #[serde(default, skip_serializing_if = "Launch::is_plain")]
    pub launch: Launch,
}

impl Binary {
    /// Major, minor and patch of the version.
    pub fn version_numbers(&self) -> (u32, u32, u32) {
        let mut numbers = self
            .version
            .split(|character: char| !character.is_ascii_digit())
            .map(|part| part.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        (next(), next(), next())
    }

    /// A command that runs the server.
    pub(crate) fn command(&self) -> Command {
        self.launch.command(&self.path)
    }
}

/// Finds the server in an unpacked tree, or in the PATH and the usual folders.
///
/// # Errors
///
/// [`Error::Binary`] if there is none, or it does not run.
pub(crate) fn find_in(tree: Option<&Path>) -> Result<Binary> {
    let folders = match tree {
        Some(tree) if tree.is_file() => return probe(tree),
        Some(tree) => FOLDERS_OF_A_TREE.iter().map(|below| tree.join(below)).collect(),
        None => folders_of_this_machine(),
    };
    for name in NAMES {
        for folder in &folders {
            let path = folder.join(name);
            if is_program(&path) {
                return probe(&path);
            }
        }
    }
    Err(Error::Binary(match tree {
        Some(tree) => format!(
            "there is no mariadbd or mysqld in '{}' (nor in its bin, sbin or libexec): give the folder of an unpacked server",
            tree.display()
        ),
        None => "there is no mariadbd or mysqld on the PATH or in /usr/sbin: install one (Debian: apt-get install \
                 mariadb-server-core), or give an unpacked server with --server DIR, or a running one with --dsn"
            .to_string(),
    }))
}

/// Asks a server program for its version, within a bounded time.
pub fn probe(path: &Path) -> Result<Binary> {
    let path = path.canonicalize().map_err(io("cannot find the server", path))?;
    let basedir = basedir_of(&path);
    let launch = Launch::of(&basedir);
    let mut command = launch.command(&path);
    command.args(["--no-defaults", "--version"]);
    let output = output_within(command, PROBE_TIMEOUT)
        .map_err(|error| Error::Binary(format!("the server '{}' does not run: {error}", path.display())))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_once("Ver ").map(|(_, after)| after.split_whitespace().next().unwrap_or(""));
    match version {
        Some(version) if version.starts_with(|first: char| first.is_ascii_digit()) => {
            let flavor = if text.contains("MariaDB") { Flavor::MariaDB } else { Flavor::MySQL };
            Ok(Binary { path, basedir, version: version.to_string(), flavor, launch })
        }
        _ => {
            let answer = [text, String::from_utf8_lossy(&output.stderr).into_owned()].concat();
            let first_line = answer.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            Err(Error::Binary(format!(
                "'{}' is no MySQL-compatible server: it answered --version with: {first_line}",
                path.display()
            )))
        }
    }
}

/// Runs a program, and ends it when the time is up.
pub(crate) fn output_within(mut command: Command, bound: Duration) -> std::io::Result<std::process::Output> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("MYSQL_PWD")
        .spawn()?;
    // More than a pipe holds may come before the end.
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let out = std::thread::spawn(move || read_all(out));
    let err = std::thread::spawn(move || read_all(err));
    let deadline = Instant::now() + bound;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(std::io::Error::other(format!("no answer within {} s", bound.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let read = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    Ok(std::process::Output { status, stdout: read(out), stderr: read(err) })
}

fn read_all(from: Option<impl std::io::Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read before a failure counts.
    let _ = from.map(|mut from| from.read_to_end(&mut bytes));
    bytes
}

fn basedir_of(program: &Path) -> PathBuf {
    let folder = program.parent().unwrap_or(Path::new("/"));
    let in_a_subfolder = folder
        .file_name()
        .is_some_and(|name| name == "bin" || name == "sbin" || name == "libexec" || name == "sql");
    match folder.parent() {
        Some(above) if in_a_subfolder => above.to_path_buf(),
        _ => folder.to_path_buf(),
    }
}

fn folders_of_this_machine() -> Vec<PathBuf> {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&on_path).collect();
    folders.extend(USUAL_FOLDERS.iter().map(PathBuf::from));
    folders
}

pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(folder: &Path, text: &str) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let path = folder.join("mysqld");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn the_machine_s_own_server_is_found() {
        let found = find_in(None).unwrap();
        assert_eq!(found.flavor, Flavor::MariaDB);
        assert!(found.version_numbers() >= (10, 0, 0), "{found:?}");
        assert_eq!(found.basedir, Path::new("/usr"));
    }

    #[test]
    fn a_server_in_a_tree_is_found_below_its_folders() {
        let tree = tempfile::tempdir().unwrap();
        script(
            &tree.path().join("libexec"),
            "#!/bin/sh\necho 'mysqld  Ver 5.5.9 for Linux on x86_64 (MySQL Community Server (GPL))'\n",
        );
        let found = find_in(Some(tree.path())).unwrap();
        assert_eq!(
            (found.flavor, found.version.as_str(), found.version_numbers()),
            (Flavor::MySQL, "5.5.9", (5, 5, 9))
        );
        assert_eq!(found.basedir, tree.path().canonicalize().unwrap());
    }

    #[test]
    fn what_is_no_server_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        assert!(
            find_in(Some(tree.path()))
                .unwrap_err()
                .to_string()
                .starts_with("there is no mariadbd or mysqld in '")
        );
        script(tree.path(), "#!/bin/sh\necho hello\n");
        assert!(find_in(Some(tree.path())).unwrap_err().to_string().ends_with("with: hello"));
    }
}

//! The sample application: an event calendar in PHP on MariaDB, behind Apache, with troubles that are planted on request.
//!
//! Its files lie in `app/`. The script there starts its programs and ends them. It listens only on loopback and on Unix sockets.

mod files;
mod options;

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use files::{FILES, SCRIPT};
pub use options::KeepAlive;

use crate::error::{Error, Result, io};
use crate::find::output_within;
use crate::paths::unique_name;

/// Longer than all waits of the script together.
const SCRIPT_ENDS_WITHIN: Duration = Duration::from_secs(600);

/// A trouble that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Every view of an event holds the lock of its row while the page is made.
    HotRow,
    /// Every request makes and removes files of sessions, in one folder that is written through to the disk.
    SessionFolder,
    /// Every line of the access log is written through to the disk.
    LogFile,
}

impl Trouble {
    fn name(self) -> &'static str {
        match self {
            Trouble::HotRow => "hot-row",
            Trouble::SessionFolder => "session-folder",
            Trouble::LogFile => "log-file",
        }
    }
}

/// How the application is started. What is `None` is left to the script.
#[derive(Clone, Debug, Default)]
pub struct AppSpec {
    /// PHP runs within the processes of Apache; otherwise in PHP-FPM.
    pub php_in_apache: bool,
    /// Children of PHP-FPM.
    pub workers: Option<u16>,
    /// Requests that Apache answers at once.
    pub max_clients: Option<u16>,
    pub keep_alive: KeepAlive,
    pub sessions_in_memcached: bool,
    /// Where the folder for the files of sessions is made.
    pub session_folder: Option<PathBuf>,
    /// How often a request changes its session's id, 0 to 99.
    pub session_changes: Option<u8>,
    /// Apache writes no line for each request.
    pub no_access_log: bool,
    /// Each request connects to the database.
    pub new_connections: bool,
    pub troubles: Vec<Trouble>,
    /// Apache's port on loopback.
    pub port: Option<u16>,
}

impl AppSpec {
    fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |option: &str, value: String| arguments.extend([option.to_string(), value]);
        add("--php", if self.php_in_apache { "mod" } else { "fpm" }.to_string());
        add("--keep-alive", self.keep_alive.to_string());
        add("--sessions", if self.sessions_in_memcached { "memcached" } else { "files" }.to_string());
        add("--access-log", if self.no_access_log { "off" } else { "on" }.to_string());
        add("--connections", if self.new_connections { "new" } else { "persistent" }.to_string());
        if let Some(workers) = self.workers {
            add("--workers", workers.to_string());
        }
        if let Some(max_clients) = self.max_clients {
            add("--max-clients", max_clients.to_string());
        }
        if let Some(folder) = &self.session_folder {
            add("--session-folder", folder.display().to_string());
        }
        if let Some(changes) = self.session_changes {
            add("--session-changes", changes.to_string());
        }
        if let Some(port) = self.port {
            add("--port", port.to_string());
        }
        for trouble in &self.troubles {
            add("--trouble", trouble.name().to_string());
        }
        arguments
    }
}

/// A sample application that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Everything that it keeps.
    pub folder: PathBuf,
    /// Its home page.
    pub url: String,
    /// Further addresses, (name, address): of the database, and of what add-ons read.
    pub addresses: Vec<(String, String)>,
    /// Programs that still run, (name, process id).
    pub processes: Vec<(String, u32)>,
}

/// Starts the application. It stays until [`stop`].
///
/// # Errors
/// A program is missing or does not start, or the options contradict each other.
pub fn start(spec: &AppSpec) -> Result<App> {
    let mut arguments = vec!["start".to_string()];
    arguments.extend(spec.arguments());
    let mut apps = apps_of(&run_script(&arguments)?);
    apps.pop()
        .ok_or_else(|| Error::App("the sample application started, and did not name its folder".to_string()))
}

/// Returns the applications that this user started.
///
/// # Errors
/// The script can't be run.
pub fn list() -> Result<Vec<App>> {
    Ok(apps_of(&run_script(&["list".to_string()])?))
}

/// Ends the programs of an application, and removes its folder.
///
/// # Errors
/// The folder is none of an application that this user started.
pub fn stop(folder: &Path) -> Result<()> {
    run_script(&["stop".to_string(), folder.display().to_string()]).map(|_| ())
}

/// Name of the file in an application's folder that has the mark, and most of what is read of it.
const MARK: &str = "started-for";
const MARK_BYTES_MAX: u64 = 4_096;

/// Writes down for whom an application was started, by a text that nobody else knows.
///
/// # Errors
/// Its folder can't be written.
pub fn mark(folder: &Path, whom: &str) -> Result<()> {
    let path = folder.join(MARK);
    std::fs::write(&path, whom).map_err(io("cannot write", &path))
}

/// Whether it was started for the same.
pub fn is_marked(folder: &Path, whom: &str) -> bool {
    let path = folder.join(MARK);
    let is_plain =
        std::fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_file() && facts.len() <= MARK_BYTES_MAX);
    is_plain && std::fs::read_to_string(&path).is_ok_and(|marked| marked == whom)
}

/// Runs the script on a copy of its files, and returns what it prints.
fn run_script(arguments: &[String]) -> Result<String> {
    let folder = std::env::temp_dir().join(unique_name("whyso-app-files"));
    // Fails where the name is taken: nobody else prepares the files that are run.
    std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(io("cannot create", &folder))?;
    let printed = unpack(&folder).and_then(|()| {
        let mut command = Command::new("bash");
        command.arg(folder.join(SCRIPT)).args(arguments);
        output_within(command, SCRIPT_ENDS_WITHIN).map_err(|error| {
            Error::App(format!("the script of the sample application can't be run: {error}"))
        })
    });
    // What is left of a copy harms nobody.
    let _ = std::fs::remove_dir_all(&folder);
    let printed = printed?;
    if printed.status.success() {
        return Ok(String::from_utf8_lossy(&printed.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&printed.stderr).into_owned();
    Err(Error::App(sentence(&complaint)))
}

fn unpack(folder: &Path) -> Result<()> {
    for (path, text) in FILES {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(io("cannot create", parent))?;
        std::fs::write(&path, text).map_err(io("cannot write", &path))?;
    }
    Ok(())
}

/// What the script complains of, in one line.
fn sentence(complaint: &str) -> String {
    let lines: Vec<&str> =
        complaint.lines().map(|line| line.strip_prefix("app: ").unwrap_or(line).trim()).collect();
    let text = lines.iter().filter(|line| !line.is_empty()).copied().collect::<Vec<_>>().join("; ");
    match text.is_empty() {
        true => "the sample application did not start, and gave no reason".to_string(),
        false => format!("the sample application: {text}"),
    }
}

/// Applications as the script prints them: lines "NAME VALUE", the folder first.
fn apps_of(printed: &str) -> Vec<App> {
    let mut apps: Vec<App> = Vec::new();
    for line in printed.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        if name == "folder" {
            let folder = PathBuf::from(value);
            apps.push(App { folder, url: String::new(), addresses: Vec::new(), processes: Vec::new() });
            continue;
        }
        let Some(app) = apps.last_mut() else { continue };
        match name {
            "url" => app.url = value.to_string(),
            "pid" => {
                let process =
                    value.split_once(' ').and_then(|(name, pid)| Some((name.to_string(), pid.parse().ok()?)));
                app.processes.extend(process);
            }
            _ => app.addresses.push((name.to_string(), value.to_string())),
        }
    }
    apps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_prints_becomes_applications() {
        let printed = "folder /tmp/a b\nurl http://127.0.0.1:2/\ndsn mysql://x\npid httpd 12\n\nfolder /tmp/c\nurl u\npid httpd x\n";
        let apps = apps_of(printed);
        assert_eq!(apps.len(), 2);
        assert_eq!(apps[0].folder, PathBuf::from("/tmp/a b"));
        assert_eq!(apps[0].addresses, [("dsn".to_string(), "mysql://x".to_string())]);
        assert_eq!(apps[0].processes, [("httpd".to_string(), 12)]);
        assert!(apps[1].processes.is_empty());
    }

    #[test]
    fn options_that_contradict_each_other_are_refused_before_anything_starts() {
        let spec = AppSpec { php_in_apache: true, workers: Some(2), ..AppSpec::default() };
        let why = start(&spec).unwrap_err().to_string();
        assert!(why.contains("--workers is for PHP-FPM"), "{why}");
        let troubles = vec![Trouble::SessionFolder];
        let spec = AppSpec { sessions_in_memcached: true, troubles, ..AppSpec::default() };
        let why = start(&spec).unwrap_err().to_string();
        assert!(why.contains("needs --sessions files"), "{why}");
    }

    #[test]
    fn a_folder_that_is_no_applications_is_not_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let why = stop(folder.path()).unwrap_err().to_string();
        assert!(why.contains("no folder of a sample application"), "{why}");
        assert!(folder.path().exists());
    }
}

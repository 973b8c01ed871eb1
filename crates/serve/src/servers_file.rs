//! The file that names what can be recorded from the page: servers, and processes that are none.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Value;
use whyso_model::parse_size;

use crate::error::{Error, NAME_CHARACTERS_MAX, SERVERS_MAX, ServersFileError};
use crate::recorder::{LiveRecorder, LiveTarget, PfsSetup, RecordRequest};

const FILE_BYTES_MAX: u64 = 256 << 10;
/// Default size of a recording, beyond which its oldest detail is removed.
const DISK_MAX: u64 = 4 << 30;
/// Add-ons of one server.
const ADD_ONS_MAX: usize = 50;

/// A server, or processes, that may be recorded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveServer {
    /// Name on the page.
    pub name: String,
    #[serde(default)]
    dsn: Option<String>,
    /// Name or number of processes of any kind, in place of a server.
    #[serde(default)]
    process: Option<Value>,
    /// A lab file: its hosts are recorded by their agents.
    #[serde(default)]
    hosts: Option<String>,
    #[serde(default = "LiveServer::interval_ms")]
    interval_ms: u64,
    /// Whether to account for the time of its threads, if it runs here.
    #[serde(default = "LiveServer::trace")]
    trace: bool,
    #[serde(default)]
    stacks: bool,
    /// Whether the commands of its clients are followed.
    #[serde(default)]
    trace_sql: bool,
    /// Whether these are recorded with their literals.
    #[serde(default)]
    keep_literals: bool,
    /// Files, or names of add-ons that ship.
    #[serde(default)]
    add_ons: Vec<String>,
    /// What the Performance Schema is to count.
    #[serde(default)]
    pfs: Option<String>,
    #[serde(default)]
    pfs_timing: Option<String>,
    #[serde(default)]
    pfs_users: Vec<String>,
    #[serde(default)]
    pfs_hosts: Vec<String>,
    #[serde(default)]
    pfs_objects: Vec<String>,
    /// Size of a recording beyond which its oldest detail goes, such as "2GiB".
    #[serde(default)]
    disk_max: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    server: Vec<LiveServer>,
}

impl LiveServer {
    fn interval_ms() -> u64 {
        1000
    }

    fn trace() -> bool {
        true
    }

    /// Reads the servers that a file names. It can hold passwords, so nobody else may be able to read it. Files of add-ons are looked for
    /// in its folder. `recorder` checks what it would be asked for.
    ///
    /// # Errors
    /// The file can't be read, others can read it, or it is no file of servers.
    pub fn from_file(path: &Path, recorder: &dyn LiveRecorder) -> Result<Vec<LiveServer>, Error> {
        let io = |cause| Error::Io { path: path.to_path_buf(), cause };
        let about = fs::metadata(path).map_err(io)?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(Error::ServersFileOpen(path.to_path_buf()));
        }
        let in_file = |error| Error::Servers(path.to_path_buf(), error);
        if about.len() > FILE_BYTES_MAX {
            return Err(in_file(ServersFileError::TooLarge));
        }
        let text = fs::read_to_string(path).map_err(io)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        LiveServer::parse_file(&text, folder, recorder).map_err(in_file)
    }

    fn parse_file(
        text: &str,
        folder: &Path,
        recorder: &dyn LiveRecorder,
    ) -> Result<Vec<LiveServer>, ServersFileError> {
        let File { mut server } = toml::from_str(text)?;
        if server.len() > SERVERS_MAX {
            return Err(ServersFileError::TooMany);
        }
        for place in 0..server.len() {
            let (before, rest) = server.split_at_mut(place);
            let Some(entry) = rest.first_mut() else { break };
            entry.check_name()?;
            if before.iter().any(|other| other.name == entry.name) {
                return Err(ServersFileError::SameName(entry.name.clone()));
            }
            entry.check()?;
            if let Some(hosts) = &mut entry.hosts {
                *hosts = folder.join(&*hosts).to_string_lossy().into_owned();
            }
            entry.add_ons.iter_mut().for_each(|add_on| *add_on = in_folder(folder, add_on));
            let request = entry.request(Path::new(""))?;
            recorder.check(&request).map_err(|why| ServersFileError::Setting {
                server: entry.name.clone(),
                why: why.to_string(),
            })?;
        }
        Ok(server)
    }

    fn check_name(&self) -> Result<(), ServersFileError> {
        let is_sound = !self.name.trim().is_empty()
            && self.name.chars().count() <= NAME_CHARACTERS_MAX
            && !self.name.chars().any(char::is_control);
        if is_sound { Ok(()) } else { Err(ServersFileError::Name) }
    }

    /// Checks what the file alone shows.
    fn check(&self) -> Result<(), ServersFileError> {
        let of = || self.name.clone();
        if !(100..=600_000).contains(&self.interval_ms) {
            return Err(ServersFileError::Interval(of()));
        }
        if self.add_ons.len() > ADD_ONS_MAX {
            return Err(ServersFileError::AddOns { server: of(), most: ADD_ONS_MAX });
        }
        let needs = |setting, needed| ServersFileError::Needs { server: of(), setting, needed };
        let target = self.target()?;
        if let LiveTarget::Hosts(_) = target
            && !self.add_ons.is_empty()
        {
            return Err(ServersFileError::OfServer { server: of(), setting: "add_ons" });
        }
        if !matches!(target, LiveTarget::Server(_)) {
            let of_server = [
                (self.pfs.is_some(), "pfs"),
                (self.trace_sql, "trace_sql"),
                (self.keep_literals, "keep_literals"),
            ];
            if let Some((_, setting)) = of_server.into_iter().find(|(is_set, _)| *is_set) {
                return Err(ServersFileError::OfServer { server: of(), setting });
            }
            if !self.trace && matches!(target, LiveTarget::Processes(_)) {
                return Err(needs("process", "trace"));
            }
        }
        let of_pfs = [
            (self.pfs_timing.is_some(), "pfs_timing"),
            (!self.pfs_users.is_empty(), "pfs_users"),
            (!self.pfs_hosts.is_empty(), "pfs_hosts"),
            (!self.pfs_objects.is_empty(), "pfs_objects"),
        ];
        if let Some((_, setting)) = of_pfs.into_iter().find(|(is_set, _)| *is_set && self.pfs.is_none()) {
            return Err(needs(setting, "pfs"));
        }
        if self.trace_sql && !self.trace {
            return Err(needs("trace_sql", "trace"));
        }
        if self.keep_literals && !self.trace_sql {
            return Err(needs("keep_literals", "trace_sql"));
        }
        self.bytes_max().map(|_| ())
    }

    fn target(&self) -> Result<LiveTarget, ServersFileError> {
        match (&self.dsn, &self.process, &self.hosts) {
            (Some(dsn), None, None) if !dsn.trim().is_empty() => Ok(LiveTarget::Server(dsn.clone())),
            (None, Some(Value::String(name)), None) if !name.trim().is_empty() => {
                Ok(LiveTarget::Processes(name.clone()))
            }
            (None, Some(Value::Integer(pid)), None) if *pid > 0 => Ok(LiveTarget::Processes(pid.to_string())),
            (None, Some(_), None) => Err(ServersFileError::Process(self.name.clone())),
            (None, None, Some(file)) if !file.trim().is_empty() => Ok(LiveTarget::Hosts(PathBuf::from(file))),
            _ => Err(ServersFileError::Target(self.name.clone())),
        }
    }

    fn bytes_max(&self) -> Result<u64, ServersFileError> {
        let Some(size) = &self.disk_max else { return Ok(DISK_MAX) };
        parse_size(size)
            .map_err(|why| ServersFileError::DiskMax { server: self.name.clone(), why: why.to_string() })
    }

    /// What is to be recorded, into this folder.
    pub(crate) fn request(&self, runs: &Path) -> Result<RecordRequest, ServersFileError> {
        let pfs = self.pfs.as_ref().map(|preset| PfsSetup {
            preset: preset.clone(),
            timing: self.pfs_timing.clone(),
            users: self.pfs_users.clone(),
            hosts: self.pfs_hosts.clone(),
            objects: self.pfs_objects.clone(),
        });
        Ok(RecordRequest {
            target: self.target()?,
            interval: Duration::from_millis(self.interval_ms),
            trace: self.trace,
            stacks: self.stacks,
            trace_sql: self.trace_sql,
            keep_literals: self.keep_literals,
            add_ons: self.add_ons.clone(),
            pfs,
            runs: runs.to_path_buf(),
            bytes_max: self.bytes_max()?,
            command_line: vec!["whyso".to_string(), "serve".to_string(), self.name.clone()],
        })
    }
}

/// The path of an add-on's file, from the folder of the file that names it. A bare name is that of an add-on that ships.
fn in_folder(folder: &Path, add_on: &str) -> String {
    let is_file = add_on.contains('/') || Path::new(add_on).extension().is_some();
    if is_file { folder.join(add_on).to_string_lossy().into_owned() } else { add_on.to_string() }
}

#[cfg(test)]
mod tests {
    use whyso_model::Stop;

    use super::*;
    use crate::recorder::{RecordProgress, RecorderError};

    /// Has one add-on, and one preset.
    struct Checks;

    impl LiveRecorder for Checks {
        fn check(&self, request: &RecordRequest) -> Result<(), RecorderError> {
            let is_known = |name: &String| name == "linux" || name.ends_with("/etc/own.toml");
            match request.add_ons.iter().find(|name| !is_known(name)) {
                Some(unknown) => Err(format!("no add-on is called {unknown}").into()),
                None if request.pfs.as_ref().is_some_and(|pfs| pfs.preset != "synch") => {
                    Err("there is no such preset".into())
                }
                None => Ok(()),
            }
        }

        fn record(
            &self,
            _: &RecordRequest,
            _: &(dyn Fn(RecordProgress<'_>) + Sync),
            _: &Stop,
        ) -> Result<(), RecorderError> {
            Err("nothing is recorded here".into())
        }
    }

    fn read(text: &str) -> Result<Vec<LiveServer>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        LiveServer::from_file(&path, &Checks)
    }

    const SHOP: &str = "[[server]]\nname = \"shop\"\ndsn = \"mysql://root@localhost/?socket=/s\"\n";
    const WEB: &str = "[[server]]\nname = \"web\"\nprocess = \"apache2\"\n";

    #[test]
    fn a_file_of_servers_is_read_and_what_is_wrong_in_it_is_reported() {
        let servers = read(SHOP).unwrap();
        assert_eq!(
            (servers[0].name.as_str(), servers[0].interval_ms, servers[0].trace),
            ("shop", 1000, true)
        );
        assert_eq!(read("").unwrap().len(), 0);
        for (text, word) in [
            (format!("{SHOP}{SHOP}"), "two servers are called shop"),
            (format!("{SHOP}interval_ms = 5\n"), "must be 100"),
            (format!("{SHOP}disk_max = \"much\"\n"), "disk_max"),
            (format!("{SHOP}password = \"x\"\n"), "unknown field"),
            ("[[server]]\nname = \"\"\ndsn = \"\"\n".to_string(), "needs a name"),
            (format!("{SHOP}process = \"mysqld\"\n"), "shop needs a dsn, a process, or the hosts"),
            (format!("{SHOP}hosts = \"lab.toml\"\n"), "shop needs a dsn, a process, or the hosts"),
            (
                "[[server]]\nname = \"x\"\nhosts = \"lab.toml\"\npfs = \"synch\"\n".to_string(),
                "pfs of x is for a server",
            ),
            ("[[server]]\nname = \"x\"\n".to_string(), "x needs a dsn, a process, or the hosts"),
            (format!("{SHOP}add_ons = [\"linux\", \"lunix\"]\n"), "shop: no add-on is called lunix"),
            (format!("{SHOP}pfs = \"all\"\n"), "shop: there is no such preset"),
            (format!("{SHOP}pfs_users = [\"app\"]\n"), "pfs_users of shop needs pfs"),
            (format!("{SHOP}trace_sql = true\ntrace = false\n"), "trace_sql of shop needs trace"),
            (format!("{SHOP}keep_literals = true\n"), "keep_literals of shop needs trace_sql"),
            (format!("{WEB}pfs = \"synch\"\n"), "pfs of web is for a server"),
            (format!("{WEB}trace_sql = true\n"), "trace_sql of web is for a server"),
            (format!("{WEB}trace = false\n"), "process of web needs trace"),
            (WEB.replace("\"apache2\"", "0"), "process of web must be a name"),
            (WEB.replace("\"apache2\"", "[1, 2]"), "process of web must be a name"),
        ] {
            let message = read(&text).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn a_server_is_asked_for_with_its_add_ons_its_preset_and_its_commands() {
        let more = "add_ons = [\"linux\", \"etc/own.toml\"]\npfs = \"synch\"\npfs_timing = \"no\"\n\
                    pfs_objects = [\"shop.stock\"]\ntrace_sql = true\nkeep_literals = true\nstacks = true\n";
        let servers = read(&format!("{SHOP}{more}")).unwrap();
        let request = servers[0].request(Path::new("runs")).unwrap();
        assert!(request.trace_sql && request.keep_literals && request.stacks && request.trace);
        assert_eq!(request.add_ons[0], "linux");
        assert!(request.add_ons[1].starts_with('/') && request.add_ons[1].ends_with("/etc/own.toml"));
        let pfs = request.pfs.unwrap();
        assert_eq!((pfs.preset.as_str(), pfs.timing.as_deref()), ("synch", Some("no")));
        assert_eq!((pfs.objects, pfs.users), (vec!["shop.stock".to_string()], Vec::new()));
        assert_eq!(request.bytes_max, 4 << 30);
    }

    #[test]
    fn processes_are_named_by_a_name_or_a_number() {
        for (written, target) in [("\"apache2\"", "apache2"), ("4711", "4711"), ("\"4711\"", "4711")] {
            let servers = read(&WEB.replace("\"apache2\"", written)).unwrap();
            let request = servers[0].request(Path::new("runs")).unwrap();
            assert_eq!(request.target, LiveTarget::Processes(target.to_string()));
            assert!(request.pfs.is_none() && !request.trace_sql);
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_by_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers.toml");
        fs::write(&path, "").unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = LiveServer::from_file(&path, &Checks).unwrap_err();
            assert!(matches!(refused, Error::ServersFileOpen(_)), "{refused}");
            let message = refused.to_string();
            assert!(message.contains("passwords") && message.contains("chmod 600"), "{message}");
            assert!(!message.contains("token"), "{message}");
        }
    }
}

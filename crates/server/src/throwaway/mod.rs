//! Servers of our own: started in a folder of their own on a Unix socket, removed without a trace.

mod child;
pub(crate) mod home;
mod init;
mod kept_server;
mod lock;
mod log;
mod node;
pub(crate) mod option_file;
mod preload;
mod program;
mod slow;
mod spec;
pub(crate) mod state;
mod supervise;
mod sweep;
mod wrappers;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use rustix::process::Signal;

use crate::answers::{answered, log_out};
use crate::cpus::{CpuSet, Means};
use crate::dsn::{DEFAULT_SCHEMA, Dsn};
use crate::error::{Error, Result, io, refused};
use crate::find::Binary;
use crate::paths::FileSystem;
use child::{ChildProcess, how_it_ended};
use home::{Home, Limits};

pub use home::default_parent_dir;
pub use kept_server::{KeptServer, StopOutcome, kept_servers, stop_kept};
pub use node::NodeSpec;
pub(crate) use program::Program;
pub use slow::{SlowPart, Slower};
pub(crate) use spec::normal_name;
pub use spec::{Origin, Setting, StartSpec};
pub(crate) use state::{NdbPlace, SavedCommand};
pub use sweep::{Swept, sweep};

/// Lines at the end of the log among which those are chosen that explain a death or a failed start.
const LAST_LOG_LINES: usize = 200;

/// How a server ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// Such as "it was killed by signal 9".
    pub how: String,
    /// Ready to be shown: without control characters.
    pub last_log_lines: Vec<String>,
}

/// A server of our own. [`ThrowAway::stop`] ends it cleanly and removes its folder. Dropping it kills the server and
/// removes the folder, too, as the data is thrown away. If this process is killed, a supervisor does the same.
pub struct ThrowAway {
    // dropped in this order: first the server, then its home
    server: Option<ChildProcess>,
    home: Home,
    spec: StartSpec,
    settings: Vec<Setting>,
    options: Vec<String>,
    is_first_start: bool,
    stopped_on_purpose: bool,
}

impl ThrowAway {
    /// Prepares a data folder and starts a server on it, within the spec's bounds.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownKnob`] and [`Error::KnobValue`] for settings that the server does not take,
    /// [`Error::Start`] with the log's last lines for any other failure.
    pub async fn start(spec: StartSpec) -> Result<ThrowAway> {
        let mut server = ThrowAway::prepare(spec)?;
        let joins = server.spec.node.as_ref().is_some_and(|node| node.joins);
        if !joins {
            server.initialise().await?;
        }
        server.start_server().await?;
        Ok(server)
    }

    /// Everything but the data folder's content and the server.
    pub(crate) fn prepare(spec: StartSpec) -> Result<ThrowAway> {
        let settings = spec::settings(&spec, spec::memory_bytes())?;
        let defaults_file = match &spec.defaults_file {
            Some(file) => {
                let file = file.canonicalize().map_err(io("cannot find the defaults file", file))?;
                Some((option_file::server_settings(&file)?, file))
            }
            None => None,
        };
        let preload = spec.preload.as_deref().map(preload::library).transpose()?;
        let spec = StartSpec { preload, ..spec };
        let home = Home::create(
            spec.parent_dir.as_deref(),
            spec.allow_in_memory,
            &Limits {
                // A node outlives its control group.
                cpus: spec.cpus.as_ref().filter(|_| spec.node.is_none()),
                memory_bytes: spec.memory_bytes,
                is_without_quota: spec.is_without_quota,
            },
        )?;
        if let Some(node) = &spec.node {
            node.write_scripts(&home.folder)?;
        }
        let mut options = Vec::new();
        match &defaults_file {
            Some((_, file)) => {
                let own_file = write_option_file(&home, &settings, file)?;
                options.push(format!("--defaults-file={}", own_file.display()));
                options.extend(
                    settings.iter().filter(|setting| setting.origin == Origin::Asked).map(Setting::option),
                );
            }
            None => {
                options.push("--no-defaults".to_string());
                options.extend(settings.iter().map(Setting::option));
            }
        }
        options.extend(place(&spec, &home));
        if let Some((in_file, _)) = &defaults_file {
            options.extend(option_file::relocations(in_file, &home.data()));
        }
        Ok(ThrowAway {
            server: None,
            home,
            spec,
            settings,
            options,
            is_first_start: true,
            stopped_on_purpose: true,
        })
    }

    pub(crate) async fn initialise(&self) -> Result<()> {
        init::initialise(&self.spec.binary, &self.home, &self.options, self.spec.start_timeout).await
    }

    /// Starts the server again on its data after [`ThrowAway::stop_server`] or its death.
    pub async fn start_server(&mut self) -> Result<()> {
        if self.server.as_mut().is_some_and(|server| server.ended().is_none()) {
            return Ok(());
        }
        if let Some(dead) = self.server.take() {
            dead.bury(&self.home);
        }
        let log_path = self.home.log();
        let open_log = || {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(&log_path)
                .map_err(io("cannot write", &log_path))
        };
        let mut command = self.command();
        if let Some(node) = self.spec.node.as_ref().filter(|_| self.is_first_start) {
            command.args(&node.first_options);
        }
        command.stdin(Stdio::null()).stdout(open_log()?).stderr(open_log()?);
        let slow = slow::Files::of(&self.home.folder);
        if self.spec.can_be_slowed {
            slow.write()?;
            command.env(slow::SPEEDS_VARIABLE, &slow.speeds);
        }
        let slower = self.spec.can_be_slowed.then_some(&slow.library);
        let libraries: Vec<PathBuf> = self.spec.preload.iter().chain(slower).cloned().collect();
        preload::load_before(&mut command, &libraries);
        let server = ChildProcess::spawn(command, &self.home, self.spec.cpus.as_ref())
            .map_err(io("cannot run", &self.spec.binary.path))?;
        let pid = server.pid();
        self.server = Some(server);
        self.stopped_on_purpose = false;
        self.home.note_server(Some(pid))?;
        self.wait_until_it_answers().await?;
        self.is_first_start = false;
        // The library that slows has its file mapped, or does nothing.
        let speeds = self.spec.can_be_slowed.then_some(&slow.speeds);
        let unloaded = libraries.iter().chain(speeds).find_map(|file| preload::check(pid, file).err());
        if let Some(error) = unloaded {
            self.kill_server();
            return Err(error);
        }
        // What joins a cluster may not answer such questions yet.
        if self.spec.node.is_none()
            && let Some(name) = self.abbreviated_knob().await?
        {
            self.kill_server();
            let unknown = Error::UnknownKnob { name, server: self.server_name(), nearest: None };
            return Err(with_nearest_of(unknown, &self.spec.binary));
        }
        Ok(())
    }

    /// What starts it, but for what is needed once.
    fn command(&self) -> Command {
        let mut command = self.spec.binary.command();
        command
            .args(&self.options)
            .arg(format!("--log-error={}", self.home.log().display()))
            .current_dir(self.home.data())
            .env_remove("MYSQL_PWD");
        if let Some(node) = &self.spec.node {
            node.complete(&mut command, &self.home.folder);
        }
        command
    }

    /// A knob that the user abbreviated: servers take the beginning of a name for the whole of it, and
    /// say nothing. What is a plugin's name too, such as `innodb`, is an option of its own.
    async fn abbreviated_knob(&self) -> Result<Option<String>> {
        let dsn = self.dsn();
        let mut connection = dsn.connect_without_schema().await?;
        let reading = || refused("list its variables");
        let asked = answered(&dsn, "reading the server's variables", async {
            let variables: Vec<(String, String)> =
                connection.query("SHOW GLOBAL VARIABLES").await.map_err(reading())?;
            let plugins: Vec<String> = connection
                .query("SELECT LOWER(plugin_name) FROM information_schema.plugins")
                .await
                .map_err(reading())?;
            Ok::<_, Error>((variables, plugins))
        });
        let (variables, plugins) = asked.await?;
        log_out(connection).await;
        let is_whole = |name: &str| {
            variables.iter().any(|(variable, _)| variable == name)
                || plugins.iter().any(|plugin| plugin == name)
        };
        let begins_one = |name: &str| variables.iter().any(|(variable, _)| variable.starts_with(name));
        let asked = self.settings.iter().filter(|setting| setting.origin == Origin::Asked);
        Ok(asked.map(|setting| &setting.name).find(|name| !is_whole(name) && begins_one(name)).cloned())
    }

    async fn wait_until_it_answers(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.spec.start_timeout;
        let dsn = Dsn { connect_timeout: Duration::from_secs(5), ..self.dsn() };
        loop {
            if let Some(status) = self.server.as_mut().and_then(ChildProcess::ended) {
                return Err(self.failed_start(how_it_ended(status)));
            }
            let mut last_error = None;
            if self.home.socket().exists() {
                match dsn.connect_without_schema().await {
                    Ok(connection) => {
                        // the server is there, whatever becomes of this connection
                        log_out(connection).await;
                        return Ok(());
                    }
                    Err(error @ Error::AccessDenied { .. }) => {
                        self.kill_server();
                        return Err(error);
                    }
                    Err(error) => last_error = Some(error.to_string()),
                }
            }
            if Instant::now() > deadline {
                let bound = self.spec.start_timeout.as_secs();
                let reason = last_error.map(|error| format!(" ({error})")).unwrap_or_default();
                return Err(self.failed_start(format!("it did not answer within {bound} s{reason}")));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn failed_start(&mut self, why: String) -> Error {
        self.kill_server();
        let lines = log::last_lines(&self.home.log(), LAST_LOG_LINES);
        with_nearest_of(log::explain(&lines, &self.server_name(), &why), &self.spec.binary)
    }

    fn kill_server(&mut self) {
        self.stopped_on_purpose = true;
        if let Some(server) = self.server.take() {
            server.bury(&self.home);
        }
    }

    fn server_name(&self) -> String {
        format!("{} {}", self.spec.binary.flavor, self.spec.binary.version)
    }

    /// Shuts the server down and keeps its data. Returns whether it ended by itself within the bound;
    /// if not, it was killed.
    pub async fn stop_server(&mut self) -> Result<bool> {
        self.stopped_on_purpose = true;
        let Some(mut server) = self.server.take() else { return Ok(true) };
        server.signal(Signal::TERM);
        // One that was stopped would take it only when it is continued.
        server.signal(Signal::CONT);
        let status = server.wait(self.spec.stop_timeout).await;
        server.bury(&self.home);
        self.home.note_server(None)?;
        Ok(status.is_some_and(|status| status.success()))
    }

    /// Shuts the server down and removes everything. Returns as [`ThrowAway::stop_server`] does.
    pub async fn stop(mut self) -> Result<bool> {
        self.stop_server().await
    }

    /// Returns how the server ended by itself.
    pub fn died(&mut self) -> Option<Death> {
        if self.stopped_on_purpose {
            return None;
        }
        let status = self.server.as_mut()?.ended()?;
        Some(Death {
            how: how_it_ended(status),
            last_log_lines: log::telling(&log::last_lines(&self.home.log(), LAST_LOG_LINES)),
        })
    }

    /// How to reach it: user root, no password, schema `whyso`.
    pub fn dsn(&self) -> Dsn {
        Dsn::on_socket(self.home.socket(), "root", DEFAULT_SCHEMA)
    }

    /// The server's process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(ChildProcess::pid)
    }

    pub fn binary(&self) -> &Binary {
        &self.spec.binary
    }

    pub fn spec(&self) -> &StartSpec {
        &self.spec
    }

    /// What it was started with, ours and the user's.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The server's own log, for as long as this lives.
    pub fn log_path(&self) -> PathBuf {
        self.home.log()
    }

    /// The folder of mode 0700 that holds everything.
    pub fn folder(&self) -> &Path {
        &self.home.folder
    }

    pub fn data_dir(&self) -> PathBuf {
        self.home.data()
    }

    pub fn file_system(&self) -> &FileSystem {
        &self.home.file_system
    }

    /// What makes it slower.
    ///
    /// # Errors
    /// It was not started so that it can be.
    pub fn slower(&self) -> Result<Slower> {
        Slower::open(&slow::Files::of(&self.home.folder).speeds)
    }

    /// Returns the CPUs that it may run on, if they were requested, and what keeps it on them.
    pub fn cpus(&self) -> Option<(&CpuSet, &Means)> {
        Some((self.spec.cpus.as_ref()?, self.home.means.as_ref()?))
    }
}

/// Where the server lies and what it may touch; last among the options, so that nothing overrides it.
fn place(spec: &StartSpec, home: &Home) -> Vec<String> {
    let (binary, data) = (&spec.binary, home.data());
    let mut options = vec![
        format!("--basedir={}", binary.basedir.display()),
        format!("--datadir={}", data.display()),
        format!("--innodb-data-home-dir={}", data.display()),
        format!("--innodb-log-group-home-dir={}", data.display()),
        format!("--tmpdir={}", home.folder.join("tmp").display()),
        format!("--secure-file-priv={}", home.folder.join("tmp").display()),
        format!("--socket={}", home.socket().display()),
        format!("--pid-file={}", home.folder.join("server.pid").display()),
    ];
    options.extend(node::listening(spec.node.as_ref()));
    options.extend(binary.launch.options());
    if rustix::process::geteuid().is_root() {
        options.push("--user=root".to_string());
    }
    options
}

/// Our settings, then the user's file, whose own values count where both have one.
fn write_option_file(home: &Home, settings: &[Setting], users: &Path) -> Result<PathBuf> {
    let mut text = String::from("[mysqld]\n");
    for setting in settings.iter().filter(|setting| setting.origin == Origin::Whyso) {
        text.push_str(&format!("loose_{}={}\n", setting.name, setting.value));
    }
    text.push_str(&format!("!include {}\n", users.display()));
    let path = home.folder.join("my.cnf");
    std::fs::write(&path, text).map_err(io("cannot write", &path))?;
    Ok(path)
}
/// Adds to an unknown knob the one of this program that may have been meant.
pub(super) fn with_nearest_of(error: Error, binary: &Binary) -> Error {
    if !matches!(error, Error::UnknownKnob { .. }) {
        return error;
    }
    let known = binary.known_knobs().unwrap_or_default();
    error.with_nearest(known.keys().map(String::as_str))
}

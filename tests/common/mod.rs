//! What the end-to-end tests share: the program, a server that is not whyso's, and what must not be left behind.
#![allow(dead_code)] // each test file uses its own part

pub(crate) mod app;
pub(crate) mod bare_client;
pub(crate) mod capable;
pub(crate) mod lab;
pub(crate) mod proxy;
pub(crate) mod schemas;
pub(crate) mod served;
pub(crate) mod site;
pub(crate) mod sysbench;
pub(crate) mod terminal;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Bound on every wait for something that should happen soon.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A folder of its own for one test, with the caches of the program in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// On a real disk: the server's data are to lie on one.
    pub(crate) fn new() -> Place {
        let folder = tempfile::Builder::new().prefix("whyso-e2e-").tempdir_in("/var/tmp").unwrap();
        Place { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.path().join("runs")
    }

    /// Where the throw-away servers of this test are created.
    pub(crate) fn servers(&self) -> PathBuf {
        let servers = self.path().join("servers");
        fs::create_dir_all(&servers).unwrap();
        servers
    }

    /// The program, with its caches, state and throw-away servers in this folder.
    pub(crate) fn whyso(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whyso"));
        command
            .args(args)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("XDG_CACHE_HOME", self.path().join("cache"))
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env_remove("MYSQL_PWD")
            .stdin(Stdio::null());
        command
    }

    /// `whyso run` on a small data set with a throw-away server, plus `more`.
    pub(crate) fn run(&self, more: &[&str]) -> Command {
        self.run_of("oltp-read-write", more)
    }

    /// The same of another workload, such as an SQL file.
    pub(crate) fn run_of(&self, workload: &str, more: &[&str]) -> Command {
        let servers = self.servers();
        let mut args = vec!["run", workload, "--tables", "2", "--rows", "1000", "--warmup", "1"];
        if !more.contains(&"--dsn") {
            args.extend(["--server-dir", servers.to_str().unwrap()]);
        }
        args.extend(more);
        self.whyso(&args)
    }

    /// The only recording here.
    pub(crate) fn only_run(&self) -> PathBuf {
        let mut runs: Vec<PathBuf> =
            fs::read_dir(self.runs()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(runs.len(), 1, "one recording expected: {runs:?}");
        runs.remove(0)
    }

    /// Waits until no server is left that was started from this folder, and its folder is gone.
    pub(crate) fn assert_nothing_left(&self) {
        let gone = wait_until(SOON, || {
            server_pids_under(self.path()).is_empty()
                && fs::read_dir(self.servers()).unwrap().next().is_none()
        });
        let left: Vec<_> = fs::read_dir(self.servers()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(gone, "servers {:?} and folders {left:?} are left", server_pids_under(self.path()));
    }
}

/// Whether this machine lets programs be loaded into its kernel; where it does not, that is counted as not tested.
pub(crate) fn may_trace() -> bool {
    let doctor = output(&mut Place::new().whyso(&["doctor"]));
    let allowed =
        text(&doctor.stdout).lines().any(|line| line.starts_with("ok") && line.contains("time budget"));
    if !allowed {
        whyso_testing::tracer_not_tested("the tracer needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE");
    }
    allowed
}

/// Tests each server build that is on this machine. The others, and those that are left when the bound is over, are counted as not
/// tested.
///
/// `test` gets a build's name and what `whyso server list` shows of it.
pub(crate) fn for_each_build(bound: Duration, mut test: impl FnMut(&str, &Value)) {
    let begin = Instant::now();
    // The user's own cache, and not that of a test.
    let listed =
        Command::new(env!("CARGO_BIN_EXE_whyso")).args(["server", "list", "--json"]).output().unwrap();
    for build in json_of(&listed)["builds"].as_array().unwrap() {
        let name = build["name"].as_str().unwrap();
        if build["at_hand"] != true {
            whyso_testing::not_tested(format!("{name} (not here: whyso server fetch {name})"));
        } else if begin.elapsed() > bound {
            whyso_testing::not_tested(format!("{name} (the other builds took {} s)", bound.as_secs()));
        } else {
            test(name, build);
        }
    }
}

impl Drop for Place {
    /// A test that failed leaves the servers that it started to be kept.
    fn drop(&mut self) {
        for pid in server_pids_under(self.path()) {
            kill(pid, libc::SIGKILL);
        }
    }
}

/// Programs of a MySQL Cluster that are no servers for clients: they are in their folders, and do not name them.
const CLUSTER_PROGRAMS: [&str; 2] = ["/ndbd", "/ndb_mgmd"];

/// Process ids of mariadbd or mysqld whose command line names a path under `folder`, and of a cluster's other programs there.
pub(crate) fn server_pids_under(folder: &Path) -> Vec<i32> {
    let folder = folder.to_str().unwrap();
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        // One that has its own loader is the loader's argument.
        let is_called = |names: &[&str]| {
            command.split(' ').take(5).any(|word| names.iter().any(|name| word.ends_with(name)))
        };
        let is_here = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        if is_called(&["mariadbd", "mysqld"]) && command.contains(folder)
            || is_called(&CLUSTER_PROGRAMS) && is_here
        {
            pids.push(pid);
        }
    }
    pids
}

/// Whether the program has a thread of a running level.
pub(crate) fn drives_a_level(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let name = |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.flatten().any(|task| name(&task).trim() == "load-0")
}

/// Ends a process whatever it is doing.
pub(crate) fn kill(pid: i32, signal: i32) {
    // SAFETY: kill has no memory effects; the pid is one that this test started or found under its own folder.
    unsafe { libc::kill(pid, signal) };
}

pub(crate) fn wait_until(bound: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < bound {
        if condition() {
            return true;
        }
        sleep(Duration::from_millis(50));
    }
    false
}

/// Waits for a child within a bound, and ends it where it does not come back.
pub(crate) fn finish(mut child: Child, bound: Duration) -> Output {
    let begin = Instant::now();
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > bound {
            child.kill().unwrap();
            child.wait().unwrap();
            // A program that it started may keep them open.
            let printed =
                |drained: &Option<PipeReader>| drained.as_ref().map_or(String::new(), PipeReader::so_far);
            panic!("the program did not end within {bound:?}: {} {}", printed(&stdout), printed(&stderr));
        }
        sleep(Duration::from_millis(20));
    };
    let collect = |drained: Option<PipeReader>| drained.map_or(Vec::new(), PipeReader::read_to_end);
    Output { status, stdout: collect(stdout), stderr: collect(stderr) }
}

/// What a program prints, as it comes.
struct PipeReader {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

impl PipeReader {
    fn so_far(&self) -> String {
        text(&self.bytes.lock().unwrap())
    }

    fn read_to_end(self) -> Vec<u8> {
        self.reader.join().unwrap();
        std::mem::take(&mut self.bytes.lock().unwrap())
    }
}

fn drain(mut from: impl std::io::Read + Send + 'static) -> PipeReader {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&bytes);
    let reader = std::thread::spawn(move || {
        let mut some = [0; 8192];
        loop {
            match from.read(&mut some) {
                Ok(0) => break,
                Ok(length) => kept.lock().unwrap().extend_from_slice(&some[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    });
    PipeReader { bytes, reader }
}

pub(crate) fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs to the end within two minutes.
pub(crate) fn output(command: &mut Command) -> Output {
    finish(spawn(command), Duration::from_secs(120))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The run must have succeeded; gives the object that it printed.
pub(crate) fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}\n{}", output.status, text(&output.stderr));
    let object = serde_json::from_slice(&output.stdout);
    let object = object.unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)));
    schemas::assert_keeps(&object);
    object
}

/// Makes a MariaDB's data folder. `temporary`: a starting server clears its folder of temporary tables, those of others in it too.
pub(crate) fn install_data(data: &Path, temporary: &Path) {
    let installed = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root"])
        .env("TMPDIR", temporary)
        .arg(format!("--datadir={}", data.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("mariadb-install-db is needed: apt-get install mariadb-server-core");
    assert!(installed.success());
}

/// A MariaDB that is not whyso's: started by the test, on a socket and a port of loopback.
pub(crate) struct OwnServer {
    child: Child,
    folder: tempfile::TempDir,
    pub(crate) port: u16,
    options: Vec<String>,
    wrapper: Vec<String>,
}

impl OwnServer {
    pub(crate) fn start() -> OwnServer {
        OwnServer::start_with(&[])
    }

    /// With options in addition to those that isolate it.
    pub(crate) fn start_with(options: &[&str]) -> OwnServer {
        OwnServer::start_by(&[], options)
    }

    /// By a program that starts it, such as `unshare`, which must end with it.
    pub(crate) fn start_by(wrapper: &[&str], options: &[&str]) -> OwnServer {
        let folder = tempfile::Builder::new().prefix("whyso-own-").tempdir_in("/var/tmp").unwrap();
        let data = folder.path().join("data");
        install_data(&data, folder.path());
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let wrapper: Vec<String> = wrapper.iter().map(ToString::to_string).collect();
        let child = OwnServer::spawn(folder.path(), port, &wrapper, &options);
        let server = OwnServer { child, folder, port, options, wrapper };
        server.wait_until_it_answers();
        server
    }

    fn wait_until_it_answers(&self) {
        let ready = wait_until(SOON, || self.ask("SELECT 1").status.success());
        assert!(ready, "the server did not start");
    }

    fn spawn(folder: &Path, port: u16, wrapper: &[String], options: &[String]) -> Child {
        let server = if Path::new("/usr/sbin/mariadbd").exists() { "/usr/sbin/mariadbd" } else { "mariadbd" };
        let program = wrapper.iter().map(String::as_str).chain([server]).collect::<Vec<_>>();
        Command::new(program[0])
            .args(&program[1..])
            .args([
                "--no-defaults",
                "--user=root",
                "--bind-address=127.0.0.1",
                "--innodb-buffer-pool-size=64M",
            ])
            .args(["--skip-name-resolve", "--innodb-log-file-size=32M"])
            .arg(format!("--port={port}"))
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--socket={}", folder.join("s").display()))
            .env("TMPDIR", folder)
            .arg(format!("--log-error={}", folder.join("log").display()))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn crash(&mut self) {
        kill(self.pid(), libc::SIGKILL);
        self.child.wait().unwrap();
    }

    /// Starts it again over the same data, socket and port.
    pub(crate) fn start_again(&mut self) {
        self.child = OwnServer::spawn(self.folder.path(), self.port, &self.wrapper, &self.options);
        self.wait_until_it_answers();
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// A DSN of `user` over the socket, to `schema` (may be empty).
    pub(crate) fn dsn(&self, user: &str, schema: &str) -> String {
        format!("mysql://{user}@localhost/{schema}?socket={}", self.socket().display())
    }

    fn ask(&self, sql: &str) -> Output {
        Command::new("mariadb")
            .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names", "--execute", sql])
            .arg(format!("--socket={}", self.socket().display()))
            .stdin(Stdio::null())
            .output()
            .expect("the mariadb client is needed: apt-get install mariadb-client")
    }

    /// Runs SQL as root. Returns the rows as text.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let output = self.ask(sql);
        assert!(output.status.success(), "{sql}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_string()
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server says whose DSN has a socket: the answer, or the error.
pub(crate) fn ask(dsn: &str, sql: &str) -> String {
    let socket = dsn.split("socket=").nth(1).unwrap();
    let asked = Command::new("mariadb")
        .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names", "--execute", sql])
        .arg(format!("--socket={socket}"))
        .output()
        .unwrap();
    format!("{}{}", text(&asked.stdout), text(&asked.stderr)).trim().to_string()
}

/// CPU time of a node's threads in the last two seconds of the newest recording.
pub(crate) fn cpu_ns_of_last_seconds(place: &Place, node: &str) -> i64 {
    let mut export =
        place.whyso(&["export", "latest", "--format", "csv", "--host", node, "--source", "threads"]);
    let csv = text(&output(export.args(["--metric", "cpu_ns"])).stdout);
    let mut by_role: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
    for line in csv.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        if let [at, _, "threads", "cpu_ns", role, .., value] = fields[..] {
            let reading = (at.parse().unwrap(), value.parse().unwrap());
            by_role.entry(role.to_string()).or_default().push(reading);
        }
    }
    let last_ns = by_role.values().flatten().map(|(at_ns, _)| *at_ns).max().unwrap();
    let grown = by_role.values().map(|readings| {
        let of_last = || readings.iter().filter(|(at_ns, _)| *at_ns >= last_ns - 2_000_000_000);
        of_last().map(|(_, ns)| ns).max().unwrap_or(&0) - of_last().map(|(_, ns)| ns).min().unwrap_or(&0)
    });
    grown.sum()
}

//! Hosts of network namespaces on this machine: one with the hub, one with a database, whose clock may show another time, and those that load it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::terminal::Terminal;
use super::{OwnServer, Place, SOON, kill, output, spawn, text, wait_until};

/// Names nats-server where it is not on the PATH.
const NATS_SERVER: &str = "WHYSO_NATS_SERVER";

pub(crate) struct Lab {
    pub(crate) place: Place,
    number: u32,
    server: Option<OwnServer>,
    programs: Vec<(String, Child)>,
    /// Seconds that the database host's monotonic clock shows more.
    ahead_s: i64,
    hosts: Vec<&'static str>,
}

/// Whether this machine can be two hosts; where it can't, that is counted as not tested.
pub(crate) fn can_be_lab() -> bool {
    // SAFETY: it has no effects.
    let is_root = unsafe { libc::geteuid() } == 0;
    let has = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    let why = match (is_root, has("ip"), has("nats-server") || std::env::var_os(NATS_SERVER).is_some()) {
        (true, true, true) if may_make_namespaces() => return true,
        (true, true, true) => "this machine lets root make no network and time namespaces",
        (false, ..) => "making network namespaces needs root",
        (_, false, _) => "making network namespaces needs the program ip",
        (.., false) => "a hub needs nats-server: scripts/nats_server.sh installs it",
    };
    whyso_testing::not_tested(why);
    false
}

/// As in a container without the rights.
fn may_make_namespaces() -> bool {
    let mut made = Command::new("unshare");
    output(made.args(["--net", "--mount", "--time", "--monotonic", "7", "true"])).status.success()
}

fn ip(words: &str) {
    let done = output(Command::new("ip").args(words.split(' ')));
    assert!(done.status.success(), "ip {words}: {}", text(&done.stderr));
}

/// The lab's file as far as it is about the database.
pub(crate) const DATABASE_FILE: &str =
    "hub = \"state/whyso/hub\"\n[[host]]\nname = \"db\"\nserver = \"shop\"\n";

impl Lab {
    /// Makes a host with a hub and one with a database. `settings`: what the agent there may do.
    pub(crate) fn start(ahead_s: i64, settings: &str) -> Lab {
        Lab::start_with(ahead_s, settings, &[])
    }

    /// The same with hosts that send a load, named by a letter each. Their agents may, and the lab's file asks them to.
    pub(crate) fn start_with(ahead_s: i64, settings: &str, loaders: &[&'static str]) -> Lab {
        let mut lab = Lab::begin(ahead_s, settings, loaders);
        let mut file = DATABASE_FILE.to_string();
        for loader in loaders {
            let name = format!("load-{loader}");
            let target = format!("[[target]]\nname = \"shop\"\ndsn = \"{}\"\n", lab.dsn());
            lab.join(
                loader,
                &name,
                &format!("may = [\"observe\", \"load\", \"start-servers\", \"experiment\"]\n{target}"),
            );
            file += &format!("[[host]]\nname = \"{name}\"\nload = \"shop\"\n");
        }
        lab.write("lab.toml", &file);
        lab
    }

    /// The hosts with the hub and with the database, and others without an agent.
    pub(crate) fn begin(ahead_s: i64, settings: &str, others: &[&'static str]) -> Lab {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Names of interfaces have 15 letters at most.
        let number = std::process::id() % 100_000 * 10 + NUMBER.fetch_add(1, Ordering::Relaxed);
        let hosts = [&["a", "b"], others].concat();
        let mut lab = Lab { place: Place::new(), number, server: None, programs: Vec::new(), ahead_s, hosts };
        lab.make_hosts();
        lab.server = Some(lab.start_server());

        let hub = lab.whyso("a", &["hub", "start", "--listen", "10.98.0.1:4222"]);
        lab.keep("hub", hub);
        let dsn = lab.server.as_ref().unwrap().dsn("root", "");
        lab.join("b", "db", &format!("{settings}\n[[server]]\nname = \"shop\"\ndsn = \"{dsn}\"\n"));
        lab
    }

    /// The hub's host is the switch between the others, too.
    fn make_hosts(&self) {
        for host in &self.hosts {
            ip(&format!("netns add {}", self.namespace(host)));
            ip(&format!("-n {} link set lo up", self.namespace(host)));
        }
        let a = self.namespace("a");
        ip(&format!("-n {a} link add switch type bridge"));
        ip(&format!("-n {a} addr add 10.98.0.1/24 dev switch"));
        ip(&format!("-n {a} link set switch up"));
        for (place, host) in self.hosts.iter().enumerate().skip(1) {
            let namespace = self.namespace(host);
            ip(&format!("link add to-{host} netns {a} type veth peer name e0 netns {namespace}"));
            ip(&format!("-n {a} link set to-{host} master switch up"));
            ip(&format!("-n {namespace} addr add 10.98.0.{}/24 dev e0", place + 1));
            ip(&format!("-n {namespace} link set e0 up"));
        }
    }

    /// Invites a host and starts its agent.
    pub(crate) fn join(&mut self, host: &str, name: &str, settings: &str) {
        let invited = || {
            let invited = output(&mut self.whyso("a", &["hub", "invite", name]));
            invited.status.success().then(|| text(&invited.stdout).trim().to_string())
        };
        let mut token = None;
        let is_invited = wait_until(SOON, || {
            token = invited();
            token.is_some()
        });
        assert!(is_invited, "the hub lets nobody in: {}", self.log("hub"));
        let folder = format!("agent-{host}");
        let joined = output(&mut self.whyso(host, &["agent", "--folder", &folder, "join", &token.unwrap()]));
        assert!(joined.status.success(), "{}", text(&joined.stderr));
        self.write(&format!("{folder}.toml"), settings);
        self.start_agent(host, name);
    }

    /// `name`: of the host, as the hub knows it.
    pub(crate) fn start_agent(&mut self, host: &str, name: &str) {
        let folder = format!("agent-{host}");
        let agent =
            self.whyso(host, &["agent", "--folder", &folder, "run", "--settings", &format!("{folder}.toml")]);
        self.keep(&folder, agent);
        let is_there = || {
            let agents = text(&output(&mut self.whyso("a", &["hub", "agents"])).stdout);
            agents.lines().any(|line| line.starts_with(name))
        };
        let has_come = wait_until(SOON, is_there);
        assert!(has_come, "the agent does not come: {} {}", self.log(&folder), self.log("hub"));
    }

    /// Starts a server on the database's host, which the user lab may reach from everywhere.
    pub(crate) fn start_server(&self) -> OwnServer {
        let begin = ["ip", "netns", "exec", &self.namespace("b")];
        let server = OwnServer::start_by(&begin, &["--bind-address=10.98.0.2"]);
        server.sql("CREATE USER lab@'%'");
        server.sql("GRANT ALL ON *.* TO lab@'%'");
        server
    }

    /// Ends the agent at once, as a crash does.
    pub(crate) fn kill_agent(&mut self, host: &str) {
        let folder = format!("agent-{host}");
        let place = self.programs.iter().position(|(name, _)| *name == folder).unwrap();
        let (_, mut agent) = self.programs.remove(place);
        kill(agent.id() as i32, libc::SIGKILL);
        agent.wait().unwrap();
    }

    /// Cuts the link to a host, or joins it.
    pub(crate) fn link(&self, host: &str, state: &str) {
        ip(&format!("-n {} link set to-{host} {state}", self.namespace("a")));
    }

    /// The program on a host: "a" has the hub, "b" the database, and each other one sends a load.
    pub(crate) fn whyso(&self, host: &str, args: &[&str]) -> Command {
        let program = self.place.whyso(args);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host)]);
        if host == "b" && self.ahead_s != 0 {
            command.args(["unshare", "--time", "--monotonic", &self.ahead_s.to_string()]);
        }
        command.arg(program.get_program()).args(program.get_args()).current_dir(self.place.path());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null());
        command
    }

    /// `whyso watch` in a terminal on the hub's host.
    pub(crate) fn watch(&self, args: &[&str]) -> Terminal<'_> {
        Terminal::start_by(&self.place, &format!("ip netns exec {}", self.namespace("a")), args)
    }

    /// The load's way to the database.
    pub(crate) fn dsn(&self) -> String {
        format!("mysql://lab@10.98.0.2:{}/whyso", self.port())
    }

    /// The database's port on its host.
    pub(crate) fn port(&self) -> u16 {
        self.server.as_ref().unwrap().port
    }

    /// Runs SQL on the database as root.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.server.as_ref().unwrap().sql(sql)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn namespace(&self, host: &str) -> String {
        format!("wl{}{host}", self.number)
    }

    fn keep(&mut self, name: &str, mut command: Command) {
        let log = std::fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.programs.push((name.to_string(), child));
    }

    /// What a kept program printed.
    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{name}.log"))).unwrap()
    }

    /// Starts a command whose output is kept for later.
    pub(crate) fn spawn(&self, host: &str, args: &[&str]) -> Child {
        spawn(&mut self.whyso(host, args))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for (_, program) in self.programs.iter_mut().rev() {
            kill(program.id() as i32, libc::SIGTERM);
            let ended =
                wait_until(Duration::from_secs(20), || program.try_wait().is_ok_and(|end| end.is_some()));
            if !ended {
                let _ = program.kill();
                let _ = program.wait();
            }
        }
        self.server = None;
        for host in &self.hosts {
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(host)]).status();
        }
    }
}

/// A file of a recording as JSON.
pub(crate) fn run_json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path.join("run.json")).unwrap()).unwrap()
}

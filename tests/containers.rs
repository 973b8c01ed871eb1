//! A server in a container: in PID, network, mount and host name namespaces of its own, with a root folder of its own in which the
//! program lies where this machine has no file.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Place, SOON, json_of, output, text, wait_until};

const HOST_NAME: &str = "shop-database-1";

struct Container {
    first: Child,
    root: PathBuf,
}

impl Container {
    /// `None` where namespaces can't be made here.
    fn start(place: &Place) -> Option<Container> {
        let spaces = ["--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child=SIGKILL"];
        let allowed = Command::new("unshare").args(spaces).arg("true").stderr(Stdio::null()).status();
        if !allowed.is_ok_and(|status| status.success()) {
            whyso_testing::not_tested("namespaces can't be created here");
            return None;
        }
        let root = place.path().join("root");
        for folder in ["opt/db", "proc", "dev", "tmp", "run/mysqld", "data", "etc", "usr"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::copy("/usr/sbin/mariadbd", root.join("opt/db/mariadbd")).unwrap();
        fs::write(root.join("etc/hostname"), format!("{HOST_NAME}\n")).unwrap();
        fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\n").unwrap();
        for link in ["lib", "lib64", "bin"] {
            std::os::unix::fs::symlink(format!("usr/{link}"), root.join(link)).unwrap();
        }
        common::install_data(&root.join("data"), place.path());
        let script = format!(
            "set -e\nmount --make-rprivate /\nmount --bind '{0}' '{0}'\nhostname {HOST_NAME}\nmount --rbind /usr '{0}/usr'\nmount -t proc proc '{0}/proc'\n\
             mount --rbind /dev '{0}/dev'\nexec chroot '{0}' /opt/db/mariadbd --no-defaults --user=root --datadir=/data --skip-networking \
             --socket=/run/mysqld/mysqld.sock --innodb-buffer-pool-size=64M --log-error=/data/log\n",
            root.display()
        );
        let mut first = Command::new("unshare");
        first.args(spaces).args(["sh", "-c", &script]).stdin(Stdio::null()).stdout(Stdio::null());
        let first = first.stderr(Stdio::null()).spawn().unwrap();
        let container = Container { first, root };
        let socket = container.socket();
        let answers = || {
            let mut client = Command::new("mariadb");
            client.args(["--no-defaults", "--user=root", "--execute", "SELECT 1"]);
            output(client.arg(format!("--socket={}", socket.display()))).status.success()
        };
        let log = || fs::read_to_string(container.root.join("data/log")).unwrap_or_default();
        assert!(wait_until(SOON, answers), "the server did not start: {}", log());
        Some(container)
    }

    /// The folder lies on this machine's disk, and so does the socket.
    fn socket(&self) -> PathBuf {
        self.root.join("run/mysqld/mysqld.sock")
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.first.kill();
        let _ = self.first.wait();
    }
}

#[test]
fn a_server_in_a_container_is_recorded_by_name_with_its_symbols() {
    let place = Place::new();
    let Some(_container) = Container::start(&place) else { return };
    assert!(!Path::new("/opt/db/mariadbd").exists(), "the program lies in the container alone");

    let wrong = output(&mut place.whyso(&[
        "record",
        "--container",
        "no-such",
        "--dsn",
        "mysql://root@localhost/",
        "--for",
        "1s",
    ]));
    let message = text(&wrong.stderr);
    assert!(
        message.contains("no server in a container 'no-such'") && message.contains(HOST_NAME),
        "{message}"
    );

    let dsn = format!("mysql://root@localhost/?container={HOST_NAME}");
    let mut load = place.whyso(&["load", "oltp-read-only", "--dsn", &dsn, "--users", "2", "--seconds", "60"]);
    load.args(["--tables", "1", "--rows", "1000"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut load = load.spawn().unwrap();
    assert!(wait_until(SOON, || common::drives_a_level(load.id())), "the load did not begin");
    let arguments = [
        "record",
        "--container",
        HOST_NAME,
        "--dsn",
        "mysql://root@localhost/",
        "--for",
        "4s",
        "--stacks",
        "--json",
    ];
    let record = output(&mut place.whyso(&arguments));
    let _ = load.kill();
    let _ = load.wait();
    let printed = json_of(&record);
    let found = printed["levels"][0]["queries"].as_u64();
    assert!(found.is_some_and(|queries| queries > 1000), "{printed:#}");
    if !common::may_trace() {
        return;
    }
    let run = place.only_run();
    // All of them: those that only call others come after the thirty that are shown.
    let all = ["functions", run.to_str().unwrap(), "--json", "--limit", "100000"];
    let functions = json_of(&output(&mut place.whyso(&all)));
    let named = functions["functions"].as_array().unwrap().iter().any(|function| {
        function["module"] == "mariadbd"
            && function["name"].as_str().is_some_and(|name| {
                name.contains("handle_connection")
                    || name.contains("mysql_execute_command")
                    || name.contains("JOIN::")
            })
    });
    assert!(named, "{functions:#}");
}

//! A throw-away MariaDB for tests and benches: a temporary folder, a Unix socket, gone when it is dropped.

#![allow(dead_code)] // Each test file uses a part of it.

pub(crate) mod engines;
pub(crate) mod peer;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use whyso_load::{Address, Target, Tls};

pub(crate) const SCHEMA: &str = "whyso";

static INSTALLING: Mutex<()> = Mutex::new(());

pub(crate) struct Server {
    pub(crate) folder: tempfile::TempDir,
    child: Child,
}

impl Server {
    /// Starts one with these options in addition to those that isolate it.
    pub(crate) fn start(options: &[&str]) -> Server {
        let folder = tempfile::Builder::new()
            .prefix("whyso-load-")
            .tempdir_in("/var/tmp")
            .expect("/var/tmp can be written");
        // Each takes a whole CPU for a second.
        let alone = INSTALLING.lock();
        let installed = Command::new(program("mariadb-install-db"))
            .args([
                "--no-defaults",
                "--user=root",
                "--skip-test-db",
                "--auth-root-authentication-method=normal",
            ])
            .arg(format!("--datadir={}", folder.path().join("data").display()))
            // A starting server clears its folder of temporary tables, those of others in it too.
            .env("TMPDIR", folder.path())
            .output()
            .expect("mariadb-install-db runs");
        let output_text =
            || String::from_utf8_lossy(&installed.stdout) + String::from_utf8_lossy(&installed.stderr);
        assert!(installed.status.success(), "mariadb-install-db failed: {}", output_text());
        drop(alone);
        let child = spawn(folder.path(), options);
        let mut server = Server { folder, child };
        server.wait_until_it_answers();
        server.sql(&format!("CREATE DATABASE {SCHEMA}"));
        server
    }

    fn wait_until_it_answers(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.client("SELECT 1").output().expect("mariadb runs").status.success() {
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "the server did not come up:\n{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills it and starts it again over the same data.
    pub(crate) fn restart(&mut self, options: &[&str]) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server ends");
        self.child = spawn(self.folder.path(), options);
        self.wait_until_it_answers();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn client(&self, sql: &str) -> Command {
        let mut command = Command::new(program("mariadb"));
        command.args(["--no-defaults", "-uroot", "-N", "-B", "-e", sql]).arg("-S").arg(self.socket());
        command
    }

    /// Runs SQL as root; gives what it prints.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let output = self.client(sql).output().expect("mariadb runs");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    /// Makes `sbtest1` upwards with this many rows.
    pub(crate) fn load_tables(&self, tables: u32, rows: u32) {
        for table in 1..=tables {
            self.sql(&format!(
                "USE {SCHEMA}; CREATE TABLE sbtest{table} (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT \
                 NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id), KEY \
                 k_{table} (k)) ENGINE=InnoDB; INSERT INTO sbtest{table} SELECT seq, 1 + seq * 7 % {rows}, \
                 LPAD(seq * 12345, 119, '0123456789-'), LPAD(seq, 59, '9876543210-') FROM seq_1_to_{rows}"
            ));
        }
    }

    /// Makes the data that a workload brings along, twice, as after a setup that was broken off.
    pub(crate) fn set_up(&self, workload: &whyso_workload::Workload) {
        let Some(setup) = workload.requirements().setup else { return };
        for statement in setup.statements.iter().chain(&setup.statements) {
            self.sql(&format!("USE {SCHEMA};\nDELIMITER //\n{statement}\n//"));
        }
        assert_eq!(self.sql(&format!("USE {SCHEMA}; {}", setup.check)), "1", "{}", setup.check);
    }

    pub(crate) fn target(&self) -> Target {
        self.target_of("root", "")
    }

    pub(crate) fn target_of(&self, user: &str, password: &str) -> Target {
        Target {
            address: Address::Unix(self.socket()),
            user: user.to_string(),
            password: password.to_string(),
            schema: SCHEMA.to_string(),
            tls: Tls::Off,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &Path, options: &[&str]) -> Child {
    Command::new(program("mariadbd"))
        .args(["--no-defaults", "--user=root"])
        .arg(format!("--datadir={}", folder.join("data").display()))
        .arg(format!("--socket={}", folder.join("s").display()))
        .arg(format!("--pid-file={}", folder.join("pid").display()))
        .arg(format!("--log-error={}", folder.join("log").display()))
        .arg("--innodb-flush-log-at-trx-commit=2")
        .env("TMPDIR", folder)
        .args(if options.iter().any(|option| option.starts_with("--port")) {
            None
        } else {
            Some("--skip-networking")
        })
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("mariadbd runs")
}

/// Where Debian puts it; `/usr/sbin` may be missing from PATH.
fn program(name: &str) -> PathBuf {
    for folder in ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"] {
        let path = Path::new(folder).join(name);
        if path.exists() {
            return path;
        }
    }
    PathBuf::from(name)
}

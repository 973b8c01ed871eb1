//! Where the load goes: a MariaDB with sysbench's tables, or the null server.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::contestants::{sysbench, with_cpus};
use crate::options::{Link, Plan};
use crate::support::Server;

/// TCP addresses that the null server listens on, so that a client has enough local ports for each.
const NULL_ADDRESSES: usize = 4;

/// Where a client connects.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) socket: PathBuf,
    /// Loopback addresses with ports, the first of them used by those that know only one.
    pub(crate) tcp: Vec<String>,
}

impl Place {
    /// As `--unix PATH` or `--tcp ADDRESS:PORT`.
    pub(crate) fn arguments(&self, link: Link) -> Vec<String> {
        match link {
            Link::Unix => vec!["--unix".to_string(), self.socket.display().to_string()],
            Link::Tcp => self.tcp.iter().flat_map(|tcp| ["--tcp".to_string(), tcp.clone()]).collect(),
        }
    }
}

/// A MariaDB that takes 1,024 users with sysbench's statements prepared, and the tables in it.
pub(crate) struct MariaDb {
    pub(crate) place: Place,
    _server: Server,
}

impl MariaDb {
    pub(crate) fn start(plan: &Plan) -> Result<MariaDb> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        drop(listener);
        let users_max = plan.users.iter().copied().max().unwrap_or(1).max(128);
        // Every user has every table open, and a statement for each table and kind.
        let table_cache = users_max * plan.tables + 400;
        let statements = users_max * (plan.tables * 9 + 2) + 1000;
        let options = [
            format!("--port={port}"),
            "--bind-address=127.0.0.1".to_string(),
            "--skip-name-resolve".to_string(),
            format!("--max-connections={}", users_max + 50),
            format!("--back-log={users_max}"),
            format!("--thread-cache-size={users_max}"),
            format!("--table-open-cache={table_cache}"),
            format!("--max-prepared-stmt-count={statements}"),
            format!("--open-files-limit={}", users_max * 2 + 1000),
            "--innodb-buffer-pool-size=512M".to_string(),
            "--innodb-log-file-size=256M".to_string(),
            "--innodb-flush-log-at-trx-commit=2".to_string(),
        ];
        let server = Server::start(&options.each_ref().map(String::as_str));
        let place = Place { socket: server.socket(), tcp: vec![format!("127.0.0.1:{port}")] };
        let mut prepare = sysbench(plan, &place, Link::Unix, "oltp-read-write")?;
        let prepared = prepare.arg("prepare").output().context("sysbench can't be started")?;
        if !prepared.status.success() {
            bail!("sysbench prepare failed: {}", String::from_utf8_lossy(&prepared.stdout));
        }
        Ok(MariaDb { place, _server: server })
    }
}

pub(crate) struct NullServer {
    pub(crate) place: Place,
    child: Child,
    _folder: tempfile::TempDir,
}

impl NullServer {
    pub(crate) fn start(plan: &Plan) -> Result<NullServer> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("s");
        let mut command = with_cpus(&example("null_server")?, &plan.null_cpus);
        command.arg("--unix").arg(&socket);
        for last in 1..=NULL_ADDRESSES {
            command.arg("--tcp").arg(format!("127.0.0.{last}:0"));
        }
        let ends_with_us = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
        // SAFETY: the closure makes one system call and allocates nothing.
        unsafe { command.pre_exec(ends_with_us) };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("the null server can't be started")?;
        let printed = child.stdout.take().context("the null server has no output")?;
        let mut tcp = Vec::new();
        for line in BufReader::new(printed).lines().map_while(Result::ok) {
            if let Some(address) = line.strip_prefix("listening on tcp:") {
                tcp.push(address.to_string());
            }
            if line == "ready" {
                return Ok(NullServer { place: Place { socket, tcp }, child, _folder: folder });
            }
        }
        let _ = child.wait();
        bail!("the null server ended before it was ready")
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Another example, which cargo puts into the same folder as this one.
pub(crate) fn example(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own.with_file_name(name);
    if !path.exists() {
        bail!(
            "{} is not there: build it with cargo build --release -p whyso-load --examples",
            path.display()
        );
    }
    Ok(path)
}

//! What is to be watched.

use std::path::PathBuf;
use std::time::Duration;

use mysql_async::Opts;

use crate::samplers::access_log::AccessLog;
use crate::samplers::addon::AddOn;

/// What is to be watched, and how often.
#[derive(Clone, Debug)]
pub struct WatchSpec {
    /// Between two readings of a source; at least 100 ms.
    pub interval: Duration,
    /// Between two readings of what rarely changes (variables); at least `interval`.
    pub slow_interval: Duration,
    /// How to reach the server; `None` watches only the machine. Its schema is not used.
    pub server: Option<Opts>,
    /// The server's process, where it runs on this machine.
    pub server_pid: Option<u32>,
    /// Name of the server's machine in the recording: "server" or a host name.
    pub server_host: String,
    /// Processes of the cluster's other nodes on this machine: they are no programs of others.
    pub other_node_pids: Vec<u32>,
    /// Another node of the server's cluster: only its own counters are read, not the machine, nor what costs more.
    pub is_other_node: bool,
    /// The process that makes the load; mostly whyso itself.
    pub generator_pid: u32,
    /// The server's data directory, where it is on this machine.
    pub data_dir: Option<PathBuf>,
    /// The user's own sources, each with its own name.
    pub add_ons: Vec<AddOn>,
    /// Access logs of web servers on this machine.
    pub access_logs: Vec<AccessLog>,
}

impl Default for WatchSpec {
    fn default() -> WatchSpec {
        WatchSpec {
            interval: Duration::from_secs(1),
            slow_interval: Duration::from_secs(60),
            server: None,
            server_pid: None,
            server_host: "server".to_string(),
            other_node_pids: Vec::new(),
            is_other_node: false,
            generator_pid: std::process::id(),
            data_dir: None,
            add_ons: Vec::new(),
            access_logs: Vec::new(),
        }
    }
}

impl WatchSpec {
    /// Whether the server's machine is this one, so that this one's CPUs and disks are its own.
    pub(crate) fn server_is_here(&self) -> bool {
        if self.server_pid.is_some() || self.data_dir.is_some() {
            return true;
        }
        let Some(opts) = &self.server else {
            return true;
        };
        let host = opts.ip_or_hostname();
        opts.socket().is_some() || ["localhost", "127.0.0.1", "::1"].contains(&host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> WatchSpec {
        WatchSpec { server: Some(Opts::from_url(url).unwrap()), ..WatchSpec::default() }
    }

    #[test]
    fn a_server_is_here_by_socket_loopback_or_process() {
        assert!(server("mysql://root@localhost/").server_is_here());
        assert!(server("mysql://root@127.0.0.1:3307/").server_is_here());
        assert!(server("mysql://root@x/?socket=%2Ftmp%2Fs").server_is_here());
        assert!(!server("mysql://root@db1:3306/").server_is_here());
        let mut by_name = server("mysql://root@db1:3306/");
        by_name.server_pid = Some(1);
        assert!(by_name.server_is_here());
    }
}

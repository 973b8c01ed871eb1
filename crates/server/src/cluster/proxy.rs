//! A proxy between clients and the nodes that take changes: HAProxy, which passes bytes on and knows nothing of MySQL.
//!
//! It reaches the nodes through their sockets and has one itself, so that no port is open to others. It is not restarted with the nodes. While one is
//! away, new connections go to another one after a failed attempt. It does not ask nodes whether they take part.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::kind::{ClusterKind, Role};
use super::program::StartedProgram;
use crate::cpus::CpuSet;
use crate::error::{Error, Result, io};
use crate::find::output_within;
use crate::throwaway::Program;

pub(super) const CONFIG_FILE: &str = "haproxy.cfg";
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const START_WITHIN: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The name of a cluster's proxy.
pub(super) fn name(cluster: &str) -> String {
    format!("{cluster}-proxy")
}

/// # Errors
/// It is not on this machine.
pub(super) fn find() -> Result<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join("haproxy")).find(|path| path.is_file()).ok_or_else(|| {
        Error::Binary(
            "there is no haproxy on this machine: install it (Debian: apt-get install haproxy), or leave out --proxy"
                .to_string(),
        )
    })
}

/// `nodes`: name and socket of those that clients' connections are passed on to, in turn.
pub(super) fn config(socket: &Path, nodes: &[(String, PathBuf)]) -> String {
    let mut text = format!(
        "defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 24h\n    timeout server 24h\n    retries 3\n    option redispatch 1\n\n\
         frontend clients\n    bind unix@{} mode 600\n    default_backend nodes\n\nbackend nodes\n    balance roundrobin\n",
        socket.display()
    );
    for (name, socket) in nodes {
        text.push_str(&format!("    server {name} unix@{}\n", socket.display()));
    }
    text
}

/// Starts it, and waits until it takes connections.
///
/// # Errors
/// It is not on this machine, ends, or takes no connections within 20 s.
pub(super) async fn start(
    (cluster, kind): (&str, ClusterKind),
    nodes: &[(String, PathBuf)],
    cpus: Option<CpuSet>,
) -> Result<StartedProgram> {
    let path = find()?;
    let server = format!("HAProxy {}", version(&path)?);
    let mut program = Program::prepare(cpus)?;
    let (file, socket) = (program.folder().join(CONFIG_FILE), program.socket());
    std::fs::write(&file, config(&socket, nodes)).map_err(io("cannot write", &file))?;
    let mut command = Command::new(&path);
    command.args(["-db", "-f"]).arg(&file);
    program.start(command, &[])?;
    let deadline = Instant::now() + START_WITHIN;
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        if let Some(why) = program.why_ended() {
            return Err(Error::Build(format!("the proxy did not start: {why}")));
        }
        if Instant::now() >= deadline {
            return Err(Error::Build(format!(
                "the proxy takes no connections within {} s",
                START_WITHIN.as_secs()
            )));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(StartedProgram { name: name(cluster), kind, role: Role::Proxy, place: None, program, server })
}

/// "2.6.12-1+deb12u4"
fn version(path: &Path) -> Result<String> {
    let mut command = Command::new(path);
    command.arg("-v");
    let asked = output_within(command, ANSWERS_WITHIN)
        .map_err(|error| Error::Binary(format!("'{}' can't be run: {error}", path.display())))?;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    let word = said.split_whitespace().skip_while(|word| *word != "version").nth(1);
    Ok(word.unwrap_or("of an unknown version").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_stands_behind_one_socket() {
        let nodes = [
            ("g-1".to_string(), PathBuf::from("/a/s.sock")),
            ("g-2".to_string(), PathBuf::from("/b/s.sock")),
        ];
        let text = config(Path::new("/p/s.sock"), &nodes);
        assert!(text.contains("    bind unix@/p/s.sock mode 600\n"), "{text}");
        assert!(text.ends_with("    server g-1 unix@/a/s.sock\n    server g-2 unix@/b/s.sock\n"), "{text}");
    }
}

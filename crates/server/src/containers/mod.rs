//! A server that runs in a container of this machine, reached by its socket through its own root folder.
//!
//! A container is known by the name or the image that Docker, Podman or nerdctl have for it; by its host name; or by its name or the
//! begin of its id in the path of its control group. No port needs to be published.

mod runtimes;
mod sockets;

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A server in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerServer {
    /// As this machine numbers it.
    pub pid: u32,
    /// A path of this machine's.
    pub socket: PathBuf,
}

/// A process of this machine that has a PID namespace or a root folder of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    pid: u32,
    /// Name of its PID namespace.
    namespace: PathBuf,
    control_groups: String,
    host_name: String,
}

/// Finds the server in a container, by the container's name, its id or its image.
///
/// # Errors
/// There is no such container, no server or several in it, or this user may not look into it.
pub fn server_in(container: &str) -> Result<ContainerServer> {
    let candidates = candidates(|name| SERVERS.contains(&name));
    let found = those_in(container, &candidates);
    let pid = match found[..] {
        [only] => only.pid,
        [] => return Err(none_found(container, &candidates)),
        _ => {
            let pids: Vec<String> = found.iter().map(|candidate| candidate.pid.to_string()).collect();
            return Err(Error::Container(format!(
                "there are several servers in '{container}', the processes {}: name one container by its id",
                pids.join(", ")
            )));
        }
    };
    match sockets::listening_socket(pid) {
        Ok(socket) => Ok(ContainerServer { pid, socket }),
        Err(why) => Err(Error::Container(format!(
            "the server in '{container}', process {pid}, can't be reached: {why}"
        ))),
    }
}

/// The first process of a container of any kind, by the container's name, its id or its image: all others in it descend from it.
///
/// # Errors
/// There is no such container, or several fit, or this user may not look into it.
pub fn first_process_in(container: &str) -> Result<u32> {
    let candidates = candidates(|_| true);
    let found = those_in(container, &candidates);
    let first = found.iter().filter(|candidate| is_first(candidate.pid)).collect::<Vec<_>>();
    match first[..] {
        [only] => Ok(only.pid),
        [] => Err(Error::Container(format!(
            "there is no container '{container}' that this user can see: name one as its runtime does, by its id, or by its host name"
        ))),
        _ => {
            let pids: Vec<String> = first.iter().map(|candidate| candidate.pid.to_string()).collect();
            Err(Error::Container(format!(
                "there are several containers '{container}', with the first processes {}: name one by its id, or give the number",
                pids.join(", ")
            )))
        }
    }
}

/// Whether a process is the first one of its PID namespace.
fn is_first(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    numbers.split_whitespace().next_back() == Some("1")
}

fn those_in<'a>(container: &str, candidates: &'a [Candidate]) -> Vec<&'a Candidate> {
    match runtimes::first_processes(container) {
        runtimes::Answer::Processes(pids) => {
            let namespaces: Vec<PathBuf> = pids.iter().filter_map(|pid| namespace_of(*pid)).collect();
            candidates.iter().filter(|candidate| namespaces.contains(&candidate.namespace)).collect()
        }
        runtimes::Answer::Unknown => {
            candidates.iter().filter(|candidate| is_in(candidate, container)).collect()
        }
    }
}

fn none_found(container: &str, candidates: &[Candidate]) -> Error {
    let mut text = format!("there is no server in a container '{container}' that this user can see");
    if candidates.is_empty() {
        text.push_str("; no server here runs in a container (only root sees those of others)");
    } else {
        let names: Vec<String> = candidates
            .iter()
            .map(|candidate| format!("{} (process {})", candidate.host_name, candidate.pid))
            .collect();
        text.push_str(&format!("; there are servers in {}", names.join(", ")));
    }
    Error::Container(text)
}

/// Every process whose name is wanted and that is not in this program's own PID namespace, or has another root folder.
fn candidates(is_wanted: impl Fn(&str) -> bool) -> Vec<Candidate> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id();
    let (own_namespace, own_root) = (namespace_of(own), root_of(own));
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let candidate = |pid: u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        if !is_wanted(name.trim()) {
            return None;
        }
        let namespace = namespace_of(pid)?;
        if Some(&namespace) == own_namespace.as_ref() && root_of(pid) == own_root {
            return None;
        }
        let host_name = std::fs::read_to_string(format!("/proc/{pid}/root/etc/hostname")).unwrap_or_default();
        let control_groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        Some(Candidate { pid, namespace, control_groups, host_name: host_name.trim().to_string() })
    };
    pids.filter_map(candidate).collect()
}

fn namespace_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// Which folder is a process's root, by its number.
fn root_of(pid: u32) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let about = std::fs::metadata(Path::new("/proc").join(pid.to_string()).join("root")).ok()?;
    Some((about.dev(), about.ino()))
}

/// Names of servers' processes.
const SERVERS: [&str; 2] = ["mysqld", "mariadbd"];
/// Parts of paths that hold containers, and are none.
const FOLDERS: [&str; 3] = ["", "docker", "lxc"];
/// Shorter begins of ids fit by chance.
const ID_DIGITS_MIN: usize = 6;

/// By its host name, or a part of its control groups' paths: `/docker/0123456789ab…`, `docker-0123456789ab….scope`, `/lxc/NAME`,
/// `machine-NAME.scope`.
fn is_in(candidate: &Candidate, container: &str) -> bool {
    let is_id = container.len() >= ID_DIGITS_MIN && container.bytes().all(|digit| digit.is_ascii_hexdigit());
    let paths = candidate.control_groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut parts = paths.flat_map(|path| path.split('/')).flat_map(|part| {
        let bare = part.trim_end_matches(".scope").trim_end_matches(".service");
        [bare, bare.split_once('-').map_or(bare, |(_, rest)| rest)]
    });
    let is_named = |part: &str| part == container && !FOLDERS.contains(&part);
    let is_host = !container.is_empty() && candidate.host_name == container;
    is_host || parts.any(|part| is_named(part) || is_id && part.starts_with(container))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_known_by_its_id_its_name_or_its_host_name() {
        let candidate = |control_groups: &str| Candidate {
            pid: 1,
            namespace: PathBuf::new(),
            control_groups: control_groups.to_string(),
            host_name: "db1".to_string(),
        };
        let docker = candidate("0::/system.slice/docker-0123456789abcdef.scope\n");
        let older = candidate("3:cpu:/docker/0123456789abcdef\n");
        let machine = candidate("0::/machine.slice/machine-shop.scope\n");
        let lxc = candidate("0::/lxc/shop/init.scope\n");
        for (candidate, names) in [
            (&docker, vec!["0123456789abcdef", "01234567", "db1"]),
            (&older, vec!["0123456789ab", "db1"]),
            (&machine, vec!["shop", "db1"]),
            (&lxc, vec!["shop"]),
        ] {
            for name in names {
                assert!(is_in(candidate, name), "{name}: {candidate:?}");
            }
            for other in ["0123", "db", "docker", "sho", "scope", "", "fedcba98"] {
                assert!(!is_in(candidate, other), "{other}: {candidate:?}");
            }
        }
    }

    #[test]
    fn what_is_not_there_is_one_clear_sentence() {
        let error = server_in("no-such-container").unwrap_err().to_string();
        assert!(error.starts_with("there is no server in a container 'no-such-container'"), "{error}");
    }
}

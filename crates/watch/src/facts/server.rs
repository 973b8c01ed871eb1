//! The server under test.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use mysql_async::Conn;
use tokio::time::timeout;
use whyso_connect::caught;
use whyso_model::ServerFacts;

use crate::Error;
use crate::own_statements::ControlConnection;
use crate::samplers::variables::read_variables;
use crate::text::cpu_list;

/// Longest wait for an answer to one of the questions here.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Every global variable, names in lower case, values of credentials masked (see
/// [`mask_variable`](crate::mask_variable)).
///
/// # Errors
/// The server refuses, or does not answer within ten seconds.
pub async fn global_variables(conn: &mut Conn) -> Result<BTreeMap<String, String>, Error> {
    answer(read_variables(&mut ControlConnection::uncounted(conn))).await
}

/// The server's facts, by its own answers. `endpoint` is how it was reached, without the password. Where
/// `pid` is not known and the server runs on this machine, it is found by the server's pid file.
/// `variables_changed` is left empty.
///
/// # Errors
/// As [`global_variables`].
pub async fn server_facts(
    conn: &mut Conn,
    endpoint: &str,
    throw_away: bool,
    pid: Option<u32>,
) -> Result<ServerFacts, Error> {
    let variables = global_variables(conn).await?;
    let variable = |name: &str| variables.get(name).cloned().unwrap_or_default();
    let version = variable("version");
    let version_comment = variable("version_comment");
    let flavor = flavor(&version, &version_comment);
    let pid = pid.or_else(|| find_local_pid(&variables));
    Ok(ServerFacts {
        version,
        version_comment,
        flavor: flavor.to_string(),
        endpoint: endpoint.to_string(),
        throw_away,
        pid,
        cpus: pid.map(allowed_cpus).unwrap_or_default(),
        variables,
        variables_changed: BTreeMap::new(),
    })
}

/// An answer within the bound, or one clear sentence.
pub(crate) async fn answer<T>(
    question: impl Future<Output = Result<T, mysql_async::Error>>,
) -> Result<T, Error> {
    match timeout(ANSWER_TIME_MAX, caught(question)).await {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(error))) => Err(Error::Server(error.to_string())),
        Ok(Err(panic)) => Err(Error::Server(panic.to_string())),
        Err(_) => Err(Error::NoAnswer(ANSWER_TIME_MAX.as_secs())),
    }
}

fn flavor(version: &str, comment: &str) -> &'static str {
    let says_mariadb = |text: &str| text.to_ascii_lowercase().contains("mariadb");
    match says_mariadb(version) || says_mariadb(comment) {
        true => "MariaDB",
        false => "MySQL",
    }
}

/// The pid file is believed only where the server has our host name and the process is a server. Through
/// a tunnel or a container's port, the same path may mean another machine's.
fn find_local_pid(variables: &BTreeMap<String, String>) -> Option<u32> {
    let our_name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    if variables.get("hostname")? != our_name.trim() {
        return None;
    }
    pid_in_file(variables).or_else(|| pid_among(&servers_here(), variables))
}

fn pid_in_file(variables: &BTreeMap<String, String>) -> Option<u32> {
    let data = Path::new(variables.get("datadir")?);
    let pid: u32 =
        std::fs::read_to_string(data.join(variables.get("pid_file")?)).ok()?.trim().parse().ok()?;
    (is_server(&name_of(pid)?, &arguments_of(pid)) && may_work_in(pid, data)).then_some(pid)
}

/// Whether a process may be the server of a data directory, in which servers work. In another PID namespace the number may be that of
/// another server. Where it may not be read, nothing contradicts.
fn may_work_in(pid: u32, data: &Path) -> bool {
    let folder = |path: &Path| std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    let works_in = folder(Path::new(&format!("/proc/{pid}/cwd")));
    works_in.is_none() || folder(data).is_none() || works_in == folder(data)
}

/// Servers that run on this machine, with their arguments.
fn servers_here() -> Vec<(u32, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let with_arguments = |pid: u32| (pid, arguments_of(pid));
    let servers = pids
        .map(with_arguments)
        .filter(|(pid, arguments)| name_of(*pid).is_some_and(|name| is_server(&name, arguments)));
    servers.collect()
}

/// Finds a server without its pid file, which mostly lies in a data directory that this user may not read. It is the server whose
/// arguments name its port, its socket or its data directory, or the only server of the machine. `None` where several could be meant.
fn pid_among(servers: &[(u32, Vec<u8>)], variables: &BTreeMap<String, String>) -> Option<u32> {
    const NAMING: [&str; 3] = ["port", "socket", "datadir"];
    let argument_of = |arguments: &[u8], name: &str| {
        let text = String::from_utf8_lossy(arguments).into_owned();
        let value = text
            .split('\0')
            .find_map(|argument| argument.strip_prefix(&format!("--{name}=")).map(str::to_string));
        value.map(|value| value.trim_end_matches('/').to_string())
    };
    let is_other = |arguments: &[u8]| {
        NAMING.iter().any(|name| {
            let ours = variables.get(*name).map(|value| value.trim_end_matches('/'));
            argument_of(arguments, name).is_some_and(|theirs| ours.is_some_and(|ours| ours != theirs))
        })
    };
    let fitting: Vec<u32> =
        servers.iter().filter(|(_, arguments)| !is_other(arguments)).map(|(pid, _)| *pid).collect();
    match fitting[..] {
        [only] => Some(only),
        _ => None,
    }
}

fn name_of(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_string())
}

fn arguments_of(pid: u32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// Whether a process is a server, by the kernel's name of it. A server that was run by a loader of its own is recognised by the
/// loader's arguments.
fn is_server(name: &str, arguments: &[u8]) -> bool {
    const NAMES: [&str; 2] = ["mysqld", "mariadbd"];
    let is_program = |argument: &[u8]| {
        let path = String::from_utf8_lossy(argument).into_owned();
        Path::new(&path).file_name().is_some_and(|last| NAMES.iter().any(|name| last == *name))
    };
    let by_loader = name.starts_with("ld-") || name.starts_with("ld.so");
    NAMES.contains(&name) || (by_loader && arguments.split(|byte| *byte == 0).any(is_program))
}

fn allowed_cpus(pid: u32) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    for line in status.lines() {
        if let Some(list) = line.strip_prefix("Cpus_allowed_list:") {
            return cpu_list(list);
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flavor_is_read_from_version_or_comment() {
        assert_eq!(flavor("10.11.14-MariaDB-0+deb12u2", "Debian 12"), "MariaDB");
        assert_eq!(flavor("10.0.1", "mariadb.org binary"), "MariaDB");
        assert_eq!(flavor("9.7.4", "(Debian)"), "MySQL");
    }

    #[test]
    fn without_a_pid_file_a_server_is_found_by_its_arguments_or_as_the_only_one() {
        let variables = [("port", "3307"), ("socket", "/tmp/b"), ("datadir", "/var/b/")];
        let variables: BTreeMap<String, String> =
            variables.map(|(name, value)| (name.to_string(), value.to_string())).into();
        let server = |pid: u32, arguments: &str| (pid, arguments.replace(' ', "\0").into_bytes());
        let first = server(1, "mysqld --port=3306 --socket=/tmp/a");
        let second = server(2, "mysqld --port=3307 --socket=/tmp/b --datadir=/var/b");
        let bare = server(3, "/usr/sbin/mariadbd");
        assert_eq!(pid_among(&[first.clone(), second.clone()], &variables), Some(2));
        assert_eq!(pid_among(std::slice::from_ref(&bare), &variables), Some(3));
        assert_eq!(pid_among(&[first.clone(), bare.clone()], &variables), Some(3));
        assert_eq!(pid_among(&[second, bare], &variables), None, "either may be meant");
        assert_eq!(pid_among(&[first], &variables), None);
    }

    #[test]
    fn a_server_is_recognised_by_its_name_or_by_its_loaders_arguments() {
        assert!(is_server("mysqld", b"") && is_server("mariadbd", b""));
        let by_loader = b"/r/ld-linux-x86-64.so.2\0--library-path\0/r/lib\0/r/usr/sbin/mysqld\0--port=1\0";
        assert!(is_server("ld-linux-x86-64", by_loader));
        assert!(!is_server("ld-linux-x86-64", b"/lib/ld-linux-x86-64.so.2\0/bin/cat\0/etc/mysqld.cnf\0"));
        assert!(!is_server("vim", b"vim\0/usr/sbin/mysqld\0"));
    }

    #[test]
    fn a_process_that_works_in_another_folder_is_another_server() {
        let own = std::env::current_dir().unwrap();
        assert!(may_work_in(std::process::id(), &own));
        assert!(!may_work_in(std::process::id(), own.parent().unwrap()));
        assert!(may_work_in(u32::MAX, &own), "nothing contradicts");
    }

    #[test]
    fn our_own_process_may_run_somewhere() {
        assert!(!allowed_cpus(std::process::id()).is_empty());
        assert!(allowed_cpus(u32::MAX).is_empty());
    }
}

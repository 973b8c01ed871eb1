//! Nodes that all take changes, and certify each transaction together.
//!
//! A node that joins gets its data by a script of whyso's own: all nodes are on one machine, so files are copied. What a node has missed for a
//! short time comes from the cache of another one, without the files.

use std::path::{Path, PathBuf};

use super::kind::Role;
use super::ports;
use super::steps::NodePlan;
use crate::error::{Error, Result};
use crate::find::{Binary, Flavor};
use crate::throwaway::NodeSpec;

/// Where Debian, RPMs and tarballs have it.
const PROVIDERS: [&str; 5] = [
    "/usr/lib/galera/libgalera_smm.so",
    "/usr/lib/libgalera_smm.so",
    "/usr/lib64/galera-4/libgalera_smm.so",
    "/usr/lib64/galera/libgalera_smm.so",
    "/usr/local/lib/galera/libgalera_smm.so",
];
/// The same, below a server's own folder.
const PROVIDERS_OF_TREE: [&str; 3] =
    ["lib/galera/libgalera_smm.so", "lib/libgalera_smm.so", "lib64/galera-4/libgalera_smm.so"];
/// A node's own port, that of the group, and one for what it has missed.
const PORTS: usize = 3;
/// A method of that name runs `wsrep_sst_whyso`.
const METHOD: &str = "whyso";
const SCRIPT: &str = include_str!("sst.sh");

/// The first node begins the cluster, and the others join it.
pub(super) fn plan(binary: &Binary, name: &str, nodes: usize) -> Result<Vec<NodePlan>> {
    if binary.flavor != Flavor::MariaDB || binary.version_numbers() < (10, 4, 0) {
        return Err(Error::Binary(format!(
            "{} {} has no Galera 4: choose a MariaDB of 10.4 or later with --server",
            binary.flavor, binary.version
        )));
    }
    let provider = provider(binary)?;
    let ports = ports::free(nodes * PORTS)?;
    let members: Vec<&[u16]> = ports.chunks(PORTS).collect();
    let group: Vec<String> = members.iter().map(|ports| format!("127.0.0.1:{}", ports[1])).collect();
    let plan = |(at, ports): (usize, &&[u16])| {
        let [port, group_port, missed_port] = [ports[0], ports[1], ports[2]];
        let options = vec![
            "--wsrep-on=1".to_string(),
            format!("--wsrep-provider={}", provider.display()),
            format!("--wsrep-cluster-name={name}"),
            format!("--wsrep-cluster-address=gcomm://{}", group.join(",")),
            format!("--wsrep-node-name={name}-{}", at + 1),
            "--wsrep-node-address=127.0.0.1".to_string(),
            format!("--wsrep-sst-method={METHOD}"),
            format!(
                "--wsrep-provider-options=base_host=127.0.0.1;base_port={group_port};gmcast.listen_addr=tcp://127.0.0.1:{group_port};\
                 ist.recv_addr=127.0.0.1:{missed_port}"
            ),
            "--binlog-format=ROW".to_string(),
            "--innodb-autoinc-lock-mode=2".to_string(),
        ];
        let first_options = if at == 0 { vec!["--wsrep-new-cluster".to_string()] } else { Vec::new() };
        let scripts = vec![(format!("wsrep_sst_{METHOD}"), SCRIPT.to_string())];
        NodePlan {
            role: Role::Member,
            node: NodeSpec { port, options, first_options, scripts, joins: at > 0 },
        }
    };
    Ok(members.iter().enumerate().map(plan).collect())
}

fn provider(binary: &Binary) -> Result<PathBuf> {
    let of_tree = PROVIDERS_OF_TREE.iter().map(|path| binary.basedir.join(path));
    let all = of_tree.chain(PROVIDERS.iter().map(|path| Path::new(path).to_path_buf()));
    all.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::Binary(
            "there is no libgalera_smm.so on this machine: install it (Debian: apt-get install galera-4)"
                .to_string(),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    const POSITION: &str = "a395e9be-ea49-11f1-9658-133138a21f06:3";

    /// The donor's part, for a node that has all files but misses what the cache has.
    fn give(folder: &Path, address: &str) -> Output {
        let donor = folder.join("donor");
        std::fs::create_dir_all(&donor).unwrap();
        std::fs::write(donor.join("ibdata1"), "new").unwrap();
        std::fs::write(donor.join("tables_flushed"), POSITION).unwrap();
        let mut script = Command::new("sh");
        script.args(["-c", SCRIPT, "sst", "--role", "donor", "--address", address, "--gtid", POSITION]);
        script.arg("--bypass").arg("--datadir").arg(donor).stdin(Stdio::null()).output().unwrap()
    }

    #[test]
    fn a_folder_whose_node_did_not_ask_is_not_touched() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let victim = folder.path().join("victim");
        std::fs::create_dir(&victim).unwrap();
        std::fs::write(victim.join("ibdata1"), "old").unwrap();
        for word in ["", "guessed"] {
            let given = give(folder.path(), &format!("127.0.0.1:1{}/{word}", victim.display()));
            assert!(!given.status.success(), "{given:?}");
        }
        std::fs::write(victim.join("sst-word"), "another\n").unwrap();
        assert!(!give(folder.path(), &format!("127.0.0.1:1{}/guessed", victim.display())).status.success());
        assert_eq!(std::fs::read(victim.join("ibdata1")).unwrap(), b"old");
        assert!(!victim.join("sst-position").exists());
    }

    #[test]
    fn a_node_that_joins_gets_what_it_asked_for() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let joiner = folder.path().join("joiner");
        std::fs::create_dir(&joiner).unwrap();
        let mut script = Command::new("sh");
        script.args(["-c", SCRIPT, "sst", "--role", "joiner", "--parent", &std::process::id().to_string()]);
        let child =
            script.arg("--datadir").arg(&joiner).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let begin = Instant::now();
        let word = loop {
            match std::fs::read_to_string(joiner.join("sst-word")) {
                Ok(word) if word.ends_with('\n') => break word.trim().to_string(),
                _ => assert!(begin.elapsed() < Duration::from_secs(20), "the joiner asks"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let address = format!("127.0.0.1:1{}/{word}", joiner.display());
        let given = give(folder.path(), &address);
        assert!(given.status.success(), "{given:?}");
        let taken = child.wait_with_output().unwrap();
        let printed = String::from_utf8(taken.stdout).unwrap();
        assert_eq!(printed.lines().next(), Some(format!("ready {address}").as_str()));
        assert!(printed.lines().nth(1).unwrap().starts_with(POSITION), "{printed}");
        assert!(!joiner.join("sst-word").exists(), "a word is for one time");
    }
}

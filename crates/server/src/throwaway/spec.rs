//! What a throw-away server is started with.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::node::NodeSpec;
use crate::cpus::CpuSet;
use crate::error::{Error, Result};
use crate::find::{Binary, Flavor};

/// How to start a throw-away server.
#[derive(Clone, Debug)]
pub struct StartSpec {
    pub binary: Binary,
    /// Where its folder is created; `None` for [`default_parent_dir`](super::default_parent_dir).
    pub parent_dir: Option<PathBuf>,
    /// Whether the folder may lie on a file system that keeps its files in memory.
    pub allow_in_memory: bool,
    /// A user's own option file. Its paths are brought into the server's own folder.
    pub defaults_file: Option<PathBuf>,
    /// Knobs and values of `--set`; of equal names the last counts.
    pub set: Vec<(String, String)>,
    /// Options, (name, value), for what whyso is to see of the server; those in `set` count before them.
    pub to_be_watched: Vec<(String, String)>,
    pub cpus: Option<CpuSet>,
    /// Bound on the server's memory, the page cache of its files included.
    pub memory_bytes: Option<u64>,
    /// No quota of CPU time bounds it, although one bounds this process.
    pub is_without_quota: bool,
    /// A library that the server is to load before its own, such as another allocator.
    pub preload: Option<PathBuf>,
    /// It can be made slower ([`Slower`](super::Slower)).
    pub can_be_slowed: bool,
    /// It is a node of a cluster.
    pub node: Option<NodeSpec>,
    /// It begins with an empty buffer pool.
    pub cold: bool,
    /// The most connections that the load will have at one time.
    pub connections: u32,
    /// Size of the data that will be loaded, for the buffer pool; 0 where it is not known.
    pub data_bytes: u64,
    /// Bounds on preparing the data folder and on starting, each.
    pub start_timeout: Duration,
    /// How long a clean shutdown may take before the server is killed.
    pub stop_timeout: Duration,
}

impl StartSpec {
    pub fn new(binary: Binary) -> StartSpec {
        StartSpec {
            binary,
            parent_dir: None,
            allow_in_memory: false,
            defaults_file: None,
            set: Vec::new(),
            to_be_watched: Vec::new(),
            cpus: None,
            memory_bytes: None,
            is_without_quota: false,
            preload: None,
            can_be_slowed: false,
            node: None,
            cold: false,
            connections: 128,
            data_bytes: 0,
            start_timeout: Duration::from_secs(120),
            stop_timeout: Duration::from_secs(60),
        }
    }
}

/// Who chose a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// whyso, as the server's own default does not suit a benchmark.
    Whyso,
    /// The user, with `--set`.
    Asked,
}

/// One setting that a throw-away server was started with, to be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// With underscores.
    pub name: String,
    pub value: String,
    pub origin: Origin,
    /// Why whyso chose it; empty where the user did.
    pub why: String,
}

impl Setting {
    /// As the server reads it. Our own are "loose": a version that lacks the knob starts all the same.
    pub(super) fn option(&self) -> String {
        match self.origin {
            Origin::Whyso => format!("--loose-{}={}", self.name, self.value),
            Origin::Asked => format!("--{}={}", self.name, self.value),
        }
    }
}

/// Knobs that a throw-away server's place depends on.
const OURS: [&str; 15] = [
    "basedir",
    "datadir",
    "socket",
    "pid_file",
    "log_error",
    "tmpdir",
    "user",
    "skip_networking",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "defaults_file",
    "defaults_extra_file",
    "no_defaults",
    "secure_file_priv",
    "bootstrap",
];

const MIB: u64 = 1 << 20;

/// The settings of a throw-away server, ours and the user's, in the order in which the server gets them.
///
/// Everything else stays at the server's default, durability and the Performance Schema among it.
pub(super) fn settings(spec: &StartSpec, memory_bytes: u64) -> Result<Vec<Setting>> {
    let mut settings: Vec<Setting> = Vec::new();
    let mut ours = |name: &str, value: String, why: &str| {
        settings.push(Setting { name: name.to_string(), value, origin: Origin::Whyso, why: why.to_string() });
    };
    ours("skip_name_resolve", "1".into(), "connections come through a socket");
    ours("local_infile", "1".into(), "the data set is loaded from bytes that whyso makes");
    ours("mysqlx", "0".into(), "it would listen outside the server's folder");
    if spec.node.is_none() {
        ours("wsrep_on", "0".into(), "a throw-away server joins no cluster");
    }
    ours(
        "max_connections",
        (spec.connections.clamp(1, 100_000) + 32).max(151).to_string(),
        "the users of the sweep, and those who watch",
    );
    ours("max_prepared_stmt_count", "1048576".into(), "each user prepares its statements");
    for (name, value) in &spec.to_be_watched {
        ours(name, value.clone(), "asked for with --pfs");
    }
    if spec.cold {
        ours("innodb_buffer_pool_load_at_startup", "0".into(), "it is to begin cold");
    }
    let memory_bytes = spec.memory_bytes.map_or(memory_bytes, |bound| bound.min(memory_bytes));
    if spec.defaults_file.is_none() {
        ours(
            "innodb_buffer_pool_size",
            buffer_pool_bytes(spec.data_bytes, memory_bytes).to_string(),
            "holds the data set, up to half the memory",
        );
        let (redo_knob, redo_bytes) = redo_size(&spec.binary);
        ours(redo_knob, redo_bytes.to_string(), "room for the writes of a level without a forced checkpoint");
    }
    for (name, value) in &spec.set {
        let name = normal_name(name)?;
        if OURS.contains(&name.as_str()) {
            let why = "a throw-away server lies in a folder of its own, which whyso chooses".to_string();
            return Err(Error::KnobValue { name, value: value.clone(), why });
        }
        if value.contains(['\n', '\0']) {
            let why = "a value is one line".to_string();
            return Err(Error::KnobValue { name, value: value.clone(), why });
        }
        settings.retain(|setting| setting.name != name);
        settings.push(Setting { name, value: value.clone(), origin: Origin::Asked, why: String::new() });
    }
    Ok(settings)
}

/// A knob's name with underscores and in lower case.
pub(crate) fn normal_name(name: &str) -> Result<String> {
    let normal = name.trim().trim_start_matches("--").replace('-', "_").to_lowercase();
    let well_formed = !normal.is_empty() && normal.len() <= 128;
    if well_formed
        && normal
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '_' || character == '.')
    {
        return Ok(normal);
    }
    Err(Error::KnobValue {
        name: name.to_string(),
        value: String::new(),
        why: "a knob's name has letters, digits and underscores only".to_string(),
    })
}

/// A third more than the data, at least 256 MiB, at most half the memory, in steps of 128 MiB.
fn buffer_pool_bytes(data_bytes: u64, memory_bytes: u64) -> u64 {
    let wanted = (data_bytes / 3 * 4).max(256 * MIB).next_multiple_of(128 * MIB);
    let half = (memory_bytes / 2 / (128 * MIB) * (128 * MIB)).max(128 * MIB);
    wanted.min(half)
}

fn redo_size(binary: &Binary) -> (&'static str, u64) {
    if binary.flavor == Flavor::MySQL && binary.version_numbers() >= (8, 0, 30) {
        return ("innodb_redo_log_capacity", 1024 * MIB);
    }
    // two files, but for MariaDB since 10.5
    ("innodb_log_file_size", 512 * MIB)
}

/// Memory of the machine, in bytes.
pub(super) fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.map_or(1 << 30, |kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(flavor: Flavor, version: &str) -> StartSpec {
        StartSpec::new(Binary {
            path: "/x/bin/mysqld".into(),
            basedir: "/x".into(),
            version: version.to_string(),
            flavor,
            launch: Default::default(),
        })
    }

    fn options(spec: &StartSpec) -> Vec<String> {
        settings(spec, 8 << 30).unwrap().iter().map(Setting::option).collect()
    }

    #[test]
    fn what_the_user_sets_replaces_ours_whatever_way_it_is_written() {
        let mut spec = spec(Flavor::MariaDB, "10.11.5-MariaDB");
        assert!(options(&spec).contains(&"--loose-innodb_buffer_pool_size=268435456".to_string()));
        spec.set = vec![
            ("INNODB-buffer-pool-size".into(), "1G".into()),
            ("sync_binlog".into(), "0".into()),
            ("sync_binlog".into(), "1".into()),
        ];
        let options = options(&spec);
        assert!(options.contains(&"--innodb_buffer_pool_size=1G".to_string()));
        assert_eq!(options.iter().filter(|option| option.contains("innodb_buffer_pool_size")).count(), 1);
        assert_eq!(
            options.iter().filter(|option| option.contains("sync_binlog")).collect::<Vec<_>>(),
            ["--sync_binlog=1"]
        );
    }

    #[test]
    fn the_server_s_place_cannot_be_set_and_names_must_be_names() {
        let mut spec = spec(Flavor::MySQL, "8.4.3");
        for (name, value) in [
            ("datadir", "/var/lib/mysql"),
            ("skip-networking", "0"),
            ("a b", "1"),
            ("", ""),
            ("sql_mode", "a\nb"),
        ] {
            spec.set = vec![(name.into(), value.into())];
            assert!(settings(&spec, 1 << 30).unwrap_err().is_wrong_use(), "{name}");
        }
    }

    #[test]
    fn the_buffer_pool_holds_the_data_but_at_most_half_the_memory() {
        assert_eq!(buffer_pool_bytes(0, 64 << 30), 256 * MIB);
        assert_eq!(buffer_pool_bytes(3 << 30, 64 << 30), 4 << 30);
        assert_eq!(buffer_pool_bytes(30 << 30, 8 << 30), 4 << 30);
        assert_eq!(buffer_pool_bytes(u64::MAX / 8, 0), 128 * MIB);
    }

    #[test]
    fn the_redo_knob_is_the_version_s_own_and_a_user_s_file_keeps_its_tuning() {
        assert!(
            options(&spec(Flavor::MySQL, "8.0.30"))
                .iter()
                .any(|option| option.contains("innodb_redo_log_capacity"))
        );
        assert!(
            options(&spec(Flavor::MySQL, "5.5.9"))
                .iter()
                .any(|option| option.contains("innodb_log_file_size"))
        );
        let mut with_file = spec(Flavor::MariaDB, "11.4.5-MariaDB");
        with_file.defaults_file = Some("/etc/my.cnf".into());
        assert!(!options(&with_file).iter().any(|option| option.contains("innodb_")));
    }
}

//! Facts about the machine and the server of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Facts about the machine that whyso runs on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct HostFacts {
    pub hostname: String,
    pub kernel: String,
    pub os: String,
    pub cpu_model: String,
    pub sockets: u32,
    pub cores: u32,
    pub logical_cpus: u32,
    pub memory_bytes: u64,
    /// `/sys/devices/system/clocksource/…/current_clocksource`.
    pub clocksource: String,
    /// "kvm", "none", …, as far as it can be found out.
    pub virtualization: String,
    /// Its IP addresses that others can reach it at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub addresses: Vec<String>,
    /// File system and device that hold the server's data, where it is local.
    pub data_filesystem: String,
    /// Anything else worth a line, such as the CPU governor or transparent huge pages.
    pub other: BTreeMap<String, String>,
}

/// Facts about the server under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct ServerFacts {
    /// As the server reports it, such as "10.11.14-MariaDB-0+deb12u2".
    pub version: String,
    pub version_comment: String,
    /// "MariaDB" or "MySQL".
    pub flavor: String,
    /// Where it was reached, without the password.
    pub endpoint: String,
    pub throw_away: bool,
    pub pid: Option<u32>,
    /// CPUs that the server may run on, where it is local.
    pub cpus: Vec<u32>,
    /// Every global variable at the start, with the values of credentials masked.
    pub variables: BTreeMap<String, String>,
    /// Variables whose value at the end differs from the start: name → value at the end.
    pub variables_changed: BTreeMap<String, String>,
}

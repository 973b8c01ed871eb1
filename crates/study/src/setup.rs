//! How a server is set up and loaded in one cell.
//!
//! The file's own keys come first. Those of a condition, of a variant, and of the grids replace them, in this order.

use serde::{Deserialize, Serialize};

use crate::cluster::ClusterSetup;
use crate::scalar::Values;

/// A `[[variant]]` or a `[[condition]]`: whatever it says counts in place of what stands before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub name: String,
    /// Knobs, as options of the server.
    #[serde(default)]
    pub set: Values,
    /// Knobs that a server does not know are left out there, and reported.
    #[serde(default)]
    pub where_known: bool,
    /// What the Performance Schema is to count: a preset, as `whyso run --pfs` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pfs: Option<String>,
    /// Whether that is timed, as `--pfs-timing` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pfs_timing: Option<String>,
    /// CPUs of the server, such as "0-3" or "4 cores".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// CPUs of the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpus: Option<String>,
    /// Bound on the server's memory, page cache included, such as "512M".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// A library that is loaded before the server's own, such as another allocator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    #[serde(default)]
    pub options: Values,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Servers that are started, over which the load is spread, each with the data; such cells are not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<u32>,
    /// The cluster that is started in place of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterSetup>,
    /// What is changed during a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<At>,
    /// Of a variant: the server that it is of, in place of all of the study's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Left out, and reported, where its server is not available.
    #[serde(default)]
    pub where_at_hand: bool,
    /// Of a variant: the one that it is compared with, in place of the study's baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
}

/// `SET GLOBAL` of some variables while the load is running, or a restart: of a cluster, its nodes one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// Measurements seconds since the first level's window began.
    pub after: f64,
    #[serde(default)]
    pub set: Values,
    #[serde(default)]
    pub restart: bool,
    /// With a restart of a cluster of NDB: parameters of the data nodes, which count from then on.
    #[serde(default)]
    pub data_set: Values,
}

/// All that one cell runs with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Knobs and values.
    pub set: Vec<(String, String)>,
    /// Those of them that a server need not know.
    #[serde(default)]
    pub where_known: Vec<String>,
    pub pfs: Option<String>,
    pub pfs_timing: Option<String>,
    pub cpus: Option<String>,
    pub client_cpus: Option<String>,
    pub memory: Option<String>,
    pub preload: Option<String>,
    pub workload: String,
    pub options: Vec<(String, String)>,
    pub tables: u32,
    pub rows: u64,
    pub engine: String,
    /// Servers over which the load is spread.
    #[serde(default = "one_endpoint")]
    pub endpoints: u32,
    #[serde(default)]
    pub cluster: Option<ClusterSetup>,
    pub at: Vec<At>,
}

fn one_endpoint() -> u32 {
    1
}

impl Setup {
    /// Applies a condition or a variant. Its values replace those so far.
    pub(crate) fn with(mut self, part: &Part) -> Setup {
        self.set(part.set.iter().map(|(name, value)| (name.as_str(), value.to_string())), part.where_known);
        for (name, value) in &part.options {
            put(&mut self.options, name, value.to_string());
        }
        let or = |new: &Option<String>, old: Option<String>| new.clone().or(old);
        self.pfs = or(&part.pfs, self.pfs);
        self.pfs_timing = or(&part.pfs_timing, self.pfs_timing);
        self.cpus = or(&part.cpus, self.cpus);
        self.client_cpus = or(&part.client_cpus, self.client_cpus);
        self.memory = or(&part.memory, self.memory);
        self.preload = or(&part.preload, self.preload);
        self.workload = part.workload.clone().unwrap_or(self.workload);
        self.engine = part.engine.clone().unwrap_or(self.engine);
        self.tables = part.tables.unwrap_or(self.tables);
        self.rows = part.rows.unwrap_or(self.rows);
        self.endpoints = part.endpoints.unwrap_or(self.endpoints);
        if let Some(cluster) = &part.cluster {
            self.cluster = Some(self.cluster.unwrap_or_default().with(cluster));
        }
        if !part.at.is_empty() {
            self.at.clone_from(&part.at);
        }
        self
    }

    /// Adds knobs, which replace those of the same names.
    pub(crate) fn set<'a>(&mut self, knobs: impl IntoIterator<Item = (&'a str, String)>, where_known: bool) {
        for (name, value) in knobs {
            put(&mut self.set, name, value);
            self.where_known.retain(|other| other != name);
            if where_known {
                self.where_known.push(name.to_string());
            }
        }
    }
}

fn put(values: &mut Vec<(String, String)>, name: &str, value: String) {
    values.retain(|(before, _)| before != name);
    values.push((name.to_string(), value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_later_counts() {
        let part = |text: &str| toml::from_str::<Part>(text).unwrap();
        let condition = part("name = 'c'\nset = { a = 1, b = true }\ntables = 8\noptions = { x = 1 }\n");
        let variant = part("name = 'v'\nset = { a = 2, c = 'z' }\nwhere_known = true\nrows = 5\n");
        let base = Setup { tables: 1, rows: 1, workload: "w".to_string(), ..Setup::default() };
        let setup = base.with(&condition).with(&variant);
        let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        assert_eq!(setup.set, own(&[("b", "ON"), ("a", "2"), ("c", "z")]));
        assert_eq!(setup.where_known, ["a", "c"]);
        assert_eq!((setup.tables, setup.rows, setup.workload.as_str()), (8, 5, "w"));
        assert_eq!(setup.options, own(&[("x", "1")]));
    }
}

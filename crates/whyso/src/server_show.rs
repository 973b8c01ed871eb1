//! `whyso server show`: what a build supports, and which settings it knows.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use whyso_control::Error;
use whyso_server::builds::Symbols;

/// What studies ask for, and the setting that a server has which supports it.
const SUPPORTS: [(&str, &str); 12] = [
    ("the Performance Schema", "performance_schema"),
    ("a limit of InnoDB's threads", "innodb_thread_concurrency"),
    ("a thread pool", "thread_pool_size"),
    ("the delay between spins", "innodb_spin_wait_delay"),
    ("the adaptive hash index", "innodb_adaptive_hash_index"),
    ("its parts", "innodb_adaptive_hash_index_parts"),
    ("instances of the table cache", "table_open_cache_instances"),
    ("instances of the metadata locks' hash", "metadata_locks_hash_instances"),
    ("a choice of page checksums", "innodb_checksum_algorithm"),
    ("the doublewrite buffer", "innodb_doublewrite"),
    ("the query cache", "query_cache_type"),
    ("NDB", "ndb_cluster_connection_pool"),
];

/// `part`: of the names of settings; empty for none of them.
pub(crate) fn show(build: Option<&Path>, part: &str, json: bool) -> Result<ExitCode> {
    let binary = whyso_server::find(build).map_err(Error::Server)?;
    let knobs = binary.known_knobs().map_err(Error::Server)?;
    let symbols = Symbols::of(&binary.path);
    let part = part.to_lowercase().replace('-', "_");
    let named: BTreeMap<&String, &String> =
        knobs.iter().filter(|(name, _)| !part.is_empty() && name.contains(&part)).collect();
    let mut out = crate::out::stdout();
    if json {
        let supports: BTreeMap<&str, bool> =
            SUPPORTS.iter().map(|(_, knob)| (*knob, knobs.contains_key(*knob))).collect();
        let object = serde_json::json!({
            "flavor": binary.flavor, "version": binary.version, "program": binary.path, "symbols": symbols,
            "supports": supports, "knobs": if part.is_empty() { knobs.iter().collect() } else { named },
        });
        crate::json::write(&mut out, "build", object)?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{} {}, {symbols}, {}\n", binary.flavor, binary.version, binary.path.display())?;
    for (what, knob) in SUPPORTS {
        let default = knobs.get(knob).map_or("no".to_string(), |default| format!("{knob} = {default}"));
        writeln!(out, "{what:38} {default}")?;
    }
    if part.is_empty() {
        writeln!(
            out,
            "\n{} settings; `whyso server show BUILD PART` lists those with PART in their names",
            knobs.len()
        )?;
    } else {
        writeln!(out, "\n{} of {} settings have {part:?} in their names:\n", named.len(), knobs.len())?;
        for (name, default) in named {
            writeln!(out, "{name:52} {default}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

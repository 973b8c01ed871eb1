//! Which knobs a server program knows, asked before it is started.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Binary, output_within};
use crate::error::{Error, Result};

/// It reads no data, but tries its plugins.
const HELP_TIMEOUT: Duration = Duration::from_secs(30);

impl Binary {
    /// The options that it takes, with underscores, as it lists them itself, and the value of each where nothing is set.
    ///
    /// # Errors
    ///
    /// [`Error::Binary`] where it lists none.
    pub fn known_knobs(&self) -> Result<BTreeMap<String, String>> {
        let mut command = self.command();
        command.arg("--no-defaults").args(self.launch.options());
        if rustix::process::geteuid().is_root() {
            command.arg("--user=root");
        }
        command.args(["--verbose", "--help"]);
        let listed = output_within(command, HELP_TIMEOUT)
            .map(|output| knobs(&String::from_utf8_lossy(&output.stdout)))
            .unwrap_or_default();
        if listed.is_empty() {
            return Err(Error::Binary(format!(
                "'{}' does not list its options: run it with --verbose --help to see why",
                self.path.display()
            )));
        }
        Ok(listed)
    }
}

/// From the table at the end of its help: a name and a value a line, after a line of dashes.
fn knobs(help: &str) -> BTreeMap<String, String> {
    let mut lines = help.lines().skip_while(|line| !line.starts_with("-----"));
    lines.next();
    let knob = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        (name.replace('-', "_"), value.trim().to_string())
    };
    lines.take_while(|line| !line.trim().is_empty()).map(knob).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_table() {
        let help = "mysqld  Ver 9\nUsage: mysqld [OPTIONS]\n  --abort-slave-event-count=#\n\n\
                    Variables (--variable-name=value)\nand boolean options {FALSE|TRUE}  Value (after reading options)\n\
                    --------------------- -----------------\nabort-slave-event-count  0\ninnodb-adaptive-hash-index  TRUE\n\n\
                    To see what variables a running server is using, type\n";
        let found: Vec<(String, String)> = knobs(help).into_iter().collect();
        let own = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(found, [own("abort_slave_event_count", "0"), own("innodb_adaptive_hash_index", "TRUE")]);
        assert!(knobs("nothing").is_empty());
    }

    #[test]
    fn the_machine_s_own_server_knows_its_knobs() {
        let knobs = super::super::find_in(None).unwrap().known_knobs().unwrap();
        for name in
            ["innodb_flush_log_at_trx_commit", "innodb_adaptive_hash_index", "performance_schema", "log_bin"]
        {
            assert!(knobs.contains_key(name), "{name}");
        }
        assert!(knobs.len() > 300 && !knobs.contains_key("ndb_cluster_connection_pool"), "{}", knobs.len());
    }
}

//! Effective settings in which two servers differ, without what only says where they are.

use std::collections::BTreeMap;

use whyso_remedy::SettingDifference;

/// Variables that say where or who a server is, or what it is doing now.
const PLACES: [&str; 35] = [
    "basedir",
    "build_id",
    "character_sets_dir",
    "datadir",
    "general_log_file",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_slave_pos",
    "hostname",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "init_file",
    "last_insert_id",
    "lc_messages_dir",
    "license",
    "log_error",
    "mysqlx_socket",
    "mysqlx_port",
    "pid_file",
    "plugin_dir",
    "port",
    "report_host",
    "report_port",
    "secure_file_priv",
    "server_id",
    "server_uid",
    "server_uuid",
    "slow_query_log_file",
    "socket",
    "system_time_zone",
    "timestamp",
    "tmpdir",
];
/// Begins of names of the same kind; versions, what a build has, and the sizes that a server computes from other settings.
const PLACE_BEGINS: [&str; 12] = [
    "version",
    "innodb_version",
    "have_",
    "log_bin_",
    "performance_schema_",
    "relay_log",
    "slave_load_",
    "replica_load_",
    "ssl_",
    "tls_",
    "protocol_version",
    "wsrep_",
];

/// Settings that both servers have and that differ, by name. Paths are places, too.
pub(super) fn differences(
    first: &BTreeMap<String, String>,
    second: &BTreeMap<String, String>,
) -> Vec<SettingDifference> {
    let both = first.iter().filter_map(|(name, value)| Some((name, value, second.get(name)?)));
    let is_place = |value: &str| value.starts_with('/');
    let differ = both.filter(|(name, first, second)| {
        first != second && is_setting(name) && !is_place(first) && !is_place(second)
    });
    let difference = |(name, first, second): (&String, &String, &String)| SettingDifference {
        name: name.clone(),
        first: first.clone(),
        second: second.clone(),
    };
    differ.map(difference).collect()
}

fn is_setting(name: &str) -> bool {
    !PLACES.contains(&name) && !PLACE_BEGINS.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_both_have_count() {
        let of = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect::<BTreeMap<_, _>>()
        };
        let first = of(&[
            ("sync_binlog", "0"),
            ("datadir", "/a"),
            ("aria_log_dir_path", "/a"),
            ("version_comment", "x"),
            ("old", "1"),
            ("same", "1"),
        ]);
        let second = of(&[
            ("sync_binlog", "1"),
            ("datadir", "/b"),
            ("aria_log_dir_path", "/b"),
            ("version_comment", "y"),
            ("new", "1"),
            ("same", "1"),
        ]);
        let found = differences(&first, &second);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].first.as_str(), found[0].second.as_str()),
            ("sync_binlog", "0", "1")
        );
    }
}

//! In what two runs differ: effective settings without what only says where a server is, data, options of the load, and users.

use std::collections::BTreeMap;

use whyso_model::RunSpec;
use whyso_remedy::{Difference, DifferenceKind};

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
pub(super) fn setting_differences(
    first: &BTreeMap<String, String>,
    second: &BTreeMap<String, String>,
) -> Vec<Difference> {
    let both = first.iter().filter_map(|(name, value)| Some((name, value, second.get(name)?)));
    let is_place = |value: &str| value.starts_with('/');
    let differ = both.filter(|(name, first, second)| {
        !is_same_value(first, second) && is_setting(name) && !is_place(first) && !is_place(second)
    });
    let difference = |(name, first, second): (&String, &String, &String)| {
        let (first, second) = match name.as_str() {
            SWITCHES => common_switches(first, second)?,
            _ => (first.clone(), as_the_first_writes(first, second)),
        };
        Some(Difference { kind: DifferenceKind::Setting, name: name.clone(), first, second })
    };
    differ.filter_map(difference).collect()
}

/// A setting that is many: "index_merge=on,mrr=off".
const SWITCHES: &str = "optimizer_switch";

/// Of the switches that both have, those that differ; `None` where none does. A server keeps the switches that a value does not name, and refuses
/// those that it does not have.
fn common_switches(first: &str, second: &str) -> Option<(String, String)> {
    let switches = |value: &str| -> BTreeMap<String, String> {
        let pairs = value.split(',').filter_map(|switch| switch.split_once('='));
        pairs.map(|(name, state)| (name.to_string(), state.to_string())).collect()
    };
    let (first, second) = (switches(first), switches(second));
    let differ = first.iter().filter(|(name, state)| second.get(*name).is_some_and(|other| other != *state));
    let names: Vec<&String> = differ.map(|(name, _)| name).collect();
    let joined = |of: &BTreeMap<String, String>| {
        let named: Vec<String> = names.iter().map(|name| format!("{name}={}", of[*name])).collect();
        named.join(",")
    };
    (!names.is_empty()).then(|| (joined(&first), joined(&second)))
}

/// A server may show a number with decimals that another one shows without.
fn is_same_value(first: &str, second: &str) -> bool {
    let number = |value: &str| value.parse::<f64>().ok().filter(|number| number.is_finite());
    // Large whole numbers differ by more digits than a float has.
    let has_decimals = |value: &str| value.contains('.');
    match (number(first), number(second)) {
        (Some(one), Some(other)) if has_decimals(first) || has_decimals(second) => one == other,
        _ => first == second,
    }
}

/// The second value without decimals that say nothing, where the first one's server takes whole numbers.
fn as_the_first_writes(first: &str, second: &str) -> String {
    let is_whole = |value: &str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    match second.split_once('.') {
        Some((whole, decimals))
            if is_whole(first) && is_whole(whole) && decimals.bytes().all(|byte| byte == b'0') =>
        {
            whole.to_string()
        }
        _ => second.to_string(),
    }
}

/// Names of differences of data.
pub(super) const TABLES: &str = "tables";
pub(super) const ROWS: &str = "rows";
const ENGINE: &str = "table-engine";

/// Numbers of tables and rows, and the storage engine.
pub(super) fn data_differences(first: &RunSpec, second: &RunSpec) -> Vec<Difference> {
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let all = [
        (TABLES, number(first.tables.map(u64::from)), number(second.tables.map(u64::from))),
        (ROWS, number(first.rows), number(second.rows)),
        (ENGINE, first.table_engine.clone(), second.table_engine.clone()),
    ];
    let both = all.into_iter().filter_map(|(name, first, second)| Some((name, first?, second?)));
    let difference = |(name, first, second): (&str, String, String)| Difference {
        kind: DifferenceKind::Data,
        name: name.to_string(),
        first,
        second,
    };
    both.filter(|(_, first, second)| first != second).map(difference).collect()
}

/// Options of the load that differ, by name; one that a run did not name is empty there. And the users of the compared levels.
pub(super) fn load_differences(first: (&RunSpec, u32), second: (&RunSpec, u32)) -> Vec<Difference> {
    let options = |spec: &RunSpec| -> BTreeMap<String, String> {
        let pairs = spec.options.iter().filter_map(|option| option.split_once('='));
        pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect()
    };
    let (of_first, of_second) = (options(first.0), options(second.0));
    let names: std::collections::BTreeSet<&String> = of_first.keys().chain(of_second.keys()).collect();
    let value = |of: &BTreeMap<String, String>, name: &String| of.get(name).cloned().unwrap_or_default();
    let option = |name: &String| Difference {
        kind: DifferenceKind::Option,
        name: name.clone(),
        first: value(&of_first, name),
        second: value(&of_second, name),
    };
    let mut found: Vec<Difference> = names.into_iter().map(option).collect();
    found.push(Difference {
        kind: DifferenceKind::Users,
        name: "users".to_string(),
        first: first.1.to_string(),
        second: second.1.to_string(),
    });
    found.retain(|difference| difference.first != difference.second);
    found
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
        let found = setting_differences(&first, &second);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].first.as_str(), found[0].second.as_str()),
            ("sync_binlog", "0", "1")
        );
    }

    #[test]
    fn decimals_that_say_nothing_make_no_difference_and_are_not_passed_on() {
        let of = |value: &str| BTreeMap::from([("expire_logs_days".to_string(), value.to_string())]);
        assert_eq!(setting_differences(&of("0"), &of("0.000000")), []);
        assert_eq!(setting_differences(&of("0"), &of("2.000000"))[0].second, "2");
        assert_eq!(setting_differences(&of("0"), &of("2.500000"))[0].second, "2.500000");
        assert_eq!(setting_differences(&of("0.000000"), &of("2.000000"))[0].second, "2.000000");
        let (one, other) = ("18446744073709551615", "18446744073709551614");
        assert_eq!(setting_differences(&of(one), &of(other)).len(), 1);
    }

    #[test]
    fn of_switches_those_that_both_have_and_that_differ_count() {
        let of = |value: &str| BTreeMap::from([(SWITCHES.to_string(), value.to_string())]);
        let found = setting_differences(&of("mrr=off,old=on,icp=on"), &of("icp=on,mrr=on,new=off"));
        let found: Vec<(&str, &str)> =
            found.iter().map(|difference| (difference.first.as_str(), difference.second.as_str())).collect();
        assert_eq!(found, [("mrr=off", "mrr=on")]);
        assert_eq!(setting_differences(&of("mrr=off,old=on"), &of("mrr=off,new=on")), []);
    }

    #[test]
    fn of_the_data_what_both_know_counts() {
        let spec = |rows: u64, engine: Option<&str>| RunSpec {
            tables: Some(4),
            rows: Some(rows),
            table_engine: engine.map(str::to_string),
            ..RunSpec::default()
        };
        let found = data_differences(&spec(1_000, Some("InnoDB")), &spec(5_000, Some("MyISAM")));
        let names: Vec<&str> = found.iter().map(|difference| difference.name.as_str()).collect();
        assert_eq!(names, ["rows", "table-engine"]);
        assert_eq!((found[0].kind, found[0].second.as_str()), (DifferenceKind::Data, "5000"));
        assert!(data_differences(&spec(1_000, Some("InnoDB")), &spec(1_000, None)).is_empty());
    }

    #[test]
    fn options_and_users_of_the_load_count_too() {
        let spec = |options: &[&str]| RunSpec {
            options: options.iter().map(ToString::to_string).collect(),
            ..RunSpec::default()
        };
        let (first, second) =
            (spec(&["rand-type=uniform", "skip-trx=on"]), spec(&["rand-type=zipfian", "skip-trx=on"]));
        let found = load_differences((&first, 8), (&second, 16));
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].kind, found[0].second.as_str()), (DifferenceKind::Option, "zipfian"));
        assert_eq!((found[1].kind, found[1].second.as_str()), (DifferenceKind::Users, "16"));
        assert_eq!(
            load_differences((&first, 8), (&spec(&["skip-trx=on"]), 8))[0].second,
            "",
            "it is the default there"
        );
    }
}

//! Every server build at hand, from end to end: start, run, load, sysbench, watch.
//!
//! Builds that are not here are printed as not tested; `make matrix` fetches them first.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{Place, finish, for_each_build, json_of, output, spawn, text};
use serde_json::Value;

/// Bound on any one command.
const BOUND: Duration = Duration::from_secs(60);
/// Bound on all builds together: past it, the rest is not tested.
const ALL: Duration = Duration::from_secs(420);

/// What a server has and lacks, which was found out by trying.
struct Facts {
    /// `information_schema.INNODB_METRICS`.
    innodb_metrics: bool,
    /// What it says of waits by instrument, in its default settings: a part of the sentence, or none where instruments are on.
    without_instruments: &'static str,
    /// `SET SESSION TRANSACTION READ ONLY`.
    read_only_sessions: bool,
    /// Views of its Performance Schema, once that is on and all else as it is by default, in addition to [`VIEWS`].
    more_views: &'static [&'static [&'static str]],
    /// What is then reported as not measured: a part of a sentence each.
    without: &'static [&'static str],
}

/// Of every server since 5.5.
const VIEWS: [&str; 4] = ["pfs_waits", "pfs_file_types", "pfs_files", "pfs_threads"];
/// Since 5.6.
const OF_STATEMENTS: [&str; 8] = [
    "pfs_digests",
    "pfs_hosts",
    "pfs_indexes",
    "pfs_statements",
    "pfs_table_locks",
    "pfs_tables",
    "pfs_user_statements",
    "pfs_users",
];
/// Since 5.7, and MariaDB 10.5.
const OF_MEMORY: [&str; 2] = ["pfs_memory", "pfs_stages"];
const CURRENT_EVENTS_OFF: &str = "the stage and the wait of each session";

const PERFORMANCE_SCHEMA_OFF: &str = "performance_schema=ON";
const MYSQL_5_5: Facts = Facts {
    innodb_metrics: false,
    without_instruments: PERFORMANCE_SCHEMA_OFF,
    read_only_sessions: false,
    // Its instruments are on once it is.
    more_views: &[&["pfs_lock_instances"]],
    without: &["this server has no INNODB_METRICS", "which thread works for which connection"],
};
const MYSQL_SID: Facts = Facts {
    innodb_metrics: true,
    without_instruments: "setup_instruments SET ENABLED",
    read_only_sessions: true,
    more_views: &[&OF_STATEMENTS, &OF_MEMORY, &["pfs_metadata_locks", "pfs_transactions"]],
    without: &["setup_instruments SET ENABLED", CURRENT_EVENTS_OFF],
};
const MARIADB: Facts = Facts {
    innodb_metrics: true,
    without_instruments: PERFORMANCE_SCHEMA_OFF,
    read_only_sessions: true,
    more_views: &[&OF_STATEMENTS, &OF_MEMORY],
    without: &["setup_instruments SET ENABLED", CURRENT_EVENTS_OFF],
};
const MARIADB_10_2: Facts = Facts { more_views: &[&OF_STATEMENTS], ..MARIADB };

#[test]
#[ignore = "long: make test-hard"]
fn every_server_at_hand_is_started_loaded_watched_and_stopped() {
    let begin = Instant::now();
    let mut tested = 0;
    for_each_build(ALL, |name, build| {
        let begin = Instant::now();
        let facts = match name {
            "mysql-5.5" => &MYSQL_5_5,
            "mysql-sid" => &MYSQL_SID,
            "mariadb-10.2" => &MARIADB_10_2,
            _ => &MARIADB,
        };
        let tree = build["tree"].as_str().unwrap();
        LoadedServer::start(name, tree, &[]).everything(facts);
        LoadedServer::start(name, tree, &["--set", "performance_schema=ON"]).views(facts);
        tested += 1;
        println!(
            "tested: {name} ({}), in {:.0} s",
            build["version"].as_str().unwrap(),
            begin.elapsed().as_secs_f64()
        );
    });
    println!("{tested} server builds tested in {:.0} s", begin.elapsed().as_secs_f64());
}

/// A server that was started to stay; it is stopped when this is dropped.
struct LoadedServer {
    name: String,
    place: Place,
    dsn: String,
    socket: PathBuf,
}

impl Drop for LoadedServer {
    fn drop(&mut self) {
        let _ = self.place.whyso(&["server", "stop", "tested"]).output();
    }
}

impl LoadedServer {
    fn start(name: &str, tree: &str, options: &[&str]) -> LoadedServer {
        let place = Place::new();
        let all = [&["server", "start", tree, "--as", "tested"], options].concat();
        let started = output(&mut place.whyso(&all));
        assert!(started.status.success(), "{name}: {}", text(&started.stderr));
        let listed = json_of(&output(&mut place.whyso(&["server", "list", "--json"])));
        let dsn = listed["started"][0]["dsn"].as_str().unwrap().to_string();
        let socket = PathBuf::from(dsn.split("socket=").nth(1).unwrap());
        LoadedServer { name: name.to_string(), place, dsn, socket }
    }

    fn everything(&self, facts: &Facts) {
        self.run(facts);
        self.locks(facts);
        self.load(facts);
        self.sysbench();
        let stopped = output(&mut self.place.whyso(&["server", "stop", "tested"]));
        assert_eq!(text(&stopped.stdout), "stopped tested\n", "{}", self.name);
        assert!(!self.socket.exists(), "{}: its folder is gone", self.name);
    }

    /// A whole run on a throw-away server: its levels, and what was recorded meanwhile.
    fn run(&self, facts: &Facts) {
        let arguments = ["--users", "1,4", "--seconds", "2", "--warmup", "1", "--no-repeat", "--json"];
        let mut all = vec!["run", "oltp-read-only", "--tables", "2", "--rows", "2000", "--dsn", &self.dsn];
        all.extend(arguments);
        let object = json_of(&finish(spawn(&mut self.place.whyso(&all)), BOUND));
        self.check_levels("whyso run", &object, 2);
        let recording = self.place.only_run();
        let has = |filter: [&str; 2]| {
            let mut export = self.place.whyso(&["export", recording.to_str().unwrap(), filter[0], filter[1]]);
            text(&output(&mut export).stdout).lines().count() > 2
        };
        for metric in ["Questions", "Innodb_data_read", "Threads_running"] {
            assert!(has(["--metric", metric]), "{}: no {metric}", self.name);
        }
        assert!(has(["--source", "server_process"]), "{}: the server's process was not seen", self.name);
        assert_eq!(has(["--source", "innodb_metrics"]), facts.innodb_metrics, "{}", self.name);
        let run_json = fs::read_to_string(recording.join("run.json")).unwrap();
        assert_eq!(
            run_json.contains("this server has no INNODB_METRICS"),
            !facts.innodb_metrics,
            "{}",
            self.name
        );
    }

    /// Which views its Performance Schema has, and what is reported of those that it lacks.
    fn views(&self, facts: &Facts) {
        let mut all = vec!["run", "oltp-read-only", "--tables", "2", "--rows", "2000", "--dsn", &self.dsn];
        all.extend([
            "--users",
            "2",
            "--seconds",
            "6",
            "--warmup",
            "0",
            "--no-repeat",
            "--no-trace",
            "--json",
        ]);
        let object = json_of(&finish(spawn(&mut self.place.whyso(&all)), BOUND));
        self.check_levels("whyso run", &object, 1);
        let recording = self.place.only_run();
        let export = output(&mut self.place.whyso(&["export", recording.to_str().unwrap()]));
        let exported = text(&export.stdout);
        let sources = exported.lines().filter_map(|line| line.split(',').nth(2));
        let found: BTreeSet<&str> = sources.filter(|source| source.starts_with("pfs_")).collect();
        let found_words: Vec<&str> = found.iter().map(|view| view.trim_start_matches("pfs_")).collect();
        println!("views of {}: {}", self.name, found_words.join(", "));
        let expected: Vec<&str> =
            [&VIEWS[..]].iter().chain(facts.more_views).copied().flatten().copied().collect();
        let lacking: Vec<&&str> = expected.iter().filter(|view| !found.contains(**view)).collect();
        assert!(lacking.is_empty(), "{}: no {lacking:?} in {found:?}", self.name);
        let run_json = fs::read_to_string(recording.join("run.json")).unwrap();
        let run_json: Value = serde_json::from_str(&run_json).unwrap();
        let words = |entry: &Value| format!("{}: {}", entry["what"], entry["reason"]);
        let missing: Vec<String> = run_json["not_measured"].as_array().unwrap().iter().map(words).collect();
        for line in facts.without {
            assert!(missing.iter().any(|reason| reason.contains(line)), "{}: {missing:#?}", self.name);
        }
        for line in missing.iter().filter(|line| !line.contains("--no-trace") && !line.contains("no stacks"))
        {
            println!("not measured of {}: {line}", self.name);
        }
    }

    /// A planted hot row: every server shows its table, its index and who holds it, from whichever tables it has.
    fn locks(&self, facts: &Facts) {
        let script = "BEGIN;\nUPDATE sbtest1 SET k = k + 1 WHERE id = 7;\nSELECT SLEEP(0.03);\nCOMMIT;\n";
        fs::write(self.place.path().join("hot.sql"), script).unwrap();
        let mut all =
            vec!["run", "hot.sql", "--allow-writes", "whyso", "--dsn", &self.dsn, "--out", "hot", "--json"];
        all.extend(["--tables", "2", "--rows", "2000", "--users", "8", "--seconds", "6", "--warmup", "1"]);
        let run = json_of(&finish(spawn(&mut self.place.whyso(&all)), BOUND));
        let path = run["path"].as_str().unwrap();
        let found = json_of(&output(&mut self.place.whyso(&["locks", path, "--json"])));
        let object = &found["objects"][0];
        assert_eq!(object["object"], "whyso.sbtest1", "{}: {found:#}", self.name);
        assert_eq!(object["index"], "PRIMARY", "{}: {found:#}", self.name);
        assert!(object["share"].as_f64().unwrap() >= 0.9, "{}: {found:#}", self.name);
        let held_by = object["held_by"]["statement"].as_str().unwrap_or_default();
        assert!(held_by.contains("SLEEP(?)"), "{}: {found:#}", self.name);
        let missing = found["not_measured"].to_string();
        assert!(missing.contains(facts.without_instruments), "{}: {missing}", self.name);
    }

    fn load(&self, facts: &Facts) {
        let load = |what: &[&str]| {
            let mut all = vec!["load"];
            all.extend(what);
            all.extend(["--dsn", &self.dsn, "--tables", "2", "--rows", "2000", "--users", "2"]);
            all.extend(["--seconds", "0.5", "--warmup", "0", "--json"]);
            finish(spawn(&mut self.place.whyso(&all)), BOUND)
        };
        for workload in
            ["oltp-point-select", "connect", "pk-read-2x256", "customer-create", "sort-limit-offset"]
        {
            self.check_levels(workload, &json_of(&load(&[workload])), 1);
        }
        for engine in ["threads", "epoll", "io-uring"] {
            self.check_levels(engine, &json_of(&load(&["oltp-read-only", "--engine", engine])), 1);
        }
        self.check_levels("--compress", &json_of(&load(&["oltp-read-only", "--compress"])), 1);

        fs::write(self.place.path().join("own.sql"), "SELECT c FROM sbtest1 WHERE id = 5;\n").unwrap();
        let reading = load(&["own.sql"]);
        if facts.read_only_sessions {
            self.check_levels("own.sql", &json_of(&reading), 1);
        } else {
            assert_eq!(reading.status.code(), Some(2), "{}", self.name);
            assert!(text(&reading.stderr).contains("--allow-writes whyso"), "{}", text(&reading.stderr));
        }
        self.check_levels("own.sql", &json_of(&load(&["own.sql", "--allow-writes", "whyso"])), 1);
    }

    /// As `sysbench … prepare`, `run` and `cleanup`, with prepared statements and without.
    fn sysbench(&self) {
        let socket = format!("--mysql-socket={}", self.socket.display());
        let sysbench = |more: &[&str]| {
            let mut all =
                vec!["sysbench", "oltp_read_write", &socket, "--mysql-user=root", "--mysql-db=whyso"];
            all.extend(["--tables=1", "--table-size=500", "--threads=1", "--time=1"]);
            all.extend(more);
            let done = finish(spawn(&mut self.place.whyso(&all)), BOUND);
            assert!(
                done.status.success(),
                "{} {more:?}: {}{}",
                self.name,
                text(&done.stdout),
                text(&done.stderr)
            );
            text(&done.stdout)
        };
        sysbench(&["cleanup"]);
        sysbench(&["prepare"]);
        for mode in ["auto", "disable"] {
            let report = sysbench(&[&format!("--db-ps-mode={mode}"), "run"]);
            let count = |label: &str| -> f64 {
                let line =
                    report.lines().find(|line| line.trim_start().starts_with(label)).unwrap_or_default();
                line.split(':')
                    .nth(1)
                    .and_then(|rest| rest.split_whitespace().next())
                    .unwrap()
                    .parse()
                    .unwrap()
            };
            assert!(count("transactions:") > 0.0, "{} {mode}: {report}", self.name);
            assert_eq!(count("ignored errors:"), 0.0, "{} {mode}: {report}", self.name);
        }
        sysbench(&["cleanup"]);
    }

    fn check_levels(&self, what: &str, object: &Value, count: usize) {
        let levels = object["levels"].as_array().unwrap();
        assert_eq!(levels.len(), count, "{} {what}", self.name);
        for level in levels {
            assert!(level["transactions"].as_f64().unwrap() > 0.0, "{} {what}: {level}", self.name);
            assert_eq!(level["errors"], 0, "{} {what}: {level}", self.name);
        }
    }
}

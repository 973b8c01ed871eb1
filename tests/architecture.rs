//! The invariants of ARCHITECTURE.md that a test can check.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Our own crates that a crate depends on, without its tests' dependencies.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).expect(name);
    let before_tests = manifest.split("[dev-dependencies]").next().unwrap();
    let section = before_tests.split("[dependencies]").nth(1).expect("a [dependencies] section");
    section
        .lines()
        .filter_map(|line| line.strip_prefix("whyso-"))
        .map(|rest| rest.split(['.', ' ', '=']).next().unwrap().to_string())
        .collect()
}

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Lines of a crate's own code, without comments and without its test modules.
fn code_lines(name: &str) -> Vec<(PathBuf, String)> {
    let mut lines = Vec::new();
    for file in source_files(&root().join("crates").join(name).join("src")) {
        if file.file_name().is_some_and(|name| name == "tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for line in code.lines() {
            if !line.trim_start().starts_with("//") {
                lines.push((file.clone(), line.to_string()));
            }
        }
    }
    assert!(!lines.is_empty(), "crate {name} has no code to check");
    lines
}

fn assert_absent(name: &str, forbidden: &[&str]) {
    for (file, line) in code_lines(name) {
        for word in forbidden {
            assert!(!line.contains(word), "{} must not use {word}: {}", file.display(), line.trim());
        }
    }
}

#[test]
fn data_goes_one_way() {
    let allowed: [(&str, &[&str]); 33] = [
        ("access_log", &[]),
        ("words", &["model"]),
        ("model", &[]),
        ("random", &[]),
        ("clock", &[]),
        ("connect", &[]),
        ("wire", &[]),
        ("http", &["random"]),
        ("workload", &["random"]),
        ("series", &[]),
        ("load", &["clock", "random", "wire", "workload", "http"]),
        ("sysbench", &["clock", "wire", "workload", "load", "words"]),
        ("server", &["model", "clock", "connect", "random"]),
        ("record", &["model", "clock", "series"]),
        ("storage", &["record"]),
        ("watch", &["access-log", "model", "clock", "connect", "record"]),
        ("relay", &["clock", "record"]),
        ("hub", &["model", "clock", "load", "record"]),
        ("agent", &["model", "clock", "record", "watch", "study", "hub", "control"]),
        ("live", &["model", "clock", "record", "series", "explain", "report", "words"]),
        ("trace", &["model", "clock"]),
        ("debuginfo", &[]),
        ("stacks", &["debuginfo"]),
        ("inference", &["random"]),
        ("profile", &[]),
        ("explain", &["model", "series", "words", "inference", "profile"]),
        ("study", &["model", "random", "inference", "words"]),
        ("remedy", &["explain", "words"]),
        (
            "report",
            &[
                "access-log",
                "model",
                "record",
                "series",
                "inference",
                "profile",
                "explain",
                "remedy",
                "study",
                "words",
            ],
        ),
        (
            "query",
            &[
                "model", "clock", "workload", "record", "series", "profile", "explain", "remedy", "report",
                "words",
            ],
        ),
        ("tracing", &["model", "clock", "connect", "server", "watch", "trace", "stacks", "record"]),
        (
            "control",
            &[
                "query",
                "tracing",
                "random",
                "model",
                "relay",
                "hub",
                "clock",
                "connect",
                "workload",
                "load",
                "http",
                "server",
                "watch",
                "trace",
                "stacks",
                "record",
                "series",
                "profile",
                "inference",
                "explain",
                "remedy",
                "study",
                "words",
            ],
        ),
        ("serve", &["model", "record", "series", "explain", "study", "report", "query", "words"]),
    ];
    for (name, may_use) in allowed {
        let may_use: BTreeSet<String> = may_use.iter().map(|name| name.to_string()).collect();
        let uses = dependencies(name);
        let excess: Vec<_> = uses.difference(&may_use).collect();
        assert!(excess.is_empty(), "crate {name} must not depend on {excess:?}");
    }
}

/// Crates with clippy rules of their own, and the file in `clippy/` that has them. Clippy refuses what the file lists, however it is imported.
const CLIPPY_RULES: [(&str, &str); 14] = [
    ("access_log", "pure"),
    ("model", "pure"),
    ("words", "pure"),
    ("random", "pure"),
    ("wire", "pure"),
    ("http", "pure"),
    ("workload", "pure"),
    ("series", "pure"),
    ("inference", "pure"),
    ("profile", "pure"),
    ("explain", "pure"),
    ("remedy", "pure"),
    ("report", "pure"),
    ("query", "reader"),
];

/// Crates by which others do input and output.
const DOING_IO: [&str; 10] = [
    "tokio",
    "tokio-rustls",
    "hyper",
    "hyper-util",
    "axum",
    "mysql_async",
    "rustix",
    "libc",
    "socket2",
    "io-uring",
];

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn crates_without_input_and_output_have_the_rules_for_it() {
    for (name, rules) in CLIPPY_RULES {
        let folder = root().join("crates").join(name);
        let (own, shared) = (folder.join("clippy.toml"), root().join("clippy").join(format!("{rules}.toml")));
        assert!(text(&own) == text(&shared), "{} must be a link to {}", own.display(), shared.display());
        // Only its tests may do what the rules forbid.
        assert_absent(name, &["allow(clippy::disallowed", "expect(clippy::disallowed"]);
        let manifest = text(&folder.join("Cargo.toml"));
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
        for excess in DOING_IO {
            let uses = dependencies.lines().any(|line| line.split([' ', '.', '=']).next() == Some(excess));
            assert!(!uses, "crate {name} must not depend on {excess}");
        }
    }
}

/// Connections for control and samplers use tokio. The load's hot path does not run on it.
#[test]
fn the_load_does_not_run_on_tokio() {
    let manifest = text(&root().join("crates/load/Cargo.toml"));
    assert!(!manifest.split("[dev-dependencies]").next().unwrap().contains("\ntokio"));
}

/// What comes from storage is checked in one place.
#[test]
fn only_storage_speaks_to_storage() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = text(&folder.join("Cargo.toml"));
        let uses =
            manifest.lines().any(|line| line.starts_with("object_store") || line.starts_with("reqwest"));
        assert!(!uses || folder.ends_with("storage"), "{} must not depend on object_store", folder.display());
    }
}

#[test]
fn only_record_names_the_files_of_a_recording() {
    let names = ["run.json", "series.parquet", "collections-", "samples-", "rollup-", "frames-", "waits-"];
    for name in [
        "query", "tracing", "control", "watch", "explain", "report", "load", "server", "live", "relay",
        "serve", "storage",
    ] {
        assert_absent(name, &names);
    }
}

#[test]
fn no_file_of_ours_has_grown_past_two() {
    let mut too_long = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        for file in source_files(&entry.unwrap().path().join("src")) {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            if lines > 700 {
                too_long.push(format!("{} ({lines} lines)", file.display()));
            }
        }
    }
    assert!(too_long.is_empty(), "a file past 500 lines asks to be two: {too_long:?}");
}

/// Tests that take too long for every change.
const LONG: &str = "#[ignore = \"long: make test-hard\"]";

/// A test that returns early passes. So it has to say so where it is counted.
#[test]
fn what_is_not_tested_is_counted() {
    let mut uncounted = Vec::new();
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let folders = folders.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("testing"));
    for file in folders.chain([root().join("tests")]).flat_map(|folder| source_files(&folder)) {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let printed = line.contains("println!(") || line.contains("writeln!(");
            let is_uncounted = printed && line.to_lowercase().contains(concat!("not ", "tested"));
            let line = line.trim();
            let is_ignored = line.starts_with(concat!("#[", "ignore")) && line != LONG;
            if is_uncounted || is_ignored {
                uncounted.push(format!("{}: {line}", file.display()));
            }
        }
    }
    assert!(uncounted.is_empty(), "call whyso_testing::not_tested, or mark it {LONG}: {uncounted:#?}");
}

/// Recordings and servers hold text of others, which a terminal may obey.
#[test]
fn the_program_prints_only_through_what_escapes() {
    for (file, line) in code_lines("whyso") {
        let is_print = line.replace("stdout().is_terminal()", "").contains("io::stdout()");
        let is_allowed = file.file_name().is_some_and(|name| name == "out.rs");
        assert!(!is_print || is_allowed, "{} must print through out.rs: {}", file.display(), line.trim());
    }
}

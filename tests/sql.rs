//! `whyso sql` opens only the files that a question needs. The other files of these tests can't be read at all.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Place, output, text};
use whyso_record::data::{Kind, Reading, SeriesKey, Status, Value};
use whyso_record::run::RunInfo;
use whyso_record::{Options, Recorder};

/// The folder of DuckDB's shell, where there is one: on the PATH, or where the book's commands have it.
fn duckdb_folder() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache/whyso-venv/bin"));
    let found = std::env::split_paths(&path).chain(home).find(|folder| folder.join("duckdb").is_file());
    if found.is_none() {
        whyso_testing::not_tested("whyso sql needs the DuckDB shell: pip install duckdb-cli");
    }
    found
}

fn record(dir: &Path, factor: i64) {
    let recorder = Recorder::create(dir, Options { reserve_bytes: 0, ..Options::default() }).unwrap();
    let [host, source, metric, instance, unit] =
        ["server", "status", "Questions", "", "1"].map(str::to_string);
    let questions = recorder.series(&SeriesKey { host, source, metric, instance, kind: Kind::Counter, unit });
    for second in 0..10_i64 {
        let (begin_ns, end_ns) = (second * 1_000_000_000, second * 1_000_000_000 + 1_000);
        let values = vec![(questions, Value::Int(second * factor))];
        recorder.reading(Reading { source: "status".into(), begin_ns, end_ns, status: Status::Ok, values });
    }
    let id = dir.file_name().unwrap().to_str().unwrap().to_string();
    recorder.set_run(&RunInfo { id, ..RunInfo::default() });
    recorder.finish().unwrap();
}

#[test]
fn a_question_about_one_run_opens_no_file_of_the_others() {
    let Some(duckdb) = duckdb_folder() else { return };
    let place = Place::new();
    for (run, factor) in [("a", 1), ("b", 10), ("c", 100)] {
        record(&place.runs().join(run), factor);
    }
    let path = format!("{}:{}", duckdb.display(), std::env::var("PATH").unwrap_or_default());
    let ask = |more: &[&str], sql: &str| {
        let mut args = vec!["sql", "--command", sql];
        args.extend(more);
        let mut command = place.whyso(&args);
        let done = output(command.env("PATH", &path));
        (done.status.success(), text(&done.stdout) + &text(&done.stderr))
    };
    let catalogued = output(&mut place.whyso(&["runs", "catalogue"]));
    assert!(catalogued.status.success(), "{}", text(&catalogued.stderr));
    let all = "SELECT 'sum: ' || sum(value)::INT FROM readings WHERE metric = 'Questions'";
    assert!(ask(&[], all).1.contains("sum: 4995"), "{:?}", ask(&[], all));

    // The same names, sizes and times: to the catalogue they are what they were. Of the first, DuckDB learns the columns.
    for entry in fs::read_dir(place.runs().join("b")).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "parquet") {
            let about = fs::metadata(&file).unwrap();
            fs::write(&file, vec![0; about.len() as usize]).unwrap();
            let written = fs::File::options().write(true).open(&file).unwrap();
            written.set_modified(about.modified().unwrap()).unwrap();
        }
    }
    assert!(!ask(&[], all).0, "b can't be read, which shows that these questions do not read it");
    let one = format!("{all} AND run = 'c'");
    assert!(ask(&[], &one).1.contains("sum: 4500"), "{:?}", ask(&[], &one));
    assert!(ask(&["--run", "c"], all).1.contains("sum: 4500"), "{:?}", ask(&["--run", "c"], all));
    let runs =
        ask(&[], "SELECT 'runs: ' || count(*) || ', files: ' || (SELECT count(*) FROM segments) FROM runs");
    assert!(runs.0 && runs.1.contains("runs: 3, files: "), "{runs:?}");
}

#[test]
fn a_time_or_a_run_that_is_none_is_refused() {
    let place = Place::new();
    record(&place.runs().join("a"), 1);
    for (option, value, words) in
        [("--since", "yesterday", "is no time"), ("--run", "b", "there is no run b")]
    {
        let refused = output(&mut place.whyso(&["sql", option, value, "--command", "SELECT 1"]));
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(words), "{}", text(&refused.stderr));
    }
}

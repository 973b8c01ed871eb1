//! A recording that is not what was recorded any more: no command shows other numbers without a warning.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Place, json_of, output, text};

/// Commands that read a recording; `RUN` stands for it, `RUNS` for the folder that holds it, and `LOG` for an access log of its time.
const READERS: [&[&str]; 19] = [
    &["access-log", "LOG", "--run", "RUN"],
    &["why", "RUN"],
    &["report", "RUN", "--format", "md", "--output", "/dev/stdout"],
    &["report", "RUN", "--format", "json", "--output", "/dev/stdout"],
    &["report", "RUN", "--output", "/dev/stdout"],
    &["export", "RUN"],
    &["export", "RUN", "--folded"],
    &["plot", "RUN", "Questions", "--output", "/dev/stdout"],
    &["functions", "RUN"],
    &["callees", "RUN"],
    &["classes", "RUN"],
    &["wakers", "RUN"],
    &["threads", "RUN"],
    &["timeline", "RUN"],
    &["locks", "RUN"],
    &["statements", "RUN"],
    &["pfs", "RUN"],
    &["history", "RUNS"],
    &["runs", "--runs", "RUNS"],
];

/// What a command printed: on standard output, and as warnings or errors.
fn printed(place: &Place, reader: &[&str], run: &Path) -> (String, String) {
    let (run, runs) = (run.to_str().unwrap(), run.parent().unwrap().to_str().unwrap());
    let log = place.path().join("access.log").display().to_string();
    let args: Vec<&str> = reader
        .iter()
        .map(|arg| match *arg {
            "RUN" => run,
            "RUNS" => runs,
            "LOG" => &log,
            other => other,
        })
        .collect();
    let output = output(&mut place.whyso(&args));
    assert_ne!(output.status.code(), Some(101), "{args:?}: {}", text(&output.stderr));
    (text(&output.stdout).to_string(), text(&output.stderr).to_string())
}

/// A request in each second of the last minute.
fn write_log(place: &Place) {
    let now = jiff::Timestamp::now();
    let line = |age_s: i64| {
        let at = (now - jiff::SignedDuration::from_secs(age_s)).strftime("%d/%b/%Y:%H:%M:%S +0000");
        format!("::1 - - [{at}] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl\"\n")
    };
    fs::write(place.path().join("access.log"), (0..60).rev().map(line).collect::<String>()).unwrap();
}

fn files_of(run: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.file_name().is_some_and(|name| name != "report.html" && name != "server.log"));
    files.sort();
    files
}

#[test]
#[ignore = "long: make test-hard"]
fn no_command_shows_other_numbers_without_a_warning_whichever_file_has_a_flipped_bit() {
    let place = Place::new();
    let more = ["--users", "2", "--seconds", "3", "--no-repeat", "--stacks", "--trace-sql", "--json"];
    json_of(&output(&mut place.run(&more)));
    let run = place.only_run();
    write_log(&place);
    let sound: Vec<(String, String)> = READERS.iter().map(|reader| printed(&place, reader, &run)).collect();
    let mut silent = Vec::new();
    for file in files_of(&run) {
        let bytes = fs::read(&file).unwrap();
        let mut damaged = bytes.clone();
        damaged[bytes.len() / 2] ^= 1 << 4;
        fs::write(&file, damaged).unwrap();
        for (reader, (shown, messages)) in READERS.iter().zip(&sound) {
            let (shown_now, warnings) = printed(&place, reader, &run);
            // The list of runs has a column for it.
            let warns = reader[0] == "runs"
                && ["can't be read", "is not what was recorded", "are damaged"]
                    .iter()
                    .any(|text| shown_now.contains(text));
            if shown_now != *shown && !warns && warnings.lines().all(|line| messages.contains(line)) {
                silent.push(format!("{} of {}", reader[0], file.file_name().unwrap().display()));
            }
        }
        fs::write(&file, bytes).unwrap();
    }
    assert!(silent.is_empty(), "other output without a warning: {silent:#?}");
}

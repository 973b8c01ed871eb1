//! Runs in storage that speaks S3: sent, listed, read and fetched by the program. The server is a real one, versitygw, which scripts/s3_server.sh
//! builds; it keeps objects as plain files, so that these tests can spoil them.

mod common;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Place, SOON, json_of, output, text, wait_until};
use serde_json::{Value, json};
use whyso_record::data::{Kind, Reading, SeriesKey, Status, Value as Number};
use whyso_record::run::RunInfo;
use whyso_record::{Labels, Options, Recorder, set_labels};

/// Names the server's program.
const SERVER: &str = "WHYSO_S3_SERVER";
const KEY: &str = "key-of-the-tests";
const SECRET: &str = "secret-of-the-tests";
/// A request has this bound, and is not tried again after it.
const REQUEST: Duration = Duration::from_secs(60);

/// Makes a recording with one series, and a log that is sent in pieces.
fn record(dir: &Path, log_bytes: usize) {
    let recorder = Recorder::create(dir, Options { reserve_bytes: 0, ..Options::default() }).unwrap();
    let [host, source, metric, instance, unit] =
        ["server", "status", "Questions", "", "1"].map(str::to_string);
    let questions = recorder.series(&SeriesKey { host, source, metric, instance, kind: Kind::Counter, unit });
    for second in 0..10_i64 {
        let (begin_ns, end_ns) = (second * 1_000_000_000, second * 1_000_000_000 + 1_000);
        let values = vec![(questions, Number::Int(second * 7))];
        recorder.reading(Reading { source: "status".into(), begin_ns, end_ns, status: Status::Ok, values });
    }
    let id = dir.file_name().unwrap().to_str().unwrap().to_string();
    recorder.set_run(&RunInfo { id, ..RunInfo::default() });
    recorder.finish().unwrap();
    fs::write(dir.join("server.log"), vec![b'x'; log_bytes]).unwrap();
}

/// The program with keys for an endpoint.
fn whyso(place: &Place, endpoint: &str, args: &[&str]) -> Command {
    let mut command = place.whyso(args);
    command
        .env("AWS_ACCESS_KEY_ID", KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .env("AWS_ENDPOINT_URL", endpoint)
        .env_remove("AWS_SESSION_TOKEN")
        .env_remove("AWS_ALLOW_HTTP");
    command
}

/// Runs a command that has to fail, and returns its one sentence.
fn refusal(mut command: Command) -> String {
    let failed = output(&mut command);
    let message = text(&failed.stderr);
    assert!(!failed.status.success(), "{command:?} {}", text(&failed.stdout));
    assert!(message.lines().count() == 1 && message.starts_with("whyso: "), "{message}");
    assert!(!message.contains(SECRET) && !message.contains(KEY), "{message}");
    message
}

#[test]
fn what_cannot_be_reached_is_said_in_one_sentence() {
    let place = Place::new();
    record(&place.runs().join("one"), 0);
    let push = ["runs", "push", "--to", "s3://lab/team"];
    let mut without_keys = place.whyso(&push);
    without_keys.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_WEB_IDENTITY_TOKEN_FILE");
    assert!(refusal(without_keys).contains("set AWS_ACCESS_KEY_ID"));
    assert!(refusal(whyso(&place, "http://10.1.2.3:9", &push)).contains("AWS_ALLOW_HTTP=true"));
    assert!(refusal(whyso(&place, "10.1.2.3:9", &push)).contains("https://s3.example.com"));

    // A port at which nobody listens.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = format!("http://127.0.0.1:{port}");
    for args in [
        &push[..],
        &["runs", "--runs", "s3://lab/team"],
        &["runs", "pull", "another", "--from", "s3://lab/team"],
        &["why", "s3://lab/team/one"],
        &["sql", "--runs", "s3://lab", "--command", "SELECT 1"],
    ] {
        let message = refusal(whyso(&place, &nowhere, args));
        assert!(message.contains("s3://lab") && message.contains("did not answer"), "{message}");
    }

    let message = refusal(whyso(&place, &nowhere, &["runs", "rm", "one", "--yes", "--runs", "s3://lab"]));
    assert!(message.contains("whyso runs pull"), "{message}");
    let recorded = output(&mut place.whyso(&["record", "--runs", "s3://lab"]));
    assert_eq!(recorded.status.code(), Some(2), "{}", text(&recorded.stderr));
    assert!(text(&recorded.stderr).contains("whyso runs push"), "{}", text(&recorded.stderr));
    assert!(!place.path().join("s3:").exists());
}

/// A server with one bucket, `lab`.
struct Storage {
    place: Place,
    endpoint: String,
    server: Child,
}

impl Drop for Storage {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Storage {
    fn start() -> Option<Storage> {
        let Some(program) = std::env::var_os(SERVER) else {
            whyso_testing::not_tested(
                "storage that speaks S3 needs a server: scripts/s3_server.sh builds it",
            );
            return None;
        };
        let place = Place::new();
        fs::create_dir_all(place.path().join("data/lab")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Command::new(program)
            .args(["--port", &format!("127.0.0.1:{port}"), "--quiet", "posix"])
            .arg(place.path().join("data"))
            .env("ROOT_ACCESS_KEY", KEY)
            .env("ROOT_SECRET_KEY", SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let is_up = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(wait_until(SOON, is_up), "the server does not start");
        Some(Storage { place, endpoint: format!("http://127.0.0.1:{port}"), server })
    }

    fn whyso(&self, args: &[&str]) -> Command {
        whyso(&self.place, &self.endpoint, args)
    }

    fn json(&self, args: &[&str]) -> Value {
        let done = output(&mut self.whyso(args));
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        let object = json_of(&done);
        assert_eq!(common::schemas::problems(&object), [] as [String; 0]);
        object
    }

    /// A file of a run, as the server keeps it.
    fn object(&self, run: &str, file: &str) -> PathBuf {
        self.place.path().join("data/lab/team").join(run).join(file)
    }

    fn pull(&self, run: &str, to: &str) -> Command {
        self.whyso(&["runs", "pull", run, "--from", "s3://lab/team", "--runs", to])
    }
}

fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
#[ignore = "long: make test-hard"]
fn runs_are_sent_listed_read_and_fetched() {
    let Some(storage) = Storage::start() else { return };
    let runs = storage.place.runs();
    for (run, log_bytes) in [("one", 20 << 20), ("two", 0), ("three", 5)] {
        record(&runs.join(run), log_bytes);
    }
    set_labels(&runs.join("two"), &Labels::new("before the index", ["shop".to_string()]).unwrap()).unwrap();

    let pushed = storage.json(&["runs", "push", "--to", "s3://lab/team", "--json"]);
    assert_eq!(pushed["sent"].as_array().unwrap().len(), 3, "{pushed}");
    let again = storage.json(&["runs", "push", "one", "--to", "s3://lab/team/", "--json"]);
    assert_eq!((&again["sent"], &again["there_already"]), (&json!([]), &json!(["one"])));

    // The catalogue lists them, and so do their descriptions where there is no catalogue.
    let here = storage.json(&["runs", "--json"]);
    let there = |also: &str| {
        let mut listed = storage.json(&["runs", "--json", "--runs", "s3://lab/team"]);
        for run in listed["runs"].as_array_mut().unwrap() {
            let path = run["path"].take();
            assert_eq!(path, json!(format!("s3://lab/team/{}", run["run"].as_str().unwrap())), "{also}");
            run["path"] = json!(runs.join(run["run"].as_str().unwrap()).to_str().unwrap());
        }
        listed
    };
    let mut expected = here.clone();
    for run in expected["runs"].as_array_mut().unwrap() {
        run["path"] = json!(runs.join(run["run"].as_str().unwrap()).to_str().unwrap());
    }
    assert_eq!(there("by the catalogue"), expected);
    let catalogue = storage.place.path().join("data/lab/team/catalogue.parquet");
    fs::remove_file(&catalogue).unwrap();
    assert_eq!(there("without a catalogue"), expected);
    fs::write(&catalogue, "PAR1 and nothing else PAR1").unwrap();
    assert_eq!(there("by a damaged catalogue"), expected);

    // Read as it lies there, and once more from the copy.
    for _ in 0..2 {
        let read = output(&mut storage.whyso(&["export", "s3://lab/team/one", "--metric", "Questions"]));
        assert!(text(&read.stdout).lines().count() == 11, "{}{}", text(&read.stdout), text(&read.stderr));
        let read = output(&mut storage.whyso(&["export", "tw", "--runs", "s3://lab/team"]));
        assert!(text(&read.stdout).contains("Questions"), "{}", text(&read.stderr));
    }
    let message = refusal(storage.whyso(&["export", "s3://lab/team/four"]));
    assert!(message.contains("there is no run four"), "{message}");

    let to = storage.place.path().join("elsewhere");
    for run in ["one", "two"] {
        let pulled = output(&mut storage.pull(run, to.to_str().unwrap()));
        assert!(pulled.status.success(), "{}", text(&pulled.stderr));
        assert_eq!(files(&to.join(run)), files(&runs.join(run)));
    }
    let small =
        refusal(storage.whyso(&["runs", "pull", "three", "--from", "s3://lab/team", "--size", "1KiB"]));
    assert!(small.contains("are allowed"), "{small}");

    // What was sent holds no key.
    for run in ["one", "two", "three"] {
        for (name, content) in files(&storage.place.path().join("data/lab/team").join(run)) {
            let holds = |word: &str| content.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!holds(SECRET) && !holds(KEY), "{name}");
        }
    }
}

#[test]
#[ignore = "long: make test-hard"]
fn nothing_is_half_visible_and_nothing_spoilt_is_taken_in() {
    let Some(storage) = Storage::start() else { return };
    let runs = storage.place.runs();
    record(&runs.join("one"), 0);
    let push = ["runs", "push", "--to", "s3://lab/team", "--json"];
    storage.json(&push);
    let list = || storage.json(&["runs", "--json", "--runs", "s3://lab/team"])["runs"].clone();

    // As a sender leaves it that was killed before its last file.
    fs::remove_file(storage.object("one", "run.json")).unwrap();
    fs::remove_file(storage.place.path().join("data/lab/team/catalogue.parquet")).unwrap();
    assert_eq!(list(), json!([]));
    let to = storage.place.path().join("to");
    refusal(storage.pull("one", to.to_str().unwrap()));
    assert_eq!(storage.json(&push)["sent"], json!(["one"]));
    assert_eq!(list().as_array().unwrap().len(), 1);

    let samples = storage.object("one", "samples-000001.parquet");
    let whole = fs::read(&samples).unwrap();
    let list_file = storage.object("one", "files.jsonl");
    let whole_list = fs::read(&list_file).unwrap();
    let mut flipped = whole.clone();
    flipped[100] ^= 1;
    // The same length, shorter, longer, none.
    for spoilt in [Some(flipped), Some(whole[..50].to_vec()), Some([&whole[..], b"x"].concat()), None] {
        match &spoilt {
            Some(content) => fs::write(&samples, content).unwrap(),
            None => fs::remove_file(&samples).unwrap(),
        }
        let pulled = output(&mut storage.pull("one", to.to_str().unwrap()));
        let message = text(&pulled.stderr);
        // What is longer than its list is cut to it, and is then what was sent.
        let is_longer = spoilt.as_ref().is_some_and(|content| content.len() > whole.len());
        assert_eq!(pulled.status.success(), is_longer, "{message}");
        assert!(
            is_longer
                || message.trim_end().ends_with("push the run again")
                || message.contains("push it again"),
            "{message}"
        );
        if is_longer {
            fs::remove_dir_all(to.join("one")).unwrap();
        }
        assert_eq!(fs::read_dir(&to).unwrap().count(), 0, "{message}");
    }
    fs::write(&samples, &whole).unwrap();

    // A list that leads out of the folder.
    let json = r#"{"file":"../../escaped","bytes":1,"crc32c":0}"#;
    let line = format!("{:08x} {json}\n", crc32c(json.as_bytes()));
    fs::write(&list_file, [&whole_list[..], line.as_bytes()].concat()).unwrap();
    let message = refusal(storage.pull("one", to.to_str().unwrap()));
    assert!(message.contains("names what is no file of a recording"), "{message}");
    assert!(!storage.place.path().join("escaped").exists());
    fs::write(&list_file, &whole_list).unwrap();

    let mut wrong = storage.pull("one", to.to_str().unwrap());
    let message = refusal({
        wrong.env("AWS_SECRET_ACCESS_KEY", "another");
        wrong
    });
    assert!(message.contains("refuses these keys"), "{message}");
    let message = refusal(storage.whyso(&["runs", "push", "--to", "s3://other/team"]));
    assert!(message.contains("there is no bucket"), "{message}");
    let message = refusal(storage.whyso(&["runs", "--runs", "s3://other/team"]));
    assert!(message.contains("there is no bucket"), "{message}");
}

/// The checksum of a line, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0x82f6_3b78 & (sum & 1).wrapping_neg()))
    })
}

#[test]
#[ignore = "long: make test-hard"]
fn two_that_send_at_once_are_both_in_the_catalogue() {
    let Some(storage) = Storage::start() else { return };
    for number in 0..6 {
        record(&storage.place.runs().join(format!("run-{number}")), 0);
    }
    let mut senders: Vec<Child> = (0..6)
        .map(|number| {
            let run = format!("run-{number}");
            storage
                .whyso(&["runs", "push", &run, "--to", "s3://lab/team"])
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for sender in &mut senders {
        assert!(sender.wait().unwrap().success());
    }
    let catalogue = storage.place.path().join("data/lab/team/catalogue.parquet");
    assert_eq!(whyso_record::RunsElsewhere::read(&catalogue).ids().len(), 6);
}

#[test]
#[ignore = "long: make test-hard"]
fn a_server_that_stops_answering_ends_a_command_in_time() {
    let Some(storage) = Storage::start() else { return };
    record(&storage.place.runs().join("one"), 0);
    let pid = storage.server.id() as i32;
    common::kill(pid, libc::SIGSTOP);
    let begin = Instant::now();
    let message = refusal(storage.whyso(&["runs", "push", "--to", "s3://lab/team"]));
    common::kill(pid, libc::SIGCONT);
    assert!(message.contains("did not answer"), "{message}");
    assert!(begin.elapsed() < 2 * REQUEST, "{:?}", begin.elapsed());
}

#[test]
#[ignore = "long: make test-hard"]
fn sql_reads_facts_of_all_runs_there_and_the_files_of_those_that_are_chosen() {
    let Some(storage) = Storage::start() else { return };
    if output(Command::new("sh").args(["-c", "command -v duckdb"])).stdout.is_empty() {
        return whyso_testing::not_tested("SQL over storage needs the DuckDB shell: pip install duckdb-cli");
    }
    for run in ["one", "two"] {
        record(&storage.place.runs().join(run), 0);
    }
    storage.json(&["runs", "push", "--to", "s3://lab/team", "--json"]);
    let ask = |more: &[&str], sql: &str| {
        let mut args = vec!["sql", "--runs", "s3://lab/team", "--command", sql];
        args.extend(more);
        let done = output(&mut storage.whyso(&args));
        assert!(done.status.success(), "{sql}: {}", text(&done.stderr));
        text(&done.stdout)
    };
    assert!(ask(&[], "SELECT 'runs: ' || count(*) FROM runs").contains("runs: 2"));
    assert!(
        ask(&[], "SELECT 'rows: ' || sum(rows) FROM segments WHERE stream = 'samples'").contains("rows: ")
    );
    assert!(ask(&[], "SELECT 'samples: ' || count(*) FROM samples").contains("samples: 0"));
    let sums = "SELECT 'sum: ' || sum(value)::INT || ' of ' || any_value(run) FROM readings WHERE metric = 'Questions'";
    assert!(ask(&["--run", "two"], sums).contains("sum: 315 of two"));
}

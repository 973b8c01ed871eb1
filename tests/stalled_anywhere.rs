//! A server that stops answering control connections at any point of a command. The command ends within the bound of
//! ARCHITECTURE.md, with a sentence. What it changed is put back, or is in a journal.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::proxy::{Fault, Proxy};
use common::{OwnServer, Place, finish, output, spawn, text};

/// As ARCHITECTURE.md states it: a minute and twelve times `connect_timeout`, after what the command was to take.
const BOUND: Duration = Duration::from_secs(72);
/// What the command itself takes on a busy machine.
const COMMAND: Duration = Duration::from_secs(20);
/// Stalled commands wait most of the time.
const AT_ONCE: usize = 16;
/// Variables that change nothing here; each case sets one of its own.
const VARIABLES: [&str; 16] = [
    "net_retry_count",
    "net_read_timeout",
    "net_write_timeout",
    "lock_wait_timeout",
    "max_connect_errors",
    "slow_launch_time",
    "long_query_time",
    "interactive_timeout",
    "wait_timeout",
    "max_error_count",
    "max_sort_length",
    "group_concat_max_len",
    "min_examined_row_limit",
    "delayed_insert_timeout",
    "delayed_queue_size",
    "delayed_insert_limit",
];

const RECORD: [&str; 6] = ["record", "--for", "1s", "--no-trace", "--interval-ms", "500"];
const RUN: [&str; 13] = [
    "run",
    "oltp-point-select",
    "--users",
    "1",
    "--seconds",
    "1",
    "--warmup",
    "1",
    "--tables",
    "1",
    "--rows",
    "100",
    "--no-trace",
];

/// One case: the command, the answer from which on there are none, the variable that is set, if any.
struct Case<'a> {
    command: &'a [&'a str],
    schema: String,
    nth: usize,
    variable: Option<&'a str>,
}

impl Case<'_> {
    fn check(&self, server: &OwnServer) {
        let place = Place::new();
        let proxy = Proxy::start(&server.socket(), self.nth, Fault::Stall);
        let dsn = dsn(&proxy, &self.schema);
        let before = self.variable.map(|name| server.sql(&format!("SELECT @@GLOBAL.{name}")));
        let set = self
            .variable
            .zip(before.as_ref())
            .map(|(name, before)| format!("{name}={}", before.parse::<f64>().unwrap() as u64 + 1));
        let mut args = [self.command, &["--dsn", &dsn]].concat();
        if let Some(set) = &set {
            args.extend(["--set", set]);
        }
        let begin = Instant::now();
        let done = finish(spawn(&mut place.whyso(&args)), BOUND + COMMAND);
        let case = format!("{} that stalls at answer {} ({:?})", args[0], self.nth, begin.elapsed());
        let complaint = text(&done.stderr);
        assert!(matches!(done.status.code(), Some(0 | 1)), "{case}: {:?}: {complaint}", done.status);
        assert!(!complaint.contains("panicked"), "{case}: {complaint}");
        let printed = format!("{complaint}{}", text(&done.stdout));
        let is_reported = ["did not answer", "no answer within", "not answer any more", "not measured"]
            .iter()
            .any(|words| printed.contains(words));
        assert!(is_reported, "{case}: it is not reported: {printed}");
        if let (Some(name), Some(before)) = (self.variable, before) {
            let now = server.sql(&format!("SELECT @@GLOBAL.{name}"));
            let is_in_journal = has_files(&place.path().join("state/whyso/undo"));
            assert!(now == before || is_in_journal, "{case}: {name} was {before}, is {now}: {complaint}");
            if now != before {
                assert!(complaint.contains("puts them back"), "{case}: {complaint}");
            }
        }
    }
}

fn has_files(folder: &Path) -> bool {
    let journals = std::fs::read_dir(folder).into_iter().flatten().flatten();
    journals.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json")).count() > 0
}

fn dsn(proxy: &Proxy, schema: &str) -> String {
    format!("mysql://root@127.0.0.1:{}/{schema}?connect_timeout=1", proxy.port)
}

/// How many answers a command gets where none is missing.
fn answers(server: &OwnServer, command: &[&str], schema: &str) -> usize {
    let place = Place::new();
    let proxy = Proxy::start(&server.socket(), usize::MAX, Fault::Stall);
    let dsn = dsn(&proxy, schema);
    let done = output(&mut place.whyso(&[command, &["--dsn", &dsn]].concat()));
    assert!(done.status.success(), "{}", text(&done.stderr));
    proxy.answers()
}

/// Stalls each command at these answers, several at once. Panics with every case that failed.
fn each(server: &OwnServer, cases: Vec<Case<'_>>) {
    let (left, failed) = (Mutex::new(cases), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().pop();
                    let Some(case) = next else { return };
                    if catch_unwind(AssertUnwindSafe(|| case.check(server))).is_err() {
                        failed.lock().unwrap().push(format!("{} at answer {}", case.command[0], case.nth));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} failed, see above: {}", failed.len(), failed.join(", "));
}

/// The answers that are stalled, from 1 to `all`: the first ones, then fewer and fewer.
fn spread(all: usize, count: usize) -> Vec<usize> {
    let place = |at: usize| (all as f64).powf(at as f64 / (count - 1) as f64).round() as usize;
    let mut places: Vec<usize> = (0..count).map(|at| place(at).max(at + 1).min(all)).collect();
    places.dedup();
    places
}

#[test]
fn commands_end_whichever_answer_a_server_stops_at() {
    let server = OwnServer::start_with(&["--max-connections=2000"]);
    let (of_record, of_run) = (answers(&server, &RECORD, ""), answers(&server, &RUN, "whyso_all"));
    assert!(of_record > 20 && of_run > 40, "{of_record} {of_run}");
    eprintln!("{of_record} answers to record, {of_run} to run");
    let mut cases = Vec::new();
    for nth in spread(of_record * 3 / 4, 8) {
        cases.push(Case { command: &RECORD, schema: String::new(), nth, variable: None });
    }
    for (at, nth) in spread(of_run * 3 / 4, VARIABLES.len()).into_iter().enumerate() {
        cases.push(Case {
            command: &RUN,
            schema: format!("whyso_{nth}"),
            nth,
            variable: Some(VARIABLES[at]),
        });
    }
    each(&server, cases);
}

#[test]
#[ignore = "long: make test-hard"]
fn commands_end_whichever_answer_a_server_stops_at_each_in_turn() {
    let server = OwnServer::start_with(&["--max-connections=2000"]);
    let (of_record, of_run) = (answers(&server, &RECORD, ""), answers(&server, &RUN, "whyso_all"));
    let of_record = (1..=of_record * 3 / 4).map(|nth| (RECORD.as_slice(), String::new(), nth));
    let of_run = (1..=of_run * 3 / 4).map(|nth| (RUN.as_slice(), format!("whyso_{nth}"), nth));
    let all: Vec<_> = of_record.chain(of_run).collect();
    for some in all.chunks(VARIABLES.len()) {
        let cases = some.iter().zip(VARIABLES).map(|((command, schema, nth), variable)| Case {
            command,
            schema: schema.clone(),
            nth: *nth,
            variable: (command[0] == "run").then_some(variable),
        });
        each(&server, cases.collect());
    }
}

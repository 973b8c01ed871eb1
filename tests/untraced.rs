//! Where the kernel's programs may not be loaded: what is reported all the same, and what to grant.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{OwnServer, Place, json_of, output, text};
use serde_json::Value;

/// What a program must not have, so that nothing can be loaded into the kernel.
const NO_BPF: &str = "-bpf,-perfmon,-sys_admin";
/// Neither may it read what another's threads wait for.
const NO_LOOK: &str = "-bpf,-perfmon,-sys_admin,-sys_ptrace";
/// All that the message says to grant.
const GRANTED: &str = "-all,+bpf,+perfmon,+sys_ptrace";

/// The program without some capabilities, or with some alone; `None` where this test has none to take away.
fn whyso(place: &Place, capabilities: &str, args: &[&str]) -> Option<Command> {
    // SAFETY: it has no effects.
    if unsafe { libc::geteuid() } != 0 {
        whyso_testing::not_tested("taking capabilities away needs root");
        return None;
    }
    let program = place.whyso(args);
    let mut command = Command::new("setpriv");
    command.args([format!("--bounding-set={capabilities}"), "--inh-caps=-all".to_string()]);
    command.arg(program.get_program()).args(program.get_args()).current_dir(place.path());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Some(command)
}

fn run_on(server: &OwnServer, place: &Place, capabilities: Option<&str>) -> Option<(Value, Value, String)> {
    let dsn = server.dsn("root", "");
    let args = ["run", "oltp-read-write", "--dsn", &dsn, "--users", "8", "--seconds", "3", "--warmup", "1"];
    let args = [&args[..], &["--tables", "1", "--rows", "1000", "--no-repeat", "--json"]].concat();
    let mut run = match capabilities {
        Some(capabilities) => whyso(place, capabilities, &args)?,
        None => place.whyso(&args),
    };
    let out = json_of(&output(&mut run));
    let path = out["path"].as_str().unwrap();
    let why = json_of(&output(&mut place.whyso(&["why", path, "--json"])));
    let run = fs::read_to_string(Path::new(path).join("run.json")).unwrap();
    let printed = text(&output(&mut place.whyso(&["why", path])).stdout);
    Some((serde_json::from_str(&run).unwrap(), why, printed))
}

/// The parts of the only level, in ms.
fn parts(why: &Value) -> Vec<(&str, f64)> {
    let parts = why["levels"][0]["budget_ms"].as_object().unwrap();
    parts.iter().map(|(name, ms)| (name.as_str(), ms.as_f64().unwrap())).collect()
}

/// Of these parts, the share of each in their sum.
fn shares(why: &Value, of: &[&str]) -> Vec<f64> {
    let ms = |name: &&str| parts(why).iter().find(|(part, _)| part == name).map_or(0.0, |(_, ms)| *ms);
    let sum: f64 = of.iter().map(ms).sum();
    of.iter().map(|name| ms(name) / sum).collect()
}

#[test]
fn where_programs_are_refused_a_budget_of_samples_is_shown_with_what_it_lacks_and_what_to_grant() {
    let server = OwnServer::start();
    let place = Place::new();
    let Some((run, why, printed)) = run_on(&server, &place, Some(NO_BPF)) else { return };
    let lost = run["not_measured"].to_string();
    for words in
        ["where requests begin and end", "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE", "samples from /proc"]
    {
        assert!(lost.contains(words), "{words} is missing in {lost}");
    }
    let grants = format!("{} setup-tracing", env!("CARGO_BIN_EXE_whyso"));
    assert!(lost.contains(&grants), "{lost}");
    assert!(
        printed.contains("samples of its threads' states") || printed.contains("samples of its"),
        "{printed}"
    );

    let level = &why["levels"][0];
    let response_ms = level["response_ms"].as_f64().unwrap();
    let sum: f64 = parts(&why).iter().map(|(_, ms)| ms).sum();
    let whole = sum + level["unaccounted_ms"].as_f64().unwrap();
    assert!((whole / response_ms - 1.0).abs() < 1e-6, "{level}");
    assert!(sum > 0.1 * response_ms && sum < 1.3 * response_ms, "{level}");
    for part in ["transit_in", "wakeup", "client_delay", "client_cpu"] {
        assert!(!parts(&why).iter().any(|(name, _)| *name == part), "{part} can't be sampled: {level}");
    }

    // Against a traced run: work and queues for a CPU, and sleep, in about the same proportion.
    let Some((_, traced, _)) = run_on(&server, &place, None) else { return };
    if !parts(&traced).iter().any(|(name, _)| *name == "transit_in") {
        return whyso_testing::tracer_not_tested("the run with all rights was not traced");
    }
    let of = ["cpu", "runqueue", "lock", "file_sync"];
    let (sampled, traced) = (shares(&why, &of), shares(&traced, &of));
    for (at, name) in of.iter().enumerate() {
        assert!((sampled[at] - traced[at]).abs() < 0.35, "{name}: {sampled:?}, traced {traced:?}");
    }
}

#[test]
fn where_not_even_proc_shows_the_waits_nothing_is_invented() {
    let server = OwnServer::start();
    let place = Place::new();
    let Some((run, why, printed)) = run_on(&server, &place, Some(NO_LOOK)) else { return };
    let lost = run["not_measured"].to_string();
    assert!(lost.contains("except for how long they ran and were ready to"), "{lost}");
    assert!(lost.contains("that takes CAP_SYS_PTRACE, or to be the server's user"), "{lost}");
    assert_eq!(parts(&why), [], "{why}");
    assert!(printed.contains("not traced") && printed.contains("Suspects"), "{printed}");

    let path = place.only_run();
    let threads = output(&mut place.whyso(&["threads", path.to_str().unwrap()]));
    let table = text(&threads.stdout);
    assert!(table.contains("cpu %") && !table.contains("lock %"), "{table}");
}

#[test]
fn a_recording_and_the_thread_table_work_on_samples() {
    let server = OwnServer::start();
    let place = Place::new();
    let dsn = server.dsn("root", "");
    let load = ["load", "oltp-point-select", "--users", "4", "--transactions", "20000", "--rows", "1000"];
    let program = env!("CARGO_BIN_EXE_whyso");
    let record = ["record", "--dsn", &dsn, "--json", "--", program];
    let args = [&record[..], &load, &["--tables", "1", "--dsn", &dsn]].concat();
    let Some(mut recorded) = whyso(&place, NO_BPF, &args) else { return };
    let out = json_of(&output(&mut recorded));
    // The server's own count stands in for what the tracer did not see.
    let transactions = out["levels"][0]["transactions"].as_u64().unwrap();
    assert!((20_000..21_000).contains(&transactions), "{transactions}");
    let mean_ms = out["levels"][0]["latency_ms"]["mean"].as_f64().unwrap();
    assert!(mean_ms > 0.0 && mean_ms < 50.0, "{mean_ms} ms a request");

    let now = output(&mut whyso(&place, NO_BPF, &["threads", "--dsn", &dsn, "--for", "1s"]).unwrap());
    let table = text(&now.stdout);
    assert!(table.contains("lock %"), "{table}\n{}", text(&now.stderr));
}

#[test]
fn the_doctor_lists_what_to_grant_and_granting_that_is_enough() {
    let place = Place::new();
    let tells = |capabilities: &str| -> Option<String> {
        let checks = text(&output(&mut whyso(&place, capabilities, &["doctor"])?).stdout);
        Some(checks.lines().find(|line| line.contains("time budget")).unwrap().to_string())
    };
    let Some(refused) = tells(NO_BPF) else { return };
    assert!(refused.starts_with("missing") && refused.contains("setup-tracing"), "{refused}");
    assert!(refused.contains("the states of the server's threads are sampled from /proc"), "{refused}");
    let blind = tells(NO_LOOK).unwrap();
    assert!(blind.contains("of others it is only known when they ran"), "{blind}");
    if tells("+all").unwrap().starts_with("ok") {
        let granted = tells(GRANTED).unwrap();
        assert!(granted.starts_with("ok"), "{granted}");
    }
}

//! Experiments whose load several hosts send, and servers that are another one than these hosts mean.

// Runs alone: an experiment ends where response times exceed a bound.

mod common;

use std::path::PathBuf;
use std::time::Duration;

use common::lab::{Lab, can_be_lab};
use common::{finish, json_of, output, text, wait_until};

const BOUND: Duration = Duration::from_secs(150);

fn run<'a>(dsn: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = ["run", "oltp-read-write", "--dsn", dsn, "--hosts", "lab.toml", "--json", "--warmup", "1"];
    [&args[..], &["--tables", "1", "--rows", "1000", "--no-repeat", "--no-trace"], more].concat()
}

#[test]
#[ignore = "long: make test-hard"]
fn an_experiment_is_loaded_by_the_hosts_that_loaded_the_recording() {
    if !can_be_lab() {
        return;
    }
    let mut lab = Lab::start_with(-300, "may = [\"observe\", \"experiment\"]", &["c", "d"]);
    let dsn = lab.dsn();
    let out = json_of(&output(&mut lab.whyso("a", &run(&dsn, &["--users", "4", "--seconds", "4"]))));
    let path = PathBuf::from(out["path"].as_str().unwrap());
    let setting = |lab: &Lab| lab.sql("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit").trim().to_string();
    let before = setting(&lab);
    let prove =
        ["prove", path.to_str().unwrap(), "--dsn", &dsn, "--allow-experiments", "--json", "--budget", "60s"];
    let change = ["--versus", "--set", "innodb_flush_log_at_trx_commit=2"];
    let alone = text(&output(&mut lab.whyso("a", &[&prove[..], &change].concat())).stderr);
    assert!(alone.contains("load-c, load-d") && alone.contains("--hosts"), "{alone}");
    let of_hosts = lab.spawn("a", &[&prove[..], &["--hosts", "lab.toml"], &change].concat());
    // Both hosts send it, from addresses of their own.
    let clients = || {
        let sql = "SELECT DISTINCT SUBSTRING_INDEX(host, ':', 1) FROM information_schema.processlist \
                   WHERE user = 'lab' AND db = 'whyso' AND command = 'Execute' ORDER BY 1";
        lab.sql(sql).split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert!(wait_until(common::SOON, || clients() == ["10.98.0.3", "10.98.0.4"]), "{:?}", clients());
    let proofs = json_of(&finish(of_hosts, BOUND));
    let proof = &proofs["proofs"][0];
    let gain = &proof["measured_gain"];
    assert!(gain.is_object(), "{proofs}");
    assert!(gain["low"].as_f64().unwrap() > 0.3 && gain["high"].as_f64().unwrap() < 30.0, "{proofs}");
    assert_eq!((&proof["undone"], setting(&lab)), (&true.into(), before.clone()), "{proofs}");

    // A host whose target is another server takes no part.
    let ab =
        ["ab", "oltp-point-select", "--dsn", &dsn, "--hosts", "lab.toml", "--tables", "1", "--rows", "1000"];
    let ab = [&ab[..], &["--users", "2", "--set", "innodb_flush_log_at_trx_commit=1"], &change].concat();
    let other = lab.start_server();
    lab.kill_agent("c");
    let target =
        format!("[[target]]\nname = \"shop\"\ndsn = \"mysql://lab@10.98.0.2:{}/whyso\"\n", other.port);
    lab.write("agent-c.toml", &format!("may = [\"observe\", \"load\", \"experiment\"]\n{target}"));
    lab.start_agent("c", "load-c");
    let refused = output(&mut lab.whyso("a", &ab));
    let why = text(&refused.stderr);
    assert!(
        !refused.status.success() && why.contains("load-c") && why.contains("is another server"),
        "{why}"
    );

    // The right to change one server is none to change another one.
    lab.kill_agent("b");
    let server = format!("[[server]]\nname = \"shop\"\ndsn = \"{}\"\n", other.dsn("root", ""));
    lab.write("agent-b.toml", &format!("may = [\"observe\", \"experiment\"]\n{server}"));
    lab.start_agent("b", "db");
    let refused = output(&mut lab.whyso("a", &ab));
    let why = text(&refused.stderr);
    assert!(!refused.status.success() && why.contains("the server shop of db"), "{why}");
    assert_eq!(setting(&lab), before);
}

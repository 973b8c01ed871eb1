//! The file that names what the page records: add-ons, presets and processes in it, and what is wrong in it.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::served::{RunServer, with_runs};
use common::{Place, json_of, output, text, wait_until};
use serde_json::Value;

/// For a server to be reached and recorded, or to be put back.
const BOUND: Duration = Duration::from_secs(60);

fn write(place: &Place, servers: &str) -> String {
    let path = place.path().join("servers.toml");
    fs::write(&path, servers).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_string()
}

fn live_server(served: &RunServer, name: &str) -> Value {
    let (_, listed) = served.get("/live");
    let listed = listed["servers"].as_array().cloned().unwrap_or_default();
    listed.into_iter().find(|entry| entry["name"] == name).unwrap_or_default()
}

/// Records until `has_enough`, and returns the id of the run.
fn record(served: &RunServer, name: &str, has_enough: impl Fn(&str) -> bool) -> Result<String, String> {
    let (status, why) = served.send("POST", &format!("/live/{name}/start"), "");
    assert!(status < 300, "{status} {why}");
    let is_begun =
        || ["recording", "failed"].iter().any(|phase| live_server(served, name)["phase"] == *phase);
    assert!(wait_until(BOUND, is_begun), "{}", live_server(served, name));
    if live_server(served, name)["phase"] == "failed" {
        return Err(live_server(served, name)["words"].to_string());
    }
    assert!(wait_until(BOUND, || live_server(served, name)["run"].is_string()), "no run");
    let run = live_server(served, name)["run"].as_str().unwrap_or_default().to_string();
    assert!(wait_until(BOUND, || has_enough(&run)), "{run}");
    assert!(served.send("POST", &format!("/live/{name}/stop"), "").0 < 300);
    assert!(wait_until(BOUND, || live_server(served, name)["phase"] == "idle"));
    Ok(run)
}

#[test]
fn a_server_is_recorded_with_an_add_on_and_a_preset_which_is_put_back() {
    let place = with_runs(&[]);
    let start = ["server", "start", "--as", "shop", "--set", "performance_schema=ON"];
    let started = output(&mut place.whyso(&start));
    assert!(started.status.success(), "{}", text(&started.stderr));
    let listed = json_of(&output(&mut place.whyso(&["server", "list", "--json"])));
    let dsn = listed["started"][0]["dsn"].as_str().unwrap().to_string();
    let instruments = || {
        let socket = dsn.split("socket=").nth(1).unwrap();
        let user = dsn.trim_start_matches("mysql://").split('@').next().unwrap();
        let mut client = Command::new("mariadb");
        let sql = "SELECT NAME, ENABLED FROM performance_schema.setup_instruments ORDER BY 1";
        client.args(["--no-defaults", "--skip-ssl", "-N", "-u", user, "-S", socket, "-e", sql]);
        text(&output(&mut client).stdout)
    };
    let before = instruments();
    fs::write(
        place.path().join("own.toml"),
        "name = \"answer\"\ntitle = \"t\"\ncommand = [\"echo\", \"42\"]\n[[column]]\nname = \"n\"\nunit = \"1\"\n",
    )
    .unwrap();
    let more = "trace = false\ninterval_ms = 200\nadd_ons = [\"./own.toml\"]\npfs = \"synch\"\n";
    let file = write(&place, &format!("[[server]]\nname = \"shop\"\ndsn = \"{dsn}\"\n{more}"));
    let served = RunServer::start(&place, &["--servers", &file]);
    let found = |run: &str, text: &str| {
        served.get(&format!("/runs/{run}/catalogue?find={text}")).1["found"].as_u64().unwrap_or(0)
    };
    let run = record(&served, "shop", |run| found(run, "addon.answer") > 0 && before != instruments());
    let run = run.unwrap();
    assert_eq!(before, instruments());
    let about: Value =
        serde_json::from_slice(&fs::read(place.runs().join(run).join("run.json")).unwrap()).unwrap();
    assert_eq!(about["spec"]["performance_schema"]["asked"], "synch", "{}", about["spec"]);
    drop(served);
    assert!(output(&mut place.whyso(&["server", "stop", "shop"])).status.success());
}

#[test]
fn a_process_that_is_no_server_is_recorded() {
    let place = with_runs(&[]);
    let mut busy =
        Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
    let file = write(&place, &format!("[[server]]\nname = \"job\"\nprocess = {}\n", busy.id()));
    let served = RunServer::start(&place, &["--servers", &file]);
    let has_programs = |run: &str| {
        let (_, found) = served.get(&format!("/runs/{run}/catalogue?find=run_ns"));
        found["found"].as_u64().unwrap_or(0) > 0
    };
    let recorded = record(&served, "job", |run| {
        std::thread::sleep(Duration::from_secs(2));
        has_programs(run)
    });
    busy.kill().unwrap();
    busy.wait().unwrap();
    let run = match recorded {
        Ok(run) => run,
        Err(why) => {
            whyso_testing::tracer_not_tested(why);
            return;
        }
    };
    let about: Value =
        serde_json::from_slice(&fs::read(place.runs().join(run).join("run.json")).unwrap()).unwrap();
    assert!(about["spec"]["process"].is_string(), "{}", about["spec"]);
    assert_eq!(about["ended"]["how"], "complete", "{}", about["ended"]);
}

#[test]
fn what_is_wrong_in_the_file_is_one_sentence_before_anything_is_served() {
    let place = with_runs(&[]);
    let server = "[[server]]\nname = \"shop\"\ndsn = \"mysql://root@localhost/\"\n";
    for (more, words) in [
        ("add_ons = [\"vmstats\"]\n", "shop: "),
        ("add_ons = [\"vmstat\", \"vmstat\"]\n", "two add-ons are named vmstat"),
        ("add_ons = [\"./none.toml\"]\n", "none.toml"),
        ("pfs = \"everything\"\n", "everything"),
        ("pfs = \"synch\"\npfs_timing = \"maybe\"\n", "maybe"),
        ("pfs = \"synch\"\npfs_objects = [\".t\"]\n", ".t"),
        ("pfs = \"none\"\npfs_timing = \"yes\"\n", "shop: "),
        ("process = \"mysqld\"\n", "shop needs a dsn, a process, or the hosts"),
        ("trace_sql = true\ntrace = false\n", "trace_sql of shop needs trace"),
    ] {
        let file = write(&place, &format!("{server}{more}"));
        let refused = output(&mut place.whyso(&["serve", "--servers", &file, "--listen", "127.0.0.1:0"]));
        let message = text(&refused.stderr);
        assert!(message.contains(words) && message.contains("servers.toml"), "{more}: {message}");
        assert_eq!(message.trim().lines().count(), 1, "{more}: {message}");
        assert_eq!(refused.status.code(), Some(2), "{more}: {refused:?}");
    }
}

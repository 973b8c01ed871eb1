//! `--pfs`: what the Performance Schema is to count is set for a run, reported in it, and put back, also after `kill -9`.

mod common;

use std::fs;
use std::process::Command;
use std::time::Duration;

use common::{Place, SOON, for_each_build, json_of, kill, output, spawn, text, wait_until};
use serde_json::Value;

/// Bound on all builds together: past it, the rest is not tested.
const ALL: Duration = Duration::from_secs(180);

/// A server that was started to stay; it is stopped when this is dropped.
struct LoadedServer {
    place: Place,
    dsn: String,
}

impl LoadedServer {
    fn start(build: Option<&str>) -> LoadedServer {
        let place = Place::new();
        let mut start = vec!["server", "start", "--as", "server", "--set", "performance_schema=ON"];
        start.extend(build);
        let started = output(&mut place.whyso(&start));
        assert!(started.status.success(), "{}", text(&started.stderr));
        let listed = json_of(&output(&mut place.whyso(&["server", "list", "--json"])));
        let dsn = listed["started"][0]["dsn"].as_str().unwrap().to_string();
        LoadedServer { place, dsn }
    }

    fn sql(&self, sql: &str) -> String {
        let socket = self.dsn.split("socket=").nth(1).unwrap();
        let user = self.dsn.trim_start_matches("mysql://").split('@').next().unwrap();
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--skip-ssl", "-N", "-u", user, "-S", socket, "-e", sql]);
        let done = output(&mut client);
        assert!(done.status.success(), "{sql}: {}", text(&done.stderr));
        text(&done.stdout)
    }

    /// What every instrument and consumer is set to.
    fn setup(&self) -> String {
        self.sql(
            "SELECT NAME, ENABLED, TIMED FROM performance_schema.setup_instruments ORDER BY 1; \
             SELECT NAME, ENABLED FROM performance_schema.setup_consumers ORDER BY 1",
        )
    }

    fn run(&self, more: &[&str]) -> Command {
        let load = ["oltp-point-select", "--tables", "1", "--rows", "100", "--users", "2", "--warmup", "0"];
        let mut command = self.place.whyso(&["run"]);
        command.args(load).args(["--no-trace", "--dsn", &self.dsn]).args(more);
        command
    }

    fn record(&self, length: &str, preset: &str) -> Command {
        self.place.whyso(&["record", "--dsn", &self.dsn, "--for", length, "--no-trace", "--pfs", preset])
    }

    /// What the newest recording tells.
    fn recorded_setup(&self) -> Value {
        let runs = fs::read_dir(self.place.runs()).unwrap();
        let newest = runs.map(|entry| entry.unwrap().path()).max().unwrap();
        let run_json: Value = serde_json::from_slice(&fs::read(newest.join("run.json")).unwrap()).unwrap();
        run_json["spec"]["performance_schema"].clone()
    }
}

impl Drop for LoadedServer {
    fn drop(&mut self) {
        output(&mut self.place.whyso(&["server", "stop", "server"]));
    }
}

/// Presets, put-back and `kill -9` on one server.
fn everything(build: Option<&str>) {
    let server = LoadedServer::start(build);
    let before = server.setup();
    let run = output(&mut server.run(&["--seconds", "0.5", "--pfs", "global"]));
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_eq!(server.recorded_setup()["preset"], "global");
    assert!(server.setup() == before, "it was put back after the run");

    let dry = output(&mut server.run(&["--pfs", "global", "--pfs-timing", "no", "--dry-run"]));
    assert!(text(&dry.stdout).contains("UPDATE performance_schema.setup_instruments SET"), "{dry:?}");
    assert_eq!(server.setup(), before, "a dry run changes nothing");

    for preset in ["none", "default", "tables", "statements", "synch", "global", "thread"] {
        let done = output(&mut server.record("1s", preset));
        assert!(server.setup() == before, "{preset} was put back");
        if text(&done.stderr).contains("has no instrument that --pfs statements") {
            // MySQL 5.5
            continue;
        }
        assert!(done.status.success(), "{}", text(&done.stderr));
        let setup = server.recorded_setup();
        assert_eq!(setup["preset"], preset, "{setup}");
        let number = |name: &str| setup["in_force"][name].as_u64().unwrap();
        match preset {
            "none" => assert!(number("enabled") < 200 && number("timed") == 0, "{setup}"),
            "global" | "thread" => assert_eq!(number("enabled"), number("instruments")),
            _ => assert!(number("enabled") > 10, "{setup}"),
        }
        assert_eq!(setup["not_taken"], serde_json::json!([]), "{setup}");
    }

    for (preset, what) in [("not-started", "performance_schema=OFF"), ("compiled-out", "--server")] {
        let refused = output(&mut server.run(&["--pfs", preset]));
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(what), "{}", text(&refused.stderr));
    }

    // ended by force in mid-run, it leaves what it set; the next one puts that back
    for next in ["undo", "run"] {
        let mut child = spawn(&mut server.record("60s", "none"));
        assert!(wait_until(SOON, || server.setup() != before), "the preset is set");
        kill(child.id() as i32, libc::SIGKILL);
        child.wait().unwrap();
        assert!(server.setup() != before);
        let done = match next {
            "undo" => output(&mut server.place.whyso(&["server", "undo", "--dsn", &server.dsn])),
            _ => output(&mut server.run(&["--seconds", "0.5"])),
        };
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(server.setup() == before, "put back by {next}");
    }
    let nothing = output(&mut server.place.whyso(&["server", "undo", "--dsn", &server.dsn]));
    assert_eq!(text(&nothing.stdout), "nothing is left to be put back on this server\n");
}

#[test]
fn what_a_run_sets_is_reported_and_put_back_also_after_it_was_ended_by_force() {
    everything(None);
}

#[test]
#[ignore = "long: make test-hard"]
fn so_it_is_on_every_server_at_hand() {
    for_each_build(ALL, |name, build| {
        everything(build["tree"].as_str());
        println!("tested: {name}");
    });
}

#[test]
fn a_throw_away_server_is_started_for_the_preset() {
    let place = Place::new();
    let run = |preset: &str| {
        let short = ["--users", "1", "--seconds", "1", "--no-trace", "--json", "--pfs", preset];
        json_of(&output(&mut place.run(&short)))
    };
    let global = run("global").to_string();
    assert!(global.contains("The Performance Schema was asked for global: "), "{global}");
    let off = run("not-started").to_string();
    assert!(off.contains("asked for not-started; nothing was counted"), "{off}");
    place.assert_nothing_left();
}

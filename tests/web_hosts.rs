//! A web request's time over two hosts: Apache and PHP on one, the database on another, each with an agent.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::app::{self, can_be_app};
use common::lab::{DATABASE_FILE, Lab, can_be_lab};
use common::{finish, json_of, may_trace, output, text};
use serde_json::Value;

const BOUND: Duration = Duration::from_secs(150);
/// The host of the web server.
const WEB: &str = "c";

/// Makes the sample application's data on the lab's database.
fn make_calendar(lab: &Lab) {
    let sql = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../app/sql");
    let read = |name: &str| std::fs::read_to_string(sql.join(name)).unwrap();
    lab.sql("CREATE DATABASE calendar CHARACTER SET utf8mb4");
    lab.sql(&format!("USE calendar; {}{}", read("schema.sql"), read("data.sql")));
    lab.sql("CREATE USER calendar@'%'");
    lab.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON calendar.* TO calendar@'%'");
}

/// The application without its database; it ends with this.
struct App {
    stop: Command,
    printed: String,
}

impl App {
    fn start(lab: &Lab) -> App {
        let command = |what: &str| {
            let mut command = lab.whyso(WEB, &["server", "app", what]);
            command.env("WHYSO_APP_PARENT", lab.path(""));
            command
        };
        let mut start = command("start");
        let started = output(start.env("WHYSO_APP_DATABASE", format!("10.98.0.2:{}", lab.port())));
        assert!(started.status.success(), "{}", text(&started.stderr));
        App { stop: command("stop"), printed: text(&started.stdout) }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.stop.output();
    }
}

/// The application on one host and its database on another, each with an agent.
struct TwoHosts {
    // Ends before the lab.
    app: App,
    lab: Lab,
}

impl TwoHosts {
    fn begin() -> TwoHosts {
        let mut lab = Lab::begin(0, "may = [\"observe\"]", &[WEB]);
        // Root's programs run as nobody, who has to enter.
        std::fs::set_permissions(lab.path(""), std::fs::Permissions::from_mode(0o711)).unwrap();
        make_calendar(&lab);
        let app = App::start(&lab);
        let pid = |program| app::pid(&app.printed, program);
        let program =
            |name: &str, pid: &str| format!("[[program]]\nname = \"{name}\"\nprocess = \"{pid}\"\n");
        let settings = [program("apache", pid("httpd")), program("php", pid("php-fpm"))].concat();
        lab.join(WEB, "web", &settings);
        lab.write(
            "lab.toml",
            &format!("{DATABASE_FILE}[[host]]\nname = \"web\"\nprograms = [\"apache\", \"php\"]\n"),
        );
        TwoHosts { app, lab }
    }

    /// Loads a page with some numbers of users one after the other, and records both hosts meanwhile. Returns where, and by level the tiers, and
    /// the ratio of what they add up to to what the clients measured.
    fn recorded(&self, users: &[u32], options: &[&str]) -> (String, Vec<(Vec<Value>, f64)>) {
        let lab = &self.lab;
        let url = format!("{}event.php?id=1", text_url(&self.app.printed));
        let levels = users.iter().map(u32::to_string).collect::<Vec<_>>();
        let load = ["run", "--url", &url, "--users", &levels.join(","), "--seconds", "6", "--warmup", "2"];
        let run = lab.spawn(WEB, &[&load[..], &["--hosts", "lab.toml", "--json"], options].concat());
        let run = finish(run, BOUND);
        assert!(run.status.success(), "{}", text(&run.stderr));
        let run = json_of(&run);
        let path = run["path"].as_str().unwrap();
        println!("{}", text(&output(&mut lab.whyso("a", &["why", path])).stdout));
        let level = |(at, users): (usize, &String)| {
            let why = json_of(&output(&mut lab.whyso("a", &["why", path, "--users", users, "--json"])));
            let tiers = why["tiers"].as_array().unwrap_or_else(|| panic!("no tiers: {why}"));
            let counted_ms = tiers[0]["mean_ms"].as_f64().unwrap();
            let measured_ms = run["levels"][at]["latency_ms"]["mean"].as_f64().unwrap();
            println!("{users} users: clients measured {measured_ms} ms, the tiers have {counted_ms} ms");
            (tiers.clone(), counted_ms / measured_ms)
        };
        (path.to_string(), levels.iter().enumerate().map(level).collect())
    }
}

#[test]
fn the_time_of_a_web_request_is_divided_over_the_hosts_that_answer_it() {
    if !can_be_app() || !can_be_lab() || !may_trace() {
        return;
    }
    let hosts = TwoHosts::begin();
    let here = ["run", "--url", "http://127.0.0.1:1/", "--hosts", "lab.toml", "--process", "1"];
    let refused = output(&mut hosts.lab.whyso(WEB, &here));
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("leave out --dsn and --process"), "{}", text(&refused.stderr));
    let (path, mut levels) = hosts.recorded(&[4], &["--stacks"]);
    let (tiers, ratio) = levels.remove(0);
    let names: Vec<&str> = tiers.iter().map(|tier| tier["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[0].starts_with("web/") && names[0].contains("apache2"), "{names:?}");
    let lines = tiers[0]["lines"].as_array().unwrap();
    assert!(tiers[0]["page_ms"].is_number(), "Apache did not answer one request for each page: {tiers:?}");
    let of_database: Vec<&Value> = lines.iter().filter(|line| line["tier"] == "the database").collect();
    assert!(of_database.iter().any(|line| line["depth"] == 4 && line["part"] == "cpu"), "{lines:?}");
    assert!(!lines.iter().any(|line| line["is_unrecorded"] == true), "{lines:?}");
    let leaves = lines.iter().filter(|line| line["is_divided"] == false);
    let share: f64 = leaves.map(|line| line["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 0.03, "{share}: {lines:?}");
    // What the clients measured is what the tiers add up to.
    assert!((0.8..1.05).contains(&ratio), "{ratio}");
    // The page sleeps as if it asked a service.
    let functions = ["functions", &path, "--program", "web/php-fpm", "--by", "cpu,sleep", "--json"];
    let stacks = json_of(&output(&mut hosts.lab.whyso("a", &functions)));
    assert!(stacks["samples"].as_u64().unwrap() > 0 && stacks["waits"].as_u64().unwrap() > 0, "{stacks}");
}

#[test]
#[ignore = "long: make test-hard"]
fn over_two_hosts_tiers_and_clients_differ_by_five_percent_at_most() {
    if !can_be_app() || !can_be_lab() || !may_trace() {
        return;
    }
    let (_, levels) = TwoHosts::begin().recorded(&[1, 2, 4, 8, 16, 32, 64], &[]);
    let ratios: Vec<f64> = levels.into_iter().map(|(_, ratio)| ratio).collect();
    assert!(ratios.iter().all(|ratio| (ratio - 1.0).abs() <= 0.05), "{ratios:?}");
}

/// The address that the application printed.
fn text_url(printed: &str) -> &str {
    printed.lines().map(str::trim).find(|line| line.starts_with("http://")).unwrap()
}

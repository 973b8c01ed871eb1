//! A password that is passed in any way is nowhere in what the program leaves behind, prints or shows in the process list.

mod common;
#[path = "common/leaks.rs"]
mod leaks;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::capable::{USER, as_nobody, home, program_for_nobody};
use common::served::RunServer;
use common::{OwnServer, Place, wait_until};
use leaks::{ProcessList, found_in, found_in_bytes};

/// A password for each way to give one; the first is the right one.
fn canaries() -> Vec<String> {
    let mut random = [0_u8; 8];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    let random = u64::from_le_bytes(random);
    (0..9).map(|number| format!("Canary{number}x{random:016x}")).collect()
}

struct Case {
    server: OwnServer,
    place: Place,
    program: PathBuf,
    canaries: Vec<String>,
    found: Vec<String>,
}

impl Case {
    fn new(has_capabilities: bool) -> Option<Case> {
        let place = Place::new();
        let program = program_for_nobody(&place, has_capabilities)?;
        let canaries = canaries();
        let server = OwnServer::start();
        server.sql(&format!(
            "CREATE USER bench@127.0.0.1 IDENTIFIED BY '{}'; GRANT ALL ON *.* TO bench@127.0.0.1; CREATE USER other@127.0.0.1",
            canaries[0]
        ));
        Some(Case { server, place, program, canaries, found: Vec::new() })
    }

    fn dsn(&self, password: &str) -> String {
        format!("mysql://bench{password}@127.0.0.1:{}/", self.server.port)
    }

    /// Runs it to its end, and searches the process list meanwhile, and what was printed.
    fn run(&mut self, command: &mut Command, must_succeed: bool) {
        let name = format!("{:?}", command.get_args().take(1).collect::<Vec<_>>());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut messages = String::new();
        // By its first line, no password is shown any more.
        errors.read_line(&mut messages).unwrap();
        let list = ProcessList::watch(
            child.id(),
            self.canaries.clone(),
            &["/bin/sh -c", "sh -c", "true ", "mariadb "],
        );
        let rest = std::thread::spawn(move || {
            errors.read_to_string(&mut messages).map(|_| messages).unwrap_or_default()
        });
        let mut printed = String::new();
        child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        let messages = rest.join().unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() || !must_succeed, "{name}: {status}: {messages}");
        self.found.extend(list.into_leaks());
        self.found.extend(found_in_bytes(&format!("output of {name}"), printed.as_bytes(), &self.canaries));
        self.found.extend(found_in_bytes(
            &format!("messages of {name}"),
            messages.as_bytes(),
            &self.canaries,
        ));
    }

    fn command(&self, args: &[&str]) -> Command {
        as_nobody(&self.place, &self.program, args)
    }

    fn through_flags(&mut self) {
        let canaries = self.canaries.clone();
        let [dsn, knob, sql, shell, variable] = [0, 1, 2, 3, 4].map(|number| &canaries[number]);
        let dsn = self.dsn(&format!(":{dsn}"));
        let knob = format!("init_connect=SET @password='{knob}'");
        let sql = format!("SET PASSWORD FOR other@127.0.0.1 = PASSWORD('{sql}')");
        let shell = format!("!true --password={shell}");
        let variable = format!("!MYSQL_PWD={variable} true");
        let small = ["--tables", "1", "--rows", "100", "--warmup", "0", "--users", "1"];
        let run =
            ["run", "oltp-point-select", "--dsn", &dsn, "--seconds", "2", "--no-repeat", "--set", &knob];
        let at = ["--at", "300ms", &sql, "--at", "500ms", &shell, "--at", "700ms", &variable];
        self.run(&mut self.command(&[&run[..], &small, &at].concat()), true);
        let load = ["load", "oltp-point-select", "--dsn", &dsn, "--seconds", "1", "--csv", "load.csv"];
        self.run(&mut self.command(&[&load[..], &small].concat()), true);
        // In words that are not understood.
        self.run(&mut self.command(&["locks", "--dns", &dsn]), false);
        let wrong = format!("mysql://bench:{}@127.0.0.1:port/", canaries[5]);
        self.run(&mut self.command(&["locks", "--dsn", &wrong]), false);
        let denied = self.dsn(&format!(":{}", canaries[5]));
        self.run(&mut self.command(&["locks", "--dsn", &denied]), false);
        let port = format!("--mysql-port={}", self.server.port);
        let password = format!("--mysql-password={}", canaries[0]);
        let sysbench = [
            "sysbench",
            "oltp_point_select",
            "--mysql-host=127.0.0.1",
            &port,
            "--mysql-user=bench",
            &password,
        ];
        let rest = ["--mysql-db=whyso", "--tables=1", "--table-size=100", "--time=1", "run"];
        self.run(&mut self.command(&[&sysbench[..], &rest].concat()), false);
    }

    fn through_the_environment_and_files(&mut self) {
        let dsn = self.dsn("");
        let right = self.canaries[0].clone();
        let small = ["--tables", "1", "--rows", "100", "--warmup", "0", "--users", "1", "--seconds", "1"];
        let at = ["--no-repeat", "--at", "300ms", "!sleep 0.2"];
        let mut run = self.command(&[&["run", "oltp-point-select", "--dsn", &dsn][..], &small, &at].concat());
        self.run(run.env("MYSQL_PWD", &right), true);
        let options = home(&self.place).join(".my.cnf");
        fs::write(&options, format!("[client]\npassword={right}\n")).unwrap();
        fs::set_permissions(&options, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&options, Some(USER), Some(USER)).unwrap();
        self.run(&mut self.command(&["locks", "--dsn", &dsn]), true);
        self.run(&mut self.command(&["server", "undo", "--dsn", &dsn]), true);
        fs::remove_file(options).unwrap();
    }

    fn through_a_recorded_client(&mut self) {
        let dsn = self.dsn(&format!(":{}", self.canaries[0]));
        let port = format!("-P{}", self.server.port);
        let password = format!("--password={}", self.canaries[0]);
        let sql = format!(
            "SELECT SLEEP(1); SET PASSWORD FOR other@127.0.0.1 = PASSWORD('{}'); SELECT SLEEP(0.5)",
            self.canaries[6]
        );
        let client =
            ["--", "mariadb", "--no-defaults", "-h127.0.0.1", &port, "-ubench", &password, "-e", &sql];
        self.run(&mut self.command(&[&["record", "--dsn", &dsn][..], &client].concat()), true);
    }

    /// What is left behind, and what further commands make of it.
    fn artefacts(&mut self) {
        let runs = home(&self.place).join("runs");
        let recorded: Vec<PathBuf> =
            fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(recorded.len(), 3, "{recorded:?}");
        for run in &recorded {
            let run = run.to_str().unwrap();
            for args in [
                &["report", run, "--format", "markdown"][..],
                &["why", run],
                &["export", run, "--output", "export.csv"],
            ] {
                self.run(&mut self.command(args), false);
            }
        }
        self.found.extend(found_in(&home(&self.place), &self.canaries));
    }
}

fn assert_nothing_leaks(has_capabilities: bool) {
    let Some(mut case) = Case::new(has_capabilities) else { return };
    case.through_flags();
    case.through_the_environment_and_files();
    case.through_a_recorded_client();
    case.artefacts();
    case.found.sort();
    case.found.dedup();
    assert!(case.found.is_empty(), "{:#?}", case.found);
}

#[test]
fn no_password_leaks_from_a_plain_program() {
    assert_nothing_leaks(false);
}

#[test]
#[ignore = "long: make test-hard"]
fn no_password_leaks_from_a_program_with_capabilities() {
    assert_nothing_leaks(true);
}

#[test]
fn no_password_leaks_from_the_server_of_pages() {
    let place = Place::new();
    let server = OwnServer::start();
    let secrets = canaries();
    server.sql(&format!(
        "CREATE USER bench@127.0.0.1 IDENTIFIED BY '{}'; GRANT ALL ON *.* TO bench@127.0.0.1",
        secrets[0]
    ));
    fs::create_dir_all(place.runs()).unwrap();
    let names = place.path().join("servers.toml");
    let dsn = |password: &str| format!("mysql://bench:{password}@127.0.0.1:{}/", server.port);
    let dsn_entry = |name: &str, password: &str| {
        format!("[[server]]\nname = \"{name}\"\ndsn = \"{}\"\ninterval_ms = 200\n", dsn(password))
    };
    fs::write(&names, dsn_entry("right", &secrets[0]) + &dsn_entry("wrong", &secrets[1])).unwrap();
    fs::set_permissions(&names, fs::Permissions::from_mode(0o600)).unwrap();
    let served = RunServer::start(&place, &["--servers", names.to_str().unwrap()]);
    let mut answers = String::new();
    for path in ["/live/right/start", "/live/wrong/start"] {
        answers += &format!("{:?}", served.send("POST", path, "{}"));
    }
    let has_run =
        |runs: &Path| fs::read_dir(runs).unwrap().flatten().any(|run| run.path().join("run.json").exists());
    assert!(wait_until(Duration::from_secs(20), || has_run(&place.runs())), "{answers}");
    std::thread::sleep(Duration::from_millis(500));
    for path in ["/live", "/runs"] {
        answers += &format!("{:?}", served.get(path));
    }
    answers += &format!("{:?}", served.send("POST", "/live/right/stop", ""));
    let token = vec![served.token.clone()];
    drop(served);
    let mut found = found_in_bytes("answers", answers.as_bytes(), &secrets);
    let all = [&secrets[..], &token].concat();
    for folder in ["runs", "state", "cache"] {
        let folder = place.path().join(folder);
        if folder.exists() {
            found.extend(found_in(&folder, &all));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    assert!(answers.contains("right"), "{answers}");
}

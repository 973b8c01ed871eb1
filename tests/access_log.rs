//! Access logs of a real nginx and a real Apache: added up from a file, and recorded as they grow.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Place, finish, json_of, output, spawn, text, wait_until};
use serde_json::Value;

const BOUND: Duration = Duration::from_secs(20);
const FORMAT: &str = r#"$remote_addr [$time_local] $msec "$request" $status $body_bytes_sent $request_time $pid $connection "$http_user_agent""#;

/// An nginx of its own, which ends with this.
struct Nginx {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Nginx {
    /// `None`: nginx is not installed, which is reported.
    fn start(folder: &Path) -> Option<Nginx> {
        let folder = folder.join("nginx");
        fs::create_dir(&folder).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {name};"))
            .join(" ");
        let config = format!(
            "user root; daemon off; pid nginx.pid; error_log error.log; worker_processes 1; events {{ worker_connections 64; }}
             http {{ {temporary} log_format own '{FORMAT}'; access_log access.log own;
               server {{ listen 127.0.0.1:{port};
                 location / {{ return 200 \"found\\n\"; }}
                 location /broken {{ return 503; }}
                 location /gone {{ return 404; }}
               }} }}\n"
        );
        fs::write(folder.join("nginx.conf"), config).unwrap();
        let program = ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|path| Path::new(path).exists());
        let Some(program) = program else {
            whyso_testing::not_tested("nginx is not installed: apt-get install nginx");
            return None;
        };
        let mut command = Command::new(program);
        command.arg("-p").arg(&folder).args(["-c", "nginx.conf", "-e", "error.log"]);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let nginx = Nginx { child, port, folder };
        let answers = || TcpStream::connect(("127.0.0.1", nginx.port)).is_ok();
        let errors = || fs::read_to_string(nginx.folder.join("error.log")).unwrap_or_default();
        assert!(wait_until(BOUND, answers), "nginx does not answer: {}", errors());
        Some(nginx)
    }

    fn log(&self) -> String {
        self.folder.join("access.log").display().to_string()
    }

    /// Sends a request, and returns when its answer is complete.
    fn get(&self, path: &str) {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: a \"quoted\" one\r\nConnection: close\r\n\r\n"
        ));
    }

    fn send(&self, bytes: &str) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }

    fn logged_lines(&self) -> usize {
        fs::read_to_string(self.log()).map_or(0, |text| text.lines().count())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its master ends its worker when it is asked to, not when it is killed.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        if !wait_until(Duration::from_secs(5), || self.child.try_wait().is_ok_and(|status| status.is_some()))
        {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn line<'v>(found: &'v Value, name: &str) -> &'v Value {
    let lines = found["lines"].as_array().unwrap();
    lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("no {name} in {lines:#?}"))
}

#[test]
fn a_log_of_nginx_is_added_up_by_kind_process_and_status() {
    let place = Place::new();
    let Some(nginx) = Nginx::start(place.path()) else { return };
    for item in 1..=30 {
        nginx.get(&format!("/items/{item}?page={item}"));
    }
    nginx.get("/");
    nginx.get("/broken/1");
    nginx.get("/gone/by/a/scanner.php");
    nginx.send("\u{1b}[2J no request\r\n\r\n");
    // The connection that asked whether nginx is there sent nothing, which is not logged.
    assert!(wait_until(BOUND, || nginx.logged_lines() == 34), "{} lines", nginx.logged_lines());
    let log = nginx.log();
    let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"torn \x1b[2J line\n").unwrap();

    let args = ["access-log", &log, "--format", FORMAT];
    let found = json_of(&output(&mut place.whyso(&[&args[..], &["--json"]].concat())));
    assert_eq!((&found["total"]["requests"], &found["malformed"]), (&34.into(), &1.into()), "{found}");
    assert_eq!(found["first_malformed"]["line"], 35);
    let items = line(&found, "GET /items/{}?page");
    assert_eq!((&items["requests"], &items["timed"], &items["bytes"]), (&30.into(), &30.into(), &180.into()));
    assert_eq!(line(&found, "GET /broken/{}")["errors_5xx"], 1);
    assert_eq!(line(&found, "GET not found")["errors_4xx"], 1);
    assert_eq!((&found["total"]["errors_4xx"], &found["total"]["errors_5xx"]), (&2.into(), &1.into()));

    let by = |by: &str| json_of(&output(&mut place.whyso(&[&args[..], &["--json", "--by", by]].concat())));
    let processes = by("process");
    assert_eq!(processes["lines"].as_array().unwrap().len(), 1, "one worker: {processes}");
    assert_eq!(line(&by("status"), "status 200")["requests"], 31);

    let until = output(&mut place.whyso(&[&args[..], &["--json", "--until", "2020-01-01 00:00"]].concat()));
    assert_eq!(json_of(&until)["outside"], 34);
    let shown = text(&output(&mut place.whyso(&args)).stdout);
    println!("{shown}");
    assert!(shown.contains("34 requests") && shown.contains("1 malformed line") && !shown.contains('\u{1b}'));

    let wrong = output(&mut place.whyso(&["access-log", &log, "--format", "%Y"]));
    assert!(wrong.status.code() == Some(2) && text(&wrong.stderr).contains("%Y"), "{wrong:?}");
    let missing = output(&mut place.whyso(&["access-log", "no-such.log"]));
    assert!(text(&missing.stderr).contains("no-such.log"), "{missing:?}");
    let unknown = output(&mut place.whyso(&["access-log", "nginx/nginx.conf"]));
    assert!(text(&unknown.stderr).contains("--format"), "{unknown:?}");
}

/// The last value of a series in the recording. `None`: there is no such series.
fn last_value(place: &Place, run: &str, metric: &str, instance: &str) -> Option<f64> {
    let args = ["export", run, "--source", "access_log", "--metric", metric, "--instance", instance];
    let exported = text(&output(&mut place.whyso(&args)).stdout);
    exported.lines().skip(1).last()?.rsplit(',').next()?.parse().ok()
}

#[test]
fn requests_that_end_during_a_recording_are_counted_exactly_also_when_the_log_is_rotated() {
    let place = Place::new();
    let Some(nginx) = Nginx::start(place.path()) else { return };
    nginx.get("/before");
    let (log, pid) = (nginx.log(), nginx.child.id().to_string());
    let args = ["record", "--process", &pid, "--for", "6s", "--interval-ms", "200", "--json"];
    let child = spawn(place.whyso(&args).args(["--access-log", &log, "--log-format", FORMAT]));
    let is_recording = || output(&mut place.whyso(&["note", "requests begin"])).status.success();
    if !wait_until(BOUND, is_recording) {
        let ended = finish(child, BOUND);
        let shown = text(&ended.stderr);
        assert!(shown.contains("can't be watched here"), "{shown}");
        whyso_testing::tracer_not_tested(shown);
        return;
    }
    // The log is followed from its first reading on, and the window begins soon after.
    let path = place.only_run().display().to_string();
    let is_followed = || last_value(&place, &path, "malformed_lines", "access.log").is_some();
    assert!(wait_until(BOUND, is_followed), "the log is not followed");
    std::thread::sleep(Duration::from_secs(1));
    for item in 1..=20 {
        nginx.get(&format!("/items/{item}"));
    }
    nginx.get("/broken");
    fs::rename(&log, format!("{log}.1")).unwrap();
    nginx.get("/items/21");
    common::kill(nginx.child.id() as i32, libc::SIGUSR1);
    assert!(wait_until(BOUND, || Path::new(&log).exists()), "nginx opened no new log");
    for item in 22..=30 {
        nginx.get(&format!("/items/{item}"));
    }
    let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"no request\n").unwrap();
    let ended = finish(child, Duration::from_secs(60));
    let found = json_of(&ended);
    let run = found["path"].as_str().unwrap();

    let value = |metric: &str, instance: &str| last_value(&place, run, metric, instance);
    assert_eq!(value("requests", "all"), Some(31.0));
    assert_eq!(value("requests", "GET /items/{}"), Some(30.0));
    assert_eq!(value("requests", "GET /before"), None, "it ended before");
    assert_eq!(value("errors_5xx", "GET /broken"), Some(1.0));
    assert_eq!(value("malformed_lines", "access.log"), Some(1.0));
    assert!(value("p99_ns", "all").is_some());

    // The same requests by the recording's window, from the logs themselves.
    let in_window = |log: &str| {
        let args = ["access-log", log, "--format", FORMAT, "--run", run, "--json"];
        let found = json_of(&output(&mut place.whyso(&args)));
        (found["total"]["requests"].as_u64().unwrap(), found["outside"].as_u64().unwrap())
    };
    let ((old, outside), (new, _)) = (in_window(&format!("{log}.1")), in_window(&log));
    assert_eq!((old + new, outside), (31, 1), "/before is outside");
}

#[test]
fn logs_that_can_t_be_followed_are_refused() {
    let place = Place::new();
    fs::write(place.path().join("access.log"), "").unwrap();
    for (more, why) in [
        (&["--access-log", "no-such.log"][..], "can't be read"),
        (&["--access-log", "."], "is no file"),
        (&["--access-log", "access.log", "--access-log", "access.log"], "given twice"),
        (&["--access-log", "access.log", "--log-format", "%Y"], "%Y"),
        (&["--log-format", "combined"], "--access-log"),
    ] {
        let refused = output(place.whyso(&["record", "--machine", "--for", "1s"]).args(more));
        assert_eq!(refused.status.code(), Some(2), "{more:?}: {refused:?}");
        assert!(text(&refused.stderr).contains(why), "{more:?}: {}", text(&refused.stderr));
    }
}

/// Of the sample application's Apache.
const APACHE_FORMAT: &str = r#"%h %l %u %t \"%r\" %>s %b %P %X %D"#;

/// The sample application in Apache's own processes; it ends with this.
struct Apache {
    place: Place,
    printed: String,
}

impl Apache {
    /// `None`: Apache or its PHP is not installed, which is reported.
    fn start() -> Option<Apache> {
        let modules = fs::read_dir("/usr/lib/apache2/modules").into_iter().flatten().flatten();
        let has_php =
            modules.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("libphp"));
        if !has_php {
            whyso_testing::not_tested("there is no Apache with PHP: none of its logs");
            return None;
        }
        let place = Place::new();
        // Root's programs run as nobody, who has to enter.
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let mut apache = Apache { place, printed: String::new() };
        let started =
            output(&mut apache.whyso(&["server", "app", "start", "--php", "mod", "--max-clients", "4"]));
        assert!(started.status.success(), "{started:?}");
        apache.printed = text(&started.stdout).to_string();
        Some(apache)
    }

    fn whyso(&self, args: &[&str]) -> Command {
        let mut command = self.place.whyso(args);
        command.env("WHYSO_APP_PARENT", self.place.path());
        command
    }

    fn value(&self, begin: &str) -> &str {
        let line = self.printed.lines().find_map(|line| line.trim().strip_prefix(begin));
        line.unwrap_or_else(|| panic!("no {begin} in {}", self.printed)).trim()
    }

    fn log(&self) -> String {
        let folders = fs::read_dir(self.place.path()).unwrap().flatten();
        let mut logs = folders.map(|folder| folder.path().join("log/access.log")).filter(|log| log.exists());
        logs.next().expect("Apache's log").display().to_string()
    }

    fn pid(&self) -> &str {
        let mut programs = self.value("processes").split(", ");
        programs
            .find_map(|one| one.strip_prefix("httpd"))
            .unwrap_or_else(|| panic!("{}", self.printed))
            .trim()
    }

    /// Asks for a page. Returns the status, and how long the answer took.
    fn get(&self, path: &str) -> (u16, Duration) {
        let begun = Instant::now();
        let port: u16 = self.value("http://127.0.0.1:").trim_end_matches('/').parse().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let status = text(&answer).split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("{}", text(&answer))), begun.elapsed())
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        let _ = self.whyso(&["server", "app", "stop"]).output();
    }
}

/// The duration in microseconds that this share of all does not exceed.
fn quantile(durations: &mut [u64], share: f64) -> u64 {
    durations.sort_unstable();
    durations[((share * durations.len() as f64).ceil() as usize).max(1) - 1]
}

#[test]
fn a_log_of_apache_has_what_the_load_counted() {
    let Some(apache) = Apache::start() else { return };
    let log = apache.log();
    let before = fs::read_to_string(&log).unwrap().lines().count();
    let mut taken: Vec<u64> = Vec::new();
    for event in 1..=60 {
        let (status, time) = apache.get(&format!("/event.php?id={event}"));
        assert_eq!(status, 200);
        taken.push(time.as_micros() as u64);
    }
    (0..5).for_each(|_| assert_eq!(apache.get("/style.css").0, 200));
    (0..3).for_each(|_| assert_eq!(apache.get("/lib.php").0, 403));
    (0..2).for_each(|_| assert_eq!(apache.get("/no/such/page").0, 404));
    let lines = || fs::read_to_string(&log).unwrap();
    assert!(wait_until(BOUND, || lines().lines().count() == before + 70), "{}", lines());
    // Whatever asked before the load is not of it.
    let of_load: String = lines().lines().skip(before).map(|line| format!("{line}\n")).collect();
    fs::write(apache.place.path().join("load.log"), &of_load).unwrap();

    let args = ["access-log", "load.log", "--format", APACHE_FORMAT, "--json"];
    let found = json_of(&output(&mut apache.place.whyso(&args)));
    assert_eq!((&found["total"]["requests"], &found["malformed"]), (&70.into(), &0.into()), "{found}");
    assert_eq!((&found["total"]["errors_4xx"], &found["total"]["errors_5xx"]), (&5.into(), &0.into()));
    let events = line(&found, "GET /event.php?id");
    assert_eq!((&events["requests"], &events["timed"]), (&60.into(), &60.into()));
    assert_eq!(line(&found, "GET /lib.php")["errors_4xx"], 3);
    assert_eq!(line(&found, "GET not found")["errors_4xx"], 2);
    let ours = of_load.lines().filter(|line| line.contains("/event.php"));
    let mut logged: Vec<u64> = ours.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    for (name, share) in [("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99)] {
        let (exact, shown) = (quantile(&mut logged, share) as f64, events[name].as_f64().unwrap() / 1e3);
        assert!((exact..=exact * 1.011 + 1.0).contains(&shown), "{name}: {shown} of {exact} µs");
        let by_load = quantile(&mut taken, share) as f64;
        assert!(shown <= by_load * 1.011 + 1.0, "{name}: {shown} µs, and the client took {by_load}");
    }
    let (by_log, by_load) = (logged.iter().sum::<u64>() as f64, taken.iter().sum::<u64>() as f64);
    println!("the log has {:.0} % of the time that the client took", by_log / by_load * 100.0);
    assert!(by_log > 0.5 * by_load, "{by_log} of {by_load} µs");

    let by_process = json_of(&output(&mut apache.place.whyso(&[&args[..], &["--by", "process"]].concat())));
    let processes = by_process["lines"].as_array().unwrap();
    assert!((1..=4).contains(&processes.len()), "at most four workers: {by_process}");
    let guessed = json_of(&output(&mut apache.place.whyso(&[
        "access-log",
        "load.log",
        "--json",
        "--format",
        "common",
    ])));
    println!("without the added fields: {} of 70 requests", guessed["total"]["requests"]);
}

#[test]
fn a_recorded_log_stands_next_to_the_time_of_requests_to_its_own_processes() {
    let Some(apache) = Apache::start() else { return };
    let (log, is_over) = (apache.log(), AtomicBool::new(false));
    let args = ["record", "--dsn", apache.value("dsn"), "--process", apache.pid(), "--access-log", &log];
    let more = ["--log-format", APACHE_FORMAT, "--for", "5s"];
    std::thread::scope(|scope| {
        let user = |number: usize| {
            let (apache, is_over) = (&apache, &is_over);
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    apache.get(&format!("/event.php?id={}", number + 1));
                    apache.get("/lib.php");
                }
            }
        };
        let users: Vec<_> = (0..6).map(|number| scope.spawn(user(number))).collect();
        let ended = finish(spawn(&mut apache.whyso(&[&args[..], &more].concat())), Duration::from_secs(60));
        is_over.store(true, Ordering::Relaxed);
        users.into_iter().for_each(|user| user.join().unwrap());
        assert!(ended.status.success(), "{}", text(&ended.stderr));
    });
    let run = apache.place.only_run().display().to_string();
    let shown = text(&output(&mut apache.whyso(&["why", &run])).stdout).to_string();
    println!("{shown}");
    let why = json_of(&output(&mut apache.whyso(&["why", &run, "--json"])));
    let found = &why["access_logs"][0];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{found}"));
    assert_eq!(found["kinds"][0]["name"], "GET /event.php?id", "{found}");
    let (all, events) = (&found["all"], &found["kinds"][0]);
    assert!(
        number(&all["errors_4xx"]) >= 0.3 * number(&all["requests"]),
        "half of them are refused: {found}"
    );
    assert!(
        number(&events["p50_ms"]) <= number(&events["p99_ms"]) && number(&events["share"]) > 0.5,
        "{events}"
    );
    let in_kinds: f64 = found["kinds"].as_array().unwrap().iter().map(|kind| number(&kind["requests"])).sum();
    assert_eq!(in_kinds, number(&all["requests"]));

    // The log's processes are those that were recorded.
    let processes = found["processes"].as_array().unwrap();
    assert!(!processes.is_empty() && processes.iter().all(|one| one["program"] == "apache2"), "{found}");
    let (traced, tier) = (&found["traced"], &why["tiers"][0]);
    assert_eq!((&traced["is_by_process"], &traced["mean_ms"]), (&true.into(), &tier["mean_ms"]), "{found}");
    let rates = number(&all["requests_per_s"]) / number(&traced["requests_per_s"]);
    assert!((0.7..1.4).contains(&rates), "{rates} requests in the log for each that was traced: {found}");
    for part in ["Requests by access.log", "by the tracer", "GET /event.php?id", "By access.log,"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let below =
        shown.find("Where the time of a request to").unwrap() < shown.find("Requests by access.log").unwrap();
    assert!(below, "{shown}");

    // Four workers next to the one that manages them, and what each has.
    let workers = &why["workers"][0];
    assert_eq!(workers["program"], "apache2", "{why}");
    assert!((1.0..=4.0).contains(&number(&workers["workers"])), "{workers}");
    let (own, together) = (number(&workers["private_bytes"]), number(&workers["proportional_bytes"]));
    assert!(own > 1e5 && together > own, "{workers}");
    assert!(shown.contains("each of their own"), "{shown}");

    let md = output(&mut apache.whyso(&["report", &run, "--format", "md", "--output", "/dev/stdout"]));
    let md = text(&md.stdout).to_string();
    for part in [
        "## Requests by access.log",
        "| GET /event.php?id |",
        "## Where the time of a request to apache2 went",
    ] {
        assert!(md.contains(part), "{part} in {md}");
    }
    // Sources of the tracer hidden: the log stays, and nothing is compared.
    let hidden = json_of(&output(&mut apache.whyso(&["why", &run, "--json", "--without", "tracer"])));
    assert_eq!(hidden["access_logs"][0]["traced"], Value::Null, "{}", hidden["access_logs"]);
}

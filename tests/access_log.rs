//! Access logs of a real nginx: added up from a file, and recorded as they grow.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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

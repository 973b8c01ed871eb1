//! `whyso server app`: the sample application, started and asked for its pages.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{Place, output, text};

const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// Reports what can't be tested here, and returns the options that can.
fn options_to_test() -> Vec<Vec<&'static str>> {
    let is_there = |path: &str| Path::new(path).exists();
    let has = |folder: &str, prefix: &str| {
        let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
    };
    if !is_there("/usr/sbin/apache2") {
        whyso_testing::not_tested("there is no Apache: no sample application");
        return Vec::new();
    }
    let mut options = Vec::new();
    match has("/usr/lib/apache2/modules", "libphp") {
        true => options.push(vec!["--php", "mod", "--max-clients", "4"]),
        false => whyso_testing::not_tested("Apache has no PHP: no sample application in its processes"),
    }
    match has("/usr/sbin", "php-fpm") {
        true => options.push(vec!["--trouble", "hot-row", "--workers", "2"]),
        false => whyso_testing::not_tested("there is no PHP-FPM: no sample application behind it"),
    }
    match is_there("/usr/bin/memcached") {
        true => options.push(vec!["--php", "mod", "--sessions", "memcached", "--keep-alive", "off"]),
        false => whyso_testing::not_tested("there is no memcached: no sample application with it"),
    }
    options
}

/// Stops the application also if the test fails.
struct StopAtEnd(Command);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        // Where the test has stopped it, none is there.
        let _ = self.0.output();
    }
}

/// The answer to a request by HTTP/1.0, with its head.
fn page(port: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.set_read_timeout(Some(ANSWERS_WITHIN)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The value in a line "  NAME VALUE" of what was printed.
fn value<'a>(printed: &'a str, name: &str) -> &'a str {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {printed}")).trim()
}

#[test]
fn the_sample_application_is_started_asked_and_stopped() {
    let options_to_test = options_to_test();
    let place = Place::new();
    // Root's programs run as nobody, who has to enter.
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let whyso = |args: &[&str]| -> Command {
        let mut command = place.whyso(&[&["server", "app"], args].concat());
        command.env("WHYSO_APP_PARENT", place.path());
        command
    };
    for options in options_to_test {
        let started = output(&mut whyso(&[&["start"][..], &options].concat()));
        assert!(started.status.success(), "{started:?}");
        let printed = text(&started.stdout);
        let port = value(&printed, "http://127.0.0.1:").trim_end_matches('/').to_string();
        let _guard = StopAtEnd(whyso(&["stop"]));
        let home = page(&port, "/");
        assert!(home.starts_with("HTTP/1.1 200") && home.contains(" events</h1>"), "{home}");
        // With the trouble hot-row, a view is counted before the page is made.
        let seen = usize::from(options.contains(&"hot-row"));
        for views in [seen, seen + 1] {
            let event = page(&port, "/event.php?id=1");
            assert!(
                event.contains(&format!("{views} views")) && event.contains("Lecture number 1"),
                "{event}"
            );
        }
        assert!(page(&port, "/lib.php").starts_with("HTTP/1.1 403"));
        for (add_on, variable, series) in [
            ("httpd", "HTTPD_STATUS_URL", "workers_busy"),
            ("php-fpm", "PHP_FPM_STATUS_URL", "accepted_connections"),
            ("memcached", "MEMCACHED_ADDRESS", "curr_connections"),
        ] {
            if !printed.contains(variable) {
                continue;
            }
            let mut check = place.whyso(&["add-on", "check", add_on]);
            let checked = output(check.env(variable, value(&printed, variable)));
            assert!(text(&checked.stdout).contains(series), "{checked:?}");
        }
        let folder = value(&printed, "folder").to_string();
        let listed = output(&mut whyso(&["list"]));
        assert!(
            text(&listed.stdout).contains(&folder) && text(&listed.stdout).contains("mariadbd"),
            "{listed:?}"
        );
        let stopped = output(&mut whyso(&["stop"]));
        assert!(stopped.status.success(), "{stopped:?}");
        assert!(!Path::new(&folder).exists());
        assert!(TcpStream::connect(format!("127.0.0.1:{port}")).is_err(), "Apache still listens");
    }
    let none = output(&mut whyso(&["stop"]));
    assert!(text(&none.stderr).contains("no sample application was started"), "{none:?}");
}

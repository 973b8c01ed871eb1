//! `whyso load --url`: pages of a small site, good ones and bad ones.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::site::Site;
use common::{Place, output, text};
use serde_json::Value;

/// A scenario with a chain, cookies, a form and a value that is taken from an answer.
const SHOP: &str = r#"
begin = "login"
headers = { Accept-Language = "en" }

[values]
item = { from = 1, to = 50 }

[[page]]
name = "login"
path = "/login"
next = { account = 1.0 }

[[page]]
name = "account"
path = "/account"
goal_ms = 5000
next = { form = 0.5, gzip = 0.5 }

[[page]]
name = "form"
path = "/form"
take = [{ name = "token", after = 'name="token" value="', before = '"' }]
next = { buy = 1.0 }

[[page]]
name = "gzip"
path = "/gzip"
take = [{ name = "token", after = 'name="token" value="', before = '"' }]
next = { buy = 1.0 }

[[page]]
name = "buy"
path = "/buy"
form = { token = "{token}", item = "{item}" }
goal_ms = 5000
next = { account = 1.0 }
"#;

fn level(out: &Value) -> &Value {
    &out["levels"][0]
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// Counts of the only error that there was.
fn only_error(out: &Value) -> (String, u64) {
    let errors = level(out)["errors_by_code"].as_object().unwrap();
    assert_eq!(errors.len(), 1, "{errors:?}");
    let (code, count) = errors.iter().next().unwrap();
    (code.clone(), whole(count))
}

#[test]
fn a_page_is_loaded_by_every_engine_over_connections_that_stay_open() {
    let (place, site) = (Place::new(), Site::start());
    let mut connections = 0;
    for engine in ["threads", "epoll", "io-uring"] {
        let out = site.load(&place, "/", &["--users", "4", "--engine", engine]);
        let transactions = whole(&level(&out)["transactions"]);
        assert!(transactions > 50, "{engine}: {transactions}");
        assert_eq!(whole(&level(&out)["errors"]), 0, "{engine}: {out}");
        assert_eq!(level(&out)["kinds"][0]["kind"], "page");
        let now = site.count(&place, "connections");
        // Four users, one look whether the site is there, and one for the counts.
        assert!(now - connections <= 6, "{engine}: {}", now - connections);
        connections = now;
    }
}

#[test]
fn without_keep_alive_each_request_has_a_connection_of_its_own() {
    let (place, site) = (Place::new(), Site::start());
    for engine in ["threads", "epoll"] {
        let before = site.count(&place, "connections");
        let out = site.load(&place, "/", &["--users", "2", "--engine", engine, "--no-keep-alive"]);
        let transactions = whole(&level(&out)["transactions"]);
        assert_eq!(whole(&level(&out)["errors"]), 0, "{out}");
        let connections = site.count(&place, "connections") - before;
        assert!(transactions > 20 && connections >= transactions, "{transactions} over {connections}");
    }
}

#[test]
fn an_open_loop_asks_when_pages_are_due() {
    let (place, site) = (Place::new(), Site::start());
    let out = site.load(&place, "/slow?ms=50", &["--rate", "40", "--users", "16", "--seconds", "2"]);
    let due = whole(&level(&out)["arrivals"]["due"]);
    assert!((40..130).contains(&due), "{due}");
    assert!(level(&out)["latency_ms"]["p50"].as_f64().unwrap() >= 50.0, "{out}");
    // One user can't keep up with it: what waits for it counts.
    let out = site.load(&place, "/slow?ms=100", &["--rate", "40", "--users", "1", "--seconds", "2"]);
    assert!(level(&out)["latency_ms"]["max"].as_f64().unwrap() > 500.0, "{out}");
}

#[test]
fn a_scenario_follows_its_chain_with_cookies_forms_and_values() {
    let (place, site) = (Place::new(), Site::start());
    fs::write(place.path().join("shop.toml"), SHOP).unwrap();
    for engine in ["threads", "epoll", "io-uring"] {
        let out = site.load(&place, "/", &["shop.toml", "--users", "3", "--engine", engine]);
        assert_eq!(whole(&level(&out)["errors"]), 0, "{engine}: {}", level(&out)["errors_by_code"]);
        assert_eq!(level(&out)["workload"], "shop.toml");
        for kind in level(&out)["kinds"].as_array().unwrap() {
            // A user begins once, which may be before the window.
            assert!(whole(&kind["transactions"]) > 0 || kind["kind"] == "login", "{engine}: {kind}");
        }
        assert_eq!(level(&out)["slo"].as_array().unwrap().len(), 2);
        // Each purchase is redirected to the page of thanks: two requests of one transaction.
        assert!(whole(&level(&out)["queries"]) > whole(&level(&out)["transactions"]));
    }
    assert!(site.count(&place, "GET /thanks") > 0);
    assert_eq!(site.count(&place, "POST /thanks"), 0);
}

#[test]
fn each_page_passes_or_fails_its_goal_in_the_table() {
    let (place, site) = (Place::new(), Site::start());
    let pages = "[[page]]\nname = 'quick'\npath = '/home'\ngoal_ms = 10000\nweight = 3\n\
                 [[page]]\nname = 'late'\npath = '/slow?ms=50'\ngoal_ms = 10\n\
                 [[page]]\nname = 'broken'\npath = '/error'\ngoal_ms = 10000\n";
    fs::write(place.path().join("goals.toml"), pages).unwrap();
    // The address has a path, which stands before those of the pages.
    let url = format!("{}/shop", site.url);
    let args = ["load", "goals.toml", "--url", &url, "--users", "2", "--seconds", "1", "--warmup", "0"];
    let out = output(&mut place.whyso(&args));
    let shown = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{shown}{}", text(&out.stderr));
    for word in ["average", "max", "90th", "required", "HTTP 503"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    for (page, verdict) in [("quick", "PASS"), ("late", "FAIL"), ("broken", "FAIL")] {
        let mut lines = shown.lines().filter(|line| line.split_whitespace().any(|word| word == page));
        assert!(lines.any(|line| line.contains(verdict)), "{page}: {shown}");
    }
}

#[test]
fn bad_answers_are_counted_by_kind_and_do_not_end_the_load() {
    let (place, site) = (Place::new(), Site::start());
    for (path, code) in [
        ("/error", "HTTP 503"),
        ("/nowhere", "HTTP 404"),
        ("/garbage", "HTTP answer not understood"),
        ("/cut", "HTTP answer cut"),
        ("/circle", "HTTP too many redirects"),
        ("/away", "HTTP redirect to another site"),
        ("/account", "HTTP 403"),
    ] {
        for engine in ["threads", "epoll"] {
            let out = site.load(&place, path, &["--users", "2", "--engine", engine, "--seconds", "0.5"]);
            let (found, count) = only_error(&out);
            assert!(found == code && count > 1, "{path} on {engine}: {found} {count} times");
            assert_eq!(whole(&level(&out)["transactions"]), 0, "{path}");
            assert_eq!(out["cut_short"], Value::Null, "{path}: {out}");
        }
    }
    assert_eq!(site.count(&place, "GET /elsewhere.invalid"), 0);
}

#[test]
fn answers_that_are_slow_or_endless_are_bounded() {
    let (place, site) = (Place::new(), Site::start());
    for engine in ["threads", "epoll"] {
        for path in ["/slow?ms=20000", "/trickle"] {
            let more = ["--users", "2", "--engine", engine, "--timeout", "300ms", "--seconds", "1.5"];
            let out = site.load(&place, path, &more);
            let (code, count) = only_error(&out);
            assert!(code == "HTTP no answer in time" && (2..=12).contains(&count), "{code} {count}");
        }
    }
    let out = site.load(&place, "/endless", &["--users", "1", "--seconds", "1.5"]);
    assert_eq!(only_error(&out).0, "HTTP answer too large");
}

#[test]
fn connections_that_the_site_ends_are_opened_again() {
    let (place, site) = (Place::new(), Site::start());
    for engine in ["threads", "epoll", "io-uring"] {
        let out = site.load(&place, "/old", &["--users", "2", "--engine", engine, "--seconds", "0.5"]);
        assert_eq!(whole(&level(&out)["errors"]), 0, "{engine}: {}", level(&out)["errors_by_code"]);
        assert!(whole(&level(&out)["transactions"]) > 5, "{engine}: {out}");
        // Each third request meets a connection that ends: it is counted, and asked once more.
        let out = site.load(&place, "/twice", &["--users", "2", "--engine", engine, "--seconds", "0.5"]);
        let transactions = whole(&level(&out)["transactions"]);
        let (code, count) = only_error(&out);
        assert_eq!(code, "HTTP closed before the answer");
        assert!(transactions > count && whole(&level(&out)["retries"]) + 2 >= count, "{engine}: {out}");
    }
}

#[test]
fn a_site_that_is_not_there_or_a_wrong_file_is_refused_with_what_to_do() {
    let (place, site) = (Place::new(), Site::start());
    let refused = |args: &[&str]| {
        let out = output(&mut place.whyso(args));
        assert!(!out.status.success());
        text(&out.stderr)
    };
    assert!(refused(&["load", "--url", "http://127.0.0.1:1/"]).contains("check that the server runs"));
    assert!(refused(&["load", "--url", "shop.example"]).contains("http://127.0.0.1:8080/"));
    assert!(refused(&["load", "--url", "http://me:secret@a/"]).contains("a user or a password"));
    let both = refused(&["load", "--url", &site.url, "--dsn", "mysql://root@localhost/x"]);
    assert!(both.contains("--dsn"), "{both}");
    fs::write(place.path().join("wrong.toml"), "[[page]]\nname = 'a'\npath = '/{b}'\n").unwrap();
    assert!(refused(&["load", "wrong.toml"]).contains("--url"));
    let wrong = refused(&["load", "wrong.toml", "--url", &site.url]);
    assert!(wrong.contains("wrong.toml: page 'a' uses the value 'b'"), "{wrong}");
    let slo = refused(&["load", "--url", &site.url, "--slo", "home:p99=1s"]);
    assert!(slo.contains("it has page"), "{slo}");
}

/// Options under these headings of `whyso load --help`, with a value where they take one.
fn options_under(place: &Place, headings: &[&str]) -> Vec<(String, Option<String>)> {
    let help = text(&output(&mut place.whyso(&["load", "--help"])).stdout);
    let (mut options, mut is_under) = (Vec::new(), false);
    for line in help.lines() {
        if !line.starts_with(' ') && line.ends_with(':') {
            is_under = headings.contains(&line.trim_end_matches(':'));
        }
        let Some(from) = line.find("--").filter(|from| is_under && *from <= 6) else { continue };
        let mut words = line[from..].split_whitespace();
        let name = words.next().unwrap_or_default();
        let value = words.next().map(|value| if value == "<SIZE>" { "1GiB" } else { "1" }.to_string());
        options.push((name.split(['=', '[']).next().unwrap_or_default().to_string(), value));
    }
    options
}

#[test]
fn every_option_that_is_only_for_sql_is_refused_by_its_name() {
    let (place, site) = (Place::new(), Site::start());
    let headings = ["Server", "Data set", "Workload options, as sysbench names them"];
    let mut options = options_under(&place, &headings);
    options.retain(|(name, _)| name != "--client-cpus");
    assert!(options.len() >= 26, "{options:?}");
    for (name, value) in [("--query", "SELECT 1"), ("--rounds", "3"), ("--idle-connections", "2")] {
        options.push((name.to_string(), Some(value.to_string())));
    }
    options.extend(["--describe", "--compress"].map(|name| (name.to_string(), None)));
    options.push(("--placement".to_string(), Some("pinned".to_string())));
    for (name, value) in options {
        let mut args = vec!["load", "--url", &site.url, "--seconds", "1", &name];
        args.extend(value.as_deref());
        let out = output(&mut place.whyso(&args));
        let refused = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{name}: {refused}");
        let sentence = refused.lines().next().unwrap_or_default();
        assert!(sentence.contains(&format!("'{name}")) && sentence.contains("--url"), "{name}: {refused}");
    }
    // What both kinds of load have is not refused.
    let out = site.load(&place, "/", &["--client-cpus", "0", "--reconnect-every", "5", "--connections", "2"]);
    assert_eq!(whole(&level(&out)["errors"]), 0, "{out}");
}

#[test]
fn an_address_with_a_query_is_no_secret() {
    let (place, site) = (Place::new(), Site::start());
    let out = site.run(&place, "/?id=7", &[]);
    assert!(
        out.status.success() && !text(&out.stderr).contains("others may have seen"),
        "{}",
        text(&out.stderr)
    );
    let out = site.run(&place, "/?id=7&token=geheim", &[]);
    assert!(text(&out.stderr).contains("others may have seen"), "{}", text(&out.stderr));
}

/// A certificate for localhost that only itself vouches for, and its key.
fn certificate(place: &Place) -> Option<(PathBuf, PathBuf)> {
    let (certificate, key) = (place.path().join("site.pem"), place.path().join("site.key"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    made.is_ok_and(|output| output.status.success()).then_some((certificate, key))
}

#[test]
fn https_is_verified_unless_any_certificate_is_to_be_trusted() {
    let place = Place::new();
    let Some((certificate, key)) = certificate(&place) else {
        whyso_testing::not_tested("openssl is needed: apt-get install openssl");
        return;
    };
    let site = Site::start_with("https", &[&certificate, &key]);
    let refused = site.run(&place, "/", &["--users", "2"]);
    assert!(!refused.status.success());
    assert!(text(&refused.stderr).contains("certificate"), "{}", text(&refused.stderr));
    let ca = certificate.to_str().unwrap();
    for engine in ["threads", "epoll", "io-uring"] {
        for more in [&["--ca", ca][..], &["--insecure"], &["--insecure", "--no-keep-alive"]] {
            let args = [&["--users", "2", "--engine", engine, "--seconds", "0.5"], more].concat();
            let out = site.load(&place, "/form", &args);
            assert_eq!(whole(&level(&out)["errors"]), 0, "{engine}: {}", level(&out)["errors_by_code"]);
            assert!(whole(&level(&out)["transactions"]) > 3, "{engine} {more:?}: {out}");
        }
    }
}

//! `whyso serve` and `whyso runs`, over recordings that are made here, by plain HTTP.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use common::{Place, output, text, wait_until};
use serde_json::{Value, json};
use whyso_record::data::{Event, Kind, Reading, SeriesKey, Status, Value as Number};
use whyso_record::run::{Ended, RunInfo};
use whyso_record::{Options, Recorder};

const S: i64 = 1_000_000_000;
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{1b}[31m";
const BOUND: Duration = Duration::from_secs(60);

/// Ten minutes: a counter of 50 a second with one burst, a gauge, and text that means harm.
fn record(dir: &Path, id: &str) {
    let recorder = Recorder::create(dir, Options::default()).unwrap();
    let key = |metric: &str, kind, instance: &str| SeriesKey {
        host: "server".into(),
        source: "status".into(),
        metric: metric.into(),
        instance: instance.into(),
        kind,
        unit: "1".into(),
    };
    let counter = recorder.series(&key("Questions", Kind::Counter, ""));
    let busy = recorder.series(&key("waits", Kind::Counter, "busy"));
    let idle = recorder.series(&key("waits", Kind::Counter, HOSTILE));
    let gauge = recorder.series(&key("Threads_running", Kind::Gauge, ""));
    for second in 0..600i64 {
        let burst = if second >= 300 { 10_000 } else { 0 };
        let values = vec![
            (counter, Number::Int(second * 50 + burst)),
            (busy, Number::Int(second * 7)),
            (idle, Number::Int(3)),
            (gauge, Number::Int(second % 10)),
        ];
        let end_ns = second * S + 1_000;
        recorder.reading(Reading {
            source: "status".into(),
            begin_ns: second * S,
            end_ns,
            status: Status::Ok,
            values,
        });
    }
    recorder.event(Event { t_ns: 5 * S, host: String::new(), kind: "error".into(), text: HOSTILE.into() });
    let run = RunInfo {
        id: id.to_string(),
        spec: json!({ "workload": HOSTILE }),
        anchors: vec![whyso_clock::Anchor {
            monotonic_ns: 0,
            wall_ns: 1_700_000_000 * S,
            ..whyso_clock::Anchor::now()
        }],
        ended: Some(Ended::Complete { at_ns: 600 * S }),
        ..RunInfo::default()
    };
    recorder.set_run(&run);
    recorder.finish().unwrap();
}

struct Served {
    child: Child,
    port: u16,
    token: String,
}

impl Served {
    fn start(place: &Place, more: &[&str]) -> Served {
        let runs = place.runs();
        let mut args = vec!["serve", "--runs", runs.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        args.extend(more);
        let mut child = place.whyso(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().split_once("/#token=").expect(&line);
        let port = address.strip_prefix("http://127.0.0.1:").expect(&line).parse().unwrap();
        Served { child, port, token: token.to_string() }
    }

    /// The status, the head and the body of an answer.
    fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> (u16, String, Vec<u8>) {
        self.ask_bytes(method, path, headers, body.as_bytes())
    }

    fn ask_bytes(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> (u16, String, Vec<u8>) {
        let length = format!("Content-Length: {}", body.len());
        self.ask_raw(method, path, &[headers, &[&*length]].concat(), body)
    }

    /// The length of what is sent is among the headers.
    fn ask_raw(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> (u16, String, Vec<u8>) {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            request.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        for header in headers {
            request.push_str(&format!("{header}\r\n"));
        }
        request.push_str("\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        // What is refused early is not read to its end.
        let _ = socket.write_all(body);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        let split = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(answer[..split].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), answer[split + 4..].to_vec())
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, body) = self.ask("GET", &format!("/api/v1{path}"), &[&self.bearer()], "");
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    fn send(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let headers = [&*self.bearer(), "Content-Type: application/json"];
        let (status, _, body) = self.ask(method, &format!("/api/v1{path}"), &headers, body);
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn with_runs(ids: &[&str]) -> Place {
    let place = Place::new();
    fs::create_dir_all(place.runs()).unwrap();
    for id in ids {
        record(&place.runs().join(id), id);
    }
    place
}

#[test]
fn nothing_is_told_without_the_token_by_another_name_or_to_another_site() {
    let place = with_runs(&["one"]);
    let served = Served::start(&place, &[]);
    let bearer = served.bearer();
    let status = |path: &str, headers: &[&str]| served.ask("GET", path, headers, "").0;
    for path in
        ["/api/v1/runs", "/api/v1/runs/one", "/api/v1/runs/one/log", "/api/v1/bookmarks", "/api/v1/nothing"]
    {
        assert_eq!(status(path, &[]), 401, "{path}");
        assert_eq!(status(path, &["Authorization: Bearer wrong"]), 401, "{path}");
        assert_eq!(status(path, &[&bearer, "Host: evil.example"]), 403, "{path}");
        assert_eq!(status(path, &[&bearer, "Origin: http://evil.example"]), 403, "{path}");
        assert_eq!(status(path, &[&bearer, "Sec-Fetch-Site: cross-site"]), 403, "{path}");
    }
    assert_eq!(status("/", &["Host: evil.example"]), 403);
    assert_eq!(status("/api/v1/runs", &[&bearer]), 200);
    assert_eq!(served.ask("DELETE", "/api/v1/runs/one", &[], "").0, 401);
    assert!(place.runs().join("one").is_dir());

    let (status, head, _) = served.ask("POST", "/api/v1/session", &[&bearer], "");
    assert_eq!(status, 204);
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    // The head is in lower case here, the token is not.
    let cookie = format!("Cookie: whyso_{}={}", served.port, served.token);
    assert_eq!(served.ask("GET", "/api/v1/runs", &[&cookie], "").0, 200);
    assert_eq!(served.ask("POST", "/api/v1/session", &[], "").0, 401);
}

#[test]
fn the_page_may_run_nothing_but_its_own_script() {
    let place = with_runs(&[]);
    let served = Served::start(&place, &[]);
    for path in ["/", "/runs/whatever", "/compare?first=a", "/%3Cscript%3E"] {
        let (status, head, body) = served.ask("GET", path, &[], "");
        assert_eq!(status, 200, "{path}");
        let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("http:"), "{policy}");
        assert!(head.contains("cache-control: no-store") && head.contains("x-frame-options: deny"), "{head}");
        assert!(String::from_utf8(body).unwrap().contains("<div id=\"app\">"));
    }
    assert_eq!(served.ask("POST", "/", &[], "").0, 405);
    assert_eq!(served.ask("GET", "/api/v2/runs", &[], "").0, 404);
}

#[test]
fn a_run_is_found_by_its_name_alone() {
    let place = with_runs(&["one"]);
    fs::write(place.path().join("secret"), "x").unwrap();
    fs::create_dir(place.runs().join(".hidden")).unwrap();
    let served = Served::start(&place, &[]);
    for id in [
        "..",
        "%2e%2e",
        "..%2f..%2fetc",
        "one%2f..%2fone",
        "%2fetc",
        "one%00",
        ".hidden",
        "secret",
        "on",
        "x".repeat(5000).as_str(),
    ] {
        for rest in ["", "/log", "/explained", "/series?numbers=0&from_s=0&to_s=1&px=100"] {
            let (status, _) = served.get(&format!("/runs/{id}{rest}"));
            assert!(status == 404 || status == 400, "{id}{rest}: {status}");
        }
    }
    assert_eq!(served.get("/runs/one").0, 200);
}

#[test]
fn a_window_of_a_series_is_drawn_whole_and_no_spike_is_lost() {
    let place = with_runs(&["one"]);
    let served = Served::start(&place, &[]);
    let (_, head) = served.get("/runs/one");
    let number = |metric: &str, instance: &str| {
        let all = head["series"].as_array().unwrap();
        all.iter().find(|one| one["metric"] == metric && one["instance"] == instance).unwrap()["slot"].clone()
    };
    let questions = number("Questions", "");
    let drawn = |more: &str| {
        let (status, lines) = served.get(&format!("/runs/one/series?json=true&{more}"));
        assert_eq!(status, 200, "{lines}");
        lines
    };
    let column = |lines: &Value, place: usize| -> Vec<f64> {
        let column = lines["columns"][place].as_array().unwrap();
        column.iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect()
    };
    let few = drawn(&format!("numbers={questions}&from_s=10&to_s=20&px=400"));
    assert_eq!(few["lines"][0]["band"], false);
    assert!(column(&few, 1).iter().all(|rate| (rate - 50.0).abs() < 1e-6), "{few}");
    let many = drawn(&format!("numbers={questions}&from_s=0&to_s=600&px=50"));
    assert_eq!((&many["lines"][0]["band"], &many["lines"][0]["count"]), (&json!(true), &json!(50)));
    let greatest = column(&many, 5);
    assert!((greatest.iter().copied().fold(0.0, f64::max) - 10_050.0).abs() < 1.0, "{greatest:?}");
    assert!(column(&many, 1).iter().all(|median| (median - 50.0).abs() < 1e-6));
    let raw = drawn(&format!("numbers={questions}&from_s=100&to_s=110&px=400&mode=raw"));
    assert!(column(&raw, 1).contains(&5_000.0), "{raw}");

    let both = format!("{},{}", number("waits", HOSTILE), number("waits", "busy"));
    let top = drawn(&format!("numbers={both}&from_s=0&to_s=600&px=400&top=1"));
    assert_eq!((&top["lines"][0]["number"], &top["left"]), (&number("waits", "busy"), &json!(1)));
    let sum = drawn(&format!("numbers={both}&from_s=10&to_s=500&px=400&sum=true"));
    assert!(column(&sum, 1).iter().all(|rate| (rate - 7.0).abs() < 1e-6), "{sum}");
    let raw = drawn(&format!("numbers={both}&from_s=10&to_s=20&px=400&sum=true&mode=raw"));
    // The mean of each second: it lies between two readings.
    assert!(column(&raw, 1).contains(&(3.0 + 7.0 * 11.5)), "{raw}");

    let (status, _, body) = served.ask(
        "GET",
        &format!("/api/v1/runs/one/series?numbers={questions}&from_s=10&to_s=20&px=400"),
        &[&served.bearer()],
        "",
    );
    let length = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
    let told: Value = serde_json::from_slice(&body[4..4 + length]).unwrap();
    let count = told["lines"][0]["count"].as_u64().unwrap() as usize;
    assert_eq!((status, body.len()), (200, 4 + length + count * 16));
}

#[test]
fn what_makes_no_sense_is_refused_in_one_sentence() {
    let place = with_runs(&["one"]);
    let served = Served::start(&place, &[]);
    for query in [
        "",
        "numbers=&from_s=0&to_s=1&px=100",
        "numbers=a&from_s=0&to_s=1&px=100",
        "numbers=0&from_s=1&to_s=0&px=100",
        "numbers=0&from_s=nan&to_s=1&px=100",
        "numbers=0&from_s=0&to_s=inf&px=100",
        "numbers=0&from_s=0&to_s=1e300&px=100",
        "numbers=0&from_s=0&to_s=1&px=0",
        "numbers=0&from_s=0&to_s=1&px=999999999",
        "numbers=0&from_s=0&to_s=1&px=100&mode=sql",
        "numbers=0&from_s=0&to_s=1&px=100&mode=per_transaction",
    ] {
        let (status, _) = served.get(&format!("/runs/one/series?{query}"));
        assert_eq!(status, 400, "{query}");
    }
    let many = vec!["0"; 401].join(",");
    assert_eq!(served.get(&format!("/runs/one/series?numbers={many}&from_s=0&to_s=1&px=100")).0, 400);
    for number in ["4000000", "2147483648", "4294967295"] {
        let (status, why) = served.get(&format!("/runs/one/series?numbers={number}&from_s=0&to_s=1&px=100"));
        assert_eq!(status, 404, "{why}");
        assert!(why["error"].as_str().unwrap().contains("no series"), "{why}");
    }
    assert_eq!(served.get("/runs/one/tables?from_s=5&to_s=5").0, 400);
    assert_eq!(served.get("/runs/one/blocks/99").0, 404);
    assert_eq!(served.get("/compare?first=one&second=").0, 400);
    let (status, why) = served.get("/compare?first=one&second=one");
    assert_eq!(status, 400, "{why}");
    assert_eq!(served.send("POST", "/runs/one/notes", "{\"at_s\":5,\"text\":\"  \"}").0, 400);
    assert_eq!(served.send("POST", "/runs/one/notes", "{\"at_s\":5,\"text\":\"\\u0019\"}").0, 400);
    assert_eq!(served.send("PUT", "/bookmarks", "{\"name\":\"x\",\"chart\":[]}").0, 400);
    assert_eq!(served.send("PUT", "/bookmarks", &"x".repeat(2 << 20)).0, 413);
}

#[test]
fn notes_and_sets_of_charts_are_kept_and_hostile_text_stays_text() {
    let place = with_runs(&["one"]);
    let served = Served::start(&place, &[]);
    let (_, list) = served.get("/runs");
    assert_eq!(list["runs"][0]["workload"], HOSTILE);
    let note = json!({ "at_s": 12.5, "text": HOSTILE }).to_string();
    assert_eq!(served.send("POST", "/runs/one/notes", &note).0, 201);
    let events = served.get("/runs/one/events").1;
    let noted =
        events["events"].as_array().unwrap().iter().find(|event| event["kind"] == "note").unwrap().clone();
    assert!((noted["t_ns"].as_i64().unwrap() - 12_500_000_000).abs() < 2_000, "{noted}");
    assert!(noted["text"].as_str().unwrap().starts_with("</script><img"));

    let set = json!({ "name": "../mine", "chart": [{ "title": "t", "series": [{ "source": "s", "metric": "m" }] }] });
    assert_eq!(served.send("PUT", "/bookmarks", &set.to_string()).0, 201);
    let sets = served.get("/bookmarks").1;
    let mine = sets["sets"].as_array().unwrap().iter().find(|one| one["own"] == true).unwrap().clone();
    let key = mine["key"].as_str().unwrap();
    let toml = served.ask("GET", &format!("/api/v1/bookmarks/{key}/toml"), &[&served.bearer()], "").2;
    assert!(String::from_utf8(toml.clone()).unwrap().starts_with("name = \"../mine\""));
    assert_eq!(served.send("DELETE", &format!("/bookmarks/{key}"), "").0, 204);
    let headers = [&*served.bearer(), "Content-Type: text/plain"];
    let (status, _, _) =
        served.ask("POST", "/api/v1/bookmarks/import", &headers, std::str::from_utf8(&toml).unwrap());
    assert_eq!(status, 201);
    assert_eq!(fs::read_dir(place.runs().join("charts")).unwrap().count(), 1);
}

#[test]
fn a_run_is_removed_when_it_is_asked_for_and_the_list_says_what_was_found() {
    let place = with_runs(&["one", "two"]);
    let served = Served::start(&place, &[]);
    assert!(wait_until(BOUND, || {
        let list = served.get("/runs").1;
        list["verdicts_coming"] == false
            && list["runs"].as_array().unwrap().iter().all(|run| run["verdict"].is_string())
    }));
    assert_eq!(served.send("DELETE", "/runs/one", "").0, 200);
    assert_eq!(served.send("DELETE", "/runs/one", "").0, 404);
    assert!(!place.runs().join("one").exists() && place.runs().join("two").is_dir());
    assert_eq!(served.get("/runs").1["runs"].as_array().unwrap().len(), 1);
}

/// What the description says of the API, and what the server does.
#[test]
fn the_description_is_of_what_is_answered() {
    let place = with_runs(&["one"]);
    let served = Served::start(&place, &[]);
    let (status, described) = served.get("/openapi.json");
    assert_eq!((status, &described["openapi"]), (200, &json!("3.1.0")));
    for (path, methods) in described["paths"].as_object().unwrap() {
        let address = ["{id}", "{number}", "{key}", "{name}"]
            .iter()
            .zip(["one", "0", "none", "none"])
            .fold(format!("/api/v1{path}"), |address, (name, value)| address.replace(name, value));
        let (status, head, body) = served.ask("PATCH", &address, &[&served.bearer()], "");
        assert_eq!(status, 405, "{path}");
        let allowed = head.lines().find_map(|line| line.strip_prefix("allow: ")).expect(&head);
        let allowed: Vec<&str> = allowed.split(',').map(str::trim).filter(|one| *one != "head").collect();
        let mut known: Vec<&str> = methods.as_object().unwrap().keys().map(String::as_str).collect();
        known.sort_by_key(|method| allowed.iter().position(|one| one == method));
        assert_eq!(known, allowed, "{path}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["error"].as_str().unwrap().starts_with("this address takes no PATCH, but "), "{body}");
        for (method, operation) in methods.as_object().unwrap() {
            for status in ["401", "403"] {
                assert!(operation["responses"][status].is_object(), "{method} {path} {status}");
            }
        }
    }
}

#[test]
fn bounds_are_where_the_description_has_them() {
    let place = with_runs(&["one"]);
    let served = Served::start(&place, &[]);
    let drawn = |more: &str| served.get(&format!("/runs/one/series?json=true&from_s=0&to_s=9&{more}")).0;
    let many = |count: usize| vec!["0"; count].join(",");
    for (asked, status) in [
        ("numbers=0&px=16".to_string(), 200),
        ("numbers=0&px=4096&top=400".into(), 200),
        (format!("numbers={}&px=16", many(400)), 200),
        ("numbers=0&px=15".into(), 400),
        ("numbers=0&px=4097".into(), 400),
        ("numbers=0&px=16&top=401".into(), 400),
        ("numbers=0&px=16&top=-1".into(), 400),
        ("numbers=4294967296&px=16".into(), 400),
        (format!("numbers={}&px=16", many(401)), 400),
    ] {
        assert_eq!(drawn(&asked), status, "{asked:.60}");
    }
    let number = |limit: &str| served.get(&format!("/runs/one/catalogue?limit={limit}"));
    assert_eq!(number("0").1["series"], json!([]));
    assert_eq!((number("500").0, number("501").0, number("x").0), (200, 400, 400));
}

#[test]
fn whoever_refuses_does_so_in_one_form() {
    let place = with_runs(&["one"]);
    let served = Served::start(&place, &[]);
    let bearer = served.bearer();
    let json = "Content-Type: application/json";
    let asked: [(&str, &str, &[&str], &str, u16); 10] = [
        ("GET", "/runs/one/series", &[], "", 400),
        ("GET", "/runs/%ff", &[], "", 400),
        ("GET", "/runs/one/blocks/x", &[], "", 400),
        ("GET", "/nothing", &[], "", 404),
        ("PATCH", "/runs", &[], "", 405),
        ("POST", "/runs/one/notes", &[json], "{", 400),
        ("POST", "/runs/one/notes", &[json], "{\"text\":5}", 400),
        ("POST", "/runs/one/notes", &[json], "{\"text\":\"a\",\"at\":5}", 400),
        ("POST", "/runs/one/notes", &[], "{\"text\":\"a\"}", 415),
        ("POST", "/bookmarks/import", &[json], "name = 1", 415),
    ];
    for (method, path, headers, body, wanted) in asked {
        let headers = [&[&*bearer], headers].concat();
        let (status, head, body) = served.ask(method, &format!("/api/v1{path}"), &headers, body);
        assert_eq!(status, wanted, "{method} {path}");
        assert!(head.contains("content-type: application/json"), "{head}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["error"].as_str().is_some_and(|why| !why.is_empty()), "{body}");
        assert_eq!(body.as_object().unwrap().len(), 1);
    }
}

#[test]
fn runs_are_pruned_backed_up_and_taken_in_by_the_api() {
    let place = with_runs(&["one", "two"]);
    let served = Served::start(&place, &[]);
    let bearer = served.bearer();
    let tar = "Content-Type: application/x-tar";
    let backup = |query: &str| served.ask("GET", &format!("/api/v1/runs/backup{query}"), &[&bearer], "");
    for (query, status) in [("?ids=", 400), ("?ids=none", 404), ("?ids=..", 404), ("?ids=one,none", 404)] {
        assert_eq!(backup(query).0, status, "{query}");
    }
    let (status, head, all) = backup("");
    assert!(status == 200 && head.contains("content-type: application/x-tar"), "{head}");
    assert!(
        head.contains("filename=\"whyso-2-runs.tar\"") && head.contains("transfer-encoding: chunked"),
        "{head}"
    );
    assert!(backup("?ids=one").1.contains("filename=\"one.tar\""));
    let all = unchunked(&all);

    let take =
        |kind: &str, sent: &[u8]| served.ask_bytes("POST", "/api/v1/runs/import", &[&bearer, kind], sent);
    assert_eq!(take("Content-Type: text/plain", &all).0, 415);
    assert_eq!(take(tar, b"no archive").0, 400);
    assert_eq!(take(tar, &all[..all.len() / 2]).0, 400);
    let told = |(status, _, body): (u16, String, Vec<u8>)| -> Value {
        assert_eq!(status, 200);
        serde_json::from_slice(&body).unwrap()
    };
    assert_eq!(told(take(tar, &all)), json!({ "imported": [], "there_already": ["one", "two"] }));
    assert_eq!(served.send("DELETE", "/runs/one", "").0, 200);
    assert_eq!(told(take(tar, &all)), json!({ "imported": ["one"], "there_already": ["two"] }));
    assert_eq!(served.get("/runs/one").0, 200);
    assert_eq!(fs::read_dir(place.runs()).unwrap().count(), 2, "nothing else is left");
    let huge = "Content-Length: 99999999999999";
    assert_eq!(served.ask_raw("POST", "/api/v1/runs/import", &[&bearer, tar, huge], b"").0, 413);

    for (body, status) in [
        ("{\"size\":\"much\"}", 400),
        ("{\"size\":5}", 400),
        ("{}", 400),
        ("{\"size\":\"1KiB\",\"yes\":1}", 400),
        ("{\"size\":\"1KiB\"}", 200),
    ] {
        assert_eq!(served.send("POST", "/runs/two/prune", body).0, status, "{body}");
    }
    assert_eq!(served.send("POST", "/runs/none/prune", "{\"size\":\"1KiB\"}").0, 404);
    let (_, pruned) = served.send("POST", "/runs/two/prune", "{\"size\":\"1KiB\"}");
    assert!(pruned["freed_bytes"] == 0 && pruned["bytes"].as_u64().unwrap() > 0, "{pruned}");

    let going = Recorder::create(&place.runs().join("going"), Options::default()).unwrap();
    going.set_run(&RunInfo::default());
    assert!(wait_until(BOUND, || served.send("POST", "/runs/going/prune", "{\"size\":\"1KiB\"}").0 == 409));
    assert_eq!(backup("?ids=one,going").0, 409);
    assert_eq!(backup("").0, 200, "those that have ended");
    going.finish().unwrap();
}

/// Without the sizes that stand before the pieces of an answer.
fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
}

#[test]
fn an_import_that_breaks_off_leaves_nothing() {
    let place = with_runs(&["one"]);
    let served = Served::start(&place, &[]);
    let all = unchunked(&served.ask("GET", "/api/v1/runs/backup", &[&served.bearer()], "").2);
    let other = with_runs(&[]);
    let served = Served::start(&other, &[]);
    let mut socket = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
    let head = format!(
        "POST /api/v1/runs/import HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}\r\nContent-Type: application/x-tar\r\nContent-Length: {}\r\n\r\n",
        served.port,
        served.bearer(),
        all.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    socket.write_all(&all[..all.len() / 2]).unwrap();
    let coming = || fs::read_dir(other.runs()).unwrap().count();
    assert!(wait_until(BOUND, || coming() == 1), "it is being taken in");
    drop(socket);
    assert!(wait_until(BOUND, || coming() == 0), "what came is removed");
}

#[test]
fn what_was_found_is_kept_for_the_next_start() {
    let place = with_runs(&["one"]);
    let verdict = |served: &Served| served.get("/runs").1["runs"][0]["verdict"].clone();
    let first = Served::start(&place, &[]);
    assert!(wait_until(BOUND, || verdict(&first).is_string()));
    let found = verdict(&first);
    let file = place.path().join("cache/whyso/verdicts.json");
    assert!(wait_until(BOUND, || file.is_file()));
    drop(first);
    let second = Served::start(&place, &[]);
    assert_eq!(verdict(&second), found, "at once");
    drop(second);
    fs::write(&file, "{ damaged").unwrap();
    let third = Served::start(&place, &[]);
    assert!(wait_until(BOUND, || verdict(&third) == found));
}

#[test]
fn a_file_of_servers_that_others_can_read_is_refused_by_its_own_sentence() {
    let place = with_runs(&[]);
    let servers = place.path().join("servers.toml");
    fs::write(&servers, "").unwrap();
    fs::set_permissions(&servers, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let refused =
        output(&mut place.whyso(&["serve", "--servers", "servers.toml", "--listen", "127.0.0.1:0"]));
    let told = text(&refused.stderr);
    assert!(told.contains("the servers' passwords") && !told.contains("token"), "{told}");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn an_address_that_is_taken_and_a_folder_that_is_none_are_told() {
    let place = with_runs(&[]);
    let served = Served::start(&place, &[]);
    let taken = output(&mut place.whyso(&["serve", "--listen", &format!("127.0.0.1:{}", served.port)]));
    assert!(text(&taken.stderr).contains("is in use: give another address with --listen"), "{taken:?}");
    let none = output(&mut place.whyso(&["serve", "--runs", "nowhere", "--listen", "127.0.0.1:0"]));
    assert!(text(&none.stderr).contains("is no folder"), "{none:?}");
    let token = place.path().join("token");
    fs::write(&token, "short").unwrap();
    let open = output(&mut place.whyso(&[
        "serve",
        "--token-file",
        token.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ]));
    assert!(!open.status.success(), "{open:?}");
}

#[test]
fn runs_are_backed_up_taken_in_pruned_and_removed() {
    let place = with_runs(&["one", "two"]);
    let done = |args: &[&str]| {
        let done = output(&mut place.whyso(args));
        assert!(done.status.success(), "{args:?}: {done:?}");
        text(&done.stdout).to_string()
    };
    assert!(done(&["runs"]).contains("one") && done(&["runs", "list", "--json"]).contains("\"bytes\""));
    done(&["runs", "backup", "-o", "all.tar"]);
    let asked = output(&mut place.whyso(&["runs", "rm", "one"]));
    assert!(text(&asked.stderr).contains("add --yes"), "{asked:?}");
    done(&["runs", "rm", "one", "--yes"]);
    assert!(!place.runs().join("one").exists());
    let unknown = output(&mut place.whyso(&["runs", "rm", "one", "--yes"]));
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
    assert!(done(&["runs", "import", "all.tar"]).contains("took in 1 run, left 1 run alone"));
    assert!(place.runs().join("one").is_dir());
    done(&["runs", "prune", "--size", "1KiB"]);
    assert_eq!(whyso_record::Recording::open(&place.runs().join("one")).unwrap().run().id, "one");
}

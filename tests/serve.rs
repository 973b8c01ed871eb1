//! `whyso serve`, over recordings that the test writes, by plain HTTP.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use common::served::{BOUND, HOSTILE, RunServer, with_runs};
use common::{output, text, wait_until};
use serde_json::{Value, json};

#[test]
fn nothing_is_shown_without_the_token_by_another_name_or_to_another_site() {
    let place = with_runs(&["one"]);
    let served = RunServer::start(&place, &[]);
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
    assert!(!cookie.contains(&served.token.to_lowercase()), "the token is in the cookie: {cookie}");
    let session = format!("Cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(served.ask("GET", "/api/v1/runs", &[&session], "").0, 200);
    let token = format!("Cookie: whyso_{}={}", served.port, served.token);
    assert_eq!(served.ask("GET", "/api/v1/runs", &[&token], "").0, 401);
    assert_eq!(served.ask("POST", "/api/v1/session", &[], "").0, 401);
}

#[test]
fn the_page_may_run_nothing_but_its_own_script() {
    let place = with_runs(&[]);
    let served = RunServer::start(&place, &[]);
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
    let served = RunServer::start(&place, &[]);
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
    let served = RunServer::start(&place, &[]);
    let (_, head) = served.get("/runs/one");
    let number = |metric: &str, instance: &str| {
        let all = head["series"].as_array().unwrap();
        all.iter().find(|series| series["metric"] == metric && series["instance"] == instance).unwrap()["slot"].clone()
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
    let series: Value = serde_json::from_slice(&body[4..4 + length]).unwrap();
    let count = series["lines"][0]["count"].as_u64().unwrap() as usize;
    assert_eq!((status, body.len()), (200, 4 + length + count * 16));
}

#[test]
fn what_makes_no_sense_is_refused_in_one_sentence() {
    let place = with_runs(&["one"]);
    let served = RunServer::start(&place, &[]);
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
fn notes_and_sets_of_charts_are_stored_and_hostile_text_stays_text() {
    let place = with_runs(&["one"]);
    let served = RunServer::start(&place, &[]);
    let (_, list) = served.get("/runs");
    assert_eq!(list["runs"][0]["workload"], HOSTILE);
    let note = json!({ "at_s": 12.5, "text": HOSTILE }).to_string();
    assert_eq!(served.send("POST", "/runs/one/notes", &note).0, 201);
    let events = served.get("/runs/one/events").1;
    let noted =
        events["events"].as_array().unwrap().iter().find(|event| event["kind"] == "note").unwrap().clone();
    assert!((noted["t_ns"].as_i64().unwrap() - 12_500_000_000).abs() < 2_000, "{noted}");
    assert!(noted["text"].as_str().unwrap().starts_with("</script><img"));

    let change = |before: &str, after: Value| {
        let body = json!({ "t_ns": noted["t_ns"], "before": before, "text": after });
        served.send("PUT", "/runs/one/notes", &body.to_string()).0
    };
    let as_read = noted["text"].as_str().unwrap();
    assert_eq!(change("another text", json!("x")), 404);
    assert_eq!(change(as_read, json!(" \n")), 400);
    assert_eq!(change(as_read, json!("it was <b>me</b>")), 204);
    assert_eq!(served.get("/runs").1["runs"][0]["notes"], json!(["it was <b>me</b>"]));
    assert_eq!(change("it was <b>me</b>", Value::Null), 204);
    assert_eq!(served.get("/runs").1["runs"][0]["notes"], json!([]));

    let set = json!({ "name": "../mine", "chart": [{ "title": "t", "series": [{ "source": "s", "metric": "m" }] }] });
    assert_eq!(served.send("PUT", "/bookmarks", &set.to_string()).0, 201);
    let sets = served.get("/bookmarks").1;
    let mine = sets["sets"].as_array().unwrap().iter().find(|set| set["own"] == true).unwrap().clone();
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
fn a_run_gets_and_loses_its_name_and_tags_and_a_strange_one_is_refused() {
    let place = with_runs(&["one"]);
    let served = RunServer::start(&place, &[]);
    let set = |name: &str, tags: Value| {
        served.send("PUT", "/runs/one/labels", &json!({ "name": name, "tags": tags }).to_string())
    };
    let before = json!({ "name": "before the index", "tags": ["a", "shop"] });
    assert_eq!(set(" before the index ", json!(["shop", "a", "shop"])), (200, before.clone()));
    assert_eq!(served.get("/runs/one/labels"), (200, before));
    for (name, tags, why) in
        [("a\u{1b}[2J", json!([]), "a name has"), ("a", json!(["two words"]), "no tag"), ("a", json!(5), "")]
    {
        let (status, answer) = set(name, tags);
        assert!(status == 400 && answer["error"].as_str().unwrap().contains(why), "{answer}");
    }
    assert_eq!(served.get("/runs").1["runs"][0]["name"], "before the index");
    assert_eq!(set("", json!([])).0, 200);
    assert_eq!(served.get("/runs").1["runs"][0]["tags"], json!([]));
    assert_eq!(served.send("PUT", "/runs/nothing/labels", "{\"name\":\"\",\"tags\":[]}").0, 404);
    // Only a run that is being recorded has a last minute.
    let (status, why) = served.get("/runs/one/now");
    assert!(status == 409 && why["error"].as_str().unwrap().contains("has ended"), "{why}");
}

#[test]
fn a_run_is_removed_on_request_and_the_list_shows_what_was_found() {
    let place = with_runs(&["one", "two"]);
    let served = RunServer::start(&place, &[]);
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
    let served = RunServer::start(&place, &[]);
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
        let allowed: Vec<&str> =
            allowed.split(',').map(str::trim).filter(|method| *method != "head").collect();
        let mut documented: Vec<&str> = methods.as_object().unwrap().keys().map(String::as_str).collect();
        documented.sort_by_key(|method| allowed.iter().position(|listed| listed == method));
        assert_eq!(documented, allowed, "{path}");
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
    let served = RunServer::start(&place, &[]);
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
    let served = RunServer::start(&place, &[]);
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
fn what_was_found_is_stored_for_the_next_start() {
    let place = with_runs(&["one"]);
    let verdict = |served: &RunServer| served.get("/runs").1["runs"][0]["verdict"].clone();
    let first = RunServer::start(&place, &[]);
    assert!(wait_until(BOUND, || verdict(&first).is_string()));
    let found = verdict(&first);
    let file = place.path().join("cache/whyso/verdicts.json");
    assert!(wait_until(BOUND, || file.is_file()));
    drop(first);
    let second = RunServer::start(&place, &[]);
    assert_eq!(verdict(&second), found, "at once");
    drop(second);
    fs::write(&file, "{ damaged").unwrap();
    let third = RunServer::start(&place, &[]);
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
    let message = text(&refused.stderr);
    assert!(message.contains("the servers' passwords") && !message.contains("token"), "{message}");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn an_address_in_use_and_a_folder_that_is_none_are_reported() {
    let place = with_runs(&[]);
    let served = RunServer::start(&place, &[]);
    let second_server =
        output(&mut place.whyso(&["serve", "--listen", &format!("127.0.0.1:{}", served.port)]));
    assert!(
        text(&second_server.stderr).contains("is in use: give another address with --listen"),
        "{second_server:?}"
    );
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

/// Asks on a connection that stays open; whether there is an answer.
fn is_answered(mut connection: &TcpStream) -> bool {
    connection.set_read_timeout(Some(BOUND)).unwrap();
    if connection.write_all(b"GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\n\r\n").is_err() {
        return false;
    }
    let mut answer = BufReader::new(connection);
    let mut body_bytes = 0;
    loop {
        let mut line = String::new();
        if answer.read_line(&mut line).is_ok_and(|length| length > 0) {
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                return answer.read_exact(&mut vec![0; body_bytes]).is_ok();
            }
            if let Some(length) = line.strip_prefix("content-length: ") {
                body_bytes = length.parse().unwrap();
            }
        } else {
            return false;
        }
    }
}

/// Whether the server has closed it: silence is not that.
fn is_closed(connection: &TcpStream) -> bool {
    connection.set_nonblocking(true).unwrap();
    match connection.peek(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn silent_connections_keep_nobody_from_an_answer() {
    const CONNECTIONS_MAX: usize = 256;
    /// Less than a connection may be silent for another reason.
    const SOON: Duration = Duration::from_secs(5);
    let place = with_runs(&["one"]);
    let served = RunServer::start(&place, &[]);
    let open = |_| TcpStream::connect(("127.0.0.1", served.port)).unwrap();
    let talking = open(0);
    let mut silent: Vec<_> = (0..200).map(open).collect();
    assert!(is_answered(&talking));
    silent.extend((0..100).map(open));
    let begin = Instant::now();
    assert_eq!(served.get("/runs").0, 200);
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert!(is_answered(&talking), "the first one is closed, though it was not silent longest");
    // For each one more than there may be, the one that was silent longest is closed.
    let beyond = 1 + silent.len() + 1 - CONNECTIONS_MAX;
    let closed = || silent.iter().filter(|stream| is_closed(stream)).count();
    assert!(wait_until(SOON, || closed() >= beyond), "{} of {beyond} are closed", closed());
}

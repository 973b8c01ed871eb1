//! A web request's time over Apache, PHP-FPM and MariaDB: what clients measured is what the tiers add up to, and a planted trouble is named.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::app::{App, can_be_app};
use common::{finish, output, text};
use serde_json::Value;

const ANSWERS_WITHIN: Duration = Duration::from_secs(20);
const BOUND: Duration = Duration::from_secs(60);
const USERS: usize = 8;

/// Asks for a page, and returns how long the answer took, in milliseconds.
fn ask(port: u16, path: &str) -> f64 {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(ANSWERS_WITHIN)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    begun.elapsed().as_secs_f64() * 1e3
}

/// What was recorded while users asked for pages, and their own times in milliseconds over about the same window.
fn recorded(app: &App, path: impl Fn(usize) -> String + Sync) -> (Value, f64) {
    let (port, is_over) = (app.port(), AtomicBool::new(false));
    let (web, php) = (app.pid("httpd"), app.pid("php-fpm"));
    let args = ["record", "--dsn", app.value("dsn"), "--process", web, "--process", php];
    std::thread::scope(|scope| {
        let user = |number: usize| {
            let (path, is_over) = (&path, &is_over);
            move || {
                let mut times = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    times.push(ask(port, &path(number)));
                }
                times
            }
        };
        let users: Vec<_> = (0..USERS).map(|number| scope.spawn(user(number))).collect();
        let out = finish(common::spawn(&mut app.whyso(&[&args[..], &["--for", "3s"]].concat())), BOUND);
        is_over.store(true, Ordering::Relaxed);
        let times: Vec<f64> = users.into_iter().flat_map(|user| user.join().unwrap()).collect();
        assert!(out.status.success(), "{}", text(&out.stderr));
        println!("{}", text(&out.stdout));
        let run = app.place.only_run();
        let why = output(&mut app.whyso(&["why", run.to_str().unwrap(), "--json"]));
        println!("{}", text(&output(&mut app.whyso(&["why", run.to_str().unwrap()])).stdout));
        let why: Value = serde_json::from_str(&text(&why.stdout)).unwrap();
        (why, times.iter().sum::<f64>() / times.len() as f64)
    })
}

/// The lines that nothing divides.
fn leaves(tier: &Value) -> Vec<&Value> {
    let lines = tier["lines"].as_array().unwrap();
    lines.iter().filter(|line| line["is_divided"] == false).collect()
}

fn longest(tier: &Value) -> &Value {
    let ms = |line: &&Value| line["ms"].as_f64().unwrap();
    leaves(tier).into_iter().max_by(|a, b| ms(a).total_cmp(&ms(b))).unwrap()
}

#[test]
fn few_workers_of_php_are_a_queue_in_the_time_of_a_request_to_apache() {
    if !can_be_app() {
        return;
    }
    let app = App::start(&["--workers", "2"]);
    let (why, measured_ms) = recorded(&app, |user| format!("/event.php?id={}", user + 1));
    let tiers = why["tiers"].as_array().unwrap();
    assert_eq!(tiers.len(), 3, "{tiers:?}");
    let web = &tiers[0];
    assert!(web["name"].as_str().unwrap().contains("apache2") && web["is_first"] == true, "{web}");
    let share: f64 = leaves(web).iter().map(|line| line["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 0.03, "{share} in {web}");
    let counted_ms = web["mean_ms"].as_f64().unwrap();
    println!("clients measured {measured_ms} ms in the mean, the tiers have {counted_ms} ms");
    assert!((0.85..1.05).contains(&(counted_ms / measured_ms)), "{counted_ms} of {measured_ms}: {web}");
    let longest = longest(web);
    assert!(longest["tier"].as_str().unwrap().contains("php-fpm"), "{longest}");
    assert_eq!(
        (&longest["part"], &longest["text"]),
        (&"transit_in".into(), &"waiting to be picked up".into())
    );
    assert!(longest["share"].as_f64().unwrap() > 0.5, "{longest}");

    // What waits for a worker stands in the queue of PHP-FPM's socket: six of eight users, if Apache keeps none of them.
    let php = tiers.iter().find(|tier| tier["name"].as_str().unwrap().contains("php-fpm")).unwrap();
    let queued = php["accept_queue"].as_f64().unwrap_or_else(|| panic!("{php}"));
    println!("{queued} connections in the accept queue of PHP-FPM");
    assert!((1.0..=USERS as f64).contains(&queued), "{php}");
    let workers = why["workers"].as_array().unwrap();
    let workers = workers.iter().find(|of| of["program"] == php["name"]).unwrap_or_else(|| panic!("{why}"));
    assert_eq!(workers["workers"], 2.0, "{workers}");
    assert!(workers["private_bytes"].as_f64().unwrap() > 1e5, "{workers}");
}

#[test]
fn a_row_that_all_pages_lock_is_waited_for_in_the_database_behind_two_programs() {
    if !can_be_app() {
        return;
    }
    let app = App::start(&["--trouble", "hot-row"]);
    let (why, _) = recorded(&app, |_| "/event.php?id=1".to_string());
    let web = &why["tiers"][0];
    let longest = longest(web);
    assert_eq!((&longest["part"], &longest["depth"]), (&"lock".into(), &3.into()), "{longest}");
    assert!(longest["share"].as_f64().unwrap() > 0.4, "{longest}");
    assert_eq!(why["suspects"][0]["id"], "row-lock", "{}", why["suspects"]);
}

//! Shipped add-ons that ask a web server or memcached, on answers as these programs send them.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use super::sampler::{AddOnSeries, check};
use super::spec::AddOn;

/// `mod_status` of Apache 2.4.67 with the MPM prefork, shortened.
const PREFORK: &str = "127.0.0.1\nServerUptimeSeconds: 12\nTotal Accesses: 38\nTotal kBytes: 51\nTotal Duration: 78\nCPULoad: .166667\nUptime: 12\n\
    BusyWorkers: 3\nIdleWorkers: 2\nScoreboard: W_K_RC......\n";

/// Answers one question: reads up to the line that ends it.
fn answer_once(last_line: &'static str, answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            if line.trim_end() == last_line {
                break;
            }
        }
        stream.write_all(answer.as_bytes()).unwrap();
    });
    address
}

/// What an add-on records of a page.
fn read_page(name: &str, variable: &str, page: &str) -> Result<Vec<AddOnSeries>, String> {
    let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
    let address = answer_once("", head + page);
    read(name, variable, format!("http://{address}/?auto"))
}

fn read(name: &str, variable: &str, address: String) -> Result<Vec<AddOnSeries>, String> {
    let mut addon = AddOn::find(name).unwrap();
    addon.env.push((variable.to_string(), address));
    let (values, notes) = check(&addon, None).map_err(|error| error.to_string())?;
    assert_eq!(notes, Vec::<String>::new());
    Ok(values)
}

fn value(values: &[AddOnSeries], metric: &str) -> Option<f64> {
    values.iter().find(|series| series.metric == metric).map(|series| series.value.as_f64())
}

#[test]
fn the_scoreboard_of_apache_is_counted_letter_by_letter() {
    let values = read_page("httpd", "HTTPD_STATUS_URL", PREFORK).unwrap();
    for (metric, expected) in [
        ("requests", 38.0),
        ("request_ms", 78.0),
        ("workers_busy", 3.0),
        ("sending", 1.0),
        ("keep_alive", 1.0),
        ("reading", 1.0),
        ("closing", 1.0),
        ("open_slots", 6.0),
    ] {
        assert_eq!(value(&values, metric), Some(expected), "{metric}");
    }
    assert_eq!(value(&values, "connections"), None, "prefork does not count connections");
    let event = format!(
        "{PREFORK}ConnsTotal: 9\nConnsAsyncWriting: 1\nConnsAsyncKeepAlive: 7\nConnsAsyncClosing: 1\n"
    );
    let values = read_page("httpd", "HTTPD_STATUS_URL", &event).unwrap();
    assert_eq!(value(&values, "connections_keep_alive"), Some(7.0));
}

#[test]
fn a_page_that_is_no_status_is_named() {
    let why = read_page("httpd", "HTTPD_STATUS_URL", "<h1>It works</h1>\n").unwrap_err();
    assert!(why.contains("no page of mod_status"), "{why}");
    let why = read_page("nginx", "NGINX_STATUS_URL", "<h1>It works</h1>\n").unwrap_err();
    assert!(why.contains("no page of stub_status"), "{why}");
    let why = read_page("php-fpm", "PHP_FPM_STATUS_URL", "<h1>It works</h1>\n").unwrap_err();
    assert!(why.contains("no status page of PHP-FPM"), "{why}");
}

#[test]
fn connections_and_children_are_read() {
    let page = "Active connections: 5 \nserver accepts handled requests\n 20 19 31 \nReading: 1 Writing: 2 Waiting: 2 \n";
    let values = read_page("nginx", "NGINX_STATUS_URL", page).unwrap();
    let found: Vec<_> =
        ["connections", "accepted", "handled", "requests", "waiting"].map(|it| value(&values, it)).into();
    assert_eq!(found, [5.0, 20.0, 19.0, 31.0, 2.0].map(Some));
    let page = "pool:                 shop\nstart time:           28/Nov/2026:19:49:41 +0000\naccepted conn:        32\nlisten queue:         4\n\
        max listen queue:     6\nlisten queue len:     511\nidle processes:       0\nactive processes:     2\ntotal processes:      2\n\
        max active processes: 2\nmax children reached: 1\nslow requests:        0\n";
    let values = read_page("php-fpm", "PHP_FPM_STATUS_URL", page).unwrap();
    assert!(values.iter().all(|series| series.instance == "shop"));
    assert_eq!(value(&values, "listen_queue"), Some(4.0));
    assert_eq!(value(&values, "children_max_reached"), Some(1.0));
}

#[test]
fn memcached_is_asked_without_another_program() {
    let columns = AddOn::find("memcached").unwrap().columns;
    let stats: String = columns.iter().map(|column| format!("STAT {} 7\r\n", column.name)).collect();
    let address = answer_once("quit", format!("STAT pid 1\r\n{stats}END\r\n"));
    let values = read("memcached", "MEMCACHED_ADDRESS", address).unwrap();
    assert_eq!(values.len(), columns.len());
    assert_eq!(value(&values, "rusage_system"), Some(7.0));
    let address = answer_once("quit", "HTTP/1.0 400 Bad Request\r\n".to_string());
    let why = read("memcached", "MEMCACHED_ADDRESS", address).unwrap_err();
    assert!(why.contains("no memcached"), "{why}");
}

//! What is drawn of a synthetic server.

use std::sync::mpsc::{Receiver, channel};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use whyso_record::Tap;
use whyso_record::data::{Event, Kind, Reading, SeriesId, SeriesKey, Status, TextRows, Value};

use super::*;

const S: i64 = 1_000_000_000;

struct Still;

impl Control for Still {
    fn toggle_recording(&self) {}
    fn recording_since_ns(&self) -> Option<i64> {
        None
    }
    fn note(&self, _text: &str) -> Result<(), crate::NoteError> {
        Ok(())
    }
    fn is_over(&self) -> bool {
        false
    }
    fn trouble(&self) -> Option<String> {
        None
    }
    fn explain(&self, statement: &str) -> Receiver<Result<String, AskError>> {
        let (send, answer) = channel();
        send.send(Ok(format!("the plan of {statement}"))).unwrap();
        answer
    }
    fn kill(&self, connection: u64, statement: &str) -> Receiver<Result<String, AskError>> {
        let (send, answer) = channel();
        send.send(Err(AskError(format!("{connection} does not execute {statement} any more")))).unwrap();
        answer
    }
    fn may_kill(&self) -> bool {
        true
    }
    fn not_measured(&self) -> Vec<whyso_model::NotMeasured> {
        Vec::new()
    }
}

/// (source, metric, instance, kind, value by second)
type SeriesFixture = (&'static str, &'static str, &'static str, Kind, fn(i64) -> i64);

const SERIES: [SeriesFixture; 10] = [
    ("status", "Questions", "", Kind::Counter, |s| s * 1000),
    ("status", "Threads_running", "", Kind::Gauge, |_| 7),
    ("status", "Threads_connected", "", Kind::Gauge, |_| 12),
    ("trace", "requests", "", Kind::Counter, |s| s * 1000),
    ("trace", "request_ns", "", Kind::Counter, |s| s * 1_000_000_000),
    ("trace", "transit_in_ns", "", Kind::Counter, |s| s * 1000),
    ("trace", "request_cpu_ns", "", Kind::Counter, |s| s * 250_000_000),
    ("trace", "request_lock_ns", "", Kind::Counter, |s| s * 740_000_000),
    ("pfs_waits", "count", "wait/synch/mutex/innodb/log_sys_mutex", Kind::Counter, |s| s * 500),
    ("pfs_waits", "time_ns", "wait/synch/mutex/innodb/log_sys_mutex", Kind::Counter, |s| s * 2_000_000),
];

/// A server that was watched for this number of seconds, until now.
fn watched(seconds: i64) -> History {
    let history = History::default();
    for (at, (source, metric, instance, kind, _)) in SERIES.iter().enumerate() {
        let key = SeriesKey {
            host: "server".to_string(),
            source: source.to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
            kind: *kind,
            unit: if metric.ends_with("_ns") { "ns" } else { "1" }.to_string(),
        };
        history.series(SeriesId(at as u32), &key);
    }
    let now_ns = monotonic_ns();
    for second in 0..=seconds {
        let t_ns = now_ns - (seconds - second) * S;
        for source in ["status", "trace", "pfs_waits"] {
            let of_it = SERIES.iter().enumerate().filter(|(_, series)| series.0 == source);
            let values =
                of_it.map(|(at, series)| (SeriesId(at as u32), Value::Int(series.4(second)))).collect();
            history.reading(&Reading {
                source: source.to_string(),
                begin_ns: t_ns - 1000,
                end_ns: t_ns,
                status: Status::Ok,
                values,
            });
        }
    }
    history
}

fn press(screen: &mut Screen, code: KeyCode) {
    let columns = screen.listing().map_or(0, |listing| listing.columns.len());
    let span_ns = screen.span_ns();
    if let Some(asked) = screen.app.key(KeyEvent::new(code, KeyModifiers::NONE), span_ns, columns) {
        screen.do_it(asked);
    }
}

fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_string() + "\n").collect()
}

fn row(waiting: &str, blocking: &str) -> Vec<Option<String>> {
    let cell = |text: &str| Some(text.to_string());
    vec![
        cell("row"),
        cell(waiting),
        cell(blocking),
        cell("shop.orders"),
        cell("PRIMARY"),
        cell("X"),
        cell("3"),
    ]
}

#[test]
fn rates_the_budget_and_the_waits_are_those_of_the_window() {
    let history = watched(30);
    let about = About { endpoint: "here".to_string(), server: "made up".to_string(), ..About::default() };
    let mut screen = Screen::new(&history, &about, &Still);
    // It begins with why, in lines that are whole.
    let why = drawn(&mut screen, 80, 24);
    for expected in ["1 Why ", "limit", "locks", "of the response time"] {
        assert!(why.contains(expected), "no {expected:?} in\n{why}");
    }
    press(&mut screen, KeyCode::Char('2'));
    let text = drawn(&mut screen, 150, 40);
    for expected in [
        "Statements/s 1,000",
        "Response time 1 ms",
        "Threads running 7 of 12",
        "Time of a request 1 ms",
        "L lock 740 µs 74 %",
        "c cpu 250 µs 25 %",
        "2 ms   100 %",
        "wait/synch/mutex/innodb/log_sys_mutex",
        "this machine's CPUs can't be",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

#[test]
fn who_holds_a_lock_stands_above_those_that_wait() {
    let history = watched(10);
    let columns = ["kind", "waiting", "blocking", "object", "index", "mode", "waited_s"];
    history.rows(&TextRows {
        source: "lock_waits".to_string(),
        t_ns: monotonic_ns() - S / 2,
        columns: columns.map(str::to_string).to_vec(),
        rows: vec![row("21", "20"), row("22", "21")],
    });
    // Something is read after the snapshot of the locks.
    let last = Reading {
        source: "status".to_string(),
        begin_ns: monotonic_ns(),
        end_ns: monotonic_ns(),
        status: Status::Ok,
        values: Vec::new(),
    };
    history.reading(&last);
    let about = About::default();
    let mut screen = Screen::new(&history, &about, &Still);
    press(&mut screen, KeyCode::Char('4'));
    let text = drawn(&mut screen, 120, 40);
    let order =
        ["20 ", "  21 ", "    22 "].map(|id| text.find(id).unwrap_or_else(|| panic!("{id:?}:\n{text}")));
    assert!(order.is_sorted(), "{text}");
    assert!(text.contains("row X on shop.orders (PRIMARY)"), "{text}");
}

/// Adds digests to what was watched: one of the client's, one of whyso's own, and one of both.
fn with_digests(history: &History) {
    const DIGESTS: [(&str, &str, i64, i64); 3] = [
        ("shop:abc", "SELECT `c` FROM `t`", 4, 0),
        ("information_schema:own", "SHOW GLOBAL STATUS", 9, 9),
        ("information_schema:both", "SHOW GLOBAL VARIABLES", 7, 6),
    ];
    let mut series = Vec::new();
    for (instance, _, count, own) in DIGESTS {
        for (metric, rate) in [("count", count), ("own_count", own), ("time_ns", count * 1_000_000)] {
            let id = SeriesId((SERIES.len() + series.len()) as u32);
            let key = SeriesKey {
                host: "server".to_string(),
                source: "pfs_digests".to_string(),
                metric: metric.to_string(),
                instance: instance.to_string(),
                kind: Kind::Counter,
                unit: "1".to_string(),
            };
            history.series(id, &key);
            series.push((id, rate));
        }
    }
    let row = |(instance, text, ..): &(&str, &str, i64, i64)| {
        vec![Some(instance.to_string()), None, Some(text.to_string())]
    };
    let now_ns = monotonic_ns();
    history.rows(&TextRows {
        source: "pfs_digests".to_string(),
        t_ns: now_ns,
        columns: ["instance", "schema", "text"].map(str::to_string).to_vec(),
        rows: DIGESTS.iter().map(row).collect(),
    });
    for second in 0..=10 {
        let end_ns = now_ns - (10 - second) * S;
        let values = series.iter().map(|(id, rate)| (*id, Value::Int(second * rate))).collect();
        let source = "pfs_digests".to_string();
        history.reading(&Reading { source, begin_ns: end_ns - 1000, end_ns, status: Status::Ok, values });
    }
}

#[test]
fn whysos_own_statements_are_hidden_until_they_are_asked_for() {
    let history = watched(10);
    with_digests(&history);
    let about = About::default();
    let mut screen = Screen::new(&history, &about, &Still);
    press(&mut screen, KeyCode::Char('3'));
    let text = drawn(&mut screen, 250, 40);
    assert!(text.contains("SELECT `c` FROM `t`") && !text.contains("SHOW GLOBAL STATUS"), "{text}");
    assert!(text.contains("[whyso: 30 of 35] SHOW GLOBAL VARIABLES"), "{text}");
    assert!(
        text.contains("hidden: 1 statement of whyso's own connections, 45 % of the time, O shows them"),
        "{text}"
    );
    press(&mut screen, KeyCode::Char('O'));
    let text = drawn(&mut screen, 250, 40);
    assert!(text.contains("[whyso] SHOW GLOBAL STATUS") && !text.contains("hidden"), "{text}");
    press(&mut screen, KeyCode::Char('O'));
    assert!(!drawn(&mut screen, 250, 40).contains("SHOW GLOBAL STATUS"));
}

#[test]
fn whysos_own_connections_are_hidden_where_nothing_counts_statements() {
    let history = watched(10);
    let row = |id: &str, text: &str, own: Option<&str>| {
        [Some("7"), Some(id), Some(text), own].map(|cell| cell.map(str::to_string)).to_vec()
    };
    history.rows(&TextRows {
        source: "connections".to_string(),
        t_ns: monotonic_ns() - S / 2,
        columns: ["tid", "connection", "statement", "own"].map(str::to_string).to_vec(),
        rows: vec![row("20", "SELECT ?", None), row("21", "SHOW GLOBAL STATUS", Some("1"))],
    });
    let last = Reading {
        source: "status".to_string(),
        begin_ns: monotonic_ns(),
        end_ns: monotonic_ns(),
        status: Status::Ok,
        values: Vec::new(),
    };
    history.reading(&last);
    let about = About::default();
    let mut screen = Screen::new(&history, &about, &Still);
    for (tab, hidden) in
        [('3', "1 statement of whyso's own is hidden"), ('5', "1 connection of whyso's own is hidden")]
    {
        press(&mut screen, KeyCode::Char(tab));
        let text = drawn(&mut screen, 250, 40);
        assert!(text.contains("SELECT ?") && !text.contains("SHOW GLOBAL STATUS"), "{text}");
        assert!(text.contains(hidden), "{text}");
        press(&mut screen, KeyCode::Char('O'));
        let text = drawn(&mut screen, 250, 40);
        assert!(text.contains("[whyso] SHOW GLOBAL STATUS") && !text.contains("hidden"), "{text}");
        press(&mut screen, KeyCode::Char('O'));
    }
}

#[test]
fn every_tab_and_every_size_can_be_drawn() {
    let history = watched(5);
    history.event(&Event {
        t_ns: monotonic_ns(),
        host: "server".to_string(),
        kind: "variable".to_string(),
        text: "max_connections is 7\u{1b}[2J".to_string(),
    });
    let about = About::default();
    let mut screen = Screen::new(&history, &about, &Still);
    for tab in '1'..='8' {
        press(&mut screen, KeyCode::Char(tab));
        for (width, height) in [(1, 1), (59, 30), (60, 18), (80, 24), (250, 80)] {
            let text = drawn(&mut screen, width, height);
            assert!(!text.contains('\u{1b}'));
        }
    }
    for code in
        [KeyCode::Char('?'), KeyCode::Esc, KeyCode::Enter, KeyCode::Esc, KeyCode::Left, KeyCode::Char('8')]
    {
        press(&mut screen, code);
        let text = drawn(&mut screen, 100, 30);
        assert!(code != KeyCode::Char('?') || text.contains("a second back"), "{text}");
    }
    let nothing = History::default();
    let mut screen = Screen::new(&nothing, &about, &Still);
    assert!(drawn(&mut screen, 100, 30).contains("for the first time"));
}

#[test]
fn a_source_that_fails_is_shown_until_it_is_back() {
    let history = watched(10);
    let about = About::default();
    let failed = |status, end_ns| Reading {
        source: "status".to_string(),
        begin_ns: end_ns,
        end_ns,
        status,
        values: Vec::new(),
    };
    history.reading(&failed(Status::Failed, monotonic_ns() - 2 * S));
    let mut screen = Screen::new(&history, &about, &Still);
    assert!(drawn(&mut screen, 100, 30).contains("1 of the server's sources can't be read"));
    history.reading(&failed(Status::Ok, monotonic_ns()));
    assert!(!drawn(&mut screen, 100, 30).contains("can't be read since"));
}

#[test]
fn of_several_servers_one_is_shown_at_a_time() {
    let (first, second) = (watched(10), watched(10));
    let about = |endpoint: &str| About { endpoint: endpoint.to_string(), ..About::default() };
    let (one, other) = (about("db1:3306"), about("db2:3306"));
    let servers = [
        Server { history: &first, about: &one, control: &Still },
        Server { history: &second, about: &other, control: &Still },
    ];
    let mut screen = Screen { servers: &servers, ..Screen::new(&first, &one, &Still) };
    assert!(drawn(&mut screen, 120, 30).starts_with("whyso 1/2 < > db1:3306"));
    press(&mut screen, KeyCode::Char('>'));
    assert!(drawn(&mut screen, 120, 30).starts_with("whyso 2/2 < > db2:3306"));
    press(&mut screen, KeyCode::Char('>'));
    assert!(drawn(&mut screen, 120, 30).starts_with("whyso 1/2"));
    press(&mut screen, KeyCode::Char('<'));
    assert!(drawn(&mut screen, 120, 30).starts_with("whyso 2/2"));
}

#[test]
fn programs_are_listed_by_their_cpu_time() {
    let history = watched(10);
    let programs = [
        ("cpu", "user_ns", "all", 1_500_000_000),
        ("cpu", "idle_ns", "all", 500_000_000),
        ("server_process", "run_ns", "server", 900_000_000),
        ("neighbours", "cpu_ns", "nightly-backup", 400_000_000),
        ("programs", "sampled_ns", "nightly-backup", 400_000_000),
        ("programs", "function_ns", "nightly-backup: deflate", 300_000_000),
        (
            "programs",
            "function_ns",
            "nightly-backup: <crc32::table::Baseline as crc32::Update>::update",
            100_000_000,
        ),
    ];
    let now_ns = monotonic_ns();
    for (at, (source, metric, instance, per_s)) in (SERIES.len() as u32..).zip(programs) {
        let [host, source, metric, instance] = ["server", source, metric, instance].map(str::to_string);
        let unit = "ns".to_string();
        let key = SeriesKey { host, source: source.clone(), metric, instance, kind: Kind::Counter, unit };
        history.series(SeriesId(at), &key);
        for second in 0..=10 {
            let t_ns = now_ns - (10 - second) * S;
            history.reading(&Reading {
                source: source.clone(),
                begin_ns: t_ns - 1000,
                end_ns: t_ns,
                status: Status::Ok,
                values: vec![(SeriesId(at), Value::Int(second * per_s))],
            });
        }
    }
    let about = About::default();
    let mut screen = Screen::new(&history, &about, &Still);
    press(&mut screen, KeyCode::Char('9'));
    let text = drawn(&mut screen, 120, 40);
    let table = &text[text.find("on 2 CPUs").unwrap_or_else(|| panic!("{text}"))..];
    let place = |words: &str| table.find(words).unwrap_or_else(|| panic!("{words}: {table}"));
    assert!(place("the server") < place("nightly-backup"), "{table}");
    assert!(place("nightly-backup") < place("the rest"), "{table}");
    assert!(table.contains("0.9") && table.contains("45 %") && table.contains("20 %"), "{table}");
    assert!(
        table.contains("deflate 75 %, <crc32::table::Baseline as crc32::Updat… 25 %"),
        "the busiest functions: {table}"
    );
}

#[test]
fn the_servers_answer_lies_over_the_screen_until_a_key_closes_it() {
    let history = watched(10);
    with_digests(&history);
    let about = About::default();
    let mut screen = Screen::new(&history, &about, &Still);
    press(&mut screen, KeyCode::Char('e'));
    assert!(drawn(&mut screen, 160, 40).contains("no statement is selected"));
    press(&mut screen, KeyCode::Char('3'));
    press(&mut screen, KeyCode::Char('K'));
    assert!(drawn(&mut screen, 160, 40).contains("no connection's statement is selected"));
    press(&mut screen, KeyCode::Char('/'));
    for letter in "`c`".chars() {
        press(&mut screen, KeyCode::Char(letter));
    }
    press(&mut screen, KeyCode::Enter);
    press(&mut screen, KeyCode::Char('e'));
    assert!(screen.receive_answer());
    assert!(drawn(&mut screen, 160, 40).contains("the plan of SELECT `c` FROM `t`"));
}

#[test]
fn eighty_columns_have_room_for_every_tab_the_state_and_how_to_end() {
    let history = watched(10);
    let about = About {
        endpoint: "/run/mysqld/mysqld.sock".to_string(),
        server: "10.11.19-MariaDB-0+deb12u1".to_string(),
        ..About::default()
    };
    let mut screen = Screen::new(&history, &about, &Still);
    let text = drawn(&mut screen, 80, 24);
    for words in ["8 Events", "9 Programs", "not recorded", "q ends"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(drawn(&mut screen, 140, 40).contains("10.11.19-MariaDB"));
}

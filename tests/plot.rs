//! `whyso plot`, over a recording that the test writes: what its pictures show, to the pixel.

mod common;

use std::fs;
use std::path::Path;

use common::{Place, output, text};
use whyso_record::data::{Kind, Reading, SeriesKey, Status, Value as Number};
use whyso_record::run::{RunEnd, RunInfo};
use whyso_record::{Options, Recorder};

const S: i64 = 1_000_000_000;
const SECONDS: i64 = 4_200;
const MUTEX: &str = "wait/synch/mutex/innodb/a_rather_long_name_of_a_mutex_that_nothing_shortens_for_us";

/// Seventy minutes: 50 questions a second and 200 from the hour on, threads, bytes of two disks, waits, and another source's "Questions".
fn record(dir: &Path) {
    // Its own cost would be reported in this machine's time, which may be hours after these seventy minutes.
    let recorder = Recorder::create(dir, Options { own_cost: false, ..Options::default() }).unwrap();
    let series = |source: &str, metric: &str, instance: &str, kind, unit: &str| {
        recorder.series(&SeriesKey {
            host: "server".into(),
            source: source.into(),
            metric: metric.into(),
            instance: instance.into(),
            kind,
            unit: unit.into(),
        })
    };
    let questions = series("status", "Questions", "", Kind::Counter, "1");
    let running = series("status", "Threads_running", "", Kind::Gauge, "1");
    let (sda, sdb) = (
        series("disk", "write_bytes", "sda", Kind::Counter, "B"),
        series("disk", "write_bytes", "sdb", Kind::Counter, "B"),
    );
    let wait = series("waits", "time_ns", MUTEX, Kind::Counter, "ns");
    let other = series("proxy", "Questions", "", Kind::Gauge, "ns");
    for second in 0..SECONDS {
        let values = vec![
            (questions, Number::Int(second * 50 + (second - 3_600).max(0) * 150)),
            (running, Number::Int(second % 10)),
            (sda, Number::Int(second * 2_000_000)),
            (sdb, Number::Int(second * 500_000)),
            (wait, Number::Int(second * 250_000)),
            (other, Number::Int(5_000_000)),
        ];
        let (begin_ns, end_ns) = (second * S, second * S + 1_000);
        recorder.reading(Reading { source: "status".into(), begin_ns, end_ns, status: Status::Ok, values });
    }
    recorder.set_run(&RunInfo {
        id: "one".to_string(),
        spec: whyso_model::RunSpec { workload: Some("w".to_string()), ..whyso_model::RunSpec::default() },
        anchors: vec![whyso_clock::Anchor { monotonic_ns: 0, ..whyso_clock::Anchor::now() }],
        ended: Some(RunEnd::Complete { at_ns: SECONDS * S }),
        ..RunInfo::default()
    });
    recorder.finish().unwrap();
}

fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.runs()).unwrap();
    record(&place.runs().join("one"));
    place
}

/// The picture that a command line draws.
fn drawn(place: &Place, args: &[&str]) -> Picture {
    let args = [&["plot", "one"], args, &["-o", "x.svg"]].concat();
    let done = output(&mut place.whyso(&args));
    assert!(done.status.success(), "{args:?}: {done:?}");
    Picture(fs::read_to_string(place.path().join("x.svg")).unwrap())
}

struct Picture(String);

impl Picture {
    fn panel(&self, row: usize, column: usize) -> Option<&str> {
        let (_, after) = self.0.split_once(&format!("<g id=\"panel-{row}-{column}\">"))?;
        after.split("<g id=\"panel-").next()
    }

    /// The values that each line of a panel shows, by the numbers at the axis of its row: those at whole pixels within it.
    fn lines(&self, row: usize, column: usize) -> Vec<Vec<f64>> {
        let axis: Vec<(f64, f64)> = texts(self.panel(row, 0).unwrap(), "end")
            .map(|(y, number)| (y - 4.0, number_of(number)))
            .collect();
        let ((y0, low), (y1, high)) = (axis[0], axis[axis.len() - 1]);
        let value = |y: f64| low + (y - y0) / (y1 - y0) * (high - low);
        let panel = self.panel(row, column).unwrap();
        let left: f64 = attribute(panel.split("<rect ").nth(1).unwrap(), "x").parse().unwrap();
        let paths = panel.split("class=\"line\" d=\"").skip(1);
        paths
            .map(|path| {
                let points = path.split('"').next().unwrap().split(['M', 'L']).skip(1);
                let points = points.map(|point| point.split_once(' ').unwrap());
                let within = points.filter(|(x, _)| x.parse::<f64>().unwrap() >= left);
                within.map(|(_, y)| value(y.parse().unwrap())).collect()
            })
            .collect()
    }

    fn has(&self, words: &str) -> bool {
        self.0.contains(&format!(">{words}<"))
    }
}

fn attribute<'t>(element: &'t str, name: &str) -> &'t str {
    element.split_once(&format!("{name}=\"")).unwrap().1.split('"').next().unwrap()
}

/// Height and words of each text that is so anchored.
fn texts<'t>(svg: &'t str, anchor: &'t str) -> impl Iterator<Item = (f64, &'t str)> {
    let is_it =
        move |element: &&str| element.split('>').next().unwrap().contains(&format!("anchor=\"{anchor}\""));
    svg.split("<text ").skip(1).filter(is_it).map(|element| {
        let y = attribute(element, " y").parse().unwrap();
        (y, element.split_once('>').unwrap().1.split('<').next().unwrap())
    })
}

/// The number of a mark at an axis, such as "−1.5k" or "5·10⁻⁵".
fn number_of(text: &str) -> f64 {
    let mut plain: String = text
        .chars()
        .map(|character| {
            "⁰¹²³⁴⁵⁶⁷⁸⁹"
                .chars()
                .position(|power| power == character)
                .map_or(character, |digit| (b'0' + digit as u8) as char)
        })
        .collect();
    for (written, read) in
        [("·10", "e"), ("⁻", "-"), ("−", "-"), (",", ""), ("k", "e3"), ("M", "e6"), ("G", "e9")]
    {
        plain = plain.replace(written, read);
    }
    plain.parse().unwrap_or_else(|_| panic!("'{text}' is no number"))
}

fn all_about(values: &[f64], wanted: f64, by: f64) -> bool {
    values.len() > 5 && values.iter().all(|value| (value - wanted).abs() <= by)
}

#[test]
fn each_unit_has_a_row_and_windows_share_its_scale() {
    let place = place();
    let metrics = ["status/Questions", "Threads_running", "disk/write_bytes"];
    let picture = drawn(&place, &[&metrics[..], &["--window", "10:05-10:20,1:05:00-1:05:15"]].concat());
    for row in 0..3 {
        assert!(picture.panel(row, 0).is_some() && picture.panel(row, 1).is_some(), "{row}");
        assert_eq!(texts(picture.panel(row, 1).unwrap(), "end").count(), 0, "one axis a row");
    }
    assert!(picture.panel(3, 0).is_none() && picture.panel(0, 2).is_none());
    for words in [
        "per second",
        "Questions",
        "Threads_running",
        "number",
        "B per second",
        "write_bytes sdb",
        "10:05 – 10:20",
        "1:05:00 – 1:05:15",
    ] {
        assert!(picture.has(words), "{words}");
    }
    assert!(all_about(&picture.lines(0, 0)[0], 50.0, 0.1), "{:?}", picture.lines(0, 0));
    assert!(all_about(&picture.lines(0, 1)[0], 200.0, 0.1), "{:?}", picture.lines(0, 1));
    let mut bytes: Vec<f64> = picture.lines(2, 1).iter().map(|line| line[3] / 1e6).collect();
    bytes.sort_by(f64::total_cmp);
    assert!((bytes[0] - 0.5).abs() < 0.01 && (bytes[1] - 2.0).abs() < 0.01, "{bytes:?}");
    let threads = &picture.lines(1, 0)[0];
    // 10:05 is second 605.
    assert!((threads[0] - 5.0).abs() < 0.05 && (threads[4] - 9.0).abs() < 0.05, "{threads:?}");
}

#[test]
fn one_unit_is_one_axis_and_modes_are_named() {
    let place = place();
    let both = drawn(&place, &["Questions"]);
    assert!(both.has("status/Questions") && both.has("proxy/Questions"), "two sources, two names");
    assert!(both.panel(1, 0).is_some() && both.has("ms"));
    let sum = drawn(&place, &["write_bytes", "--sum", "--window", "60-90"]);
    assert!(all_about(&sum.lines(0, 0)[0], 2_500_000.0, 10_000.0), "{:?}", sum.lines(0, 0));
    assert!(sum.has("write_bytes, sum"));
    let top = drawn(&place, &["write_bytes", "--top", "1", "--window", "60-90"]);
    assert_eq!(top.lines(0, 0).len(), 1);
    assert!(top.has("sda"));
    let raw = drawn(&place, &["status/Questions", "--mode", "raw", "--window", "1:40-1:50"]);
    assert!((raw.lines(0, 0)[0][0] - 5_000.0).abs() < 5.0, "{:?}", raw.lines(0, 0));
    let long = drawn(&place, &["waits/time_ns", "--window", "1m-2m"]);
    assert!(long.has("seconds per second") && all_about(&long.lines(0, 0)[0], 0.000_25, 1e-6));
}

#[test]
fn wrong_use_is_reported_in_a_sentence_and_ends_with_2() {
    let place = place();
    let wrong: [(&[&str], &str); 11] = [
        (&["one", "Questionz"], "Questionz is not recorded in this run"),
        (&["one", "disk/Questions"], "is not recorded in this run; it has Questions"),
        (&["one"], "METRIC"),
        (&["nowhere", "Questions"], "there is no run nowhere"),
        (&["one", "Questions", "--window", "20-10"], "is no stretch of a run"),
        (&["one", "Questions", "--window", "1:75-2:80"], "is no stretch of a run"),
        (&["one", "Questions", "--window", "x"], "is no stretch of a run"),
        (&["one", "Questions", "--window", "2:00:00-2:10:00"], "begins after the end of the run"),
        (&["one", "Questions", "--top", "0"], "--top"),
        (&["one", "status/Questions", "--mode", "per-transaction"], "the load was not recorded"),
        (&["one", "Questions", "--mode", "sideways"], "--mode"),
    ];
    for (args, words) in wrong {
        let done = output(&mut place.whyso(&[&["plot"], args].concat()));
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(words) && done.stdout.is_empty(), "{args:?}: {message}");
    }
    let windows = vec!["0-1"; 13].join(",");
    let many = output(&mut place.whyso(&["plot", "one", "Questions", "--window", &windows]));
    assert_eq!(many.status.code(), Some(2), "{many:?}");
    let lost = output(&mut place.whyso(&["plot", "one", "Questions", "-o", "no/such/folder.svg"]));
    assert_eq!(lost.status.code(), Some(1), "a disk that can't be written is no wrong use: {lost:?}");
    fs::write(place.runs().join("one/series.parquet"), "nonsense").unwrap();
    let damaged = output(&mut place.whyso(&["plot", "one", "Questions"]));
    assert!(damaged.status.code().is_some_and(|code| code != 0), "{damaged:?}");
}

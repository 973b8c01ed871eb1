//! A recording that is still written, opened again and again. What was read before is not read again, and yet it equals one that is
//! opened for the first time.

use std::path::Path;
use std::time::{Duration, Instant};

use whyso_record::data::{Event, Kind, Reading, SeriesId, SeriesKey, Status, Value};
use whyso_record::run::{RunEnd, RunInfo, Window};
use whyso_record::{Options, Recorder, Recording};

const S: i64 = 1_000_000_000;
const BOUND: Duration = Duration::from_secs(30);

fn key(metric: &str, kind: Kind) -> SeriesKey {
    let [host, source, metric, unit] = ["server", "status", metric, "1"].map(str::to_string);
    SeriesKey { host, source, metric, instance: String::new(), kind, unit }
}

fn read(recorder: &Recorder, second: i64, values: Vec<(SeriesId, Value)>) {
    let (begin_ns, end_ns) = (second * S, second * S + 1_000);
    recorder.reading(Reading { source: "status".to_string(), begin_ns, end_ns, status: Status::Ok, values });
}

/// Everything that a page asks of a recording is the same.
fn assert_same(followed: &Recording, fresh: &Recording, window: Window) {
    assert_eq!(followed.series(), fresh.series());
    assert_eq!((followed.live(), followed.problems()), (fresh.live(), fresh.problems()));
    assert_eq!(followed.events().unwrap(), fresh.events().unwrap());
    for info in fresh.series() {
        let of = |recording: &Recording, window| recording.samples(info.id, window).unwrap();
        assert_eq!(of(followed, None), of(fresh, None), "{:?}", info.key);
        assert_eq!(of(followed, Some(window)), of(fresh, Some(window)));
        let envelope = |recording: &Recording| recording.envelope(info.id, window, 7).unwrap();
        assert_eq!(format!("{:?}", envelope(followed)), format!("{:?}", envelope(fresh)));
    }
}

/// Until the reading of this second is whole in the files.
fn wait_for(dir: &Path, series: SeriesId, second: i64) -> Recording {
    let begin = Instant::now();
    loop {
        let recording = Recording::open(dir).unwrap();
        if recording
            .info(series)
            .is_some_and(|info| info.samples as i64 > second && info.last_ns >= second * S)
        {
            return recording;
        }
        assert!(begin.elapsed() < BOUND, "the recorder does not write");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_recording_that_is_followed_is_as_one_that_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let options = Options { reserve_bytes: 1 << 20, own_cost: false, flush_ms: 5, ..Options::default() };
    let recorder = Recorder::create(&dir, options).unwrap();
    let counter = recorder.series(&key("Questions", Kind::Counter));
    let gauge = recorder.series(&key("Threads_running", Kind::Gauge));
    let late = recorder.series(&key("late", Kind::Gauge));
    let mut followed: Option<Recording> = None;
    // Opened more often than the number of parts that a write-ahead file is kept in, and segments sealed and compacted in between.
    for second in 0..90i64 {
        let mut values =
            vec![(counter, Value::Int(second * second)), (gauge, Value::Float(second as f64 / 7.0))];
        if second >= 40 {
            values.push((late, Value::Int(-second)));
        }
        read(&recorder, second, values);
        if second % 9 == 0 {
            recorder.event(Event {
                t_ns: second * S,
                host: String::new(),
                kind: "note".into(),
                text: format!("at {second}"),
            });
        }
        if second % 35 == 34 {
            recorder.seal().unwrap();
        }
        let fresh = wait_for(&dir, counter, second);
        let now = match &followed {
            Some(before) => before.reopen().unwrap(),
            None => Recording::open(&dir).unwrap(),
        };
        // An event may have come between opening the two.
        let fresh = if now.events().unwrap() == fresh.events().unwrap() {
            fresh
        } else {
            Recording::open(&dir).unwrap()
        };
        let now = if now.events().unwrap() == fresh.events().unwrap() { now } else { now.reopen().unwrap() };
        let window = Window { begin_ns: (second - 20) * S, end_ns: (second - 2) * S };
        assert_same(&now, &fresh, window);
        followed = Some(now);
    }
    recorder.set_run(&RunInfo {
        id: "run".to_string(),
        ended: Some(RunEnd::Complete { at_ns: 90 * S }),
        ..RunInfo::default()
    });
    recorder.finish().unwrap();
    let (now, fresh) = (followed.unwrap().reopen().unwrap(), Recording::open(&dir).unwrap());
    assert_same(&now, &fresh, Window { begin_ns: 30 * S, end_ns: 80 * S });
    assert_eq!(now.info(counter).unwrap().samples, 90);
    assert!(!now.live());
}

#[test]
fn a_counter_keeps_its_last_reading_before_a_window_whatever_file_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let options = Options { reserve_bytes: 1 << 20, own_cost: false, ..Options::default() };
    let recorder = Recorder::create(&dir, options).unwrap();
    let counter = recorder.series(&key("Questions", Kind::Counter));
    for second in 0..40i64 {
        read(&recorder, second, vec![(counter, Value::Int(second * 10))]);
        if second % 10 == 9 {
            recorder.seal().unwrap();
        }
    }
    recorder.finish().unwrap();
    let recording = Recording::open(&dir).unwrap();
    // The window begins where a file does: the rate of its first reading needs the last one of the file before.
    let window = Window { begin_ns: 20 * S, end_ns: 30 * S };
    let envelope = recording.envelope(counter, window, 10).unwrap();
    assert_eq!(envelope.count, [1; 10]);
    assert!(envelope.median.iter().all(|rate| (rate - 10.0).abs() < 1e-9), "{:?}", envelope.median);
}

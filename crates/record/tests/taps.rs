//! Those that listen to a recorder receive what it receives, and a recording that nobody wants leaves nothing.

use std::sync::{Arc, Mutex};

use whyso_record::data::{
    Event, Kind, Reading, SeriesId, SeriesKey, StatesInterval, Status, TextRows, Value,
};
use whyso_record::{Options, Recorder, Tap};

#[derive(Default)]
struct HeardEvents(Mutex<Vec<String>>);

impl HeardEvents {
    fn add(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl Tap for HeardEvents {
    fn series(&self, id: SeriesId, key: &SeriesKey) {
        self.add(format!("series {} {}", id.0, key.metric));
    }
    fn reading(&self, reading: &Reading) {
        self.add(format!("reading {:?}", reading.values));
    }
    fn rows(&self, rows: &TextRows) {
        self.add(format!("rows {}", rows.source));
    }
    fn event(&self, event: &Event) {
        self.add(format!("event {}", event.text));
    }
    fn states(&self, interval: &StatesInterval) {
        self.add(format!("states {}", interval.t_ns));
    }
}

fn key(metric: &str) -> SeriesKey {
    let [host, source, metric, unit] = ["server", "made", metric, "1"].map(str::to_string);
    SeriesKey { host, source, metric, instance: String::new(), kind: Kind::Gauge, unit }
}

#[test]
fn each_listener_hears_all_series_and_what_comes_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { reserve_bytes: 0, own_cost: false, ..Options::default() };
    let recorder = Recorder::create(&folder.path().join("run"), options).unwrap();
    let [first, second] = [Arc::new(HeardEvents::default()), Arc::new(HeardEvents::default())];
    let a = recorder.series(&key("a"));
    recorder.tap(first.clone());
    recorder.event(Event { t_ns: 1, host: String::new(), kind: "note".into(), text: "one".into() });
    recorder.tap(second.clone());
    recorder.series(&key("b"));
    recorder.reading(Reading {
        source: "made".to_string(),
        begin_ns: 1,
        end_ns: 2,
        status: Status::Ok,
        values: vec![(a, Value::Int(7))],
    });
    recorder.rows(TextRows { source: "made".into(), t_ns: 3, columns: Vec::new(), rows: Vec::new() });
    recorder.states(&StatesInterval { t_ns: 4, ..StatesInterval::default() });
    let since = ["series 1 b", "reading [(SeriesId(0), Int(7))]", "rows made", "states 4"];
    assert_eq!(*first.0.lock().unwrap(), [&["series 0 a", "event one"][..], &since].concat());
    assert_eq!(*second.0.lock().unwrap(), [&["series 0 a"][..], &since].concat());
}

#[test]
fn a_recording_that_is_discarded_leaves_nothing_also_while_a_segment_is_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    // Segments are sealed as fast as they can be.
    let options = Options { reserve_bytes: 1 << 20, flush_ms: 1, segment_s: 0, ..Options::default() };
    let recorder = Recorder::create(&dir, options).unwrap();
    let a = recorder.series(&key("a"));
    for t_ns in 1..2000 {
        recorder.reading(Reading {
            source: "made".to_string(),
            begin_ns: t_ns - 1,
            end_ns: t_ns,
            status: Status::Ok,
            values: vec![(a, Value::Int(t_ns))],
        });
    }
    assert!(dir.exists());
    recorder.discard().unwrap();
    assert!(!dir.exists());
    recorder.event(Event { t_ns: 1, host: String::new(), kind: "note".into(), text: "late".into() });
    assert!(recorder.finish().is_err(), "it has ended");
    assert!(!dir.exists());
}

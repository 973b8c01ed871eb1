//! What a recorder receives is what a recording gives back, however it was sealed, compacted or cut short.

use std::fs;
use std::path::Path;

mod common;

use common::{abandon, options};
use proptest::prelude::*;
use whyso_record::data::{Event, Kind, LoadInterval, Reading, SeriesId, SeriesKey, Status, TextRows, Value};
use whyso_record::run::{RunEnd, RunInfo, Window};
use whyso_record::{Options, Recorder, Recording, list_runs};

const S: i64 = 1_000_000_000;

fn key(source: &str, metric: &str, kind: Kind) -> SeriesKey {
    let [host, source, metric, unit] = ["server", source, metric, "1"].map(str::to_string);
    SeriesKey { host, source, metric, instance: String::new(), kind, unit }
}

fn reading(source: &str, end_ns: i64, values: Vec<(SeriesId, Value)>) -> Reading {
    Reading { source: source.to_string(), begin_ns: end_ns - 1_000_000, end_ns, status: Status::Ok, values }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn everything_comes_back() {
    let runs = tempfile::tempdir().unwrap();
    let dir = runs.path().join("one");
    let recorder = Recorder::create(&dir, options()).unwrap();
    let counter = recorder.series(&key("status", "Questions", Kind::Counter));
    let gauge = recorder.series(&key("status", "Threads_running", Kind::Gauge));
    assert_eq!(recorder.series(&key("status", "Questions", Kind::Gauge)), counter);
    let fraction = recorder.series(&key("cpu", "busy_ratio", Kind::Gauge));
    let mut events = Vec::new();
    let mut loads = Vec::new();
    for second in 0..100 {
        let values = vec![(counter, Value::Int(second * 7)), (gauge, Value::Int(second % 3))];
        let status = if second == 40 { Status::Failed } else { Status::Ok };
        let values = if second == 40 { Vec::new() } else { values };
        recorder.reading(Reading { status, ..reading("status", second * S, values) });
        recorder.reading(reading(
            "cpu",
            second * S + 5,
            vec![(fraction, Value::Float(second as f64 / 100.0))],
        ));
        let event = Event {
            t_ns: second * S,
            host: "client".into(),
            // Of kinds that this version does not know, too.
            kind: if second % 7 == 0 { "aurora" } else { "note" }.into(),
            text: format!("{second} \"né\""),
        };
        recorder.event(event.clone());
        events.push(event);
        let load = LoadInterval {
            begin_ns: second * S,
            end_ns: (second + 1) * S,
            level: (second / 50) as u32,
            measured: second > 3,
            statement: "commit".into(),
            count: second as u64,
            rows: 3,
            errors: if second == 7 { vec![("1213 (40001)".into(), 2)] } else { Vec::new() },
            response_sum_ns: 12_345,
            service_sum_ns: 12_000,
            response_max_ns: 400,
            response: (0..second as u64 % 5).map(|bucket| (bucket * 100 + 99, bucket + 1)).collect(),
            service: vec![(99, second as u64)],
        };
        recorder.load(load.clone());
        loads.push(load);
        if second == 30 || second == 60 {
            recorder.seal().unwrap();
        }
    }
    let table = |t_ns, columns: &[&str], rows| TextRows {
        source: "process-list".into(),
        t_ns,
        columns: columns.iter().map(|name| name.to_string()).collect(),
        rows,
    };
    let cell = |text: &str| Some(text.to_string());
    recorder.rows(table(
        S,
        &["Id", "Info"],
        vec![vec![cell("1"), None], vec![cell("2"), cell("SELECT 1\n")]],
    ));
    recorder.rows(table(2 * S, &["Id", "Info"], Vec::new()));
    let run =
        RunInfo { id: "one".into(), ended: Some(RunEnd::Complete { at_ns: 100 * S }), ..RunInfo::default() };
    recorder.set_run(&run);

    let check = |recording: &Recording| {
        let read = recording.samples(counter, None).unwrap();
        assert_eq!(read.len(), 99);
        assert_eq!(read.value[98], 693.0);
        assert_eq!((read.t_begin_ns[0], read.t_end_ns[0]), (-1_000_000, 0));
        assert_eq!(read.gaps, [Window { begin_ns: 40 * S - 1_000_000, end_ns: 40 * S }]);
        let points = read.points();
        assert_eq!(points.len(), 100);
        assert!(points.value[40].is_nan());
        let window = Window { begin_ns: 10 * S, end_ns: 70 * S };
        let many = recording.samples_many(&[fraction, counter, fraction], Some(window)).unwrap();
        assert_eq!(many.iter().map(|samples| samples.len()).collect::<Vec<_>>(), [60, 60, 60]);
        assert_eq!((many[0].value[0], many[1].value[0], many[1].value[59]), (0.1, 70.0, 490.0));
        assert_eq!(many[0], many[2]);
        assert_eq!(recording.events().unwrap(), events);
        assert_eq!(recording.load(None).unwrap(), loads);
        assert_eq!(recording.load(Some(Window { begin_ns: 5 * S, end_ns: 7 * S })).unwrap().len(), 2);
        let tables = recording.rows("process-list", None).unwrap();
        assert_eq!(
            tables[0],
            table(S, &["Id", "Info"], vec![vec![cell("1"), None], vec![cell("2"), cell("SELECT 1\n")]])
        );
        assert_eq!((tables[1].t_ns, tables[1].rows.len(), tables.len()), (2 * S, 0, 2));
        assert_eq!(recording.row_sources(), ["process-list"]);
        let info = recording.info(counter).unwrap();
        assert_eq!((info.samples, info.first_ns, info.last_ns), (99, 0, 99 * S));
        assert_eq!(recording.find("status", "Questions", None), [counter]);
        assert_eq!(recording.find("status", "Questions", Some("cpu0")), []);
        assert_eq!(recording.window(), Some(Window { begin_ns: 0, end_ns: 99 * S + 5 }));
    };
    // Once more than half sealed, half in write-ahead files; then finished.
    recorder.seal().unwrap();
    let half_way = Recording::open(&dir).unwrap();
    assert!(half_way.live());
    check(&half_way);
    let summary = recorder.finish().unwrap();
    assert_eq!((summary.samples, summary.series, summary.lost), (298, 3, 0));
    assert!(recorder.finish().is_err());
    let finished = Recording::open(&dir).unwrap();
    check(&finished);
    check(&half_way);
    assert!(!finished.live());
    assert_eq!(finished.problems(), [""; 0]);
    assert_eq!(finished.run(), &run);
    assert!(Recorder::create(&dir, options()).is_err());
    let listed = list_runs(runs.path()).unwrap();
    assert_eq!((listed.len(), listed[0].problem.clone(), listed[0].bytes), (1, None, summary.bytes));
    // One file a stream, and nothing else.
    assert_eq!(
        names(&dir),
        [
            "collections-000001_000003.parquet",
            "events-000001_000003.parquet",
            "load-000001_000003.parquet",
            "manifest.jsonl",
            "rollup-10s-000001_000003.parquet",
            "rollup-2min-000001_000003.parquet",
            "rows-process%2Dlist-000003.parquet",
            "run.json",
            "samples-000001_000003.parquet",
            "series.parquet",
        ]
    );
}

/// Both are used from several threads at once.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Recorder>();
    shared::<Recording>();
};

#[test]
fn a_folder_without_run_json_is_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    let error = Recording::open(folder.path()).err().unwrap().to_string();
    assert!(error.ends_with("is not a recording: it has no run.json"), "{error}");
    assert_eq!(list_runs(folder.path()).unwrap(), []);
    assert_eq!(list_runs(&folder.path().join("none")).unwrap(), []);
}

#[test]
fn envelopes_from_rollups_and_samples_agree() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let recorder = Recorder::create(&dir, options()).unwrap();
    let counter = recorder.series(&key("a", "n", Kind::Counter));
    let gauge = recorder.series(&key("a", "g", Kind::Gauge));
    let mut total = 0;
    for second in 0..4000 {
        total += if second == 2222 { 50_000 } else { 100 + second % 7 };
        let level = if second == 1111 { -5 } else { second % 50 };
        recorder.reading(reading(
            "a",
            second * S,
            vec![(counter, Value::Int(total)), (gauge, Value::Int(level))],
        ));
        if second % 333 == 0 {
            recorder.seal().unwrap();
        }
    }
    let check = |recording: &Recording| {
        let window = Window { begin_ns: 0, end_ns: 4000 * S };
        let drawn = recording.envelope(counter, window, 40).unwrap();
        assert_eq!(drawn.count.iter().sum::<u32>(), 3999);
        assert!((drawn.max[22] / 50_000.0 - 1.0).abs() < 0.001, "{}", drawn.max[22]);
        assert_eq!((drawn.min[5], drawn.max[5]), (100.0, 106.0));
        let drawn = recording.envelope(gauge, window, 8).unwrap();
        assert_eq!(drawn.min.iter().position(|min| *min == -5.0), Some(1111 / 500));
        assert_eq!(drawn.count, [500; 8]);
        // From roll-ups of two minutes, whose edges are not those of the buckets.
        let drawn = recording.envelope(gauge, window, 4).unwrap();
        assert_eq!(drawn.min.iter().position(|min| *min == -5.0), Some(1));
        assert!(drawn.count.iter().all(|count| count.abs_diff(1000) <= 120));
        // Fine enough for the samples themselves.
        let near = Window { begin_ns: 2200 * S, end_ns: 2240 * S };
        let drawn = recording.envelope(counter, near, 40).unwrap();
        assert_eq!((drawn.max[22], drawn.count[0]), (50_000.0, 1));
    };
    // Partly sealed: the rest of the roll-ups is made when read.
    recorder.seal().unwrap();
    for second in 4000..4100 {
        recorder.reading(reading(
            "a",
            second * S,
            vec![(counter, Value::Int(total)), (gauge, Value::Int(1))],
        ));
    }
    check(&Recording::open(&dir).unwrap());
    recorder.finish().unwrap();
    let finished = Recording::open(&dir).unwrap();
    check(&finished);
    let late = finished.envelope(gauge, Window { begin_ns: 4000 * S, end_ns: 4400 * S }, 10).unwrap();
    assert_eq!((late.count[0], late.count[2], late.count[3]), (40, 20, 0));
}

#[test]
fn a_crash_between_compacting_and_removing_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let recorder = Recorder::create(&dir, options()).unwrap();
    let series = recorder.series(&key("a", "n", Kind::Counter));
    let copies = folder.path().join("copies");
    fs::create_dir(&copies).unwrap();
    for second in 0..30 {
        recorder.reading(reading("a", second * S, vec![(series, Value::Int(second))]));
        if second % 10 == 9 {
            // The write-ahead files as they were just before they were sealed, and the parts before they were compacted.
            while Recording::open(&dir).unwrap().info(series).map_or(0, |info| info.samples) <= second as u64
            {
                std::thread::yield_now();
            }
            keep(&dir, &copies);
            recorder.seal().unwrap();
            keep(&dir, &copies);
        }
    }
    recorder.finish().unwrap();
    let expected = Recording::open(&dir).unwrap().samples(series, None).unwrap();
    assert_eq!(expected.len(), 30);
    for file in fs::read_dir(&copies).unwrap() {
        let file = file.unwrap();
        if file.file_name() != "run.json" {
            fs::copy(file.path(), dir.join(file.file_name())).unwrap();
        }
    }
    let names = names(&dir);
    assert!(
        names.contains(&"samples-000002.wal".to_string())
            && names.contains(&"samples-000002.parquet".to_string()),
        "{names:?}"
    );
    let recording = Recording::open(&dir).unwrap();
    assert_eq!(recording.samples(series, None).unwrap(), expected);
    assert_eq!(recording.info(series).unwrap().samples, 30);
}

fn keep(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        if name.ends_with(".wal") || name.ends_with(".parquet") {
            fs::copy(file.path(), to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_damaged_file_is_reported_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let recorder = Recorder::create(&dir, options()).unwrap();
    let series = recorder.series(&key("a", "n", Kind::Counter));
    recorder.reading(reading("a", S, vec![(series, Value::Int(1))]));
    recorder.event(Event { t_ns: 1, host: "client".into(), kind: "note".into(), text: "x".into() });
    recorder.seal().unwrap();
    recorder.reading(reading("a", 2 * S, vec![(series, Value::Int(2))]));
    abandon(recorder, &dir);
    fs::write(dir.join("events-000001.parquet"), "not Parquet at all").unwrap();
    let wal = dir.join("samples-000002.wal");
    let mut bytes = fs::read(&wal).unwrap();
    bytes.extend_from_slice(b"half a frame");
    fs::write(&wal, bytes).unwrap();
    let recording = Recording::open(&dir).unwrap();
    assert_eq!(recording.samples(series, None).unwrap().value, [1.0, 2.0]);
    assert_eq!(recording.events().unwrap(), []);
    let problems = recording.problems().join("\n");
    assert!(problems.contains("events-000001.parquet is not what was recorded"), "{problems}");
    assert!(problems.contains("samples-000002.wal: its last 12 bytes are not whole"), "{problems}");
    assert!(problems.contains("the recorder ended without finishing"), "{problems}");
    assert_eq!(recording.problems().len(), 3);
}

#[test]
fn what_comes_too_fast_is_lost_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let recorder = Recorder::create(&dir, Options { queue_bytes_max: 0, ..options() }).unwrap();
    let series = recorder.series(&key("a", "n", Kind::Counter));
    for second in 0..1000 {
        recorder.reading(reading("a", second * S, vec![(series, Value::Int(second))]));
    }
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.lost + summary.samples, 1000);
    assert!(summary.lost > 0);
    let events = Recording::open(&dir).unwrap().events().unwrap();
    assert!(
        events.iter().any(|event| event.kind == "lost" && event.text.contains("faster than")),
        "{events:?}"
    );
}

#[test]
fn the_recorder_records_what_it_costs() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let recorder = Recorder::create(&dir, Options { own_cost: true, ..options() }).unwrap();
    let waited = std::time::Instant::now();
    while recorder.own_cost().written_bytes < 2000 {
        assert!(waited.elapsed().as_secs() < 20);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    recorder.finish().unwrap();
    assert!(recorder.own_cost().cpu_ns > 0);
    let recording = Recording::open(&dir).unwrap();
    let cpu = recording.find("recorder", "cpu_ns", Some(""));
    assert!(recording.samples(cpu[0], None).unwrap().value[0] >= 0.0);
}

#[test]
fn any_stream_can_be_recorded() {
    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::Int64Type;
    use std::sync::Arc;
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let recorder = Recorder::create(&dir, options()).unwrap();
    let batch = |value| {
        RecordBatch::try_from_iter([("t_ns", Arc::new(Int64Array::from(vec![value])) as ArrayRef)]).unwrap()
    };
    recorder.batch("locks", batch(1)).unwrap();
    recorder.seal().unwrap();
    recorder.batch("locks", batch(2)).unwrap();
    for bad in ["samples", "states", "a/b", "", "rollup-10s"] {
        assert!(recorder.batch(bad, batch(3)).is_err());
    }
    recorder.finish().unwrap();
    let read = Recording::open(&dir).unwrap().batches("locks").unwrap();
    let values: Vec<i64> =
        read.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
    assert_eq!(values, [1, 2]);
}

#[derive(Clone, Debug)]
enum Step {
    Read(u8, u8, i64),
    Fail(u8),
    Seal,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0u8..3, 0u8..4, any::<i32>()).prop_map(|(source, series, value)| Step::Read(source, series, i64::from(value))),
        1 => (0u8..3).prop_map(Step::Fail),
        1 => Just(Step::Seal),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Any order of readings, failures and seals, finished or cut short: each window of each series is what a plain list gives.
    #[test]
    fn what_goes_in_comes_out(steps in steps(), finished: bool, begin in 0i64..60, end in 0i64..60) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let recorder = Recorder::create(&dir, options()).unwrap();
        let mut expected: Vec<Vec<(i64, f64)>> = vec![Vec::new(); 12];
        let mut ids: Vec<Option<SeriesId>> = vec![None; 12];
        for (step, t_ns) in steps.iter().zip(0i64..) {
            match step {
                Step::Seal => recorder.seal().unwrap(),
                Step::Fail(source) => recorder.reading(Reading { status: Status::Missed, ..reading(&format!("s{source}"), t_ns, Vec::new()) }),
                Step::Read(source, series, value) => {
                    let which = (source * 4 + series) as usize;
                    let id = recorder.series(&key(&format!("s{source}"), &format!("m{series}"), Kind::Gauge));
                    ids[which] = Some(id);
                    let recorded = if value % 2 == 0 { Value::Int(*value) } else { Value::Float(*value as f64 / 8.0) };
                    expected[which].push((t_ns, recorded.as_f64()));
                    recorder.reading(reading(&format!("s{source}"), t_ns, vec![(id, recorded)]));
                }
            }
        }
        if finished { recorder.finish().unwrap(); } else { abandon(recorder, &dir); }
        let recording = Recording::open(&dir).unwrap();
        let window = Window { begin_ns: begin.min(end), end_ns: begin.max(end) };
        let present: Vec<SeriesId> = ids.iter().flatten().copied().collect();
        let many = recording.samples_many(&present, Some(window)).unwrap();
        let mut at = 0;
        for (id, expected) in ids.iter().zip(&expected) {
            let Some(id) = id else { continue };
            let pairs = |read: &whyso_record::Samples| read.t_end_ns.iter().copied().zip(read.value.iter().copied()).collect::<Vec<_>>();
            prop_assert_eq!(&pairs(&recording.samples(*id, None).unwrap()), expected);
            let within: Vec<(i64, f64)> = expected.iter().copied().filter(|(t, _)| (window.begin_ns..=window.end_ns).contains(t)).collect();
            prop_assert_eq!(pairs(&many[at]), within);
            at += 1;
        }
    }
}

#[test]
fn a_recording_within_a_bound_loses_its_oldest_detail_and_keeps_its_roll_ups() {
    const BYTES_MAX: u64 = 1_000_000;
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("run");
    let recorder = Recorder::create(&dir, Options { bytes_max: Some(BYTES_MAX), ..options() }).unwrap();
    let series: Vec<SeriesId> =
        (0..40).map(|number| recorder.series(&key("status", &format!("n{number}"), Kind::Gauge))).collect();
    recorder.event(Event {
        t_ns: 1,
        host: String::new(),
        kind: "note".to_string(),
        text: "first".to_string(),
    });
    let mut noise = 1_u64;
    let mut largest = 0;
    for minute in 0..40_i64 {
        for quarter in 0..240 {
            let values = series.iter().map(|id| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (*id, Value::Int((noise >> 33) as i64))
            });
            recorder.reading(reading("status", minute * 60 * S + quarter * S / 4, values.collect()));
        }
        recorder.seal().unwrap();
        let bytes: u64 = fs::read_dir(&dir)
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name() != ".reserve")
            .map(|entry| entry.metadata().unwrap().len())
            .sum();
        largest = largest.max(bytes);
    }
    recorder.set_run(&RunInfo {
        id: "one".into(),
        ended: Some(RunEnd::Complete { at_ns: 2400 * S }),
        ..RunInfo::default()
    });
    recorder.finish().unwrap();
    // A segment has some 45 KB of detail, and the roll-ups of all 40 stay.
    assert!(largest < BYTES_MAX + 60_000, "{largest}");

    let recording = Recording::open(&dir).unwrap();
    let problems = recording.problems();
    assert!(problems.iter().any(|line| line.contains("oldest detail was removed")), "{problems:?}");
    let remaining = recording.samples(series[0], None).unwrap();
    assert_eq!(remaining.t_end_ns.last(), Some(&(2399 * S + 3 * S / 4)));
    assert!(
        remaining.t_end_ns[0] > 0 && remaining.len() > 60,
        "{} from {}",
        remaining.len(),
        remaining.t_end_ns[0]
    );
    // Two buckets are coarse enough to be made of roll-ups, which go back to the beginning.
    let whole = recording.envelope(series[0], Window { begin_ns: 0, end_ns: 2400 * S }, 2).unwrap();
    assert!(whole.min[0].is_finite() && whole.min[0] < whole.max[0], "{whole:?}");
    assert_eq!(recording.events().unwrap().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_counter_near_its_end_grows_by_exactly_what_it_grew(
        steps in prop::collection::vec(0_i64..5, 1..40),
        below in 0_i64..1000,
        reset in any::<bool>(),
    ) {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("run");
        let recorder = Recorder::create(&dir, options()).unwrap();
        let series = recorder.series(&key("status", "Bytes_sent", Kind::Counter));
        let sum: i64 = steps.iter().sum();
        let mut values_recorded = vec![i64::MAX - sum - below];
        for step in &steps {
            values_recorded.push(values_recorded[values_recorded.len() - 1] + step);
        }
        if reset {
            values_recorded.push(3);
        }
        for (at, value) in values_recorded.iter().enumerate() {
            recorder.reading(reading("status", at as i64 * S, vec![(series, Value::Int(*value))]));
        }
        recorder.finish().unwrap();
        let recording = Recording::open(&dir).unwrap();
        let samples = recording.samples(series, None).unwrap();
        let points = samples.counter_points();
        prop_assert_eq!(*points.value.last().unwrap(), (sum + if reset { 3 } else { 0 }) as f64);
        // What it was is exported to the last digit too.
        let mut csv = Vec::new();
        whyso_record::export::to_csv(&recording, &mut csv, &whyso_record::export::Filter::default()).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let values: Vec<i64> = csv.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect();
        prop_assert_eq!(values, values_recorded);
    }
}

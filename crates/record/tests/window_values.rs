//! What series did over windows is the same from roll-ups as from samples, however the recording was written.

use std::path::Path;

use proptest::prelude::*;
use whyso_record::data::{Kind, Reading, SeriesId, SeriesKey, Status, Value};
use whyso_record::run::Window;
use whyso_record::{Options, Recorder, Recording, WindowValue, list_runs};
use whyso_series::{increase, max_over, mean_over};

const S: i64 = 1_000_000_000;

fn options() -> Options {
    Options { reserve_bytes: 1 << 20, own_cost: false, ..Options::default() }
}

fn key(source: &str, metric: &str, kind: Kind) -> SeriesKey {
    let [host, source, metric, unit] = ["server", source, metric, "1"].map(str::to_string);
    SeriesKey { host, source, metric, instance: String::new(), kind, unit }
}

/// As a crash would end it: what it gave to the system is there, the newest segment is not sealed.
fn abandon(recorder: Recorder, dir: &Path) {
    drop(recorder);
    while list_runs(dir.parent().unwrap()).unwrap().iter().any(|run| run.path == dir && run.live) {
        std::thread::yield_now();
    }
}

/// The same from all samples.
fn from_samples(recording: &Recording, id: SeriesId, window: Window) -> Option<WindowValue> {
    let samples = recording.samples(id, None).unwrap();
    let Window { begin_ns, end_ns } = window;
    match recording.info(id).unwrap().key.kind {
        Kind::Counter => {
            let points = samples.counter_points();
            increase(&points.t_ns, &points.value, begin_ns, end_ns).map(WindowValue::Counter)
        }
        Kind::Gauge => {
            let points = samples.points();
            let mean = mean_over(&points.t_ns, &points.value, begin_ns, end_ns)?;
            let max = max_over(&points.t_ns, &points.value, begin_ns, end_ns)?;
            Some(WindowValue::Gauge { mean, max })
        }
    }
}

/// What is made up of a series.
#[derive(Clone, Copy)]
enum Shape {
    Counter,
    /// It falls by a little, often, and is reset now and then.
    FallingCounter,
    /// Beyond what every `f64` holds.
    HugeCounter,
    FractionCounter,
    Gauge,
    FractionGauge,
}

const SHAPES: [Shape; 6] = [
    Shape::Counter,
    Shape::FallingCounter,
    Shape::HugeCounter,
    Shape::FractionCounter,
    Shape::Gauge,
    Shape::FractionGauge,
];

impl Shape {
    fn kind(self) -> Kind {
        match self {
            Shape::Gauge | Shape::FractionGauge => Kind::Gauge,
            _ => Kind::Counter,
        }
    }

    fn next(self, before: f64, (what, random): (u8, u16)) -> f64 {
        let random = f64::from(random);
        match self {
            Shape::Counter | Shape::HugeCounter if what == 0 => random,
            Shape::Counter | Shape::HugeCounter => before + random,
            Shape::FallingCounter if what < 2 => random / 64.0,
            Shape::FallingCounter if what < 40 => (before * 0.9).floor(),
            Shape::FallingCounter => before + random,
            Shape::FractionCounter => before + random / 7.0,
            Shape::Gauge => random - 30_000.0,
            Shape::FractionGauge => random / 1000.0,
        }
    }
}

/// One reading of the only source.
#[derive(Clone, Debug)]
struct Step {
    /// Time since the reading before.
    ms: i64,
    is_ok: bool,
    /// By series: whether it is missing, and what its value becomes.
    values: Vec<(u8, (u8, u16))>,
}

fn step(is_even: bool, with_trouble: bool) -> impl Strategy<Value = Step> {
    let even = Just(5_000_i64);
    let uneven = prop_oneof![20 => 4_900_i64..5_100, 2 => 1_i64..20_000, 1 => 100_000_i64..400_000];
    let ms = if is_even { even.boxed() } else { uneven.boxed() };
    let trouble = if with_trouble { 0_u8..200 } else { 100_u8..200 };
    let values = prop::collection::vec((trouble.clone(), (any::<u8>(), any::<u16>())), SHAPES.len());
    (ms, trouble, values).prop_map(|(ms, trouble, values)| Step { ms, is_ok: trouble > 2, values })
}

#[derive(Clone, Debug)]
struct Case {
    is_even: bool,
    steps: Vec<Step>,
    /// After which steps a segment is sealed.
    seals: Vec<usize>,
    is_finished: bool,
    /// Begin and length of windows, in seconds and tenths of the whole.
    windows: Vec<(i64, i64)>,
}

fn case() -> impl Strategy<Value = Case> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_flat_map(|(is_even, with_trouble, is_finished)| {
        let steps = prop::collection::vec(step(is_even, with_trouble), 1..900);
        let seals = prop::collection::vec(0_usize..900, 0..5);
        let windows = prop::collection::vec((-100_i64..5_000, 0_i64..5_000), 1..6);
        (steps, seals, windows).prop_map(move |(steps, seals, windows)| Case {
            is_even,
            steps,
            seals,
            is_finished,
            windows,
        })
    })
}

fn record(dir: &Path, case: &Case) -> Vec<SeriesId> {
    let recorder = Recorder::create(dir, options()).unwrap();
    let series: Vec<SeriesId> = SHAPES
        .iter()
        .enumerate()
        .map(|(number, shape)| recorder.series(&key("status", &format!("series {number}"), shape.kind())))
        .collect();
    let mut now: Vec<f64> = vec![0.0; SHAPES.len()];
    let mut huge = i64::MAX - 900 * 65_536;
    let mut end_ns = 3 * S;
    for (number, step) in case.steps.iter().enumerate() {
        end_ns += step.ms * 1_000_000;
        let mut values = Vec::new();
        for (place, (trouble, random)) in step.values.iter().enumerate() {
            let before = now[place];
            now[place] = SHAPES[place].next(before, *random);
            let value = match SHAPES[place] {
                Shape::FractionCounter | Shape::FractionGauge => Value::Float(now[place]),
                Shape::HugeCounter => {
                    huge = if now[place] < before { now[place] as i64 } else { huge + i64::from(random.1) };
                    Value::Int(huge)
                }
                _ => Value::Int(now[place] as i64),
            };
            if step.is_ok && *trouble > 0 {
                values.push((series[place], value));
            }
        }
        let status = if step.is_ok { Status::Ok } else { Status::Failed };
        recorder.reading(Reading {
            source: "status".to_string(),
            begin_ns: end_ns - 1_000_000,
            end_ns,
            status,
            values,
        });
        if case.seals.contains(&number) {
            recorder.seal().unwrap();
        }
    }
    match case.is_finished {
        true => drop(recorder.finish().unwrap()),
        false => abandon(recorder, dir),
    }
    series
}

fn is_near(one: f64, other: f64, within: f64) -> bool {
    (one - other).abs() <= within + 1e-9 * (1.0 + other.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn roll_ups_give_what_samples_give(case in case()) {
        let runs = tempfile::tempdir().unwrap();
        let dir = runs.path().join("run");
        let series = record(&dir, &case);
        let recording = Recording::open(&dir).unwrap();
        let length_ns: i64 = case.steps.iter().map(|step| step.ms * 1_000_000).sum();
        // The last are of the whole recording, and of whole buckets.
        let mut windows = vec![
            Window { begin_ns: 0, end_ns: length_ns + 10 * S },
            Window { begin_ns: 120 * S, end_ns: 120 * S * 12 },
        ];
        windows.extend(case.windows.iter().map(|(begin_s, seconds)| {
            Window { begin_ns: begin_s * S, end_ns: (begin_s + seconds) * S }
        }));
        let mut checked = 0;
        recording.window_values(&series, &windows, |id, values| {
            for (window, value) in windows.iter().zip(values) {
                let expected = from_samples(&recording, id, *window);
                let is_same = match (value, &expected) {
                    (None, None) => true,
                    (Some(WindowValue::Counter(one)), Some(WindowValue::Counter(other))) => {
                        one.covered_ns == other.covered_ns && is_near(one.amount, other.amount, 0.0)
                    }
                    (Some(WindowValue::Gauge { mean, max }), Some(WindowValue::Gauge { mean: other, max: other_max })) => {
                        // 5 % of what lies between the lowest and the highest, where distances are uneven.
                        let range = recording.samples(id, None).unwrap().value;
                        let low = range.iter().copied().fold(f64::INFINITY, f64::min);
                        let high = range.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                        let off = if case.is_even { 0.0 } else { 0.05 * (high - low) };
                        max == other_max && is_near(*mean, *other, off)
                    }
                    _ => false,
                };
                assert!(is_same, "series {} in {window:?}: {value:?}, of samples {expected:?}", id.0);
                checked += 1;
            }
        }).unwrap();
        prop_assert_eq!(checked, series.len() * windows.len());
    }
}

/// Seconds of one counter and one gauge, sealed every five minutes, with a reset every 610 seconds.
fn regular(dir: &Path, seconds: i64) -> [SeriesId; 2] {
    let recorder = Recorder::create(dir, options()).unwrap();
    let series =
        [("n", Kind::Counter), ("g", Kind::Gauge)].map(|(name, kind)| recorder.series(&key("a", name, kind)));
    for second in 0..seconds {
        let values =
            vec![(series[0], Value::Int(second % 610 * 7)), (series[1], Value::Int(second * second % 1009))];
        let end_ns = second * S + 5;
        recorder.reading(Reading {
            source: "a".to_string(),
            begin_ns: end_ns - 1,
            end_ns,
            status: Status::Ok,
            values,
        });
        if second % 300 == 299 {
            recorder.seal().unwrap();
        }
    }
    recorder.finish().unwrap();
    series
}

#[test]
fn an_unknown_series_is_an_error_and_no_window_is_none() {
    let runs = tempfile::tempdir().unwrap();
    let dir = runs.path().join("run");
    let [counter, gauge] = regular(&dir, 10);
    let recording = Recording::open(&dir).unwrap();
    let unknown = recording.window_values(&[SeriesId(9)], &[Window::default()], |_, _| {}).unwrap_err();
    assert!(unknown.to_string().contains('9'), "{unknown}");
    let mut called = Vec::new();
    recording.window_values(&[gauge, counter], &[], |id, values| called.push((id, values.len()))).unwrap();
    assert_eq!(called, [(counter, 0), (gauge, 0)]);
    let turned = Window { begin_ns: 5 * S, end_ns: 2 * S };
    recording.window_values(&[counter], &[turned], |_, values| assert_eq!(values, [None])).unwrap();
}

#[test]
fn a_long_window_over_many_segments_counts_across_resets() {
    let runs = tempfile::tempdir().unwrap();
    let dir = runs.path().join("run");
    let [counter, gauge] = regular(&dir, 7000);
    let recording = Recording::open(&dir).unwrap();
    let window = Window { begin_ns: 650 * S + 5, end_ns: 6550 * S + 5 };
    let mut found = Vec::new();
    recording.window_values(&[counter, gauge], &[window], |_, values| found.push(values[0])).unwrap();
    // Nine resets to 0 lie between, and a step to 0 is no growth.
    let Some(WindowValue::Counter(grown)) = found[0] else { panic!("{found:?}") };
    assert_eq!((grown.amount, grown.covered_ns), (f64::from((5900 - 9) * 7), 5900 * S));
    let Some(WindowValue::Gauge { mean, max }) = found[1] else { panic!("{found:?}") };
    let Some(WindowValue::Gauge { mean: other, max: other_max }) = from_samples(&recording, gauge, window)
    else {
        panic!("the gauge has samples")
    };
    assert!((mean / other - 1.0).abs() < 1e-12, "{mean}, of samples {other}");
    assert_eq!(max, other_max);
}

/// By time the gauge is mostly 0, by count of readings mostly 100.
#[test]
fn readings_at_uneven_distances_weigh_by_time() {
    let runs = tempfile::tempdir().unwrap();
    let dir = runs.path().join("run");
    let recorder = Recorder::create(&dir, options()).unwrap();
    let gauge = recorder.series(&key("a", "g", Kind::Gauge));
    for bucket in 0..20 {
        let dense = (0..60).map(|at| (at * S / 100, 100));
        let sparse = (1..12).map(|at| (at * 10 * S, 0));
        for (end_ns, value) in dense.chain(sparse) {
            let end_ns = bucket * 120 * S + end_ns;
            recorder.reading(Reading {
                source: "a".to_string(),
                begin_ns: end_ns,
                end_ns,
                status: Status::Ok,
                values: vec![(gauge, Value::Int(value))],
            });
        }
    }
    recorder.finish().unwrap();
    let recording = Recording::open(&dir).unwrap();
    let window = Window { begin_ns: 0, end_ns: 2400 * S };
    recording
        .window_values(&[gauge], &[window], |id, values| {
            assert_eq!(values, [from_samples(&recording, id, window)]);
            assert!(matches!(values[0], Some(WindowValue::Gauge { mean, .. }) if mean < 10.0), "{values:?}");
        })
        .unwrap();
}

//! A recording for benches, of seeded random numbers. The same numbers give the same recording.
//!
//! - Of its series, 40 % are constant, 40 % Poisson counters of 0.1 to 10⁵ per second (log-uniform), and 20 % noisy gauges.
//! - There is one reading per second of each of ten sources, with its window and its jitter.
//!
//! The gauges are of five kinds, as servers have them:
//!
//! - a page count that wanders,
//! - bytes of memory in units of 4 KiB that wander,
//! - a number of running threads (white noise),
//! - a ratio with four digits that wanders,
//! - a mean latency in whole microseconds (white noise).

use std::path::Path;
use std::time::Duration;

use whyso_record::data::{Kind, Reading, SeriesId, SeriesKey, Status, Value};
use whyso_record::run::{RunEnd, RunInfo};
use whyso_record::{Options, Recorder, Result, Summary};

const S: i64 = 1_000_000_000;
/// A source is read in a few milliseconds, this much apart from the next.
const SOURCES: usize = 10;
/// A segment, as in a real run.
const SEGMENT_S: i64 = 300;
/// What may wait before the generator waits: it has no clock that would slow it down.
const QUEUED_BYTES_MAX: usize = 16 << 20;

/// xorshift64*: reproducible, and as good as noise needs to be.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// In [0, 1).
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal, by the sum of twelve.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    /// Knuth's product for small means, the normal approximation for large ones.
    fn poisson(&mut self, mean: f64) -> i64 {
        if mean > 30.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0) as i64;
        }
        let limit = (-mean).exp();
        let mut product = self.share();
        let mut count = 0;
        while product > limit {
            product *= self.share();
            count += 1;
        }
        count
    }
}

enum SeriesShape {
    Constant(i64),
    Counter { mean: f64, total: i64 },
    Pages(i64),
    Memory(i64),
    Threads,
    Ratio(i64),
    Latency(f64),
}

impl SeriesShape {
    fn number(index: usize, random: &mut Random) -> SeriesShape {
        match index % 5 {
            0 | 1 => SeriesShape::Constant(random.next() as i64 >> 40),
            2 | 3 => SeriesShape::Counter { mean: 10f64.powf(random.share() * 6.0 - 1.0), total: 0 },
            _ => match index / 5 % 5 {
                0 => SeriesShape::Pages(100_000),
                1 => SeriesShape::Memory(1 << 18),
                2 => SeriesShape::Threads,
                3 => SeriesShape::Ratio(5_000),
                _ => SeriesShape::Latency(200.0 + random.share() * 2_000.0),
            },
        }
    }

    fn kind(&self) -> Kind {
        match self {
            SeriesShape::Constant(_) | SeriesShape::Counter { .. } => Kind::Counter,
            _ => Kind::Gauge,
        }
    }

    fn value(&mut self, random: &mut Random) -> Value {
        match self {
            SeriesShape::Constant(value) => Value::Int(*value),
            SeriesShape::Counter { mean, total } => {
                *total += random.poisson(*mean);
                Value::Int(*total)
            }
            SeriesShape::Pages(pages) => {
                *pages = (*pages + (random.normal() * 50.0) as i64).max(0);
                Value::Int(*pages)
            }
            SeriesShape::Memory(pages) => {
                *pages = (*pages + (random.normal() * 20.0) as i64).max(0);
                Value::Int(*pages * 4096)
            }
            SeriesShape::Threads => Value::Int(random.poisson(12.0)),
            SeriesShape::Ratio(ten_thousandths) => {
                *ten_thousandths = (*ten_thousandths + (random.normal() * 100.0) as i64).clamp(0, 10_000);
                Value::Float(*ten_thousandths as f64 / 10_000.0)
            }
            SeriesShape::Latency(mean) => Value::Int((*mean * (1.0 + 0.1 * random.normal())) as i64),
        }
    }
}

/// Readings of every source, second by second.
pub(crate) struct Generator {
    random: Random,
    series: Vec<(SeriesId, SeriesShape)>,
}

impl Generator {
    pub(crate) fn new(recorder: &Recorder, series: usize) -> Generator {
        let mut random = Random::new(1);
        let series = (0..series)
            .map(|index| {
                let shape = SeriesShape::number(index, &mut random);
                let key = SeriesKey {
                    host: "server".to_string(),
                    source: source(index, series),
                    metric: format!("metric_{index}"),
                    instance: String::new(),
                    kind: shape.kind(),
                    unit: "1".to_string(),
                };
                (recorder.series(&key), shape)
            })
            .collect();
        Generator { random, series }
    }

    /// The readings of one second that began at `t_ns`.
    pub(crate) fn second(&mut self, t_ns: i64) -> Vec<Reading> {
        let count = self.series.len();
        let mut readings: Vec<Reading> = Vec::new();
        for (index, (id, shape)) in self.series.iter_mut().enumerate() {
            let source = source(index, count);
            if readings.last().is_none_or(|reading| reading.source != source) {
                let begin_ns =
                    t_ns + readings.len() as i64 * 5_000_000 + (self.random.share() * 200_000.0) as i64;
                let end_ns = begin_ns + 1_000_000 + (self.random.share() * 500_000.0) as i64;
                readings.push(Reading { source, begin_ns, end_ns, status: Status::Ok, values: Vec::new() });
            }
            let value = shape.value(&mut self.random);
            if let Some(reading) = readings.last_mut() {
                reading.values.push((*id, value));
            }
        }
        readings
    }
}

fn source(index: usize, series: usize) -> String {
    format!("source_{}", index * SOURCES / series.max(1))
}

/// Records so many hours as fast as it goes.
pub(crate) fn record(dir: &Path, hours: f64, series: usize) -> Result<Summary> {
    let options = Options { own_cost: false, reserve_bytes: 0, segment_s: 3600, ..Options::default() };
    let recorder = Recorder::create(dir, options)?;
    let mut generator = Generator::new(&recorder, series);
    let seconds = (hours * 3600.0) as i64;
    for second in 0..seconds {
        for reading in generator.second(1000 * S + second * S) {
            recorder.reading(reading);
        }
        while recorder.queued_bytes() > QUEUED_BYTES_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
        if second % SEGMENT_S == SEGMENT_S - 1 {
            recorder.seal()?;
        }
    }
    let id = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let ended = Some(RunEnd::Complete { at_ns: (1000 + seconds) * S });
    let anchors = vec![whyso_clock::Anchor {
        monotonic_ns: 1000 * S,
        wall_ns: 1_750_000_000 * S,
        boot_id: String::new(),
    }];
    recorder.set_run(&RunInfo { id, ended, anchors, ..RunInfo::default() });
    recorder.finish()
}

//! What watching costs: `watch_cost SOCKET PID SECONDS INTERVAL_MS` watches a local server.
//!
//! It prints one line per sampler: the CPU time of this process per second, and how long a reading took.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mysql_async::OptsBuilder;
use whyso_record::data::{Event, Reading, SeriesId, SeriesKey, TextRows};
use whyso_watch::{Sink, WatchSpec, Watcher};

/// The series, the last value of each, and how many values there were.
type Content = (Vec<SeriesKey>, BTreeMap<u32, f64>, u64);

/// Keeps the last value of each series and how many values there were.
#[derive(Clone, Default)]
struct Last(Arc<Mutex<Content>>);

impl Sink for Last {
    fn series(&self, key: &SeriesKey) -> SeriesId {
        let mut content = self.0.lock().expect("no thread panics");
        let position = content.0.iter().position(|series| series == key);
        let index = position.unwrap_or_else(|| {
            content.0.push(key.clone());
            content.0.len() - 1
        });
        SeriesId(index as u32)
    }
    fn reading(&self, reading: Reading) {
        let mut content = self.0.lock().expect("no thread panics");
        for (id, value) in reading.values {
            content.1.insert(id.0, value.as_f64());
            content.2 += 1;
        }
    }
    fn event(&self, event: Event) {
        println!("{}: {}", event.kind, event.text);
    }
    fn rows(&self, _rows: TextRows) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, pid, seconds, interval_ms] = arguments.as_slice() else {
        return Err("usage: watch_cost SOCKET PID SECONDS INTERVAL_MS".into());
    };
    let opts = OptsBuilder::default().socket(Some(socket.clone())).user(Some("root"));
    let spec = WatchSpec {
        interval: Duration::from_millis(interval_ms.parse()?),
        server: Some(opts.into()),
        server_pid: Some(pid.parse()?),
        data_dir: Some(PathBuf::from("/")),
        ..WatchSpec::default()
    };
    let last = Last::default();
    let watcher = Watcher::start(spec, last.clone())?;
    // The first readings name every series; what counts is the cost from then on.
    std::thread::sleep(Duration::from_secs(2));
    let before = costs(&last);
    let process_before_ns = whyso_clock::process_cpu_ns();
    let seconds: u64 = seconds.parse()?;
    std::thread::sleep(Duration::from_secs(seconds));
    let process_ns = whyso_clock::process_cpu_ns() - process_before_ns;
    let after = costs(&last);
    for line in watcher.not_measured() {
        println!("not measured: {line}");
    }
    watcher.stop();

    println!("{:20} {:>12} {:>12} {:>9}", "sampler", "cpu us/s", "us/reading", "readings");
    for (sampler, now) in &after {
        let Some(then) = before.get(sampler) else {
            continue;
        };
        let readings = now.readings - then.readings;
        let cpu_us_per_s = (now.cpu_ns - then.cpu_ns) / 1e3 / seconds as f64;
        let us_per_reading = (now.duration_ns - then.duration_ns) / 1e3 / readings.max(1.0);
        println!("{sampler:20} {cpu_us_per_s:12.0} {us_per_reading:12.0} {readings:9.0}");
    }
    let core = process_ns as f64 / 1e7 / seconds as f64;
    let content = last.0.lock().map_err(|error| error.to_string())?;
    println!("whole process: {core:.2} % of a core, {} series, {} values", content.0.len(), content.2);
    Ok(())
}

#[derive(Default)]
struct Sums {
    cpu_ns: f64,
    duration_ns: f64,
    readings: f64,
}

fn costs(last: &Last) -> BTreeMap<String, Sums> {
    let content = last.0.lock().expect("no thread panics");
    let mut costs: BTreeMap<String, Sums> = BTreeMap::new();
    for (id, value) in &content.1 {
        let key = &content.0[*id as usize];
        if key.source != "watch" {
            continue;
        }
        let sums = costs.entry(key.instance.clone()).or_default();
        match key.metric.as_str() {
            "cpu_ns" => sums.cpu_ns = *value,
            "duration_ns" => sums.duration_ns = *value,
            "readings" => sums.readings = *value,
            _ => {}
        }
    }
    costs
}

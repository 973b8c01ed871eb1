//! Temporary: what level values cost from all samples.
use std::path::Path;
use std::time::Instant;
use whyso_record::data::{Kind, SeriesId};
use whyso_record::run::Window;
use whyso_record::{Recording, WindowValue};
const S: i64 = 1_000_000_000;
fn kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))
        .unwrap()
        .trim()
        .trim_end_matches("kB")
        .trim()
        .parse()
        .unwrap()
}
pub fn run(a: &[String]) {
    let recording = Recording::open(Path::new(&a[0])).unwrap();
    let whole = recording.window().unwrap();
    let ids: Vec<SeriesId> = recording.series().iter().map(|i| i.id).collect();
    let begin: i64 = a[1].parse().unwrap();
    let window = Window { begin_ns: whole.begin_ns + begin * S, end_ns: whole.end_ns - begin * S };
    let rss = kib("VmRSS");
    for how in a[2].split(',') {
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let began = Instant::now();
        let cpu = whyso_clock::thread_cpu_ns();
        let mut all = Vec::new();
        if how == "before" {
            recording
                .samples_each(&ids, None, |id, samples| {
                    let kind = recording.info(id).unwrap().key.kind;
                    let points =
                        if kind == Kind::Counter { samples.counter_points() } else { samples.points() };
                    let (b, e) = (window.begin_ns, window.end_ns);
                    let (t, v) = (&points.t_ns, &points.value);
                    all.push(if kind == Kind::Counter {
                        whyso_series::increase(t, v, b, e).map(WindowValue::Counter)
                    } else {
                        whyso_series::mean_over(t, v, b, e)
                            .zip(whyso_series::max_over(t, v, b, e))
                            .map(|(mean, max)| WindowValue::Gauge { mean, max })
                    });
                })
                .unwrap();
        } else {
            recording.window_values(&ids, &[window], |_, v| all.push(v[0])).unwrap();
        }
        println!(
            "{how}: {:.0} ms wall, {:.0} ms CPU, peak {} MiB above {} MiB",
            began.elapsed().as_secs_f64() * 1e3,
            (whyso_clock::thread_cpu_ns() - cpu) as f64 / 1e6,
            kib("VmHWM").saturating_sub(rss) / 1024,
            rss / 1024
        );
        let mut counters = (0.0, 0.0);
        let mut gauges = (0.0, 0.0);
        for v in all.iter().flatten() {
            match v {
                WindowValue::Counter(i) => {
                    counters.0 += i.amount;
                    counters.1 += i.covered_ns as f64;
                }
                WindowValue::Gauge { mean, max } => {
                    gauges.0 += mean;
                    gauges.1 += max;
                }
            }
        }
        println!("   {} values, counters {counters:?} gauges {gauges:?}", all.len());
    }
}

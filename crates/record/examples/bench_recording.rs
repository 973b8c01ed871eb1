//! What a recording costs, on disk, to write and to read: `bench_recording [HOURS] [SERIES] [DIR]`, see bench/recording/README.md.

mod recording_maker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use whyso_record::data::SeriesId;
use whyso_record::run::Window;
use whyso_record::{Options, Recorder, Recording, Result};

const S: i64 = 1_000_000_000;
const LIVE_SECONDS: i64 = 30;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let hours: f64 = arguments.first().map_or(24.0, |hours| hours.parse().expect("hours"));
    let series: usize = arguments.get(1).map_or(3000, |series| series.parse().expect("a number of series"));
    let dir =
        arguments.get(2).map_or_else(|| std::env::temp_dir().join("whyso-bench-recording"), PathBuf::from);
    bench(hours, series, &dir).expect("the bench fails");
}

fn bench(hours: f64, series: usize, dir: &Path) -> Result<()> {
    if !dir.join("run.json").exists() {
        let began = Instant::now();
        let summary = recording_maker::record(dir, hours, series)?;
        println!(
            "made {} samples of {series} series in {:.1} s",
            summary.samples,
            began.elapsed().as_secs_f64()
        );
    }
    size(dir)?;
    reading(dir)?;
    recording_live(series)
}

fn size(dir: &Path) -> Result<()> {
    let recording = Recording::open(dir)?;
    let samples: u64 = recording.series().iter().map(|info| info.samples).sum();
    let mut by_stream: BTreeMap<String, u64> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let stream = name.rsplit_once('-').map_or(name.clone(), |(stream, _)| stream.to_string());
        *by_stream.entry(stream).or_default() += entry.metadata().map_or(0, |metadata| metadata.len());
    }
    let bytes: u64 = by_stream.values().sum();
    for (stream, bytes) in &by_stream {
        println!("  {stream:<16} {bytes:>12} bytes  {:.3} a sample", *bytes as f64 / samples as f64);
    }
    report("bytes a sample on disk", bytes as f64 / samples as f64, 2.0);
    Ok(())
}

fn reading(dir: &Path) -> Result<()> {
    let began = Instant::now();
    let recording = Recording::open(dir)?;
    println!("opened in {:.1} ms", ms(began));
    let whole = recording.window().expect("samples");
    let ids: Vec<SeriesId> = recording.series().iter().map(|info| info.id).collect();
    // Every 7th series, so that all kinds and places in a row group occur.
    let probed: Vec<SeriesId> = ids.iter().step_by(ids.len() / 60 + 1).copied().collect();
    let mut worst: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut note = |what, ms: f64| {
        let (max, sum) = worst.entry(what).or_default();
        *max = max.max(ms);
        *sum += ms;
    };
    for id in &probed {
        let length_ns = whole.end_ns - whole.begin_ns;
        let at = |share: f64| whole.begin_ns + (length_ns as f64 * share) as i64;
        let windows = [
            ("samples, whole", 0.0, 1.0),
            ("samples, a tenth", 0.45, 0.55),
            ("samples, a minute", 0.5, 0.5 + 60e9 / length_ns as f64),
        ];
        for (what, begin, end) in windows {
            let began = Instant::now();
            let read = recording.samples(*id, Some(Window { begin_ns: at(begin), end_ns: at(end) }))?;
            note(what, ms(began));
            assert!(!read.is_empty());
        }
        let began = Instant::now();
        let drawn = recording.envelope(*id, whole, 1000)?;
        note("envelope, whole", ms(began));
        assert!(drawn.count.iter().all(|count| *count > 0));
    }
    for (what, (max, sum)) in worst {
        let limit = if what.starts_with("envelope") { 20.0 } else { 50.0 };
        report(
            &format!("{what}, worst of {} series, ms (mean {:.1})", probed.len(), sum / probed.len() as f64),
            max,
            limit,
        );
    }
    values_of_levels(&recording, &ids, whole)?;
    let window = Window { begin_ns: whole.begin_ns, end_ns: (whole.begin_ns + 3600 * S).min(whole.end_ns) };
    let began = Instant::now();
    let mut samples = 0;
    recording.samples_each(&ids, Some(window), |_, read| samples += read.len())?;
    println!(
        "all {} series over {:.0} s: {samples} samples in {:.0} ms",
        ids.len(),
        window.seconds(),
        ms(began)
    );
    Ok(())
}

/// What all series did over one level: the whole, one whose edges cut buckets, and one of ten minutes.
fn values_of_levels(recording: &Recording, ids: &[SeriesId], whole: Window) -> Result<()> {
    let cut = Window { begin_ns: whole.begin_ns + 1830 * S, end_ns: whole.end_ns - 1830 * S };
    let middle_ns = whole.begin_ns / 2 + whole.end_ns / 2;
    let short = Window { begin_ns: middle_ns, end_ns: (middle_ns + 600 * S).min(whole.end_ns) };
    for (what, window) in
        [("the whole", whole), ("all but half an hour at each end", cut), ("ten minutes", short)]
    {
        if window.end_ns <= window.begin_ns {
            continue;
        }
        // From here on the peak is counted again.
        let is_reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
        let before_kib = memory_kib("VmRSS");
        let (began, cpu_ns) = (Instant::now(), whyso_clock::thread_cpu_ns());
        let mut values = 0;
        recording.window_values(ids, &[window], |_, found| values += found.iter().flatten().count())?;
        let cpu_ms = (whyso_clock::thread_cpu_ns() - cpu_ns) as f64 / 1e6;
        let peak_mib = memory_kib("VmHWM").saturating_sub(before_kib) / 1024;
        let peak = if is_reset { format!("{peak_mib} MiB more at its peak") } else { "no peak".to_string() };
        println!(
            "{values} series over {what}, {:.0} s: {:.0} ms, CPU {cpu_ms:.0} ms, {peak}",
            window.seconds(),
            ms(began)
        );
    }
    Ok(())
}

/// A figure of this process; 0 where the system has none.
fn memory_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

/// As in a real run: a reading of each source a second, sealed and compacted at the end.
fn recording_live(series: usize) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("whyso-bench-live-{}", std::process::id()));
    let recorder = Recorder::create(&folder, Options::default())?;
    let mut generator = recording_maker::Generator::new(&recorder, series);
    let began = Instant::now();
    let mut giving = Duration::ZERO;
    for second in 0..LIVE_SECONDS {
        let readings = generator.second(whyso_clock::monotonic_ns());
        let before = Instant::now();
        readings.into_iter().for_each(|reading| recorder.reading(reading));
        giving += before.elapsed();
        let next = Duration::from_secs(second as u64 + 1);
        std::thread::sleep(next.saturating_sub(began.elapsed()));
    }
    let elapsed_s = began.elapsed().as_secs_f64();
    let writing = recorder.own_cost();
    recorder.seal()?;
    let sealing_s = (recorder.own_cost().cpu_ns - writing.cpu_ns) as f64 / 1e9;
    let writing_s = writing.cpu_ns as f64 / 1e9 + giving.as_secs_f64();
    println!("of {elapsed_s:.0} s, CPU s: giving and writing {writing_s:.3}, sealing {sealing_s:.3}");
    report("CPU of recording, % of a core", (writing_s + sealing_s) / elapsed_s * 100.0, 2.0);
    recorder.finish()?;
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    Ok(())
}

fn report(what: &str, measured: f64, limit: f64) {
    let verdict = if measured <= limit { "ok" } else { "MISSED" };
    println!("{what}: {measured:.3}, wanted at most {limit}: {:.2} of it, {verdict}", measured / limit);
}

fn ms(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

//! Measures how long the HTML report of a recording takes to write, and how large it is.
//!
//! `bench_report RECORDING OUT.html [ROUNDS]`; see bench/report/README.md.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example is a program")]

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

use whyso_explain::model::Explanation;
use whyso_record::Recording;
use whyso_report::Extras;

const SIZE_MAX_BYTES: f64 = 25e6;
const SECONDS_MAX: f64 = 5.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [recording_dir, out_path, rest @ ..] = arguments.as_slice() else {
        return Err("say what to measure: bench_report RECORDING OUT.html [ROUNDS]".into());
    };
    let rounds: u32 = rest.first().map_or(Ok(3), |rounds| rounds.parse())?;

    let mut best_s = f64::INFINITY;
    let mut best_cpu_s = f64::INFINITY;
    for _ in 0..rounds {
        let began = Instant::now();
        let cpu_began_ns = whyso_clock::process_cpu_ns();
        let recording = Recording::open(Path::new(recording_dir))?;
        let mut out = BufWriter::new(File::create(out_path)?);
        whyso_report::html::write(&recording, &Explanation::default(), &Extras::default(), &mut out)?;
        best_s = best_s.min(began.elapsed().as_secs_f64());
        best_cpu_s = best_cpu_s.min((whyso_clock::process_cpu_ns() - cpu_began_ns) as f64 / 1e9);
    }

    let recording = Recording::open(Path::new(recording_dir))?;
    let samples: u64 = recording.series().iter().map(|info| info.samples).sum();
    let bytes = std::fs::metadata(out_path)?.len() as f64;
    println!("{} series, {samples} samples", recording.series().len());
    println!("size   {:.2} MB, {:.2} of what is allowed", bytes / 1e6, bytes / SIZE_MAX_BYTES);
    println!("       {:.2} bytes a sample", bytes / samples.max(1) as f64);
    println!("time   {best_s:.2} s, {:.2} of what is allowed", best_s / SECONDS_MAX);
    println!("CPU    {best_cpu_s:.2} s on all cores, best of {rounds}");
    Ok(())
}

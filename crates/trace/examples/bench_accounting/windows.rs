//! Throughput and CPU time per query in one way of working against another, inside one run: windows in random order.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Outcome;

const WINDOW: Duration = Duration::from_millis(500);
/// What follows a change is left out.
const SETTLE: Duration = Duration::from_millis(100);
const RESAMPLES: usize = 10_000;

/// Prints throughput and CPU time per query in each of the other modes against the first. Each round has a window of each, in random
/// order: what drifts meets all alike. `enter` is called with the place of the mode that comes. `cpu_ns`: CPU time of server and load up to
/// now. Where others use the CPUs too, it is by far steadier than throughput.
pub(crate) fn compare(
    modes: &[&str],
    count: &AtomicU64,
    seconds: u64,
    cpu_ns: impl Fn() -> io::Result<u64>,
    mut enter: impl FnMut(usize) -> Outcome,
) -> Outcome {
    let mut random = u64::from(std::process::id()) | 1;
    let mut throughputs = vec![Vec::new(); modes.len()];
    let mut costs = vec![Vec::new(); modes.len()];
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        let (mut rates, mut cpu_per_query) = (vec![0.0; modes.len()], vec![0.0; modes.len()]);
        for mode in shuffled(modes.len(), &mut random) {
            enter(mode)?;
            std::thread::sleep(SETTLE);
            let (queries, cpu, begun) = (count.load(Ordering::Relaxed), cpu_ns()?, Instant::now());
            std::thread::sleep(WINDOW);
            let (cpu, elapsed) = (cpu_ns()? - cpu, begun.elapsed());
            let queries = count.load(Ordering::Relaxed) - queries;
            rates[mode] = queries as f64 / elapsed.as_secs_f64();
            cpu_per_query[mode] = cpu as f64 / queries as f64;
        }
        // A window without any query has no ratio.
        if rates.contains(&0.0) {
            continue;
        }
        for (ratios, rate) in throughputs.iter_mut().zip(&rates) {
            ratios.push(rate / rates[0]);
        }
        for (ratios, cpu) in costs.iter_mut().zip(&cpu_per_query) {
            ratios.push(cpu / cpu_per_query[0]);
        }
    }
    for (of, ratios) in [("Throughput", &throughputs), ("CPU time per query", &costs)] {
        for (mode, ratios) in modes.iter().zip(ratios).skip(1) {
            let (mean, low, high) = change(ratios, mean, &mut random);
            println!(
                "\n{of} {mode}, against {}: {mean:+.2} % ({low:+.2} to {high:+.2}, 95 % interval by bootstrap over {} rounds of windows of {} ms).",
                modes[0],
                ratios.len(),
                WINDOW.as_millis()
            );
            let (median, low, high) = change(ratios, median, &mut random);
            println!("The median of the rounds: {median:+.2} % ({low:+.2} to {high:+.2}).");
        }
    }
    Ok(())
}

/// What a statistic of the ratios' logarithms is, and its 95 % interval by bootstrap, as changes in per cent.
fn change(ratios: &[f64], of: fn(&mut [f64]) -> f64, random: &mut u64) -> (f64, f64, f64) {
    let mut logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mut resampled = vec![0.0; logarithms.len()];
    let mut resample = || {
        for one in &mut resampled {
            *one = logarithms[next(random) as usize % logarithms.len()];
        }
        of(&mut resampled)
    };
    let mut all: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    all.sort_by(f64::total_cmp);
    let per_cent = |log: f64| (log.exp() - 1.0) * 100.0;
    (
        per_cent(of(&mut logarithms)),
        per_cent(all[RESAMPLES / 40]),
        per_cent(all[RESAMPLES - 1 - RESAMPLES / 40]),
    )
}

/// With logarithms, the geometric mean.
fn mean(values: &mut [f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Where others use the CPUs now and then, it is steadier than the mean.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

fn shuffled(length: usize, random: &mut u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..length).collect();
    for at in (1..length).rev() {
        order.swap(at, next(random) as usize % (at + 1));
    }
    order
}

/// xorshift64.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

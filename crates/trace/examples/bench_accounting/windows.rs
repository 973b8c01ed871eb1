//! Throughput in one way of working against another, inside one run: windows in random order.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Outcome;

const WINDOW: Duration = Duration::from_millis(500);
/// What follows a change is left out.
const SETTLE: Duration = Duration::from_millis(100);
const RESAMPLES: usize = 10_000;

/// Prints throughput in each of the other modes against the first. Each round has a window of each, in random order: what
/// drifts meets all alike. `enter` is called with the place of the mode that comes.
pub(crate) fn compare(
    modes: &[&str],
    count: &AtomicU64,
    seconds: u64,
    mut enter: impl FnMut(usize) -> Outcome,
) -> Outcome {
    let mut random = u64::from(std::process::id()) | 1;
    let mut ratios = vec![Vec::new(); modes.len()];
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        let mut rates = vec![0.0; modes.len()];
        for mode in shuffled(modes.len(), &mut random) {
            enter(mode)?;
            std::thread::sleep(SETTLE);
            let (queries, begun) = (count.load(Ordering::Relaxed), Instant::now());
            std::thread::sleep(WINDOW);
            let queries = count.load(Ordering::Relaxed) - queries;
            rates[mode] = queries as f64 / begun.elapsed().as_secs_f64();
        }
        for (ratios, rate) in ratios.iter_mut().zip(&rates) {
            ratios.push(rate / rates[0]);
        }
    }
    for (mode, ratios) in modes.iter().zip(&ratios).skip(1) {
        let (mean, low, high) = mean_change(ratios, &mut random);
        println!(
            "\nThroughput {mode}, against {}: {mean:+.2} % ({low:+.2} to {high:+.2}, 95 % interval by bootstrap over {} rounds of windows of {} ms).",
            modes[0],
            ratios.len(),
            WINDOW.as_millis()
        );
    }
    Ok(())
}

/// The geometric mean of the ratios and its 95 % interval, as changes in per cent.
fn mean_change(ratios: &[f64], random: &mut u64) -> (f64, f64, f64) {
    let mean = |sample: &mut dyn Iterator<Item = f64>| sample.map(f64::ln).sum::<f64>() / ratios.len() as f64;
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| mean(&mut (0..ratios.len()).map(|_| ratios[next(random) as usize % ratios.len()])))
        .collect();
    means.sort_by(f64::total_cmp);
    let per_cent = |log: f64| (log.exp() - 1.0) * 100.0;
    (
        per_cent(mean(&mut ratios.iter().copied())),
        per_cent(means[RESAMPLES / 40]),
        per_cent(means[RESAMPLES - 1 - RESAMPLES / 40]),
    )
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

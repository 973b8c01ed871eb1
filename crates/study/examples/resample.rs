//! How often studies of one server against itself find a difference, and how often they find one that is planted: resampled from recorded starts.
//!
//! `resample DIR`: the folder of a study with one cell and many starts. Blocks are pairs of neighbouring starts, in the order in which they were done.

use std::path::Path;
use std::process::ExitCode;

use whyso_inference::{power, smallest_detectable, tested};
use whyso_random::SplitMix64;
use whyso_study::Journal;

const COMPARISONS: usize = 10_000;
const BLOCKS: usize = 5;
const ALPHA: f64 = 0.05;
/// Slowdowns that are planted, in per cent.
const PLANTED: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

fn main() -> ExitCode {
    let Some(dir) = std::env::args().nth(1) else {
        eprintln!("resample: give the folder of a study with one cell and many starts");
        return ExitCode::from(2);
    };
    let journal = match Journal::open(Path::new(&dir)) {
        Ok(journal) => journal,
        Err(error) => {
            eprintln!("resample: {error}");
            return ExitCode::FAILURE;
        }
    };
    let metric = &journal.spec().metric;
    let starts = journal
        .finished_starts()
        .iter()
        .filter_map(|done| done.levels.first()?.measures.get(metric).copied());
    let values: Vec<f64> = starts.collect();
    let pairs: Vec<(f64, f64)> = values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    if pairs.len() < 2 * BLOCKS {
        eprintln!("resample: {} starts are too few: give {} or more", values.len(), 4 * BLOCKS);
        return ExitCode::FAILURE;
    }
    let logs: Vec<f64> = pairs.iter().map(|(one, other)| (other / one).ln()).collect();
    // Which of a pair is which is by chance, so that its mean is nothing.
    let sd_log = (logs.iter().map(|log| log * log).sum::<f64>() / logs.len() as f64).sqrt();
    println!(
        "{} starts, {} pairs of neighbours; a block's ratio varies by {:.2} % (standard deviation)",
        values.len(),
        pairs.len(),
        100.0 * sd_log
    );
    let detectable_percent =
        smallest_detectable(BLOCKS as u32, sd_log, 1).map_or(f64::NAN, |ratio| 100.0 * (ratio - 1.0));
    println!(
        "{COMPARISONS} studies of {BLOCKS} blocks each; the smallest effect that four of five would find: {detectable_percent:.2} %"
    );
    println!("planted   found    by theory");
    for percent in std::iter::once(0.0).chain(PLANTED) {
        let factor = 1.0 - percent / 100.0;
        let found = share_found(&pairs, factor);
        let theory = if percent > 0.0 { power(BLOCKS as u32, factor.ln(), sd_log) } else { ALPHA };
        println!("{percent:>5.1} %   {:>5.1} %   {:>5.1} %", 100.0 * found, 100.0 * theory);
    }
    ExitCode::SUCCESS
}

/// Of studies whose blocks are drawn from the pairs, the share in which a difference is found.
fn share_found(pairs: &[(f64, f64)], factor: f64) -> f64 {
    let mut random = SplitMix64::new(1);
    let mut found = 0;
    for _ in 0..COMPARISONS {
        let blocks: Vec<(f64, f64)> = (0..BLOCKS)
            .map(|_| {
                let (one, other) = pairs[random.below(pairs.len() as u64) as usize];
                let (baseline, variant) = if random.below(2) == 0 { (one, other) } else { (other, one) };
                (baseline, variant * factor)
            })
            .collect();
        if tested(&blocks).and_then(|effect| effect.p).is_some_and(|p| p < ALPHA) {
            found += 1;
        }
    }
    f64::from(found) / COMPARISONS as f64
}

//! How often a comparison of a setting with itself finds a difference, and how often it finds one that is planted.
//!
//! `alternation_aa FILE WINDOW_S COMPARISON_S [--block WINDOWS] [--noise none|periodic|bursty]`. FILE has one number per line: the values of equal
//! consecutive windows of WINDOW_S seconds, recorded under one setting. 10,000 comparisons of COMPARISON_S seconds are drawn from it by a circular
//! block bootstrap (D. Politis and J. Romano, 1992), each with its own random orders. `--noise` plants a neighbour: `periodic` takes 20 % for three
//! of every ten seconds, `bursty` takes 40 % for eight seconds about once per minute.

#![allow(clippy::disallowed_methods, reason = "an example is a program")]

use std::process::ExitCode;

use whyso_inference::{Sequence, power, ratio_interval, smallest_detectable};
use whyso_random::SplitMix64;
use whyso_random::noise::{Noise, bursts, periodic};

const COMPARISONS: u64 = 10_000;
/// The first pairs of a sequence give its scale.
const PILOT: usize = 10;
/// Differences that are planted, in per cent.
const PLANTED: [f64; 4] = [0.0, 1.0, 2.0, 5.0];
const USAGE: &str = "give FILE WINDOW_S COMPARISON_S [--block WINDOWS] [--noise none|periodic|bursty]";

#[derive(Clone, Copy, PartialEq)]
enum Neighbour {
    None,
    Periodic,
    Bursty,
}

struct Plan {
    /// Logarithms of the windows' values.
    logs: Vec<f64>,
    window_s: f64,
    pairs: usize,
    /// Windows of a block.
    block: usize,
    neighbour: Neighbour,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match plan(&arguments) {
        Ok(plan) => {
            report(&plan);
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("alternation_aa: {problem}");
            ExitCode::from(2)
        }
    }
}

fn plan(arguments: &[String]) -> Result<Plan, String> {
    let (mut block, mut neighbour, mut plain) = (30, Neighbour::None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--block" => {
                let windows =
                    rest.next().and_then(|text| text.parse::<usize>().ok()).filter(|windows| *windows > 0);
                block = windows.ok_or("--block needs a number of windows, 1 or more")?;
            }
            "--noise" => {
                neighbour = match rest.next().map(String::as_str) {
                    Some("none") => Neighbour::None,
                    Some("periodic") => Neighbour::Periodic,
                    Some("bursty") => Neighbour::Bursty,
                    _ => return Err("--noise needs none, periodic or bursty".to_string()),
                };
            }
            _ => plain.push(argument),
        }
    }
    let [file, window, comparison] = plain[..] else { return Err(USAGE.to_string()) };
    let seconds = |text: &String| {
        let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
        value.ok_or(format!("{text} is no number of seconds above 0: {USAGE}"))
    };
    let (window_s, comparison_s) = (seconds(window)?, seconds(comparison)?);
    let logs = logs(file)?;
    let pairs = (comparison_s / window_s / 2.0) as usize;
    if !(2 * PILOT..=100_000).contains(&pairs) {
        return Err(format!(
            "{pairs} pairs of windows in a comparison are too few or too many: give 20 to 100,000"
        ));
    }
    // An even length, so that no pair has its windows from two blocks.
    let block = block.next_multiple_of(2);
    if logs.len() < 2 * block {
        return Err(format!(
            "{} windows are too few for blocks of {block}: record twice as many or more",
            logs.len()
        ));
    }
    Ok(Plan { logs, window_s, pairs, block, neighbour })
}

fn logs(file: &str) -> Result<Vec<f64>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file} cannot be read: {error}"))?;
    let mut logs = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let value = line.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
        let Some(value) = value else {
            return Err(format!(
                "{file}, line {}: {line:?} is no number above 0, so leave the line out",
                at + 1
            ));
        };
        logs.push(value.ln());
    }
    Ok(logs)
}

/// Logarithms of variant ÷ baseline of one comparison in which the variant has no effect.
fn differences(plan: &Plan, seed: u64) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    let length = 2 * plan.pairs;
    let mut windows = Vec::with_capacity(length + plan.block);
    while windows.len() < length {
        let begin = random.below(plan.logs.len() as u64) as usize;
        windows.extend((begin..begin + plan.block).map(|at| plan.logs[at % plan.logs.len()]));
    }
    let mut noise = Noise::new(seed);
    let (depth, shares) = match plan.neighbour {
        Neighbour::None => (0.0, Vec::new()),
        Neighbour::Periodic => (0.2, periodic(&mut noise, length, plan.window_s, 10.0, 3.0)),
        Neighbour::Bursty => (0.4, bursts(&mut noise, length, plan.window_s, 52.0, 8.0)),
    };
    for (window, share) in windows.iter_mut().zip(&shares) {
        *window += (1.0 - depth * share).ln();
    }
    let pairs = windows[..length].chunks_exact(2);
    pairs.map(|pair| if random.below(2) == 0 { pair[1] - pair[0] } else { pair[0] - pair[1] }).collect()
}

/// Results of all comparisons.
#[derive(Default)]
struct Tally {
    sd_logs: Vec<f64>,
    /// By planted difference: comparisons whose interval excludes 1.
    different: [u32; PLANTED.len()],
    /// By planted difference: pairs after which a sequence excluded 1, with those of the pilot.
    sequences: [Vec<f64>; PLANTED.len()],
}

fn report(plan: &Plan) {
    let mut tally = Tally::default();
    for seed in 0..COMPARISONS {
        let differences = differences(plan, seed);
        let Some(interval) = ratio_interval(&differences) else { continue };
        tally.sd_logs.push(interval.sd_log);
        let (pilot, rest) = differences.split_at(PILOT);
        for (at, percent) in PLANTED.iter().enumerate() {
            let effect = (percent / 100.0).ln_1p();
            // A planted effect moves the interval, and changes nothing else.
            let (low, high) = (interval.ratio.low95.ln() + effect, interval.ratio.high95.ln() + effect);
            tally.different[at] += u32::from(low > 0.0 || high < 0.0);
            let Some(mut sequence) = Sequence::new(pilot, rest.len() as u32) else { continue };
            for difference in rest {
                sequence.push(difference + effect);
                if let Some(pairs) = sequence.first_difference() {
                    tally.sequences[at].push(f64::from(pairs) + PILOT as f64);
                    break;
                }
            }
        }
    }
    print(plan, tally);
}

fn print(plan: &Plan, mut tally: Tally) {
    let share = |count: usize| 100.0 * count as f64 / COMPARISONS as f64;
    println!(
        "{} windows of {} s; {COMPARISONS} comparisons of {} pairs, from blocks of {} windows",
        plan.logs.len(),
        plan.window_s,
        plan.pairs,
        plan.block
    );
    let Some(sd_log) = median(&mut tally.sd_logs) else { return };
    let detectable =
        smallest_detectable(plan.pairs as u32, sd_log, 1).map_or(f64::NAN, |ratio| 100.0 * (ratio - 1.0));
    println!("a pair's ratio varies by {:.2} % (standard deviation, median)", 100.0 * sd_log);
    println!("smallest detectable difference (median): {detectable:.2} %");
    println!("no effect: {:.2} % called different at 5 %", share(tally.different[0] as usize));
    println!(
        "no effect: {:.2} % of sequences ever excluded 1 (5 % allowed)",
        share(tally.sequences[0].len())
    );
    println!("planted   found   by theory   by a sequence   after (median)");
    for (at, planted) in PLANTED.iter().enumerate().skip(1) {
        let theory = power(plan.pairs as u32, (planted / 100.0).ln_1p(), sd_log);
        let found = share(tally.different[at] as usize);
        let by_sequence = share(tally.sequences[at].len());
        let pairs =
            median(&mut tally.sequences[at]).map_or("-".to_string(), |pairs| format!("{pairs} pairs"));
        println!("{planted:>5.1} % {found:>6.1} % {:>9.1} % {by_sequence:>13.1} %   {pairs}", 100.0 * theory);
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

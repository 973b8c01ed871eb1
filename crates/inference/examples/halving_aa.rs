//! How often a search among many differences finds the one that was planted, over recorded noise.
//!
//! `halving_aa FILE WINDOW_S [--block WINDOWS]`. FILE has one number per line: the values of equal consecutive windows of WINDOW_S seconds, recorded
//! under one setting. Each test of a search takes 25 s of windows and the whole difference 50 s, as those of `whyso bisect` do. They are drawn by a
//! circular block bootstrap (D. Politis and J. Romano, 1992), each with its own random orders of the sides.

#![allow(clippy::disallowed_methods, reason = "an example is a program")]

use std::convert::Infallible;
use std::process::ExitCode;

use whyso_inference::{LogEffect, halving, ratio_interval};
use whyso_random::SplitMix64;

const SEARCHES: u64 = 1_000;
const DIFFERENCES: usize = 40;
const TEST_S: f64 = 25.0;
const WHOLE_S: f64 = 50.0;
/// Steps that are planted, in per cent of throughput.
const PLANTED: [f64; 4] = [20.0, 10.0, 5.0, 0.0];
/// A whole difference that is smaller is not divided: as in `whyso bisect`.
const WHOLE_MIN: f64 = 1.03;
const USAGE: &str = "give FILE WINDOW_S [--block WINDOWS]";

struct Noise {
    /// Logarithms of the windows' values.
    logs: Vec<f64>,
    window_s: f64,
    /// Windows of a block; an even number, so that no pair has its windows from two blocks.
    block: usize,
}

impl Noise {
    fn read(arguments: &[String]) -> Result<Noise, String> {
        let (mut block, mut plain) = (10, Vec::new());
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--block" => {
                    let windows = rest.next().and_then(|text| text.parse::<usize>().ok());
                    block = windows
                        .filter(|windows| *windows > 0)
                        .ok_or("--block needs a number of windows, 1 or more")?;
                }
                _ => plain.push(argument),
            }
        }
        let [file, window_s] = plain[..] else { return Err(USAGE.to_string()) };
        let window_s = window_s.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        let window_s = window_s.ok_or(USAGE)?;
        let text =
            std::fs::read_to_string(file).map_err(|error| format!("{file} cannot be read: {error}"))?;
        let number = |line: &str| line.trim().parse::<f64>().ok().filter(|value| *value > 0.0).map(f64::ln);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let logs: Option<Vec<f64>> = lines.map(number).collect();
        let logs = logs.filter(|logs| logs.len() >= 20).ok_or(format!("{file} needs 20 numbers above 0"))?;
        Ok(Noise { logs, window_s, block: block.next_multiple_of(2) })
    }

    /// What a comparison of so many seconds shows of a true effect, a logarithm.
    fn compare(&self, seconds: f64, effect: f64, random: &mut SplitMix64) -> LogEffect {
        let length = 2 * ((seconds / self.window_s / 2.0) as usize).max(2);
        let mut windows = Vec::with_capacity(length + self.block);
        while windows.len() < length {
            let begin = random.below(self.logs.len() as u64) as usize;
            windows.extend((begin..begin + self.block).map(|at| self.logs[at % self.logs.len()]));
        }
        let mut difference = |pair: &[f64]| match random.below(2) {
            0 => pair[1] - pair[0] + effect,
            _ => pair[0] - pair[1] + effect,
        };
        let differences: Vec<f64> = windows[..length].chunks_exact(2).map(&mut difference).collect();
        match ratio_interval(&differences) {
            Some(interval) => {
                let ratio = interval.ratio;
                LogEffect { value: ratio.value.ln(), low: ratio.low95.ln(), high: ratio.high95.ln() }
            }
            None => LogEffect { value: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY },
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Noise::read(&arguments) {
        Ok(noise) => {
            report(&noise);
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("halving_aa: {problem}");
            ExitCode::from(2)
        }
    }
}

fn report(noise: &Noise) {
    println!(
        "{} windows of {} s; {SEARCHES} searches among {DIFFERENCES} differences, tests of {TEST_S} s, from blocks of {} windows",
        noise.logs.len(),
        noise.window_s,
        noise.block
    );
    println!("   step    right    wrong   no answer   tests (median)   no more than (19 of 20)");
    for percent in PLANTED {
        let step = (percent / 100.0).ln_1p();
        let (mut right, mut wrong, mut tests) = (0, 0, Vec::new());
        for seed in 0..SEARCHES {
            let mut random = SplitMix64::new(seed);
            let culprit = random.below(DIFFERENCES as u64) as usize;
            let whole = noise.compare(WHOLE_S, step, &mut random);
            if whole.value.abs() < WHOLE_MIN.ln() || (whole.low < 0.0 && whole.high > 0.0) {
                tests.push(1);
                continue;
            }
            let found = halving(DIFFERENCES, whole.value, |part| {
                let truth = if part.contains(&culprit) { step } else { 0.0 };
                Ok::<_, Infallible>(noise.compare(TEST_S, truth, &mut random))
            });
            let Ok(found) = found;
            let is_right = percent > 0.0 && found.found == [culprit];
            right += u32::from(found.is_answer && is_right);
            wrong += u32::from(found.is_answer && !is_right);
            tests.push(found.steps.len() + 1);
        }
        tests.sort_unstable();
        let share = |count: u32| 100.0 * f64::from(count) / SEARCHES as f64;
        println!(
            "{percent:>5.0} % {:>6.1} % {:>6.1} % {:>9.1} % {:>16} {:>14}",
            share(right),
            share(wrong),
            100.0 - share(right) - share(wrong),
            tests[tests.len() / 2],
            tests[tests.len() * 19 / 20]
        );
    }
}

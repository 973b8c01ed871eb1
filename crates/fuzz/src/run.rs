//! Runs a target.

use std::panic::{self, AssertUnwindSafe};
use std::time::Instant;

use crate::bounds::Case;
use crate::corpus;

/// Longest case, in bytes.
const BYTES_MAX: usize = 4096;
/// Cases that are made from nothing, among those that are changed.
const FROM_NOTHING: u64 = 4;

/// Whether libFuzzer makes the cases.
pub fn is_fuzzing() -> bool {
    std::env::var_os("BOLERO_LIBFUZZER_ARGS").is_some()
}

/// Runs one case within its bounds.
pub fn run_case(name: &'static str, bytes: &[u8], target: fn(&[u8])) {
    let _case = Case::begin(name, bytes);
    target(bytes);
}

/// Runs a target over the cases that are kept, and over `changed` changes to them.
///
/// # Panics
/// A case fails. It is kept, and tried again by the next run of the tests.
pub fn check(name: &'static str, changed: usize, target: fn(&[u8])) {
    let seed = std::env::var("BOLERO_RANDOM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let mut random = Random((seed ^ 0x9e37_79b9_7f4a_7c15) | 1);
    let kept_cases = corpus::cases(name);
    let begin = Instant::now();
    let mut peak_bytes = 0;
    // A reader may catch a panic of a library's. To print its message and its stack would take longer than the case.
    let shown = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let mut run = |bytes: &[u8]| {
        let result = {
            let case = Case::begin(name, bytes);
            let result = panic::catch_unwind(AssertUnwindSafe(|| target(bytes)));
            peak_bytes = peak_bytes.max(case.peak_bytes());
            result
        };
        if let Err(cause) = result {
            panic::set_hook(Box::new(|about| eprintln!("{about}")));
            eprintln!(
                "fuzz target {name}: kept what fails in {}",
                corpus::keep_failed(name, bytes).display()
            );
            // Once more, to be seen.
            target(bytes);
            panic::resume_unwind(cause);
        }
    };
    for (_, bytes) in &kept_cases {
        run(bytes);
    }
    for _ in 0..changed {
        run(&random.case(&kept_cases));
    }
    panic::set_hook(shown);
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{name}: {} kept, {changed} changed, {seconds:.1} s, at most {} KiB",
        kept_cases.len(),
        peak_bytes >> 10
    );
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn below(&mut self, below: usize) -> usize {
        (self.next() % below.max(1) as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// Any bytes, or one of `cases` with a few changes.
    fn case(&mut self, cases: &[(String, Vec<u8>)]) -> Vec<u8> {
        if cases.is_empty() || self.next().is_multiple_of(FROM_NOTHING) {
            let length = 1 + self.below(120);
            return self.bytes(length);
        }
        let mut bytes = cases[self.below(cases.len())].1.clone();
        for _ in 0..=self.below(3) {
            let (from, length) = (self.below(bytes.len()), self.below(9));
            let until = (from + length).min(bytes.len());
            match self.below(5) {
                0 => drop(bytes.drain(from..until)),
                1 => {
                    let new = self.bytes(length);
                    drop(bytes.splice(from..from, new));
                }
                2 => {
                    let other = &cases[self.below(cases.len())].1;
                    let begin = self.below(other.len());
                    drop(bytes.splice(from.., other[begin.min(other.len())..].iter().copied()));
                }
                _ => {
                    if let Some(byte) = bytes.get_mut(from) {
                        *byte = self.next() as u8;
                    }
                }
            }
        }
        bytes.truncate(BYTES_MAX);
        bytes
    }
}

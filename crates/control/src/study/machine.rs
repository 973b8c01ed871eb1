//! Numbers by which a machine differs from itself at another time.

use std::time::Instant;

use whyso_study::Machine;

/// Rounds of the arithmetic; their median counts.
const ROUNDS: usize = 9;
/// Steps of a round: a few milliseconds.
const STEPS: u64 = 1_000_000;

pub(super) fn machine_now() -> Machine {
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| arithmetic_ms()).collect();
    rounds.sort_by(f64::total_cmp);
    let khz = of_each_cpu("cpufreq/scaling_cur_freq");
    let throttled = of_each_cpu("thermal_throttle/core_throttle_count");
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    Machine {
        arithmetic_ms: rounds[ROUNDS / 2],
        mhz: (!khz.is_empty()).then(|| sum(&khz) / khz.len() as f64 / 1000.0),
        throttled: (!throttled.is_empty()).then(|| sum(&throttled)),
    }
}

/// Milliseconds of a chain of shifts and multiplications, each of which needs the one before: only the CPU's clock decides. A
/// chain of multiplications and additions would not do, since a compiler makes one step of several.
fn arithmetic_ms() -> f64 {
    let began = Instant::now();
    let mut value = std::hint::black_box(1_u64);
    for _ in 0..STEPS {
        value = (value ^ (value >> 29)).wrapping_mul(6_364_136_223_846_793_005);
    }
    std::hint::black_box(value);
    began.elapsed().as_secs_f64() * 1e3
}

fn of_each_cpu(file: &str) -> Vec<f64> {
    let Ok(entries) = std::fs::read_dir("/sys/devices/system/cpu") else { return Vec::new() };
    let cpus = entries.flatten().filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok())
    });
    let read = cpus.filter_map(|cpu| std::fs::read_to_string(cpu.path().join(file)).ok());
    read.filter_map(|text| text.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_same_arithmetic_takes_about_as_long_again() {
        let (first, second) = (super::machine_now(), super::machine_now());
        // The compiler left every step: a shift, an exclusive or and a multiplication take five cycles, of 0.1 ns at least.
        let ms_min = super::STEPS as f64 * 5.0 * 0.1e-6;
        assert!(first.arithmetic_ms > ms_min && second.arithmetic_ms > ms_min, "{first:?} {second:?}");
        assert!(first.mhz.is_none_or(|mhz| mhz > 100.0));
    }
}

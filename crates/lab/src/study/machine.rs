//! What tells a machine from itself at another time.

use std::time::Instant;

use whyso_study::Machine;

/// Rounds of the arithmetic; their median counts.
const ROUNDS: usize = 9;
/// Steps of a round: some milliseconds.
const STEPS: u64 = 4_000_000;

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

/// A chain of multiplications, each of which needs the one before: its time is the CPU's clock alone.
fn arithmetic_ms() -> f64 {
    let began = Instant::now();
    let mut value = std::hint::black_box(1_u64);
    for _ in 0..STEPS {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
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
        let (one, other) = (super::machine_now(), super::machine_now());
        // The compiler has not taken it away: a multiplication and an addition take at least a cycle each.
        assert!(one.arithmetic_ms > 0.5 && other.arithmetic_ms > 0.5, "{one:?} {other:?}");
        assert!(one.mhz.is_none_or(|mhz| mhz > 100.0));
    }
}

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_oneof, proptest};

use super::*;

const SECOND_NS: f64 = 1e9;

fn clock(seed: u64, process: ArrivalProcess, points: &[(f64, f64)]) -> ArrivalClock {
    let points: Vec<(Duration, f64)> =
        points.iter().map(|(time, rate)| (Duration::from_secs_f64(*time), *rate)).collect();
    ArrivalClock::new(seed, process, &points).unwrap()
}

/// Due times in seconds before `end_s`.
fn times(clock: ArrivalClock, end_s: f64) -> Vec<f64> {
    clock.map(|due_ns| due_ns as f64 / SECOND_NS).take_while(|time| *time < end_s).collect()
}

/// The integral of the rate, by its definition and slowly.
fn integral(points: &[(f64, f64)], until_s: f64) -> f64 {
    let (first, last) = (points[0], points[points.len() - 1]);
    let mut sum = first.1 * until_s.min(first.0);
    for pair in points.windows(2) {
        let ((begin, rate), (end, end_rate)) = (pair[0], pair[1]);
        if end > begin && until_s > begin {
            let stop = until_s.min(end);
            let rate_at_stop = rate + (end_rate - rate) * (stop - begin) / (end - begin);
            sum += (rate + rate_at_stop) / 2.0 * (stop - begin);
        }
    }
    sum + last.1 * (until_s - last.0).max(0.0)
}

/// Kolmogorov and Smirnov's distance of a sample from the exponential with mean 1.
fn distance_from_exponential(mut sample: Vec<f64>) -> f64 {
    sample.sort_by(f64::total_cmp);
    let count = sample.len() as f64;
    sample
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let expected = 1.0 - (-x).exp();
            (expected - i as f64 / count).abs().max(((i + 1) as f64 / count - expected).abs())
        })
        .fold(0.0, f64::max)
}

/// The distance that a true sample of this size stays under with a probability of 99.9 %.
fn distance_max(count: usize) -> f64 {
    1.95 / (count as f64).sqrt()
}

#[test]
fn gaps_at_a_constant_rate_are_exponential() {
    for seed in 0..5 {
        let due = times(clock(seed, ArrivalProcess::Poisson, &[(0.0, 2000.0)]), 10.0);
        let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]) * 2000.0).collect();
        let distance = distance_from_exponential(gaps);
        assert!(distance < distance_max(due.len() - 1), "seed {seed}: {distance}");
    }
}

#[test]
fn gaps_over_a_profile_are_exponential_in_its_integral() {
    let points = [(1.0, 100.0), (5.0, 3000.0), (5.0, 500.0), (7.0, 0.0), (9.0, 0.0), (12.0, 2000.0)];
    let due = times(clock(3, ArrivalProcess::Poisson, &points), 15.0);
    let reached: Vec<f64> = due.iter().map(|time| integral(&points, *time)).collect();
    let gaps: Vec<f64> = reached.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let distance = distance_from_exponential(gaps);
    assert!(distance < distance_max(due.len() - 1), "{distance} of {} arrivals", due.len());
}

#[test]
fn counts_over_a_ramp_are_the_integral_of_the_rate() {
    let ramp = [(0.0, 0.0), (20.0, 2000.0)];
    for process in [ArrivalProcess::Poisson, ArrivalProcess::Uniform] {
        let due = times(clock(11, process, &ramp), 20.0);
        let mut bins = [0u32; 20];
        for time in &due {
            bins[*time as usize] += 1;
        }
        let expected: Vec<f64> = (0..20)
            .map(|second| integral(&ramp, f64::from(second) + 1.0) - integral(&ramp, f64::from(second)))
            .collect();
        let chi_square: f64 = bins.iter().zip(&expected).map(|(n, e)| (f64::from(*n) - e).powi(2) / e).sum();
        assert!(chi_square < 45.3, "{process:?}: chi-square {chi_square} with 20 degrees of freedom");
        if process == ArrivalProcess::Uniform {
            assert!(bins.iter().zip(&expected).all(|(n, e)| (f64::from(*n) - e).abs() < 1.0), "{bins:?}");
        }
    }
}

#[test]
fn counts_are_as_dispersed_as_those_of_the_process() {
    for (process, lowest, highest) in
        [(ArrivalProcess::Poisson, 0.87, 1.13), (ArrivalProcess::Uniform, 0.0, 0.01)]
    {
        let due = times(clock(5, process, &[(0.0, 1000.0)]), 100.0);
        let mut bins = [0u32; 1000];
        for time in &due {
            bins[(*time * 10.0) as usize] += 1;
        }
        let mean = due.len() as f64 / 1000.0;
        let variance = bins.iter().map(|n| (f64::from(*n) - mean).powi(2)).sum::<f64>() / 999.0;
        let dispersion = variance / mean;
        assert!((lowest..=highest).contains(&dispersion), "{process:?}: {dispersion}");
    }
}

#[test]
fn nothing_is_due_while_the_rate_is_zero_and_the_end_comes_if_it_stays_zero() {
    let pulse =
        [(0.0, 0.0), (2.0, 0.0), (2.0, 50.0), (3.0, 50.0), (3.0, 0.0), (8.0, 0.0), (8.0, 10.0), (9.0, 0.0)];
    for process in [ArrivalProcess::Poisson, ArrivalProcess::Uniform] {
        let due: Vec<f64> = clock(9, process, &pulse).map(|due_ns| due_ns as f64 / SECOND_NS).collect();
        assert!(due.len() > 30, "{process:?}: {} arrivals", due.len());
        for time in due {
            assert!((2.0..=3.0).contains(&time) || (8.0..=9.0).contains(&time), "{process:?}: {time}");
        }
    }
    assert_eq!(clock(1, ArrivalProcess::Poisson, &[(0.0, 0.0)]).next(), None);
    let mut ended = clock(1, ArrivalProcess::Uniform, &[(0.0, 1.0), (0.5, 0.0)]);
    while ended.next().is_some() {}
    assert_eq!(ended.next(), None);
}

#[test]
fn a_rate_so_low_that_no_clock_reaches_its_first_arrival_ends_at_once() {
    assert_eq!(clock(1, ArrivalProcess::Poisson, &[(0.0, 1e-12)]).next(), None);
}

#[test]
fn the_same_seed_gives_the_same_times_and_another_does_not() {
    for process in [ArrivalProcess::Poisson, ArrivalProcess::Uniform] {
        let first = |seed| clock(seed, process, &[(0.0, 10.0)]).take(100).collect::<Vec<u64>>();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}

#[test]
fn loops_that_share_a_schedule_take_each_arrival_once() {
    let clock = clock(1, ArrivalProcess::Poisson, &[(0.0, 10.0)]);
    let whole: Vec<(usize, u64)> = clock.clone().enumerate().take(99).collect();
    let mut shared: Vec<(usize, u64)> =
        (0..3).flat_map(|i| clock.clone().enumerate().skip(i).step_by(3).take(33)).collect();
    shared.sort_unstable();
    assert_eq!(shared, whole);
}

#[test]
fn points_that_make_no_profile_are_refused_with_the_reason() {
    let refused = |points: &[(Duration, f64)]| {
        ArrivalClock::new(1, ArrivalProcess::Poisson, points).unwrap_err().to_string()
    };
    let second = Duration::from_secs(1);
    assert!(refused(&[]).contains("no point"));
    assert!(
        refused(&[(second, 1.0), (Duration::ZERO, 1.0)])
            .contains("the point at 0 s comes after the one at 1 s")
    );
    assert!(refused(&[(second, -1.0)]).contains("the rate -1 at 1 s is not 0 or more"));
    assert!(refused(&[(second, f64::NAN)]).contains("is not 0 or more"));
}

#[test]
fn think_times_are_exponential_with_their_mean_and_apart_from_the_parameters() {
    let mean = Duration::from_millis(20);
    let sample: Vec<f64> = (0..20_000)
        .map(|k| exponential_think(4, k % 16, k / 16, mean).as_secs_f64() / mean.as_secs_f64())
        .collect();
    let parameters: Vec<f64> =
        (0..20_000).map(|k| Rng::for_transaction(4, k % 16, k / 16).unit_f64() - 0.5).collect();
    let covariance: f64 =
        sample.iter().zip(&parameters).map(|(think, u)| (think - 1.0) * u).sum::<f64>() / 20_000.0;
    let correlation = covariance * 12f64.sqrt();
    assert!(correlation.abs() < 0.025, "{correlation}");
    let distance = distance_from_exponential(sample);
    assert!(distance < distance_max(20_000), "{distance}");
}

/// Points in ascending order, with steps, zero stretches and rates over six orders of magnitude.
fn profiles() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let rate = prop_oneof![Just(0.0), 0.01..1.0f64, 1.0..1e4f64];
    prop::collection::vec((0u32..4, rate), 1..8).prop_map(|steps| {
        let mut time = 0.0;
        steps
            .into_iter()
            .map(|(wait_s, rate)| {
                time += f64::from(wait_s);
                (time, rate)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn over_any_profile_each_arrival_lies_where_the_integral_reaches_it(points in profiles(), seed in any::<u64>()) {
        let due: Vec<u64> = clock(seed, ArrivalProcess::Uniform, &points).take(2000).collect();
        prop_assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
        let reached: Vec<f64> = due.iter().map(|due_ns| integral(&points, *due_ns as f64 / SECOND_NS)).collect();
        let last_s = due.last().map_or(0.0, |due_ns| *due_ns as f64 / SECOND_NS);
        // A nanosecond at the highest rate, and the digits that doubles have at this time.
        let slack = 1e4 * (2e-9 + last_s * 1e-15) + 1e-9;
        for pair in reached.windows(2) {
            prop_assert!((pair[1] - pair[0] - 1.0).abs() < slack, "{} to {}", pair[0], pair[1]);
        }
    }
}

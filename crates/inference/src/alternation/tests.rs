//! Comparisons whose truth is known.

use proptest::prelude::*;
use whyso_random::noise::Noise;

use super::simulation::{KINDS, Kind, SPREAD, differences};
use super::*;

fn pairs_of(start: u32, logs: &[f64]) -> Vec<Pair> {
    let of_log =
        |log: &f64| Pair { start, variant_first: false, baseline: 100.0, variant: 100.0 * log.exp() };
    logs.iter().map(of_log).collect()
}

fn compare(pairs: &[Pair]) -> Alternation {
    alternation(pairs, &Question::default()).unwrap()
}

#[test]
fn the_interval_holds_the_truth_as_often_as_promised() {
    for pairs in [10, 20, 60] {
        for kind in KINDS {
            let mut noise = Noise::new(pairs as u64 * 7 + 3);
            let rounds = 1_000;
            let (mut covered, mut width) = (0, 0.0);
            for _ in 0..rounds {
                let centre = Centre::of(&differences(&mut noise, kind, pairs, 0.03));
                covered += u32::from(centre.low95 <= 0.03 && 0.03 <= centre.high95);
                width += (centre.high95 - centre.low95) / f64::from(rounds);
            }
            let share = f64::from(covered) / f64::from(rounds);
            println!("{pairs} pairs, {kind:?}: {share}, {:.2} % wide", 100.0 * width);
            assert!((0.93..=0.985).contains(&share), "{pairs} pairs, {kind:?}: {share}");
        }
    }
}

/// The plain interval, which bursts make twice as wide.
#[test]
fn bursts_widen_the_interval_less_than_they_widen_students() {
    let mut noise = Noise::new(12);
    let (mut clipped, mut plain) = (0.0, 0.0);
    for _ in 0..500 {
        let values = differences(&mut noise, Kind::Bursty, 60, 0.03);
        let centre = Centre::of(&values);
        clipped += centre.high95 - centre.low95;
        let average = centre::mean(&values);
        let squares: f64 = values.iter().map(|value| (value - average).powi(2)).sum();
        plain += 2.0 * critical(59.0, 0.05) * (squares / 59.0 / 60.0).sqrt();
    }
    assert!(clipped < 0.6 * plain, "{clipped} {plain}");
}

#[test]
fn what_is_detectable_is_found_in_four_of_five() {
    for kind in [Kind::Normal, Kind::Correlated] {
        let mut noise = Noise::new(13);
        let spread = compare(&pairs_of(1, &differences(&mut noise, kind, 2_000, 0.0))).within_start_sd_log;
        let effect = smallest_detectable(60, spread.unwrap(), 1).unwrap().ln();
        let rounds = 1_000;
        let found = (0..rounds)
            .filter(|_| Centre::of(&differences(&mut noise, kind, 60, effect)).low95 > 0.0)
            .count();
        let share = found as f64 / f64::from(rounds);
        println!("{kind:?}: {share}");
        assert!((0.75..=0.85).contains(&share), "{kind:?}: {share}");
    }
}

#[test]
fn with_several_starts_the_interval_contains_how_starts_differ() {
    let mut noise = Noise::new(14);
    for starts in [3, 6] {
        let rounds = 400;
        let (mut covered, mut between) = (0, Vec::new());
        for _ in 0..rounds {
            let mut pairs = Vec::new();
            for start in 0..starts {
                let own = 0.01 + 0.02 * noise.normal();
                pairs.extend(pairs_of(start, &differences(&mut noise, Kind::Correlated, 40, own)));
            }
            let found = compare(&pairs);
            assert_eq!(found.contains, NoiseScope::WithinAndBetweenStarts);
            covered += u32::from(found.ratio.low95.ln() <= 0.01 && 0.01 <= found.ratio.high95.ln());
            between.push(found.between_starts_sd_log.unwrap().powi(2));
        }
        let share = f64::from(covered) / f64::from(rounds);
        println!("{starts} starts: {share}, {:.4}", centre::mean(&between).sqrt());
        assert!((0.92..=0.98).contains(&share), "{starts}: {share}");
        assert!((centre::mean(&between).sqrt() - 0.02).abs() < 0.002);
    }
}

#[test]
fn two_starts_that_differ_show_it() {
    let mut noise = Noise::new(15);
    let mut pairs = pairs_of(4, &differences(&mut noise, Kind::Normal, 80, 0.0));
    pairs.extend(pairs_of(9, &differences(&mut noise, Kind::Normal, 80, 0.05)));
    let found = compare(&pairs);
    assert_eq!((found.contains, found.starts, found.pairs), (NoiseScope::WithinStart, 2, 160));
    let difference = found.start_difference.unwrap();
    assert!(difference.low95 > 1.03 && difference.high95 < 1.07, "{difference:?}");
    let within = found.within_start_sd_log.unwrap();
    assert!((within - SPREAD * 2_f64.sqrt()).abs() < 0.004, "{within}");
    assert_eq!(found.between_starts_sd_log, None);
}

#[test]
fn the_verdict_is_that_of_the_intervals() {
    let mut noise = Noise::new(16);
    let mut of = |pairs: usize, effect: f64| {
        compare(&pairs_of(1, &differences(&mut noise, Kind::Correlated, pairs, effect))).verdict
    };
    assert_eq!(of(100, 0.03), AlternationVerdict::Higher);
    assert_eq!(of(100, -0.03), AlternationVerdict::Lower);
    assert_eq!(of(100, 0.0), AlternationVerdict::Equivalent);
    assert_eq!(of(400, 0.005), AlternationVerdict::Equivalent, "surely there, and surely small");
    assert_eq!(of(5, 0.0), AlternationVerdict::Undecided);
}

/// A difference of 1 % on average, all of it in two of a hundred pairs, is not called equivalent.
#[test]
fn stalls_of_the_variant_alone_are_not_clipped_away() {
    let mut noise = Noise::new(17);
    let mut logs = differences(&mut noise, Kind::Correlated, 300, 0.0);
    for at in [20, 70, 120, 170, 220, 270] {
        logs[at] -= 0.7;
    }
    let found = compare(&pairs_of(1, &logs));
    assert!(found.ratio90[0] > 1.0 / 1.01 && found.mean_ratio < 1.0 / 1.01, "{found:?}");
    assert_ne!(found.verdict, AlternationVerdict::Equivalent);
}

#[test]
fn too_few_pairs_are_not_compared() {
    assert_eq!(alternation(&[], &Question::default()), None);
    let mut pairs = pairs_of(1, &[0.1, 0.2]);
    assert!(alternation(&pairs, &Question::default()).is_some());
    pairs[0].variant = 0.0;
    assert_eq!(alternation(&pairs, &Question::default()), None);
    let same = compare(&pairs_of(1, &[0.0; 30]));
    assert_eq!((same.p, same.ratio.value, same.verdict), (1.0, 1.0, AlternationVerdict::Equivalent));
    let one_each: Vec<Pair> = (0..4).flat_map(|start| pairs_of(start, &[0.01 * f64::from(start)])).collect();
    let found = compare(&one_each);
    assert_eq!((found.within_start_sd_log, found.between_starts_sd_log), (None, None));
    assert!(found.ratio.low95.is_finite() && found.ratio.low95 > 0.9);
}

proptest! {
    #[test]
    fn turning_the_question_around_turns_the_answer_around(
        logs in prop::collection::vec(-2.0f64..2.0, 2..40),
    ) {
        let pairs = pairs_of(1, &logs);
        let swap = |pair: &Pair| Pair { baseline: pair.variant, variant: pair.baseline, ..*pair };
        let turned: Vec<Pair> = pairs.iter().map(swap).collect();
        let (one, other) = (compare(&pairs), compare(&turned));
        prop_assert!((one.ratio.value * other.ratio.value - 1.0).abs() < 1e-6);
        prop_assert!((one.ratio.low95 * other.ratio.high95 - 1.0).abs() < 1e-6);
        prop_assert!((one.p - other.p).abs() < 1e-9);
    }

    #[test]
    fn any_numbers_are_compared_without_a_panic(
        values in prop::collection::vec((any::<f64>(), any::<f64>(), 0u32..4), 0..60), matters in any::<f64>(),
    ) {
        let pair = |(baseline, variant, start): &(f64, f64, u32)| {
            Pair { start: *start, variant_first: false, baseline: *baseline, variant: *variant }
        };
        let pairs: Vec<Pair> = values.iter().map(pair).collect();
        alternation(&pairs, &Question { matters, seed: 1 });
        carry_over(&pairs);
        let raw: Vec<f64> = values.iter().map(|value| value.0).collect();
        if let Some(mut sequence) = Sequence::new(&raw, 50) {
            raw.iter().for_each(|value| sequence.push(*value));
            sequence.interval();
        }
        settling(&vec![raw; 6], matters);
    }
}

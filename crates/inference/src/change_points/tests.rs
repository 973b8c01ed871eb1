//! Simulations whose truth is known.

use super::*;
use whyso_random::noise::Noise;

/// Parts of this many values around a mean each, with a noise of one per cent of 100.
fn series(seed: u64, parts: &[(usize, f64)]) -> Vec<f64> {
    let mut noise = Noise::new(seed);
    let of_part =
        |(count, mean): &(usize, f64)| (0..*count).map(|_| mean + noise.normal()).collect::<Vec<f64>>();
    parts.iter().flat_map(of_part).collect()
}

fn places(values: &[f64]) -> Vec<usize> {
    change_points(values, &ChangeRule::default()).iter().map(|change| change.at).collect()
}

#[test]
fn of_series_that_do_not_change_few_show_a_change() {
    for (length, share_max) in [(20, 0.05), (60, 0.05), (300, 0.2)] {
        let wrong = (0..200).filter(|seed| !places(&series(*seed, &[(length, 100.0)])).is_empty()).count();
        println!("{length} values: {wrong} of 200");
        assert!(wrong as f64 <= 200.0 * share_max, "{length} values: {wrong} of 200");
    }
}

#[test]
fn planted_changes_are_found_where_they_are_and_as_large_as_they_are() {
    for percent in [3.0, 5.0, 10.0] {
        for at in [10, 30, 52] {
            let (mut found, mut near) = (0, 0);
            for seed in 0..200 {
                let values = series(seed, &[(at, 100.0), (60 - at, 100.0 - percent)]);
                let changes = change_points(&values, &ChangeRule::default());
                let Some(change) = changes.iter().min_by_key(|change| change.at.abs_diff(at)) else {
                    continue;
                };
                found += 1;
                let size = change.before - change.after;
                near += usize::from(
                    changes.len() == 1 && change.at.abs_diff(at) <= 1 && (size - percent).abs() < 1.5,
                );
            }
            println!("{percent} % at {at}: {found} found, {near} near, of 200");
            let near_min = if percent < 4.0 { 180 } else { 190 };
            assert!(found >= 196 && near >= near_min, "{percent} % at {at}: {found} found, {near} near");
        }
    }
}

#[test]
fn several_changes_are_all_found() {
    let parts = [(25, 100.0), (20, 94.0), (40, 99.0), (30, 110.0), (25, 104.0)];
    let truth = [25, 45, 85, 115];
    let exact = (0..100)
        .filter(|seed| {
            let found = places(&series(*seed, &parts));
            found.len() == 4 && found.iter().zip(truth).all(|(one, other)| one.abs_diff(other) <= 1)
        })
        .count();
    println!("{exact} of 100");
    assert!(exact >= 85, "{exact} of 100");
}

#[test]
fn a_bump_that_passes_is_two_changes() {
    let found =
        (0..100).filter(|seed| places(&series(*seed, &[(30, 100.0), (6, 92.0), (24, 100.0)])) == [30, 36]);
    let exact = found.count();
    assert!(exact >= 90, "{exact} of 100");
}

#[test]
fn a_single_outlier_is_no_change_wherever_it_lies() {
    let steady = (0..).filter(|seed| places(&series(*seed, &[(60, 100.0)])).is_empty());
    for seed in steady.take(5) {
        for at in 0..60 {
            for outlier in [110.0, 50.0, 1000.0] {
                let mut values = series(seed, &[(60, 100.0)]);
                values[at] = outlier;
                let found = places(&values);
                assert!(found.is_empty(), "seed {seed}, {outlier} at {at}: {found:?}");
            }
        }
    }
}

#[test]
fn an_outlier_does_not_hide_a_change() {
    let found = (0..100).filter(|seed| {
        let mut values = series(*seed, &[(30, 100.0), (30, 90.0)]);
        values[12] = 70.0;
        places(&values).iter().any(|at| at.abs_diff(30) <= 1)
    });
    let near = found.count();
    assert!(near >= 95, "{near} of 100");
}

#[test]
fn a_change_that_is_too_small_to_matter_is_left_out_and_its_parts_are_one() {
    let values = series(3, &[(30, 100.0), (30, 97.0), (30, 80.0)]);
    let found = change_points(&values, &ChangeRule { size_min: 5.0, ..ChangeRule::default() });
    assert_eq!(found.len(), 1);
    assert!(found[0].at == 60 && (found[0].before - 98.5).abs() < 0.5 && (found[0].after - 80.0).abs() < 0.5);
}

#[test]
fn a_long_past_does_not_hide_what_is_near_and_windows_find_nothing_twice() {
    let values = series(8, &[(400, 100.0), (10, 95.0)]);
    assert_eq!(places(&values), [400]);
    let steps: Vec<(usize, f64)> = (0..12).map(|step| (30, 100.0 + 8.0 * f64::from(step % 2))).collect();
    let found = places(&series(5, &steps));
    assert_eq!(found.len(), 11, "{found:?}");
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn what_is_no_number_is_left_out_and_places_stay_those_of_the_series() {
    let mut values = vec![f64::NAN, f64::INFINITY];
    values.extend(series(1, &[(20, 100.0), (20, 90.0)]));
    assert_eq!(places(&values), [22]);
    let wild = [f64::MAX, f64::MIN, 1.0, f64::MAX, 0.0, f64::MIN_POSITIVE, -1.0, 5.0];
    for values in [&[][..], &[1.0], &[1.0; 5], &[1.0; 30], &[f64::NAN; 30], &wild] {
        assert!(places(values).is_empty(), "{values:?}");
    }
    assert_eq!(places(&[1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]), [4], "steps without noise");
}

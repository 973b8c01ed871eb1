//! What holds for any value.

use proptest::prelude::*;
use whyso_words::{amount, bytes, nanoseconds, number, p_value, percent, ratio, short, whole};

/// Reads what `number` wrote.
fn read(text: &str) -> f64 {
    let plain = text.replace(',', "").replace('−', "-");
    let Some((mantissa, exponent)) = plain.split_once("·10") else { return plain.parse().unwrap() };
    let lowered = |letter: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|one| one == letter);
    let exponent: String = exponent
        .chars()
        .map(|letter| lowered(letter).map_or("-".to_string(), |digit| digit.to_string()))
        .collect();
    format!("{mantissa}e{exponent}").parse().unwrap()
}

/// Sizes of every order, and numbers that are nearly round.
fn any_size() -> impl Strategy<Value = f64> {
    let nearly_round = (1u32..=100, -12i32..12, -2i32..=2)
        .prop_map(|(times, power, off)| f64::from(times) * 10f64.powi(power) * (1.0 + f64::from(off) * 1e-4));
    prop_oneof![
        nearly_round,
        (-300.0..300.0f64).prop_map(|power| 10f64.powf(power)),
        (-6.0..16.0f64).prop_map(|power| 10f64.powf(power)),
    ]
}

proptest! {
    #[test]
    fn a_number_is_read_back_within_its_digits(size in any_size(), is_negative: bool) {
        let value = if is_negative { -size } else { size };
        let text = number(value);
        let off = (read(&text) - value).abs() / size;
        // Half of the last of three digits from 1 up, of two below.
        let most = if size >= 1.0 { 0.005 } else { 0.05 };
        prop_assert!(off <= most * 1.000_001, "{value} is written {text}");
    }

    #[test]
    fn what_is_not_0_is_never_written_as_0_and_everything_has_its_sign(value: f64) {
        prop_assume!(value.is_finite() && value != 0.0);
        let texts = [number(value), percent(value), nanoseconds(value), bytes(value), short(value), ratio(value), amount(value, "1/s")];
        for text in texts {
            prop_assert!(text.contains(|letter: char| ('1'..='9').contains(&letter)) || text == "–", "{value}: {text}");
            prop_assert_eq!(text.starts_with('−'), value < 0.0 && text != "–", "{}: {}", value, text);
            prop_assert!(!text.contains('-'), "{value}: {text}");
        }
    }

    #[test]
    fn a_larger_number_is_never_written_smaller(one in any_size(), other in any_size()) {
        let (less, more) = if one <= other { (one, other) } else { (other, one) };
        let (less_text, more_text) = (number(less), number(more));
        prop_assert!(read(&less_text) <= read(&more_text) * (1.0 + 1e-12), "{less_text} and {more_text}");
    }

    #[test]
    fn no_fraction_ends_in_0(size in any_size()) {
        for text in [number(size), short(size), percent(size), ratio(size)] {
            let mantissa = text.split(['·', ' ', 'k', 'M', 'G', 'T']).next().unwrap_or_default();
            prop_assert!(!mantissa.contains('.') || !mantissa.ends_with(['0', '.']), "{size}: {text}");
        }
    }

    #[test]
    fn only_everything_is_100_percent(share in 0.5..0.999_999_99f64) {
        prop_assert_ne!(percent(share), "100 %");
    }

    #[test]
    fn every_time_is_between_1_and_1000_of_its_unit(ns in 1.0..1e12f64) {
        let text = nanoseconds(ns);
        let (number, unit) = text.split_once(' ').unwrap();
        prop_assert!(read(number) >= 1.0 && (read(number) < 1000.0 || unit == "s"), "{ns}: {text}");
    }

    #[test]
    fn groups_of_digits_have_three(value: u64) {
        let text = whole(value);
        prop_assert_eq!(text.replace(',', ""), value.to_string());
        prop_assert!(text.split(',').skip(1).all(|group| group.len() == 3));
    }

    #[test]
    fn any_float_is_written(bits: u64) {
        let value = f64::from_bits(bits);
        for text in [number(value), percent(value), nanoseconds(value), bytes(value), short(value), ratio(value), p_value(value.abs())] {
            prop_assert!(!text.is_empty() && text.chars().count() <= 30, "{value:e}: {text}");
        }
    }
}

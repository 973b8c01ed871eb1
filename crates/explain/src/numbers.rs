//! Numbers as people read them.

/// Thousands separated, as many decimals as matter: 1,250 · 58.3 · 6.41 · 0.021 · 0.
pub(crate) fn plain(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || !value.is_finite() {
        return "0".to_string();
    }
    if !(1e-6..1e15).contains(&size) {
        return format!("{value:.1e}");
    }
    if size >= 99.95 {
        return thousands(value);
    }
    let decimals = match size {
        _ if size >= 9.995 => 1,
        _ if size >= 0.995 => 2,
        // Two significant digits below 1.
        _ => (1.0 - size.log10().floor()) as usize,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        let trimmed = text.trim_end_matches('0').trim_end_matches('.');
        // 2.50 is 2.5, but 4.00 keeps one digit: it was measured, not counted.
        if !trimmed.contains('.') && size >= 1.0 && value.fract() != 0.0 {
            return format!("{trimmed}.0");
        }
        return trimmed.to_string();
    }
    text
}

/// A whole number, thousands separated.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as a percentage: 9 %, 0.4 %.
pub(crate) fn percent(share: f64) -> String {
    let percentage = share * 100.0;
    if percentage.abs() >= 9.95 || percentage.abs() < 0.005 {
        return format!("{percentage:.0} %");
    }
    if percentage.abs() >= 0.095 {
        let text = format!("{percentage:.1}");
        return format!("{} %", text.trim_end_matches(".0"));
    }
    format!("{} %", plain(percentage))
}

/// Time in the unit that suits it.
pub(crate) fn milliseconds(ms: f64) -> String {
    let size = ms.abs();
    if size >= 10_000.0 {
        return format!("{} s", plain(ms / 1e3));
    }
    if size >= 0.1 || size == 0.0 {
        return format!("{} ms", plain(ms));
    }
    if size >= 1e-4 {
        return format!("{} µs", plain(ms * 1e3));
    }
    format!("{} ns", plain(ms * 1e6))
}

/// A quantity with its unit, as the recording names units.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "ns" => milliseconds(value / 1e6),
        "us" => milliseconds(value / 1e3),
        "ms" => milliseconds(value),
        "s" => milliseconds(value * 1e3),
        "bytes" if value.abs() >= 1e6 => format!("{} MB", plain(value / 1e6)),
        "bytes" if value.abs() >= 1e4 => format!("{} kB", plain(value / 1e3)),
        "bytes" => format!("{} bytes", plain(value)),
        _ => plain(value),
    }
}

/// Two quantities of one unit, which is said once where it suits both: "6.41 → 58.3 ms".
pub(crate) fn pair(before: f64, after: f64, unit: &str, between: &str) -> String {
    let before = with_unit(before, unit);
    let after = with_unit(after, unit);
    let unit_after = after.split_once(' ').map(|(_, name)| name);
    let shortened = match (before.split_once(' '), unit_after) {
        (Some((number, name)), Some(name_after)) if name == name_after => number.to_string(),
        _ => before,
    };
    format!("{shortened}{between}{after}")
}

/// "1, 2 and 4"
pub(crate) fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// "8 users", "1 user"
pub(crate) fn users(number: u32) -> String {
    match number {
        1 => "1 user".to_string(),
        _ => format!("{} users", count(u64::from(number))),
    }
}

/// "3.1-fold" or "by 12 %", for what grew by this ratio.
pub(crate) fn growth(ratio: f64) -> String {
    if ratio < 1.95 {
        return format!("by {}", percent(ratio - 1.0));
    }
    format!("{}-fold", plain(ratio))
}

fn thousands(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}", count(value.abs().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_fit_the_size() {
        let cases = [
            (1_250.4, "1,250"),
            (37_000.0, "37,000"),
            (99.97, "100"),
            (58.26, "58.3"),
            (6.4, "6.4"),
            (4.0001, "4.0"),
            (4.0, "4"),
            (0.5, "0.5"),
            (0.0214, "0.021"),
            (0.000_83, "0.00083"),
            (0.0, "0"),
            (f64::NAN, "0"),
            (2.5e-9, "2.5e-9"),
            (-1_250.0, "−1,250"),
        ];
        for (value, expected) in cases {
            assert_eq!(plain(value), expected);
        }
    }

    #[test]
    fn units_are_those_that_suit() {
        assert_eq!(with_unit(1_520_000.0, "ns"), "1.52 ms");
        assert_eq!(with_unit(15_200.0, "ns"), "15.2 µs");
        assert_eq!(with_unit(12.0, "ns"), "12 ns");
        assert_eq!(with_unit(12_500.0, "ms"), "12.5 s");
        assert_eq!(with_unit(16_384.0, "bytes"), "16.4 kB");
        assert_eq!(with_unit(3.1, "1"), "3.1");
    }

    #[test]
    fn shares_and_ratios_read_well() {
        assert_eq!(percent(0.0904), "9 %");
        assert_eq!(percent(0.1234), "12 %");
        assert_eq!(percent(0.0004), "0.04 %");
        assert_eq!(growth(3.1), "3.1-fold");
        assert_eq!(growth(1.12), "by 12 %");
        assert_eq!(users(1), "1 user");
        assert_eq!(percent(0.00352), "0.4 %");
        assert_eq!(pair(6.41, 58.3, "ms", " → "), "6.41 → 58.3 ms");
        assert_eq!(pair(0.0403, 4.4, "ms", " → "), "40.3 µs → 4.4 ms");
        assert_eq!(pair(4.0, 12.4, "1", " → "), "4 → 12.4");
        assert_eq!(list(&["1".into(), "2".into(), "4".into()]), "1, 2 and 4");
    }
}

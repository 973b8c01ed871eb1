//! Numbers for people, the same in every form of report.

/// Three significant digits below 1,000, whole numbers with separators above; "–" for what is no number.
///
/// ```
/// use whyso_report::number::grouped;
/// assert_eq!(grouped(1234567.8), "1,234,568");
/// assert_eq!(grouped(12.345), "12.3");
/// assert_eq!(grouped(0.01234), "0.012");
/// ```
pub fn grouped(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return "–".to_string();
    }
    if size == 0.0 {
        return "0".to_string();
    }
    if size >= 99.95 {
        return with_separators(value.round());
    }
    if size >= 9.995 {
        return format!("{value:.1}");
    }
    if size >= 0.9995 {
        return format!("{value:.2}");
    }
    if size >= 0.000_999_5 {
        // Two significant digits, at most five after the point.
        let digits = (1.0 - size.log10().floor()) as usize;
        return trimmed(&format!("{value:.digits$}"));
    }
    format!("{value:.1e}")
}

/// A number that may be a lower bound: "≥" before it, where it is.
///
/// ```
/// use whyso_report::number::at_least;
/// assert_eq!(at_least("5.94 s".to_string(), true), "≥5.94 s");
/// assert_eq!(at_least("5.94 s".to_string(), false), "5.94 s");
/// ```
pub fn at_least(number: String, is_lower_bound: bool) -> String {
    if is_lower_bound { format!("≥{number}") } else { number }
}

/// A quantity with its unit as the recording names it: times in the unit that suits them, plain counts bare.
///
/// ```
/// use whyso_report::number::amount;
/// assert_eq!(amount(4_497_387.0, "ns"), "4.50 ms");
/// assert_eq!(amount(0.00306, "ms"), "3.06 µs");
/// assert_eq!(amount(14.24, "bytes"), "14.2 B");
/// assert_eq!(amount(0.5, "1"), "0.5");
/// ```
pub fn amount(value: f64, unit: &str) -> String {
    let ns_each = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "1" | "" => return grouped(value),
        "bytes" => return format!("{} B", grouped(value)),
        other => return format!("{} {other}", grouped(value)),
    };
    let ns = value * ns_each;
    let size = ns.abs();
    let (divisor, name) = match size {
        _ if size >= 1e9 => (1e9, "s"),
        _ if size >= 1e5 => (1e6, "ms"),
        _ if size > 0.0 => (1e3, "µs"),
        _ => (1.0, "ms"),
    };
    format!("{} {name}", grouped(ns / divisor))
}

/// A whole number with separators.
pub fn whole(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes in the largest binary unit that they fill.
///
/// ```
/// assert_eq!(whyso_report::number::bytes(1_610_612_736), "1.50 GiB");
/// ```
pub fn bytes(count: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if count >= 1 << shift {
            return format!("{} {unit}", grouped(count as f64 / (1u64 << shift) as f64));
        }
    }
    format!("{count} B")
}

/// A fraction as whole per cent, with one digit more where it would be 0.
pub fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    if !value.is_finite() {
        return "–".to_string();
    }
    if value > 0.0 && value < 0.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

fn with_separators(rounded: f64) -> String {
    // Beyond u64 nothing is gained by separators.
    if rounded.abs() >= 1e18 {
        return format!("{rounded:.2e}");
    }
    let sign = if rounded < 0.0 { "-" } else { "" };
    format!("{sign}{}", whole(rounded.abs() as u64))
}

fn trimmed(text: &str) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_matter() {
        let cases = [
            (0.0, "0"),
            (999_999.6, "1,000,000"),
            (-1234.0, "-1,234"),
            (99.96, "100"),
            (9.996, "10.0"),
            (0.9996, "1.00"),
            (0.5, "0.5"),
            (0.001_234, "0.0012"),
            (0.000_012, "1.2e-5"),
            (f64::NAN, "–"),
            (1e30, "1.00e30"),
        ];
        for (value, expected) in cases {
            assert_eq!(grouped(value), expected, "{value}");
        }
    }

    #[test]
    fn small_shares_are_not_nothing() {
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.996), "100 %");
        assert_eq!(percent(0.0), "0 %");
    }
}

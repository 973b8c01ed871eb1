//! Lengths of time, as options of the command line and stages write them.

use std::time::Duration;

/// Parses "60", "60s", "1.5m", "200ms", "50us" or "1h"; at most 30 days. A number without a unit is in seconds.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..number_end].parse().ok()?;
    let scale = match text[number_end..].trim() {
        "" | "s" => 1.0,
        "us" | "µs" => 1e-6,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number * scale;
    (seconds.is_finite() && seconds <= 86_400.0 * 30.0).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_duration("60"), Some(Duration::from_secs(60)));
        assert_eq!(parse_duration("200ms"), Some(Duration::from_millis(200)));
        assert_eq!(parse_duration("1.5m"), Some(Duration::from_secs(90)));
        for bad in ["", "x", "5 parsecs", "-1", "1e300h", "9999999h", "1..2"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}

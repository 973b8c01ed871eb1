//! Numbers with a unit: times, bytes, rates, and what a recording names a unit for.

use crate::number::{NOTHING, number};

/// From this share of a unit on, a value is written in it: rounded to three digits it is 1.
const UNIT_MIN: f64 = 0.9995;

/// Returns a time in the unit that suits it: s, ms, µs or ns.
///
/// ```
/// use whyso_words::nanoseconds;
/// assert_eq!([nanoseconds(12.0), nanoseconds(15_200.0), nanoseconds(4.5e6)], ["12 ns", "15.2 µs", "4.5 ms"]);
/// ```
pub fn nanoseconds(ns: f64) -> String {
    if !ns.is_finite() {
        return NOTHING.to_string();
    }
    if ns == 0.0 {
        return "0 ms".to_string();
    }
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let suits = |(factor, _): &(f64, &str)| ns.abs() / factor >= UNIT_MIN;
    let (factor, unit) = units.into_iter().find(suits).unwrap_or((1.0, "ns"));
    format!("{} {unit}", number(ns / factor))
}

/// Returns a time in milliseconds in the unit that suits it.
pub fn milliseconds(ms: f64) -> String {
    nanoseconds(ms * 1e6)
}

/// Returns a time in seconds in the unit that suits it.
pub fn seconds(s: f64) -> String {
    nanoseconds(s * 1e9)
}

/// Returns about how long something takes, for people who wait for it: "45 s", "3 min", "1.5 h".
///
/// ```
/// use whyso_words::rough_time;
/// assert_eq!([rough_time(44.6), rough_time(200.0), rough_time(9_000.0)], ["45 s", "3 min", "2.5 h"]);
/// ```
pub fn rough_time(s: f64) -> String {
    if !s.is_finite() {
        return NOTHING.to_string();
    }
    if s < 89.5 {
        return format!("{} s", number(s.round()));
    }
    if s < 119.5 * 60.0 {
        return format!("{} min", number((s / 60.0).round()));
    }
    format!("{} h", number((s / 360.0).round() / 10.0))
}

/// Returns a time of the run as minutes and seconds, with hours where there are some. It has decimals where the step between two such times needs
/// them.
///
/// ```
/// use whyso_words::clock;
/// assert_eq!([clock(75.0, 1.0), clock(3_675.0, 1.0), clock(1.25, 0.1)], ["1:15", "1:01:15", "0:01.3"]);
/// ```
pub fn clock(s: f64, step_s: f64) -> String {
    if !s.is_finite() {
        return NOTHING.to_string();
    }
    let (decimals, scale) = match step_s {
        step_s if step_s < 0.01 => (3, 1_000),
        step_s if step_s < 0.1 => (2, 100),
        step_s if step_s < 1.0 => (1, 10),
        _ => (0, 1),
    };
    let scaled = (s.abs() * scale as f64).round() as u64;
    let (whole_s, rest) = (scaled / scale, scaled % scale);
    let (hours, minutes, seconds) = (whole_s / 3_600, whole_s / 60 % 60, whole_s % 60);
    let sign = if s < 0.0 && scaled > 0 { "−" } else { "" };
    let head = if hours > 0 { format!("{hours}:{minutes:02}") } else { minutes.to_string() };
    let fraction = if decimals > 0 { format!(".{rest:0decimals$}") } else { String::new() };
    format!("{sign}{head}:{seconds:02}{fraction}")
}

/// Returns bytes in the largest binary unit that they fill.
///
/// ```
/// use whyso_words::bytes;
/// assert_eq!([bytes(512.0), bytes(16_384.0), bytes(1_610_612_736.0)], ["512 B", "16 KiB", "1.5 GiB"]);
/// ```
pub fn bytes(count: f64) -> String {
    if !count.is_finite() {
        return NOTHING.to_string();
    }
    let units =
        [(1_099_511_627_776.0, "TiB"), (1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1_024.0, "KiB")];
    let suits = |(factor, _): &(f64, &str)| count.abs() / factor >= UNIT_MIN;
    let (factor, unit) = units.into_iter().find(suits).unwrap_or((1.0, "B"));
    format!("{} {unit}", number(count / factor))
}

/// Returns how often per second.
///
/// ```
/// assert_eq!(whyso_words::rate(1_250.4), "1,250/s");
/// ```
pub fn rate(per_s: f64) -> String {
    amount(per_s, "1/s")
}

/// Returns a quantity with its unit as a recording names it: "ns", "bytes", "1" for a count, "bytes/s" and the like. Times and bytes get
/// the unit that suits them, counts stand bare, other units follow the number.
///
/// ```
/// use whyso_words::amount;
/// assert_eq!([amount(0.003_06, "ms"), amount(2_500_000.0, "bytes/s")], ["3.06 µs", "2.38 MiB/s"]);
/// assert_eq!([amount(0.5, "1"), amount(1_250.0, "1/s"), amount(3.0, "pages")], ["0.5", "1,250/s", "3 pages"]);
/// ```
pub fn amount(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return NOTHING.to_string();
    }
    let (of, per) = unit.find('/').map_or((unit, ""), |at| unit.split_at(at));
    let text = match of {
        "ns" => nanoseconds(value),
        "us" | "µs" => nanoseconds(value * 1e3),
        "ms" => milliseconds(value),
        "s" => seconds(value),
        "bytes" | "B" => bytes(value),
        "KiB" => bytes(value * 1024.0),
        "1" | "" => number(value),
        other => format!("{} {other}", number(value)),
    };
    format!("{text}{per}")
}

/// Returns two quantities of one unit with a text between them; a unit that suits both is written once.
///
/// ```
/// use whyso_words::change;
/// assert_eq!(change(6.41, 58.3, "ms", " → "), "6.41 → 58.3 ms");
/// assert_eq!(change(0.0403, 4.4, "ms", " → "), "40.3 µs → 4.4 ms");
/// ```
pub fn change(before: f64, after: f64, unit: &str, between: &str) -> String {
    let (before, after) = (amount(before, unit), amount(after, unit));
    let shown = match (before.split_once(' '), after.split_once(' ')) {
        (Some((number, unit_before)), Some((_, unit_after))) if unit_before == unit_after => number,
        _ => &before,
    };
    format!("{shown}{between}{after}")
}

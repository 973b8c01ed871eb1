//! OpenMetrics text, version 1.0: <https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>.
//!
//! Names are `whyso_SOURCE_METRIC`, in small letters, with the unit at their end. Times are in seconds and sizes in bytes, since
//! the specification wants base units. The instance of a series is the label `which`: `instance` is the scraper's own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use whyso_record::data::{Kind, SeriesKey, Value};

/// Samples of one name.
struct Family {
    kind: Kind,
    unit: &'static str,
    help: String,
    /// (labels, value), as they are written.
    samples: BTreeMap<String, String>,
}

/// The whole answer to a scrape.
pub(crate) fn text(series: &[(Arc<SeriesKey>, Value)]) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for (key, value) in series {
        let (unit, factor) = base_unit(&key.unit);
        let Some(value) = number(*value, factor, key.kind) else { continue };
        let mut name = name(key, unit);
        // Two names that differ only in letters that are dropped get a suffix: how they count.
        if families.get(&name).is_some_and(|family| family.kind != key.kind || family.unit != unit) {
            let kind = if key.kind == Kind::Counter { "counter" } else { "gauge" };
            let bare = name.strip_suffix(unit).unwrap_or(&name).trim_end_matches('_').to_string();
            name = if unit.is_empty() { format!("{bare}_{kind}") } else { format!("{bare}_{kind}_{unit}") };
        }
        let family = families.entry(name).or_insert_with(|| Family {
            kind: key.kind,
            unit,
            help: format!("{} of the source {}", key.metric, key.source),
            samples: BTreeMap::new(),
        });
        if family.kind == key.kind && family.unit == unit {
            family.samples.insert(labels(key), value);
        }
    }
    let mut out = String::with_capacity(series.len() * 100);
    for (name, family) in &families {
        let (kind, total) = if family.kind == Kind::Counter { ("counter", "_total") } else { ("gauge", "") };
        let _ = writeln!(out, "# TYPE {name} {kind}");
        if !family.unit.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {}", family.unit);
        }
        let _ = writeln!(out, "# HELP {name} {}", escaped(&family.help));
        for (labels, value) in &family.samples {
            let _ = writeln!(out, "{name}{total}{{{labels}}} {value}");
        }
    }
    out.push_str("# EOF\n");
    out
}

/// The unit at a name's end, and what a value is multiplied by; no unit where there is no base unit for it.
fn base_unit(unit: &str) -> (&'static str, f64) {
    match unit {
        "ns" => ("seconds", 1e-9),
        "us" => ("seconds", 1e-6),
        "ms" => ("seconds", 1e-3),
        "s" => ("seconds", 1.0),
        "bytes" => ("bytes", 1.0),
        "KiB" => ("bytes", 1024.0),
        "MiB" => ("bytes", 1_048_576.0),
        "512 bytes" => ("bytes", 512.0),
        "ratio" => ("ratio", 1.0),
        _ => ("", 1.0),
    }
}

fn name(key: &SeriesKey, unit: &str) -> String {
    let mut metric = plain(&key.metric);
    for suffix in ["_total", "_ns", "_us", "_ms", "_seconds", "_bytes", "_ratio"] {
        let is_unit = suffix != "_total";
        if is_unit && unit.is_empty() {
            continue;
        }
        if let Some(bare) = metric.strip_suffix(suffix).filter(|bare| !bare.is_empty()) {
            metric.truncate(bare.len());
        }
    }
    let mut name = format!("whyso_{}_{metric}", plain(&key.source));
    if !unit.is_empty() {
        name.push('_');
        name.push_str(unit);
    }
    name
}

/// In small letters, with whatever no name may have as `_`.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        let letter = if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '_' };
        if letter != '_' || !plain.ends_with('_') {
            plain.push(letter);
        }
    }
    plain.trim_end_matches('_').to_string()
}

fn labels(key: &SeriesKey) -> String {
    let mut labels = format!("host=\"{}\"", escaped(&key.host));
    if !key.instance.is_empty() {
        let _ = write!(labels, ",which=\"{}\"", escaped(&key.instance));
    }
    labels
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', " ")
}

fn number(value: Value, factor: f64, kind: Kind) -> Option<String> {
    let as_f64 = value.as_f64();
    // A counter counts from 0 up.
    if !as_f64.is_finite() || (kind == Kind::Counter && as_f64 < 0.0) {
        return None;
    }
    Some(match value {
        Value::Int(value) if factor == 1.0 => value.to_string(),
        _ => format!("{}", as_f64 * factor),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(source: &str, metric: &str, instance: &str, kind: Kind, unit: &str) -> Arc<SeriesKey> {
        let key = SeriesKey {
            host: "server".to_string(),
            source: source.to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
            kind,
            unit: unit.to_string(),
        };
        Arc::new(key)
    }

    #[test]
    fn units_are_base_units_and_counters_end_in_total() {
        let text = text(&[
            (series("cpu", "user_ns", "cpu0", Kind::Counter, "ns"), Value::Int(1_500_000_000)),
            (series("status", "Innodb_rows_read", "", Kind::Counter, "1"), Value::Int(i64::MAX)),
            (series("addon.x-y", "%util", "a\"b\\", Kind::Gauge, "%"), Value::Float(0.5)),
        ]);
        assert_eq!(
            text,
            "# TYPE whyso_addon_x_y__util gauge\n\
             # HELP whyso_addon_x_y__util %util of the source addon.x-y\n\
             whyso_addon_x_y__util{host=\"server\",which=\"a\\\"b\\\\\"} 0.5\n\
             # TYPE whyso_cpu_user_seconds counter\n\
             # UNIT whyso_cpu_user_seconds seconds\n\
             # HELP whyso_cpu_user_seconds user_ns of the source cpu\n\
             whyso_cpu_user_seconds_total{host=\"server\",which=\"cpu0\"} 1.5\n\
             # TYPE whyso_status_innodb_rows_read counter\n\
             # HELP whyso_status_innodb_rows_read Innodb_rows_read of the source status\n\
             whyso_status_innodb_rows_read_total{host=\"server\"} 9223372036854775807\n\
             # EOF\n"
        );
    }

    #[test]
    fn names_that_collide_with_another_kind_are_both_given_once() {
        let text = text(&[
            (series("s", "a b", "", Kind::Counter, "1"), Value::Int(1)),
            (series("s", "a_b", "", Kind::Gauge, "1"), Value::Int(2)),
            (series("s", "A_b", "", Kind::Gauge, "1"), Value::Int(3)),
        ]);
        assert!(text.contains("whyso_s_a_b_total{host=\"server\"} 1\n"), "{text}");
        assert_eq!(text.matches("whyso_s_a_b_gauge{").count(), 1, "{text}");
    }
}

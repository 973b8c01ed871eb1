//! What a number is called, how it counts and what it means.

use whyso_record::data::Kind;

/// One number of a sampler whose names are ours. The samplers `status` and `innodb_metrics` keep
/// the server's own names instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Unit last, such as "read_bytes".
    pub name: &'static str,
    pub kind: Kind,
    /// "ns", "bytes", "cores", "1" (a plain count).
    pub unit: &'static str,
    /// One plain sentence, for a person who picks a chart.
    pub meaning: &'static str,
}

pub(crate) const fn counter(name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, unit, meaning }
}

pub(crate) const fn gauge(name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, unit, meaning }
}

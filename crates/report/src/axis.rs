//! What the levels of a sweep differ in, and so what charts and tables are against.

use whyso_record::run::{Level, RunInfo};
use whyso_words::{number, whole};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Users,
    /// Transactions that are due per second, in an open loop.
    Rates,
}

impl Axis {
    pub(crate) fn of(run: &RunInfo) -> Axis {
        if run.sweeps_rates() { Axis::Rates } else { Axis::Users }
    }

    /// A level's place on it.
    pub(crate) fn at(self, level: &Level) -> f64 {
        match (self, level.result.rate_per_s) {
            (Axis::Rates, Some(rate_per_s)) => rate_per_s,
            _ => f64::from(level.users),
        }
    }

    /// A level's place as a number, without its unit.
    pub(crate) fn number(self, level: &Level) -> String {
        match self {
            Axis::Users => whole(u64::from(level.users)),
            Axis::Rates => number(self.at(level)),
        }
    }

    /// What a column of such numbers is called.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Axis::Users => "users",
            Axis::Rates => "due/s",
        }
    }

    /// What the axis of a chart is called.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Axis::Users => "users (concurrent connections, logarithmic)",
            Axis::Rates => "transactions due per second (open loop, logarithmic)",
        }
    }
}

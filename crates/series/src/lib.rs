//! Pure arithmetic on series: what a counter grew by, rates, sums, envelopes, roll-ups; the time of threads and of users.
//!
//! A series is two slices of the same length: `t_ns`, ascending monotonic nanoseconds, and `value`.
//! A missing reading is `NaN` at its time (a *gap*), or not there at all; nothing here ever fills a gap.
//! This crate does no I/O, reads no clock, keeps no state and never panics: slices of different length
//! are used up to the shorter one.
//!
//! ```
//! // A counter that reset between the third and the fourth second, when the server was restarted.
//! let t_ns = [1_000_000_000, 2_000_000_000, 3_000_000_000, 4_000_000_000];
//! let queries = [100.0, 150.0, 200.0, 30.0];
//! let grown = whyso_series::increase(&t_ns, &queries, t_ns[0], t_ns[3]).unwrap();
//! assert_eq!(grown.amount, 130.0);
//! assert_eq!(grown.covered_ns, 3_000_000_000);
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod buckets;
mod counter;
mod envelope;
#[cfg(test)]
mod fixtures;
mod gauge;
mod grid;
mod rollup;
mod spans;
mod threads;
mod timeline;
mod top;
mod users;

pub use buckets::{count_in_buckets, merge_buckets, quantile_of_buckets};
pub use counter::{Increase, Step, growth, increase, rates, steps};
pub use envelope::{Envelope, envelope, envelope_of_rollups};
pub use gauge::{GaugeTotal, max_over, mean_over, min_over};
pub use grid::{Grid, difference, gauge_on_grid, per_transaction, rate_on_grid, ratio, sum};
pub use rollup::{Rollup, merge_rollups, roll_up, roll_up_rates};
pub use spans::{KnownBy, Span, Spans};
pub use threads::{ConnectionSnapshot, Snapshot, Thread, ThreadSnapshot, ThreadTable, ThreadTime, is_idle};
pub use timeline::{Stretch, ThreadHasher, ThreadLine, Timeline, even_edges, merged_edges};
pub use top::top_by_increase;
pub use users::{InFlight, UserSeconds};

use serde::{Deserialize, Serialize};

/// A series that was computed: `t_ns` ascending, `value` as long, `NaN` where there is a gap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Points {
    pub t_ns: Vec<i64>,
    pub value: Vec<f64>,
}

impl Points {
    pub fn len(&self) -> usize {
        self.t_ns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.t_ns.is_empty()
    }

    pub(crate) fn push(&mut self, t_ns: i64, value: f64) {
        self.t_ns.push(t_ns);
        self.value.push(value);
    }
}

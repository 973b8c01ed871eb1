//! How values and texts are written for people: one formatter for the terminal, the report and the page.
//!
//! The page has the same formatter in `web/src/lib/words.ts`. `fixtures.json` holds both together: either side tests all of its cases.
//!
//! This crate formats. It judges nothing, reads no clock and does no I/O.
//!
//! ```
//! use whyso_words::{amount, bytes, count, list, milliseconds, number, percent};
//!
//! assert_eq!(number(1_234_567.8), "1,234,568");
//! assert_eq!(percent(0.085), "8.5 %");
//! assert_eq!(milliseconds(0.0152), "15.2 µs");
//! assert_eq!(bytes(1_610_612_736.0), "1.5 GiB");
//! assert_eq!(amount(4_497_387.0, "ns"), "4.5 ms");
//! assert_eq!(count(2, "retry"), "2 retries");
//! assert_eq!(list(&["1", "2", "4"]), "1, 2 and 4");
//! ```

mod number;
mod pacing;
mod phrase;
mod quantity;
pub mod terminal;

pub use number::{
    NOTHING, number, p_value, percent, percent_change, percent_number, ratio, short, signed_number, whole,
};
pub use pacing::{pacing, pacing_without_rate};
pub use phrase::{at_least, count, growth, list, times, users};
pub use quantity::{amount, bytes, change, clock, milliseconds, nanoseconds, rate, rough_time, seconds};

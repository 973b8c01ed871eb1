//! How values and texts are written for people: one formatter for the terminal, the report and the page.
//!
//! This crate formats. It judges nothing, reads no clock and does no I/O.
//!
//! ```
//! assert_eq!(whyso_words::terminal::escape("ends\u{1b}[2J"), "ends\\u001b[2J");
//! ```

pub mod terminal;

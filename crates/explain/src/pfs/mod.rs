//! The Performance Schema's classic views: what the server counted by event, statement, file, table, index, lock, user and thread.

mod evenness;
mod idle;
mod table;
mod view;

pub use evenness::{Evenness, evenness};
pub use table::{Difference, Line, OWN_COUNT, Per, Table, differences};
pub use view::{Column, Quantity, VIEWS, View};

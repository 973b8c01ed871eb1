//! see ARCHITECTURE.md
pub mod data;
pub mod run;

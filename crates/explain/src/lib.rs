//! see ARCHITECTURE.md
pub mod model;

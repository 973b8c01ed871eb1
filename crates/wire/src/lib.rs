//! see ARCHITECTURE.md

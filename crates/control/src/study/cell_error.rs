//! What is wrong with a cell, with its name.

use whyso_study::Cell;

use crate::Error;

pub(super) fn of_cell(cell: &Cell, error: &impl std::fmt::Display) -> Error {
    Error::Plan(format!("{}: {error}", cell.name()))
}

//! Columns of answers that become variables: `\gset`.

use super::blocks::BlockKind;
// In a circle with sql/build.rs: the builder ends with the captures of its statements, which are steps of the builder.
use super::build::Builder;
use super::error::SqlFileError;
use super::lexer::name_at;
use crate::workload::{Capture, Protocol, Statement, Step};

/// A `\gset`.
pub(super) struct Gset {
    pub prefix: String,
    /// Columns that are asked for after it, and their variables.
    pub columns: Vec<(String, u16)>,
}

impl Builder {
    pub(super) fn gset(&mut self, prefix: &str) -> Result<(), SqlFileError> {
        self.unended = None;
        let follows = std::mem::take(&mut self.last_statement);
        let last = self.open_steps.last_mut().and_then(|steps| steps.last_mut());
        let Some(Step::Send(statement)) = last.filter(|_| follows) else {
            return Err(SqlFileError::NoStatementBefore);
        };
        if name_at(prefix) != prefix {
            return Err(SqlFileError::Prefix { prefix: prefix.to_string() });
        }
        // A prepared statement's column names may come only with its preparation.
        statement.protocol = Protocol::Text;
        statement.capture = Some(Capture { columns: Vec::new(), reserved: Vec::new() });
        self.captures.push(Gset { prefix: prefix.to_string(), columns: Vec::new() });
        Ok(())
    }

    /// Places of the captures that belong to statements of the transaction that is being read.
    pub(super) fn captures_of_transaction(&self) -> std::ops::Range<usize> {
        let open = self.open_steps.iter().map(|steps| count_captures(steps)).sum::<usize>();
        let in_blocks: usize = self
            .blocks
            .iter()
            .map(|block| match &block.kind {
                BlockKind::Else { then, .. } => count_captures(then),
                _ => 0,
            })
            .sum();
        self.captures.len() - (open + in_blocks)..self.captures.len()
    }
}

fn count_captures(steps: &[Step]) -> usize {
    steps
        .iter()
        .map(|step| match step {
            Step::Send(statement) => usize::from(statement.capture.is_some()),
            Step::If { then, otherwise, .. } => count_captures(then) + count_captures(otherwise),
            Step::Repeat { steps, .. } | Step::While { steps, .. } => count_captures(steps),
            _ => 0,
        })
        .sum()
}

/// Gives each capture, in the order of the statements, the columns that were asked for after it.
pub(super) fn fill_captures(
    steps: &mut [Step],
    captures: &mut impl Iterator<Item = Gset>,
    variables: &[String],
) {
    for step in steps {
        match step {
            Step::Send(Statement { capture: capture @ Some(_), .. }) => {
                let Some(Gset { prefix, columns }) = captures.next() else { return };
                let is_kept =
                    |name: &String| columns.iter().any(|(column, _)| *name == format!("{prefix}{column}"));
                let reserved = variables
                    .iter()
                    .filter(|name| !is_kept(name))
                    .filter_map(|name| name.strip_prefix(prefix.as_str()))
                    .filter(|column| !column.is_empty())
                    .map(str::to_string)
                    .collect();
                *capture = (!columns.is_empty()).then_some(Capture { columns, reserved });
            }
            Step::If { then, otherwise, .. } => {
                fill_captures(then, captures, variables);
                fill_captures(otherwise, captures, variables);
            }
            Step::Repeat { steps, .. } | Step::While { steps, .. } => {
                fill_captures(steps, captures, variables)
            }
            _ => {}
        }
    }
}

//! Branches and loops: directives that stand around steps.

// In a circle with sql/build.rs: the builder holds the blocks that are open, and a block that ends changes the builder.
use super::build::{Builder, no_arguments};
use super::error::SqlFileError;
use super::expression;
use crate::expr::Expr;
use crate::workload::Step;

/// A directive whose end has not come yet.
pub(super) struct Block {
    pub line: usize,
    pub kind: BlockKind,
}

pub(super) enum BlockKind {
    If {
        condition: Expr,
    },
    /// `then`: what stands before it; `nested`: it is an `\elif`, whose own `\if` ends with the same `\endif`.
    Else {
        condition: Expr,
        then: Vec<Step>,
        nested: bool,
    },
    Repeat {
        times: Expr,
    },
    While {
        condition: Expr,
    },
}

impl Builder {
    pub(super) fn open(&mut self, line: usize, kind: BlockKind) {
        self.blocks.push(Block { line, kind });
        self.open_steps.push(Vec::new());
    }

    /// Closes the innermost block's steps.
    pub(super) fn close(&mut self) -> Vec<Step> {
        self.open_steps.pop().unwrap_or_default()
    }

    pub(super) fn otherwise(&mut self, line: usize, name: &str, arguments: &str) -> Result<(), SqlFileError> {
        let Some(Block { kind: BlockKind::If { .. }, .. }) = self.blocks.last() else {
            return Err(no_block(name, "if"));
        };
        let nested = name == "elif";
        let next_condition = if nested {
            Some(expression::expression(arguments, self)?)
        } else {
            no_arguments(name, arguments)?;
            None
        };
        let then = self.close();
        if let Some(Block { line: begin, kind: BlockKind::If { condition } }) = self.blocks.pop() {
            self.open(begin, BlockKind::Else { condition, then, nested });
        }
        if let Some(condition) = next_condition {
            self.open(line, BlockKind::If { condition });
        }
        Ok(())
    }

    pub(super) fn end_if(&mut self, arguments: &str) -> Result<(), SqlFileError> {
        no_arguments("endif", arguments)?;
        if !matches!(
            self.blocks.last(),
            Some(Block { kind: BlockKind::If { .. } | BlockKind::Else { .. }, .. })
        ) {
            return Err(no_block("endif", "if"));
        }
        loop {
            let steps = self.close();
            match self.blocks.pop() {
                Some(Block { kind: BlockKind::If { condition }, .. }) => {
                    self.push(Step::If { condition, then: steps, otherwise: Vec::new() });
                }
                Some(Block { kind: BlockKind::Else { condition, then, .. }, .. }) => {
                    self.push(Step::If { condition, then, otherwise: steps });
                }
                _ => {}
            }
            if !matches!(self.blocks.last(), Some(Block { kind: BlockKind::Else { nested: true, .. }, .. })) {
                return Ok(());
            }
        }
    }

    pub(super) fn end_loop(&mut self, name: &str, arguments: &str) -> Result<(), SqlFileError> {
        no_arguments(name, arguments)?;
        let fits = match self.blocks.last() {
            Some(Block { kind: BlockKind::Repeat { .. }, .. }) => name == "endrepeat",
            Some(Block { kind: BlockKind::While { .. }, .. }) => name == "endwhile",
            _ => false,
        };
        if !fits {
            return Err(no_block(name, name.trim_start_matches("end")));
        }
        let steps = self.close();
        match self.blocks.pop().map(|block| block.kind) {
            Some(BlockKind::Repeat { times }) => self.push(Step::Repeat { times, steps }),
            Some(BlockKind::While { condition }) => self.push(Step::While { condition, steps }),
            _ => {}
        }
        Ok(())
    }
}

fn no_block(directive: &str, begin: &str) -> SqlFileError {
    SqlFileError::NoBlock { directive: directive.to_string(), begin: begin.to_string() }
}

impl BlockKind {
    pub(super) fn begin(&self) -> &'static str {
        match self {
            BlockKind::If { .. } | BlockKind::Else { .. } => "if",
            BlockKind::Repeat { .. } => "repeat",
            BlockKind::While { .. } => "while",
        }
    }

    pub(super) fn end(&self) -> &'static str {
        match self {
            BlockKind::If { .. } | BlockKind::Else { .. } => "\\endif",
            BlockKind::Repeat { .. } => "\\endrepeat",
            BlockKind::While { .. } => "\\endwhile",
        }
    }
}

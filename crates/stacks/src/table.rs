//! Each stack once, by number.

use std::collections::HashMap;
use std::sync::Arc;

use crate::unwind::{End, Frame};

/// Number of a stack within one [`Table`], from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

/// A stack of a [`Table`], innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    pub id: StackId,
    pub frames: Arc<[Frame]>,
    pub end: End,
}

/// Stacks of frames, innermost first.
pub struct Table {
    ids: HashMap<(Arc<[Frame]>, End), StackId>,
    stacks_max: usize,
    fresh: Vec<Stack>,
}

impl Table {
    /// A table that takes this many stacks, at least one.
    pub fn new(stacks_max: usize) -> Table {
        Table { ids: HashMap::new(), stacks_max: stacks_max.clamp(1, u32::MAX as usize), fresh: Vec::new() }
    }

    /// The number of a stack, one of its own if it is new; `None` where the table is full.
    pub fn intern(&mut self, frames: Vec<Frame>, end: End) -> Option<StackId> {
        let key: (Arc<[Frame]>, End) = (Arc::from(frames), end);
        if let Some(id) = self.ids.get(&key) {
            return Some(*id);
        }
        if self.ids.len() >= self.stacks_max {
            return None;
        }
        let id = StackId(self.ids.len() as u32);
        self.fresh.push(Stack { id, frames: Arc::clone(&key.0), end });
        self.ids.insert(key, id);
        Some(id)
    }

    /// The stacks that are new since this was asked last.
    pub fn take_fresh(&mut self) -> Vec<Stack> {
        std::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::ModuleId;

    #[test]
    fn a_stack_has_one_number_and_is_fresh_once() {
        let frame = |address| Frame { module: ModuleId(2), address };
        let mut table = Table::new(2);
        let first = table.intern(vec![frame(1), frame(2)], End::Root);
        assert_eq!(table.intern(vec![frame(1), frame(2)], End::Root), first);
        let second = table.intern(vec![frame(1), frame(2)], End::Cut);
        assert_ne!(second, first);
        assert_eq!(table.take_fresh().len(), 2);
        assert_eq!(table.intern(vec![frame(9)], End::Root), None, "the table is full");
        assert_eq!(table.intern(vec![frame(1), frame(2)], End::Cut), second);
        assert!(table.take_fresh().is_empty());
    }
}

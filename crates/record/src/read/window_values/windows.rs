//! Windows, and which of them have a part of a stretch of time.

use super::LONG_NS;
use crate::run::Window;

/// Windows in order of where they begin.
pub(super) struct Windows {
    /// Each with its place in the caller's order.
    pub(super) sorted: Vec<(Window, usize)>,
    /// The latest end of each window and those before it.
    reach_ns: Vec<i64>,
}

impl Windows {
    pub(super) fn new(windows: &[Window]) -> Windows {
        let mut sorted: Vec<(Window, usize)> = windows.iter().copied().zip(0..).collect();
        sorted.sort_by_key(|(window, _)| window.begin_ns);
        let mut reach_ns = Vec::with_capacity(sorted.len());
        for (window, _) in &sorted {
            reach_ns.push(reach_ns.last().map_or(window.end_ns, |reach: &i64| window.end_ns.max(*reach)));
        }
        Windows { sorted, reach_ns }
    }

    /// Those that have a moment of `begin_ns..=end_ns`. Each comes with its place in `sorted`.
    pub(super) fn over(&self, begin_ns: i64, end_ns: i64) -> impl Iterator<Item = (usize, &Window)> {
        let first = self.reach_ns.partition_point(|reach_ns| *reach_ns < begin_ns);
        let end = self.sorted.partition_point(|(window, _)| window.begin_ns <= end_ns).max(first);
        let near = self.sorted[first..end].iter().enumerate();
        let here = near.map(move |(offset, (window, _))| (first + offset, window));
        here.filter(move |(_, window)| window.end_ns >= begin_ns)
    }

    pub(super) fn any_over(&self, begin_ns: i64, end_ns: i64) -> bool {
        self.over(begin_ns, end_ns).next().is_some()
    }
}

/// Whether roll-ups may serve a window. Shorter ones come from samples only.
pub(super) fn is_long(window: &Window) -> bool {
    window.end_ns.saturating_sub(window.begin_ns) >= LONG_NS
}

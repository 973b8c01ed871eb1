//! Tables of one source over time, the newest within a bound on memory.

use std::collections::VecDeque;

use whyso_record::data::TextRows;

use super::TABLE_BYTES_MAX;

#[derive(Debug)]
pub(super) struct Tables<T> {
    /// Time, size, table.
    tables: VecDeque<(i64, usize, T)>,
    bytes: usize,
}

impl<T> Default for Tables<T> {
    fn default() -> Tables<T> {
        Tables { tables: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Tables<T> {
    pub(super) fn push(&mut self, t_ns: i64, bytes: usize, table: T) {
        self.bytes += bytes;
        self.tables.push_back((t_ns, bytes, table));
        // The newest stays, however large.
        while self.bytes > TABLE_BYTES_MAX && self.tables.len() > 1 {
            self.pop();
        }
    }

    pub(super) fn forget_before(&mut self, t_ns: i64) {
        while self.tables.len() > 1 && self.tables[0].0 < t_ns {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some((_, bytes, _)) = self.tables.pop_front() {
            self.bytes -= bytes;
        }
    }

    /// Those of `(begin_ns, end_ns]`, the oldest first.
    pub(super) fn within(&self, begin_ns: i64, end_ns: i64) -> impl DoubleEndedIterator<Item = (i64, &T)> {
        self.tables
            .iter()
            .filter(move |(t_ns, _, _)| *t_ns > begin_ns && *t_ns <= end_ns)
            .map(|(t_ns, _, table)| (*t_ns, table))
    }
}

/// About what a table takes in memory.
pub(super) fn bytes_of(rows: &TextRows) -> usize {
    let cell = |cell: &Option<String>| 24 + cell.as_ref().map_or(0, String::len);
    200 + rows.rows.iter().flatten().map(cell).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay_within_the_bound() {
        let mut tables = Tables::default();
        for t_ns in 0..5 {
            tables.push(t_ns, TABLE_BYTES_MAX / 3, t_ns);
        }
        assert_eq!(tables.within(-1, 9).map(|(t_ns, _)| t_ns).collect::<Vec<_>>(), [2, 3, 4]);
        tables.push(5, TABLE_BYTES_MAX * 2, 5);
        assert_eq!(tables.within(4, 9).map(|(t_ns, _)| t_ns).collect::<Vec<_>>(), [5]);
    }
}

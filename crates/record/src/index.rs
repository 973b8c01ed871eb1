//! Where each series lies within a sorted file: a short text in the Parquet footer. With it a reader of one series decodes only that
//! series.
//!
//! Rows are sorted by series, and series of one source have as many rows as each other. So runs of equal series are written as
//! one: `first_series+series*rows@first..last`, where the last two are the collections (of roll-ups:
//! the begins of the buckets) of each series' first and last row. Runs are separated by spaces.

use std::ops::Range;

/// Key of the index in the Parquet footer's metadata.
pub(crate) const KEY: &str = "whyso.index";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    runs: Vec<Run>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    first_series: u32,
    series: u32,
    /// Rows of each series.
    rows: u32,
    /// Row number of the first row.
    first_row: usize,
    first: i64,
    last: i64,
}

/// Rows of one series in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) rows: Range<usize>,
    /// Collection, or begin of the bucket, of the first row and of the last.
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Index {
    /// Adds the next series; series come in ascending order, each with at least one row.
    pub(crate) fn push(&mut self, series: u32, rows: usize, first: i64, last: i64) {
        let first_row = self.row_count();
        if let Some(run) = self.runs.last_mut() {
            let follows = run.first_series + run.series == series;
            if follows && run.rows as usize == rows && (run.first, run.last) == (first, last) {
                run.series += 1;
                return;
            }
        }
        self.runs.push(Run { first_series: series, series: 1, rows: rows as u32, first_row, first, last });
    }

    pub(crate) fn row_count(&self) -> usize {
        self.runs.last().map_or(0, |run| run.first_row + run.series as usize * run.rows as usize)
    }

    pub(crate) fn find(&self, series: u32) -> Option<Place> {
        let after = self.runs.partition_point(|run| run.first_series <= series);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let offset = series - run.first_series;
        (offset < run.series).then(|| run.place(offset))
    }

    /// Every series with its place, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, Place)> + '_ {
        let places = |run: &Run| {
            (0..run.series).map(|offset| (run.first_series + offset, run.place(offset))).collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(places)
    }

    pub(crate) fn encode(&self) -> String {
        let runs = self.runs.iter().map(|run| {
            format!("{}+{}*{}@{}..{}", run.first_series, run.series, run.rows, run.first, run.last)
        });
        runs.collect::<Vec<_>>().join(" ")
    }

    /// `None` for anything that [`Index::encode`] does not write.
    pub(crate) fn decode(text: &str) -> Option<Index> {
        let mut index = Index::default();
        let mut rows_before = 0usize;
        for run in text.split_ascii_whitespace() {
            let (first_series, rest) = run.split_once('+')?;
            let (series, rest) = rest.split_once('*')?;
            let (rows, rest) = rest.split_once('@')?;
            let (first, last) = rest.split_once("..")?;
            let run = Run {
                first_series: first_series.parse().ok()?,
                series: series.parse().ok()?,
                rows: rows.parse().ok()?,
                first_row: rows_before,
                first: first.parse().ok()?,
                last: last.parse().ok()?,
            };
            run.first_series.checked_add(run.series)?;
            rows_before = rows_before.checked_add((run.series as usize).checked_mul(run.rows as usize)?)?;
            index.runs.push(run);
        }
        Some(index)
    }
}

impl Run {
    fn place(&self, offset: u32) -> Place {
        let begin = self.first_row + offset as usize * self.rows as usize;
        Place { rows: begin..begin + self.rows as usize, first: self.first, last: self.last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_regular_recording_has_a_short_index() {
        let mut index = Index::default();
        for series in 0..3000 {
            index.push(series, 300, 0, 299);
        }
        assert_eq!(index.encode(), "0+3000*300@0..299");
        assert_eq!(index.find(2).unwrap().rows, 600..900);
        assert_eq!(index.find(3000), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(series in prop::collection::btree_map(0u32..500, (1usize..4, -2i64..2, 0i64..3), 0..60)) {
            let mut index = Index::default();
            let mut row = 0;
            let mut expected = Vec::new();
            for (id, (rows, first, length)) in &series {
                index.push(*id, *rows, *first, first + length);
                expected.push((*id, Place { rows: row..row + rows, first: *first, last: first + length }));
                row += rows;
            }
            let read = Index::decode(&index.encode()).unwrap();
            prop_assert_eq!(&read, &index);
            prop_assert_eq!(read.row_count(), row);
            prop_assert_eq!(read.iter().collect::<Vec<_>>(), expected.clone());
            for (id, place) in expected {
                prop_assert_eq!(read.find(id), Some(place));
            }
        }

        #[test]
        fn any_text_is_read_without_harm(text in "[0-9+*@. -]{0,40}") {
            if let Some(index) = Index::decode(&text) {
                prop_assert_eq!(index.find(u32::MAX).is_some(), index.find(u32::MAX).is_some());
            }
        }
    }
}

//! Several series on one time grid, so that they can be added, subtracted and divided.

use serde::{Deserialize, Serialize};

use crate::counter::steps;
use crate::gauge::mean_over;

/// Cells of one length, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    pub begin_ns: i64,
    /// Length of a cell, at least 1.
    pub step_ns: i64,
    pub cells: usize,
}

impl Grid {
    /// The cells of `step_ns` that cover `[begin_ns, end_ns)`; the last may reach past the end.
    pub fn covering(begin_ns: i64, end_ns: i64, step_ns: i64) -> Grid {
        let step_ns = step_ns.max(1);
        let length_ns = (end_ns - begin_ns).max(0);
        Grid { begin_ns, step_ns, cells: (length_ns as u64).div_ceil(step_ns as u64) as usize }
    }

    /// End of each cell.
    pub fn t_ns(&self) -> Vec<i64> {
        (1..=self.cells as i64).map(|cell| self.begin_ns + cell * self.step_ns).collect()
    }

    /// Begin and end of one cell.
    pub fn cell(&self, index: usize) -> (i64, i64) {
        let begin_ns = self.begin_ns + index as i64 * self.step_ns;
        (begin_ns, begin_ns + self.step_ns)
    }
}

/// Rate per second of a counter in each cell, over the part of the cell that was observed. A cell of which less than half was observed
/// is a gap.
pub fn rate_on_grid(t_ns: &[i64], value: &[f64], grid: &Grid) -> Vec<f64> {
    let mut amount = vec![0.0; grid.cells];
    let mut covered_ns = vec![0i64; grid.cells];
    for step in steps(t_ns, value) {
        let length_ns = step.end_ns - step.begin_ns;
        let first = (step.begin_ns - grid.begin_ns).div_euclid(grid.step_ns).max(0);
        let last = (step.end_ns - 1 - grid.begin_ns).div_euclid(grid.step_ns).min(grid.cells as i64 - 1);
        for cell in first..=last {
            let (cell_begin_ns, cell_end_ns) = grid.cell(cell as usize);
            let overlap_ns = step.end_ns.min(cell_end_ns) - step.begin_ns.max(cell_begin_ns);
            if overlap_ns > 0 {
                amount[cell as usize] += step.amount * overlap_ns as f64 / length_ns as f64;
                covered_ns[cell as usize] += overlap_ns;
            }
        }
    }
    let cells = amount.iter().zip(&covered_ns);
    cells
        .map(
            |(amount, covered)| {
                if covered * 2 < grid.step_ns { f64::NAN } else { amount * 1e9 / *covered as f64 }
            },
        )
        .collect()
}

/// Time-weighted mean of a gauge in each cell; a cell without any reading near is a gap.
pub fn gauge_on_grid(t_ns: &[i64], value: &[f64], grid: &Grid) -> Vec<f64> {
    let cells = 0..grid.cells;
    cells
        .map(|index| {
            let (begin_ns, end_ns) = grid.cell(index);
            mean_over(t_ns, value, begin_ns, end_ns).unwrap_or(f64::NAN)
        })
        .collect()
}

/// Sum, cell by cell. Where one instance is missing the sum is a gap: a smaller sum would be wrong.
pub fn sum(series: &[&[f64]]) -> Vec<f64> {
    let cells = series.iter().map(|cells| cells.len()).min().unwrap_or(0);
    (0..cells).map(|cell| series.iter().map(|cells| cells[cell]).sum()).collect()
}

/// `a − b`, cell by cell; a gap in either is a gap.
pub fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// `a ÷ b`, cell by cell; a gap in either, or a divisor of 0, is a gap.
pub fn ratio(a: &[f64], b: &[f64]) -> Vec<f64> {
    let cells = a.iter().zip(b);
    cells.map(|(a, b)| if *b == 0.0 { f64::NAN } else { a / b }).collect()
}

/// What one transaction took: a rate per second divided by the transactions per second.
pub fn per_transaction(rate: &[f64], transactions_per_s: &[f64]) -> Vec<f64> {
    ratio(rate, transactions_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::increase;
    use proptest::prelude::*;

    #[test]
    fn a_missing_instance_makes_the_sum_a_gap() {
        let total = sum(&[&[1.0, 2.0, 3.0], &[10.0, f64::NAN, 30.0]]);
        assert_eq!((total[0], total[2]), (11.0, 33.0));
        assert!(total[1].is_nan());
    }

    #[test]
    fn no_transaction_no_quotient() {
        let each = per_transaction(&[100.0, 50.0], &[10.0, 0.0]);
        assert_eq!(each[0], 10.0);
        assert!(each[1].is_nan());
    }

    #[test]
    fn a_grid_covers_its_window() {
        let grid = Grid::covering(10, 35, 10);
        assert_eq!(grid.cells, 3);
        assert_eq!(grid.t_ns(), [20, 30, 40]);
        assert_eq!(Grid::covering(10, 5, 10).cells, 0);
    }

    #[test]
    fn a_cell_mostly_unseen_is_a_gap() {
        let grid = Grid { begin_ns: 0, step_ns: 10, cells: 3 };
        let rate = rate_on_grid(&[0, 14], &[0.0, 14.0], &grid);
        assert_eq!(rate[0], 1e9);
        assert!(rate[1].is_nan() && rate[2].is_nan());
        let mean = gauge_on_grid(&[0, 10], &[4.0, 4.0], &grid);
        assert_eq!(mean[0], 4.0);
        assert!(mean[2].is_nan());
    }

    proptest! {
        /// Readings that fall anywhere: the cells together hold what the counter grew by.
        #[test]
        fn the_grid_loses_nothing(gaps in prop::collection::vec(1i64..2_000, 2..60), step in 100i64..3_000) {
            let mut t = vec![0];
            let mut v = vec![0.0];
            for gap in &gaps {
                t.push(t.last().unwrap() + gap);
                v.push(v.last().unwrap() + *gap as f64 * 3.0);
            }
            let end = *t.last().unwrap();
            let grid = Grid { begin_ns: 0, step_ns: step, cells: (end / step) as usize };
            let rate = rate_on_grid(&t, &v, &grid);
            let total: f64 = rate.iter().map(|r| r * step as f64 / 1e9).sum();
            let expected = increase(&t, &v, 0, grid.cells as i64 * step).map_or(0.0, |grown| grown.amount);
            prop_assert!((total - expected).abs() < 1e-6 * (1.0 + expected));
        }
    }
}

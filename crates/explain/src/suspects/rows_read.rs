//! Rows that a transaction reads, and what becomes of them, by the server's counters.

use super::case::Case;
use crate::model::SeriesName;

/// Rows that SHOW STATUS and the like scan, each time that the counters are read.
const ROWS_OF_A_READING: f64 = 1_500.0;

/// Rows that are read by scanning tables for one transaction, without those that reading the counters takes.
pub(super) fn scanned_rows(case: &Case) -> Option<(f64, SeriesName)> {
    let read = case.count(&["Handler_read_rnd_next"])?;
    let readings = case.level.seconds.max(case.counts(&["Com_show_status"]).0 * case.transactions);
    Some((read.per_transaction - readings * ROWS_OF_A_READING / case.transactions, read.series))
}

/// Rows that are sent for one transaction, and those that are read by scanning tables or sorted; `None` where that was not counted.
pub(super) fn rows_sent_and_read(case: &Case) -> Option<(f64, f64)> {
    let sent = case.count(&["Rows_sent"])?.per_transaction;
    let readings = case.level.seconds.max(case.counts(&["Com_show_status"]).0 * case.transactions);
    let sent = (sent - readings * ROWS_OF_A_READING / case.transactions).max(0.0);
    let scanned = scanned_rows(case).map_or(0.0, |(rows, _)| rows);
    let read = scanned.max(case.counts(&["Sort_rows"]).0);
    (read > 0.0).then_some((sent, read))
}

/// Rows that a transaction reads one after the other, and what becomes of them, by the server's counters.
pub(super) struct RowsRead {
    /// By scanning a table, or along an index.
    pub(super) read: f64,
    /// Sent, changed, or entered into another table.
    pub(super) used: f64,
    /// Sorted, or entered into a temporary table.
    pub(super) sorted: f64,
}

impl RowsRead {
    /// `None` where the server did not count rows that are read.
    pub(super) fn of(case: &Case) -> Option<RowsRead> {
        let (scanned, _) = scanned_rows(case)?;
        let (along_index, _) = case.counts(&["Handler_read_next", "Handler_read_prev"]);
        let readings = case.level.seconds.max(case.counts(&["Com_show_status"]).0 * case.transactions);
        let (sent, _) = case.counts(&["Rows_sent"]);
        let sent = (sent - readings * ROWS_OF_A_READING / case.transactions).max(0.0);
        let (temporary, _) = case.counts(&["Handler_tmp_write", "Handler_tmp_update"]);
        let sorted = case.counts(&["Sort_rows"]).0.max(temporary);
        Some(RowsRead { read: scanned.max(0.0) + along_index, used: sent + case.writes(), sorted })
    }
}

/// Returns the rows that a transaction reads one after the other, by the server's counters.
pub(super) fn rows_read(case: &Case) -> Option<f64> {
    RowsRead::of(case).map(|rows| rows.read)
}

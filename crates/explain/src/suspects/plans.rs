//! Causes that lie with how statements find their rows: tables scanned whole, and sorts.

use super::case::Case;
use super::claim::Claim;
use super::model::Cause;
use crate::model::Part;
use crate::numbers;

/// CPU time of a row that a scan reads and compares, and of one read and sorted, in ms. bench/causes measured 1.5 µs and
/// 1.3 µs on a busy machine, for rows of 200 bytes; narrow ones take less.
const SCANNED_ROW_MS: f64 = 1e-3;
const SORTED_ROW_MS: f64 = 1e-3;

/// Rows that SHOW STATUS and the like scan, each time that the counters are read.
const ROWS_OF_A_READING: f64 = 1_500.0;

const ROWS_MIN: f64 = 200.0;

/// A few short ranges in order, as in oltp-read-write, are sorted in memory and are no cause.
const SORTED_ROWS_MIN: f64 = 500.0;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [full_scan(case), tmp_table_sort(case)].into_iter().flatten().collect()
}

fn full_scan(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let read = case.count(&["Handler_read_rnd_next"])?;
    let readings = case.level.seconds.max(case.counts(&["Com_show_status"]).0 * case.transactions);
    let rows = read.per_transaction - readings * ROWS_OF_A_READING / case.transactions;
    let sorted = case.counts(&["Sort_rows"]).0;
    if rows < ROWS_MIN {
        return None;
    }
    let (joins, of_joins) = case.counts(&["Select_full_join"]);
    let join = if joins > 0.01 { ", joins without an index among them" } else { "" };
    let why = format!("{} rows a {unit} are read by scanning tables{join}", numbers::plain(rows));
    // A sort without an index scans, too: then the sort is what is to be saved.
    let scan_ms = (rows - sorted).max(rows * 0.2) * SCANNED_ROW_MS;
    Some(
        Claim::new(Cause::FullScan, "scans of whole tables hold as much as", why)
            .asks_for_cpu((scan_ms / case.cpu_ms().max(1e-9)).min(0.95))
            .certain(0.95)
            .rests_on([case.series(&read.series)])
            .rests_on(case.all_series(&of_joins)),
    )
}

fn tmp_table_sort(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let (sorted, mut series) = case.counts(&["Sort_rows"]);
    let (on_disk, of_disk) = case.counts(&["Created_tmp_disk_tables", "Sort_merge_passes"]);
    let (scanned, _) = case.counts(&["Handler_read_rnd_next"]);
    series.extend(of_disk);
    // Rows that are sorted after a scan were read for the sort.
    let with_scan = if scanned > ROWS_MIN { sorted.min(scanned) * SCANNED_ROW_MS } else { 0.0 };
    let sort_ms = sorted * SORTED_ROW_MS + with_scan;
    let written = case.file_waits("file_write", |path| {
        path.contains("#sql") || path.contains("ibtmp") || path.contains("/MY")
    });
    let strength = (sort_ms / case.cpu_ms().max(1e-9)).min(0.95).max(if on_disk >= 0.5 { 0.6 } else { 0.0 });
    if (sorted < SORTED_ROWS_MIN && on_disk < 0.5) || strength < 0.1 {
        return None;
    }
    let disk = if on_disk >= 0.5 {
        format!(", and {} temporary tables or sorts went to disk", numbers::plain(on_disk))
    } else {
        String::new()
    };
    let why = format!("{} rows a {unit} are sorted{disk}", numbers::plain(sorted));
    Some(
        Claim::new(Cause::TmpTableSort, "sorts and temporary tables hold as much as", why)
            .holds(written.connection_ms.min(case.ms(Part::FileWrite)))
            .asks_for_cpu(strength)
            .certain(0.95)
            .rests_on(case.all_series(&series)),
    )
}

//! Causes that lie with how statements find their rows: tables scanned whole, and sorts.

use super::case::Case;
use super::claim::Claim;
use super::model::Cause;
use crate::model::{Part, SeriesName};
use crate::numbers;

/// Rows that SHOW STATUS and the like scan, each time that the counters are read.
const ROWS_OF_A_READING: f64 = 1_500.0;

const ROWS_MIN: f64 = 200.0;

/// A few short ranges in order, as in oltp-read-write, are sorted in memory and are no cause.
const SORTED_ROWS_MIN: f64 = 500.0;

/// Where this share of the statements scan, or sort, the CPU time of all of them is that of statements that do. The time of fewer
/// is not measured apart from the rest.
const STATEMENTS_MIN: f64 = 0.8;

/// Of the rows that were scanned, the share that was sorted from which on the sort is what is to be saved.
const SORTED_OF_SCANNED_MIN: f64 = 0.2;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [full_scan(case), tmp_table_sort(case)].into_iter().flatten().collect()
}

/// Rows that are read by scanning tables for one transaction, without those that reading the counters takes.
fn scanned_rows(case: &Case) -> Option<(f64, SeriesName)> {
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

/// "; 98 % of the statements scan a table"
fn of_statements(share: Option<f64>, verb: &str) -> String {
    share.map_or(String::new(), |share| format!("; {} of the statements {verb}", numbers::percent(share)))
}

/// The CPUs' time is that of statements that scan where nearly all of them do.
fn full_scan(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let (rows, series) = scanned_rows(case)?;
    if rows < ROWS_MIN {
        return None;
    }
    let (joins, of_joins) = case.counts(&["Select_full_join"]);
    let join = if joins > 0.01 { ", joins without an index among them" } else { "" };
    let share = case.share_of_statements(&["Select_scan", "Select_full_join"]);
    let why = format!(
        "{} rows per {unit} are read by scanning tables{join}{}",
        numbers::plain(rows),
        of_statements(share, "scan one")
    );
    let is_for_sort = case.counts(&["Sort_rows"]).0 >= SORTED_OF_SCANNED_MIN * rows;
    let share = share.filter(|share| *share >= STATEMENTS_MIN && !is_for_sort);
    Some(
        Claim::new(Cause::FullScan, "statements that scan whole tables hold", why)
            .holds_cpu(share.unwrap_or(0.0))
            .may_be_in(&[Part::Cpu])
            .certain(0.9)
            .rests_on([case.series(&series)])
            .rests_on(case.all_series(&of_joins)),
    )
}

/// The same for statements that sort; what they write into temporary files is measured by file.
fn tmp_table_sort(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let (sorted, mut series) = case.counts(&["Sort_rows"]);
    let (on_disk, of_disk) = case.counts(&["Created_tmp_disk_tables", "Sort_merge_passes"]);
    series.extend(of_disk);
    let written = case.file_waits("file_write", is_temporary);
    let read = case.file_waits("file_read", is_temporary);
    if sorted < SORTED_ROWS_MIN && on_disk < 0.5 {
        return None;
    }
    let disk = if on_disk >= 0.5 {
        format!(", and {} temporary tables or sorts went to disk", numbers::plain(on_disk))
    } else {
        String::new()
    };
    let share = case.share_of_statements(&["Sort_range", "Sort_scan"]).filter(|_| sorted >= SORTED_ROWS_MIN);
    let why = format!(
        "{} rows per {unit} are sorted{disk}{}",
        numbers::plain(sorted),
        of_statements(share, "sort rows")
    );
    let is_what_scans_are_for =
        scanned_rows(case).is_none_or(|(rows, _)| rows < ROWS_MIN || sorted >= SORTED_OF_SCANNED_MIN * rows);
    let share = share.filter(|share| *share >= STATEMENTS_MIN && is_what_scans_are_for);
    Some(
        Claim::new(Cause::TmpTableSort, "statements that sort or make temporary tables hold", why)
            .holds(written.connection_ms.min(case.ms(Part::FileWrite)))
            .holds(read.connection_ms.min(case.ms(Part::FileRead)))
            .holds_cpu(share.unwrap_or(0.0))
            .may_be_in(&[Part::Cpu, Part::FileWrite])
            .certain(0.9)
            .rests_on(case.all_series(&series)),
    )
}

/// Whether it is a file of a temporary table or of a sort.
fn is_temporary(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_sort = name.starts_with("MY") && !name.contains('.');
    name.starts_with("#sql") || name.starts_with("ibtmp") || name.ends_with(".ibt") || is_sort
}

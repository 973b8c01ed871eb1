//! Causes that lie with how statements find their rows: rows that are read in vain, and sorts.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use super::rows_read::{RowsRead, scanned_rows};
use super::statement_work::{self, ReadFor};
use crate::activities::{Activities, Activity};
use crate::model::Part;

const ROWS_MIN: f64 = 200.0;

/// A few short ranges in order, as in oltp-read-write, are sorted in memory and are no cause.
const SORTED_ROWS_MIN: f64 = 500.0;

/// Where this share of the statements scan, or sort, the CPU time of all of them is that of statements that do. The time of fewer
/// is not measured apart from the rest.
const STATEMENTS_MIN: f64 = 0.8;

/// Of the rows that were scanned, the share that was sorted from which on the sort is what is to be saved.
const SORTED_OF_SCANNED_MIN: f64 = 0.2;

/// Adding up a row takes at least this share of the CPU time that reading it takes. Measured: 0.12 to 0.31 on six builds, for SUM over 200
/// rows. Less of it shows that rows were read in vain.
const ADDED_UP_SHARE: f64 = 0.12;

/// What sampled stacks decide.
pub(super) const CAUSES: [Cause; 2] = [Cause::FullScan, Cause::TmpTableSort];

/// Activities that read a row and find out whether it is wanted.
const READS: [Activity; 3] = [Activity::Scan, Activity::IndexRead, Activity::Evaluate];

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [full_scan(case), tmp_table_sort(case)].into_iter().flatten().collect()
}

/// "; 98 % of the statements scan a table"
fn of_statements(share: Option<f64>, verb: &str) -> String {
    share.map_or(String::new(), |share| format!("; {} of the statements {verb}", whyso_words::percent(share)))
}

/// Returns the shares of the CPU time that rows read in vain and sorts take, by sampled stacks. Of the rows that are read, those that are
/// sorted are read for the sort.
pub(super) fn sampled(case: &Case, activities: &Activities) -> Vec<(Cause, &'static str, f64, String)> {
    if let Some(read_for) = statement_work::read_for(case) {
        return sampled_with_work(activities, read_for);
    }
    let samples = whyso_words::whole(activities.samples());
    let reads = activities.share(&READS);
    let rows = RowsRead::of(case).filter(|rows| rows.read >= ROWS_MIN);
    let of_read = |count: f64| rows.as_ref().map_or(0.0, |rows| (count / rows.read).clamp(0.0, 1.0));
    let sorted = of_read(rows.as_ref().map_or(0.0, |rows| rows.sorted));
    let for_sort = if sorted >= SORTED_OF_SCANNED_MIN { sorted } else { 0.0 };
    let sort = activities.share(&[Activity::Sort]);
    let sort_why = format!(
        "{} of the server's CPU time is sorting and temporary tables, and {} reading the rows for them, by {samples} sampled stacks",
        whyso_words::percent(sort),
        whyso_words::percent(for_sort * reads)
    );
    let sort_share = if sort > 0.0 { sort + for_sort * reads } else { 0.0 };
    let mut shares = vec![(
        Cause::TmpTableSort,
        "statements that sort or make temporary tables hold",
        sort_share,
        sort_why,
    )];
    if let Some(rows) = &rows {
        let added_up = activities.share(&[Activity::Aggregate]) / (ADDED_UP_SHARE * reads).max(1e-9);
        let used = of_read(rows.used).max(added_up.min(1.0)).max(for_sort);
        let why = format!(
            "{} of the server's CPU time is reading rows, by {samples} sampled stacks, and of {} rows that a {} reads {} are used",
            whyso_words::percent(reads),
            whyso_words::number(rows.read),
            case.unit(),
            if added_up >= 1.0 { "all".to_string() } else { whyso_words::percent(used) }
        );
        shares.push((Cause::FullScan, "rows that statements read in vain hold", reads * (1.0 - used), why));
    } else {
        shares.push((Cause::FullScan, "rows that statements read in vain hold", 0.0, String::new()));
    }
    shares
}

/// The same where it is known what the statements read rows for.
fn sampled_with_work(activities: &Activities, read_for: ReadFor) -> Vec<(Cause, &'static str, f64, String)> {
    let samples = whyso_words::whole(activities.samples());
    let (sort, reads) = (activities.share(&[Activity::Sort]), activities.share(&READS));
    let for_sorts = reads * read_for.sorts;
    let sort_why = format!(
        "{} of the server's CPU time is sorting and temporary tables, and {} reading the rows for them, by {samples} sampled stacks",
        whyso_words::percent(sort),
        whyso_words::percent(for_sorts)
    );
    let in_vain_why = format!(
        "{} of the server's CPU time is reading rows, by {samples} sampled stacks, and {} of that work is for rows that meet no condition",
        whyso_words::percent(reads),
        whyso_words::percent(read_for.nothing)
    );
    let sorts = if sort > 0.0 { sort + for_sorts } else { 0.0 };
    vec![
        (Cause::TmpTableSort, "statements that sort or make temporary tables hold", sorts, sort_why),
        (Cause::FullScan, "rows that statements read in vain hold", reads * read_for.nothing, in_vain_why),
    ]
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
        whyso_words::number(rows),
        of_statements(share, "scan one")
    );
    let is_for_sort = case.counts(&["Sort_rows"]).0 >= SORTED_OF_SCANNED_MIN * rows;
    let share = share.filter(|share| *share >= STATEMENTS_MIN && !is_for_sort);
    Some(
        Claim::new(Cause::FullScan, "statements that scan whole tables hold", why)
            .holds_cpu(share.unwrap_or(0.0))
            .may_be_in(&[Part::Cpu])
            .certain(0.9)
            .by(Class::Inferred)
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
        format!(", and {} temporary tables or sorts went to disk", whyso_words::number(on_disk))
    } else {
        String::new()
    };
    let share = case.share_of_statements(&["Sort_range", "Sort_scan"]).filter(|_| sorted >= SORTED_ROWS_MIN);
    let why = format!(
        "{} rows per {unit} are sorted{disk}{}",
        whyso_words::number(sorted),
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
            .by(if share.is_some() { Class::Inferred } else { Class::Measured })
            .rests_on(case.all_series(&series)),
    )
}

/// Whether it is a file of a temporary table or of a sort.
fn is_temporary(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_sort = name.starts_with("MY") && !name.contains('.');
    name.starts_with("#sql") || name.starts_with("ibtmp") || name.ends_with(".ibt") || is_sort
}

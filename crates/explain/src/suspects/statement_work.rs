//! What fills the CPUs where no stacks were sampled. The load generator measured the statements' time, and the server counted what one
//! execution of each kind does with rows. The time is divided by these counts.
//!
//! Of a kind's time, what is longer than the shortest statement's counts as the work on its rows. It is compared with the server's CPU time for a
//! transaction.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use super::statements::{self, KindTime};
use crate::model::StatementWork;

/// A statement that reads or sorts fewer rows has no work on rows worth a word.
const ROWS_MIN: f64 = 50.0;
/// Of the rows that a statement reads, the share that is sorted from which on they are read for the sort.
const SORTED_OF_READ_MIN: f64 = 0.2;
/// A statement without work on rows takes no longer than this: sending it, its wake-ups and its plan.
const BASE_MS_MAX: f64 = 0.2;
/// Of the rows that a statement reads, the share that is sent from which on they are read for that.
const SENT_OF_READ_MIN: f64 = 0.1;
/// Finding a row by an index costs about as much as reading this many rows after it: a descent through the index's levels.
const LOOKUP_ROWS: f64 = 10.0;
/// A smaller share of the statements' time is nobody's trouble.
const SHARE_MIN: f64 = 0.02;
/// Work that is known up to this share decides what is not the cause.
const UNCLEAR_MAX: f64 = 0.05;
/// Kinds that are executed have to read this share of all rows that the server counts before others are left out of account.
const COVERED_MIN: f64 = 0.8;

const CERTAINTY: f64 = 0.7;

/// Causes that this work decides.
const CAUSES: [Cause; 2] = [Cause::FullScan, Cause::TmpTableSort];

/// The statements' time and the rows that they read, by what the rows are read for.
#[derive(Default)]
pub(super) struct Division<'a> {
    /// Shares of the server's CPU time, or of the statements' time where that is not known: 0 to 1.
    sorts: Share<'a>,
    rejected: Share<'a>,
    /// Rows are read, and nobody counted how many of them met no condition.
    unclear: f64,
    /// In a transaction.
    rows: Rows,
}

/// Rows that the executed kinds read in a transaction.
#[derive(Clone, Copy, Default)]
struct Rows {
    read: f64,
    for_sorts: f64,
    rejected: f64,
    unclear: f64,
    /// What finding the first row of each execution costs, in rows.
    lookups: f64,
}

/// Shares of the time that reading rows takes, 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadFor {
    /// Rows that are sorted, or entered into temporary tables.
    pub(super) sorts: f64,
    /// Rows that meet no condition.
    pub(super) nothing: f64,
}

/// Returns what rows are read for, by the rows that one execution of each kind handles; `None` where other statements read many rows, too, or nobody
/// counted what becomes of them.
pub(super) fn read_for(case: &Case) -> Option<ReadFor> {
    let division = Division::of(case)?;
    let Rows { read, for_sorts, rejected, unclear, lookups } = division.rows;
    if unclear > UNCLEAR_MAX * read || !division.covers(case) {
        return None;
    }
    let all = read + lookups;
    let share = |rows: f64| part_of(rows, all);
    (all > 0.0 && all.is_finite()).then(|| ReadFor { sorts: share(for_sorts), nothing: share(rejected) })
}

#[derive(Default)]
struct Share<'a> {
    value: f64,
    /// The kind with the largest part of it.
    main: Option<(&'a StatementWork, f64)>,
}

impl<'a> Share<'a> {
    fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.main = self.main.map(|(work, share)| (work, share * factor));
    }

    fn add(&mut self, work: &'a StatementWork, share: f64) {
        self.value += share;
        if share > 0.0 && self.main.is_none_or(|(_, most)| share > most) {
            self.main = Some((work, share));
        }
    }
}

impl<'a> Division<'a> {
    /// `None` where no statement was executed, or their times were not measured.
    pub(super) fn of(case: &Case<'_, 'a>) -> Option<Division<'a>> {
        let times = statements::times(case);
        let all_ms: f64 = times.iter().map(KindTime::total_ms).sum();
        if case.work.is_empty() || !(all_ms > 0.0 && all_ms.is_finite()) {
            return None;
        }
        // A lone user's statement waits for wake-ups, which are nobody's work: rows are compared with the CPU time of a transaction.
        let all_ms = Some(case.cpu_ms()).filter(|ms| *ms > 0.0).unwrap_or(all_ms);
        let base_ms = times.iter().map(|time| time.mean_ms).fold(BASE_MS_MAX, f64::min);
        let mut division = Division::default();
        for time in &times {
            let Some(work) = case.work.iter().find(|work| work.kind == time.kind) else { continue };
            let on_rows = (time.mean_ms - base_ms).max(0.0) * time.per_transaction / all_ms;
            division.enter(work, on_rows, time.per_transaction);
        }
        let claimed = division.sorts.value + division.rejected.value + division.unclear;
        if claimed > 1.0 {
            division.scale(1.0 / claimed);
        }
        Some(division)
    }

    /// Where other waits are in the statements' times, too.
    fn scale(&mut self, factor: f64) {
        self.sorts.scale(factor);
        self.rejected.scale(factor);
        self.unclear *= factor;
    }

    /// Whether the executed kinds read nearly all rows that the server counted.
    fn covers(&self, case: &Case) -> bool {
        let counted = super::rows_read::rows_read(case).unwrap_or(0.0);
        self.rows.read + ROWS_MIN >= COVERED_MIN * counted
    }

    fn enter(&mut self, work: &'a StatementWork, on_rows: f64, per_transaction: f64) {
        let rows_read = work.rows_read * per_transaction;
        self.rows.read += rows_read;
        self.rows.lookups += LOOKUP_ROWS * per_transaction;
        let sorted = work.rows_sorted.max(work.rows_in_temporary_tables);
        if sorted >= ROWS_MIN && sorted >= SORTED_OF_READ_MIN * work.rows_read {
            self.sorts.add(work, on_rows);
            self.rows.for_sorts += rows_read;
        } else if work.rows_read >= ROWS_MIN {
            match work.rows_rejected {
                Some(rejected) => {
                    let share = part_of(rejected, work.rows_read);
                    self.rejected.add(work, on_rows * share);
                    self.rows.rejected += rows_read * share;
                }
                None if work.rows_sent < SENT_OF_READ_MIN * work.rows_read => {
                    self.unclear += on_rows;
                    self.rows.unclear += rows_read;
                }
                None => {}
            }
        }
    }
}

/// Returns a share from 0 to 1; 0 where the numbers give none.
fn part_of(part: f64, all: f64) -> f64 {
    let share = part / all;
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

/// Gives scans and sorts the CPU time of the statements' work on rows, in place of what follows from only counters.
pub(super) fn settle(case: &Case, mut claims: Vec<Claim>) -> Vec<Claim> {
    let Some(division) = Division::of(case) else { return claims };
    let is_all_known = division.unclear < UNCLEAR_MAX && division.covers(case);
    let of_causes = [
        (
            Cause::FullScan,
            "rows that statements read in vain hold",
            &division.rejected,
            rejected_by as fn(&StatementWork) -> String,
        ),
        (
            Cause::TmpTableSort,
            "statements that sort or make temporary tables hold",
            &division.sorts,
            sorted_by,
        ),
    ];
    for (cause, what, share, describe) in of_causes {
        let at = claims.iter().position(|claim| claim.cause == cause);
        if let Some(at) = at {
            claims[at].cpu_share = 0.0;
        }
        let Some((work, of_main)) = share.main.filter(|_| share.value >= SHARE_MIN) else {
            if let Some(at) = at.filter(|at| is_all_known && claims[*at].ms <= 0.0) {
                claims.remove(at);
            }
            continue;
        };
        let why = format!(
            "the work on such rows takes as long as {} of the server's CPU time, most of it ({}) that of {}, which {}",
            whyso_words::percent(share.value),
            whyso_words::percent(of_main),
            work.kind,
            describe(work)
        );
        match at {
            Some(at) => {
                let claim = &mut claims[at];
                claim.cpu_share = share.value;
                claim.class = claim.class.max(Class::Inferred);
                claim.certainty = CERTAINTY;
                claim.why = format!("{why}; {}", claim.why);
            }
            None => {
                let claim = Claim::new(cause, what, why).holds_cpu(share.value).certain(CERTAINTY);
                claims.push(claim.by(Class::Inferred).rests_on([case.level_quantity("latency_mean_ms")]));
            }
        }
    }
    claims
}

fn rejected_by(work: &StatementWork) -> String {
    format!(
        "reads {} rows, of which {} meet no condition",
        whyso_words::number(work.rows_read),
        whyso_words::number(work.rows_rejected.unwrap_or(0.0))
    )
}

fn sorted_by(work: &StatementWork) -> String {
    format!(
        "reads {} rows, sorts {} and enters {} into temporary tables",
        whyso_words::number(work.rows_read),
        whyso_words::number(work.rows_sorted),
        whyso_words::number(work.rows_in_temporary_tables)
    )
}

/// Returns what may fill the CPUs instead of ordinary work, without stacks. Empty where the work is known to be ordinary. Then no cause is
/// possible that would be such work, and of all rows that statements read it is known what they are read for.
pub(super) fn may_be_instead(case: &Case, claims: &[Claim]) -> Vec<Cause> {
    if case.level.activities.is_some() {
        return Vec::new();
    }
    let is_possible_work = |claim: &&Claim| {
        claim.ms <= 0.0 && claim.cpu_share <= 0.0 && claim.may_be_in.contains(&crate::model::Part::Cpu)
    };
    let mut causes: Vec<Cause> = claims.iter().filter(is_possible_work).map(|claim| claim.cause).collect();
    let unclear = Division::of(case).map_or(0.0, |division| division.unclear);
    if unclear >= super::LARGE_SHARE && !causes.iter().any(|cause| CAUSES.contains(cause)) {
        causes.push(Cause::FullScan);
    }
    causes.sort_unstable();
    causes
}

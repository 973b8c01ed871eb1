//! A recording whose suspects are to be tested, and what is known of it.

use std::collections::BTreeSet;
use std::path::Path;

use whyso_explain::model::{Counter, Explanation, Input, LevelInput};
use whyso_record::Recording;
use whyso_record::run::RunInfo;

use crate::Error;

/// A counter grows with the load by at least one in so many transactions: what whyso itself asks makes some grow, too.
const TRANSACTIONS_OF_A_COUNT: f64 = 100.0;

pub(super) struct Case {
    pub(super) run: RunInfo,
    pub(super) explanation: Explanation,
    pub(super) users: u32,
    /// Counters that grow with the load.
    pub(super) growing: BTreeSet<String>,
}

impl Case {
    /// # Errors
    /// It can't be read, or nothing was measured in it.
    pub(super) fn open(path: &Path) -> Result<Case, Error> {
        let case = Case::of(&Recording::open(path)?, 0)?;
        let about = case.explanation.about;
        let level = case.run.levels.iter().find(|level| Some(level.index) == about);
        let users = level.map(|level| level.users).ok_or_else(|| {
            Error::Plan(format!(
                "{} has no level that was measured, so nothing is suspected: run it again",
                case.run.id
            ))
        })?;
        Ok(Case { users, ..case })
    }

    /// `users`: of the level that the experiments are about.
    ///
    /// # Errors
    /// It can't be read.
    pub(super) fn of(recording: &Recording, users: u32) -> Result<Case, Error> {
        let input = whyso_query::input(recording)?;
        let explanation = whyso_explain::explain(&input);
        Ok(Case { run: recording.run().clone(), explanation, users, growing: growing(&input) })
    }
}

fn growing(input: &Input) -> BTreeSet<String> {
    let of_level = |level: &LevelInput| {
        let least = level.transactions as f64 / TRANSACTIONS_OF_A_COUNT;
        let grows = |counter: &&Counter| counter.increase > least;
        level.counters.iter().filter(grows).map(|counter| counter.series.metric.clone()).collect::<Vec<_>>()
    };
    input.levels.iter().flat_map(of_level).collect()
}

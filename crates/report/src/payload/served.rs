//! What a page gets that asks for samples as it draws them: heads without samples, and the blocks of everything else.

use serde::Serialize;
use whyso_explain::model::Explanation;
use whyso_record::data::SeriesKey;
use whyso_record::run::Window;

use super::{
    Blocks, FORMAT, Head, Place, ProfileHead, SeriesHead, TablesHead, add_profile, add_tables, add_tree,
};
use crate::flame::{Flame, FlamePart};
use crate::source::{Column, Source, Stacks};
use crate::{Error, Extras, derived, over_time, thin};

/// The block of a series that has none.
const NO_BLOCK: u32 = u32::MAX;

/// A head, and what it refers to.
#[derive(Clone, Debug, Default)]
pub struct PageHead {
    pub head_json: String,
    /// Raw-deflated, by number (see [`crate::codec`]).
    pub blocks: Vec<Vec<u8>>,
}

impl PageHead {
    pub fn bytes(&self) -> usize {
        self.head_json.len() + self.blocks.iter().map(Vec::len).sum::<usize>()
    }
}

/// A series that a page may ask for, and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedSeries {
    pub number: u32,
    pub key: SeriesKey,
}

impl ServedSeries {
    fn head(&self) -> SeriesHead {
        SeriesHead {
            key: self.key.clone(),
            axis: 0,
            place: Place { block: NO_BLOCK, slot: self.number },
            form: thin::Form::Samples,
            flat: false,
        }
    }
}

/// Where a run begins and ends on the page's axes.
#[derive(Clone, Copy, Debug)]
struct Axis {
    origin_ns: i64,
    end_ns: i64,
}

/// Parts of a head that need more than the recording's outline.
#[derive(Default)]
struct Parts<'b> {
    profile: ProfileHead,
    tables: TablesHead<'b>,
    notes: Vec<String>,
}

/// Returns what the load did, as series. `before`: those of the recording as it was, which are not computed again.
///
/// # Errors
/// The recording's files can't be read.
pub fn load_series(
    source: &dyn Source,
    before: &[(SeriesKey, Column)],
) -> Result<Vec<(SeriesKey, Column)>, Error> {
    derived::load_series(source, before)
}

/// Returns which functions were busy when, as series.
pub fn function_series(stacks: &Stacks, origin_ns: i64) -> Vec<(SeriesKey, Column)> {
    over_time::series(stacks, origin_ns)
}

/// Returns the head of a run that is not explained yet: what was run, what happened, and which series there are.
///
/// # Errors
/// The recording's files can't be read.
pub fn outline(
    source: &dyn Source,
    series: &[ServedSeries],
    origin_ns: i64,
    end_ns: i64,
) -> Result<PageHead, Error> {
    let axis = Axis { origin_ns, end_ns };
    head(source, &Explanation::default(), series, axis, Parts::default(), Blocks::default())
}

/// Returns the same with what was found, what threads did, and tables by level.
///
/// # Errors
/// The recording's files can't be read.
pub fn explained(
    source: &dyn Source,
    explanation: &Explanation,
    extras: &Extras<'_>,
    series: &[ServedSeries],
    stacks: Stacks,
    (origin_ns, end_ns): (i64, i64),
) -> Result<PageHead, Error> {
    let mut blocks = Blocks::default();
    let notes = stacks.note().into_iter().collect();
    let profile = add_profile(&mut blocks, source, stacks, extras, origin_ns)?;
    let tables = add_tables(&mut blocks, extras)?;
    let parts = Parts { profile, tables, notes };
    head(source, explanation, series, Axis { origin_ns, end_ns }, parts, blocks)
}

/// Returns the tables of one window: the keys of a head that hold them, and their blocks.
///
/// # Errors
/// They can't be written as JSON.
pub fn tables(extras: &Extras<'_>) -> Result<PageHead, Error> {
    let mut blocks = Blocks::default();
    let tables = add_tables(&mut blocks, extras)?;
    Ok(PageHead { head_json: json(&tables)?, blocks: blocks.done })
}

/// A window whose stacks are compared with others'.
#[derive(Clone, Debug)]
pub struct FlameSide {
    pub name: String,
    pub window: Window,
    /// That ended in it; 0 where none were counted.
    pub transactions: u64,
    pub stacks: Stacks,
}

/// Returns the stacks of several windows in one tree, one level each: the head of a flame, and its blocks. `None` where no stack lies in any.
///
/// # Errors
/// They can't be written.
pub fn flames(sides: Vec<FlameSide>) -> Result<Option<PageHead>, Error> {
    let part = |FlameSide { name, window, transactions, stacks }: FlameSide| {
        (stacks, vec![FlamePart { window, level: None, name: Some(name), transactions }])
    };
    let Some(flame) = Flame::new(sides.into_iter().map(part).collect()) else { return Ok(None) };
    let (tree, _, folded_below) = flame.tree();
    let mut blocks = Blocks::default();
    let (head, _) = add_tree(&mut blocks, &flame, &tree, folded_below)?;
    Ok(Some(PageHead { head_json: json(&head)?, blocks: blocks.done }))
}

fn head(
    source: &dyn Source,
    explanation: &Explanation,
    series: &[ServedSeries],
    axis: Axis,
    Parts { profile, tables, notes }: Parts<'_>,
    blocks: Blocks,
) -> Result<PageHead, Error> {
    let head = Head {
        format: FORMAT,
        run: source.run(),
        explanation,
        events: source.events()?,
        problems: source.problems(),
        notes,
        origin_ns: axis.origin_ns,
        end_ns: axis.end_ns,
        cpu_by_level: derived::cpu_by_level(explanation),
        axes: Vec::new(),
        series: series.iter().map(ServedSeries::head).collect(),
        profile,
        tables,
    };
    Ok(PageHead { head_json: json(&head)?, blocks: blocks.done })
}

fn json(object: &impl Serialize) -> Result<String, Error> {
    Ok(serde_json::to_string(object)?)
}

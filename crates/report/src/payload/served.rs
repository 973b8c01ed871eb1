//! What a page gets that asks for samples as it draws them: heads without samples, and the blocks of everything else.

use serde::Serialize;
use ts_rs::TS;
use whyso_explain::model::Explanation;
use whyso_record::data::SeriesKey;
use whyso_record::run::{Level, RunInfo, Window};

use super::{
    Blocks, FORMAT, Head, Place, ProfileHead, SeriesHead, TablesHead, add_flame, add_tables, add_threads,
    add_timeline, add_tree,
};
use crate::answer::{Answer, answer};
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

/// A part of what the server's threads did. A page that is served gets them one by one, as each takes a while of a large recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfilePart {
    /// The table of threads.
    Threads,
    Timeline,
    /// The tree of calls, and functions over time.
    Stacks,
}

impl ProfilePart {
    pub const ALL: [ProfilePart; 3] = [ProfilePart::Threads, ProfilePart::Timeline, ProfilePart::Stacks];

    /// The number of its first block.
    fn first_block(self) -> u32 {
        (self as u32 + 1) * BLOCKS_OF_PART
    }

    /// The part of a block, and its place in there; `None`: it is one of the head.
    pub fn of_block(number: u32) -> (Option<ProfilePart>, usize) {
        let part = (number / BLOCKS_OF_PART).checked_sub(1);
        let part = part.and_then(|part| ProfilePart::ALL.get(part as usize).copied());
        (part, number.saturating_sub(part.map_or(0, ProfilePart::first_block)) as usize)
    }
}

/// No part has more blocks.
const BLOCKS_OF_PART: u32 = 1 << 24;

/// What a page adds to its head when a part comes.
#[derive(Serialize)]
struct PartHead {
    #[serde(flatten)]
    profile: ProfileHead,
    /// More of the head's series.
    series: Vec<SeriesHead>,
}

/// The answer for a window of a recording that is being written.
#[derive(Serialize, TS)]
pub(crate) struct NowHead<'a> {
    window: Window,
    /// One, over the window.
    levels: &'a [Level],
    explanation: &'a Explanation,
    answer: Answer,
}

/// Returns the answer for a window, as JSON. `run`: the run with one level, over the window.
///
/// # Errors
/// A number can't be written as JSON.
pub fn now(run: &RunInfo, explanation: &Explanation, window: Window) -> Result<String, Error> {
    let head = NowHead { window, levels: &run.levels, explanation, answer: answer(run, explanation) };
    Ok(serde_json::to_string(&head)?)
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
    head(source, &Explanation::default(), series, axis, TablesHead::default(), Blocks::default())
}

/// Returns the same with what was found, and with tables by level.
///
/// # Errors
/// The recording's files can't be read.
pub fn explained(
    source: &dyn Source,
    explanation: &Explanation,
    extras: &Extras<'_>,
    series: &[ServedSeries],
    (origin_ns, end_ns): (i64, i64),
) -> Result<PageHead, Error> {
    let mut blocks = Blocks::default();
    let tables = add_tables(&mut blocks, extras)?;
    head(source, explanation, series, Axis { origin_ns, end_ns }, tables, blocks)
}

/// Returns a part of what the server's threads did. `functions`: numbers for the series of functions over time, which come with the
/// stacks, and are returned.
///
/// # Errors
/// The recording's files can't be read.
pub fn profile_part(
    source: &dyn Source,
    part: ProfilePart,
    origin_ns: i64,
    functions: impl Iterator<Item = u32>,
) -> Result<(PageHead, Vec<(SeriesKey, Column)>), Error> {
    let mut blocks = Blocks { first: part.first_block(), ..Blocks::default() };
    let mut head = PartHead { profile: ProfileHead::default(), series: Vec::new() };
    let mut columns = Vec::new();
    match part {
        ProfilePart::Threads => head.profile.threads = add_threads(&mut blocks, source)?,
        ProfilePart::Timeline => {
            head.profile.timeline = add_timeline(&mut blocks, source, &source.single_stacks()?, origin_ns)?;
        }
        ProfilePart::Stacks => {
            let stacks = source.stacks()?;
            columns = over_time::series(&stacks, origin_ns);
            let keys = columns.iter().map(|(key, _)| key.clone());
            let served = keys.zip(functions).map(|(key, number)| ServedSeries { number, key }.head());
            head.series = served.collect();
            head.profile.flame = add_flame(&mut blocks, source, stacks, &Extras::default(), origin_ns)?;
        }
    }
    Ok((PageHead { head_json: json(&head)?, blocks: blocks.done }, columns))
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
    tables: TablesHead<'_>,
    blocks: Blocks,
) -> Result<PageHead, Error> {
    let head = Head {
        format: FORMAT,
        run: source.run(),
        explanation,
        answer: answer(source.run(), explanation),
        events: source.events()?,
        problems: source.problems(),
        notes: Vec::new(),
        origin_ns: axis.origin_ns,
        end_ns: axis.end_ns,
        cpu_by_level: derived::cpu_by_level(explanation),
        axes: Vec::new(),
        series: series.iter().map(ServedSeries::head).collect(),
        profile: ProfileHead::default(),
        tables,
    };
    Ok(PageHead { head_json: json(&head)?, blocks: blocks.done })
}

fn json(object: &impl Serialize) -> Result<String, Error> {
    Ok(serde_json::to_string(object)?)
}

//! What the page is made of: a small head that it reads at once, and blocks of samples that it decodes when asked.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use base64::Engine;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use ts_rs::TS;
use whyso_explain::model::Explanation;
use whyso_profile::CallTree;
use whyso_record::data::{Event, SeriesKey};
use whyso_record::run::RunInfo;
use whyso_series::merged_edges;

use crate::answer::{Answer, answer};
use crate::flame::{self, Flame, FlameHead, Places};
use crate::locks::{LocksHead, locks_heads};
use crate::pfs::{PfsHead, pfs_view_blocks};
use crate::prove::{ProofHead, proof_heads};
use crate::source::{Source, Stacks, level_edges};
use crate::statements::{StatementsHead, statements_head};
use crate::threads::{self, ThreadsHead};
use crate::timeline::page::{self, TimelineHead};
use crate::{Error, Extras, codec, derived, over_time, thin};

mod served;

#[cfg(test)]
pub(crate) use served::NowHead;
pub use served::{
    FlameSide, PageHead, ProfilePart, ServedSeries, explained, flames, load_series, now, outline,
    profile_part, tables,
};

/// Written into every head; a page that knows another reports it instead of drawing nonsense.
pub const FORMAT: u32 = 1;
const SERIES_PER_BLOCK: usize = 30;

/// A report's data, ready to be inlined.
#[derive(Clone, Debug)]
pub struct Payload {
    /// JSON in which no `<` occurs, so that it can't end the script element that holds it.
    pub head_json: String,
    /// Raw-deflated blocks (see [`codec`]) as base64.
    pub blocks_base64: Vec<String>,
}

#[derive(Serialize, TS)]
pub(crate) struct Head<'a> {
    format: u32,
    run: &'a RunInfo,
    explanation: &'a Explanation,
    answer: Answer,
    events: Vec<Event>,
    problems: Vec<String>,
    /// What the reader must know about the samples, in plain words.
    notes: Vec<String>,
    /// Monotonic ns that the axes count from.
    origin_ns: i64,
    end_ns: i64,
    cpu_by_level: Vec<derived::LevelCpu>,
    axes: Vec<Place>,
    series: Vec<SeriesHead>,
    #[serde(flatten)]
    profile: ProfileHead,
    #[serde(flatten)]
    tables: TablesHead<'a>,
}

/// What the server's threads did.
#[derive(Default, Serialize, TS)]
struct ProfileHead {
    /// Absent where nothing traced the server's threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    threads: Option<ThreadsHead>,
    /// Absent where nothing traced the server's threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    timeline: Option<TimelineHead>,
    /// Absent where no stacks were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    flame: Option<FlameHead>,
}

/// Tables that are added up over levels, or over any other window.
#[derive(Default, Serialize, TS)]
struct TablesHead<'a> {
    /// Absent where no commands of clients were followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    statements: Option<StatementsHead>,
    /// Of each level; none where nobody looked who waits.
    locks: Vec<LocksHead<'a>>,
    /// Absent where nothing was read of the Performance Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pfs: Option<PfsHead<'a>>,
    /// What experiments showed of the run's suspects; none of a window.
    proofs: Vec<ProofHead>,
}

/// Where in the blocks something lies.
#[derive(Clone, Copy, Serialize, TS)]
struct Place {
    block: u32,
    slot: u32,
}

#[derive(Serialize, TS)]
struct SeriesHead {
    #[serde(flatten)]
    key: SeriesKey,
    axis: u32,
    #[serde(flatten)]
    place: Place,
    /// "samples": one value a time. "envelope": five slots, min, lower quartile, median, upper quartile, max of a bucket.
    form: thin::Form,
    /// The value never changed.
    flat: bool,
}

/// Gathers a report's data. Reads the source group by group: never more than some thirty series are in memory raw.
pub fn build(source: &dyn Source, explanation: &Explanation, extras: &Extras<'_>) -> Result<Payload, Error> {
    let mut blocks = Blocks::default();
    let run = source.run();

    let mut series = Vec::new();
    let mut span = Span::default();
    let mut axes = Axes::default();
    let keys = source.keys();
    let thinning = thin::plan(source.sample_count());
    let origin_ns = origin_ns(run, source.load_begin_ns()?);

    let stacks = source.stacks()?;
    let computed =
        derived::load_series(source, &[])?.into_iter().chain(over_time::series(&stacks, origin_ns));
    for (key, column) in computed {
        span.include(&column.t_ns);
        series.push(add(&mut blocks, &mut axes, origin_ns, key, &thin::ThinColumn::samples(column)));
    }
    blocks.close()?;

    let order: Vec<usize> = (0..keys.len()).collect();
    for group in order.chunks(SERIES_PER_BLOCK) {
        let columns = source.columns(group)?;
        for (index, column) in group.iter().zip(columns) {
            if column.t_ns.is_empty() {
                continue;
            }
            span.include(&column.t_ns);
            let key = keys[*index].clone();
            let thinned = thinning.apply(key.kind, column);
            series.push(add(&mut blocks, &mut axes, origin_ns, key, &thinned));
        }
        blocks.close()?;
    }

    let notes = source.notes().into_iter().chain(thinning.note()).collect();
    let axis_places = axes.write(&mut blocks)?;
    let profile = add_profile(&mut blocks, source, stacks, extras, origin_ns)?;
    let tables = add_tables(&mut blocks, extras)?;
    let head = Head {
        format: FORMAT,
        run,
        explanation,
        answer: answer(run, explanation),
        events: source.events()?,
        problems: source.problems(),
        notes,
        origin_ns,
        end_ns: span.end_ns.max(origin_ns),
        cpu_by_level: derived::cpu_by_level(explanation),
        axes: axis_places,
        series,
        profile,
        tables,
    };
    let base64 = |block: &Vec<u8>| base64::engine::general_purpose::STANDARD.encode(block);
    let blocks_base64 = blocks.done.iter().map(base64).collect();
    Ok(Payload { head_json: script_safe(&serde_json::to_string(&head)?), blocks_base64 })
}

fn add_profile(
    blocks: &mut Blocks,
    source: &dyn Source,
    stacks: Stacks,
    extras: &Extras<'_>,
    origin_ns: i64,
) -> Result<ProfileHead, Error> {
    let threads = add_threads(blocks, source)?;
    let timeline = match stacks.buckets {
        None => add_timeline(blocks, source, &stacks, origin_ns)?,
        Some(_) => add_timeline(blocks, source, &source.single_stacks()?, origin_ns)?,
    };
    Ok(ProfileHead { threads, timeline, flame: add_flame(blocks, source, stacks, extras, origin_ns)? })
}

fn add_tables<'b>(blocks: &mut Blocks, extras: &Extras<'b>) -> Result<TablesHead<'b>, Error> {
    Ok(TablesHead {
        statements: statements_head(extras.statements),
        proofs: extras.proofs.map_or_else(Vec::new, proof_heads),
        locks: locks_heads(extras.locks),
        pfs: add_pfs(blocks, extras)?,
    })
}

fn add(
    blocks: &mut Blocks,
    axes: &mut Axes,
    origin_ns: i64,
    key: SeriesKey,
    thinned: &thin::ThinColumn,
) -> SeriesHead {
    let axis = axes.number(origin_ns, &thinned.t_ns);
    let place = blocks.place();
    for values in &thinned.streams {
        blocks.push(values);
    }
    let mut read = thinned.streams.iter().flatten().filter(|value| !value.is_nan());
    let first = read.next();
    let flat = read.all(|value| Some(value) == first);
    SeriesHead { key, axis, place, form: thinned.form, flat }
}

/// The server's threads in a block of their own, with what the head says of them.
fn add_threads(blocks: &mut Blocks, source: &dyn Source) -> Result<Option<ThreadsHead>, Error> {
    let run = source.run();
    let table = source.threads(&level_edges(run))?;
    if table.t_ns.len() < 2 || table.threads.is_empty() {
        return Ok(None);
    }
    let (head, columns) = threads::columns(&table, &level_edges(run), blocks.place().block);
    for column in &columns {
        blocks.push(column);
    }
    blocks.close()?;
    Ok(Some(head))
}

/// Adds the server's threads over time in a block of their own, and single waits and samples in one more. The page reads each when it shows it.
fn add_timeline(
    blocks: &mut Blocks,
    source: &dyn Source,
    stacks: &Stacks,
    origin_ns: i64,
) -> Result<Option<TimelineHead>, Error> {
    let run = source.run();
    let snapshots = source.state_times()?;
    let buckets_max = match snapshots.threads {
        0 => return Ok(None),
        threads => page::CELLS_MAX / threads.min(page::THREADS_MAX),
    };
    let timeline =
        source.timeline(&merged_edges(&snapshots.t_ns, &level_edges(run), buckets_max), page::THREADS_MAX)?;
    if timeline.threads.is_empty() {
        return Ok(None);
    }
    let (mut head, columns) = page::columns(&timeline, &snapshots, blocks.place().block);
    columns.iter().for_each(|column| blocks.push(column));
    blocks.close()?;
    if let Some((singles, columns)) = page::singles(&head, stacks, origin_ns, blocks.place().block) {
        columns.iter().for_each(|column| blocks.push(column));
        blocks.close()?;
        head.singles = Some(singles);
    }
    Ok(Some(head))
}

/// Each view in a block of its own, which the page reads when it shows it.
fn add_pfs<'b>(blocks: &mut Blocks, extras: &Extras<'b>) -> Result<Option<PfsHead<'b>>, Error> {
    let Some(run) = extras.pfs else { return Ok(None) };
    let mut head = PfsHead::new(run);
    for (view, lines) in head.views.iter_mut().zip(pfs_view_blocks(run)) {
        view.block = blocks.add_json(&lines)?;
    }
    Ok(Some(head))
}

/// Adds the server's stacks, and those of a run to compare with, in these blocks:
///
/// - the tree in one, and each level's times in one more, so that the page reads only levels that it shows;
/// - the samples in one, which the page reads when they are filtered;
/// - lines and their text in two, which the page reads when it shows a function's source.
fn add_flame(
    blocks: &mut Blocks,
    source: &dyn Source,
    stacks: Stacks,
    extras: &Extras<'_>,
    origin_ns: i64,
) -> Result<Option<FlameHead>, Error> {
    let parts = flame::parts(source.run(), &stacks);
    let mut runs = vec![(stacks, parts)];
    if let Some(other) = extras.against {
        let stacks = other.stacks()?;
        let parts = flame::parts_of_other(source.run(), other.run(), &stacks);
        runs.push((stacks, parts));
    }
    let Some(flame) = Flame::new(runs) else { return Ok(None) };
    let (tree, node_of, folded_below) = flame.tree();
    let (mut head, columns) = add_tree(blocks, &flame, &tree, folded_below)?;
    let lines = flame.lines(&tree, &node_of, &columns[1]);
    head.knows_lines = lines.is_some();
    let names = source.thread_names()?;
    let places = Places { calls: &node_of, lines: lines.as_ref().map(|lines| &lines.places) };
    if let Some((mut samples, columns)) = flame.samples(&places, &names, origin_ns) {
        samples.block = blocks.add(&columns)?;
        head.samples = Some(samples);
    }
    if let Some(lines) = lines.filter(|_| head.samples.as_ref().is_some_and(|samples| samples.lines)) {
        let block = blocks.add(&lines.columns())?;
        let texts_block = blocks.add_json(&flame::texts(&lines, extras.source_text))?;
        head.lines = Some(lines.head(block, texts_block));
    }
    Ok(Some(head))
}

/// The tree in one block, each part's times in one more; the head, and the columns of the tree itself.
fn add_tree(
    blocks: &mut Blocks,
    flame: &Flame,
    tree: &CallTree<'_>,
    folded_below: f64,
) -> Result<(FlameHead, [Vec<f64>; 2]), Error> {
    let (mut head, columns) = flame.head(tree, folded_below);
    head.block = blocks.add(&columns)?;
    for (place, level) in head.levels.iter_mut().enumerate() {
        level.block = blocks.add(&Flame::columns(tree, place).collect::<Vec<_>>())?;
    }
    Ok((head, columns))
}

/// Returns the report's zero: when the first level began to warm up, or the load began, or the run did.
pub fn origin_ns(run: &RunInfo, load_begin_ns: Option<i64>) -> i64 {
    let from_levels =
        run.levels.iter().map(|level| level.warmup.begin_ns).filter(|begin_ns| *begin_ns > 0).min();
    let from_anchors = run.anchors.first().map(|anchor| anchor.monotonic_ns);
    from_levels.or(load_begin_ns).or(from_anchors).unwrap_or(0)
}

#[derive(Default)]
struct Span {
    end_ns: i64,
}

impl Span {
    fn include(&mut self, t_ns: &[i64]) {
        self.end_ns = self.end_ns.max(t_ns.last().copied().unwrap_or(0));
    }
}

#[derive(Default)]
struct Blocks {
    /// The number of the first: a page that is served gets its parts one by one, and their blocks have different numbers.
    first: u32,
    open: Vec<u8>,
    open_slots: u32,
    /// Deflated.
    done: Vec<Vec<u8>>,
}

impl Blocks {
    fn place(&self) -> Place {
        Place { block: self.first + self.done.len() as u32, slot: self.open_slots }
    }

    fn push(&mut self, values: &[f64]) {
        codec::append(&mut self.open, values);
        self.open_slots += 1;
    }

    /// A block of its own; its number.
    fn add(&mut self, columns: &[Vec<f64>]) -> Result<u32, Error> {
        let block = self.place().block;
        columns.iter().for_each(|column| self.push(column));
        self.close()?;
        Ok(block)
    }

    /// A block that holds an object in place of columns; its number. Nothing else is open.
    fn add_json(&mut self, object: &impl Serialize) -> Result<u32, Error> {
        let block = self.place().block;
        self.open = serde_json::to_vec(object)?;
        self.open_slots = 1;
        self.close()?;
        Ok(block)
    }

    fn close(&mut self) -> Result<(), Error> {
        if self.open_slots == 0 {
            return Ok(());
        }
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
        deflate.write_all(&self.open)?;
        self.done.push(deflate.finish()?);
        self.open.clear();
        self.open_slots = 0;
        Ok(())
    }
}

/// Time axes, each stored once: the series of a source are mostly read at the same times.
#[derive(Default)]
struct Axes {
    by_hash: HashMap<u64, u32>,
    /// Microseconds since the origin.
    axes: Vec<Vec<f64>>,
}

impl Axes {
    fn number(&mut self, origin_ns: i64, t_ns: &[i64]) -> u32 {
        let mut hasher = DefaultHasher::new();
        t_ns.hash(&mut hasher);
        let next = self.axes.len() as u32;
        let number = *self.by_hash.entry(hasher.finish()).or_insert(next);
        if number == next {
            self.axes.push(t_ns.iter().map(|t_ns| ((t_ns - origin_ns) / 1_000) as f64).collect());
        }
        number
    }

    fn write(&self, blocks: &mut Blocks) -> Result<Vec<Place>, Error> {
        let mut places = Vec::with_capacity(self.axes.len());
        for axis in &self.axes {
            places.push(blocks.place());
            blocks.push(axis);
            if blocks.open_slots as usize == SERIES_PER_BLOCK {
                blocks.close()?;
            }
        }
        blocks.close()?;
        Ok(places)
    }
}

/// JSON needs no `<` outside strings, and inside them `\u003c` is the same character. The two line separators are
/// valid in JSON but end a line in older scripts.
pub(crate) fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Column;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_can_end_the_script_element(text in ".*") {
            let json = serde_json::to_string(&format!("</script>{text}<!--<script>")).unwrap();
            let safe = script_safe(&json);
            prop_assert!(!safe.contains('<'));
            prop_assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), format!("</script>{text}<!--<script>"));
        }
    }

    #[test]
    fn sources_that_read_at_the_same_times_share_an_axis() {
        let mut axes = Axes::default();
        assert_eq!(axes.number(0, &[1_000, 2_000]), 0);
        assert_eq!(axes.number(0, &[1_000, 3_000]), 1);
        assert_eq!(axes.number(0, &[1_000, 2_000]), 0);
        assert_eq!(axes.axes[1], vec![1.0, 3.0]);
    }

    #[test]
    fn a_series_with_a_gap_that_never_changes_is_flat() {
        let is_flat = |value: Vec<f64>| {
            let column = Column { t_ns: (0..value.len() as i64).collect(), value };
            let key = SeriesKey {
                host: String::new(),
                source: String::new(),
                metric: String::new(),
                instance: String::new(),
                kind: whyso_record::data::Kind::Counter,
                unit: String::new(),
            };
            add(&mut Blocks::default(), &mut Axes::default(), 0, key, &thin::ThinColumn::samples(column)).flat
        };
        assert!(is_flat(vec![3.0, f64::NAN, 3.0]));
        assert!(!is_flat(vec![3.0, f64::NAN, 4.0]));
    }

    #[test]
    fn a_column_keeps_its_place_over_blocks() {
        let mut blocks = Blocks::default();
        blocks.push(&[1.0]);
        assert_eq!((blocks.place().block, blocks.place().slot), (0, 1));
        blocks.close().unwrap();
        assert_eq!((blocks.place().block, blocks.place().slot), (1, 0));
    }

    #[test]
    fn a_thousand_threads_for_ten_minutes_take_few_bytes_of_the_page() {
        use whyso_series::{Snapshot, ThreadSnapshot, ThreadTable};
        // Shares that wander, of ten states per thread.
        let mut random = whyso_random::SplitMix64::new(1);
        let mut threads: Vec<ThreadSnapshot> = (0..1_000)
            .map(|tid| ThreadSnapshot { tid, states_ns: vec![0; 14], ..ThreadSnapshot::default() })
            .collect();
        let mut snapshot = |t_ns: i64| {
            for thread in &mut threads {
                thread.requests += 5_000 + random.below(500);
                for (state, ns) in thread.states_ns.iter_mut().enumerate().take(10) {
                    *ns += 2_000_000_000 >> state;
                    *ns += random.below(200_000_000 >> state);
                }
            }
            Snapshot { t_ns, threads: threads.clone() }
        };
        let snapshots = (0..61).map(|number| snapshot(number * 10_000_000_000)).collect();
        let table = ThreadTable::new((0..14).map(|state| format!("state{state}")).collect(), snapshots, &[]);
        let (head, columns) = threads::columns(&table, &[], 0);
        assert_eq!((head.t_ns.len(), head.note.as_str()), (61, ""));
        let mut blocks = Blocks::default();
        columns.iter().for_each(|column| blocks.push(column));
        blocks.close().unwrap();
        let bytes = blocks.done[0].len() * 4 / 3 + serde_json::to_string(&head).unwrap().len();
        assert!(bytes < 1_600_000, "{bytes}");
    }
}

//! What the starts say: each cell at each number of users, against its baseline on the same server under the same condition.

mod curve;
mod events;
mod interactions;
mod over_time;
mod pair;
mod starts;

use std::collections::BTreeMap;

use serde::Serialize;
use whyso_inference::{Spread, VariantComparison, compare, spread};
use whyso_model::measures::Better;

use crate::cells::{Cell, Start};
use crate::journal::{LevelRecord, StartRecord};
use crate::measures::find_measure;
use crate::spec::{Before, Repeats, Spec};

pub use curve::{Curve, CurvePoint, CurveStep};
pub use events::{Evenness, Tops};
pub use interactions::Interaction;
pub use over_time::{Course, SettingChange};
pub use pair::{Pair, PairLevel};
pub use starts::StartSummary;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    pub title: String,
    pub question: String,
    /// Name of the measure that is compared.
    pub metric: String,
    pub matters_percent: f64,
    /// Number of starts that are done, and of all that there will be.
    pub starts_done: usize,
    pub starts: usize,
    /// The machine against itself; `None` until both starts are done, and where the study has none.
    pub pair: Option<Pair>,
    /// By users, then as the file has the cells; of several tunings the best one.
    pub lines: Vec<Line>,
    /// Each of the study's steps against the one before, by users.
    pub steps: Vec<Step>,
    /// Variants together, against what each does by itself, by users.
    pub interactions: Vec<Interaction>,
    /// What else the lines show, by the names of measures.
    pub show: Vec<String>,
    /// Where each cell's throughput peaks, and on what it stops growing.
    pub peaks: Vec<Peak>,
    /// Cells second by second.
    pub courses: Vec<Course>,
    /// Of a knob that was swept within each start: one per cell.
    pub curves: Vec<Curve>,
    /// What the Performance Schema counted most, of the cell in which it counted and timed most.
    pub tops: Option<Tops>,
    /// How evenly the instances of the study's locks were used: one per cell, lock and number of users.
    pub evenness: Vec<Evenness>,
    /// The part of the time that was not measuring, in per cent; `None` before the first start.
    pub overhead_percent: Option<f64>,
    pub notes: Vec<String>,
    /// What others found, as the study's file has it.
    pub before: Vec<Before>,
    /// Of the study that tests a suggested limit.
    pub suggested: Option<Box<Answer>>,
    /// Starts that are done, in the order of their ends.
    pub done: Vec<StartSummary>,
}

/// One cell at one number of users.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub users: u32,
    pub server: String,
    pub condition: String,
    pub variant: String,
    /// The tuning that was best here; empty where the study has none.
    pub tuning: String,
    /// Server, condition and variant.
    pub name: String,
    /// The metric over its starts; `None` where none was measured.
    pub spread: Option<Spread>,
    pub is_baseline: bool,
    /// Variant that it is compared with.
    pub against: String,
    /// `None` of the baseline itself, and where they share no block.
    pub compared: Option<VariantComparison>,
    /// The baseline's own starts differ much.
    pub baseline_unstable: bool,
    /// So much that this comparison means nothing: none was found within the blocks either.
    pub meaningless: bool,
    /// Of the baseline's starts: highest ÷ lowest.
    pub baseline_range: Option<f64>,
    /// Means over its starts, by the names of measures.
    #[serde(rename = "beside")]
    pub other_measures: BTreeMap<String, f64>,
    /// Regime of each start that has one.
    pub regimes: Vec<String>,
    /// Starts whose number says nothing of the server, and why.
    pub invalid: Vec<String>,
}

/// A variant against the one before it in the file's `steps`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    pub users: u32,
    /// Server and condition; empty where the study has one of each.
    pub place: String,
    pub from: String,
    pub to: String,
    pub compared: Option<VariantComparison>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peak {
    pub name: String,
    /// Users at the peak of each of its starts.
    pub users: Vec<u32>,
    /// The lowest and highest number of users that may be the peak. No upper end: the peak may lie beyond all that were tested.
    pub users_interval: (u32, Option<u32>),
    /// First suspects, with the starts in which each was the first; the most frequent first.
    pub suspects: Vec<(String, usize)>,
}

/// A cell in one tuning at one number of users: (block, value) of its starts.
type Values = Vec<(u32, f64)>;

/// What was done, asked for by cell and users.
pub(crate) struct Measurements<'a> {
    spec: &'a Spec,
    done: &'a [StartRecord],
}

impl Measurements<'_> {
    /// Returns the starts of a cell with their level of this number of users, the pair left out.
    fn levels(&self, cell: usize, users: u32) -> impl Iterator<Item = (Start, &LevelRecord)> {
        let starts = self.done.iter().filter(move |done| done.start.cell == cell && !done.start.pair);
        starts.filter_map(move |done| {
            Some((done.start, done.levels.iter().find(|level| level.users == users)?))
        })
    }

    fn values(&self, cell: usize, users: u32) -> Values {
        let value = |level: &LevelRecord| level.measures.get(&self.spec.metric).copied();
        self.levels(cell, users).filter_map(|(start, level)| Some((start.block, value(level)?))).collect()
    }
}

/// Cells that differ only in their tuning.
struct Group<'a> {
    first: &'a Cell,
    members: Vec<usize>,
}

/// Returns what a study found so far.
pub fn answer(spec: &Spec, done: &[StartRecord], notes: &[String]) -> Answer {
    let cells = spec.cells();
    let measured = Measurements { spec, done };
    let is_lower_better = find_measure(&spec.metric).is_some_and(|measure| measure.better == Better::Lower);
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        match groups.iter_mut().find(|group| group.first.is_comparable_with(cell)) {
            Some(group) => group.members.push(at),
            None => groups.push(Group { first: cell, members: vec![at] }),
        }
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut baselines: Vec<Option<Spread>> = Vec::new();
    let mut pairs: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut pairs_of_steps: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut interactions: Vec<Interaction> = Vec::new();
    let mut pairs_of_interactions: Vec<Vec<(f64, f64)>> = Vec::new();
    for &users in &spec.users {
        let best: Vec<usize> =
            groups.iter().map(|group| best_of(group, users, &measured, is_lower_better)).collect();
        let values: Vec<Values> = best.iter().map(|cell| measured.values(*cell, users)).collect();
        for (at, group) in groups.iter().enumerate() {
            let cell = &cells[best[at]];
            let against = group_of(&groups, cell, &cell.against);
            let is_baseline = against == Some(at);
            let baseline: &[(u32, f64)] = against.map_or(&[], |at| &values[at]);
            let baseline_spread = spread(&only(baseline));
            baselines.push(baseline_spread);
            lines.push(Line {
                spread: spread(&only(&values[at])),
                is_baseline,
                baseline_unstable: baseline_spread.is_some_and(|spread| spread.unstable),
                other_measures: means(&measured, best[at], users, &spec.show),
                regimes: regimes(&measured, best[at], users),
                invalid: invalid(&measured, best[at], users),
                ..line(users, group.first, cell)
            });
            pairs.push(if is_baseline { Vec::new() } else { paired(baseline, &values[at]) });
        }
        for two in spec.steps.windows(2) {
            for (to_at, group) in groups.iter().enumerate().filter(|(_, group)| group.first.variant == two[1])
            {
                let Some(from_at) = group_of(&groups, group.first, &two[0]) else { continue };
                steps.push(Step {
                    users,
                    place: place(spec, group.first),
                    from: two[0].clone(),
                    to: two[1].clone(),
                    compared: None,
                });
                pairs_of_steps.push(paired(&values[from_at], &values[to_at]));
            }
        }
        for names in &spec.interactions {
            for (both_at, group) in
                groups.iter().enumerate().filter(|(_, group)| group.first.variant == names[2])
            {
                let at = |name: &str| group_of(&groups, group.first, name);
                let (Some(base), Some(one), Some(other)) =
                    (at(&group.first.against), at(&names[0]), at(&names[1]))
                else {
                    continue;
                };
                interactions.push(Interaction {
                    users,
                    place: place(spec, group.first),
                    names: names.clone(),
                    compared: None,
                });
                let of = [base, one, other, both_at].map(|at| values[at].as_slice());
                pairs_of_interactions.push(interactions::expected_and_seen(of));
            }
        }
    }
    // One family: the chance of a wrong finding is that of all comparisons of the study together.
    pairs.extend(pairs_of_steps);
    pairs.extend(pairs_of_interactions);
    let matters = 1.0 + spec.matters_percent / 100.0;
    let comparisons = compare(&pairs, matters).into_iter().map(|comparison| {
        comparison.map(|comparison| {
            let verdict = if is_lower_better { comparison.verdict.turned() } else { comparison.verdict };
            VariantComparison { verdict, ..comparison }
        })
    });
    let places = lines.iter_mut().map(|line| &mut line.compared);
    let places = places.chain(steps.iter_mut().map(|step| &mut step.compared));
    let places = places.chain(interactions.iter_mut().map(|interaction| &mut interaction.compared));
    places.zip(comparisons).for_each(|(place, compared)| *place = compared);
    for (line, baseline) in lines.iter_mut().zip(baselines) {
        // What drifts from block to block is in both of a pair: a difference that is found there all the same means something.
        let is_found = line.compared.is_some_and(|comparison| comparison.verdict.is_found());
        line.meaningless = line.baseline_unstable && !line.is_baseline && !is_found;
        line.baseline_range = baseline.map(|spread| spread.highest / spread.lowest);
    }
    let all_s: f64 = done.iter().map(|record| record.seconds).sum();
    let measured_s: f64 = done.iter().map(|record| record.measured_s).sum();
    Answer {
        title: spec.title.clone(),
        question: spec.question.clone(),
        metric: spec.metric.clone(),
        matters_percent: spec.matters_percent,
        starts_done: done.len(),
        starts: starts(spec, done),
        pair: pair::pair(spec, done),
        lines,
        steps,
        interactions,
        show: spec.show.clone(),
        peaks: groups.iter().filter_map(|group| peak(group, done)).collect(),
        curves: curve::curves(spec, &cells, done),
        courses: over_time::courses(spec, &cells, &measured),
        tops: events::tops(&cells, done),
        evenness: events::evenness(&cells, done),
        overhead_percent: (all_s > 0.0).then(|| 100.0 * (1.0 - measured_s / all_s)),
        notes: notes
            .iter()
            .cloned()
            .chain(unknown_knobs(&cells, done))
            .chain(warnings(&cells, done))
            .collect(),
        before: spec.before.clone(),
        suggested: None,
        done: starts::starts_done(&cells, done),
    }
}

impl Answer {
    /// Returns whether each comparison's 95 % interval reaches at most this many per cent to either side.
    pub fn is_narrow(&self, percent: f64) -> bool {
        let compared = self.lines.iter().filter(|line| !line.is_baseline).map(|line| line.compared);
        compared.chain(self.steps.iter().map(|step| step.compared)).all(|compared| {
            let interval =
                compared.and_then(|comparison| Some((comparison.effect.ratio, comparison.effect.t95?)));
            interval.is_some_and(|(ratio, [low, high])| {
                100.0 * (high / ratio - 1.0).max(1.0 - low / ratio) <= percent
            })
        })
    }
}

fn line(users: u32, first: &Cell, best: &Cell) -> Line {
    Line {
        users,
        server: first.server.clone(),
        condition: first.condition.clone(),
        variant: first.variant.clone(),
        tuning: best.tuning.clone(),
        name: Cell { tuning: String::new(), ..first.clone() }.name(),
        spread: None,
        is_baseline: false,
        against: first.against.clone(),
        compared: None,
        baseline_unstable: false,
        meaningless: false,
        baseline_range: None,
        other_measures: BTreeMap::new(),
        regimes: Vec::new(),
        invalid: Vec::new(),
    }
}

/// Returns how many starts there will be, as far as that is known.
fn starts(spec: &Spec, done: &[StartRecord]) -> usize {
    let per_block = spec.cells().len();
    let begun =
        done.iter().filter(|record| !record.start.pair).map(|record| record.start.block as usize + 1).max();
    let blocks = match spec.repeats {
        Repeats::Times(times) => times as usize,
        Repeats::Until { .. } => begun.unwrap_or(0).max(spec.blocks_least() as usize),
    };
    spec.pair().len() + blocks * per_block
}

/// The tuning with the best mean over its starts.
fn best_of(group: &Group<'_>, users: u32, measured: &Measurements<'_>, is_lower_better: bool) -> usize {
    let mean = |cell: &usize| spread(&only(&measured.values(*cell, users))).map(|spread| spread.mean);
    let mut best = (group.members[0], None);
    for cell in &group.members {
        let better = match (mean(cell), best.1) {
            (Some(mean), Some(before)) => (mean > before) != is_lower_better,
            (mean, None) => mean.is_some(),
            (None, _) => false,
        };
        if better {
            best = (*cell, mean(cell));
        }
    }
    best.0
}

/// The group of that variant under the cell's condition: on the cell's server, or on the only one that has it.
fn group_of(groups: &[Group<'_>], cell: &Cell, variant: &str) -> Option<usize> {
    let fits = |group: &&Group<'_>| group.first.variant == variant && group.first.condition == cell.condition;
    let at = |group: &Group<'_>| groups.iter().position(|other| std::ptr::eq(other, group));
    let mut fitting = groups.iter().filter(fits);
    let here = fitting.clone().find(|group| group.first.server == cell.server);
    here.or_else(|| fitting.next()).and_then(at)
}

fn only(values: &[(u32, f64)]) -> Vec<f64> {
    values.iter().map(|(_, value)| *value).collect()
}

/// (baseline, variant) of each block that has both.
fn paired(baseline: &[(u32, f64)], own: &[(u32, f64)]) -> Vec<(f64, f64)> {
    let of_block = |block: u32| baseline.iter().find(|(other, _)| *other == block).map(|(_, value)| *value);
    own.iter().filter_map(|(block, value)| Some((of_block(*block)?, *value))).collect()
}

fn means(measured: &Measurements<'_>, cell: usize, users: u32, names: &[String]) -> BTreeMap<String, f64> {
    let mean = |name: &String| {
        let levels = measured.levels(cell, users);
        let values: Vec<f64> = levels.filter_map(|(_, level)| level.measures.get(name).copied()).collect();
        (!values.is_empty()).then(|| (name.clone(), values.iter().sum::<f64>() / values.len() as f64))
    };
    names.iter().filter_map(mean).collect()
}

fn invalid(measured: &Measurements<'_>, cell: usize, users: u32) -> Vec<String> {
    let levels = measured.levels(cell, users).filter(|(_, level)| !level.invalid_why.is_empty());
    levels.map(|(start, level)| format!("block {}: {}", start.block + 1, level.invalid_why)).collect()
}

fn regimes(measured: &Measurements<'_>, cell: usize, users: u32) -> Vec<String> {
    let regimes = measured.levels(cell, users).map(|(_, level)| level.regime.clone());
    regimes.filter(|regime| !regime.is_empty()).collect()
}

fn place(spec: &Spec, cell: &Cell) -> String {
    let server = if spec.servers.len() > 1 { cell.server.as_str() } else { "" };
    [server, &cell.condition].into_iter().filter(|part| !part.is_empty()).collect::<Vec<&str>>().join(", ")
}

fn peak(group: &Group<'_>, done: &[StartRecord]) -> Option<Peak> {
    let starts =
        done.iter().filter(|record| !record.start.pair && group.members.contains(&record.start.cell));
    let peaks: Vec<_> = starts.filter_map(|record| record.peak.as_ref()).collect();
    let lowest = peaks.iter().map(|peak| peak.users_interval.0).min()?;
    let no_end = u32::MAX;
    let highest = peaks.iter().map(|peak| peak.users_interval.1.unwrap_or(no_end)).max()?;
    let mut suspects: Vec<(String, usize)> = Vec::new();
    for peak in peaks.iter().filter(|peak| !peak.suspect.is_empty()) {
        match suspects.iter_mut().find(|(suspect, _)| *suspect == peak.suspect) {
            Some((_, count)) => *count += 1,
            None => suspects.push((peak.suspect.clone(), 1)),
        }
    }
    suspects.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    Some(Peak {
        name: Cell { tuning: String::new(), ..group.first.clone() }.name(),
        users: peaks.iter().map(|peak| peak.users).collect(),
        users_interval: (lowest, Some(highest).filter(|highest| *highest < no_end)),
        suspects,
    })
}

fn unknown_knobs(cells: &[Cell], done: &[StartRecord]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for record in done.iter().filter(|record| !record.unknown_knobs.is_empty()) {
        let Some(cell) = cells.get(record.start.cell) else { continue };
        let note = format!(
            "{}: {} {} left out, which {} does not know",
            cell.name(),
            record.unknown_knobs.join(", "),
            if record.unknown_knobs.len() == 1 { "was" } else { "were" },
            record.version
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// Returns each warning once, with the first cell that has it.
fn warnings(cells: &[Cell], done: &[StartRecord]) -> Vec<String> {
    let mut texts: Vec<(&str, String)> = Vec::new();
    for record in done {
        for warning in &record.warnings {
            let Some(cell) = cells.get(record.start.cell) else { continue };
            if !texts.iter().any(|(before, _)| before == warning) {
                texts.push((warning, format!("{}: {warning}", cell.name())));
            }
        }
    }
    texts.into_iter().map(|(_, text)| text).collect()
}

#[cfg(test)]
pub(crate) mod tests;

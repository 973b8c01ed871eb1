//! Samples and waits as the page filters them: how much time which thread spent where, in which stretch of the run, working for whom.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;
use ts_rs::TS;
use whyso_words::{seconds, whole};

use super::{COLUMNS_PER_LEVEL, Flame, METRICS, NAME_MAX, NS_PER_US, Numbering};

/// The most rows that the page has, at about six bytes each.
const ROWS_MAX: usize = 300_000;
/// Most statements that are separated; the time of others is of no known statement.
const STATEMENTS_MAX: usize = 500;
/// From fine to coarse, until the rows are few enough.
const FINENESS: [Fineness; 6] = [
    Fineness { step_s: 1, threads: true, lines: true },
    Fineness { step_s: 10, threads: true, lines: true },
    Fineness { step_s: 10, threads: true, lines: false },
    Fineness { step_s: 10, threads: false, lines: true },
    Fineness { step_s: 60, threads: false, lines: true },
    Fineness { step_s: 60, threads: false, lines: false },
];
const NS_PER_S: i64 = 1_000_000_000;

/// How finely samples are separated.
#[derive(Clone, Copy)]
struct Fineness {
    /// Windows begin and end at multiples of this, and where measured windows do.
    step_s: i64,
    /// By thread, connection and statement; else by role alone.
    threads: bool,
    /// By line of the sources.
    lines: bool,
}

/// Of whom, when and where a sample of the profile was, by its place there.
pub(super) struct SampleOrigin {
    pub(super) t_ns: i64,
    pub(super) tid: u32,
    pub(super) role: String,
    pub(super) connection: Option<u64>,
    pub(super) statement: Option<Arc<str>>,
    /// Where it is not of the run that the report is of: the place of its part.
    pub(super) other_part: Option<usize>,
}

/// What the page's head holds of the samples.
#[derive(Serialize, TS)]
pub(crate) struct SamplesHead {
    roles: Vec<String>,
    /// The kernel's numbers and names of threads; none where they are not separated.
    threads: Vec<(u32, String)>,
    statements: Vec<String>,
    /// Where stretches of this run begin and end, monotonic ns: one more than stretches. Each part of another run is one more stretch, in their order.
    edges_ns: Vec<i64>,
    /// Of each level of the head: its first stretch, and the one after its last.
    levels: Vec<(usize, usize)>,
    /// Windows begin and end at multiples of this number of seconds since the page's zero, and where measured windows do.
    step_s: i64,
    pub(crate) rows: usize,
    /// The block that holds, in this order:
    ///
    /// - of each owner: its role, thread, connection and statement, NaN where one is not known;
    /// - of each row: its metric, owner, stretch, node, time in µs, root of its variance in µs, and number of samples or waits.
    ///
    /// Where calls are separated by line, the node is that of the tree of lines.
    pub(crate) block: u32,
    /// Nodes are those of the tree of lines.
    pub(crate) lines: bool,
    /// What is not separated, as a text; empty where everything is.
    note: String,
}

/// What one or several samples have in common, in the order of the rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    metric: usize,
    owner: usize,
    stretch: usize,
    node: usize,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    ns: f64,
    variance_ns2: f64,
    count: u64,
}

/// What a column has of a row.
type Cell = fn(&(Key, Sum)) -> f64;

/// Places in the head of role and thread; the connection; the place of the statement.
type Owner = (usize, Option<usize>, Option<u64>, Option<usize>);

/// By stack: its node in the tree of calls, and in that of lines where a build has them.
pub(crate) struct Places<'a> {
    pub(crate) calls: &'a HashMap<u32, usize>,
    pub(crate) lines: Option<&'a HashMap<u32, usize>>,
}

impl Flame {
    /// Returns the samples by the places of their stacks, with the columns of their block. The places are in the tree of lines where there is one.
    /// `None` where even the coarsest are too many.
    pub(crate) fn samples(
        &self,
        places: &Places<'_>,
        names: &BTreeMap<u32, String>,
        origin_ns: i64,
    ) -> Option<(SamplesHead, Vec<Vec<f64>>)> {
        let all = if self.bucket_ns == 0 { FINENESS.to_vec() } else { finenesses_of(self.bucket_ns) };
        // Where there are no lines, leaving them out saves nothing.
        let mut fitting = all.iter().filter(|fineness| fineness.lines || places.lines.is_some());
        fitting.find_map(|fineness| self.samples_at(*fineness, places, names, origin_ns, ROWS_MAX))
    }

    fn samples_at(
        &self,
        fineness: Fineness,
        places: &Places<'_>,
        names: &BTreeMap<u32, String>,
        origin_ns: i64,
        rows_max: usize,
    ) -> Option<(SamplesHead, Vec<Vec<f64>>)> {
        let edges_ns = self.edges_ns(fineness.step_s, origin_ns);
        let stretches = edges_ns.len().saturating_sub(1);
        let texts = self.most_sampled_statements();
        let others = texts.len() < self.statements();
        let statements: HashMap<&str, usize> =
            texts.iter().enumerate().map(|(place, text)| (*text, place)).collect();
        let lines = places.lines.filter(|_| fineness.lines);
        let node_of = lines.unwrap_or(places.calls);
        let mut roles: Numbering<&str> = Numbering::default();
        let mut threads: Numbering<u32> = Numbering::default();
        let mut owners: Numbering<Owner> = Numbering::default();
        let mut sums: HashMap<Key, Sum> = HashMap::new();
        for (sample, origin) in self.profile.samples.iter().zip(&self.origins) {
            let Some(node) = node_of.get(&sample.stack) else { continue };
            let role = roles.place(&origin.role);
            let owner = match fineness.threads {
                false => (role, None, None, None),
                true => {
                    let statement = origin.statement.as_deref().and_then(|text| statements.get(text));
                    (role, Some(threads.place(origin.tid)), origin.connection, statement.copied())
                }
            };
            let stretch = match origin.other_part {
                Some(part) => stretches + part - self.own_parts,
                None => edges_ns.partition_point(|edge| *edge <= origin.t_ns).saturating_sub(1),
            };
            let metric = sample.metric % COLUMNS_PER_LEVEL % METRICS;
            let sum =
                sums.entry(Key { metric, owner: owners.place(owner), stretch, node: *node }).or_default();
            sum.ns += sample.weight_ns;
            sum.variance_ns2 += sample.variance_ns2;
            sum.count += sample.count;
            if sums.len() > rows_max {
                return None;
            }
        }
        let mut rows: Vec<(Key, Sum)> = sums.into_iter().collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        let levels = self.parts.iter().enumerate().map(|(place, part)| match place < self.own_parts {
            true => {
                let at = |t_ns: i64| edges_ns.partition_point(|edge| *edge < t_ns);
                (at(part.window.begin_ns), at(part.window.end_ns))
            }
            false => (stretches + place - self.own_parts, stretches + place - self.own_parts + 1),
        });
        let cut = |text: &str| text.chars().take(NAME_MAX).collect::<String>();
        let named = |tid: &u32| (*tid, names.get(tid).map_or_else(String::new, |name| cut(name)));
        let head = SamplesHead {
            roles: roles.list.iter().map(ToString::to_string).collect(),
            threads: threads.list.iter().map(named).collect(),
            statements: if fineness.threads {
                texts.iter().map(|text| cut(text)).collect()
            } else {
                Vec::new()
            },
            levels: levels.collect(),
            step_s: fineness.step_s,
            rows: rows.len(),
            block: 0,
            lines: lines.is_some(),
            note: note(fineness, places.lines.is_some() && lines.is_none(), others),
            edges_ns,
        };
        let place = |place: Option<usize>| place.map_or(f64::NAN, |place| place as f64);
        let mut columns = vec![
            owners.list.iter().map(|owner| owner.0 as f64).collect(),
            owners.list.iter().map(|owner| place(owner.1)).collect(),
            owners
                .list
                .iter()
                .map(|owner| owner.2.map_or(f64::NAN, |connection| connection as f64))
                .collect(),
            owners.list.iter().map(|owner| place(owner.3)).collect(),
        ];
        let cells: [Cell; 7] = [
            |(key, _)| key.metric as f64,
            |(key, _)| key.owner as f64,
            |(key, _)| key.stretch as f64,
            |(key, _)| key.node as f64,
            |(_, sum)| (sum.ns / NS_PER_US).round(),
            |(_, sum)| (sum.variance_ns2.sqrt() / NS_PER_US).round(),
            |(_, sum)| sum.count as f64,
        ];
        columns.extend(cells.map(|cell| rows.iter().map(cell).collect::<Vec<f64>>()));
        Some((head, columns))
    }

    /// Multiples of the step since the page's zero, and where measured windows begin and end: around all samples of this run.
    fn edges_ns(&self, step_s: i64, origin_ns: i64) -> Vec<i64> {
        let of_this_run =
            || self.origins.iter().filter(|origin| origin.other_part.is_none()).map(|origin| origin.t_ns);
        let (Some(first_ns), Some(last_ns)) = (of_this_run().min(), of_this_run().max()) else {
            return Vec::new();
        };
        let step_ns = step_s * NS_PER_S;
        // Buckets of sums begin at multiples of their length.
        let origin_ns = if self.bucket_ns == 0 { origin_ns } else { 0 };
        let begin = (first_ns - origin_ns).div_euclid(step_ns);
        let end = (last_ns - origin_ns).div_euclid(step_ns) + 1;
        let mut edges_ns: Vec<i64> = (begin..=end).map(|step| origin_ns + step * step_ns).collect();
        let own = &self.parts[..self.own_parts];
        edges_ns.extend(own.iter().flat_map(|part| [part.window.begin_ns, part.window.end_ns]));
        edges_ns.sort_unstable();
        edges_ns.dedup();
        edges_ns
    }

    fn statements(&self) -> usize {
        let texts = self.origins.iter().filter_map(|origin| origin.statement.as_deref());
        texts.collect::<HashSet<&str>>().len()
    }

    /// Those with the most samples, by their texts.
    fn most_sampled_statements(&self) -> Vec<&str> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for text in self.origins.iter().filter_map(|origin| origin.statement.as_deref()) {
            *counts.entry(text).or_default() += 1;
        }
        let mut texts: Vec<(&str, usize)> = counts.into_iter().collect();
        texts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        texts.truncate(STATEMENTS_MAX);
        let mut texts: Vec<&str> = texts.into_iter().map(|(text, _)| text).collect();
        texts.sort_unstable();
        texts
    }
}

/// Of samples that are added up over buckets of time, without their threads.
fn finenesses_of(bucket_ns: i64) -> Vec<Fineness> {
    let of = |buckets: i64| {
        let step_s = buckets * bucket_ns / NS_PER_S;
        [true, false].map(|lines| Fineness { step_s, threads: false, lines })
    };
    [1, 4, 16].into_iter().flat_map(of).collect()
}

fn note(fineness: Fineness, lacks_lines: bool, others: bool) -> String {
    let mut notes = Vec::new();
    if fineness.step_s > FINENESS[0].step_s {
        notes.push(format!(
            "To keep this page small, windows of its stacks are in steps of {}.",
            seconds(fineness.step_s as f64)
        ));
    }
    if !fineness.threads {
        notes.push(
            "Its stacks are divided only by role: `whyso functions` chooses them by thread, name, connection and statement."
                .to_string(),
        );
    } else if others {
        let most = whole(STATEMENTS_MAX as u64);
        notes.push(format!("Of statements, the {most} with the most samples can be chosen."));
    }
    if lacks_lines {
        notes.push("Its calls are not divided by line: `whyso source` does that.".to_string());
    }
    notes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{example_flame, level, sample, stacks};
    use super::*;
    use crate::source::Stacks;
    use whyso_series::{KnownBy, Span, Spans};

    fn head_and_columns(flame: &Flame, fineness: Fineness) -> (SamplesHead, Vec<Vec<f64>>) {
        let (_, calls, _) = flame.tree();
        let places = Places { calls: &calls, lines: None };
        flame.samples_at(fineness, &places, &BTreeMap::from([(1, "one".to_string())]), 0, ROWS_MAX).unwrap()
    }

    #[test]
    fn rows_add_up_to_the_columns_of_their_levels() {
        let flame = example_flame();
        let (tree, _, _) = flame.tree();
        for fineness in FINENESS {
            let (head, columns) = head_and_columns(&flame, fineness);
            for (place, (first, after)) in head.levels.iter().enumerate() {
                let mut exclusive = vec![vec![0.0; tree.nodes.len()]; METRICS];
                for (row, us) in columns[8].iter().enumerate() {
                    let cell = |column: usize| columns[column][row] as usize;
                    if (*first..*after).contains(&cell(6)) {
                        exclusive[cell(4)][cell(7)] += us;
                    }
                }
                let columns: Vec<Vec<f64>> = Flame::columns(&tree, place).collect();
                for (metric, of) in exclusive.iter().enumerate() {
                    let of_node = |node: usize| -> f64 {
                        columns.iter().skip(metric).step_by(METRICS).map(|column| column[node]).sum()
                    };
                    let all: Vec<f64> = (0..tree.nodes.len()).map(of_node).collect();
                    assert_eq!(*of, all, "metric {metric} of level {place}");
                }
            }
        }
    }

    #[test]
    fn what_lies_between_levels_is_there_and_of_none() {
        let (head, columns) = head_and_columns(&example_flame(), FINENESS[0]);
        let outside = (0..head.rows).filter(|row| {
            let stretch = columns[6][*row] as usize;
            !head.levels.iter().any(|(first, after)| (*first..*after).contains(&stretch))
        });
        assert_eq!(outside.map(|row| columns[8][row]).collect::<Vec<_>>(), [11.0]);
    }

    #[test]
    fn a_sample_is_of_its_connection_and_statement_where_they_are_known() {
        let span = |of: &str| Span { begin_ns: 0, end_ns: 15, of: Arc::from(of) };
        let stacks_of_statements = Stacks {
            connections: Spans::new(
                KnownBy::Snapshots,
                [(1, Span { begin_ns: 0, end_ns: 50, of: 40 })].into_iter(),
            ),
            statements: Spans::new(KnownBy::Snapshots, [(1, span("COMMIT"))].into_iter()),
            samples: vec![
                sample(10, "connection", 0, 1_000),
                sample(20, "connection", 0, 2_000),
                sample(60, "connection", 0, 4_000),
            ],
            waits: Vec::new(),
            ..stacks()
        };
        let flame = Flame::new(vec![(stacks_of_statements, vec![level(0, 0)])]).unwrap();
        let (head, columns) = head_and_columns(&flame, FINENESS[0]);
        assert_eq!(head.threads, [(1, "one".to_string())]);
        assert_eq!((head.statements, head.note), (vec!["COMMIT".to_string()], String::new()));
        let of_row = |row: usize| {
            let owner = columns[5][row] as usize;
            (columns[2][owner], columns[3][owner], columns[8][row])
        };
        let rows: Vec<_> = (0..head.rows).map(of_row).collect();
        assert_eq!(rows[0], (40.0, 0.0, 1.0));
        assert!(rows[1].0 == 40.0 && rows[1].1.is_nan() && rows[1].2 == 2.0);
        assert!(rows[2].0.is_nan() && rows[2].1.is_nan() && rows[2].2 == 4.0);
    }

    #[test]
    fn of_too_many_samples_the_finest_is_dropped_and_a_note_shows_it() {
        let flame = example_flame();
        let (head, columns) = head_and_columns(&flame, FINENESS[3]);
        assert!(head.threads.is_empty() && columns[1].iter().all(|thread| thread.is_nan()));
        assert_eq!(
            head.note,
            "To keep this page small, windows of its stacks are in steps of 10 s. Its stacks are divided only by role: `whyso \
             functions` chooses them by thread, name, connection and statement."
        );
        let (_, calls, _) = flame.tree();
        let places = Places { calls: &calls, lines: None };
        assert!(flame.samples_at(FINENESS[4], &places, &BTreeMap::new(), 0, 2).is_none());
    }
}

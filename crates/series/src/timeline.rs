//! Threads over time: how long each was in which state, bucket by bucket.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

const NS_PER_MS: f64 = 1e6;

/// One thread from one snapshot of it to the next.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    pub tid: u32,
    /// When it was found first, in monotonic nanoseconds. Two threads that had one number differ in this. 0 where it is not known.
    pub born_ns: i64,
    pub name: &'a str,
    pub role: &'a str,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Its time by state, in milliseconds, in the order of [`Timeline::states`].
    pub states_ms: &'a [f64],
}

/// A thread over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadLine {
    pub tid: u32,
    pub born_ns: i64,
    pub name: String,
    pub role: String,
    /// The first bucket in which it was there.
    pub first: usize,
    /// Milliseconds by state, bucket after bucket from the first one on.
    ms: Vec<f32>,
    /// A hash of its name and role: of very many stretches, comparing the texts takes more time than all else.
    label: u64,
}

/// Every thread's time by state, in buckets that follow each other.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Where buckets begin and end, in monotonic nanoseconds, ascending: one more than there are buckets.
    pub edges_ns: Vec<i64>,
    pub states: Vec<String>,
    pub threads: Vec<ThreadLine>,
    places: HashMap<(u32, i64), usize, BuildHasherDefault<ThreadHasher>>,
}

/// A hash of a thread's number and birth: each stretch of very many is looked up by it. They are the kernel's numbers and times, which
/// nobody chooses to collide.
#[derive(Clone, Debug, Default)]
pub struct ThreadHasher(u64);

impl Hasher for ThreadHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        // The multiplier of SplitMix64: odd, with its bits well mixed.
        let mixed = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn label_of(name: &str, role: &str) -> u64 {
    let mut hasher = ThreadHasher(name.len() as u64 + 1);
    for chunk in name.as_bytes().chunks(8).chain(role.as_bytes().chunks(8)) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hasher.write_u64(u64::from_le_bytes(word));
    }
    hasher.finish()
}

impl ThreadLine {
    /// Makes room for states that came after the first `before`.
    fn widen(&mut self, before: usize, states: usize) {
        let wide = |cell: &[f32]| {
            let mut cell = cell.to_vec();
            cell.resize(states, 0.0);
            cell
        };
        self.ms = self.ms.chunks_exact(before.max(1)).flat_map(wide).collect();
    }
}

impl Timeline {
    /// An empty one. Edges that do not ascend are left out.
    pub fn new(states: Vec<String>, mut edges_ns: Vec<i64>) -> Timeline {
        edges_ns.sort_unstable();
        edges_ns.dedup();
        Timeline { edges_ns, states, ..Timeline::default() }
    }

    pub fn buckets(&self) -> usize {
        self.edges_ns.len().saturating_sub(1)
    }

    /// How long a bucket is, in milliseconds.
    pub fn bucket_ms(&self, bucket: usize) -> f64 {
        self.edges_ns.get(bucket..bucket + 2).map_or(0.0, |edges| (edges[1] - edges[0]) as f64 / NS_PER_MS)
    }

    /// Adds a stretch. Where it lies in several buckets, each has the part of its time that it has of its length. Within a stretch
    /// it is not known when. What lies before the first edge or after the last is left out.
    pub fn enter(&mut self, stretch: &Stretch<'_>) {
        let end_ns = stretch.end_ns;
        // A thread that began within it did nothing before.
        let born = stretch.born_ns.clamp(stretch.begin_ns.min(end_ns), end_ns);
        let begin_ns = if born < end_ns { born } else { stretch.begin_ns.min(end_ns) };
        let first = self.edges_ns.partition_point(|edge| *edge <= begin_ns).saturating_sub(1);
        for bucket in first..self.buckets() {
            if self.edges_ns[bucket] >= end_ns {
                break;
            }
            let (from, to) = (self.edges_ns[bucket].max(begin_ns), self.edges_ns[bucket + 1].min(end_ns));
            if from >= to {
                continue;
            }
            let part = (to - from) as f64 / (end_ns - begin_ns) as f64;
            let states = self.states.len();
            let cell = self.cell_of((stretch.tid, stretch.born_ns), stretch.name, stretch.role, bucket);
            for (sum, ms) in cell.iter_mut().zip(stretch.states_ms).take(states) {
                *sum += (ms * part) as f32;
            }
        }
    }

    /// The cell to add to, which is added where it is not there.
    fn cell_of(&mut self, thread: (u32, i64), name: &str, role: &str, bucket: usize) -> &mut [f32] {
        let states = self.states.len();
        let next = self.threads.len();
        let place = *self.places.entry(thread).or_insert(next);
        if place == next {
            let (tid, born_ns) = thread;
            self.threads.push(ThreadLine { tid, born_ns, first: bucket, ..ThreadLine::default() });
        }
        let line = &mut self.threads[place];
        // The name and the role that it had last: both are found out while it works.
        let label = label_of(name, role);
        if line.label != label {
            line.label = label;
            line.name = name.to_string();
            line.role = role.to_string();
        }
        if bucket < line.first {
            let missing = (line.first - bucket) * states;
            line.ms.splice(0..0, std::iter::repeat_n(0.0, missing));
            line.first = bucket;
        }
        let at = (bucket - line.first) * states;
        if line.ms.len() < at + states {
            line.ms.resize(at + states, 0.0);
        }
        &mut line.ms[at..at + states]
    }

    /// Adds another timeline of the same edges, of later stretches.
    pub fn merge(&mut self, later: Timeline) {
        if self.edges_ns.is_empty() {
            *self = later;
            return;
        }
        let before = self.states.len();
        let place = |state| {
            let known = self.states.iter().position(|other| *other == state);
            known.unwrap_or_else(|| {
                self.states.push(state);
                self.states.len() - 1
            })
        };
        let places: Vec<usize> = later.states.into_iter().map(place).collect();
        let states = self.states.len();
        if states > before {
            self.threads.iter_mut().for_each(|line| line.widen(before, states));
        }
        for ThreadLine { tid, born_ns, name, role, first, ms, .. } in later.threads {
            for (bucket, cell) in (first..).zip(ms.chunks_exact(places.len().max(1))) {
                let sums = self.cell_of((tid, born_ns), &name, &role, bucket);
                for (place, ms) in places.iter().zip(cell) {
                    sums[*place] += ms;
                }
            }
        }
    }

    /// Buckets in which a thread was there, as far as is known.
    pub fn lived(&self, thread: usize) -> Range<usize> {
        let line = &self.threads[thread];
        line.first..line.first + line.ms.len() / self.states.len().max(1)
    }

    /// A thread's milliseconds by state in a bucket; `None` where it was not there.
    pub fn cell(&self, thread: usize, bucket: usize) -> Option<&[f32]> {
        let line = self.threads.get(thread)?;
        let at = bucket.checked_sub(line.first)? * self.states.len();
        line.ms.get(at..at + self.states.len())
    }

    /// Milliseconds by state of several threads together, by bucket.
    pub fn summed(&self, threads: &[usize]) -> Vec<Vec<f64>> {
        let mut sums = vec![vec![0.0; self.states.len()]; self.buckets()];
        for thread in threads {
            for bucket in self.lived(*thread) {
                let Some((sum, cell)) = sums.get_mut(bucket).zip(self.cell(*thread, bucket)) else {
                    continue;
                };
                sum.iter_mut().zip(cell).for_each(|(sum, ms)| *sum += f64::from(*ms));
            }
        }
        sums
    }
}

/// Edges of `buckets` buckets of about the same length.
pub fn even_edges(begin_ns: i64, end_ns: i64, buckets: usize) -> Vec<i64> {
    let length = i128::from(end_ns) - i128::from(begin_ns);
    let buckets = buckets.max(1) as i128;
    (0..=buckets).map(|edge| begin_ns + (length * edge / buckets) as i64).collect()
}

/// Of ascending edges those that `most` buckets have: the nearest to `wanted_ns`, and as many evenly between as fit. Buckets are merged
/// by it, and none is left out.
pub fn merged_edges(edges_ns: &[i64], wanted_ns: &[i64], most: usize) -> Vec<i64> {
    let Some(last) = edges_ns.len().checked_sub(1).filter(|last| *last > most.max(1)) else {
        return edges_ns.to_vec();
    };
    let nearest = |t_ns: &i64| {
        let after = edges_ns.partition_point(|edge| edge < t_ns).min(last);
        let before = after.saturating_sub(1);
        if edges_ns[before].abs_diff(*t_ns) < edges_ns[after].abs_diff(*t_ns) { before } else { after }
    };
    let mut places: Vec<usize> = wanted_ns.iter().map(nearest).chain([0, last]).collect();
    places.sort_unstable();
    places.dedup();
    let stride = last.div_ceil(most.saturating_sub(places.len()).max(1));
    places.extend((0..last).step_by(stride));
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|place| edges_ns[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn stretch<'a>(tid: u32, begin_ms: i64, end_ms: i64, states_ms: &'a [f64]) -> Stretch<'a> {
        Stretch {
            tid,
            born_ns: 0,
            name: "one",
            role: "connection",
            begin_ns: begin_ms * MS,
            end_ns: end_ms * MS,
            states_ms,
        }
    }

    fn states() -> Vec<String> {
        ["cpu", "lock"].map(str::to_string).to_vec()
    }

    #[test]
    fn a_stretch_over_several_buckets_has_a_part_in_each_by_its_length() {
        let mut timeline = Timeline::new(states(), vec![0, 10 * MS, 20 * MS, 40 * MS]);
        timeline.enter(&stretch(1, 5, 25, &[4.0, 16.0]));
        assert_eq!(timeline.lived(0), 0..3);
        let cell = |bucket| timeline.cell(0, bucket).unwrap().to_vec();
        assert_eq!((cell(0), cell(1), cell(2)), (vec![1.0, 4.0], vec![2.0, 8.0], vec![1.0, 4.0]));
        assert_eq!(timeline.cell(0, 3), None);
        assert_eq!((timeline.bucket_ms(1), timeline.bucket_ms(2), timeline.bucket_ms(3)), (10.0, 20.0, 0.0));
    }

    #[test]
    fn a_thread_that_began_within_a_stretch_did_nothing_before_and_one_of_its_number_is_another() {
        let mut timeline = Timeline::new(states(), vec![0, 10 * MS, 20 * MS]);
        timeline.enter(&Stretch { born_ns: 10 * MS, ..stretch(1, 0, 20, &[10.0, 0.0]) });
        timeline.enter(&Stretch { born_ns: 15 * MS, ..stretch(1, 0, 20, &[0.0, 5.0]) });
        assert_eq!((timeline.threads.len(), timeline.lived(0)), (2, 1..2));
        assert_eq!(timeline.cell(0, 1).unwrap(), [10.0, 0.0]);
        assert_eq!(timeline.summed(&[0, 1]), [[0.0, 0.0], [10.0, 5.0]]);
    }

    #[test]
    fn an_earlier_stretch_may_come_later_and_what_lies_outside_is_left_out() {
        let mut timeline = Timeline::new(states(), vec![10 * MS, 20 * MS, 30 * MS]);
        timeline.enter(&stretch(1, 20, 30, &[3.0, 7.0]));
        timeline.enter(&stretch(1, 10, 20, &[6.0, 4.0]));
        timeline.enter(&stretch(1, 0, 10, &[9.0, 1.0]));
        timeline.enter(&stretch(2, 30, 40, &[9.0, 1.0]));
        assert_eq!((timeline.threads.len(), timeline.lived(0)), (1, 0..2));
        assert_eq!(timeline.cell(0, 0).unwrap(), [6.0, 4.0]);
    }

    /// Stretches of three threads in any order, and the states that a part of them knows.
    fn stretches() -> impl Strategy<Value = Vec<(u32, i64, i64, [f64; 2])>> {
        proptest::collection::vec((0u32..3, 0i64..90, 1i64..40, [0.0..50.0, 0.0..50.0]), 0..40)
    }

    proptest! {
        #[test]
        fn timelines_of_parts_merge_to_the_timeline_of_all(parts in proptest::collection::vec((any::<bool>(), stretches()), 0..4)) {
            let edges: Vec<i64> = (0..=12).map(|edge| edge * 10 * MS).collect();
            let mut whole = Timeline::new(states(), edges.clone());
            let mut merged = Timeline::default();
            for (is_reversed, stretches) in &parts {
                let names = if *is_reversed { states().into_iter().rev().collect() } else { states() };
                let mut part = Timeline::new(names, edges.clone());
                for (tid, begin, length, [cpu, lock]) in stretches {
                    whole.enter(&stretch(*tid, *begin, begin + length, &[*cpu, *lock]));
                    let own = if *is_reversed { [*lock, *cpu] } else { [*cpu, *lock] };
                    part.enter(&stretch(*tid, *begin, begin + length, &own));
                }
                merged.merge(part);
            }
            prop_assert_eq!(merged.threads.len(), whole.threads.len());
            for (thread, line) in whole.threads.iter().enumerate() {
                let other = merged.threads.iter().position(|other| other.tid == line.tid).unwrap();
                prop_assert_eq!(merged.lived(other), whole.lived(thread));
                for bucket in whole.lived(thread) {
                    for (place, state) in whole.states.iter().enumerate() {
                        let of_merged = merged.states.iter().position(|name| name == state).unwrap();
                        let (a, b) = (whole.cell(thread, bucket).unwrap()[place], merged.cell(other, bucket).unwrap()[of_merged]);
                        prop_assert!((a - b).abs() < 0.01, "{} {}", a, b);
                    }
                }
            }
        }
    }

    #[test]
    fn a_state_that_only_a_later_part_has_gets_a_place() {
        let mut timeline = Timeline::new(vec!["cpu".to_string()], vec![0, 10 * MS, 20 * MS]);
        timeline.enter(&stretch(1, 0, 10, &[10.0]));
        let mut later = Timeline::new(vec!["lock".to_string()], vec![0, 10 * MS, 20 * MS]);
        later.enter(&stretch(1, 10, 20, &[7.0]));
        timeline.merge(later);
        assert_eq!(
            (timeline.cell(0, 0).unwrap(), timeline.cell(0, 1).unwrap()),
            (&[10.0, 0.0][..], &[0.0, 7.0][..])
        );
    }

    #[test]
    fn merged_edges_keep_both_ends_and_the_times_that_are_asked_for() {
        let edges: Vec<i64> = (0..=600).collect();
        assert_eq!(merged_edges(&edges, &[], 600), edges);
        let merged = merged_edges(&edges, &[37, 411], 60);
        assert!(merged.len() <= 61, "{}", merged.len());
        assert!([0, 37, 411, 600].iter().all(|edge| merged.contains(edge)), "{merged:?}");
        assert_eq!(even_edges(5, 16, 3), [5, 8, 12, 16]);
    }

    proptest! {
        #[test]
        fn no_time_is_lost_whatever_the_buckets(
            parts in prop::collection::vec((0u32..4, 0i64..900, 1i64..90, 0f64..50.0, 0f64..50.0), 1..40),
            inner in prop::collection::btree_set(1i64..1_000, 0..30),
        ) {
            let edges = [0].into_iter().chain(inner).chain([1_000]).map(|edge| edge * MS).collect();
            let mut timeline = Timeline::new(states(), edges);
            let mut entered = [0.0; 2];
            for (tid, begin, length, cpu, lock) in &parts {
                timeline.enter(&stretch(*tid, *begin, begin + length, &[*cpu, *lock]));
                entered[0] += cpu;
                entered[1] += lock;
            }
            let all: Vec<usize> = (0..timeline.threads.len()).collect();
            let summed = timeline.summed(&all).iter().fold([0.0; 2], |sum, cell| [sum[0] + cell[0], sum[1] + cell[1]]);
            for (entered, summed) in entered.iter().zip(summed) {
                prop_assert!((entered - summed).abs() <= 1e-3 + entered * 1e-5, "{entered} {summed}");
            }
        }
    }
}

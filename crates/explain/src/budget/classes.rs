//! Parts of the budget by wait class.

use super::{Budget, ClassTime, Part};
use crate::model::SampledClass;

/// A part with fewer samples is not split, unless they are waits that stand for themselves.
pub(crate) const COUNT_MIN: u64 = 20;

/// Samples whose own length is this share of the time that they stand for are no matter of chance.
const SEEN_MIN: f64 = 0.5;

/// Divides each part as the sampled time in its state is divided.
pub(super) fn split(budget: &Budget, sampled: &[SampledClass]) -> Vec<ClassTime> {
    let mut classes = Vec::new();
    for part in &budget.parts {
        let of_part = || sampled.iter().filter(|class| class.state == part.part.name() && class.ns > 0.0);
        let (count, ns) = of_part().fold((0, 0.0), |(count, ns), class| (count + class.count, ns + class.ns));
        let seen_ns: f64 = of_part().map(|class| class.seen_ns.max(0.0)).sum();
        if count < COUNT_MIN && seen_ns < SEEN_MIN * ns || count == 0 {
            continue;
        }
        let mut split: Vec<ClassTime> = of_part()
            .filter(|class| part.part != Part::Cpu || !class.class.is_empty())
            .map(|class| ClassTime {
                part: part.part,
                class: class.class.clone(),
                ms: part.ms * class.ns / ns,
                count: class.count,
            })
            .collect();
        split.sort_by(|a, b| b.ms.total_cmp(&a.ms).then(a.class.cmp(&b.class)));
        classes.extend(split);
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::PartTime;

    fn sampled(state: &str, class: &str, count: u64, ns: f64) -> SampledClass {
        SampledClass { state: state.to_string(), class: class.to_string(), count, ns, seen_ns: 0.0 }
    }

    fn budget() -> Budget {
        let part = |part, ms| PartTime { part, ms, series: Vec::new() };
        Budget { parts: vec![part(Part::Cpu, 2.0), part(Part::Lock, 8.0)], ..Budget::default() }
    }

    fn split_classes(sampled: &[SampledClass]) -> Vec<(Part, String, f64)> {
        split(&budget(), sampled).into_iter().map(|class| (class.part, class.class, class.ms)).collect()
    }

    #[test]
    fn waits_add_up_to_their_part_and_of_the_cpus_only_what_spins_is_shown() {
        let sampled = [
            sampled("lock", "row_lock", 10, 100.0),
            sampled("lock", "redo_flush", 20, 600.0),
            sampled("lock", "", 5, 100.0),
            sampled("cpu", "", 90, 900.0),
            sampled("cpu", "page_latch", 10, 100.0),
        ];
        assert_eq!(
            split_classes(&sampled),
            [
                (Part::Cpu, "page_latch".to_string(), 0.2),
                (Part::Lock, "redo_flush".to_string(), 6.0),
                (Part::Lock, "".to_string(), 1.0),
                (Part::Lock, "row_lock".to_string(), 1.0),
            ]
        );
    }

    #[test]
    fn a_handful_of_samples_splits_nothing() {
        assert_eq!(split_classes(&[sampled("lock", "row_lock", COUNT_MIN - 1, 1e9)]), []);
        let long = SampledClass { seen_ns: 8e9, ..sampled("lock", "metadata_lock", 3, 1e10) };
        assert_eq!(
            split_classes(&[long]),
            [(Part::Lock, "metadata_lock".to_string(), 8.0)],
            "long waits stand for themselves"
        );
        assert_eq!(
            split_classes(&[sampled("file_sync", "redo_flush", 1_000, 1e9)]),
            [],
            "a part that is not there"
        );
    }
}

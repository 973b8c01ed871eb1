//! The machine against itself: two starts of the baseline, before anything is compared.

use serde::Serialize;
use whyso_words::{amount, milliseconds, number, percent, times};

use crate::journal::{LevelRecord, StartRecord};
use crate::spec::Spec;

/// Differences from which on something explains why two starts differ.
const STEAL_PERCENT: f64 = 1.0;
const OTHER_CPUS: f64 = 0.15;
const ARITHMETIC: f64 = 0.02;
const CLOCK: f64 = 0.02;
const IOWAIT_PERCENT: f64 = 3.0;
/// Pages read: how many times as many, and how many per second at least.
const PAGES: f64 = 1.5;
const PAGES_PER_S: f64 = 10.0;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// By users, as the study has them.
    pub levels: Vec<PairLevel>,
    /// What differs on the machine, in sentences. Empty unless a level differs.
    pub looks_like: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PairLevel {
    pub users: u32,
    /// The metric in either start.
    pub first: f64,
    pub second: f64,
    /// Second ÷ first.
    pub ratio: f64,
    /// Half the width of the 95 % interval of such a ratio, by what either start's own throughput varied, in per cent.
    pub within_percent: Option<f64>,
    /// By more than matters, and than what either start's own throughput varied.
    pub differs: bool,
}

impl Pair {
    pub fn differs(&self) -> bool {
        self.levels.iter().any(|level| level.differs)
    }
}

pub(super) fn pair(spec: &Spec, done: &[StartRecord]) -> Option<Pair> {
    let of = |block: u32| done.iter().find(|record| record.start.pair && record.start.block == block);
    let (first, second) = (of(0)?, of(1)?);
    let mut levels = Vec::new();
    let mut worst: Option<(f64, &LevelRecord, &LevelRecord)> = None;
    for &users in &spec.users {
        let at = |done: &'_ StartRecord| done.levels.iter().position(|level| level.users == users);
        let (Some(one), Some(other)) = (at(first), at(second)) else { continue };
        let (one, other) = (&first.levels[one], &second.levels[other]);
        let value =
            |level: &LevelRecord| level.measures.get(&spec.metric).copied().filter(|value| *value > 0.0);
        let (Some(before), Some(after)) = (value(one), value(other)) else { continue };
        let within_percent =
            one.half_width_percent.zip(other.half_width_percent).map(|(one, other)| one.hypot(other));
        let off_percent = 100.0 * ((after / before).ln().abs().exp() - 1.0);
        let differs = off_percent > spec.matters_percent.max(within_percent.unwrap_or(0.0));
        levels.push(PairLevel {
            users,
            first: before,
            second: after,
            ratio: after / before,
            within_percent,
            differs,
        });
        if differs && worst.is_none_or(|(most, ..)| off_percent > most) {
            worst = Some((off_percent, one, other));
        }
    }
    let looks_like = worst.map_or(Vec::new(), |(_, one, other)| looks_like((first, one), (second, other)));
    (!levels.is_empty()).then_some(Pair { levels, looks_like })
}

/// Returns what differs in addition to the metric, of what is known to slow servers down.
fn looks_like(first: (&StartRecord, &LevelRecord), second: (&StartRecord, &LevelRecord)) -> Vec<String> {
    let both = |name: &str| {
        let value = |level: &LevelRecord| level.measures.get(name).copied();
        value(first.1).zip(value(second.1))
    };
    let mut causes = Vec::new();
    if let Some((one, other)) =
        both("cpu_steal_percent").filter(|(one, other)| (one - other).abs() >= STEAL_PERCENT)
    {
        causes.push(format!(
            "the hypervisor took {} of the CPUs' time in the first and {} in the second (steal)",
            percent(one / 100.0),
            percent(other / 100.0)
        ));
    }
    if let Some((one, other)) = both("other_cpus").filter(|(one, other)| (one - other).abs() >= OTHER_CPUS) {
        causes.push(format!(
            "other programs kept {} CPUs busy in the first and {} in the second",
            number(one),
            number(other)
        ));
    }
    let (before, after) = (first.0.machine, second.0.machine);
    if let Some((one, other)) =
        before.mhz.zip(after.mhz).filter(|(one, other)| (one / other).ln().abs() >= CLOCK)
    {
        causes.push(format!(
            "the CPUs ran at {} before the first and at {} before the second",
            amount(one.round(), "MHz"),
            amount(other.round(), "MHz")
        ));
    }
    if let Some(more) =
        before.throttled.zip(after.throttled).map(|(one, other)| other - one).filter(|more| *more > 0.0)
    {
        causes.push(format!(
            "the CPUs were slowed down for their heat {} between both",
            times(more.round() as u64)
        ));
    }
    let (one, other) = (before.arithmetic_ms, after.arithmetic_ms);
    if one > 0.0 && other > 0.0 && (one / other).ln().abs() >= ARITHMETIC {
        causes.push(format!(
            "the same arithmetic took {} before the first and {} before the second: clock frequency, heat, or a neighbour on the same core",
            milliseconds(one),
            milliseconds(other)
        ));
    }
    if let Some((one, other)) = both("buffer_pool_reads_per_s")
        .filter(|(one, other)| one.max(*other) >= PAGES_PER_S && one.max(*other) > PAGES * one.min(*other))
    {
        causes.push(format!(
            "the server read {} pages per second in the first and {} in the second: its buffer pool or the page cache did not hold the same",
            number(one.round()),
            number(other.round())
        ));
    }
    if let Some((one, other)) =
        both("cpu_iowait_percent").filter(|(one, other)| (one - other).abs() >= IOWAIT_PERCENT)
    {
        causes.push(format!(
            "CPUs waited for the disk {} of the time in the first and {} in the second",
            percent(one / 100.0),
            percent(other / 100.0)
        ));
    }
    if causes.is_empty() {
        causes.push("nothing that was watched explains it: not the hypervisor, other programs, the CPUs' speed, or the disk".to_string());
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::super::tests::finished_starts;
    use super::*;
    use crate::journal::Machine;

    fn two(second: f64) -> (Spec, Vec<StartRecord>) {
        let text = "title = 't'\nquestion = 'q'\nusers = [4]\nbaseline = 'a'\nmatters_percent = 3\n[[variant]]\nname = 'a'\n";
        let spec = Spec::parse(text, false).unwrap();
        let value = |start: crate::Start, _| Some(if start.block == 1 { second } else { 1000.0 });
        let mut found = finished_starts(&spec, &spec.pair(), value);
        for record in &mut found {
            record.levels[0].half_width_percent = Some(2.0);
        }
        (spec, found)
    }

    #[test]
    fn a_machine_that_differs_from_itself_is_shown_with_what_it_looks_like() {
        let (spec, mut found) = two(900.0);
        found[0].machine = Machine { arithmetic_ms: 10.0, ..Machine::default() };
        found[1].machine = Machine { arithmetic_ms: 11.0, ..Machine::default() };
        for (record, steal) in found.iter_mut().zip([0.2, 9.0]) {
            record.levels[0].measures.insert("cpu_steal_percent".to_string(), steal);
        }
        let pair = pair(&spec, &found).unwrap();
        assert!(pair.differs() && (pair.levels[0].ratio - 0.9).abs() < 1e-9);
        assert_eq!(pair.looks_like.len(), 2, "{pair:?}");
        assert!(pair.looks_like[0].contains("0.2 %") && pair.looks_like[0].contains("9 %"));
        let (spec, found) = two(900.0);
        assert!(super::pair(&spec, &found).unwrap().looks_like[0].contains("nothing that was watched"));
    }

    #[test]
    fn what_either_start_varied_by_itself_is_no_difference() {
        let (spec, found) = two(980.0);
        assert!(!pair(&spec, &found).unwrap().differs(), "less than matters");
        let (spec, mut found) = two(960.0);
        assert!(pair(&spec, &found).unwrap().differs());
        found[0].levels[0].half_width_percent = Some(9.0);
        assert!(!pair(&spec, &found).unwrap().differs(), "it varied more within");
        assert_eq!(pair(&spec, &found[..1]), None);
    }
}

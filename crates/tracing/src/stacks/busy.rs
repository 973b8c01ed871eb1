//! The functions in which the server's threads were on CPUs, during a run: a summary every few seconds, named only by symbols.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use whyso_stacks::{Frame, ModuleId, Names, Unwinding};

/// The time that one summary covers.
const SUMMARY_LENGTH: Duration = Duration::from_secs(10);
/// Most functions of a summary.
const FUNCTIONS_MAX: usize = 3;
/// Most places that are named, those with the most samples: two that begin at different places may have one name.
const NAMED_MAX: usize = 12;
/// Most places in the kernel that are named, whose functions begin at unknown addresses.
const KERNEL_NAMED_MAX: usize = 48;

/// The functions with the most time of their own on CPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BusyFunctions {
    /// Length of the time that it covers, in seconds, up to now.
    pub seconds: f64,
    /// How many CPUs all threads kept busy, on average.
    pub cpus: f64,
    /// Name, and its part of all time on CPUs, 0 to 1; the largest first. What the compiler put into a function counts as that function's.
    pub functions: Vec<(String, f64)>,
}

/// The latest summary that nobody has taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatestFunctions(Arc<Mutex<Option<BusyFunctions>>>);

impl LatestFunctions {
    pub(crate) fn take(&self) -> Option<BusyFunctions> {
        self.0.lock().ok()?.take()
    }

    fn put(&self, summary: BusyFunctions) {
        if let Ok(mut last) = self.0.lock() {
            *last = Some(summary);
        }
    }
}

pub(super) struct Busy {
    latest: LatestFunctions,
    began: Instant,
    /// By where a function begins; in the kernel, by the place itself.
    ns: HashMap<Frame, u64>,
}

impl Busy {
    pub(super) fn new(latest: LatestFunctions) -> Busy {
        Busy { latest, began: Instant::now(), ns: HashMap::new() }
    }

    /// A thread was found on a CPU; `innermost` is where.
    pub(super) fn enter(&mut self, innermost: Frame, weight_ns: u64, unwinding: &Unwinding) {
        *self.ns.entry(unwinding.function_of(innermost)).or_default() += weight_ns;
    }

    /// Publishes what was found since the last time, once that is long enough.
    pub(super) fn publish_when_due(&mut self, names: &mut Names, unwinding: &Unwinding) {
        let length = self.began.elapsed();
        if length < SUMMARY_LENGTH {
            return;
        }
        self.began = Instant::now();
        let found = std::mem::take(&mut self.ns);
        if !found.is_empty() {
            self.latest
                .put(summarize(found, length.as_secs_f64(), |frame| names.symbol_of(frame, unwinding)));
        }
    }
}

fn summarize(
    found: HashMap<Frame, u64>,
    seconds: f64,
    mut name: impl FnMut(Frame) -> String,
) -> BusyFunctions {
    let all_ns: u64 = found.values().sum();
    let (mut kernel, mut user): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(frame, _)| frame.module == ModuleId::KERNEL);
    for (list, most) in [(&mut kernel, KERNEL_NAMED_MAX), (&mut user, NAMED_MAX)] {
        list.sort_unstable_by_key(|(frame, ns)| (std::cmp::Reverse(*ns), *frame));
        list.truncate(most);
    }
    let mut by_name: HashMap<String, u64> = HashMap::new();
    for (frame, ns) in kernel.into_iter().chain(user) {
        *by_name.entry(name(frame)).or_default() += ns;
    }
    let mut functions: Vec<(String, u64)> = by_name.into_iter().collect();
    functions.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    functions.truncate(FUNCTIONS_MAX);
    let share = |(name, ns): (String, u64)| (name, ns as f64 / all_ns.max(1) as f64);
    BusyFunctions {
        seconds,
        cpus: all_ns as f64 / 1e9 / seconds,
        functions: functions.into_iter().map(share).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_one_function_are_added_up_and_the_busiest_are_listed() {
        let at = |module, address| Frame { module, address };
        let found = HashMap::from([
            (at(ModuleId::KERNEL, 1), 1_000_000_000),
            (at(ModuleId::KERNEL, 2), 1_500_000_000),
            (at(ModuleId(2), 1), 2_000_000_000),
            (at(ModuleId(2), 9), 400_000_000),
            (at(ModuleId(3), 9), 100_000_000),
        ]);
        let name = |frame: Frame| match (frame.module, frame.address) {
            (ModuleId::KERNEL, _) => "send".to_string(),
            (_, address) => format!("f{address}"),
        };
        let summary = summarize(found, 10.0, name);
        assert_eq!(summary.cpus, 0.5);
        let expected = [("send", 0.5), ("f1", 0.4), ("f9", 0.1)];
        assert_eq!(summary.functions, expected.map(|(name, share)| (name.to_string(), share)));
    }

    #[test]
    fn of_thousands_of_functions_only_the_busiest_are_named() {
        let frames = (0..5_000).map(|at| (Frame { module: ModuleId(2), address: at }, 1 + at));
        let mut named = 0;
        let summary = summarize(frames.collect(), 10.0, |frame| {
            named += 1;
            frame.address.to_string()
        });
        assert_eq!((summary.functions.len(), named), (FUNCTIONS_MAX, NAMED_MAX));
        assert_eq!(summary.functions[0].0, "4999");
    }

    #[test]
    fn a_summary_is_taken_once() {
        let latest = LatestFunctions::default();
        latest.put(BusyFunctions { seconds: 10.0, ..BusyFunctions::default() });
        assert_eq!(latest.take().map(|summary| summary.seconds), Some(10.0));
        assert_eq!(latest.take(), None);
    }
}

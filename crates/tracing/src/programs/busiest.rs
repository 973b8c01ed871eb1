//! The busiest functions of each program while a recording runs: counters that charts and tables read like any other series.

use std::cmp::Reverse;
use std::collections::HashMap;

use whyso_record::data::{Kind, SeriesKey};
use whyso_stacks::{Frame, ModuleId};

/// Source of the series.
pub(super) const SOURCE: &str = "programs";
/// CPU time of a program, by its samples.
const PROGRAM_NS: &str = "sampled_ns";
/// CPU time in a function itself, by samples; the instance is "PROGRAM: FUNCTION".
const FUNCTION_NS: &str = "function_ns";
/// Programs whose functions are named at a time, those with the most time.
const PROGRAMS_MAX: usize = 16;
/// Functions that a program gets at a time.
const FUNCTIONS_MAX: usize = 5;
/// Places of a program that are named at a time, those with the most samples: in files, and in the kernel, where each is a
/// place within a function.
const NAMED_MAX: usize = 8;
const KERNEL_NAMED_MAX: usize = 24;
/// Names that are kept.
const NAMES_MAX: usize = 8192;
/// Series of programs and of functions in one recording.
const PROGRAM_SERIES_MAX: usize = 100;
const FUNCTION_SERIES_MAX: usize = 400;

/// Sums since the last publication, and the counters.
#[derive(Debug)]
pub(super) struct Busiest {
    host: String,
    /// By program, and by where a function begins; in the kernel, by the place itself.
    found: HashMap<String, HashMap<Frame, u64>>,
    names: HashMap<Frame, String>,
    programs: HashMap<String, u64>,
    functions: HashMap<(String, String), u64>,
}

impl Busiest {
    /// `host`: of the machine's other series.
    pub(super) fn new(host: &str) -> Busiest {
        Busiest {
            host: host.to_string(),
            found: HashMap::new(),
            names: HashMap::new(),
            programs: HashMap::new(),
            functions: HashMap::new(),
        }
    }

    /// A program was found on a CPU. `place`: where; `None` if its stack is not known.
    pub(super) fn enter(&mut self, program: &str, place: Option<Frame>, weight_ns: u64) {
        let has_room = self.programs.len() < PROGRAM_SERIES_MAX || self.programs.contains_key(program);
        if !has_room {
            return;
        }
        *self.programs.entry(program.to_string()).or_default() += weight_ns;
        if let Some(place) = place {
            let of_program = self.found.entry(program.to_string()).or_default();
            *of_program.entry(place).or_default() += weight_ns;
        }
    }

    /// Returns every counter with its value. `name`: the function at a place, which takes time; new ones are asked for within bounds.
    pub(super) fn publish(&mut self, mut name: impl FnMut(Frame) -> String) -> Vec<(SeriesKey, u64)> {
        if self.names.len() > NAMES_MAX {
            self.names.clear();
        }
        let mut found: Vec<(String, HashMap<Frame, u64>)> = self.found.drain().collect();
        found.sort_by_key(|(program, places)| (Reverse(places.values().sum::<u64>()), program.clone()));
        for (place, (program, places)) in found.into_iter().enumerate() {
            let by_name = self.name_places(places, place < PROGRAMS_MAX, &mut name);
            self.count(&program, by_name);
        }
        let key = |metric: &str, instance: String| SeriesKey {
            host: self.host.clone(),
            source: SOURCE.to_string(),
            metric: metric.to_string(),
            instance,
            kind: Kind::Counter,
            unit: "ns".to_string(),
        };
        let of_programs = self.programs.iter().map(|(program, ns)| (key(PROGRAM_NS, program.clone()), *ns));
        let of_functions = self.functions.iter();
        let of_functions = of_functions
            .map(|((program, function), ns)| (key(FUNCTION_NS, format!("{program}: {function}")), *ns));
        let mut counters: Vec<(SeriesKey, u64)> = of_programs.chain(of_functions).collect();
        counters.sort_by(|a, b| (&a.0.metric, &a.0.instance).cmp(&(&b.0.metric, &b.0.instance)));
        counters
    }

    /// The time by function, of the places whose names are known or may be asked for.
    fn name_places(
        &mut self,
        places: HashMap<Frame, u64>,
        may_ask: bool,
        name: &mut impl FnMut(Frame) -> String,
    ) -> Vec<(String, u64)> {
        let mut places: Vec<(Frame, u64)> = places.into_iter().collect();
        places.sort_unstable_by_key(|(frame, ns)| (Reverse(*ns), *frame));
        let (mut in_kernel, mut in_files) = (KERNEL_NAMED_MAX, NAMED_MAX);
        let mut by_name: HashMap<String, u64> = HashMap::new();
        for (frame, ns) in places {
            let left = if frame.module == ModuleId::KERNEL { &mut in_kernel } else { &mut in_files };
            let is_near_top = *left > 0;
            *left = left.saturating_sub(1);
            if is_near_top && may_ask && !self.names.contains_key(&frame) {
                self.names.insert(frame, name(frame));
            }
            if let Some(name) = self.names.get(&frame) {
                *by_name.entry(name.clone()).or_default() += ns;
            }
        }
        let mut by_name: Vec<(String, u64)> = by_name.into_iter().collect();
        by_name.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        by_name
    }

    /// Counts the first functions, and those that were counted before.
    fn count(&mut self, program: &str, by_name: Vec<(String, u64)>) {
        for (place, (function, ns)) in by_name.into_iter().enumerate() {
            let has_room = place < FUNCTIONS_MAX && self.functions.len() < FUNCTION_SERIES_MAX;
            let key = (program.to_string(), function);
            if has_room || self.functions.contains_key(&key) {
                *self.functions.entry(key).or_default() += ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(module: u32, address: u64) -> Option<Frame> {
        Some(Frame { module: ModuleId(module), address })
    }

    fn name(frame: Frame) -> String {
        if frame.module == ModuleId::KERNEL { "send".to_string() } else { format!("f{}", frame.address) }
    }

    fn values(counters: &[(SeriesKey, u64)]) -> Vec<(&str, &str, u64)> {
        counters.iter().map(|(key, ns)| (key.metric.as_str(), key.instance.as_str(), *ns)).collect()
    }

    #[test]
    fn functions_of_each_program_are_counters_that_only_grow() {
        let mut busiest = Busiest::new("server");
        busiest.enter("sh", at(2, 7), 30);
        busiest.enter("sh", at(1, 1), 5);
        busiest.enter("sh", at(1, 2), 6);
        busiest.enter("sh", None, 100);
        busiest.enter("cron", at(3, 7), 4);
        let first = busiest.publish(name);
        let expected = [
            ("function_ns", "cron: f7", 4),
            ("function_ns", "sh: f7", 30),
            ("function_ns", "sh: send", 11),
            ("sampled_ns", "cron", 4),
            ("sampled_ns", "sh", 141),
        ];
        assert_eq!(values(&first), expected);
        assert!(first.iter().all(|(key, _)| key.host == "server" && key.kind == Kind::Counter));
        busiest.enter("sh", at(2, 7), 1);
        let second = busiest.publish(|_| unreachable!("its name is known"));
        assert_eq!(values(&second)[1], ("function_ns", "sh: f7", 31));
        assert_eq!(second.len(), first.len(), "what did not run stays");
    }

    #[test]
    fn names_and_series_are_bounded() {
        let mut busiest = Busiest::new("server");
        let mut asked = 0;
        for round in 0..200 {
            for program in 0..200 {
                for place in 0..20 {
                    busiest.enter(&format!("p{program}"), at(2, round * 1_000 + place), 1);
                }
            }
            let counters = busiest.publish(|frame| {
                asked += 1;
                name(frame)
            });
            assert!(counters.len() <= PROGRAM_SERIES_MAX + FUNCTION_SERIES_MAX, "{}", counters.len());
            assert!(busiest.names.len() <= NAMES_MAX + PROGRAMS_MAX * (NAMED_MAX + KERNEL_NAMED_MAX));
        }
        assert!(asked <= 200 * PROGRAMS_MAX * NAMED_MAX, "{asked}");
    }
}

//! The busiest functions of each program on a machine, next to the CPU time that the kernel counted.

use crate::model::Counter;
use crate::programs::{Program, ProgramKind, Programs};

/// Source of the counters of programs and functions that grow while a recording runs.
const SOURCE: &str = "programs";
/// What whyso itself is called in them: another whyso, such as one that loads, is a program like others.
pub const OBSERVER: &str = "whyso (this one)";
/// Between a program and its function in the name of a counter.
const SEPARATOR: &str = ": ";

/// What was sampled, by the name that the recording has of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampledOrigin {
    /// The server, or the processes that were recorded.
    Server,
    #[default]
    Process,
    /// Threads of the kernel.
    Kernel,
    /// whyso itself.
    Observer,
}

/// A function that a program was found in.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramFunction {
    pub name: String,
    /// The file that holds it, or "[kernel]"; empty where that is not known.
    pub module: String,
    /// Its part of the program's sampled time, 0 to 1, by what is in the function itself.
    pub share: f64,
}

/// What samples on CPUs show of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledProgram {
    pub name: String,
    pub origin: SampledOrigin,
    /// CPUs that it kept busy, in the mean.
    pub cpus: f64,
    /// Number of samples; `None` where only their time is known.
    pub samples: Option<u64>,
    /// The one with the most time first.
    pub functions: Vec<ProgramFunction>,
}

/// A program, by both sources.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramLine {
    pub name: String,
    /// `None`: the kernel did not count it as a program of its own.
    pub counted: Option<Program>,
    /// `None`: no sample found it.
    pub sampled: Option<SampledProgram>,
}

impl ProgramLine {
    /// CPUs that it kept busy: as counted, or else as sampled.
    pub fn cpus(&self) -> f64 {
        let sampled = || self.sampled.as_ref().map_or(0.0, |sampled| sampled.cpus);
        self.counted.as_ref().map_or_else(sampled, |counted| counted.cpus)
    }

    /// What it is, as text.
    pub fn words(&self) -> &'static str {
        match (&self.counted, &self.sampled) {
            (Some(counted), _) => counted.kind.words(),
            (None, Some(sampled)) => match sampled.origin {
                SampledOrigin::Server => ProgramKind::Server.words(),
                SampledOrigin::Process => "processes without a count of this name",
                SampledOrigin::Kernel => "threads of the kernel",
                SampledOrigin::Observer => ProgramKind::Whyso.words(),
            },
            (None, None) => "",
        }
    }

    fn is_rest(&self) -> bool {
        self.counted.as_ref().is_some_and(|counted| counted.kind == ProgramKind::Rest)
    }
}

/// Joins both by name: the program with the most CPU time first, and the rest last. Counted programs of one name are added up, as samples
/// do not separate them.
pub fn join(counted: Vec<Program>, mut sampled: Vec<SampledProgram>) -> Vec<ProgramLine> {
    let mut lines: Vec<ProgramLine> = Vec::new();
    for program in counted {
        let place = sampled.iter().position(|sampled| is_same(&program, sampled));
        let sampled = place.map(|place| sampled.swap_remove(place));
        let is_of_others = |kind: ProgramKind| {
            matches!(kind, ProgramKind::Client | ProgramKind::Other | ProgramKind::Unclear)
        };
        let is_same = |line: &&mut ProgramLine| {
            let counted = line.counted.as_ref().map(|counted| counted.kind);
            line.name == program.name && is_of_others(program.kind) && counted.is_some_and(is_of_others)
        };
        let same = lines.iter_mut().find(is_same).filter(|_| sampled.is_none());
        match same.and_then(|line| line.sampled.as_ref().and(line.counted.as_mut())) {
            Some(first) => first.cpus += program.cpus,
            None => {
                lines.push(ProgramLine { name: program.name.clone(), counted: Some(program), sampled });
            }
        }
    }
    lines.extend(sampled.into_iter().map(|sampled| ProgramLine {
        name: sampled.name.clone(),
        counted: None,
        sampled: Some(sampled),
    }));
    lines.sort_by(|a, b| {
        (a.is_rest().cmp(&b.is_rest())).then(b.cpus().total_cmp(&a.cpus())).then_with(|| a.name.cmp(&b.name))
    });
    lines
}

fn is_same(counted: &Program, sampled: &SampledProgram) -> bool {
    match (counted.kind, sampled.origin) {
        (ProgramKind::Server, SampledOrigin::Server) | (ProgramKind::Whyso, SampledOrigin::Observer) => true,
        (ProgramKind::Client | ProgramKind::Other | ProgramKind::Unclear, SampledOrigin::Process) => {
            counted.name == sampled.name
        }
        _ => false,
    }
}

/// Whether a series is one of those that [`sampled_in`] reads.
pub fn has(source: &str) -> bool {
    source == SOURCE
}

/// Reads the programs that were sampled over a window from the counters of a recording that is running. `most`: functions of each.
pub fn sampled_in(counters: &[Counter], seconds: f64, most: usize) -> Vec<SampledProgram> {
    let grown = |metric: &'static str| {
        counters.iter().filter(move |counter| {
            let series = &counter.series;
            series.source == SOURCE
                && series.metric == metric
                && counter.increase > 0.0
                && counter.increase < 1e24
        })
    };
    let program = |counter: &Counter| {
        let name = counter.series.instance.as_str();
        let function = |of: &Counter| {
            let function = of.series.instance.strip_prefix(name)?.strip_prefix(SEPARATOR)?;
            let share = (of.increase / counter.increase).min(1.0);
            Some(ProgramFunction { name: function.to_string(), module: String::new(), share })
        };
        let mut functions: Vec<ProgramFunction> = grown("function_ns").filter_map(function).collect();
        functions.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
        functions.truncate(most);
        let origin = match name {
            OBSERVER => SampledOrigin::Observer,
            _ if name.starts_with('[') => SampledOrigin::Kernel,
            _ => SampledOrigin::Process,
        };
        let cpus = counter.increase / 1e9 / seconds;
        SampledProgram { name: name.to_string(), origin, cpus, samples: None, functions }
    };
    if seconds.is_nan() || seconds <= 0.0 {
        return Vec::new();
    }
    grown("sampled_ns").map(program).collect()
}

impl Programs {
    /// The counted programs, next to what samples show of them.
    pub fn with_functions(self, sampled: Vec<SampledProgram>) -> Vec<ProgramLine> {
        join(self.each, sampled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SeriesName;

    fn program(kind: ProgramKind, name: &str, cpus: f64) -> Program {
        Program { kind, name: name.to_string(), cpus, disk_bytes_per_s: None, resident_bytes: None }
    }

    fn sampled(origin: SampledOrigin, name: &str, cpus: f64) -> SampledProgram {
        SampledProgram { name: name.to_string(), origin, cpus, ..SampledProgram::default() }
    }

    #[test]
    fn what_was_sampled_is_joined_with_what_was_counted_by_name_and_the_rest_stays_last() {
        let counted = vec![
            program(ProgramKind::Server, "server", 0.8),
            program(ProgramKind::Other, "python3", 0.5),
            program(ProgramKind::Client, "python3", 0.2),
            program(ProgramKind::Whyso, "whyso", 0.05),
            program(ProgramKind::Other, "idle-one", 0.01),
            program(ProgramKind::Rest, "the rest", 0.4),
        ];
        let found = vec![
            sampled(SampledOrigin::Kernel, "[kworker]", 0.3),
            sampled(SampledOrigin::Process, "python3", 0.71),
            sampled(SampledOrigin::Observer, "whyso", 0.06),
            sampled(SampledOrigin::Server, "server", 0.79),
            sampled(SampledOrigin::Process, "the rest", 0.02),
        ];
        // A program of others that is called like the database is another one.
        let foreign = join(
            vec![program(ProgramKind::Server, "server", 0.8), program(ProgramKind::Other, "server", 0.3)],
            vec![sampled(SampledOrigin::Server, "server", 0.79)],
        );
        assert_eq!(foreign.iter().map(ProgramLine::cpus).collect::<Vec<_>>(), [0.8, 0.3]);
        let lines = join(counted, found);
        let shown: Vec<(&str, f64, Option<f64>)> = lines
            .iter()
            .map(|line| (line.name.as_str(), line.cpus(), line.sampled.as_ref().map(|sampled| sampled.cpus)))
            .collect();
        assert_eq!(
            shown,
            [
                ("server", 0.8, Some(0.79)),
                ("python3", 0.7, Some(0.71)),
                ("[kworker]", 0.3, Some(0.3)),
                ("whyso", 0.05, Some(0.06)),
                ("the rest", 0.02, Some(0.02)),
                ("idle-one", 0.01, None),
                ("the rest", 0.4, None),
            ]
        );
        assert_eq!(lines[2].words(), "threads of the kernel");
        assert_eq!(lines[3].words(), "measures and records");
    }

    #[test]
    fn counters_of_functions_belong_to_their_program() {
        let counter = |metric: &str, instance: &str, seconds: f64| {
            let [host, source, metric, instance] =
                ["server", "programs", metric, instance].map(str::to_string);
            let series = SeriesName { host, source, metric, instance };
            Counter { series, unit: "ns".to_string(), increase: seconds * 1e9 }
        };
        let counters = [
            counter("sampled_ns", "sh", 4.0),
            counter("sampled_ns", "sh2", 1.0),
            counter("sampled_ns", "gone", 0.0),
            counter("function_ns", "sh: loop", 3.0),
            counter("function_ns", "sh: read", 1.0),
            counter("function_ns", "sh: std::vec<int>: push", 0.5),
            counter("function_ns", "sh2: other", 1.0),
        ];
        let found = sampled_in(&counters, 10.0, 2);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name.as_str(), found[0].cpus), ("sh", 0.4));
        let functions: Vec<_> =
            found[0].functions.iter().map(|function| (function.name.as_str(), function.share)).collect();
        assert_eq!(functions, [("loop", 0.75), ("read", 0.25)]);
        assert_eq!(found[1].functions[0].name, "other");
        assert_eq!(sampled_in(&counters, 0.0, 2), []);
    }
}

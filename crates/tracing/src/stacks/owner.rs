//! Whose stacks are taken, and where they are recorded.

use whyso_record::Recorder;
use whyso_record::data::{
    Kind, ProgramSample, ProgramWait, SeriesId, SeriesKey, StackFrame, StackSample, StackWait, Value,
};
use whyso_trace::Cost;

use crate::cost::program_values;

/// Between the first numbers of the stacks of two programs. No table has as many.
const NUMBERS: u32 = 1_000_000;

/// Whose stacks are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Server,
    /// A program that is recorded next to a first target.
    Program(StacksOfProgram),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StacksOfProgram {
    /// What it is called in the recording.
    pub(crate) name: String,
    /// Its place among these programs: the numbers of their stacks differ.
    pub(crate) place: u32,
    /// Its threads on CPUs, too. Another thread of whyso samples these where the stacks of all programs are asked for.
    pub(crate) on_cpu: bool,
}

impl Owner {
    pub(super) fn takes_cpu(&self) -> bool {
        match self {
            Owner::Server => true,
            Owner::Program(program) => program.on_cpu,
        }
    }

    /// Hands samples over, with the process of each.
    pub(super) fn samples(&self, recorder: &Recorder, samples: Vec<(u32, StackSample)>) {
        match self {
            Owner::Server => {
                let samples: Vec<StackSample> = samples.into_iter().map(|(_, sample)| sample).collect();
                recorder.stacks(&samples);
            }
            Owner::Program(program) => {
                let of_program = |(pid, sample): (u32, StackSample)| ProgramSample {
                    t_ns: sample.t_ns,
                    pid,
                    program: program.name.clone(),
                    origin: "process".to_string(),
                    stack: program.number(sample.stack),
                    weight_ns: sample.weight_ns,
                };
                recorder.program_stacks(&samples.into_iter().map(of_program).collect::<Vec<_>>());
            }
        }
    }

    pub(super) fn waits(&self, recorder: &Recorder, waits: Vec<StackWait>) {
        match self {
            Owner::Server => recorder.waits(&waits),
            Owner::Program(program) => {
                let of_program = |wait: StackWait| ProgramWait {
                    t_ns: wait.t_ns,
                    tid: wait.tid,
                    program: program.name.clone(),
                    state: wait.state,
                    length_ns: wait.length_ns,
                    weight_ns: wait.weight_ns,
                    stack: program.number(wait.stack),
                };
                recorder.program_waits(&waits.into_iter().map(of_program).collect::<Vec<_>>());
            }
        }
    }

    pub(super) fn frames(&self, recorder: &Recorder, mut frames: Vec<StackFrame>) {
        match self {
            Owner::Server => recorder.frames(&frames),
            Owner::Program(program) => {
                frames.iter_mut().for_each(|frame| frame.stack = program.number(frame.stack));
                recorder.program_frames(&frames);
            }
        }
    }

    /// The source of what taking the stacks costs and loses.
    pub(super) fn source(&self) -> &'static str {
        match self {
            Owner::Server => "stacks",
            Owner::Program(_) => "program_waits",
        }
    }

    pub(super) fn series(
        &self,
        recorder: &Recorder,
        (metric, instance): (&str, &str),
        kind: Kind,
        unit: &str,
    ) -> SeriesId {
        let instance = match self {
            Owner::Server => instance.to_string(),
            Owner::Program(program) if instance.is_empty() => program.name.clone(),
            Owner::Program(program) => format!("{}: {instance}", program.name),
        };
        recorder.series(&SeriesKey {
            host: "client".to_string(),
            source: self.source().to_string(),
            metric: metric.to_string(),
            instance,
            kind,
            unit: unit.to_string(),
        })
    }

    /// What the programs in the kernel cost. Those of other programs than the server are the same ones, each loaded again.
    pub(super) fn cost(&self, recorder: &Recorder, cost: &[Cost]) -> Vec<(SeriesId, Value)> {
        match self {
            Owner::Server => program_values(recorder, self.source(), cost),
            Owner::Program(owner) => {
                let named = |cost: &Cost| Cost {
                    program: format!("{}: {}", owner.name, cost.program),
                    ..cost.clone()
                };
                program_values(recorder, self.source(), &cost.iter().map(named).collect::<Vec<_>>())
            }
        }
    }
}

impl StacksOfProgram {
    /// The number of a stack among those of all programs. Those of samples of all programs on the machine come first.
    fn number(&self, stack: u32) -> u32 {
        (self.place + 1) * NUMBERS + stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_two_programs_have_different_numbers() {
        let of = |place| StacksOfProgram { name: String::new(), place, on_cpu: true };
        assert!(super::super::STACKS_MAX < NUMBERS as usize);
        assert_eq!([of(0).number(0), of(0).number(7), of(1).number(0)], [1_000_000, 1_000_007, 2_000_000]);
    }
}

//! The sampled time of connections' threads by wait class, level by level.

use std::collections::BTreeMap;
use std::ops::Range;

use whyso_explain::model::{LevelInput, Part, SampledClass};
use whyso_explain::profile::{FunctionName, Rules};
use whyso_record::Recording;
use whyso_record::data::{StackFrame, StackSample, StackWait};
use whyso_trace::{Role, State};

use crate::Error;

/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    let frames = recording.frames()?;
    if frames.is_empty() {
        return Ok(());
    }
    let (samples, waits) = (recording.stacks(None)?, recording.waits(None)?);
    let mut classes = Classes::new(frames);
    for level in levels {
        let window = level.begin_ns..level.end_ns;
        level.wait_classes = classes.within(&window, &samples, &waits);
    }
    Ok(())
}

struct Classes {
    rules: Rules,
    /// Functions by stack, innermost first.
    stacks: BTreeMap<u32, Vec<FunctionName>>,
    /// What was found out already, by stack and state.
    known: BTreeMap<(u32, String), String>,
}

impl Classes {
    fn new(frames: Vec<StackFrame>) -> Classes {
        let mut stacks: BTreeMap<u32, Vec<FunctionName>> = BTreeMap::new();
        for frame in frames {
            let function = FunctionName { name: frame.function, module: frame.module };
            stacks.entry(frame.stack).or_default().push(function);
        }
        Classes { rules: Rules::built_in(), stacks, known: BTreeMap::new() }
    }

    fn within(
        &mut self,
        window: &Range<i64>,
        samples: &[StackSample],
        waits: &[StackWait],
    ) -> Vec<SampledClass> {
        let is_ours = |t_ns: i64, role: &str| window.contains(&t_ns) && role == Role::Connection.name();
        let mut sums: BTreeMap<(String, String), (u64, f64)> = BTreeMap::new();
        let mut enter = |stack: u32, state: &str, ns: u64| {
            let sum = sums.entry((state.to_string(), self.class(stack, state))).or_default();
            *sum = (sum.0 + 1, sum.1 + ns as f64);
        };
        for sample in samples.iter().filter(|one| is_ours(one.t_ns, &one.role)) {
            enter(sample.stack, State::Cpu.name(), sample.weight_ns);
        }
        for wait in waits.iter().filter(|one| is_ours(one.t_ns, &one.role)) {
            enter(wait.stack, &wait.state, wait.weight_ns);
        }
        let class = |((state, class), (count, ns))| SampledClass { state, class, count, ns };
        sums.into_iter().map(class).filter(|one| is_part(&one.state)).collect()
    }

    fn class(&mut self, stack: u32, state: &str) -> String {
        let key = (stack, state.to_string());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let functions = self.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
        // Rules speak of files in one word.
        let metric = if state.starts_with("file_") { "io" } else { state };
        let class = self.rules.class(functions, metric).unwrap_or_default().to_string();
        self.known.insert(key, class.clone());
        class
    }
}

fn is_part(state: &str) -> bool {
    Part::ALL.iter().any(|part| part.name() == state)
}

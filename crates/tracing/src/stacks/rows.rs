//! From stacks of addresses to rows of functions.

use whyso_record::data::StackFrame;
use whyso_stacks::{End, Frame, Function, ModuleId, Names, Stack, Unwinding};

/// How the names of functions begin that run only because whyso traces.
const OURS: [&str; 4] = ["bpf_prog_", "bpf_trace_run", "__bpf_trace_", "__traceiter_"];

/// The functions of stacks. A stack that does not reach the function that its thread began with ends in `[cut]` or `[lost]`. `[cut]`: more
/// of it was not copied. `[lost]`: its next frame could not be found.
pub(crate) fn frames(stacks: &[Stack], names: &mut Names, unwinding: &Unwinding) -> Vec<StackFrame> {
    let mut distinct: Vec<Frame> = stacks.iter().flat_map(|stack| stack.frames.iter().copied()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let named = names.of(&distinct, unwinding);
    let mut rows = Vec::new();
    for Stack { id, frames, end } in stacks {
        let mut depth = 0;
        for frame in frames.iter() {
            let functions = named.get(frame).map_or(&[][..], Vec::as_slice);
            let build_id = unwinding.module(frame.module).and_then(|module| module.build_id.clone());
            for (place, function) in functions.iter().enumerate() {
                if depth == 0 && frame.module == ModuleId::KERNEL && is_ours(function) {
                    continue;
                }
                rows.push(StackFrame {
                    stack: id.0,
                    depth,
                    function: function.name.clone(),
                    module: function.module.clone(),
                    build_id: build_id.clone(),
                    address: frame.address,
                    source_file: function.file.clone(),
                    line: function.line,
                    inlined: place + 1 < functions.len(),
                });
                depth += 1;
            }
        }
        let ending = match end {
            End::Root if depth > 0 => continue,
            End::Cut => "[cut]",
            End::Root | End::Lost => "[lost]",
        };
        rows.push(StackFrame {
            stack: id.0,
            depth,
            function: ending.to_string(),
            module: String::new(),
            build_id: None,
            address: 0,
            source_file: None,
            line: None,
            inlined: false,
        });
    }
    rows
}

fn is_ours(function: &Function) -> bool {
    OURS.iter().any(|begin| function.name.starts_with(begin))
}

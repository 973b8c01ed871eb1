//! Which stacks are the observer's: those of the probes and programs by which a run was traced, in the middle of the server's own work.

use super::FunctionName;

const KERNEL: &str = "[kernel]";
/// Where a probed instruction is executed out of its line.
const OUT_OF_LINE: &str = "[uprobes]";

/// Functions of the kernel by which a breakpoint of a probe is entered, on x86-64 and aarch64: no server's own instruction leads there.
const ENTRIES: [&str; 6] =
    ["asm_exc_int3", "exc_int3", "do_int3", "el0_dbg", "uprobe_notify_resume", "handle_swbp"];
/// How the names of programs and of the code around them begin.
const PROGRAMS: [&str; 2] = ["bpf_prog_", "bpf_trampoline_"];

/// Whether a stack, innermost function first, is that of a probe or of a program in the kernel. Stacks of other tracers on the
/// machine look the same.
pub fn is_observers(stack: &[FunctionName]) -> bool {
    stack.iter().any(|function| {
        let name = function.name.as_str();
        let in_kernel = || ENTRIES.contains(&name) || PROGRAMS.iter().any(|begin| name.starts_with(begin));
        function.module == OUT_OF_LINE || (function.module == KERNEL && in_kernel())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[(&str, &str)]) -> Vec<FunctionName> {
        let function = |(name, module): &(&str, &str)| FunctionName {
            name: name.to_string(),
            module: module.to_string(),
        };
        frames.iter().map(function).collect()
    }

    #[test]
    fn a_probe_in_the_dispatcher_is_the_observers() {
        let server = [("dispatch_command", "mariadbd"), ("do_command", "mariadbd")];
        for kernel in [
            &[("irqentry_exit_to_user_mode", KERNEL), ("asm_exc_int3", KERNEL)][..],
            &[("bpf_prog_0123456789abcdef_on_begin", KERNEL), ("uprobe_notify_resume", KERNEL)],
            &[("bpf_prog_89ab_on_switch", KERNEL), ("__schedule", KERNEL)],
            &[("[0x7fffffffe000]", OUT_OF_LINE)],
        ] {
            assert!(is_observers(&stack(&[kernel, &server].concat())), "{kernel:?}");
        }
    }

    #[test]
    fn what_the_server_does_itself_is_not() {
        for frames in [
            &[("irqentry_exit_to_user_mode", KERNEL), ("asm_sysvec_apic_timer_interrupt", KERNEL)][..],
            &[("do_futex", KERNEL), ("futex_wait", KERNEL)],
            // A server's function of such a name.
            &[("do_int3", "mariadbd")],
            &[],
        ] {
            assert!(!is_observers(&stack(frames)), "{frames:?}");
        }
    }
}

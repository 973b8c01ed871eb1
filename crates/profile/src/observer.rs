//! Which stacks are the observer's.
//!
//! Some are of the probes and programs by which a run was traced, in the middle of the server's own work. Others are of the threads that
//! work for the observer's own connections.

use std::collections::BTreeSet;

/// The role of a thread while it works for a connection of the observer.
pub const OBSERVER_ROLE: &str = "observer";

const KERNEL: &str = "[kernel]";
/// Where a probed instruction is executed out of its line.
const OUT_OF_LINE: &str = "[uprobes]";

/// Functions by which the kernel is entered at a breakpoint of a probe, on x86-64 and aarch64. It is entered again after the probed instruction was
/// executed by itself. No instruction of a server leads there.
const ENTRIES: [&str; 10] = [
    "asm_exc_int3",
    "exc_int3",
    "do_int3",
    "asm_exc_debug",
    "exc_debug_user",
    "el0_dbg",
    "el0_brk64",
    "el0_softstp",
    "uprobe_notify_resume",
    "handle_swbp",
];
/// How the names of programs and of the code around them begin.
const PROGRAMS: [&str; 2] = ["bpf_prog_", "bpf_trampoline_"];

/// Finds the observer's stacks among those of a recording. Stacks of other tracers on the machine look the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObserverStacks {
    /// Stacks with a probe, or with a program in the kernel.
    probes: BTreeSet<u32>,
}

impl ObserverStacks {
    /// Finds the observer's stacks. `frames` has the functions of all stacks in any order, each as its stack's number, its name and its module.
    pub fn new<'a>(frames: impl IntoIterator<Item = (u32, &'a str, &'a str)>) -> ObserverStacks {
        let probes = frames.into_iter().filter(|(_, function, module)| is_of_a_probe(function, module));
        ObserverStacks { probes: probes.map(|(stack, _, _)| stack).collect() }
    }

    /// Returns whether a sample or a wait is the observer's, by the role of its thread and the number of its stack.
    pub fn holds(&self, role: &str, stack: u32) -> bool {
        role == OBSERVER_ROLE || self.probes.contains(&stack)
    }
}

/// Whether a function is on a stack only while a probe, or a program in the kernel, is executed.
fn is_of_a_probe(function: &str, module: &str) -> bool {
    let is_kernels =
        || ENTRIES.contains(&function) || PROGRAMS.iter().any(|begin| function.starts_with(begin));
    module == OUT_OF_LINE || (module == KERNEL && is_kernels())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether stack 3 is the observer's, next to a stack of the server.
    fn is_observers(functions: &[(&str, &str)]) -> bool {
        let all = functions.iter().map(|(function, module)| (3, *function, *module));
        let stacks = ObserverStacks::new(all.chain([(2, "do_command", "mariadbd")]));
        assert!(!stacks.holds("connection", 2));
        stacks.holds("connection", 3)
    }

    #[test]
    fn a_probe_in_the_dispatcher_is_the_observers() {
        let server = [("dispatch_command", "mariadbd"), ("do_command", "mariadbd")];
        for kernel in [
            &[("irqentry_exit_to_user_mode", KERNEL), ("asm_exc_int3", KERNEL)][..],
            &[("bpf_prog_0123456789abcdef_on_begin", KERNEL), ("uprobe_notify_resume", KERNEL)],
            &[("bpf_prog_89ab_on_switch", KERNEL), ("__schedule", KERNEL)],
            &[("[0x7fffffffe000]", OUT_OF_LINE)],
            // After the single step, where the instruction's place has no name.
            &[
                ("irqentry_exit_to_user_mode", KERNEL),
                ("exc_debug_user", KERNEL),
                ("asm_exc_debug", KERNEL),
                ("[unknown]", ""),
            ],
        ] {
            assert!(is_observers(&[kernel, &server].concat()), "{kernel:?}");
        }
    }

    #[test]
    fn what_the_server_does_itself_is_not() {
        for functions in [
            &[("irqentry_exit_to_user_mode", KERNEL), ("asm_sysvec_apic_timer_interrupt", KERNEL)][..],
            &[("do_futex", KERNEL), ("futex_wait", KERNEL)],
            // A server's function of such a name.
            &[("do_int3", "mariadbd")],
            &[],
        ] {
            assert!(!is_observers(functions), "{functions:?}");
        }
    }

    #[test]
    fn all_that_is_done_for_the_observers_connections_is_the_observers() {
        let stacks = ObserverStacks::new([(0, "do_command", "mariadbd")]);
        assert!(stacks.holds(OBSERVER_ROLE, 0));
        assert!(!stacks.holds("connection", 0) && !stacks.holds("purge", 0));
    }
}

//! Instructions that the kernel carries out itself where a probe is, in place of the CPU.
//!
//! For any other instruction the kernel has the CPU step through a copy of it and is interrupted once more. On a virtual machine that
//! can cost ten times as much as all the rest of the probe.

/// Returns the place of the first instruction from `at` on that the kernel emulates. It is reached whenever `at` is, and up to there the stack
/// pointer stays as it is. `None` where that is not certain.
#[cfg(target_arch = "x86_64")]
pub(crate) fn emulated_from(code: &[u8], at: usize) -> Option<usize> {
    /// Instructions that are passed over, at most.
    const PASSED_MAX: usize = 12;

    let mut place = at;
    for _ in 0..=PASSED_MAX {
        let rest = code.get(place..)?;
        if is_emulated(rest) {
            return Some(place);
        }
        place += length_of_harmless(rest)?;
    }
    None
}

/// Where functions may be called by their address only, they begin with this instruction. It does nothing.
#[cfg(target_arch = "x86_64")]
const MARK: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// Returns where a function's begin can be probed: the first instruction that does something, and whether the kernel emulates it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn begin_of(code: &[u8]) -> (usize, bool) {
    let place = if code.starts_with(&MARK) { MARK.len() } else { 0 };
    (place, is_emulated(&code[place..]))
}

/// Of what the kernel emulates on this architecture, nothing is searched for.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn emulated_from(_code: &[u8], _at: usize) -> Option<usize> {
    None
}

/// Returns where a function's begin can be probed, and whether the kernel emulates what is there.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn begin_of(_code: &[u8]) -> (usize, bool) {
    (0, false)
}

/// Direct calls and jumps, a byte that does nothing, and registers that are saved. Source: `arch/x86/kernel/uprobes.c`.
#[cfg(target_arch = "x86_64")]
fn is_emulated(code: &[u8]) -> bool {
    match code {
        [0xe8 | 0xe9, rest @ ..] => rest.len() >= 4,
        [0x0f, 0x80..=0x8f, rest @ ..] => rest.len() >= 4,
        [0xeb | 0x70..=0x7f, _, ..] | [0x90 | 0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..] => true,
        _ => false,
    }
}

/// What follows an opcode.
#[cfg(target_arch = "x86_64")]
enum Operands {
    /// Bytes of a constant.
    Constant(usize),
    /// Two registers, or one and memory, then bytes of a constant.
    Pair(usize),
    /// A register or memory, then bytes of a constant. The rest of the opcode is where the other register would be.
    One(usize),
}

/// Returns the bytes of an instruction that changes neither the stack pointer nor what is executed next. `None` of all others, and of all that are
/// rare after a call.
#[cfg(target_arch = "x86_64")]
fn length_of_harmless(code: &[u8]) -> Option<usize> {
    const STACK_POINTER: u8 = 4;

    let is_prefix = |byte: &&u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x66 | 0xf2 | 0xf3);
    let prefixes = code.iter().take_while(is_prefix).count();
    let constant_bytes = if code[..prefixes].contains(&0x66) { 2 } else { 4 };
    let mut at = prefixes;
    let extension = code.get(at).filter(|byte| (0x40..=0x4f).contains(*byte)).copied().unwrap_or(0);
    at += usize::from(extension != 0);
    let (is_wide, extends_other, extends_first) =
        (extension & 8 != 0, extension & 4 != 0, extension & 1 != 0);
    let opcode = *code.get(at)?;
    at += 1;
    let kind = code.get(at).map_or(0, |operands| operands >> 3 & 7);
    let operands = match opcode {
        0x0f => {
            let second = *code.get(at)?;
            at += 1;
            match second {
                0x10 | 0x11 | 0x1f | 0x28 | 0x29 | 0x2e | 0x2f | 0x40..=0x4f | 0x57 | 0x6e | 0x6f | 0x7e => {
                    Operands::Pair(0)
                }
                0x7f | 0x90..=0x9f | 0xaf | 0xb6 | 0xb7 | 0xbe | 0xbf | 0xd6 | 0xef => Operands::Pair(0),
                _ => return None,
            }
        }
        0x00..=0x3f => match opcode & 7 {
            0..=3 => Operands::Pair(0),
            4 => Operands::Constant(1),
            5 => Operands::Constant(constant_bytes),
            _ => return None,
        },
        0x63 | 0x84..=0x8b | 0x8d => Operands::Pair(0),
        0x69 => Operands::Pair(constant_bytes),
        0x6b => Operands::Pair(1),
        0x80 | 0x83 | 0xc0 | 0xc1 => Operands::One(1),
        0x81 => Operands::One(constant_bytes),
        0xc6 if kind == 0 => Operands::One(1),
        0xc7 if kind == 0 => Operands::One(constant_bytes),
        0xd0..=0xd3 => Operands::One(0),
        0xf6 => Operands::One(if kind < 2 { 1 } else { 0 }),
        0xf7 => Operands::One(if kind < 2 { constant_bytes } else { 0 }),
        0xfe | 0xff if kind < 2 => Operands::One(0),
        0x98 | 0x99 => Operands::Constant(0),
        0xa8 => Operands::Constant(1),
        0xa9 => Operands::Constant(constant_bytes),
        0xb0..=0xbf if opcode & 7 == STACK_POINTER && !extends_first => return None,
        0xb0..=0xb7 => Operands::Constant(1),
        0xb8..=0xbf => Operands::Constant(if is_wide { 8 } else { constant_bytes }),
        _ => return None,
    };
    let (has_other, constant) = match operands {
        Operands::Constant(bytes) => return (at + bytes <= code.len()).then_some(at + bytes),
        Operands::Pair(bytes) => (true, bytes),
        Operands::One(bytes) => (false, bytes),
    };
    let (mode, other, first) = (*code.get(at)? >> 6, *code.get(at)? >> 3 & 7, *code.get(at)? & 7);
    at += 1;
    if has_other && other == STACK_POINTER && !extends_other {
        return None;
    }
    let is_register = mode == 3;
    if is_register && first == STACK_POINTER && !extends_first {
        return None;
    }
    let mut base = first;
    if !is_register && first == 4 {
        base = *code.get(at)? & 7;
        at += 1;
    }
    at += match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    at += constant;
    (at <= code.len()).then_some(at)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_first_branch_after_a_call_is_where_it_returns_to_for_a_probe() {
        // MariaDB 10.11: mov %eax,%r12d; cmp $2,%eax; je.
        let code = [0x41, 0x89, 0xc4, 0x83, 0xf8, 0x02, 0x0f, 0x84, 0x55, 0x02, 0, 0];
        assert_eq!(emulated_from(&code, 0), Some(6));
        // mov 0x58(%r14),%rdi; movl $1,0x10(%rbp); movzbl %al,%eax; call.
        let code = [
            [0x49, 0x8b, 0x7e, 0x58].as_slice(),
            &[0xc7, 0x45, 0x10, 1, 0, 0, 0],
            &[0x0f, 0xb6, 0xc0],
            &[0xe8, 0, 0, 0, 0],
        ];
        assert_eq!(emulated_from(&code.concat(), 0), Some(14));
        // mov %fs:0x28,%rax; test %al,%al; jne.
        let code = [0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0, 0x84, 0xc0, 0x75, 0x10];
        assert_eq!(emulated_from(&code, 0), Some(11));
        assert_eq!(emulated_from(&[0xcc, 0xeb, 0], 1), Some(1));
    }

    #[test]
    fn what_moves_the_stack_pointer_or_is_not_known_is_not_passed_over() {
        for code in [
            [0x48, 0x83, 0xc4, 0x08, 0xeb, 0].as_slice(), // add $8,%rsp
            &[0x48, 0x8d, 0x65, 0xd8, 0xeb, 0],           // lea -0x28(%rbp),%rsp
            &[0x48, 0x89, 0xec, 0xeb, 0],                 // mov %rbp,%rsp
            &[0x5b, 0xeb, 0],                             // pop %rbx
            &[0xc3, 0xeb, 0],                             // ret
            &[0xff, 0xd0, 0xeb, 0],                       // call *%rax
            &[0xc5, 0xf8, 0x77, 0xeb, 0],                 // vzeroupper
            &[0x41, 0x89, 0xc4],
            &[],
        ] {
            assert_eq!(emulated_from(code, 0), None, "{code:02x?}");
        }
        // Into r12, whose number ends as the stack pointer's does.
        assert_eq!(emulated_from(&[0x49, 0x89, 0xc4, 0xeb, 0], 0), Some(3));
    }

    #[test]
    fn a_function_begins_after_its_mark() {
        assert_eq!(begin_of(&[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57]), (4, true));
        assert_eq!(begin_of(&[0x55, 0x48]), (0, true));
        assert_eq!(begin_of(&[0x48, 0x89, 0xe5]), (0, false));
        assert_eq!(begin_of(&[]), (0, false));
    }
}

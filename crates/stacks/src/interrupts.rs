//! Where the kernel's interrupts begin: what they do is not of the thread that they interrupted.

use std::ops::Range;

/// How the names of functions begin through which an interrupt comes in, on x86_64 and on aarch64.
const ENTRIES: [&str; 6] =
    ["asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi", "el0t_64_irq", "el1h_64_irq", "call_on_irq_stack"];

/// The places of those functions in the running kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    places: Vec<Range<u64>>,
}

impl Interrupts {
    /// From `/proc/kallsyms`. Without the right to see addresses there, no interrupt is separated from what it interrupted.
    pub fn of_this_kernel() -> Interrupts {
        Interrupts::of(&std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn of(symbols: &str) -> Interrupts {
        let mut begins = Vec::new();
        let mut all = Vec::new();
        for line in symbols.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if address == 0 || !matches!(kind, "t" | "T") {
                continue;
            }
            all.push(address);
            if ENTRIES.iter().any(|entry| name.starts_with(entry)) {
                begins.push(address);
            }
        }
        all.sort_unstable();
        let place = |begin: u64| {
            let next = all.partition_point(|address| *address <= begin);
            begin..all.get(next).copied().unwrap_or(u64::MAX)
        };
        let mut places: Vec<Range<u64>> = begins.into_iter().map(place).collect();
        places.sort_unstable_by_key(|place| place.start);
        places.dedup();
        Interrupts { places }
    }

    /// How many frames of a kernel's stack, innermost first, are of an interrupt; 0: none.
    pub fn frames(&self, kernel: &[u64]) -> usize {
        kernel.iter().position(|address| self.holds(*address)).map_or(0, |place| place + 1)
    }

    fn holds(&self, address: u64) -> bool {
        let after = self.places.partition_point(|place| place.start <= address);
        after.checked_sub(1).is_some_and(|place| self.places[place].contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_up_to_the_entry_are_the_interrupts() {
        let interrupts = Interrupts::of(
            "ffffffff81000000 T _stext\nffffffff82000100 T asm_sysvec_apic_timer_interrupt\n\
             ffffffff82000120 T asm_exc_page_fault\n0000000000000000 T asm_common_interrupt\nodd line\n",
        );
        let kernel = [0xffff_ffff_8100_0000, 0xffff_ffff_8200_0105, 0xffff_ffff_8100_0050];
        assert_eq!(interrupts.frames(&kernel), 2);
        assert_eq!(interrupts.frames(&kernel[2..]), 0);
        assert_eq!(interrupts.frames(&[0xffff_ffff_8200_0120]), 0, "a page fault is the thread's own");
        assert_eq!(Interrupts::of("").frames(&kernel), 0);
    }
}

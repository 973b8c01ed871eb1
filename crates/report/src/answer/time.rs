//! The time budget of the level in question in one line, as a bar.

use whyso_explain::model::{Budget, Explanation, Part};

use super::line::{Line, Tone};

/// Parts that are shown as one, in the order of the line.
const GROUPS: [(&str, &[Part]); 7] = [
    ("cpu", &[Part::Cpu]),
    ("cpu queue", &[Part::Runqueue, Part::Wakeup]),
    ("locks", &[Part::Lock, Part::KernelLock]),
    ("disk", &[Part::FileRead, Part::FileWrite, Part::FileSync, Part::PageFault]),
    ("network", &[Part::TransitIn, Part::TransitOut, Part::NetSend, Part::ServerAndNetwork]),
    ("client", &[Part::ClientQueue, Part::Connect, Part::ClientPause, Part::ClientCpu, Part::ClientDelay]),
    ("sleep", &[Part::Sleep]),
];
/// Groups below this share are part of "other".
const SHARE_MIN: f64 = 0.03;
/// Characters of the whole bar.
const BAR: f64 = 36.0;
/// The same where lines are short.
const SHORT_BAR: f64 = 18.0;
const SHORT_LINE: usize = 100;
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// "time, %  cpu 21 ████ locks 73 ███████████████ other 6 ▌"; `None` where the level was not traced.
pub(super) fn line(explanation: &Explanation, width: usize) -> Option<Line> {
    let budget = explanation.budgets.iter().find(|budget| Some(budget.level) == explanation.about)?;
    if budget.response_ms <= 0.0 {
        return None;
    }
    let shares = shares(budget);
    let bar = if width < SHORT_LINE { SHORT_BAR } else { BAR };
    let mut line = Line::labelled("time, %");
    for (name, share) in shares {
        line = line
            .with(Tone::Plain, format!("{name} {:.0} ", share * 100.0))
            .with(tone_of(name), format!("{} ", blocks(share * bar)));
    }
    Some(line)
}

fn shares(budget: &Budget) -> Vec<(&'static str, f64)> {
    let share = |parts: &[Part]| parts.iter().map(|part| budget.ms(*part)).sum::<f64>() / budget.response_ms;
    let all: Vec<(&str, f64)> = GROUPS.iter().map(|(name, parts)| (*name, share(parts))).collect();
    let (mut shown, small): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, share)| *share >= SHARE_MIN);
    let other = share(&[Part::Other]) + small.iter().map(|(_, share)| share).sum::<f64>();
    shown.push(("other", other));
    shown.push(("unaccounted", budget.unaccounted_ms / budget.response_ms));
    shown.retain(|(_, share)| *share >= 0.005);
    shown
}

fn tone_of(group: &str) -> Tone {
    match group {
        "cpu" => Tone::Good,
        "locks" | "disk" | "cpu queue" => Tone::Warning,
        _ => Tone::Faint,
    }
}

/// A bar of so many characters, to an eighth of one.
fn blocks(length: f64) -> String {
    let eighths = (length * 8.0).round().max(1.0) as usize;
    let rest = (eighths % 8).checked_sub(1).map(|at| EIGHTHS[at]);
    std::iter::repeat_n('█', eighths / 8).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_to_an_eighth_of_a_character() {
        assert_eq!(blocks(2.0), "██");
        assert_eq!(blocks(1.5), "█▌");
        assert_eq!(blocks(0.125), "▏");
        assert_eq!(blocks(0.0), "▏", "what is named has a bar");
    }
}

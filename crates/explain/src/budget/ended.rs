//! What those did that the connections waited for, as text.

use std::collections::BTreeMap;

use super::part::Part;
use crate::level::Level;
use crate::model::EndedWaits;

/// A class of waits is reported from this share of all waits for locks on.
const CLASS_SHARE_MIN: f64 = 0.25;
/// Fewer waits are chance.
const WAITS_MIN: u64 = 20;
/// Deeds with a smaller share, and those beyond this many, are not named.
const DEED_SHARE_MIN: f64 = 0.1;
const DEEDS_MAX: usize = 3;
/// A file is named where this share of such waits of the same threads are for it.
const FILE_SHARE_MIN: f64 = 0.8;

/// " The threads that ended these waits for redo flush spent 94 % of that time waiting for syncs of files (ib_logfile0)."
pub(super) fn sentence(level: &Level) -> String {
    let all_ns: f64 = level.ended_waits.iter().map(|wait| wait.ns).sum();
    let largest = level.ended_waits.iter().max_by(|a, b| a.ns.total_cmp(&b.ns));
    let Some(waits) =
        largest.filter(|waits| waits.ns >= CLASS_SHARE_MIN * all_ns && waits.count >= WAITS_MIN)
    else {
        return String::new();
    };
    let deeds = deeds(waits, level);
    if deeds.is_empty() {
        return String::new();
    }
    let what = match waits.class.as_str() {
        "" => "in functions that no rule names".to_string(),
        class => format!("for {}", class.replace('_', " ")),
    };
    format!(
        " While connections waited {what}, those that they waited for spent {} (by {} waits, chains of waits followed to their ends).",
        whyso_words::list(&deeds),
        whyso_words::whole(waits.count)
    )
}

fn deeds(of: &EndedWaits, level: &Level) -> Vec<String> {
    // Of any thread: each state has one entry, with the file of those that were in it most.
    let mut sums: BTreeMap<&str, (f64, f64, &str)> = BTreeMap::new();
    for deed in of.deeds.iter().filter(|deed| deed.share > 0.0) {
        let sum = sums.entry(&deed.state).or_insert((0.0, 0.0, &deed.role));
        sum.0 += deed.share;
        if deed.share > sum.1 {
            (sum.1, sum.2) = (deed.share, &deed.role);
        }
    }
    let mut sums: Vec<(&str, (f64, f64, &str))> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let named = sums.into_iter().filter(|(state, (share, ..))| *share >= DEED_SHARE_MIN && !state.is_empty());
    let shares = named.take(DEEDS_MAX).filter_map(|(state, (share, _, role))| {
        let part = Part::ALL.into_iter().find(|part| part.name() == state)?;
        let file = main_file(level, role, state).map_or(String::new(), |file| format!(" ({file})"));
        Some(format!("{} {}{file}", whyso_words::percent(share), in_words(part)))
    });
    shares.collect()
}

fn in_words(part: Part) -> String {
    match part {
        Part::Cpu => "on a CPU".to_string(),
        part => part.words().to_string(),
    }
}

/// The name of the file that the threads of a role waited for in a state, where it is one.
fn main_file<'a>(level: &Level<'a>, role: &str, state: &str) -> Option<&'a str> {
    let waits = || level.file_waits.iter().filter(|wait| wait.role == role && wait.state == state);
    let all_ns: f64 = waits().map(|wait| wait.ns).sum();
    let main = waits().max_by(|a, b| a.ns.total_cmp(&b.ns))?;
    let name = main.path.rsplit('/').next().filter(|name| !name.is_empty())?;
    (main.ns >= FILE_SHARE_MIN * all_ns).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DeedShare, FileWait, LevelInput, Machine};

    fn deed(role: &str, state: &str, share: f64) -> DeedShare {
        DeedShare { role: role.to_string(), state: state.to_string(), share }
    }

    fn describe(ended_waits: Vec<EndedWaits>) -> String {
        let file = |path: &str, ns| FileWait {
            path: path.to_string(),
            state: "file_sync".to_string(),
            role: "connection".to_string(),
            count: 1.0,
            ns,
        };
        let file_waits = vec![file("/data/ib_logfile0", 95.0), file("/data/sbtest1.ibd", 5.0)];
        let input = LevelInput { ended_waits, file_waits, ..LevelInput::default() };
        sentence(&crate::verdict::judge(&input, &Machine::default()))
    }

    #[test]
    fn the_largest_class_is_shown_with_what_was_done_meanwhile_and_the_file() {
        let flush = EndedWaits {
            class: "redo_flush".to_string(),
            count: 300,
            ns: 7e9,
            deeds: vec![
                deed("connection", "file_sync", 0.8),
                deed("log writer", "file_sync", 0.1),
                deed("connection", "cpu", 0.06),
                deed("connection", "", 0.04),
            ],
        };
        let rows = EndedWaits {
            class: "row_lock".to_string(),
            count: 90,
            ns: 2e9,
            deeds: vec![deed("connection", "cpu", 1.0)],
        };
        assert_eq!(
            describe(vec![rows, flush]),
            " While connections waited for redo flush, those that they waited for spent 90 % waiting for syncs of files \
             (ib_logfile0) (by 300 waits, chains of waits followed to their ends)."
        );
    }

    #[test]
    fn a_few_waits_and_a_small_class_tell_nothing() {
        let ended = |class: &str, count, ns| EndedWaits {
            class: class.to_string(),
            count,
            ns,
            deeds: vec![deed("connection", "cpu", 1.0)],
        };
        assert_eq!(describe(vec![ended("row_lock", WAITS_MIN - 1, 9e9)]), "");
        assert_eq!(
            describe(vec![
                ended("a", 99, 2e9),
                ended("b", 99, 2e9),
                ended("c", 99, 2e9),
                ended("d", 99, 2e9),
                ended("e", 99, 2.1e9)
            ]),
            ""
        );
        assert_eq!(describe(Vec::new()), "");
        assert!(describe(vec![ended("row_lock", 99, 9e9)]).contains("spent 100 % on a CPU"));
    }
}

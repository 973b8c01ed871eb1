//! The hosts that sent a load together, each with its part.

use whyso_record::run::{GeneratorResult, Level};
use whyso_words::{milliseconds, number, percent_number};

use super::layout::aligned_with_words;
use super::level::due_name;
use super::{clean, dash};

/// The columns; the first two are words.
pub(crate) const HEAD: [&str; 9] =
    ["level", "load host", "users", "TPS", "mean ms", "p99", "errors", "CPU %", "waited for a CPU %"];

/// Each host's part of each level; nothing where one process sent all of it.
pub(crate) fn generator_rows<'l>(levels: impl Iterator<Item = &'l Level>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for level in levels {
        for part in &level.result.generators {
            rows.push(row(level, part));
        }
    }
    rows
}

/// The same as a table under the levels.
pub(crate) fn generators<'l>(levels: impl Iterator<Item = &'l Level>) -> String {
    let parts = generator_rows(levels);
    if parts.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = std::iter::once(HEAD.map(str::to_string).to_vec()).chain(parts).collect();
    format!("\n{}", aligned_with_words(&rows, &[0, 1]))
}

fn row(level: &Level, part: &GeneratorResult) -> Vec<String> {
    let client = &part.client;
    let seconds = level.result.seconds;
    // Of the CPUs that its threads may run on, and of the time that all its threads had.
    let share = |used_s: f64, of: u32| match f64::from(of) * seconds {
        all_s if all_s > 0.0 => percent_number(used_s / all_s),
        _ => dash(),
    };
    vec![
        due_name(level),
        clean(&part.host),
        part.users.to_string(),
        number(part.transactions_per_s),
        milliseconds(part.latency_ms.mean),
        milliseconds(part.latency_ms.p99),
        part.errors.to_string(),
        share(client.cpu_s, client.cpus_allowed),
        share(client.run_delay_s, client.threads),
    ]
}

#[cfg(test)]
mod tests {
    use whyso_record::run::{Client, LevelResult, Purpose, RunEnd, Window};

    use super::*;

    #[test]
    fn each_host_of_a_load_has_a_line_with_what_held_it_up() {
        let client =
            Client { cpu_s: 2.0, run_delay_s: 4.0, threads: 2, cpus_allowed: 4, ..Client::default() };
        let part = GeneratorResult {
            host: "load-2\u{1b}[31m".to_string(),
            users: 3,
            transactions_per_s: 120.0,
            client,
            ..GeneratorResult::default()
        };
        let window = Window { begin_ns: 0, end_ns: 10 };
        let level = Level {
            index: 0,
            users: 6,
            purpose: Purpose::Sweep,
            warmup: window,
            warmup_steady: true,
            window,
            result: LevelResult { seconds: 10.0, generators: vec![part], ..LevelResult::default() },
            ended: RunEnd::Complete { at_ns: 10 },
        };
        let table = generators([&level].into_iter());
        let line = table.lines().last().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.contains(&"120") && words.ends_with(&["5", "20"]), "{table}");
        assert!(!table.contains('\u{1b}'));
        assert_eq!(generators([].into_iter()), "");
    }
}

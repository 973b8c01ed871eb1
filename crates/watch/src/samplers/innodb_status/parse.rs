//! Numbers in the text.

/// The name of a metric, and its value.
pub(super) type Number = (&'static str, u64);

/// Sections that hold texts of statements: no number is read in them.
const FOREIGN: [&str; 2] = ["LATEST DETECTED DEADLOCK", "LATEST FOREIGN KEY ERROR"];
/// Beginnings of lines that hold one number.
const ALONE: [(&str, &str); 5] = [
    ("History list length", "history_list_length"),
    ("Log sequence number", "log_sequence_number"),
    ("Log flushed up to", "log_flushed"),
    ("Last checkpoint at", "last_checkpoint"),
    ("Pending reads", "pending_reads"),
];
/// Beginnings of lines of spins: names of what follows "rounds" and "OS waits", and of the first number.
const SPINS: [(&str, Option<&str>, &str, &str); 4] = [
    ("Mutex spin waits", Some("mutex_spins"), "mutex_rounds", "mutex_os_waits"),
    ("RW-shared spins", None, "rw_shared_rounds", "rw_shared_os_waits"),
    ("RW-excl spins", None, "rw_excl_rounds", "rw_excl_os_waits"),
    ("RW-sx spins", None, "rw_sx_rounds", "rw_sx_os_waits"),
];

/// The numbers of a status, each once: the first that is met.
pub(super) fn numbers(text: &str) -> Vec<Number> {
    let mut found: Vec<Number> = Vec::new();
    let mut put = |name: &'static str, value: Option<u64>| {
        if let Some(value) = value.filter(|_| found.iter().all(|(other, _)| *other != name)) {
            found.push((name, value));
        }
    };
    let mut is_foreign = false;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    for (at, line) in lines.iter().enumerate() {
        let is_rule_at =
            |at: Option<usize>| at.and_then(|at| lines.get(at)).is_some_and(|line| is_rule(line));
        // A section's name stands between two lines of dashes.
        if is_rule_at(at.checked_sub(1)) && is_rule_at(Some(at + 1)) {
            is_foreign = FOREIGN.iter().any(|name| line.starts_with(name));
        }
        if is_foreign {
            continue;
        }
        for (begin, name) in ALONE {
            if let Some(rest) = line.strip_prefix(begin) {
                put(name, only_number(rest));
            }
        }
        for (begin, first, rounds, waits) in SPINS {
            if let Some(rest) = line.strip_prefix(begin) {
                if let Some(first) = first {
                    put(first, number_at(rest));
                }
                put(rounds, after(rest, "rounds"));
                put(waits, after(rest, "OS waits"));
            }
        }
        if line.starts_with("OS WAIT ARRAY INFO:") {
            put("semaphore_reservations", after(line, "reservation count"));
            put("semaphore_signals", after(line, "signal count"));
        }
        if let Some(rest) = line.strip_prefix("Pending writes:") {
            let lists = rest.split(',').filter_map(|list| list.rsplit(' ').next()?.parse::<u64>().ok());
            put("pending_writes", lists.reduce(u64::saturating_add));
        }
        if let Some(rest) = line.strip_prefix("Pending flushes (fsync)") {
            put("pending_log_flushes", after(rest, "log:"));
            put(
                "pending_page_flushes",
                after(rest, "buffer pool:").or_else(|| only_number(rest.strip_prefix(':')?)),
            );
        }
    }
    let find = |name: &str| found.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    let age = find("log_sequence_number").zip(find("last_checkpoint"));
    if let Some(age) = age.and_then(|(now, checkpoint)| now.checked_sub(checkpoint)) {
        found.push(("checkpoint_age", age));
    }
    found
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

/// The number that a text begins with, blanks aside.
fn number_at(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The number, where there is nothing else. MySQL 5.0 wrote positions as two.
fn only_number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn after(text: &str, word: &str) -> Option<u64> {
    number_at(&text[text.find(word)? + word.len()..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samplers::innodb_status::METRICS;

    fn parsed(text: &str, name: &str) -> Option<u64> {
        numbers(text).into_iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    #[test]
    fn real_servers_are_read() {
        let text = include_str!("../../../tests/data/innodb_status_mysql_5_5");
        for (name, value) in [
            ("history_list_length", 424),
            ("log_sequence_number", 2_768_330),
            ("log_flushed", 2_765_957),
            ("last_checkpoint", 2_172_070),
            ("checkpoint_age", 596_260),
            ("pending_log_flushes", 1),
            ("pending_page_flushes", 0),
            ("semaphore_reservations", 7),
            ("semaphore_signals", 39),
            ("mutex_spins", 238),
            ("mutex_rounds", 785),
            ("mutex_os_waits", 0),
            ("rw_shared_rounds", 455),
            ("rw_excl_os_waits", 4),
            ("pending_reads", 0),
            ("pending_writes", 0),
        ] {
            assert_eq!(parsed(text, name), Some(value), "{name}");
        }
        let text = include_str!("../../../tests/data/innodb_status_mysql_9_7");
        assert_eq!(parsed(text, "checkpoint_age"), Some(20_457_221 - 20_024_005));
        assert_eq!(parsed(text, "mutex_spins"), None, "it has none any more");
        let text = include_str!("../../../tests/data/innodb_status_mariadb_10_2");
        assert_eq!((parsed(text, "rw_sx_rounds"), parsed(text, "rw_excl_os_waits")), (Some(124), Some(12)));
        let text = include_str!("../../../tests/data/innodb_status_mariadb_11_8");
        assert_eq!(
            (parsed(text, "history_list_length"), parsed(text, "checkpoint_age")),
            (Some(385), Some(558_345))
        );
        assert_eq!(parsed(text, "pending_page_flushes"), Some(0));
        assert_eq!(parsed(text, "semaphore_reservations"), None);
    }

    #[test]
    fn no_number_is_read_in_the_text_of_a_statement() {
        let text = "------------------------\nLATEST DETECTED DEADLOCK\n------------------------\nSELECT '\nHistory list length 9\n'\n\
                    ------------\nTRANSACTIONS\n------------\nHistory list length 3\n";
        assert_eq!(parsed(text, "history_list_length"), Some(3));
    }

    #[test]
    fn every_number_is_one_that_is_described() {
        for text in [
            include_str!("../../../tests/data/innodb_status_mysql_5_5"),
            include_str!("../../../tests/data/innodb_status_mariadb_10_2"),
        ] {
            for (name, _) in numbers(text) {
                assert!(METRICS.iter().any(|metric| metric.name == name), "{name}");
            }
        }
    }

    proptest! {
        #[test]
        fn garbage_is_survived(
            begin in prop::sample::select(vec!["Pending writes:", "RW-excl spins", "Log sequence number", "Pending flushes (fsync)", "-----\n"]),
            text in "(?s).{0,60}"
        ) {
            let _ = numbers(&format!("{begin}{text}"));
            let _ = numbers(&format!("{begin} {text}\nLast checkpoint at 18446744073709551615\n"));
        }
    }
}

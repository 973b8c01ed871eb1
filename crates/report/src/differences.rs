//! What the server's own counters grew by over a recorded window, per second and per statement.

use whyso_explain::model::{Counter, Input};
use whyso_words::{count, number, rate, seconds};

use crate::text::layout::aligned_with_words;

/// Counters of a window that are shown, the fastest first.
const SHOWN_MAX: usize = 40;

/// Returns one table per window: SHOW GLOBAL STATUS' counters that moved, with their rate and how much that is for one statement.
pub fn differences(input: &Input) -> String {
    let mut out = String::new();
    for level in &input.levels {
        let window_s = (level.end_ns - level.begin_ns) as f64 / 1e9;
        let of_status = |counter: &&Counter| counter.series.source == "status" && counter.increase >= 0.5;
        let mut moved: Vec<&Counter> = level.counters.iter().filter(of_status).collect();
        moved.sort_by(|a, b| b.increase.total_cmp(&a.increase));
        let statements = level.queries as f64;
        let mut table =
            vec![["status", "difference", "per second", "per statement"].map(str::to_string).to_vec()];
        for counter in moved.iter().take(SHOWN_MAX) {
            table.push(vec![
                counter.series.metric.clone(),
                number(counter.increase.round()),
                number(counter.increase / window_s),
                if statements > 0.0 { number(counter.increase / statements) } else { "–".to_string() },
            ]);
        }
        let left = moved.len().saturating_sub(SHOWN_MAX);
        out.push_str(&format!(
            "{} in {}, {}{}\n",
            count(level.queries, "statement"),
            seconds(window_s),
            rate(statements / window_s),
            level.server_cpu_s.map_or(String::new(), |cpu_s| format!(
                "; the server used {} of CPU, {} per statement",
                seconds(cpu_s),
                seconds(cpu_s / statements.max(1.0))
            ))
        ));
        out.push_str(&aligned_with_words(&table, &[0]));
        if left > 0 {
            out.push_str(&format!("and {left} more: whyso export writes them all\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_explain::model::{LevelInput, SeriesName};

    #[test]
    fn counters_that_moved_have_a_rate_per_second_and_per_statement() {
        let counter = |metric: &str, increase| Counter {
            series: SeriesName { source: "status".into(), metric: metric.into(), ..SeriesName::default() },
            unit: "1".into(),
            increase,
        };
        let level = LevelInput {
            end_ns: 2_000_000_000,
            queries: 100,
            counters: vec![
                counter("Com_select", 100.0),
                counter("Handler_read_key", 400.0),
                counter("Aborted_clients", 0.0),
            ],
            ..LevelInput::default()
        };
        let text = differences(&Input { levels: vec![level], ..Input::default() });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "100 statements in 2 s, 50/s");
        assert!(lines[2].starts_with("Handler_read_key") && lines[2].ends_with(" 4"), "{text}");
        assert!(lines[3].starts_with("Com_select") && lines[3].ends_with(" 1"), "{text}");
        assert_eq!(lines.len(), 4);
    }
}

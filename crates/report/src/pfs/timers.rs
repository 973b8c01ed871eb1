//! What timing a load cost, by the server's own word of its timers: for the terminal, as Markdown's rows, and as one object.

use serde_json::{Value, json};
use whyso_explain::timer::{TimerChoice, Timing};
use whyso_words::{count, seconds, whole};

use crate::text::layout::{TEXT_WIDTH, aligned_with_words, wrapped};
use crate::text::timers::{DOCUMENTED, RECKONED, cost, is_documented, timing_head, timing_rows};
use crate::text::{capital, clean, dash};

/// What timing cost over a part of a run.
#[derive(Clone, Copy, Debug)]
pub struct PfsTimersOf<'a> {
    /// Which part of the run, such as "the level of 16 users".
    pub window: &'a str,
    pub timing: &'a Timing,
    /// How the Performance Schema was set.
    pub setup: &'a str,
}

/// Returns the server's timers, what each class of events cost, and what another timer would have cost.
pub fn pfs_timers(of: PfsTimersOf) -> String {
    let timing = of.timing;
    let mut out = "What timing cost, as the server reckons its timers.\n".to_string();
    let mut window = seconds(timing.seconds);
    if let Some(statements) = timing.statements {
        window += &format!(", {}", count(statements.round() as u64, "statement"));
    }
    if let Some(cpu_s) = timing.server_cpu_s {
        window += &format!(", {} of the server's CPU", seconds(cpu_s));
    }
    out += &format!("{}: {window}.\nPerformance Schema: {}.\n\n", capital(of.window), clean(of.setup));

    let mut rows = vec![words(&["timer", "frequency/s", "resolution", "overhead in cycles"])];
    let cell = |value: Option<f64>| value.map_or_else(dash, |value| whole(value.max(0.0).round() as u64));
    for TimerChoice { timer, .. } in &timing.timers {
        rows.push(vec![
            clean(&timer.name),
            cell(timer.frequency),
            cell(timer.resolution),
            cell(timer.overhead_cycles),
        ]);
    }
    out += &aligned_with_words(&rows, &[0]);

    out.push('\n');
    let mut rows = vec![words(&timing_head(timing))];
    rows.extend(timing_rows(timing));
    out += &aligned_with_words(&rows, &[0, 1]);

    out += "\nIf one timer served every class:\n";
    let mut rows =
        vec![words(&["timer", "now timed: ms/s", "of server's CPU", "all timed: ms/s", "of server's CPU"])];
    for choice in &timing.timers {
        let mut row = vec![clean(&choice.timer.name)];
        row.extend(cost(timing, choice.cpu_s));
        row.extend(cost(timing, choice.cpu_s_if_all));
        rows.push(row);
    }
    out += &aligned_with_words(&rows, &[0]);
    out.push('\n');
    for line in notes(timing) {
        out += &wrapped(line, "  ", TEXT_WIDTH);
    }
    out
}

fn notes(timing: &Timing) -> Vec<&'static str> {
    let mut notes = vec![RECKONED];
    if is_documented(timing) {
        notes.push(DOCUMENTED);
    }
    if timing.server_cpu_s.is_none() {
        notes.push("The server's process was not watched, so the share of its CPU is not known.");
    }
    notes
}

fn words(head: &[&str]) -> Vec<String> {
    head.iter().map(ToString::to_string).collect()
}

/// Returns the same as one object: over the whole window, CPU times in seconds, shares from 0 to 1.
pub fn pfs_timers_json(of: PfsTimersOf) -> Value {
    let mut object = json!(of.timing);
    object["view"] = json!("timers");
    object["window"] = json!(of.window);
    object["performance_schema"] = json!(of.setup);
    object["of_server_cpu"] = json!(of.timing.share(of.timing.cpu_s));
    object["of_server_cpu_if_all"] = json!(of.timing.share(of.timing.cpu_s_if_all));
    object
}

#[cfg(test)]
mod tests {
    use whyso_explain::model::Timer;
    use whyso_explain::timer::ClassTiming;

    use super::*;

    /// The published study's five minutes, with stages and statements by nanoseconds.
    fn timing() -> Timing {
        let class = |class: &str, timer: &str, events: f64, timed_events: f64, cpu_s: f64| ClassTiming {
            class: class.to_string(),
            timer: timer.to_string(),
            timer_read: true,
            events,
            timed_events,
            cpu_s: Some(cpu_s),
            cpu_s_if_all: Some(cpu_s),
        };
        let timer = Timer {
            name: "CYCLE".to_string(),
            frequency: Some(2_982_179_104.0),
            resolution: Some(1.0),
            overhead_cycles: Some(36.0),
        };
        Timing {
            seconds: 300.0,
            statements: Some(18_602_306.0),
            server_cpu_s: Some(2169.0),
            classes: vec![
                class("wait", "CYCLE", 1_098_658_477.0, 1_098_658_477.0, 26.5254),
                class("stage", "NANOSECOND", 244_153_447.0, 244_153_447.0, 229.8933),
                class("transaction", "NANOSECOND", 0.0, 0.0, 0.0),
            ],
            cpu_s: Some(256.4187),
            cpu_s_if_all: None,
            timers: vec![TimerChoice { timer, cpu_s: Some(32.4), cpu_s_if_all: Some(32.9) }],
        }
    }

    #[test]
    fn the_cost_is_shown_by_class_per_second_and_as_a_share_of_the_server() {
        let timing = timing();
        let of = PfsTimersOf { window: "the level of 8 users", timing: &timing, setup: "global: on" };
        let text = pfs_timers(of);
        assert!(
            text.contains(
                "The level of 8 users: 300 s, 18,602,306 statements, 2,169 s of the server's CPU.\n"
            ),
            "{text}"
        );
        assert!(text.contains("2,982,179,104"), "{text}");
        let line = |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap().to_string();
        let cells = |begin: &str| line(begin).split_whitespace().map(str::to_string).collect::<Vec<_>>();
        assert_eq!(cells("stage")[1..5], ["NANOSECOND", "813,845", "13.1", "100"], "{text}");
        assert!(line("stage").contains("766") && line("stage").contains("11 %"), "{text}");
        assert!(line("transaction").contains("–"), "{text}");
        assert!(line("<Total>").ends_with('–'), "{text}");
        assert!(!text.contains("setup_timers"), "{text}");

        let mut documented = timing.clone();
        documented.classes.iter_mut().for_each(|class| class.timer_read = false);
        documented.server_cpu_s = None;
        let text = pfs_timers(PfsTimersOf { timing: &documented, ..of });
        assert!(text.contains("has no table setup_timers") && text.contains("was not watched"), "{text}");
        let object = pfs_timers_json(of);
        assert_eq!(object["classes"][1]["timer"], "NANOSECOND");
        assert_eq!(object["timers"][0]["name"], "CYCLE");
        assert!((object["of_server_cpu"].as_f64().unwrap() - 0.11822).abs() < 1e-4, "{object}");
        assert!(object["of_server_cpu_if_all"].is_null());
    }
}

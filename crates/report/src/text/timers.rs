//! What timing events cost, by class.

use whyso_explain::timer::{ClassTiming, Timing};
use whyso_words::{number, percent};

use super::{clean, dash};

/// The note under every table of what timing cost.
pub(crate) const RECKONED: &str = "An event is timed by two readings of a timer: events × 2 × TIMER_OVERHEAD ÷ the frequency of CYCLE. The server's \
     TIMER_OVERHEAD is the least that it saw at its start, so that these are lower bounds.";
/// The note where the server has no table that names the timer of each class.
pub(crate) const DOCUMENTED: &str = "This server has no table setup_timers: which timer serves a class is as MySQL's manual has it, and was not read.";

/// No class has a timer that the server named.
pub(crate) fn is_documented(timing: &Timing) -> bool {
    !timing.classes.iter().any(|class| class.timer_read)
}

/// The table by class: its head.
pub(crate) fn timing_head(timing: &Timing) -> Vec<&'static str> {
    let mut head = vec!["events", "timer", "events/s"];
    head.extend(timing.statements.filter(|count| *count > 0.0).map(|_| "/statement"));
    head.extend(["timed", "CPU ms/s", "of server's CPU", "all timed: ms/s", "of server's CPU"]);
    head
}

/// The table by class: a row each, and the total.
pub(crate) fn timing_rows(timing: &Timing) -> Vec<Vec<String>> {
    let events = timing.classes.iter().map(|class| class.events).sum();
    let timed_events = timing.classes.iter().map(|class| class.timed_events).sum();
    let total = ClassTiming {
        class: "<Total>".to_string(),
        events,
        timed_events,
        cpu_s: timing.cpu_s,
        cpu_s_if_all: timing.cpu_s_if_all,
        ..ClassTiming::default()
    };
    timing.classes.iter().chain([&total]).map(|class| class_row(timing, class)).collect()
}

fn class_row(timing: &Timing, class: &ClassTiming) -> Vec<String> {
    let mut cells = vec![
        class.class.clone(),
        clean(&class.timer),
        if timing.seconds > 0.0 { number(class.events / timing.seconds) } else { dash() },
    ];
    if let Some(statements) = timing.statements.filter(|count| *count > 0.0) {
        cells.push(number(class.events / statements));
    }
    cells.push(if class.events > 0.0 { percent(class.timed_events / class.events) } else { dash() });
    cells.extend(cost(timing, class.cpu_s));
    cells.extend(cost(timing, class.cpu_s_if_all));
    cells
}

/// A CPU time as milliseconds per second, and as a share of what the server used.
pub(crate) fn cost(timing: &Timing, cpu_s: Option<f64>) -> [String; 2] {
    let per_s = cpu_s.filter(|_| timing.seconds > 0.0).map(|cpu_s| cpu_s * 1e3 / timing.seconds);
    [per_s.map_or_else(dash, number), timing.share(cpu_s).map_or_else(dash, percent)]
}

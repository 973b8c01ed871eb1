//! A table of threads that pause periodically.

use serde_json::{Value, json};
use whyso_explain::model::{Moments, Pauses};
use whyso_words::{number, percent_number, whole};

use crate::text::clean;
use crate::text::layout::aligned_with_words;

/// Returns each thread's regular pauses, those that hold most of its time first; empty where there are none. `window_ns` is the length of the window
/// that they were counted in.
///
/// Lengths and intervals are means with their standard deviations; an interval stands there only where it is regular.
pub fn pauses(pauses: &[Pauses], window_ns: u64) -> String {
    let regular = pauses.iter().filter_map(|thread| Some((thread, thread.regular()?)));
    let mut rows: Vec<_> = regular.collect();
    if rows.is_empty() {
        return String::new();
    }
    let time_ns = |thread: &Pauses| thread.length.count * thread.length.mean_ns;
    rows.sort_by(|(a, _), (b, _)| {
        a.kind().cmp(&b.kind()).then(time_ns(b).total_cmp(&time_ns(a))).then(a.tid.cmp(&b.tid))
    });
    let head = "thread,name,role,conn,kind,state,call,count,each ms,±,every ms,±,time %"
        .split(',')
        .map(str::to_string);
    let mut table = vec![head.collect::<Vec<_>>()];
    for (thread, is) in rows {
        let [each, each_spread] = cells(&thread.length);
        let [every, every_spread] = if is.period { cells(&thread.period) } else { Default::default() };
        table.push(vec![
            thread.tid.to_string(),
            clean(&thread.name),
            clean(&thread.role),
            thread.connection.map_or(String::new(), |id| id.to_string()),
            thread.kind().name().to_string(),
            clean(&thread.state).replace('_', " "),
            clean(&thread.call),
            whole(thread.length.count.round() as u64),
            each,
            each_spread,
            every,
            every_spread,
            percent_number((time_ns(thread) / window_ns.max(1) as f64).min(1.0)),
        ]);
    }
    format!("Pauses\n{}", aligned_with_words(&table, &[1, 2, 4, 5, 6]))
}

/// The same as a list of objects; times in milliseconds. `every` is there where the time from start to start is regular.
pub(crate) fn pauses_json(pauses: &[Pauses]) -> Value {
    let moments = |of: &Moments| json!({"mean_ms": of.mean_ns / 1e6, "spread_ms": of.spread_ns / 1e6});
    let thread = |thread: &Pauses| {
        let is = thread.regular()?;
        Some(json!({
            "tid": thread.tid,
            "name": thread.name,
            "role": thread.role,
            "connection": thread.connection,
            "kind": thread.kind().name(),
            "state": thread.state,
            "call": thread.call,
            "count": thread.length.count,
            "each": moments(&thread.length),
            "every": is.period.then(|| moments(&thread.period)),
        }))
    };
    pauses.iter().filter_map(thread).collect()
}

/// Mean and standard deviation, in milliseconds.
fn cells(moments: &Moments) -> [String; 2] {
    [moments.mean_ns, moments.spread_ns].map(|ns| number(ns / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(count: f64, mean_ms: f64, spread_ms: f64) -> Moments {
        Moments { count, mean_ns: mean_ms * 1e6, spread_ns: spread_ms * 1e6 }
    }

    #[test]
    fn what_is_regular_is_shown_and_what_is_not_is_left_out() {
        let waits = Pauses {
            tid: 4711,
            name: "one\u{1b}[2J".to_string(),
            role: "connection".to_string(),
            connection: Some(5),
            state: "net_receive".to_string(),
            call: "poll".to_string(),
            length: moments(20.0, 400.0, 3.0),
            period: moments(19.0, 500.0, 300.0),
            ..Pauses::default()
        };
        let timer = Pauses {
            tid: 4712,
            role: "page cleaner".to_string(),
            connection: None,
            length: moments(10.0, 990.0, 400.0),
            period: moments(9.0, 2000.0, 0.5),
            ..waits.clone()
        };
        let irregular = Pauses { tid: 4713, length: moments(20.0, 400.0, 300.0), ..waits.clone() };
        let table = pauses(&[timer, irregular.clone(), waits], 10_000_000_000);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "Pauses");
        assert!(lines[2].contains("4711") && lines[2].contains("next command"), "{table}");
        let last = |line: &str, cells: &[&str]| line.split_whitespace().collect::<Vec<_>>().ends_with(cells);
        assert!(last(lines[2], &["20", "400", "3", "80"]), "{table}");
        assert!(lines[3].contains("4712"), "{table}");
        assert!(last(lines[3], &["10", "990", "400", "2,000", "0.5", "99"]), "{table}");
        assert!(!table.contains("4713") && !table.contains('\u{1b}'), "{table}");
        assert_eq!(pauses(&[irregular], 10_000_000_000), "");
    }
}

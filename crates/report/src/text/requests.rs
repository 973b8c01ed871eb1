//! What access logs got over a window, as a table for each log.

use std::fmt::Write as _;

use whyso_explain::model::{AccessLogTime, RequestKind, ServingProcess};
use whyso_words::{count, milliseconds, number, percent_number, seconds, whole};

use super::layout::aligned_with_words;
use super::{clean, dash, shortened};

/// Longest name of a kind, in characters.
const NAME_MAX: usize = 70;
/// Heads of the columns; the last one has words.
pub(crate) const HEAD: [&str; 11] =
    ["% of time", "requests", "per s", "4xx", "5xx", "mean ms", "p50", "p90", "p99", "max", "kind"];

/// A table for each log, and one of its processes where the log names them; empty where no log was followed.
pub(crate) fn requests(logs: &[AccessLogTime]) -> String {
    logs.iter().map(table).collect::<Vec<_>>().join("\n")
}

fn table(log: &AccessLogTime) -> String {
    let mut rows = vec![HEAD.map(str::to_string).to_vec()];
    rows.push(cells(&RequestKind { name: "<Total>".to_string(), ..log.all.clone() }));
    rows.extend(log.kinds.iter().map(cells));
    let mut out = format!("{}\n{}", title(log), aligned_with_words(&rows, &[HEAD.len() - 1]));
    let left = left_out(log);
    if !left.is_empty() {
        let _ = writeln!(out, "{left}");
    }
    if let Some(line) = traced(log) {
        let _ = writeln!(out, "{line}");
    }
    if log.processes.len() > 1 || log.processes.iter().any(|process| process.program.is_some()) {
        let mut rows = vec![["requests", "mean ms", "process", "program"].map(str::to_string).to_vec()];
        rows.extend(log.processes.iter().map(process));
        let _ = write!(
            out,
            "\nRequests of {} by process\n{}",
            clean(&log.log),
            aligned_with_words(&rows, &[2, 3])
        );
    }
    out
}

/// "Requests by access.log, in 30 s"
pub(crate) fn title(log: &AccessLogTime) -> String {
    format!("Requests by {}, in {}", clean(&log.log), seconds(log.seconds))
}

/// What the table does not have; empty where it has all.
pub(crate) fn left_out(log: &AccessLogTime) -> String {
    let mut parts = Vec::new();
    if log.left_out > 0 {
        parts.push(count(u64::from(log.left_out), "more kind"));
    }
    if log.malformed > 0 {
        parts.push(count(log.malformed, "malformed line"));
    }
    if parts.is_empty() { String::new() } else { format!("not shown: {}", parts.join(", ")) }
}

/// The mean time of all requests by the log, and as the tracer saw it.
pub(crate) fn traced(log: &AccessLogTime) -> Option<String> {
    let traced = log.traced.as_ref()?;
    let by_log = log.all.mean_ms.map_or("no durations".to_string(), milliseconds);
    Some(format!(
        "mean of all: {by_log} by the log, {} by the tracer; per second: {} by the log, {} by the tracer ({})",
        milliseconds(traced.mean_ms),
        number(log.all.requests_per_s),
        number(traced.requests_per_s),
        clean(&traced.program),
    ))
}

/// A row's cells, as [`HEAD`] names them.
pub(crate) fn cells(kind: &RequestKind) -> Vec<String> {
    let ms = |ms: Option<f64>| ms.map_or_else(dash, number);
    let errors = |errors: u64| if errors == 0 { String::new() } else { whole(errors) };
    vec![
        kind.share.map_or_else(dash, percent_number),
        whole(kind.requests),
        number(kind.requests_per_s),
        errors(kind.errors_4xx),
        errors(kind.errors_5xx),
        ms(kind.mean_ms),
        ms(kind.p50_ms),
        ms(kind.p90_ms),
        ms(kind.p99_ms),
        ms(kind.max_ms),
        shortened(&clean(&kind.name), NAME_MAX),
    ]
}

fn process(process: &ServingProcess) -> Vec<String> {
    vec![
        whole(process.requests),
        process.mean_ms.map_or_else(dash, number),
        clean(&process.pid),
        process.program.as_deref().map_or_else(|| "not recorded".to_string(), clean),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_explain::model::TracedRequests;

    #[test]
    fn kinds_stand_below_the_total_and_the_tracers_mean_below_them() {
        let kind = RequestKind {
            name: "GET /items/{}\u{1b}".to_string(),
            requests: 1_200,
            requests_per_s: 40.0,
            errors_5xx: 3,
            share: Some(0.75),
            mean_ms: Some(12.0),
            p50_ms: Some(9.0),
            p90_ms: Some(20.0),
            p99_ms: Some(45.0),
            max_ms: Some(50.0),
            ..RequestKind::default()
        };
        let traced = TracedRequests {
            program: "apache2".to_string(),
            requests_per_s: 41.0,
            mean_ms: 13.0,
            is_by_process: true,
        };
        let log = AccessLogTime {
            log: "access.log".to_string(),
            seconds: 30.0,
            malformed: 1,
            all: RequestKind { share: Some(1.0), ..kind.clone() },
            kinds: vec![kind],
            left_out: 2,
            processes: vec![
                ServingProcess { pid: "7".to_string(), requests: 9, ..ServingProcess::default() };
                2
            ],
            traced: Some(traced),
        };
        let text = requests(&[log]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Requests by access.log, in 30 s");
        assert!(lines[2].ends_with("<Total>") && lines[3].ends_with("GET /items/{}?"), "{text}");
        assert_eq!(lines[3].split_whitespace().next(), Some("75"));
        assert_eq!(lines[4], "not shown: 2 more kinds, 1 malformed line");
        assert!(lines[5].starts_with("mean of all: 12 ms by the log, 13 ms by the tracer"), "{text}");
        assert!(lines[9].ends_with("not recorded"), "{text}");
        assert_eq!(requests(&[]), "");
    }
}

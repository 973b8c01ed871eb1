//! An access log, added up: kinds of requests with their rates, errors and times.

use serde_json::{Value, json};
use whyso_access_log::{LogSummary, Sums};
use whyso_words::{count, number, percent_number, seconds, whole};

use crate::text::layout::aligned_with_words;
use crate::text::{clean, shortened};

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;
/// Longest name of a kind in the terminal, in characters.
const NAME_MAX: usize = 70;

/// What a table of requests is of.
#[derive(Clone, Copy, Debug)]
pub struct RequestsOf<'a> {
    /// Such as "access.log".
    pub log: &'a str,
    /// Length of the window that was asked for; `None`: all of the log.
    pub seconds: Option<f64>,
}

impl RequestsOf<'_> {
    fn seconds(&self, summary: &LogSummary) -> Option<f64> {
        self.seconds.or_else(|| summary.seconds())
    }
}

/// Returns the line with the most time first, `limit` of them at most.
pub fn requests(of: RequestsOf<'_>, summary: &LogSummary, limit: usize) -> String {
    let length_s = of.seconds(summary);
    let during = length_s.map(|length_s| format!(" in {}", seconds(length_s))).unwrap_or_default();
    let mut out = format!("{}: {}{during}", clean(of.log), count(summary.total.requests, "request"));
    if !summary.format.is_empty() {
        out.push_str(&format!("; format: {}", shortened(&clean(&summary.format), NAME_MAX)));
    }
    out.push('\n');
    if let Some((number, reason)) = summary.first_malformed {
        out.push_str(&format!(
            "not counted: {}, of which the first is line {}, which {}{reason}\n",
            count(summary.malformed, "malformed line"),
            whole(number),
            if reason.to_string().starts_with("longer") { "is " } else { "" },
        ));
    }
    if summary.outside > 0 {
        out.push_str(&format!("not counted: {} outside the window\n", count(summary.outside, "request")));
    }
    if summary.total.requests > 0 && summary.total.timed == 0 {
        out.push_str(
            "the log has no durations: add %D to Apache's LogFormat, or $request_time to nginx's log_format\n",
        );
    }
    let head = ["time s", "%", "requests", "per s", "4xx", "5xx", "mean ms", "p50", "p90", "p99", "max"];
    let has_upstream = summary.total.upstream_requests > 0;
    let mut head: Vec<String> = head.map(str::to_string).to_vec();
    if has_upstream {
        head.push("upstream %".to_string());
    }
    head.push("kind".to_string());
    let mut rows = vec![head];
    let row = |name: String, sums: &Sums| row(name, sums, summary, length_s, has_upstream);
    rows.push(row("<Total>".to_string(), &summary.total));
    for line in summary.lines.iter().take(limit) {
        rows.push(row(shortened(&clean(&line.name), NAME_MAX), &line.sums));
    }
    let words = [rows[0].len() - 1];
    out.push('\n');
    out.push_str(&aligned_with_words(&rows, &words));
    let left = summary.lines.len().saturating_sub(limit);
    if left > 0 {
        out.push_str(&format!("and {} more: --limit N shows N\n", whole(left as u64)));
    }
    out
}

fn row(
    name: String,
    sums: &Sums,
    summary: &LogSummary,
    length_s: Option<f64>,
    has_upstream: bool,
) -> Vec<String> {
    let ms = |ns: Option<u64>| ns.map(|ns| number(ns as f64 / NS_PER_MS)).unwrap_or_default();
    let errors = |errors: u64| if errors == 0 { String::new() } else { whole(errors) };
    let is_timed = sums.timed > 0;
    let time = if is_timed { number(sums.duration_ns as f64 / NS_PER_S) } else { String::new() };
    let share = share_of_time(sums, summary).map(percent_number).unwrap_or_default();
    let mut row = vec![
        time,
        share,
        whole(sums.requests),
        length_s.map(|length_s| number(sums.requests as f64 / length_s)).unwrap_or_default(),
        errors(sums.errors_4xx),
        errors(sums.errors_5xx),
        ms(sums.mean_ns()),
        ms(sums.quantile_ns(0.5)),
        ms(sums.quantile_ns(0.9)),
        ms(sums.quantile_ns(0.99)),
        ms(is_timed.then_some(sums.duration_ns_max)),
    ];
    if has_upstream {
        row.push(upstream_share(sums).map(percent_number).unwrap_or_default());
    }
    row.push(name);
    row
}

/// Part of the time of all requests, from 0 to 1. `None`: no request has a duration.
fn share_of_time(sums: &Sums, summary: &LogSummary) -> Option<f64> {
    (summary.total.duration_ns > 0).then(|| sums.duration_ns as f64 / summary.total.duration_ns as f64)
}

/// Part of its time in which servers behind this one answered. `None`: none of them did.
fn upstream_share(sums: &Sums) -> Option<f64> {
    (sums.upstream_requests > 0 && sums.duration_ns > 0)
        .then(|| sums.upstream_ns as f64 / sums.duration_ns as f64)
}

/// Returns the same as one object.
pub fn requests_json(of: RequestsOf<'_>, summary: &LogSummary, limit: usize) -> Value {
    let length_s = of.seconds(summary);
    let line = |name: &str, sums: &Sums| {
        json!({
            "name": name,
            "requests": sums.requests,
            "requests_per_s": length_s.map(|length_s| sums.requests as f64 / length_s),
            "errors_4xx": sums.errors_4xx,
            "errors_5xx": sums.errors_5xx,
            "aborted": sums.aborted,
            "bytes": sums.bytes,
            "timed": sums.timed,
            "duration_ns": sums.duration_ns,
            "share_of_time": share_of_time(sums, summary),
            "mean_ns": sums.mean_ns(),
            "p50_ns": sums.quantile_ns(0.5),
            "p90_ns": sums.quantile_ns(0.9),
            "p99_ns": sums.quantile_ns(0.99),
            "max_ns": (sums.timed > 0).then_some(sums.duration_ns_max),
            "upstream_requests": sums.upstream_requests,
            "upstream_ns": sums.upstream_ns,
            "upstream_share": upstream_share(sums),
        })
    };
    let lines = summary.lines.iter().take(limit).map(|each| line(&each.name, &each.sums));
    json!({
        "log": of.log,
        "format": summary.format,
        "seconds": length_s,
        "begin_ns": summary.ends_ns.map(|(begin_ns, _)| begin_ns),
        "end_ns": summary.ends_ns.map(|(_, end_ns)| end_ns),
        "malformed": summary.malformed,
        "outside": summary.outside,
        "first_malformed": summary.first_malformed.map(|(number, reason)| json!({"line": number, "reason": reason.to_string()})),
        "total": line("<Total>", &summary.total),
        "lines": lines.collect::<Vec<_>>(),
    })
}

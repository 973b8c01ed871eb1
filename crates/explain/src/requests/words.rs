//! Sentences about access logs.

use whyso_words::{count, milliseconds, number, percent};

use super::model::{AccessLogTime, TracedRequests};
use crate::model::Finding;

/// Times and rates that differ by less are not called different.
const DIFFERENT_MIN: f64 = 0.1;

/// What each log shows in a sentence, and what the tracer saw of the same requests.
pub(crate) fn findings(logs: &[AccessLogTime]) -> Vec<Finding> {
    let finding = |text: String| Finding { id: "access-log".to_string(), text, evidence: Vec::new() };
    logs.iter().map(|log| finding(sentences(log))).collect()
}

fn sentences(log: &AccessLogTime) -> String {
    let mut text =
        format!("By {}, {} requests per second were answered", log.log, number(log.all.requests_per_s));
    match log.all.mean_ms {
        Some(mean_ms) => text.push_str(&format!(", in {} in the mean.", milliseconds(mean_ms))),
        None if log.all.requests > 0 => text.push_str(". The log has no durations."),
        None => text.push('.'),
    }
    if let (Some(slowest), true) = (log.kinds.first(), log.kinds.len() > 1)
        && let (Some(share), Some(p99_ms)) = (slowest.share, slowest.p99_ms)
    {
        text.push_str(&format!(
            " {} of that time is {}: 99 % of these took at most {}.",
            percent(share),
            slowest.name,
            milliseconds(p99_ms)
        ));
    }
    if let Some(traced) = &log.traced {
        text.push_str(&compared(log, traced));
    }
    let errors = log.all.errors_5xx;
    if errors > 0 {
        text.push_str(&format!(" {} had a status from 500 to 599.", count(errors, "answer")));
    }
    if log.malformed > 0 {
        text.push_str(&format!(" {} no requests in its format.", malformed(log.malformed)));
    }
    text
}

fn malformed(lines: u64) -> String {
    format!("{} {}", count(lines, "line"), if lines == 1 { "is" } else { "are" })
}

/// Both figures, and where they differ what each of them counts.
fn compared(log: &AccessLogTime, traced: &TracedRequests) -> String {
    let mut text = format!(
        " The tracer saw {} requests per second to {}, in {} in the mean.",
        number(traced.requests_per_s),
        traced.program,
        milliseconds(traced.mean_ms)
    );
    let differs =
        |by_log: f64, by_tracer: f64| (by_log - by_tracer).abs() > DIFFERENT_MIN * by_log.max(by_tracer);
    if differs(log.all.requests_per_s, traced.requests_per_s) {
        text.push_str(
            " The numbers differ: not every request is in this log, or it came to another program, too.",
        );
    }
    if log.all.mean_ms.is_some_and(|mean_ms| differs(mean_ms, traced.mean_ms)) {
        text.push_str(
            " The times differ: the tracer's begins when a request arrives, and the log's when the server has read its first line.",
        );
    }
    text
}

//! The result as one JSON object, for programs. The names are fixed: other programs rely on them.

use std::path::Path;

use serde_json::{Value, json};
use whyso_explain::model::{Explanation, LevelVerdict};
use whyso_record::run::{Level, LevelResult, Purpose, RunEnd, RunInfo};

use crate::answer::answer;
use crate::processes::processes_json;

/// Returns the object that `whyso run --json` prints. `path` is the recording's folder.
pub fn json(run: &RunInfo, explanation: &Explanation, path: &Path) -> Value {
    let verdict_of = |level: &Level| explanation.levels.iter().find(|verdict| verdict.index == level.index);
    let levels: Vec<Value> = run.levels.iter().map(|level| level_object(level, verdict_of(level))).collect();
    let peak = explanation.peak.as_ref().map(|peak| {
        json!({
            "users": peak.users,
            "users_interval": peak.users_interval,
            "transactions_per_s": peak.transactions_per_s,
        })
    });
    let usl = explanation.usl.as_ref().map(|usl| {
        json!({
            "lambda": usl.lambda,
            "sigma": usl.sigma,
            "kappa": usl.kappa,
            "peak_users": usl.peak_users,
            "peak_users_ci95": usl.peak_users_ci95,
            "r_squared": usl.r_squared,
        })
    });
    let findings: Vec<Value> = explanation
        .findings
        .iter()
        .map(|finding| json!({"id": finding.id, "text": finding.text, "evidence": finding.evidence}))
        .collect();
    let mut object = json!({
        "run": run.id,
        "path": path.display().to_string(),
        "usable": explanation.unusable.is_empty(),
        "unusable": explanation.unusable,
        "headline": explanation.headline,
        "answer": answer(run, explanation),
        "levels": levels,
        "peak": peak,
        "usl": usl,
        "findings": findings,
        "ended": run.ended,
        "server": {"version": run.server.version, "flavor": run.server.flavor},
        "tool_version": run.tool_version,
        "performance_schema": run.performance_schema(),
    });
    if let Some(name) = run.process() {
        object["process"] = json!(name);
        object["processes"] = json!(processes_json(explanation));
    }
    object
}

fn level_object(level: &Level, verdict: Option<&LevelVerdict>) -> Value {
    let mut object = measured(level);
    object["transactions_per_s_ci95"] = json!(verdict.and_then(|verdict| verdict.transactions_per_s_ci95));
    object["regime"] = json!(verdict.map(|verdict| verdict.regime));
    object["valid"] = json!(verdict.is_some_and(|verdict| verdict.valid));
    object["invalid_why"] = json!(verdict.map(|verdict| verdict.invalid_why.as_str()).unwrap_or_default());
    object["other_clients"] = json!(verdict.and_then(|verdict| verdict.other_clients));
    object["steady"] = json!(verdict.and_then(|verdict| verdict.steadiness.is_steady()));
    object["steadiness"] = json!(verdict.map(|verdict| verdict.steadiness));
    object["stuck"] = json!(verdict.map(|verdict| verdict.stuck.as_str()).unwrap_or_default());
    object["repeat"] = json!(level.purpose == Purpose::Repeat);
    object
}

/// What was measured of a level, as `whyso run --json` and `whyso load --json` both have it.
pub(crate) fn measured(level: &Level) -> Value {
    let result = &level.result;
    let client = &result.client;
    let mut object = json!({
        "users": level.users,
        "seconds": result.seconds,
        "transactions": result.transactions,
        "queries": result.queries,
        "errors": result.errors,
        "transactions_per_s": result.transactions_per_s,
        "queries_per_s": result.queries_per_s,
        "latency_ms": result.latency_ms,
        "service_ms": result.service_ms,
        "client": {
            "cpu_s": client.cpu_s,
            "cpu_us_per_query": client.cpu_us_per_query,
            "max_rss_kb": client.max_rss_kb,
            "saturated": client.saturated,
        },
        "client_limit": result.client_limit,
        "warmup_steady": level.warmup_steady,
        "pacing": whyso_words::pacing(&result.pacing),
        "rate_per_s": result.rate_per_s,
        "slo": result.slo,
        "kinds": result.by_transaction,
        "arrivals": result.arrivals,
        "in_flight": result.in_flight,
        "user_seconds": result.user_seconds,
        "errors_by_code": result.errors_by_code,
        "retries": result.retries,
        "engine": result.engine,
        "cut_short": match &level.ended {
            RunEnd::Complete { .. } => None,
            RunEnd::CutShort { why, .. } => Some(why),
        },
    });
    // The names within `latency_ms` are fixed.
    if let Some(latency) = object["latency_ms"].as_object_mut() {
        latency.remove("lower_bounds_above");
    }
    object["lower_bounds_above"] = json!(result.latency_ms.lower_bounds_above);
    if result.is_recorded() {
        leave_out_unknown(&mut object, result);
    }
    object
}

/// Of a load that something else drove, requests are counted and their mean is known: what else there is of a load is null.
fn leave_out_unknown(object: &mut Value, result: &LevelResult) {
    let mean = Some(result.latency_ms.mean).filter(|mean| *mean > 0.0);
    let names = ["p50", "p95", "p99", "p999", "max"];
    let unknown = names.iter().map(|name| (name.to_string(), Value::Null));
    object["latency_ms"] = unknown.chain([("mean".to_string(), json!(mean))]).collect();
    // Pages of a load over HTTP have errors of their own, whatever the server behind them does.
    let has_pages = !result.by_transaction.is_empty();
    for name in ["service_ms", "client", "errors", "errors_by_code", "retries", "engine"] {
        if !(has_pages && name.starts_with("errors")) {
            object[name] = Value::Null;
        }
    }
    if result.latency_ms.mean <= 0.0 {
        object["users"] = Value::Null;
    }
    object["sessions"] = json!(result.sessions);
}

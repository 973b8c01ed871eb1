//! The result of a load as one JSON object. The names are fixed: other programs rely on them.

use serde_json::{Map, Value, json};
use whyso_explain::model::LevelVerdict;
use whyso_record::run::{Ended, Latency, Level};

use super::{LoadResult, invalid_why};

/// The object that `whyso load --json` prints.
pub fn load_json(result: &LoadResult) -> Value {
    let levels: Vec<Value> =
        result.levels.iter().map(|(level, verdict)| level_object(level, verdict)).collect();
    let mut object = json!({ "levels": levels });
    if let Some(answer) = &result.capacity {
        object["capacity"] = json!({
            "holds_per_s": answer.bounds.holds_per_s,
            "fails_per_s": answer.bounds.fails_per_s,
            "settled": answer.bounds.settled,
            "bounded_by": answer.bounded_by,
            "probes": answer.probes,
            "text": answer.sentence(),
        });
    }
    if let Some(comparison) = &result.comparison {
        let mut quantities = Map::new();
        for quantity in &comparison.quantities {
            quantities.insert(
                quantity.name.clone(),
                json!({
                    "a": quantity.a,
                    "b": quantity.b,
                    "ratio": quantity.ratio.map(|ratio| ratio.ratio),
                    "ratio_ci95": quantity.ratio.and_then(|ratio| ratio.ci95),
                }),
            );
        }
        object["comparison"] = json!({
            "a": comparison.a,
            "b": comparison.b,
            "rounds": comparison.rounds,
            "quantities": quantities,
            "text": comparison.sentence(),
        });
    }
    object["cut_short"] = json!(result.cut_short);
    object["tool_version"] = json!(env!("CARGO_PKG_VERSION"));
    object
}

fn level_object(level: &Level, verdict: &LevelVerdict) -> Value {
    let result = &level.result;
    let client = &result.client;
    let invalid_why = invalid_why(level, verdict);
    json!({
        "workload": result.workload,
        "users": level.users,
        "seconds": result.seconds,
        "transactions": result.transactions,
        "queries": result.queries,
        "errors": result.errors,
        "transactions_per_s": result.transactions_per_s,
        "queries_per_s": result.queries_per_s,
        "latency_ms": latency(&result.latency_ms),
        "service_ms": latency(&result.service_ms),
        "client": {
            "cpu_s": client.cpu_s,
            "cpu_us_per_query": client.cpu_us_per_query,
            "max_rss_kb": client.max_rss_kb,
            "saturated": client.saturated,
        },
        "valid": invalid_why.is_empty(),
        "invalid_why": invalid_why,
        "client_limit": result.client_limit,
        "transactions_per_s_ci95": verdict.transactions_per_s_ci95,
        "warmup_steady": level.warmup_steady,
        "pacing": result.pacing,
        "rate_per_s": result.rate_per_s,
        "percentiles": result.percentiles,
        "slo": result.slo,
        "arrivals": result.arrivals,
        "kinds": result.by_transaction,
        "by_kind": result.by_statement,
        "errors_by_code": result.errors_by_code,
        "lost_ms_by_code": result.lost_ms_by_code,
        "retries": result.retries,
        "retried_ms": latency(&result.retried_ms),
        "reconnects": result.reconnects,
        "endpoints": result.endpoints,
        "engine": result.engine,
        "cut_short": match &level.ended {
            Ended::Complete { .. } => None,
            Ended::CutShort { why, .. } => Some(why),
        },
    })
}

fn latency(latency: &Latency) -> Value {
    json!(latency)
}

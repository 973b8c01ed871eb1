//! The result of a load as one JSON object. The names are fixed: other programs rely on them.

use serde_json::{Map, Value, json};
use whyso_explain::model::LevelVerdict;
use whyso_record::run::Level;

use super::{LoadResult, invalid_why};
use crate::json::measured;

/// Returns the object that `whyso load --json` prints.
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
    let invalid_why = invalid_why(level, verdict);
    let mut object = measured(level);
    object["workload"] = json!(result.workload);
    object["valid"] = json!(invalid_why.is_empty());
    object["invalid_why"] = json!(invalid_why);
    object["steady"] = json!(verdict.steadiness.is_steady());
    object["stuck"] = json!(verdict.stuck);
    object["transactions_per_s_ci95"] = json!(verdict.transactions_per_s_ci95);
    object["percentiles"] = json!(result.percentiles);
    object["by_kind"] = json!(result.by_statement);
    object["lost_ms_by_code"] = json!(result.lost_ms_by_code);
    object["retried_ms"] = json!(result.retried_ms);
    object["reconnects"] = json!(result.reconnects);
    object["endpoints"] = json!(result.endpoints);
    object
}

//! The budget and the suspects as one JSON object, for programs. The names are fixed: other programs rely on them.

use serde_json::{Map, Value, json};
use whyso_explain::model::{Budget, Explanation, Finding, LevelVerdict, Suspect};
use whyso_explain::slo::is_kind_of_transaction;
use whyso_record::run::{Purpose, RunInfo};
use whyso_remedy::track_record;

use crate::processes::processes_json;

/// Returns the object that `whyso why --json` prints. `levels` are those of the sweep; one that was not traced has no part, and all of its response
/// time unaccounted.
pub fn why_json(run: &RunInfo, explanation: &Explanation) -> Value {
    let swept = run.levels.iter().filter(|level| level.purpose == Purpose::Sweep);
    let levels: Vec<Value> = swept
        .filter_map(|level| {
            explanation
                .levels
                .iter()
                .find(|verdict| verdict.index == level.index)
                .map(|verdict| (level, verdict))
        })
        .map(|(level, verdict)| level_object(verdict, level.result.latency_ms.mean, explanation))
        .collect();
    let mut object = json!({
        "levels": levels,
        "limit": explanation.limit,
        "suspects": explanation.suspects.iter().map(suspect_object).collect::<Vec<_>>(),
        "possible": explanation.possible,
        "pauses": pauses(&explanation.findings),
    });
    if !explanation.nodes.is_empty() {
        object["nodes"] = json!(explanation.nodes);
    }
    if !explanation.tiers.is_empty() {
        object["tiers"] = json!(explanation.tiers);
    }
    if !explanation.access_logs.is_empty() {
        object["access_logs"] = json!(explanation.access_logs);
    }
    if !explanation.workers.is_empty() {
        object["workers"] = json!(explanation.workers);
    }
    let pages = pages_json(run);
    if !pages.is_empty() {
        object["pages"] = json!(pages);
    }
    if run.process().is_some() {
        object["levels"] = json!([]);
        object["processes"] = json!(processes_json(explanation));
    }
    object
}

/// The pages of a load over HTTP that was recorded, level by level.
fn pages_json(run: &RunInfo) -> Vec<Value> {
    let mut pages = Vec::new();
    for level in run.levels.iter().filter(|_| run.spec.recorded) {
        for page in &level.result.by_transaction {
            let mut goals =
                level.result.slo.iter().filter(|slo| is_kind_of_transaction(&slo.kind, &page.kind));
            let goal = goals.next();
            pages.push(json!({
                "level": level.index,
                "page": page.kind,
                "count": page.transactions,
                "per_s": page.transactions_per_s,
                "mean_ms": page.latency_ms.mean,
                "max_ms": page.latency_ms.max,
                "p90_ms": page.p90_ms,
                "goal_ms": goal.map(|goal| goal.required_ms),
                "holds": goal.map(|goal| goal.held),
            }));
        }
    }
    pages
}

/// Threads that pause periodically, in sentences.
fn pauses(findings: &[Finding]) -> Vec<Value> {
    findings
        .iter()
        .filter(|finding| finding.id == "pauses")
        .map(|finding| json!({ "text": finding.text, "evidence": finding.evidence }))
        .collect()
}

fn suspect_object(suspect: &Suspect) -> Value {
    json!({
        "id": suspect.id,
        "share": suspect.share,
        "class": suspect.class,
        "predicted_gain": suspect.predicted_gain.map(|gain| json!({"low": gain.low, "high": gain.high})),
        "track_record": track_record(suspect.id),
        "evidence": suspect.evidence,
        "text": suspect.text,
    })
}

fn budget_of<'a>(explanation: &'a Explanation, verdict: &LevelVerdict) -> Option<&'a Budget> {
    explanation.budgets.iter().find(|budget| budget.level == verdict.index)
}

fn level_object(verdict: &LevelVerdict, response_ms: f64, explanation: &Explanation) -> Value {
    let (mut parts, mut classes) = (Map::new(), Map::new());
    let mut unaccounted_ms = response_ms;
    if let Some(budget) = budget_of(explanation, verdict) {
        for part in &budget.parts {
            parts.insert(part.part.name().to_string(), json!(part.ms));
        }
        unaccounted_ms = budget.unaccounted_ms;
        for class_time in &budget.classes {
            let of_part = classes.entry(class_time.part.name()).or_insert_with(|| json!({}));
            let class = if class_time.class.is_empty() { "none" } else { &class_time.class };
            of_part[class] = json!(class_time.ms);
        }
    }
    let mut level = json!({
        "users": verdict.users,
        "response_ms": response_ms,
        "budget_ms": parts,
        "unaccounted_ms": unaccounted_ms,
        "other_clients": verdict.other_clients,
    });
    let activities = budget_of(explanation, verdict).map_or(&[][..], |budget| &budget.activities);
    if !activities.is_empty() {
        let ms: Map<String, Value> = activities
            .iter()
            .map(|activity| (activity.activity.name().to_string(), json!(activity.ms)))
            .collect();
        level["server_cpu_ms_by_activity"] = Value::Object(ms);
    }
    if !classes.is_empty() {
        level["wait_classes_ms"] = Value::Object(classes);
    }
    level
}

//! What differs between two profiles: as a table, as an object, and as folded stacks for differential flame graphs.

use serde_json::{Map, Value, json};
use whyso_explain::profile::{ComparedBy, Difference, Differences, FunctionDifference, Profile, folded_differences};

use super::{SampledIn, clean, named, table, words};
use crate::number::{grouped, whole};

const NS_PER_US: f64 = 1e3;
const PER_CENT: f64 = 1e2;
/// Shares in folded stacks are whole millionths: the programs that read them take whole numbers.
const PER_MILLION: f64 = 1e6;
/// Stands before a difference that the samples can't tell from none.
const WITHIN: &str = "~";

/// Two profiles that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    pub here: SampledIn<'a>,
    pub there: SampledIn<'a>,
    pub by: ComparedBy,
    /// What is counted: "transaction" or "request".
    pub unit: &'a str,
    /// Inclusive times rather than exclusive ones.
    pub inclusive: bool,
}

impl Compared<'_> {
    /// In what times are told, and how many of it a nanosecond, or a whole, is.
    fn scale(&self) -> (&'static str, f64) {
        match self.by {
            ComparedBy::Transactions { .. } => ("µs", 1.0 / NS_PER_US),
            ComparedBy::Share => ("%", PER_CENT),
        }
    }

    fn of<'a>(&self, function: &'a FunctionDifference) -> &'a [Difference] {
        if self.inclusive { &function.inclusive } else { &function.exclusive }
    }
}

/// The functions that differ most, `limit` of them at most, under `<Total>`.
pub fn function_differences(compared: Compared<'_>, metrics: &[String], found: &Differences, limit: usize) -> String {
    let (unit, scale) = compared.scale();
    let head = |metric: &String| {
        [format!("{} {unit}", words(metric)), "against".to_string(), "differs by".to_string(), "±".to_string()]
    };
    let mut rows = vec![metrics.iter().flat_map(head).chain(["function".to_string()]).collect::<Vec<_>>()];
    for one in [&found.total].into_iter().chain(found.functions.iter().take(limit)) {
        let cells = compared.of(one).iter().flat_map(|difference| cells(difference, scale));
        rows.push(cells.chain([clean(&named(&one.function))]).collect());
    }
    let mut out = format!("{}\n{}", about(compared), table(&rows));
    let left = found.functions.len().saturating_sub(limit);
    if left > 0 {
        out.push_str(&format!("and {} more: --limit N shows N\n", whole(left as u64)));
    }
    out
}

fn about(compared: Compared<'_>) -> String {
    let side = |sampled: SampledIn<'_>, transactions: Option<f64>| {
        let counted = transactions.map(|count| format!(", {} {}s", whole(count as u64), compared.unit));
        format!(
            "{}, {} s{}: {} samples on CPUs, {} waits",
            clean(sampled.window),
            grouped(sampled.seconds),
            counted.unwrap_or_default(),
            whole(sampled.samples),
            whole(sampled.waits)
        )
    };
    let (here, there, per) = match compared.by {
        ComparedBy::Transactions { here, there } => {
            (Some(here), Some(there), format!("time a {}", compared.unit))
        }
        ComparedBy::Share => (None, None, "share of each one's time".to_string()),
    };
    let kind = if compared.inclusive { "inclusive" } else { "exclusive" };
    format!(
        "        {}\nagainst {}\n{}: {kind} {per}; ± is the 95 % interval of the samples alone, not of what differs from one start of a server to \
         the next; {WITHIN} is within it\n",
        side(compared.here, here),
        side(compared.there, there),
        clean(compared.here.whose)
    )
}

fn cells(difference: &Difference, scale: f64) -> [String; 4] {
    let Difference { here, there, half } = *difference;
    let number = |value: f64| if value == 0.0 { "0".to_string() } else { format!("{:.2}", value * scale) };
    if here == 0.0 && there == 0.0 {
        return ["0".to_string(), "0".to_string(), String::new(), String::new()];
    }
    let mark = if difference.is_told_apart() { "" } else { WITHIN };
    let value = format!("{mark}{:+.2}", difference.value() * scale);
    [number(here), number(there), value, number(half)]
}

/// What `whyso functions --against --json` prints. Times are in nanoseconds a transaction, or shares from 0 to 1.
pub fn function_differences_json(compared: Compared<'_>, metrics: &[String], found: &Differences, limit: usize) -> Value {
    let side = |sampled: SampledIn<'_>, transactions: Option<f64>| {
        json!({
            "window": sampled.window,
            "seconds": sampled.seconds,
            "transactions": transactions,
            "samples": sampled.samples,
            "waits": sampled.waits,
            "known_share": sampled.known_share,
        })
    };
    let (by, here, there) = match compared.by {
        ComparedBy::Transactions { here, there } => ("transactions", Some(here), Some(there)),
        ComparedBy::Share => ("share", None, None),
    };
    json!({
        "here": side(compared.here, here),
        "there": side(compared.there, there),
        "role": compared.here.role,
        "whose": compared.here.whose,
        "compared_by": by,
        "metrics": metrics,
        "total": object(metrics, &found.total),
        "functions": found.functions.iter().take(limit).map(|one| object(metrics, one)).collect::<Vec<_>>(),
    })
}

fn object(metrics: &[String], function: &FunctionDifference) -> Value {
    let one = |difference: &Difference| {
        json!({
            "here": difference.here,
            "there": difference.there,
            "difference": difference.value(),
            "half_interval": difference.half,
            "told_apart": difference.is_told_apart(),
        })
    };
    let times = function.exclusive.iter().zip(&function.inclusive);
    let times = metrics.iter().zip(times).map(|(metric, (exclusive, inclusive))| {
        (metric.clone(), json!({"exclusive": one(exclusive), "inclusive": one(inclusive)}))
    });
    let mut object = Value::Object(times.collect::<Map<_, _>>());
    object["name"] = json!(function.function.name);
    object["module"] = json!(function.function.module);
    object
}

/// Stacks in one metric as programs for differential flame graphs read them: functions from the outermost to the innermost with `;` between,
/// and after blanks the time there and here: nanoseconds a transaction, or millionths of each one's time. Stacks that come to less than one of
/// both are left out.
pub fn folded_against(here: &Profile, there: &Profile, metric: usize, by: ComparedBy) -> String {
    let scale = match by {
        ComparedBy::Transactions { .. } => 1.0,
        ComparedBy::Share => PER_MILLION,
    };
    let mut out = String::new();
    for (stack, times) in folded_differences(here, there, metric, by) {
        let [there, here] = times.map(|time| (time * scale).round());
        if there >= 1.0 || here >= 1.0 {
            out.push_str(&format!("{} {there} {here}\n", super::path(&stack)));
        }
    }
    out
}

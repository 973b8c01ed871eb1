//! What differs between two profiles: as a table, as an object, and as folded stacks for differential flame graphs.

use serde_json::{Map, Value, json};
use whyso_profile::{ComparedBy, Difference, Differences, FunctionDifference, Profile, folded_differences};
use whyso_series::KnownBy;
use whyso_words::{count, number, seconds, signed_number, whole};

use super::{SampledIn, clean, known_words, named, table, words};

const NS_PER_US: f64 = 1e3;
const PER_CENT: f64 = 1e2;
/// Shares in folded stacks are whole millionths: the programs that read them take whole numbers.
const PER_MILLION: f64 = 1e6;
/// Stands before a difference that the samples can't distinguish from none.
const WITHIN: &str = "~";

/// Two profiles that are compared.
#[derive(Clone, Copy, Debug)]
pub struct ProfilePair<'a> {
    pub here: SampledIn<'a>,
    pub there: SampledIn<'a>,
    pub by: ComparedBy,
    /// What is counted: "transaction" or "request".
    pub unit: &'a str,
    /// Inclusive times rather than exclusive ones.
    pub inclusive: bool,
}

impl ProfilePair<'_> {
    /// Returns the unit of times, and how many of it a nanosecond, or a whole, is.
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

/// Returns the functions that differ most, `limit` of them at most, under `<Total>`.
pub fn function_differences(
    compared: ProfilePair<'_>,
    metrics: &[String],
    found: &Differences,
    limit: usize,
) -> String {
    let (unit, scale) = compared.scale();
    let head = |metric: &String| {
        [
            format!("{} {unit}", words(metric)),
            "against".to_string(),
            "differs by".to_string(),
            "±".to_string(),
        ]
    };
    let mut rows = vec![metrics.iter().flat_map(head).chain(["function".to_string()]).collect::<Vec<_>>()];
    // One that spent no time on either side has nothing to show.
    let spent = |function: &&FunctionDifference| {
        compared.of(function).iter().any(|difference| difference.here != 0.0 || difference.there != 0.0)
    };
    let functions: Vec<&FunctionDifference> = found.functions.iter().filter(spent).collect();
    for function in [&found.total].into_iter().chain(functions.iter().copied().take(limit)) {
        let cells = compared.of(function).iter().flat_map(|difference| cells(difference, scale));
        rows.push(cells.chain([clean(&named(&function.function))]).collect());
    }
    let mut out = format!("{}\n{}", about(compared), table(&rows));
    let left = functions.len().saturating_sub(limit);
    if left > 0 {
        out.push_str(&format!("and {} more: --limit N shows N\n", whole(left as u64)));
    }
    out
}

fn about(compared: ProfilePair<'_>) -> String {
    let side = |sampled: SampledIn<'_>, transactions: Option<f64>| {
        let counted = transactions.map(|times| format!(", {}", count(times as u64, compared.unit)));
        format!(
            "{}, {}{}: {} on CPUs, {}",
            clean(sampled.window),
            seconds(sampled.seconds),
            counted.unwrap_or_default(),
            count(sampled.samples, "sample"),
            count(sampled.waits, "wait")
        )
    };
    let (here, there, per) = match compared.by {
        ComparedBy::Transactions { here, there } => {
            (Some(here), Some(there), format!("time per {}", compared.unit))
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
    ) + &known_of_both(compared)
}

fn known_of_both(compared: ProfilePair<'_>) -> String {
    let side = |words: &str, sampled: SampledIn<'_>| {
        let text = known_words(sampled);
        if text.is_empty() { text } else { format!("{words}: {text}") }
    };
    side("here", compared.here) + &side("there", compared.there)
}

fn cells(difference: &Difference, scale: f64) -> [String; 4] {
    let Difference { here, there, half } = *difference;
    if here == 0.0 && there == 0.0 {
        return ["0".to_string(), "0".to_string(), String::new(), String::new()];
    }
    let mark = if difference.is_distinguishable() { "" } else { WITHIN };
    let value = format!("{mark}{}", signed_number(difference.value() * scale));
    [number(here * scale), number(there * scale), value, number(half * scale)]
}

/// Returns what `whyso functions --against --json` prints. Times are in nanoseconds per transaction, or shares from 0 to 1.
pub fn function_differences_json(
    compared: ProfilePair<'_>,
    metrics: &[String],
    found: &Differences,
    limit: usize,
) -> Value {
    let side = |sampled: SampledIn<'_>, transactions: Option<f64>| {
        json!({
            "window": sampled.window,
            "seconds": sampled.seconds,
            "transactions": transactions,
            "samples": sampled.samples,
            "waits": sampled.waits,
            "known_share": sampled.known_share,
            "known_by": sampled.known_by.map(KnownBy::name),
            "hidden_share": sampled.hidden_share,
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
        "functions": found.functions.iter().take(limit).map(|function| object(metrics, function)).collect::<Vec<_>>(),
    })
}

fn object(metrics: &[String], function: &FunctionDifference) -> Value {
    let time = |difference: &Difference| {
        json!({
            "here": difference.here,
            "there": difference.there,
            "difference": difference.value(),
            "half_interval": difference.half,
            "told_apart": difference.is_distinguishable(),
        })
    };
    let times = function.exclusive.iter().zip(&function.inclusive);
    let times = metrics.iter().zip(times).map(|(metric, (exclusive, inclusive))| {
        (metric.clone(), json!({"exclusive": time(exclusive), "inclusive": time(inclusive)}))
    });
    let mut object = Value::Object(times.collect::<Map<_, _>>());
    object["name"] = json!(function.function.name);
    object["module"] = json!(function.function.module);
    object
}

/// Returns stacks in one metric as programs for differential flame graphs read them: functions from the outermost to the innermost, with `;` between.
/// After blanks come the time there and the time here, in nanoseconds per transaction or in millionths of each profile's time. Stacks with less than 1
/// on both sides are left out.
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

#[cfg(test)]
mod tests {
    use super::super::tests::SAMPLED;
    use super::*;
    use whyso_profile::{FunctionName, ProfileSample};

    /// Stacks outermost first, each with how many samples of 10 ms there were.
    fn sampled(stacks: &[(&str, u32)]) -> Profile {
        let mut profile = Profile { metrics: vec!["cpu".to_string()], ..Profile::default() };
        for (stack, (path, samples)) in (0..).zip(stacks) {
            let name = |name: &str| FunctionName { name: name.to_string(), module: "server".to_string() };
            profile.stacks.insert(stack, path.split(';').rev().map(name).collect());
            let sample = ProfileSample::one(stack, 0, 10e6, 0.0);
            profile.samples.extend((0..*samples).map(|_| sample));
        }
        profile
    }

    const THERE: SampledIn<'_> =
        SampledIn { window: "the level of 4 users", samples: 102, waits: 0, ..SAMPLED };

    #[test]
    fn functions_stand_with_what_they_differ_by_the_largest_first_and_what_is_within_the_interval_is_marked()
    {
        let here = sampled(&[("main;walk", 400), ("main;hash\u{1b}", 10)]);
        let there = sampled(&[("main;walk", 100), ("main;hash\u{1b}", 2)]);
        let by = ComparedBy::Transactions { here: 2_000.0, there: 1_000.0 };
        let found = whyso_profile::differences(&here, &there, by);
        let compared = ProfilePair { here: SAMPLED, there: THERE, by, unit: "transaction", inclusive: false };
        let table = function_differences(compared, &here.metrics, &found, 2);
        assert_eq!(
            table,
            "        the level of 16 users, 10 s, 2,000 transactions: 2 samples on CPUs, 1,234 waits
against the level of 4 users, 10 s, 1,000 transactions: 102 samples on CPUs, 0 waits
threads of role connection: exclusive time per transaction; ± is the 95 % interval of the samples alone, not of what differs from one start of a server to the next; ~ is within it

cpu µs  against  differs by     ±  function
 2,050    1,020      +1,030   280  <Total>
 2,000    1,000      +1,000   277  walk
    50       20        ~+30  41.6  hash?
"
        );
        let inclusive =
            function_differences(ProfilePair { inclusive: true, ..compared }, &here.metrics, &found, 9);
        assert!(inclusive.lines().last().unwrap().ends_with("280  main"), "{inclusive}");
        let object = function_differences_json(compared, &here.metrics, &found, 1);
        assert_eq!(object["functions"][0]["cpu"]["exclusive"]["difference"], 1e6);
        assert_eq!(object["functions"][0]["name"], "walk");
        assert_eq!(object["there"]["transactions"], 1_000.0);
    }

    #[test]
    fn without_transactions_shares_are_compared() {
        let (here, there) =
            (sampled(&[("main;walk", 300), ("main;read", 100)]), sampled(&[("main;walk", 100)]));
        let found = whyso_profile::differences(&here, &there, ComparedBy::Share);
        let by = ComparedBy::Share;
        let compared = ProfilePair { here: SAMPLED, there: THERE, by, unit: "transaction", inclusive: false };
        let table = function_differences(compared, &here.metrics, &found, 1);
        let rows: Vec<&str> = table.lines().skip(4).take(3).collect();
        assert_eq!(
            rows,
            [
                "cpu %  against  differs by     ±  function",
                "  100      100          ~0     0  <Total>",
                "   25        0         +25  4.24  read"
            ]
        );
        assert!(table.contains("exclusive share of each one's time;"), "{table}");
    }

    #[test]
    fn folded_stacks_have_there_and_here() {
        let (here, there) = (sampled(&[("main;a;b", 4)]), sampled(&[("main;a;b", 1), ("main", 1)]));
        let by = ComparedBy::Transactions { here: 2.0, there: 1.0 };
        assert_eq!(folded_against(&here, &there, 0, by), "main 10000000 0\nmain;a;b 10000000 20000000\n");
        assert_eq!(
            folded_against(&here, &there, 0, ComparedBy::Share),
            "main 500000 0\nmain;a;b 500000 1000000\n"
        );
    }
}

//! The file, as it is written.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;
use crate::cluster::ClusterSetup;
use crate::design::Design;
use crate::hints;
use crate::scalar::{Scalar, Values};
use crate::session_sweep::SessionSweep;
use crate::setup::Part;

/// A study, as its file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub title: String,
    /// What it is to answer, in a sentence.
    pub question: String,
    /// Builds by the name that `whyso server list` has, or by their folder; "" is the server on the PATH.
    #[serde(default = "on_the_path")]
    pub servers: Vec<String>,
    /// Those of them that are not available are left out, and reported.
    #[serde(default)]
    pub where_at_hand: bool,
    #[serde(default = "workload")]
    pub workload: String,
    /// Options of the workload.
    #[serde(default)]
    pub options: Values,
    #[serde(default = "tables")]
    pub tables: u32,
    #[serde(default = "rows")]
    pub rows: u64,
    /// Storage engine of the tables.
    #[serde(default = "engine")]
    pub engine: String,
    /// Knobs of every cell.
    #[serde(default)]
    pub set: Values,
    /// The cluster that is started in place of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterSetup>,
    /// The sample application that is started in place of a server, by its name. `set` has its options, and `workload` the page or the
    /// scenario that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Users of each level of a start's sweep.
    #[serde(default = "one_user")]
    pub users: Vec<u32>,
    /// Seconds that each level is measured.
    #[serde(default = "seconds")]
    pub seconds: f64,
    /// Bound on a level's warm-up, in seconds.
    #[serde(default = "warmup")]
    pub warmup: f64,
    /// The page cache is emptied of the data before each start.
    #[serde(default)]
    pub cold: bool,
    #[serde(default)]
    pub repeats: Repeats,
    /// Where `repeats` is "until …": fewest and most starts of each cell.
    #[serde(default = "repeats_least")]
    pub repeats_least: u32,
    #[serde(default = "repeats_most")]
    pub repeats_most: u32,
    /// Name of the variant that the others are compared with.
    pub baseline: String,
    /// Variants, each of which is also compared with the one before it.
    #[serde(default)]
    pub steps: Vec<String>,
    /// Three variants each: one, another, and both at once, to see whether together they do more or less than each by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interactions: Vec<[String; 3]>,
    /// How a block's starts are carried out; where it is left out, whyso chooses.
    #[serde(default, rename = "design", skip_serializing_if = "Option::is_none")]
    pub asked_design: Option<Design>,
    /// What is compared, by the name of a measure.
    #[serde(default = "metric")]
    pub metric: String,
    /// What else is shown of each cell, by the names of measures.
    #[serde(default)]
    pub show: Vec<String>,
    /// What is shown second by second.
    #[serde(default)]
    pub over_time: Vec<String>,
    /// The smallest difference that is worth knowing, in per cent.
    #[serde(default = "matters")]
    pub matters_percent: f64,
    /// Of the order of the starts.
    #[serde(default)]
    pub seed: u64,
    /// Account for the time of the server's threads in every run.
    #[serde(default = "yes")]
    pub trace: bool,
    /// Take their stacks, too.
    #[serde(default)]
    pub stacks: bool,
    /// Record every command of the load, literals replaced.
    #[serde(default)]
    pub trace_sql: bool,
    /// Sources of the user's own that are recorded, by name or by file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add_ons: Vec<String>,
    /// Begin with two starts of the baseline, to see whether the machine differs from itself.
    #[serde(default = "yes")]
    pub pair: bool,
    /// Folder in which servers keep their data while they run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<String>,
    #[serde(default, rename = "condition", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Part>,
    #[serde(default, rename = "variant")]
    pub variants: Vec<Part>,
    /// Knobs with several values each: every combination is a variant, on top of each [[variant]].
    #[serde(default)]
    pub grid: Grid,
    /// Knobs with several values each: every combination is tried, and the best one counts.
    #[serde(default)]
    pub best_of: Grid,
    /// A knob that is swept within each start.
    #[serde(default, rename = "inside", skip_serializing_if = "Option::is_none")]
    pub session_sweep: Option<SessionSweep>,
    #[serde(default)]
    pub stop: StopWhen,
    /// Locks whose instances are watched, by parts of their names.
    #[serde(default)]
    pub instances: Vec<String>,
    /// A limit of concurrency that is found from the sessions that run at the peak, and then tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggest: Option<Suggest>,
    /// What others found, to be read next to the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Before>,
}

fn first_column() -> Vec<usize> {
    vec![0]
}

/// A table of what was found before, elsewhere. Nothing is computed from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Before {
    /// By whom, when, with what.
    pub source: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Columns of words, by their places; the others hold numbers.
    #[serde(default = "first_column")]
    pub words: Vec<usize>,
    /// What the reader has to know to read it.
    #[serde(default)]
    pub note: String,
}

/// A knob that limits how many threads run at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suggest {
    pub knob: String,
    /// The server that it is for; where it is left out, the first that has the knob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// Knobs with several values each.
pub(crate) type Grid = BTreeMap<String, Vec<Scalar>>;

/// What ends a study early. The answer then covers what was done until then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopWhen {
    /// Hours after which it ends, all its parts added up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<f64>,
    /// Highest share of a level's transactions that may fail, in per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors_percent: Option<f64>,
}

/// Fresh starts of each cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repeats {
    Times(u32),
    /// Until each comparison's 95 % interval reaches at most this many per cent to either side.
    Until {
        percent: f64,
    },
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats::Times(5)
    }
}

impl fmt::Display for Repeats {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repeats::Times(times) => times.fmt(formatter),
            Repeats::Until { percent } => write!(formatter, "until ±{percent}%"),
        }
    }
}

impl Serialize for Repeats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Repeats::Times(times) => times.serialize(serializer),
            Repeats::Until { .. } => self.to_string().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Repeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Repeats, D::Error> {
        match Scalar::deserialize(deserializer)? {
            Scalar::Int(times) => u32::try_from(times)
                .map(Repeats::Times)
                .map_err(|_| D::Error::custom(format!("repeats = {times} can't be: give 1 to 1000"))),
            Scalar::Text(text) => {
                let percent = text.strip_prefix("until").and_then(|rest| rest.trim().strip_suffix('%'));
                let percent = percent.map(|percent| percent.trim_start_matches(['±', '+', '-', '/']).trim());
                let percent = percent.and_then(|percent| percent.parse().ok());
                percent.filter(|percent| (0.05..=50.0).contains(percent)).map_or_else(
                    || {
                        Err(D::Error::custom(format!(
                            "repeats = {text:?} can't be understood: give a number, or such as \"until ±1%\""
                        )))
                    },
                    |percent| Ok(Repeats::Until { percent }),
                )
            }
            other => Err(D::Error::custom(format!("repeats = {other} can't be: give 1 to 1000"))),
        }
    }
}

fn on_the_path() -> Vec<String> {
    vec![String::new()]
}

fn yes() -> bool {
    true
}

fn workload() -> String {
    "oltp-read-write".to_string()
}

pub(crate) fn tables() -> u32 {
    4
}

pub(crate) fn rows() -> u64 {
    25_000
}

pub(crate) fn engine() -> String {
    "InnoDB".to_string()
}

fn one_user() -> Vec<u32> {
    vec![1]
}

fn seconds() -> f64 {
    30.0
}

fn warmup() -> f64 {
    10.0
}

fn repeats_least() -> u32 {
    3
}

fn repeats_most() -> u32 {
    30
}

fn metric() -> String {
    "transactions_per_s".to_string()
}

fn matters() -> f64 {
    3.0
}

impl Spec {
    /// Parses a study's file, and checks it and its short form. `quick`: the short form is returned, where the file has one.
    ///
    /// # Errors
    /// What is wrong with it, with the nearest known key where one is unknown.
    pub fn parse(text: &str, quick: bool) -> Result<Spec, Error> {
        let toml: toml::Table =
            text.parse().map_err(|error: toml::de::Error| Error::Spec(hints::of_toml(error.message())))?;
        let (long, short) = forms(toml)?;
        let of = |table: toml::Table| -> Result<Spec, Error> {
            let spec: Spec = table
                .try_into()
                .map_err(|error: toml::de::Error| Error::Spec(hints::of_toml(error.message())))?;
            spec.check()?;
            Ok(spec)
        };
        let long = of(long)?;
        let short = short.map(of).transpose().map_err(|error| Error::Spec(format!("[quick]: {error}")))?;
        match (quick, short) {
            (false, _) => Ok(long),
            (true, Some(short)) => Ok(short),
            (true, None) => Err(Error::Spec("this study has no [quick]: run it without --quick".to_string())),
        }
    }
}

/// The long form and, where there is a `[quick]`, the short one: each key of that in place of the file's own.
fn forms(mut long: toml::Table) -> Result<(toml::Table, Option<toml::Table>), Error> {
    let short = match long.remove("quick") {
        None => None,
        Some(toml::Value::Table(quick)) => {
            let mut short = long.clone();
            short.extend(quick);
            Some(short)
        }
        Some(_) => {
            return Err(Error::Spec(
                "quick is no table: write [quick], and below it what differs in the short form".to_string(),
            ));
        }
    };
    Ok((long, short))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = r#"
title = "Flush at commit"
question = "What does a flush at every commit cost?"
users = [1, 8]
baseline = "flush"

[[variant]]
name = "flush"
set = { innodb_flush_log_at_trx_commit = 1 }

[[variant]]
name = "no flush"
set = { innodb_flush_log_at_trx_commit = 2 }

[quick]
seconds = 2
repeats = 3
"#;

    #[test]
    fn a_study_has_its_short_form() {
        let long = Spec::parse(STUDY, false).unwrap();
        assert_eq!((long.seconds, long.repeats, long.cells().len()), (30.0, Repeats::Times(5), 2));
        let short = Spec::parse(STUDY, true).unwrap();
        assert_eq!((short.seconds, short.repeats, short.users), (2.0, Repeats::Times(3), vec![1, 8]));
        // Two cells five times, and the pair.
        assert_eq!(long.measured_s_max(), (2.0 * 5.0 + 2.0) * 2.0 * 40.0);
    }

    #[test]
    fn what_is_wrong_is_reported_with_what_would_be_right() {
        let says =
            |from: &str, to: &str| Spec::parse(&STUDY.replace(from, to), false).unwrap_err().to_string();
        assert_eq!(says("users =", "usres ="), "unknown key `usres`: did you mean `users`?");
        assert!(
            says("set = { innodb_flush_log_at_trx_commit = 1 }", "sett = {}").contains("did you mean `set`?")
        );
        assert!(says("baseline = \"flush\"", "baseline = \"flsh\"").contains("such as \"flush\""));
        assert!(says("[1, 8]", "[]").contains("such as [1, 8, 64]"));
        assert!(says("[1, 8]", "\"many\"").contains("can't be read"));
        assert!(says("name = \"no flush\"", "name = \"flush\"").contains("two [[variant]]"));
        assert!(says("seconds = 2", "secnds = 2").contains("[quick]: unknown key `secnds`"));
        let metric = says("baseline", "metric = \"transactions\"\nbaseline");
        assert!(metric.contains("did you mean `transactions_per_s`?"), "{metric}");
        let no_quick = STUDY.split("[quick]").next().unwrap();
        assert!(Spec::parse(no_quick, true).unwrap_err().to_string().contains("no [quick]"));
    }

    #[test]
    fn what_was_found_before_is_a_whole_table() {
        let of = |row: &str| {
            let text = STUDY.replace("[quick]", &format!("[[before]]\nsource = 'a paper'\nhead = ['what', 'tps']\nrows = [['on', '10'], {row}]\n[quick]"));
            Spec::parse(&text, true)
        };
        assert_eq!(of("['off', '12']").unwrap().before[0].rows[1], ["off", "12"]);
        let why = of("['off']").unwrap_err().to_string();
        assert!(why.contains("a paper") && why.contains("each column"), "{why}");
    }

    #[test]
    fn repeats_are_a_number_or_a_width() {
        let of = |value: &str| {
            let text = STUDY.replace("users =", &format!("repeats = {value}\nusers ="));
            Spec::parse(&text, false).map(|spec| spec.repeats)
        };
        assert_eq!(of("7").unwrap(), Repeats::Times(7));
        assert_eq!(of("\"until ±1.5%\"").unwrap(), Repeats::Until { percent: 1.5 });
        assert_eq!(of("\"until 2 %\"").unwrap(), Repeats::Until { percent: 2.0 });
        for wrong in ["0", "-1", "\"often\"", "\"until ±0%\"", "1.5", "true"] {
            assert!(of(wrong).unwrap_err().to_string().contains("repeats"), "{wrong}");
        }
        let until = Repeats::Until { percent: 1.5 };
        let json = serde_json::to_string(&until).unwrap();
        assert_eq!(serde_json::from_str::<Repeats>(&json).unwrap(), until);
    }
}

//! The file, checked before anything starts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Error;

/// More cells would take weeks.
const CELLS_MAX: usize = 1_000;
const REPEATS_MAX: u32 = 1_000;

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
    #[serde(default = "workload")]
    pub workload: String,
    /// Options of the workload.
    #[serde(default)]
    pub options: BTreeMap<String, Scalar>,
    #[serde(default = "tables")]
    pub tables: u32,
    #[serde(default = "rows")]
    pub rows: u64,
    /// Users of each level of a start's sweep.
    pub users: Vec<u32>,
    /// Measured time of a level.
    #[serde(default = "seconds")]
    pub seconds: f64,
    /// Bound on a level's warm-up, in seconds.
    #[serde(default = "warmup")]
    pub warmup: f64,
    /// Fresh starts of each cell.
    #[serde(default = "repeats")]
    pub repeats: u32,
    /// Name of the variant that the others are compared with.
    pub baseline: String,
    /// The smallest difference that is worth knowing, in per cent.
    #[serde(default = "matters")]
    pub matters_percent: f64,
    /// Of the order of the starts.
    #[serde(default)]
    pub seed: u64,
    /// Account for the time of the server's threads in every run.
    #[serde(default = "yes")]
    pub trace: bool,
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
    /// Knobs with several values each: every combination is a variant, on top of each [[variant]].
    #[serde(default)]
    pub grid: BTreeMap<String, Vec<Scalar>>,
    /// What is different in the short form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<Quick>,
}

/// One way to set a server up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    /// Knobs, as options of the server.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
    /// What the Performance Schema is to count: a preset, as `whyso run --pfs` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pfs: Option<String>,
    /// Whether that is timed, as `--pfs-timing` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pfs_timing: Option<String>,
    /// CPUs of the server, such as "0-3" or "4 cores".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
}

/// What the short form has in place of the long one's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    pub users: Option<Vec<u32>>,
    pub seconds: Option<f64>,
    pub warmup: Option<f64>,
    pub repeats: Option<u32>,
    pub tables: Option<u32>,
    pub rows: Option<u64>,
    pub matters_percent: Option<f64>,
}

/// A value as TOML has it; a knob takes it as text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Bool(true) => formatter.write_str("ON"),
            Scalar::Bool(false) => formatter.write_str("OFF"),
            Scalar::Int(number) => number.fmt(formatter),
            Scalar::Float(number) => number.fmt(formatter),
            Scalar::Text(text) => formatter.write_str(text),
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

fn tables() -> u32 {
    4
}

fn rows() -> u64 {
    25_000
}

fn seconds() -> f64 {
    30.0
}

fn warmup() -> f64 {
    10.0
}

fn repeats() -> u32 {
    5
}

fn matters() -> f64 {
    3.0
}

impl Spec {
    /// `quick`: the short form, where the file has one.
    ///
    /// # Errors
    /// What is wrong with it, with the nearest known key where one is unknown.
    pub fn parse(text: &str, quick: bool) -> Result<Spec, Error> {
        let mut spec: Spec = toml::from_str(text).map_err(|error| Error::Spec(told(error.message())))?;
        if quick {
            let Some(short) = spec.quick.take() else {
                return Err(Error::Spec("this study has no [quick]: leave --quick away".to_string()));
            };
            spec.shorten(short);
        }
        spec.quick = None;
        spec.check()?;
        Ok(spec)
    }

    fn shorten(&mut self, short: Quick) {
        self.users = short.users.unwrap_or_else(|| self.users.clone());
        self.seconds = short.seconds.unwrap_or(self.seconds);
        self.warmup = short.warmup.unwrap_or(self.warmup);
        self.repeats = short.repeats.unwrap_or(self.repeats);
        self.tables = short.tables.unwrap_or(self.tables);
        self.rows = short.rows.unwrap_or(self.rows);
        self.matters_percent = short.matters_percent.unwrap_or(self.matters_percent);
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |why: String| Err(Error::Spec(why));
        if self.users.is_empty() || self.users.contains(&0) {
            return wrong("users = [] loads nothing: give numbers from 1, such as [1, 8, 64]".to_string());
        }
        if !(0.5..=86_400.0).contains(&self.seconds) || !(0.0..=86_400.0).contains(&self.warmup) {
            return wrong("seconds must be 0.5 to 86400, and warmup 0 to 86400".to_string());
        }
        if !(1..=REPEATS_MAX).contains(&self.repeats) {
            return wrong(format!("repeats = {} can't be: give 1 to {REPEATS_MAX}", self.repeats));
        }
        if !(0.1..=100.0).contains(&self.matters_percent) {
            return wrong("matters_percent must be 0.1 to 100".to_string());
        }
        if self.servers.is_empty() {
            return wrong(
                "servers = [] tests nothing: name one, or leave the key out for the server on the PATH"
                    .to_string(),
            );
        }
        for (at, variant) in self.variants.iter().enumerate() {
            if variant.name.is_empty() || self.variants[..at].iter().any(|before| before.name == variant.name)
            {
                return wrong(format!(
                    "two [[variant]] are named {:?}, or one has no name: a name is for one",
                    variant.name
                ));
            }
        }
        if let Some((knob, _)) = self.grid.iter().find(|(_, values)| values.is_empty()) {
            return wrong(format!("the grid has no value for {knob}: give some, such as [6, 96]"));
        }
        let cells = self.cells();
        if cells.len() > CELLS_MAX {
            return wrong(format!(
                "these are {} cells, and {CELLS_MAX} are the most: leave values of the grid out",
                cells.len()
            ));
        }
        if !cells.iter().any(|cell| cell.variant == self.baseline) {
            let names: Vec<&str> = cells.iter().map(|cell| cell.variant.as_str()).collect();
            let near =
                nearest(&self.baseline, &names).map_or(String::new(), |near| format!(", such as {near:?}"));
            return wrong(format!(
                "baseline = {:?} is no variant of this study: name one{near}",
                self.baseline
            ));
        }
        Ok(())
    }

    /// Bound on the measuring, in seconds: without starts, loading and restoring.
    pub fn measured_s_max(&self) -> f64 {
        let level_s = self.seconds + self.warmup;
        self.cells().len() as f64 * f64::from(self.repeats) * self.users.len() as f64 * level_s
    }
}

/// TOML's own words, with the nearest key where one is not known.
fn told(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match (message.starts_with("unknown field"), &quoted[..]) {
        (true, [unknown, known @ ..]) => {
            let near = nearest(unknown, known);
            let hint = near.map_or_else(
                || format!("the keys are {}", known.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            format!("unknown key `{unknown}`: {hint}")
        }
        _ => format!("the study's file can't be read: {}", message.replace('\n', " ")),
    }
}

/// The one that fewest letters tell apart, where that are few.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |other: &&str| letters_apart(word, other);
    let near = known.iter().copied().min_by_key(distance)?;
    (letters_apart(word, near) <= word.len().max(near.len()) / 3 + 1).then_some(near)
}

/// V. I. Levenshtein's distance (1965).
fn letters_apart(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *candidate);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
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
        assert_eq!((long.seconds, long.repeats, long.cells().len()), (30.0, 5, 2));
        let short = Spec::parse(STUDY, true).unwrap();
        assert_eq!((short.seconds, short.repeats, short.users), (2.0, 3, vec![1, 8]));
        assert_eq!(long.measured_s_max(), 2.0 * 5.0 * 2.0 * 40.0);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
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
        let no_quick = STUDY.split("[quick]").next().unwrap();
        assert!(Spec::parse(no_quick, true).unwrap_err().to_string().contains("no [quick]"));
    }
}

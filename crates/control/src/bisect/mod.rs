//! `whyso bisect`: which setting makes the difference between two recordings.

mod differences;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use whyso_explain::ab::answer;
use whyso_inference::{LogEffect, halving};
use whyso_record::Recording;
use whyso_record::run::RunInfo;
use whyso_remedy::{Bisection, MeasuredGain, SettingDifference, Step};

use crate::ab::{AbPlan, AbSide, ab};
use crate::login::AskPassword;
use crate::progress::{Listener, News};
use crate::prove::own_baseline;
use crate::source::Source;
use crate::{Error, Stop};
use differences::differences;

/// Of one test; the whole difference is measured for longer.
const TEST: Duration = Duration::from_secs(25);
const WHOLE: Duration = Duration::from_secs(50);
/// Ends a test as equivalent.
const MATTERS: f64 = 1.005;
/// A whole difference that is smaller can't be divided.
const WHOLE_MIN: f64 = 1.03;

/// Two recordings of one load whose results differ.
#[derive(Clone, Debug)]
pub struct BisectPlan {
    pub first: PathBuf,
    pub second: PathBuf,
    /// No test begins after this time.
    pub budget: Duration,
    /// The user's own workload, which is not in the recordings.
    pub source: Option<Source>,
}

/// Searches for the setting.
///
/// # Errors
/// The recordings are of different loads, or their server can't be started.
pub fn bisect(
    plan: &BisectPlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Bisection, Error> {
    let open = |path: &PathBuf| Ok::<_, Error>(Recording::open(path)?.run().clone());
    let (first, second) = (open(&plan.first)?, open(&plan.second)?);
    check(&first, &second)?;
    let users = first.levels.last().map_or(1, |level| level.users);
    let baseline = own_baseline(&first, users, plan.source.as_ref())?;
    let all = differences(&first.server.variables, &second.server.variables);
    let mut search = Search {
        run: &first,
        baseline: &baseline,
        all: &all,
        deadline: Instant::now() + plan.budget,
        listener,
        stop,
        ask_password,
    };
    let mut found = Bisection {
        first: first.id.clone(),
        second: second.id.clone(),
        users,
        version_differs: first.server.version != second.server.version,
        differences: all.clone(),
        ..Bisection::default()
    };
    if all.is_empty() {
        return Ok(found);
    }
    let numbers: Vec<usize> = (0..all.len()).collect();
    let whole = search.test(&numbers, WHOLE)?;
    found.whole = Some(gain(whole));
    let is_small = whole.value.abs() < WHOLE_MIN.ln() || (whole.low < 0.0 && whole.high > 0.0);
    if is_small {
        return Ok(found);
    }
    let halved = halving(all.len(), whole.value, |part| search.test(part, TEST))?;
    found.steps = halved
        .steps
        .iter()
        .map(|(part, effect)| Step { settings: part.len(), gain: gain(*effect) })
        .collect();
    found.found = halved.found.iter().map(|at| all[*at].clone()).collect();
    found.effect = halved.effect.map(gain);
    found.share = halved.effect.map(|effect| effect.value / whole.value);
    found.is_answer = halved.is_answer;
    Ok(found)
}

fn gain(effect: LogEffect) -> MeasuredGain {
    MeasuredGain { value: effect.value.exp(), low: effect.low.exp(), high: effect.high.exp() }
}

/// Refuses recordings of different loads.
fn check(first: &RunInfo, second: &RunInfo) -> Result<(), Error> {
    let load = |run: &RunInfo| {
        let spec = &run.spec;
        (spec.workload.clone(), spec.options.clone(), spec.tables, spec.rows, spec.table_engine.clone())
    };
    if load(first) == load(second) {
        return Ok(());
    }
    Err(Error::Plan(format!(
        "{} and {} are of different loads or data: compare two runs of the same load",
        first.id, second.id
    )))
}

/// Tests under way.
struct Search<'a> {
    run: &'a RunInfo,
    baseline: &'a AbSide,
    all: &'a [SettingDifference],
    deadline: Instant,
    listener: &'a dyn Listener,
    stop: &'a Stop,
    ask_password: &'a AskPassword,
}

impl Search<'_> {
    /// What these settings of the second recording make of the first one's server.
    fn test(&mut self, part: &[usize], length: Duration) -> Result<LogEffect, Error> {
        if self.stop.is_asked() {
            return Err(Error::Failed("the search was interrupted before it had an answer".to_string()));
        }
        if Instant::now() >= self.deadline {
            return Err(Error::Failed(
                "the budget was used up before the search ended: give more with --budget".to_string(),
            ));
        }
        let mut variant = self.baseline.clone();
        for at in part {
            let SettingDifference { name, second, .. } = &self.all[*at];
            variant.set.retain(|(known, _)| known != name);
            variant.set.push((name.clone(), second.clone()));
        }
        let count = whyso_words::count(part.len() as u64, "setting");
        let what = if let [one] = part { self.all[*one].name.clone() } else { count };
        self.listener.hear(News::Step(&format!("testing {what}")));
        let spec = &self.run.spec;
        let outcome = ab(
            &AbPlan {
                sides: [self.baseline.clone(), variant],
                tables: spec.tables.unwrap_or(1),
                rows: spec.rows.unwrap_or(1),
                table_engine: spec.table_engine.clone().unwrap_or_else(|| "InnoDB".to_string()),
                seed: spec.seed.unwrap_or(1),
                window: None,
                length,
                starts: Some(1),
                matters: MATTERS,
                threshold: None,
                client_cpus: None,
                allow_writes: None,
            },
            self.listener,
            self.stop,
            self.ask_password,
        )?;
        let found = answer(&outcome).ok_or(Error::Interrupted)?;
        Ok(LogEffect {
            value: found.ratio.value.ln(),
            low: found.ratio.low.ln(),
            high: found.ratio.high.ln(),
        })
    }
}

//! `whyso bisect`: what makes the difference between two recordings: a setting, the data, an option of the load, or a build between theirs.

mod builds;
mod differences;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use whyso_explain::ab::answer;
use whyso_inference::{LogEffect, halving};
use whyso_record::Recording;
use whyso_record::run::RunInfo;
use whyso_remedy::{Bisection, Difference, DifferenceKind, MeasuredGain, MovedTime, NotTested, Step};

use crate::ab::{AbPlan, AbSide, ab};
use crate::login::AskPassword;
use crate::progress::{Listener, News};
use crate::prove::own_baseline;
use crate::source::Source;
use crate::{Error, Stop};
use differences::{ROWS, TABLES, data_differences, load_differences, setting_differences};

/// Of one test; the whole difference is measured for longer.
const TEST: Duration = Duration::from_secs(25);
const WHOLE: Duration = Duration::from_secs(50);
/// A test with too few windows is made once more, this many times as long.
const LONGER: u32 = 4;
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
    /// Builds between theirs, the oldest first: searched where settings and load do not make the difference. Empty: none.
    pub builds: Vec<String>,
    /// A program that is called with a name of `builds` and prints the folder of that build as its last line.
    pub build_command: Option<String>,
}

/// Searches among what the recordings show, then among builds.
///
/// # Errors
/// The recordings are of different loads, or their server can't be started.
pub fn bisect(
    plan: &BisectPlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Bisection, Error> {
    let (first, second) = (Recording::open(&plan.first)?, Recording::open(&plan.second)?);
    let moved = moved(&first, &second)?;
    let (first, second) = (first.run().clone(), second.run().clone());
    check(&first, &second)?;
    let last_users = |run: &RunInfo| run.levels.last().map_or(1, |level| level.users);
    let users = last_users(&first);
    let baseline = own_baseline(&first, users, plan.source.as_ref())?;
    let mut all = setting_differences(&first.server.variables, &second.server.variables);
    all.extend(data_differences(&first.spec, &second.spec));
    all.extend(load_differences((&first.spec, users), (&second.spec, last_users(&second))));
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
        moved,
        ..Bisection::default()
    };
    search.among_differences(&mut found)?;
    if !found.is_answer && !plan.builds.is_empty() {
        found.builds = Some(search.among_builds(plan)?);
    }
    Ok(found)
}

/// The part of the response time that differs most. `None` where one of them has no time budget.
fn moved(first: &Recording, second: &Recording) -> Result<Option<MovedTime>, Error> {
    let budget = |recording: &Recording| {
        let explanation = whyso_query::explain(recording)?;
        Ok::<_, Error>(explanation.budgets.into_iter().rev().find(|budget| !budget.repeat))
    };
    let (Some(one), Some(other)) = (budget(first)?, budget(second)?) else { return Ok(None) };
    let ms = |budget: &whyso_explain::model::Budget, part| {
        budget.parts.iter().find(|time| time.part == part).map_or(0.0, |time| time.ms)
    };
    let parts = one.parts.iter().chain(&other.parts).map(|time| time.part);
    let moved = parts.map(|part| MovedTime { part, first_ms: ms(&one, part), second_ms: ms(&other, part) });
    let size = |moved: &MovedTime| (moved.first_ms - moved.second_ms).abs();
    Ok(moved.max_by(|one, other| size(one).total_cmp(&size(other))).filter(|moved| size(moved) > 0.0))
}

/// Gives a side the second recording's value.
fn apply(side: &mut AbSide, difference: &Difference) {
    let Difference { kind, name, second, .. } = difference;
    let pairs = match kind {
        DifferenceKind::Setting => &mut side.set,
        DifferenceKind::Option => &mut side.options,
        DifferenceKind::Users => {
            side.users = second.parse().unwrap_or(side.users);
            return;
        }
        DifferenceKind::Data => {
            let data = &mut side.data;
            match name.as_str() {
                TABLES => data.tables = second.parse().unwrap_or(data.tables),
                ROWS => data.rows = second.parse().unwrap_or(data.rows),
                _ => data.engine.clone_from(second),
            }
            return;
        }
    };
    pairs.retain(|(known, _)| known != name);
    // An option that the second run did not name has its default there.
    if *kind == DifferenceKind::Setting || !second.is_empty() {
        pairs.push((name.clone(), second.clone()));
    }
}

/// Whether a whole difference can't be divided.
fn is_small(whole: LogEffect) -> bool {
    whole.value.abs() < WHOLE_MIN.ln() || (whole.low < 0.0 && whole.high > 0.0)
}

fn gain(effect: LogEffect) -> MeasuredGain {
    MeasuredGain { value: effect.value.exp(), low: effect.low.exp(), high: effect.high.exp() }
}

/// Refuses recordings of different workloads. Options, data and users may differ.
fn check(first: &RunInfo, second: &RunInfo) -> Result<(), Error> {
    if first.spec.workload == second.spec.workload {
        return Ok(());
    }
    Err(Error::Plan(format!(
        "{} and {} are of different workloads: compare two runs of the same workload",
        first.id, second.id
    )))
}

fn interrupted() -> Error {
    Error::Failed("the search was interrupted before it had an answer".to_string())
}

/// Tests under way.
struct Search<'a> {
    run: &'a RunInfo,
    baseline: &'a AbSide,
    all: &'a [Difference],
    deadline: Instant,
    listener: &'a dyn Listener,
    stop: &'a Stop,
    ask_password: &'a AskPassword,
}

impl Search<'_> {
    /// Halves what differs.
    fn among_differences(&mut self, found: &mut Bisection) -> Result<(), Error> {
        if self.all.is_empty() {
            return Ok(());
        }
        let mut usable: Vec<usize> = (0..self.all.len()).collect();
        let Some(whole) = self.whole(&mut usable, found)? else { return Ok(()) };
        found.whole = Some(gain(whole));
        if is_small(whole) {
            return Ok(());
        }
        let of_all = |part: &[usize]| part.iter().map(|at| usable[*at]).collect::<Vec<usize>>();
        let halved = halving(usable.len(), whole.value, |part| self.test(&of_all(part), TEST))?;
        let step =
            |(part, effect): &(Vec<usize>, LogEffect)| Step { settings: part.len(), gain: gain(*effect) };
        found.steps = halved.steps.iter().map(step).collect();
        found.found = of_all(&halved.found).into_iter().map(|at| self.all[at].clone()).collect();
        found.effect = halved.effect.map(gain);
        found.share = halved.effect.map(|effect| effect.value / whole.value);
        found.is_answer = halved.is_answer;
        Ok(())
    }

    /// What all differences make together, without those whose value the server refuses; `None` where no other is left.
    fn whole(&mut self, usable: &mut Vec<usize>, found: &mut Bisection) -> Result<Option<LogEffect>, Error> {
        while !usable.is_empty() {
            let error = match self.test(usable, WHOLE) {
                Err(Error::Server(error)) => error,
                outcome => return outcome.map(Some),
            };
            let refused =
                error.knob().and_then(|name| usable.iter().position(|at| self.all[*at].name == name));
            let Some(refused) = refused else { return Err(Error::Server(error)) };
            let difference = self.all[usable.remove(refused)].clone();
            found.not_tested.push(NotTested { difference, why: error.to_string() });
        }
        Ok(None)
    }

    /// What these values of the second recording make of the first one's server and load.
    fn test(&mut self, part: &[usize], length: Duration) -> Result<LogEffect, Error> {
        let mut variant = self.baseline.clone();
        for at in part {
            apply(&mut variant, &self.all[*at]);
        }
        let count = whyso_words::count(part.len() as u64, "difference");
        let what = if let [one] = part { self.all[*one].name.clone() } else { count };
        self.compare([self.baseline.clone(), variant], length, &what)
    }

    /// Compares two sides. Where the windows were too few for an answer, it takes longer once more: a slow disk makes windows long.
    fn compare(&self, sides: [AbSide; 2], length: Duration, what: &str) -> Result<LogEffect, Error> {
        if let Some(effect) = self.compare_for(sides.clone(), length, what)? {
            return Ok(effect);
        }
        let longer = length * LONGER;
        self.compare_for(sides, longer, what)?.ok_or_else(|| {
            Error::Failed(format!(
                "the comparison of {what} had too few windows for an answer in {}: compare fresh starts with whyso study",
                whyso_words::seconds(longer.as_secs_f64())
            ))
        })
    }

    /// `None`: there were too few windows.
    fn compare_for(
        &self,
        sides: [AbSide; 2],
        length: Duration,
        what: &str,
    ) -> Result<Option<LogEffect>, Error> {
        if self.stop.is_asked() {
            return Err(interrupted());
        }
        if Instant::now() >= self.deadline {
            return Err(Error::Failed(
                "the budget was used up before the search ended: give more with --budget".to_string(),
            ));
        }
        self.listener.hear(News::Step(&format!("testing {what}")));
        let spec = &self.run.spec;
        let outcome = ab(
            &AbPlan {
                hosts: None,
                sides,
                seed: spec.seed.unwrap_or(1),
                window: None,
                length,
                starts: Some(1),
                matters: MATTERS,
                threshold: None,
                slow: Duration::ZERO,
                client_cpus: None,
                allow_writes: None,
                replicas: Vec::new(),
            },
            self.listener,
            self.stop,
            self.ask_password,
        )?;
        match answer(&outcome) {
            _ if outcome.interrupted => Err(interrupted()),
            Some(found) => Ok(Some(LogEffect {
                value: found.ratio.value.ln(),
                low: found.ratio.low.ln(),
                high: found.ratio.high.ln(),
            })),
            None => Ok(None),
        }
    }
}

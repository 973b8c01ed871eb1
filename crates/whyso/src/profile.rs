//! `whyso functions`, `callers`, `callees`, `classes`, `wakers`: where the sampled time of a recorded run went, by function and by wait class.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use whyso_explain::profile::{FunctionName, Functions, Rules, classes, functions, relatives, wakers};
use whyso_lab::{Error, Sampled, profile_in, states_by_role};
use whyso_record::run::Window;
use whyso_report::{Relation, SampledIn, StatesByRole};

use crate::commands::open;
use crate::profile_args::{ClassesArgs, FunctionsArgs, ProfileArgs, RelativesArgs, RulesArgs, WakersArgs};
use crate::threads::level_window;

/// So many names are told where several fit.
const CANDIDATES_MAX: usize = 8;

/// What is shown where nothing is asked for.
pub(crate) const METRICS: &[&str] = &["cpu", "lock", "io"];
/// The same of what threads waited for: nobody ends the time on a CPU.
const WAKERS_METRICS: &[&str] = &["lock"];

/// A profile, and the words for what it is of.
pub(crate) struct Taken {
    pub(crate) sampled: Sampled,
    states: StatesByRole,
    window: Window,
    words: String,
    role: String,
}

impl Taken {
    fn about(&self) -> SampledIn<'_> {
        let Sampled { samples, waits, rootless, .. } = self.sampled;
        let seconds = self.window.seconds();
        SampledIn { window: &self.words, seconds, role: &self.role, samples, waits, rootless }
    }
}

/// `metrics`: where none are asked for.
pub(crate) fn take(run: &Path, args: &ProfileArgs, metrics: &[&str]) -> Result<Taken> {
    let (recording, _) = open(run, &args.runs)?;
    for problem in recording.problems() {
        eprintln!("whyso: warning: {problem}");
    }
    let window = level_window(&recording, None, args.users)?;
    let level = recording.run().levels.iter().find(|level| level.window == window);
    let words = match level.map_or(0, |level| level.users) {
        0 => "the recording".to_string(),
        users => format!("the level of {users} users"),
    };
    let by = match args.by.as_slice() {
        [] => metrics.iter().map(ToString::to_string).collect(),
        given => given.to_vec(),
    };
    let usual = if recording.run().process().is_some() { "all" } else { "connection" };
    let role = args.role.clone().unwrap_or_else(|| usual.to_string());
    let sampled = profile_in(&recording, window, &by, &role)?;
    let states = states_by_role(&recording, window)?;
    Ok(Taken { sampled, states, window, words, role })
}

pub(crate) fn show_functions(args: &FunctionsArgs) -> Result<ExitCode> {
    let taken = take(&args.run, &args.profile, METRICS)?;
    let profile = &taken.sampled.profile;
    let mut found = functions(profile);
    if args.inclusive {
        found.sort_by_inclusive();
    }
    let about = taken.about();
    if args.shown.json {
        print_object(&whyso_report::functions_json(about, profile, &found, args.shown.limit))
    } else {
        print_text(&whyso_report::functions(about, profile, &found, args.shown.limit))
    }
}

pub(crate) fn show_relatives(args: &RelativesArgs, relation: Relation) -> Result<ExitCode> {
    let taken = take(&args.run, &args.profile, METRICS)?;
    let profile = &taken.sampled.profile;
    let name = chosen(&functions(profile), &args.function)?;
    let Some(found) = relatives(profile, &name) else { bail!(none_fits(&args.function)) };
    if args.shown.json {
        print_object(&whyso_report::relatives_json(profile, &found, relation, args.shown.limit))
    } else {
        print_text(&whyso_report::relatives(profile, &found, relation, args.shown.limit))
    }
}

pub(crate) fn show_classes(args: &ClassesArgs) -> Result<ExitCode> {
    let rules = rules_of(&args.rules)?;
    let taken = take(&args.run, &args.profile, METRICS)?;
    let profile = &taken.sampled.profile;
    let found = classes(profile, &rules);
    let about = taken.about();
    if args.json {
        print_object(&whyso_report::classes_json(about, profile, &found))
    } else {
        print_text(&whyso_report::classes(about, profile, &found))
    }
}

pub(crate) fn show_wakers(args: &WakersArgs) -> Result<ExitCode> {
    let rules = rules_of(&args.rules)?;
    let taken = take(&args.run, &args.profile, WAKERS_METRICS)?;
    let profile = &taken.sampled.profile;
    let found = wakers(profile, &rules);
    let (about, limit) = (taken.about(), args.shown.limit);
    if args.shown.json {
        print_object(&whyso_report::wakers_json(about, profile, &found, &taken.states, limit))
    } else {
        print_text(&whyso_report::wakers(about, profile, &found, &taken.states, limit))
    }
}

fn rules_of(args: &RulesArgs) -> Result<Rules> {
    let Some(path) = &args.file else { return Ok(Rules::built_in()) };
    let unreadable = || format!("can't read the rules in {}", path.display());
    let text = std::fs::read_to_string(path).with_context(unreadable)?;
    let wrong = |error| Error::Plan(format!("{}: {error}", path.display()));
    Ok(Rules::parse(&text).map_err(wrong)?.before(Rules::built_in()))
}

/// The function of a name, or the only one whose name has it as a part.
fn chosen(functions: &Functions, name: &str) -> Result<FunctionName> {
    let all = || functions.functions.iter().map(|time| &time.function);
    let exact: Vec<&FunctionName> = all().filter(|function| function.name == name).collect();
    let fitting = if exact.is_empty() {
        all().filter(|function| function.name.contains(name)).collect()
    } else {
        exact
    };
    match fitting.as_slice() {
        [] => bail!(none_fits(name)),
        [only] => Ok((*only).clone()),
        several => {
            let names: Vec<&str> =
                several.iter().take(CANDIDATES_MAX).map(|function| function.name.as_str()).collect();
            let more = several.len().saturating_sub(CANDIDATES_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            bail!(Error::Plan(format!(
                "'{name}' fits several functions: {}{more}; give one whole",
                names.join(", ")
            )))
        }
    }
}

fn none_fits(name: &str) -> Error {
    Error::Plan(format!(
        "no function on any stack is called '{name}'; `whyso functions RUN --limit 100` lists them"
    ))
}

fn print_object(object: &Value) -> Result<ExitCode> {
    print_text(&format!("{}\n", serde_json::to_string_pretty(object)?))
}

fn print_text(text: &str) -> Result<ExitCode> {
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

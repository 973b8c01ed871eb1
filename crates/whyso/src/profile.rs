//! `whyso functions`, `callers`, `callees`, `classes`, `wakers`: where the sampled time of a recorded run went, by function and by wait class.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use whyso_control::Error;
use whyso_profile::{FunctionName, Functions, Rules, classes, differences, functions, relatives, wakers};
use whyso_report::{OfRoles, Relation};

use crate::against::sample_both;
use crate::profile_args::{ClassesArgs, FunctionsArgs, RelativesArgs, RulesArgs, WakersArgs};
use crate::profile_data::{METRICS, sample, sample_with_wakes};

/// Most names that an error lists where several fit.
const CANDIDATES_MAX: usize = 8;

/// The metrics of `whyso wakers` by default: nobody ends the time on a CPU.
const WAKERS_METRICS: &[&str] = &["lock"];

pub(crate) fn show_functions(args: &FunctionsArgs) -> Result<ExitCode> {
    if args.against.is_given() {
        return show_differences(args);
    }
    let sampled = sample(&args.run, &args.profile, METRICS)?;
    let profile = &sampled.recorded.profile;
    let mut found = functions(profile);
    if args.inclusive {
        found.sort_by_inclusive();
    }
    let about = sampled.about();
    if args.shown.json {
        print_object("functions", &whyso_report::functions_json(about, profile, &found, args.shown.limit))
    } else {
        print_text(&whyso_report::functions(about, profile, &found, args.shown.limit))
    }
}

fn show_differences(args: &FunctionsArgs) -> Result<ExitCode> {
    let pair = sample_both(&args.run, &args.profile, &args.against, METRICS)?;
    let (here, there) = (&pair.here.recorded.profile, &pair.there.recorded.profile);
    let mut found = differences(here, there, pair.by);
    if args.inclusive {
        found.sort_by_inclusive();
    }
    let (about, limit) = (pair.about(args.inclusive), args.shown.limit);
    if args.shown.json {
        print_object(
            "function-differences",
            &whyso_report::function_differences_json(about, &here.metrics, &found, limit),
        )
    } else {
        print_text(&whyso_report::function_differences(about, &here.metrics, &found, limit))
    }
}

pub(crate) fn show_relatives(args: &RelativesArgs, relation: Relation) -> Result<ExitCode> {
    let sampled = sample(&args.run, &args.profile, METRICS)?;
    let profile = &sampled.recorded.profile;
    let name = function_called(&functions(profile), &args.function)?;
    let Some(found) = relatives(profile, &name) else { bail!(none_fits(&args.function)) };
    let header = whyso_report::known_words(sampled.about());
    if args.shown.json {
        print_stderr_part!("{header}");
        print_object("relatives", &whyso_report::relatives_json(profile, &found, relation, args.shown.limit))
    } else {
        print_text(&(header + &whyso_report::relatives(profile, &found, relation, args.shown.limit)))
    }
}

pub(crate) fn show_classes(args: &ClassesArgs) -> Result<ExitCode> {
    let rules = rules_of(&args.rules)?;
    let sampled = sample(&args.run, &args.profile, METRICS)?;
    let profile = &sampled.recorded.profile;
    let found = classes(profile, &rules);
    let about = sampled.about();
    if args.json {
        print_object("classes", &whyso_report::classes_json(about, profile, &found))
    } else {
        print_text(&whyso_report::classes(about, profile, &found))
    }
}

pub(crate) fn show_wakers(args: &WakersArgs) -> Result<ExitCode> {
    let rules = rules_of(&args.rules)?;
    let sampled = sample_with_wakes(&args.run, &args.profile, WAKERS_METRICS)?;
    let profile = &sampled.recorded.profile;
    let found = wakers(profile, &rules);
    let (about, limit) = (sampled.about(), args.shown.limit);
    if args.shown.json {
        print_object("wakers", &whyso_report::wakers_json(about, profile, &found, &sampled.states, limit))
    } else {
        let of_roles = OfRoles { states: &sampled.states, files: &sampled.files };
        print_text(&whyso_report::wakers(about, profile, &found, of_roles, limit))
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
pub(crate) fn function_called(functions: &Functions, name: &str) -> Result<FunctionName> {
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

pub(crate) fn print_object(schema: &str, object: &Value) -> Result<ExitCode> {
    crate::json::write(crate::out::stdout(), schema, object)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn print_text(text: &str) -> Result<ExitCode> {
    crate::out::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

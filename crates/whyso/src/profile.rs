//! `whyso functions`, `callers`, `callees`, `classes`, `wakers`: where the sampled time of a recorded run went, by function and by wait class.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use whyso_control::Error;
use whyso_profile::{FunctionName, Functions, Rules, classes, differences, functions, relatives, wakers};
use whyso_query::{MainFiles, Sampled, ThreadFilter, main_files, profile_in, states_by_role};
use whyso_record::Recording;
use whyso_report::{OfRoles, Relation, SampledIn, StatesByRole};

use crate::against::take_both;
use crate::choice_args::{Chosen, chosen};
use crate::commands::open;
use crate::profile_args::{ClassesArgs, FunctionsArgs, ProfileArgs, RelativesArgs, RulesArgs, WakersArgs};

/// So many names are told where several fit.
const CANDIDATES_MAX: usize = 8;

/// What is shown where nothing is asked for.
pub(crate) const METRICS: &[&str] = &["cpu", "lock", "io"];
/// The same of recordings without stacks of waits.
const METRICS_OF_CPUS: &[&str] = &["cpu"];
/// The same of what threads waited for: nobody ends the time on a CPU.
const WAKERS_METRICS: &[&str] = &["lock"];

/// Role of the threads that serve connections, and the word for every role.
const CONNECTION: &str = "connection";
const ALL: &str = "all";

/// A profile, and the words for what it is of.
pub(crate) struct Taken {
    pub(crate) sampled: Sampled,
    pub(crate) chosen: Chosen,
    states: StatesByRole,
    files: MainFiles,
    role: String,
    whose: String,
    is_light: bool,
}

impl Taken {
    /// Such as "the level of 16 users, threads of role connection".
    pub(crate) fn words(&self) -> String {
        format!("{}, {}", self.chosen.words, self.whose)
    }

    /// Says what an exported file can't, where a connection or a statement was asked for.
    pub(crate) fn say_what_is_known(&self) {
        say_part!("{}", whyso_report::known_words(self.about()));
    }

    pub(crate) fn about(&self) -> SampledIn<'_> {
        let Sampled { samples, waits, rootless, known_share, known_by, hidden_share, .. } = self.sampled;
        let seconds = self.chosen.window.seconds();
        let (window, role, whose) = (self.chosen.words.as_str(), self.role.as_str(), self.whose.as_str());
        SampledIn {
            window,
            seconds,
            role,
            whose,
            known_share,
            known_by,
            hidden_share,
            samples,
            waits,
            rootless,
            is_light: self.is_light,
        }
    }
}

/// `metrics`: where none are asked for.
pub(crate) fn take(run: &Path, args: &ProfileArgs, metrics: &[&str]) -> Result<Taken> {
    let (recording, _) = open(run, &args.runs)?;
    take_part(&recording, chosen(&recording, &args.part)?, args, metrics)
}

/// The same of a part of a run that was chosen already.
pub(crate) fn take_part(
    recording: &Recording,
    chosen: Chosen,
    args: &ProfileArgs,
    metrics: &[&str],
) -> Result<Taken> {
    let by = match args.by.as_slice() {
        [] => sampled_metrics(recording, metrics).iter().map(ToString::to_string).collect(),
        given => given.to_vec(),
    };
    let mut filter = args.whose.filter();
    filter.observer = args.observer;
    let names_threads = filter.name.is_some() || !filter.tids.is_empty();
    let has_connections = recording.run().process().is_none();
    let usual = if names_threads || !has_connections { ALL } else { CONNECTION };
    let role = filter.role.get_or_insert_with(|| usual.to_string()).clone();
    let sampled = profile_in(recording, chosen.window, &by, &filter)?;
    let states = states_by_role(recording, chosen.window)?;
    let files = main_files(recording, chosen.window)?;
    let is_light = recording.run().has_light_stacks();
    Ok(Taken { sampled, chosen, states, files, role, whose: whose(&filter), is_light })
}

/// Of the usual metrics, those that a recording has stacks of; all, where it has none of them.
pub(crate) fn sampled_metrics<'a>(recording: &Recording, metrics: &'a [&'a str]) -> &'a [&'a str] {
    let is_light = recording.run().has_light_stacks();
    if is_light && METRICS_OF_CPUS.iter().all(|one| metrics.contains(one)) {
        METRICS_OF_CPUS
    } else {
        metrics
    }
}

fn whose(filter: &ThreadFilter) -> String {
    let mut words = vec![match filter.role.as_deref() {
        None | Some(ALL) => "all threads".to_string(),
        Some(role) => format!("threads of role {role}"),
    }];
    let numbers = |numbers: Vec<String>| numbers.join(" and ");
    words.extend(filter.name.as_ref().map(|name| format!("name {name:?}")));
    if !filter.tids.is_empty() {
        words.push(format!("thread {}", numbers(filter.tids.iter().map(u32::to_string).collect())));
    }
    if !filter.connections.is_empty() {
        words
            .push(format!("connection {}", numbers(filter.connections.iter().map(u64::to_string).collect())));
    }
    words.extend(filter.statement.as_ref().map(|text| format!("statement {text:?}")));
    words.join(", ")
}

pub(crate) fn show_functions(args: &FunctionsArgs) -> Result<ExitCode> {
    if args.against.is_given() {
        return show_differences(args);
    }
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

fn show_differences(args: &FunctionsArgs) -> Result<ExitCode> {
    let pair = take_both(&args.run, &args.profile, &args.against, METRICS)?;
    let (here, there) = (&pair.here.sampled.profile, &pair.there.sampled.profile);
    let mut found = differences(here, there, pair.by);
    if args.inclusive {
        found.sort_by_inclusive();
    }
    let (about, limit) = (pair.about(args.inclusive), args.shown.limit);
    if args.shown.json {
        print_object(&whyso_report::function_differences_json(about, &here.metrics, &found, limit))
    } else {
        print_text(&whyso_report::function_differences(about, &here.metrics, &found, limit))
    }
}

pub(crate) fn show_relatives(args: &RelativesArgs, relation: Relation) -> Result<ExitCode> {
    let taken = take(&args.run, &args.profile, METRICS)?;
    let profile = &taken.sampled.profile;
    let name = function_called(&functions(profile), &args.function)?;
    let Some(found) = relatives(profile, &name) else { bail!(none_fits(&args.function)) };
    let known = whyso_report::known_words(taken.about());
    if args.shown.json {
        say_part!("{known}");
        print_object(&whyso_report::relatives_json(profile, &found, relation, args.shown.limit))
    } else {
        print_text(&(known + &whyso_report::relatives(profile, &found, relation, args.shown.limit)))
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
        let of_roles = OfRoles { states: &taken.states, files: &taken.files };
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

pub(crate) fn print_object(object: &Value) -> Result<ExitCode> {
    print_text(&format!("{}\n", serde_json::to_string_pretty(object)?))
}

pub(crate) fn print_text(text: &str) -> Result<ExitCode> {
    crate::out::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

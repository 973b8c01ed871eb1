//! The sampled time of a part of a run, and what it is of.

use std::path::Path;

use anyhow::{Result, bail};
use whyso_control::Error;
use whyso_query::{
    MainFiles, RecordedProfile, ThreadFilter, main_files, profile_in, profile_with_wakes_in,
    program_has_waits, program_profile_in, states_by_role,
};
use whyso_record::Recording;
use whyso_record::run::Window;
use whyso_report::{SampledIn, StatesByRole};

use crate::choice_args::{RunPart, choose_part};
use crate::profile_args::ProfileArgs;
use crate::recordings::open;

/// The metrics that are shown by default.
pub(crate) const METRICS: &[&str] = &["cpu", "lock", "io"];
/// The same of recordings without stacks of waits.
const METRICS_OF_CPUS: &[&str] = &["cpu"];
/// Role of the threads that serve connections, and the word for every role.
const CONNECTION: &str = "connection";
pub(crate) const ALL: &str = "all";

/// A profile, and the description of what it is of.
pub(crate) struct SampledProfile {
    pub(crate) recorded: RecordedProfile,
    pub(crate) chosen: RunPart,
    pub(crate) states: StatesByRole,
    pub(crate) files: MainFiles,
    pub(crate) role: String,
    pub(crate) whose: String,
    pub(crate) is_light: bool,
}

impl SampledProfile {
    /// Such as "the level of 16 users, threads of role connection".
    pub(crate) fn title(&self) -> String {
        format!("{}, {}", self.chosen.words, self.whose)
    }

    /// Prints the share of the time whose connection or statement is known, if one was asked for: an exported file can't have it.
    pub(crate) fn print_known_share(&self) {
        print_stderr_part!("{}", whyso_report::known_words(self.about()));
    }

    pub(crate) fn about(&self) -> SampledIn<'_> {
        let RecordedProfile { samples, waits, rootless, known_share, known_by, hidden_share, part, .. } =
            self.recorded;
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
            part,
            samples,
            waits,
            rootless,
            is_light: self.is_light,
        }
    }
}

/// Reads the profile of a run. `metrics`: the default.
pub(crate) fn sample(run: &Path, args: &ProfileArgs, metrics: &[&str]) -> Result<SampledProfile> {
    let (recording, _) = open(run, &args.runs)?;
    sample_part(&recording, choose_part(&recording, &args.part)?, args, metrics)
}

/// The same with who ended the waits.
pub(crate) fn sample_with_wakes(run: &Path, args: &ProfileArgs, metrics: &[&str]) -> Result<SampledProfile> {
    if args.program.is_some() {
        bail!(Error::Plan(
            "who ended a wait is recorded only of the server, or of the first program: leave out --program"
                .to_string()
        ));
    }
    let (recording, _) = open(run, &args.runs)?;
    let chosen = choose_part(&recording, &args.part)?;
    sample_by(profile_with_wakes_in, &recording, chosen, args, metrics)
}

/// Reads the profile of a part of a run.
pub(crate) fn sample_part(
    recording: &Recording,
    chosen: RunPart,
    args: &ProfileArgs,
    metrics: &[&str],
) -> Result<SampledProfile> {
    sample_by(profile_in, recording, chosen, args, metrics)
}

/// How a profile is read.
type ReadProfile =
    fn(&Recording, Window, &[String], &ThreadFilter) -> Result<RecordedProfile, whyso_query::Error>;

fn sample_by(
    read: ReadProfile,
    recording: &Recording,
    chosen: RunPart,
    args: &ProfileArgs,
    metrics: &[&str],
) -> Result<SampledProfile> {
    if let Some(program) = &args.program {
        return sample_program(recording, chosen, (args, program), metrics);
    }
    let by = match args.by.as_slice() {
        [] => sampled_metrics(recording, args, metrics)?.iter().map(ToString::to_string).collect(),
        metrics => metrics.to_vec(),
    };
    let mut filter = args.whose.filter();
    filter.observer = args.observer;
    let names_threads = filter.name.is_some() || !filter.tids.is_empty();
    let has_connections = recording.run().process().is_none();
    let usual = if names_threads || !has_connections { ALL } else { CONNECTION };
    let role = filter.role.get_or_insert_with(|| usual.to_string()).clone();
    let recorded = read(recording, chosen.window, &by, &filter)?;
    let states = states_by_role(recording, chosen.window)?;
    let files = main_files(recording, chosen.window)?;
    let is_light = recording.run().has_light_stacks();
    Ok(SampledProfile { recorded, chosen, states, files, role, whose: describe_threads(&filter), is_light })
}

/// Reads the profile of a program other than the server.
fn sample_program(
    recording: &Recording,
    chosen: RunPart,
    (args, program): (&ProfileArgs, &str),
    metrics: &[&str],
) -> Result<SampledProfile> {
    let by: Vec<String> = match args.by.as_slice() {
        [] => sampled_metrics(recording, args, metrics)?.iter().map(ToString::to_string).collect(),
        metrics => metrics.to_vec(),
    };
    let recorded = program_profile_in(recording, chosen.window, program, &by)?;
    Ok(SampledProfile {
        recorded,
        chosen,
        states: StatesByRole::new(),
        files: MainFiles::new(),
        role: ALL.to_string(),
        whose: format!("program {program}"),
        is_light: false,
    })
}

/// Returns those of the usual metrics that a recording has stacks of; all, if it has none of them.
pub(crate) fn sampled_metrics<'a>(
    recording: &Recording,
    args: &ProfileArgs,
    metrics: &'a [&'a str],
) -> Result<&'a [&'a str]> {
    let has_waits = match &args.program {
        Some(program) => program_has_waits(recording, program)?,
        None => !recording.run().has_light_stacks(),
    };
    let has_cpus = METRICS_OF_CPUS.iter().all(|metric| metrics.contains(metric));
    Ok(if !has_waits && has_cpus { METRICS_OF_CPUS } else { metrics })
}

fn describe_threads(filter: &ThreadFilter) -> String {
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

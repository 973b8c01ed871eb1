//! The program: from its arguments to its exit status.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::command_line::{CommandLine, parse_config};
use crate::cpu_test::{CPU, CPU_MAX_PRIME, ForeignTest};
use crate::error::ProgramError;
use crate::facts::{Facts, Job, OptionValue, Source};
use crate::options::{self, OptionArgument, OptionSpec, Others};
use crate::run::{self, How};
use crate::say::{
    Priority, allow_notes, complain, flush_lines, log, note, notice, say, say_fatal, set_verbosity,
};
use crate::script::{self, GlobalState};
use crate::settings::Settings;
use crate::state::VERSION;
use crate::surroundings::Surroundings;

/// What the banner of Debian's package says after the version: programs may compare the whole line.
const LUAJIT: &str = "using system LuaJIT 2.1.0-beta3";
/// Exit status of a run that was abandoned: `--forced-shutdown`.
const GIVEN_UP: u8 = 2;

/// Runs sysbench's command line, without the program's own name. Standard output and standard error get what sysbench
/// writes there; remarks of whyso's own go to standard error, where a person reads it.
///
/// Returns the exit status: 0, 1 where something failed, 2 where events were still running when the run was abandoned.
pub fn main(arguments: &[String], surroundings: &dyn Surroundings) -> u8 {
    flush_lines();
    match program(arguments, surroundings) {
        Ok(status) => status,
        Err(error) => {
            say_fatal(&error.to_string());
            1
        }
    }
}

fn program(arguments: &[String], surroundings: &dyn Surroundings) -> Result<u8, ProgramError> {
    let mut line = match CommandLine::parse(arguments) {
        Ok(line) => line,
        Err(error) => return wrong_use(&error.to_string()),
    };
    line.warnings.iter().for_each(|warning| complain(warning));
    let general = options::general();
    let translation = if line.is_of_0_4() { Some(line.translated()?) } else { None };
    let old_names = std::mem::take(&mut line.old_names);
    if let Some((translated, _)) = &translation {
        line = translated.clone();
    }
    let typed = all_arguments(&line)?;
    let is_general = |argument: &&OptionArgument| {
        general.iter().any(|option| option.name == argument.name.replace('_', "-"))
    };
    let of_general: Vec<OptionArgument> = typed.iter().filter(is_general).cloned().collect();
    let values = match options::resolve(&general, &of_general, Others::AreRefused) {
        Ok(values) => values,
        Err(error) => return wrong_use(&error.to_string()),
    };
    let is_on = |name: &str| values.contains(&(name.to_string(), OptionValue::Bool(true)));
    if is_on("help") {
        say(&options::help());
        return Ok(0);
    }
    if is_on("version") {
        say(&format!("sysbench {VERSION}\n"));
        return Ok(0);
    }
    let settings = Settings::new(&values)?;
    warn(&settings, &old_names);
    if settings.verbosity > Priority::Debug as u32 {
        say(&format!("Invalid value for verbosity: {}\n", settings.verbosity));
        return Ok(1);
    }
    set_verbosity(settings.verbosity);
    if settings.json.is_some() || settings.record.is_some() {
        allow_notes();
    }
    if let Some((_, command_line)) = &translation {
        complain(&format!("whyso: this is the command line of sysbench 0.4; today it is: {command_line}"));
    }
    notice(&format!("sysbench {VERSION} ({LUAJIT})\n\n"));
    with_test(&Invocation { line, arguments, general, typed, settings }, surroundings)
}

/// What was asked for.
struct Invocation<'a> {
    line: CommandLine,
    arguments: &'a [String],
    general: Vec<OptionSpec>,
    typed: Vec<OptionArgument>,
    settings: Settings,
}

/// The options of the command line, after those of its `--config-file`.
fn all_arguments(line: &CommandLine) -> Result<Vec<OptionArgument>, ProgramError> {
    let config = line.options.iter().rev().find(|option| option.name.replace('_', "-") == "config-file");
    let Some(config) = config else { return Ok(line.options.clone()) };
    let path = config.value.clone().unwrap_or_default();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Err(ProgramError::ConfigFile { path, error }),
    };
    // What was typed counts more than what the file says.
    let mut options = parse_config(&text);
    options.extend(line.options.iter().cloned());
    Ok(options)
}

/// Warns of what sysbench warns of before it reads the verbosity.
fn warn(settings: &Settings, old_names: &[(&str, &str)]) {
    for (old, new) in old_names {
        log(Priority::Warning, &format!("--{old} is deprecated, use --{new} instead"));
    }
    if settings.events == 0 && settings.time.is_none() {
        log(Priority::Warning, "Both event and time limits are disabled, running an endless test");
    }
}

/// What is wrong with the command line goes to standard error, as with sysbench.
fn wrong_use(problem: &str) -> Result<u8, ProgramError> {
    complain(problem);
    Ok(1)
}

impl Invocation<'_> {
    /// A job with what was asked for, but no script's options yet.
    fn facts(&self, source: &Source, job: Job, seed: u64) -> Facts {
        let settings = &self.settings;
        let test = self.line.test.clone().unwrap_or_else(|| "-".to_string());
        let is_cpu_test = test == CPU;
        let mut facts = Facts::new(job, source.clone(), test, settings.random, settings.threads);
        facts.package_path = script::package_path();
        facts.argv = self.arguments.to_vec();
        facts.ignore_errors = settings.ignore_errors.clone();
        facts.text_only = settings.text_only;
        facts.percentile = settings.percentile;
        facts.rate = settings.rate;
        facts.seed = seed;
        facts.events_max = settings.events;
        facts.turn_max = settings.turn_max;
        facts.dry_run = settings.dry_run;
        facts.is_cpu_test = is_cpu_test;
        facts.servers = settings.servers();
        facts
    }

    /// The general options and these.
    fn declared(&self, own: &[OptionSpec]) -> Vec<OptionSpec> {
        self.general.iter().chain(own).cloned().collect()
    }
}

fn with_test(invocation: &Invocation<'_>, surroundings: &dyn Surroundings) -> Result<u8, ProgramError> {
    let test = invocation.line.test.as_deref().filter(|test| *test != "-");
    let unserved = test.and_then(ForeignTest::find);
    let is_built_in = unserved.is_some() || test == Some(CPU);
    if let (Some(test), None, true) = (test, &invocation.line.command, is_built_in) {
        return wrong_use(&format!(
            "The '{test}' test requires a command argument. See 'sysbench {test} help'"
        ));
    }
    if let Some(unserved) = unserved {
        let is_general =
            |name: &str| invocation.general.iter().any(|option| option.name == name.replace('_', "-"));
        let unknown =
            invocation.typed.iter().find(|option| !is_general(&option.name) && !unserved.takes(&option.name));
        return match unknown {
            Some(unknown) => wrong_use(&unknown.refused().to_string()),
            None => Err(ProgramError::Unserved { why: unserved.why() }),
        };
    }
    let source = script::find(test, &script::package_path())?;
    // A script on standard input is loaded, and the command is ignored.
    let command = invocation.line.command.clone().filter(|_| test.is_some());
    let job = match command.as_deref() {
        Some("run") => Job::Events,
        name => Job::Command(name.unwrap_or("").to_string()),
    };
    let seed = match invocation.settings.seed {
        0 => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64),
        seed => seed,
    };
    let global_facts = invocation.facts(&source, job.clone(), seed);
    let mut script = GlobalState::load(global_facts, run::load_spec(&invocation.settings, 1, seed)?)?;
    let Some(command) = command else { return Ok(0) };
    let own = script.declared()?;
    let others = if own.is_empty() { Others::AreText } else { Others::AreRefused };
    let values = match options::resolve(&invocation.declared(&own), &invocation.typed, others) {
        Ok(values) => values,
        Err(error) => return wrong_use(&error.to_string()),
    };
    script.know_options(&values)?;
    let mut facts = invocation.facts(&source, job, seed);
    facts.options = values;
    carry_out(invocation, &command, &own, &Arc::new(facts), &mut script, surroundings)
}

fn carry_out(
    invocation: &Invocation<'_>,
    command: &str,
    own: &[OptionSpec],
    facts: &Arc<Facts>,
    script: &mut GlobalState,
    surroundings: &dyn Surroundings,
) -> Result<u8, ProgramError> {
    let settings = &invocation.settings;
    // Messages name the file without its folder.
    let test = facts.test.rsplit('/').next().unwrap_or(&facts.test);
    let is_defined = script.command(command);
    match (command, is_defined) {
        (_, Some(true)) if settings.threads > 1 => {
            notice("Initializing worker threads...\n\n");
            Ok(u8::from(!run::command(settings, settings.threads, facts)?))
        }
        (_, Some(_)) => Ok(script.run_command(command).map(|()| 0)?),
        ("help", None) if own.is_empty() && !script.has_function("help") => {
            wrong_use(&format!("'{test}' test does not implement the 'help' command."))
        }
        ("help", None) => Ok(script.help(test, &options::help_of_test(own)).map(|()| 0)?),
        ("run", None) => run_events(settings, facts, script, surroundings),
        ("prepare" | "cleanup", None) => {
            wrong_use(&format!("'{test}' test does not implement the '{command}' command."))
        }
        _ => wrong_use(&format!("Unknown command: {command}")),
    }
}

fn run_events(
    settings: &Settings,
    facts: &Arc<Facts>,
    script: &mut GlobalState,
    surroundings: &dyn Surroundings,
) -> Result<u8, ProgramError> {
    if !script.has_function("event") && !script.has_function("thread_run") {
        return Err(ProgramError::NoEvent { test: facts.test.clone() });
    }
    script.call("init")?;
    notice(&announcement(settings, facts)?);
    let ended = run::events(settings, facts, script, surroundings)?;
    if let Some(path) = &settings.json {
        write_json(path, &surroundings.json(&ended.run, &ended.outcome))?;
    }
    let done = if ended.how == How::Failed { Ok(()) } else { script.call("done") };
    if let Some(why) = ended.outcome.client.saturated_why().filter(|_| !facts.is_cpu_test) {
        note(&format!("whyso: this run measured the client: {why}"));
    }
    let rollbacks = facts.rollbacks.load(Relaxed);
    if rollbacks > 0 {
        note(&format!(
            "whyso: {rollbacks} ignored errors left a transaction open; sysbench continues in it, here a ROLLBACK was \
             sent first, which counts among 'other'"
        ));
    }
    if settings.is_unverified {
        note(
            "whyso: connections were encrypted, but the server was not verified; --mysql-ssl-ca=FILE verifies it",
        );
    }
    match ended.recorded {
        Some(Ok(folder)) => {
            note(&format!("whyso: recorded in {0}; `whyso report {0}` draws it", folder.display()))
        }
        Some(Err(error)) => return Err(ProgramError::Recording(error)),
        None => {}
    }
    done?;
    Ok(match ended.how {
        How::GivenUp => GIVEN_UP,
        How::Failed => 1,
        How::Well => u8::from(facts.has_failed_late.load(Relaxed)),
    })
}

fn write_json(path: &str, object: &str) -> Result<(), ProgramError> {
    if path == "-" {
        say(&format!("{object}\n"));
        return Ok(());
    }
    let written = std::fs::write(path, format!("{object}\n"));
    written.map_err(|error| ProgramError::Json { path: path.to_string(), error })
}

/// Prints what comes before a run.
///
/// # Errors
/// The test `cpu` can't be run with its limit.
fn announcement(settings: &Settings, facts: &Facts) -> Result<String, ProgramError> {
    let mut text =
        format!("Running the test with following options:\nNumber of threads: {}\n", settings.threads);
    if !settings.warmup.is_zero() {
        text.push_str(&format!("Warmup time: {}s\n", settings.warmup.as_secs()));
    }
    if settings.rate > 0.0 {
        text.push_str(&format!("Target transaction rate: {}/sec\n", settings.rate));
    }
    if settings.report_interval > 0 {
        let every = settings.report_interval;
        text.push_str(&format!("Report intermediate results every {every} second(s)\n"));
    }
    if !settings.checkpoints.is_empty() {
        let times: Vec<String> = settings.checkpoints.iter().map(u64::to_string).collect();
        text.push_str(&format!("Report checkpoint(s) at {} seconds\n", times.join(", ")));
    }
    if settings.validate {
        text.push_str("Validation checks: on.\n\n");
    }
    match settings.seed {
        0 => text.push_str("Initializing random number generator from current time\n\n"),
        seed => text.push_str(&format!("Initializing random number generator from seed ({seed}).\n\n")),
    }
    if let (Some(grace), Some(time)) = (settings.forced_shutdown, settings.time) {
        text.push_str(&format!("Forcing shutdown in {} seconds\n", (time + grace).as_secs()));
    }
    text.push('\n');
    if facts.is_cpu_test {
        let limit = facts.options.iter().find(|(name, _)| name == CPU_MAX_PRIME);
        let limit = match limit {
            Some((_, OptionValue::Number(limit))) => *limit,
            _ => 0.0,
        };
        if limit <= 0.0 {
            return Err(ProgramError::PrimeLimit { option: CPU_MAX_PRIME, limit });
        }
        if settings.verbosity >= Priority::Info as u32 {
            text.push_str("Doing CPU performance benchmark\n\n");
        }
        text.push_str(&format!("Prime numbers limit: {limit}\n\n"));
    }
    Ok(text)
}

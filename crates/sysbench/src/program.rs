//! The program: from its arguments to its exit status.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::command_line::{CommandLine, parse_config};
use crate::facts::{Facts, Job, OptionValue, Source};
use crate::options::{self, Declared, Given};
use crate::run;
use crate::say::{flush_lines, note, say, say_fatal};
use crate::script::{self, GlobalState};
use crate::settings::Settings;
use crate::state::VERSION;
use crate::surroundings::Surroundings;

/// Runs sysbench's command line, without the program's own name. Results and notices go to standard output, what is
/// wrong with the command line and what differs from sysbench to standard error.
///
/// Returns the exit status: 0, or 1 where something failed.
pub fn main(arguments: &[String], surroundings: &dyn Surroundings) -> u8 {
    flush_lines();
    match program(arguments, surroundings) {
        Ok(went_well) => u8::from(!went_well),
        Err(problem) => {
            say_fatal(&problem);
            1
        }
    }
}

fn program(arguments: &[String], surroundings: &dyn Surroundings) -> Result<bool, String> {
    let mut line = CommandLine::parse(arguments)?;
    for warning in &line.warnings {
        note(warning);
    }
    if line.is_of_0_4() {
        let (translated, typed) = line.translated()?;
        note(&format!("whyso: this is the command line of sysbench 0.4; today it is: {typed}"));
        line = translated;
    }
    let general = options::general();
    let mut given = line.options.clone();
    if let Some(path) = line.options.iter().rev().find(|one| one.name.replace('_', "-") == "config-file") {
        let path = path.value.clone().unwrap_or_default();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("Failed to open config file: '{path}': {error}"))?;
        // What was typed counts more than what the file says.
        given = parse_config(&text);
        given.extend(line.options.iter().cloned());
    }
    let is_general = |one: &&Given| general.iter().any(|known| known.name == one.name.replace('_', "-"));
    let of_general: Vec<Given> = given.iter().filter(is_general).cloned().collect();
    let values = match options::resolve(&general, &of_general) {
        Ok(values) => values,
        Err(problem) => return wrong_use(&problem),
    };
    let is_on = |name: &str| values.contains(&(name.to_string(), OptionValue::Bool(true)));
    if is_on("version") {
        say(&format!("sysbench {VERSION}\n"));
        return Ok(true);
    }
    if is_on("help") {
        say(&options::help());
        return Ok(true);
    }
    let settings = Settings::new(&values)?;
    let ours = env!("CARGO_PKG_VERSION");
    say(&format!("sysbench {VERSION} (served by whyso {ours}, LuaJIT 2.1)\n\n"));
    if line.test.as_deref() == Some("help") {
        say(&options::help());
        return Ok(true);
    }
    with_script(&line, arguments, &general, &given, &settings, surroundings)
}

/// What is wrong with the command line goes to standard error, as with sysbench.
fn wrong_use(problem: &str) -> Result<bool, String> {
    note(problem);
    Ok(false)
}

/// A job with what was asked for, but no script's options yet.
fn facts_of(
    line: &CommandLine,
    arguments: &[String],
    settings: &Settings,
    source: &Source,
    job: Job,
    seed: u64,
) -> Facts {
    let test = line.test.clone().unwrap_or_else(|| "-".to_string());
    let mut facts = Facts::new(job, source.clone(), test, settings.random, settings.threads);
    facts.package_path = script::package_path();
    facts.argv = arguments.to_vec();
    facts.ignore_errors = settings.ignore_errors.clone();
    facts.text_only = settings.text_only;
    facts.percentile = settings.percentile;
    facts.rate = settings.rate;
    facts.seed = seed;
    facts.events_max = settings.events;
    facts.turn_max = settings.turn_max;
    facts
}

fn with_script(
    line: &CommandLine,
    arguments: &[String],
    general: &[Declared],
    given: &[Given],
    settings: &Settings,
    surroundings: &dyn Surroundings,
) -> Result<bool, String> {
    let source = script::find(line.test.as_deref(), &script::package_path())?;
    // A script on standard input is run without a command being named.
    let default_command = matches!(source, Source::Text(_)).then(|| "run".to_string());
    let command = line.command.clone().or(default_command).unwrap_or_default();
    let job = match command.as_str() {
        "run" => Job::Events,
        name => Job::Command(name.to_string()),
    };
    let seed = match settings.seed {
        0 => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64),
        seed => seed,
    };
    let global_facts = facts_of(line, arguments, settings, &source, job.clone(), seed);
    let mut script = GlobalState::load(global_facts, run::load_spec(settings, 1, seed)?)?;
    let test = line.test.as_deref().unwrap_or("-");
    let own = script.declared()?;
    if command == "help" {
        if own.is_empty() && !script.has_function("help") {
            return wrong_use(&format!("'{test}' test does not implement the 'help' command."));
        }
        script.help(&options::help_of_test(test, &own))?;
        return Ok(true);
    }
    let mut declared = general.to_vec();
    declared.extend(own);
    let values = match options::resolve(&declared, given) {
        Ok(values) => values,
        Err(problem) => return wrong_use(&problem),
    };
    script.know_options(&values)?;
    let mut facts = facts_of(line, arguments, settings, &source, job, seed);
    facts.options = values;
    let facts = Arc::new(facts);
    if command == "run" {
        return run_events(settings, &facts, &mut script, surroundings);
    }
    let Some(is_parallel) = script.command(&command) else {
        return wrong_use(&match command.as_str() {
            "" => format!("The '{test}' test requires a command argument. See 'sysbench {test} help'"),
            "prepare" | "cleanup" => format!("'{test}' test does not implement the '{command}' command."),
            _ => format!("Unknown command: {command}"),
        });
    };
    let users = if is_parallel { settings.threads } else { 1 };
    if users > 1 && settings.verbosity >= 3 {
        say("Initializing worker threads...\n\n");
    }
    run::command(settings, users, &facts)
}

fn run_events(
    settings: &Settings,
    facts: &Arc<Facts>,
    script: &mut GlobalState,
    surroundings: &dyn Surroundings,
) -> Result<bool, String> {
    if !script.has_function("event") && !script.has_function("thread_run") {
        return Err(format!("cannot find the event() function in {}", facts.test));
    }
    if settings.verbosity >= 3 {
        say(&announcement(settings));
    }
    script.call("init")?;
    let ended = run::events(settings, facts, script, surroundings)?;
    script.call("done")?;
    if let Some(path) = &settings.json {
        write_json(path, &surroundings.json(&ended.run, &ended.outcome))?;
    }
    if let Some(why) = ended.outcome.client.saturated_why() {
        note(&format!("whyso: this run measured the client: {why}"));
    }
    let rollbacks = facts.rollbacks.load(Relaxed);
    if rollbacks > 0 {
        note(&format!(
            "whyso: {rollbacks} ignored errors left a transaction open; sysbench goes on in it, here a ROLLBACK was sent \
             first, which counts among 'other'"
        ));
    }
    if settings.is_unverified {
        note("whyso: connections were encrypted, but to whoever answered; --mysql-ssl-ca=FILE verifies");
    }
    match ended.recorded {
        Some(Ok(folder)) => {
            note(&format!("whyso: recorded in {0}; `whyso report {0}` draws it", folder.display()))
        }
        Some(Err(problem)) => return Err(format!("the recording is not whole: {problem}")),
        None => {}
    }
    Ok(ended.went_well)
}

fn write_json(path: &str, object: &str) -> Result<(), String> {
    if path == "-" {
        say(&format!("{object}\n"));
        return Ok(());
    }
    std::fs::write(path, format!("{object}\n")).map_err(|error| format!("can't write {path}: {error}"))
}

/// What is said before a run.
fn announcement(settings: &Settings) -> String {
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
    match settings.seed {
        0 => text.push_str("Initializing random number generator from current time\n\n\n"),
        seed => text.push_str(&format!("Initializing random number generator from seed ({seed}).\n\n\n")),
    }
    text
}

//! The command line of whyso: it turns what was typed into a plan, calls a library, and prints what that returns.
//!
//! Here are defaults, options that exclude each other, and the layout of what is printed. Nothing here measures, or judges
//! what was measured.

#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod say;

mod addon;
mod against;
mod args;
mod choice_args;
mod commands;
mod compare;
mod export_args;
mod given;
mod load;
mod load_args;
mod load_view;
mod locks;
mod note;
mod out;
mod pfs;
mod pfs_args;
mod plot;
mod profile;
mod profile_args;
mod progress;
mod record;
mod record_args;
mod recording_args;
mod run;
mod runs;
mod serve;
mod server;
mod server_show;
mod setup_tracing;
mod source;
mod stacks;
mod statements;
mod study;
mod sysbench;
mod terminal;
mod threads;
mod timeline;
mod trace_args;
mod watch;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use whyso_report::Relation;

/// The run failed, or a service level was not held.
const FAILED: u8 = 1;
/// The command line asked for something that can't be.
const WRONG_USE: u8 = 2;
/// Ended by Ctrl-C, as shells number it: 128 and the signal.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let cli = match parsed() {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    let done = match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Load(args) => load::run(*args),
        Command::Sysbench(args) => sysbench::run(&args),
        Command::Record(args) => record::record(&args),
        Command::Study(args) => study::study(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::History(args) => compare::history(&args),
        Command::Watch(args) => watch::watch(&args),
        Command::Threads(args) => threads::threads(&args),
        Command::Timeline(args) => timeline::timeline(&args),
        Command::Stacks(args) => stacks::stacks(&args),
        Command::Locks(args) => locks::locks(&args),
        Command::Pfs(args) => pfs::pfs(&args),
        Command::Note(args) => note::note(&args),
        Command::Doctor => record::doctor(),
        Command::SetupTracing(args) => setup_tracing::run(&args),
        Command::Report(args) => commands::report(&args),
        Command::Why(args) => commands::why(&args),
        Command::Functions(args) => profile::show_functions(&args),
        Command::Callers(args) => profile::show_relatives(&args, Relation::Callers),
        Command::Callees(args) => profile::show_relatives(&args, Relation::Callees),
        Command::Source(args) => source::show_source(&args),
        Command::Classes(args) => profile::show_classes(&args),
        Command::Wakers(args) => profile::show_wakers(&args),
        Command::Statements(args) => statements::statements(&args),
        Command::Export(args) => commands::export(&args),
        Command::Sql(args) => commands::sql(&args),
        Command::Runs(args) => runs::runs(&args),
        Command::Plot(args) => plot::plot(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::AddOn(args) => addon::run(&args),
        Command::Server(args) => server::run(args),
        Command::Snapshots(args) => commands::snapshots(args),
    };
    match done.and_then(|status| Ok(out::finish().map(|()| status)?)) {
        Ok(status) => status,
        // Whoever read our output has seen enough: no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say!("whyso: {}", in_words(&error));
            ExitCode::from(status_of(&error))
        }
    }
}

/// The command line, once process lists do not show its passwords any more.
fn parsed() -> Result<Cli, ExitCode> {
    let whyso_server::Arguments { given, passwords } = match whyso_server::take_arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            say!("whyso: {error}");
            return Err(ExitCode::from(WRONG_USE));
        }
    };
    if !passwords.is_empty() {
        say!(
            "whyso: warning: others may have seen the password of this command line for a moment: MYSQL_PWD or ~/.my.cnf keep it from them"
        );
    }
    given::keep_command_line(&given);
    Cli::try_parse_from(given).map_err(|error| {
        if passwords.is_empty() {
            error.exit();
        }
        // What can't be understood is quoted.
        let masked = |text: String, password: &String| text.replace(password, "***");
        say_part!("{}", passwords.iter().fold(error.render().to_string(), masked));
        ExitCode::from(if error.use_stderr() { WRONG_USE } else { 0 })
    })
}

/// An error and its causes; a cause that an error quotes itself is not repeated.
fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

fn status_of(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<whyso_control::Error>() {
        return match error {
            whyso_control::Error::Interrupted => INTERRUPTED,
            error if error.is_wrong_use() => WRONG_USE,
            _ => FAILED,
        };
    }
    let query = error.downcast_ref::<whyso_query::Error>().is_some_and(whyso_query::Error::is_wrong_use);
    let serve = error.downcast_ref::<whyso_serve::Error>().is_some_and(whyso_serve::Error::is_wrong_use);
    let note = error.downcast_ref::<whyso_record::Error>().is_some_and(whyso_record::Error::is_wrong_use);
    if query || serve || note { WRONG_USE } else { FAILED }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    };
    error.chain().any(is_pipe)
}

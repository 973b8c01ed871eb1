//! The command line of whyso: it turns what was typed into a plan, calls a library, and prints what that returns.
//!
//! Here are defaults, options that exclude each other, and the layout of what is printed. Nothing here measures, or judges
//! what was measured.

#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod stderr;

mod ab;
mod access_log;
mod addon;
mod against;
mod agent;
mod answer;
mod app;
mod args;
mod bisect;
mod choice_args;
mod clock_time;
mod cluster;
mod commands;
mod compare;
mod completions;
mod config;
mod elsewhere;
mod exit_codes;
mod export_args;
mod help;
mod hosts_file;
mod http_args;
mod hub;
mod json;
mod load;
mod load_args;
mod load_view;
mod locks;
mod man_pages;
mod mcp;
mod note;
mod out;
mod pfs;
mod pfs_args;
mod plan_args;
mod plot;
mod profile;
mod profile_args;
mod profile_data;
mod programs;
mod progress;
mod prove;
mod record;
mod record_args;
mod recording_args;
mod recordings;
mod report_args;
mod run;
mod run_args;
mod run_names;
mod run_notes;
mod run_site;
mod run_transfer;
mod runs;
mod schema;
mod serve;
mod server;
mod server_show;
mod setup_tracing;
mod source;
mod sql;
mod sql_trace_args;
mod stacks;
mod statements;
mod status;
mod study;
mod sysbench;
mod terminal;
mod text_format;
mod threads;
mod timeline;
mod trace_args;
mod user;
mod values;
mod versus;
mod watch;
mod why;

use std::io::Write;
use std::process::ExitCode;

use args::{Cli, Command};
use clap::{ColorChoice, CommandFactory, Parser};
use exit_codes::{FAILED, INTERRUPTED, WRONG_USE};
use whyso_report::Relation;

fn main() -> ExitCode {
    // A shell that asks for completions gets them, and nothing else happens.
    clap_complete::CompleteEnv::with_factory(Cli::command).var(completions::VARIABLE).complete();
    let cli = match parse_command_line() {
        Ok(cli) => cli,
        Err(status) => return status,
    };
    let config = match config::config() {
        Ok(config) => config,
        Err(error) => {
            print_stderr!("whyso: {error}");
            return ExitCode::from(WRONG_USE);
        }
    };
    terminal::choose_color(cli.color.or(config.color()).unwrap_or(ColorChoice::Auto));
    let Some(command) = cli.command else {
        let text = if cli.help_all { help_all() } else { help::BEGIN.to_string() };
        return end(write!(out::stdout(), "{text}").map_err(Into::into).map(|()| ExitCode::SUCCESS));
    };
    end(carry_out(command))
}

fn carry_out(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) if args.http.url.is_some() => run_site::run(&args),
        Command::Run(args) => run::run(*args),
        Command::Load(args) => load::run(*args),
        Command::Ab(args) => ab::run(&args),
        Command::Bisect(args) => bisect::run(&args),
        Command::Prove(args) => prove::run(&args),
        Command::Sysbench(args) => sysbench::run(&args),
        Command::Record(args) => record::record(&args),
        Command::Study(args) => study::study(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::History(args) => compare::history(&args),
        Command::Watch(args) => watch::watch(&args),
        Command::Threads(args) => threads::threads(&args),
        Command::Programs(args) => programs::programs(&args),
        Command::Timeline(args) => timeline::timeline(&args),
        Command::Stacks(args) => stacks::stacks(&args),
        Command::Locks(args) => locks::locks(&args),
        Command::Pfs(args) => pfs::pfs(&args),
        Command::Note(args) => note::note(&args),
        Command::Doctor => record::doctor(),
        Command::SetupTracing(args) => setup_tracing::run(&args),
        Command::Report(args) => commands::report(&args),
        Command::Why(args) => why::why(&args),
        Command::Status(args) => status::status(&args),
        Command::Functions(args) => profile::show_functions(&args),
        Command::Callers(args) => profile::show_relatives(&args, Relation::Callers),
        Command::Callees(args) => profile::show_relatives(&args, Relation::Callees),
        Command::Source(args) => source::show_source(&args),
        Command::Classes(args) => profile::show_classes(&args),
        Command::Wakers(args) => profile::show_wakers(&args),
        Command::Statements(args) => statements::statements(&args),
        Command::Export(args) => commands::export(&args),
        Command::Sql(args) => sql::sql(&args),
        Command::Runs(args) => runs::runs(&args),
        Command::Plot(args) => plot::plot(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::AccessLog(args) => access_log::access_log(&args),
        Command::AddOn(args) => addon::run(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Hub(args) => hub::run(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Mcp(args) => mcp::mcp(&args),
        Command::Schema(args) => schema::schema(&args),
        Command::ManPages(args) => man_pages::write_man_pages(&args, Cli::command()),
        Command::Server(args) => server::run(args),
        Command::Snapshots(args) => commands::snapshots(args),
    }
}

/// Writes out what still waits, and reports an error.
fn end(done: anyhow::Result<ExitCode>) -> ExitCode {
    match done.and_then(|status| Ok(out::finish().map(|()| status)?)) {
        Ok(status) => status,
        // The reader of the output has read enough: no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            print_stderr!("whyso: {}", describe_error(&error));
            ExitCode::from(status_of(&error))
        }
    }
}

/// Parses the command line, after its passwords are hidden from process lists.
fn parse_command_line() -> Result<Cli, ExitCode> {
    let whyso_server::Arguments { all: arguments, passwords } = match whyso_server::take_arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            print_stderr!("whyso: {error}");
            return Err(ExitCode::from(WRONG_USE));
        }
    };
    if !passwords.is_empty() {
        print_stderr!(
            "whyso: warning: others may have seen the password of this command line for a moment: MYSQL_PWD or ~/.my.cnf keep it from them"
        );
    }
    user::keep_command_line(&arguments);
    Cli::try_parse_from(arguments).map_err(|error| {
        if passwords.is_empty() {
            error.exit();
        }
        // What can't be understood is quoted.
        let masked = |text: String, password: &String| text.replace(password, "***");
        print_stderr_part!("{}", passwords.iter().fold(error.render().to_string(), masked));
        ExitCode::from(if error.use_stderr() { WRONG_USE } else { 0 })
    })
}

/// Describes an error and its causes. A cause that an error quotes itself is not repeated.
fn describe_error(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
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
    let storage =
        error.downcast_ref::<whyso_storage::Error>().is_some_and(whyso_storage::Error::is_wrong_use);
    if query || serve || note || storage { WRONG_USE } else { FAILED }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    };
    error.chain().any(is_pipe)
}

/// Every command with what it is for.
fn help_all() -> String {
    let command = Cli::command().override_help(clap::builder::Resettable::Reset);
    let mut command = command.max_term_width(110);
    command.render_long_help().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help::{BEGIN, HELP};

    #[test]
    fn each_command_is_in_one_group_of_the_help() {
        let groups = HELP.split("\n\n").nth(2).unwrap();
        let words = groups.split([',', ' ', '\n']).filter(|word| !word.is_empty());
        let titles = ["do", "look", "share", "manage"];
        let mut listed: Vec<&str> = words.filter(|word| !titles.contains(word)).collect();
        listed.sort_unstable();
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut there: Vec<&str> = shown.map(clap::Command::get_name).collect();
        there.retain(|name| *name != "help");
        there.sort_unstable();
        assert_eq!(listed, there);
    }

    #[test]
    fn the_help_fits_a_screen() {
        assert!(HELP.lines().count() <= 20 && BEGIN.lines().count() == 5);
        assert!(HELP.lines().chain(BEGIN.lines()).all(|line| line.chars().count() <= 112));
        assert!(help_all().contains("Sweep load levels"));
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}

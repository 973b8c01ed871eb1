//! What `whyso` and `whyso --help` print: where to begin, and every command in its group.

use clap::CommandFactory;

use crate::args::Cli;

/// For `whyso --help`. A test compares the commands with those that there are.
pub(crate) const HELP: &str = "\
whyso finds out why a database does not go faster.

  whyso run oltp-read-write            load a throw-away server with 1 to 64 users: where does it stop, and why?
  whyso record --dsn DSN --for 60s     watch your server for a minute: what does it wait for? Nothing is written to it
  whyso watch --dsn DSN                see your server now, in the terminal

  do       run, record, watch, load, sysbench, study, note
  look     why, status, locks, statements, pfs, functions, callers, callees, source, classes, wakers, threads,
           timeline, stacks
  share    report, serve, plot, compare, history, export, sql, runs
  manage   doctor, server, snapshots, setup-tracing, add-on, completions

A command that reads takes a run's id, the begin of it, or latest, which is the default.
DSN is mysql://user@host:3306/schema, or mysql://user@localhost/?socket=PATH.

  whyso COMMAND --help                 explains a command
  whyso --help-all                     lists every command with what it is for
";

/// For `whyso` alone.
pub(crate) const BEGIN: &str = "\
whyso run oltp-read-write           loads a throw-away server: where does it stop, and why?
whyso record --dsn DSN --for 60s    watches your server for a minute: what does it wait for?
whyso watch --dsn DSN               shows your server now
whyso serve                         shows what was recorded, in a browser
whyso --help                        has the rest; a DSN is mysql://user@localhost/?socket=PATH
";

/// For `whyso --help-all`.
pub(crate) fn all() -> String {
    let command = Cli::command().override_help(clap::builder::Resettable::Reset);
    let mut command = command.max_term_width(110);
    command.render_long_help().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group_of_the_help() {
        let groups = HELP.split("\n\n").nth(2).unwrap();
        let words = groups.split([',', ' ', '\n']).filter(|word| !word.is_empty());
        let titles = ["do", "look", "share", "manage"];
        let mut listed: Vec<&str> = words.filter(|word| !titles.contains(word)).collect();
        listed.sort_unstable();
        let command = Cli::command();
        let mut there: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        there.retain(|name| *name != "help");
        there.sort_unstable();
        assert_eq!(listed, there);
    }

    #[test]
    fn the_help_fits_a_screen() {
        assert!(HELP.lines().count() <= 20 && BEGIN.lines().count() == 5);
        assert!(HELP.lines().chain(BEGIN.lines()).all(|line| line.chars().count() <= 112));
        assert!(all().contains("Sweep load levels"));
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}

//! What `whyso` and `whyso --help` print: where to begin, and every command in its group.

/// For `whyso --help`. A test in `main.rs` compares the commands with those that there are.
pub(crate) const HELP: &str = "\
whyso finds out why a database does not go faster.

  whyso run oltp-read-write            load a throw-away server with more and more users: where does it stop?
  whyso record --dsn DSN --for 60s     watch your server for a minute: what does it wait for?
  whyso watch --dsn DSN                see your server now, in the terminal

  do       run, record, watch, load, ab, prove, bisect, sysbench, study, note
  look     why, status, locks, statements, pfs, functions, callers, callees, source, classes, wakers, threads,
           timeline, stacks, programs, access-log
  share    report, serve, plot, compare, history, export, sql, runs, mcp, schema
  manage   doctor, server, hub, agent, snapshots, setup-tracing, add-on, completions

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

//! `whyso statements`: what the server's clients asked of it, as a table of statements and as a log.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use whyso_control::Error;
use whyso_explain::statements::{CommandMetric, by_statement};
use whyso_query::{CommandFilter, commands_in};
use whyso_report::CommandsOf;

use crate::choice_args::{RunPart, WindowArgs, choose_part};
use crate::recordings::open;

/// What is shown where nothing is asked for.
const METRICS: [CommandMetric; 6] = [
    CommandMetric::Response,
    CommandMetric::Cpu,
    CommandMetric::Lock,
    CommandMetric::Io,
    CommandMetric::RowsSent,
    CommandMetric::Errors,
];

#[derive(Args, Debug)]
pub(crate) struct StatementsArgs {
    /// The run, recorded with --trace-sql: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    run: PathBuf,

    /// Sums side by side: response, cpu, runqueue, lock, io, rows_sent, rows_examined (or rows), rows_affected, errors; the first one
    /// sorts [default: response,cpu,lock,io,rows_sent,errors]
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',')]
    by: Vec<CommandMetric>,

    /// Every command in order of time, in place of the table of statements
    #[arg(long, conflicts_with = "by")]
    log: bool,

    #[command(flatten)]
    part: WindowArgs,

    /// Only commands of these threads, by the kernel's numbers
    #[arg(long, value_name = "TID,TID,…", value_delimiter = ',')]
    thread: Vec<u32>,

    /// Only commands of these connections, by the server's numbers
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    connection: Vec<u64>,

    /// Only commands whose statement contains this text, in any case; literals are replaced: "WHERE id=?"
    #[arg(long, value_name = "TEXT")]
    statement: Option<String>,

    /// Those of whyso's own connections too, which watch the server
    #[arg(long)]
    own: bool,

    /// Lines that are shown [default: 30; of the log all]
    #[arg(long, alias = "top", value_name = "N")]
    limit: Option<usize>,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

pub(crate) fn statements(args: &StatementsArgs) -> Result<ExitCode> {
    let (recording, _) = open(&args.run, &args.runs)?;
    let RunPart { window, words, .. } = choose_part(&recording, &args.part)?;
    let filter = CommandFilter {
        threads: args.thread.clone(),
        connections: args.connection.clone(),
        statement: args.statement.clone(),
        own: args.own,
    };
    let found = commands_in(&recording, window, &filter)?;
    if found.commands.is_empty() && filter.is_set() {
        let own = if found.own_left_out > 0 { " but whyso's own (--own)" } else { "" };
        return Err(Error::Plan(format!(
            "no command of {words} is left{own}: leave out some of --thread, --connection and --statement"
        ))
        .into());
    }
    let about = CommandsOf {
        window: &words,
        origin_ns: whyso_report::origin_ns(recording.run(), recording.load_begin_ns()?),
        seconds: window.seconds(),
        own_left_out: found.own_left_out,
        trace: &found.trace,
        texts: &found.texts,
    };
    let mut out = crate::out::stdout();
    if args.log {
        let limit = args.limit.unwrap_or(usize::MAX);
        match args.json {
            true => crate::json::write(
                &mut out,
                "commands",
                whyso_report::commands_json(&about, &found.commands, limit),
            )?,
            false => whyso_report::commands(&mut out, &about, &found.commands, limit)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let by: &[CommandMetric] = if args.by.is_empty() { &METRICS } else { &args.by };
    let limit = args.limit.unwrap_or(30);
    let statements = by_statement(&found.records(), by[0]);
    match args.json {
        true => crate::json::write(
            &mut out,
            "statements",
            whyso_report::statements_json(&about, &statements, limit),
        )?,
        false => write!(out, "{}", whyso_report::statements(&about, &statements, by, limit))?,
    }
    Ok(ExitCode::SUCCESS)
}

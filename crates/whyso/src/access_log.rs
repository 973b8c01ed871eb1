//! `whyso access-log`: the requests of a web server's log, added up by kind. It needs no recording.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use whyso_access_log::{Grouping, LogFormat, LogReader, LogSummary, ReadRequest};
use whyso_control::Error;
use whyso_report::RequestsOf;
use whyso_watch::AccessLog;

use crate::choice_args::{WindowArgs, choose_part};
use crate::clock_time::{ClockTime, wall_window};
use crate::profile::{print_object, print_text};
use crate::profile_args::ShownArgs;
use crate::recordings::open;

const PIECE_BYTES: usize = 256 * 1024;
/// Logs that are followed together.
const LOGS_MAX: usize = 4;

/// By what requests are added up.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum GroupingArg {
    /// Method and pattern of the path
    Kind,
    /// The process that served the request, by %P or $pid
    Process,
    /// The answer's status
    Status,
}

#[derive(Args, Debug)]
pub(crate) struct AccessLogArgs {
    /// The log; - is standard input, such as of zcat
    file: PathBuf,

    /// Its format: combined, common, combined-us, common-us, vhost-combined, nginx-main, nginx-time, json, json:KEY=FIELD,…, or Apache's
    /// LogFormat or nginx's log_format itself [default: guessed by the first lines]
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,

    /// By what requests are added up
    #[arg(long, value_enum, default_value = "kind")]
    by: GroupingArg,

    /// Only requests that ended then or later: 10:05, "2026-11-26 10:05"; a time of day is the last one
    #[arg(long, value_name = "TIME")]
    since: Option<ClockTime>,

    /// Only requests that ended before
    #[arg(long, value_name = "TIME")]
    until: Option<ClockTime>,

    /// Only requests that ended during this recorded run: its measured window, or the part that --users, --level or --window names
    #[arg(long, value_name = "RUN", add = crate::completions::of_runs(), conflicts_with_all = ["since", "until"])]
    run: Option<PathBuf>,

    #[command(flatten)]
    part: WindowArgs,

    #[command(flatten)]
    shown: ShownArgs,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

pub(crate) fn access_log(args: &AccessLogArgs) -> Result<ExitCode> {
    let format = compile(args.format.as_deref())?;
    let window_ns = window_of(args)?;
    let length_s =
        window_ns.as_ref().filter(|window_ns| window_ns.start > i64::MIN && window_ns.end < i64::MAX);
    let length_s = length_s.map(|window_ns| (window_ns.end - window_ns.start) as f64 / 1e9);
    let grouping = match args.by {
        GroupingArg::Kind => Grouping::Kind,
        GroupingArg::Process => Grouping::Process,
        GroupingArg::Status => Grouping::Status,
    };
    let request = ReadRequest { format, window_ns, grouping, ..ReadRequest::default() };
    let summary = read(&args.file, request)?;
    let log = args.file.display().to_string();
    let of = RequestsOf { log: &log, seconds: length_s };
    match args.shown.json {
        true => print_object("access-log", &whyso_report::requests_json(of, &summary, args.shown.limit)),
        false => print_text(&whyso_report::requests(of, &summary, args.shown.limit)),
    }
}

fn window_of(args: &AccessLogArgs) -> Result<Option<Range<i64>>> {
    if let Some(run) = &args.run {
        let (recording, _) = open(run, &args.runs)?;
        let window = choose_part(&recording, &args.part)?.window;
        return wall_window(&recording, window).map(Some);
    }
    if args.part.is_given() {
        bail!(Error::Plan("--users, --level and --window are of a run: name it with --run".to_string()));
    }
    if args.since.is_none() && args.until.is_none() {
        return Ok(None);
    }
    let now_ns = whyso_clock::wall_ns();
    let at_ns =
        |time: Option<ClockTime>| time.map(|time| time.wall_ns(now_ns, &TimeZone::system())).transpose();
    let begin_ns = at_ns(args.since)?.unwrap_or(i64::MIN);
    let end_ns = at_ns(args.until)?.unwrap_or(i64::MAX);
    if begin_ns >= end_ns {
        bail!(Error::Plan(
            "--since is not before --until: give an earlier time, or a date with it".to_string()
        ));
    }
    Ok(Some(begin_ns..end_ns))
}

fn read(path: &Path, request: ReadRequest) -> Result<LogSummary> {
    let mut file: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(File::open(path).with_context(|| format!("can't read {}", path.display()))?),
    };
    let mut reader = LogReader::new(request);
    let mut piece = vec![0; PIECE_BYTES];
    let of_log =
        |error: whyso_access_log::FormatError| Error::Plan(format!("{}: {error} (--format)", path.display()));
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(reader.finish().map_err(of_log)?),
            Ok(length) => reader.push(&piece[..length]).map_err(of_log)?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).with_context(|| format!("can't read {}", path.display())),
        }
    }
}

fn compile(format: Option<&str>) -> Result<Option<LogFormat>> {
    let compiled = format.map(LogFormat::compile).transpose();
    Ok(compiled.map_err(|error| Error::Plan(error.to_string()))?)
}

/// Returns the logs that a recording follows.
///
/// # Errors
/// There are too many, one is named twice or can't be read, or the format can't be compiled.
pub(crate) fn followed(paths: &[PathBuf], format: Option<&str>) -> Result<Vec<AccessLog>> {
    if paths.len() > LOGS_MAX {
        bail!(Error::Plan(format!("{} access logs are too many: follow at most {LOGS_MAX}", paths.len())));
    }
    let format = compile(format)?;
    let mut logs: Vec<AccessLog> = Vec::new();
    for path in paths {
        // Opening a pipe would wait for who writes to it.
        let readable = std::fs::metadata(path).and_then(|metadata| match metadata.is_file() {
            true => File::open(path).and_then(|file| file.metadata()),
            false => Ok(metadata),
        });
        let metadata = readable.map_err(|error| {
            Error::Plan(format!(
                "the access log {} can't be read: {error}; give its path, and the right to read it",
                path.display()
            ))
        })?;
        if !metadata.is_file() {
            bail!(Error::Plan(format!("{} is no file: give the access log itself", path.display())));
        }
        let path = std::path::absolute(path)?;
        if logs.iter().any(|log| log.path == path) {
            bail!(Error::Plan(format!("--access-log {} is given twice: leave one out", path.display())));
        }
        logs.push(AccessLog { path, format: format.clone() });
    }
    Ok(logs)
}

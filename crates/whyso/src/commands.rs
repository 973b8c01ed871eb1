//! The commands that work on recordings and caches rather than on a server.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use whyso_control::Error;
use whyso_explain::model::Explanation;
use whyso_query::{ForReport, RecordedProfile, SourcePath};
use whyso_record::Recording;
use whyso_record::private::create_file;
use whyso_record::run::RunInfo;
use whyso_report::{ForPprof, Source, html};
use whyso_server::snapshot::Store;

use crate::against::sample_both;
use crate::export_args::{ExportArgs, ExportFormat};
use crate::profile_args::ProfileArgs;
use crate::profile_data::{METRICS, sample, sample_part};
use crate::recordings::open;
use crate::report_args::{ReportArgs, ReportFormat, SnapshotsArgs, SnapshotsCommand};

/// The file that was asked for, or standard output.
fn output(path: Option<&Path>) -> Result<Box<dyn Write>> {
    Ok(match path {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("can't write {}", path.display()))?;
            Box::new(BufWriter::new(file))
        }
        None => Box::new(BufWriter::new(crate::out::data())),
    })
}

pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode> {
    let (recording, path) = open(&args.run, &args.runs)?;
    let against = other_of(args, &recording)?;
    if !args.source_path.is_empty() && !matches!(args.format, ReportFormat::Html) {
        bail!(Error::Plan("only the page shows sources: leave out --format or --source-path".to_string()));
    }
    let html_path = path.join("report.html");
    if args.output.is_none() && matches!(args.format, ReportFormat::Html) && recording.run().is_newer() {
        bail!(Error::Plan(
            "the page would be written into the recording, which a newer version made: name a file with --output FILE".to_string()
        ));
    }
    let excerpt = match &args.window {
        Some(_) if args.output.is_none() && matches!(args.format, ReportFormat::Html) => bail!(Error::Plan(
            "report.html in the recording is of all of the run: name a file for the window with --output FILE".to_string()
        )),
        Some(part) => Some(whyso_query::excerpt(&recording, part.window_of(&recording)?)?),
        None => None,
    };
    let (explanation, source, run): (Explanation, &dyn Source, &RunInfo) = match &excerpt {
        Some(excerpt) => (whyso_query::explain_excerpt(excerpt)?, excerpt, &excerpt.run),
        None => (whyso_query::explain(&recording)?, &recording, recording.run()),
    };
    let for_report = |paths: &[SourcePath]| match &excerpt {
        Some(excerpt) => ForReport::of_excerpt(excerpt, paths),
        None => ForReport::new(&recording, paths),
    };
    let target = match (&args.output, args.format) {
        (Some(path), _) => Some(path.as_path()),
        (None, ReportFormat::Html) => Some(html_path.as_path()),
        (None, _) => None,
    };
    let mut out = match (target, &args.output) {
        // The page of a recording, in its folder.
        (Some(path), None) => {
            let file = create_file(path).with_context(|| format!("can't write {}", path.display()))?;
            Box::new(BufWriter::new(file))
        }
        _ => output(target)?,
    };
    match args.format {
        ReportFormat::Html => {
            let against = against.as_ref().map(|other| other as &dyn Source);
            for_report(&args.source_path)?
                .lend(against, |for_report| html::write(source, &explanation, for_report, &mut out))?;
        }
        ReportFormat::Md => {
            let text = for_report(&[])?
                .lend(None, |for_report| whyso_report::markdown(run, &explanation, for_report));
            for note in source.notes() {
                write!(out, "> {note}\n\n")?;
            }
            out.write_all(text.as_bytes())?;
        }
        ReportFormat::Svg => out.write_all(whyso_report::svg(run, &explanation).as_bytes())?,
        ReportFormat::Json => {
            let object = whyso_report::json(run, &explanation, &std::path::absolute(&path)?);
            crate::json::write(&mut out, "run", object)?;
        }
    }
    out.flush()?;
    if let (Some(path), None) = (target, &args.output) {
        writeln!(crate::out::stdout(), "{}", path.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The run to compare with.
fn other_of(args: &ReportArgs, recording: &Recording) -> Result<Option<Recording>> {
    let Some(run) = &args.against else { return Ok(None) };
    if !matches!(args.format, ReportFormat::Html) {
        bail!(Error::Plan("only the page compares runs: leave out --format or --against".to_string()));
    }
    let (other, _) = open(run, &args.runs)?;
    if other.run().id == recording.run().id {
        bail!(Error::Plan("that is the same run: give another with --against".to_string()));
    }
    for either in [recording, &other] {
        if either.frames()?.is_empty() {
            bail!(
                "run {} holds no stacks to compare: record it with --stacks=light or --stacks",
                either.run().id
            );
        }
    }
    Ok(Some(other))
}

pub(crate) fn export(args: &ExportArgs) -> Result<ExitCode> {
    if args.folded || args.pprof {
        return export_stacks(args);
    }
    let ProfileArgs { by, part, whose, .. } = &args.profile;
    if !by.is_empty() || part.is_given() || whose.is_given() || args.against.is_given() {
        bail!(Error::Plan(
            "what chooses stacks, a part of the run or threads is for stacks: give --folded or --pprof, too"
                .to_string()
        ));
    }
    let (recording, _) = open(&args.run, &args.profile.runs)?;
    let filter = whyso_record::export::Filter {
        host: args.host.clone(),
        source: args.source.clone(),
        metric: args.metric.clone(),
        instance: args.instance.clone(),
        window: None,
    };
    match args.format {
        ExportFormat::Csv => {
            let mut out = output(args.output.as_deref())?;
            whyso_record::export::to_csv(&recording, &mut out, &filter)?;
            out.flush()?;
        }
        ExportFormat::Parquet => {
            let Some(path) = &args.output else {
                bail!("a Parquet file can't go to standard output: name it with --output FILE");
            };
            let file = whyso_record::export::create_file(path)?;
            whyso_record::export::to_parquet(&recording, file, &filter)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn export_stacks(args: &ExportArgs) -> Result<ExitCode> {
    let exported = if args.pprof {
        let (recording, _) = open(&args.run, &args.profile.runs)?;
        let chosen = crate::choice_args::choose_part(&recording, &args.profile.part)?;
        let sampled = sample_part(&recording, chosen, &args.profile, METRICS)?;
        sampled.print_known_share();
        let (words, window) = (sampled.title(), sampled.chosen.window);
        let RecordedProfile { profile, threads, frames, .. } = &sampled.recorded;
        whyso_report::pprof(ForPprof {
            run: recording.run(),
            window,
            words: &words,
            profile,
            threads,
            frames,
        })?
    } else if args.against.is_given() {
        let pair = sample_both(&args.run, &args.profile, &args.against, METRICS)?;
        pair.here.print_known_share();
        pair.there.print_known_share();
        let (here, there) = (&pair.here.recorded.profile, &pair.there.recorded.profile);
        whyso_report::folded_against(here, there, 0, pair.by).into_bytes()
    } else {
        let sampled = sample(&args.run, &args.profile, METRICS)?;
        sampled.print_known_share();
        whyso_report::folded(&sampled.recorded.profile, 0).into_bytes()
    };
    if args.pprof && args.output.is_none() && std::io::stdout().is_terminal() {
        bail!("a file for pprof can't go to a terminal: name it with --output FILE");
    }
    let mut out = output(args.output.as_deref())?;
    out.write_all(&exported)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn snapshots(args: SnapshotsArgs) -> Result<ExitCode> {
    let store = Store::of_user()?;
    let snapshots = store.list()?;
    match args.command.unwrap_or(SnapshotsCommand::List) {
        SnapshotsCommand::List => {
            if snapshots.is_empty() {
                writeln!(crate::out::stdout(), "no snapshots: a run on a throw-away server makes one")?;
            }
            for snapshot in snapshots {
                writeln!(
                    crate::out::stdout(),
                    "{}  {:>9}  {} of {}, {}",
                    snapshot.key,
                    whyso_words::bytes(snapshot.bytes as f64),
                    whyso_words::count(u64::from(snapshot.dataset.tables), "table"),
                    whyso_words::count(snapshot.dataset.rows, "row"),
                    snapshot.server_version
                )?;
            }
        }
        SnapshotsCommand::Remove { name } => {
            let chosen: Vec<_> =
                snapshots.iter().filter(|snapshot| name == "all" || snapshot.key == name).collect();
            if chosen.is_empty() && name != "all" {
                bail!("there is no snapshot {name}: `whyso snapshots` lists them");
            }
            for snapshot in chosen {
                store.remove(&snapshot.key)?;
                writeln!(crate::out::stdout(), "removed {}", snapshot.key)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

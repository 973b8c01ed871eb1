//! `whyso runs`: what is done to recordings as a whole.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::answer::kept_answer;
use crate::elsewhere;
use crate::run_notes::run_notes;
use crate::run_transfer::{self, PullArgs, PushArgs};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use whyso_control::Error;
use whyso_record::{Labels, RunSummary};
use whyso_report::Answer;
use whyso_words::{bytes, count};

#[derive(Args, Debug)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    /// Folder that holds the recordings; to list them also a place such as s3://lab/runs
    #[arg(long, value_name = "DIR", default_value = crate::config::runs(), global = true)]
    runs: PathBuf,
    /// List only runs in which each of these words occurs: in the id, the name, the tags, the workload, the server, what was set, or the
    /// first cause
    #[arg(long, value_name = "WORDS")]
    find: Option<String>,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum RunsCommand {
    /// List the runs, the default
    List,
    /// Remove runs with everything in their folders
    #[command(alias = "remove")]
    Rm {
        #[arg(required = true, value_name = "RUN")]
        run: Vec<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Remove the oldest detail of runs until each is within a size: roll-ups, events and results stay
    Prune {
        /// Of each run, such as 200MiB
        #[arg(long, value_name = "SIZE", value_parser = whyso_model::parse_size)]
        size: u64,
        /// [default: every run that is larger]
        #[arg(value_name = "RUN")]
        run: Vec<String>,
    },
    /// Give a run a name and tags, or take them away; without options, show them
    Label {
        /// The run: its id or the begin of it, or latest~N for the one N before the last
        #[arg(value_name = "RUN")]
        run: PathBuf,
        /// What to call it; an empty text takes its name away
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// A tag to add; may be given more than once
        #[arg(long, value_name = "TAG")]
        tag: Vec<String>,
        /// A tag to take away; may be given more than once
        #[arg(long, value_name = "TAG")]
        untag: Vec<String>,
    },
    /// List the notes on a run, or change and remove some
    Notes {
        /// The run: its id or the begin of it, or latest~N for the one N before the last
        #[arg(value_name = "RUN")]
        run: PathBuf,
        /// Give a note, by its number in the list, another text
        #[arg(long, num_args = 2, value_names = ["NUMBER", "TEXT"])]
        edit: Vec<String>,
        /// Remove a note, by its number in the list; may be given more than once
        #[arg(long, value_name = "NUMBER")]
        rm: Vec<usize>,
    },
    /// Check that files are as they were recorded, by their digests
    Check {
        /// [default: every run]
        #[arg(value_name = "RUN")]
        run: Vec<String>,
    },
    /// Write runs into one file, a tar archive
    Backup {
        /// [default: every run that has ended]
        #[arg(value_name = "RUN")]
        run: Vec<String>,
        /// The file, which must not exist yet
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Copy the runs of a backup into the folder of recordings; runs that are there already stay as they are
    Import {
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Send runs to storage that speaks S3; runs that are there already stay as they are
    Push(PushArgs),
    /// Fetch runs from storage into the folder of recordings; runs that are there already stay as they are
    Pull(PullArgs),
    /// Write the catalogue of the folder as it is now: a Parquet file with a row per run, for other tools
    Catalogue,
}

pub(crate) fn runs(args: &RunsArgs) -> Result<ExitCode> {
    if !matches!(&args.command, None | Some(RunsCommand::List)) {
        elsewhere::refuse_place(&args.runs)?;
    }
    match &args.command {
        None | Some(RunsCommand::List) => list(args),
        Some(RunsCommand::Rm { run, yes }) => remove(args, run, *yes),
        Some(RunsCommand::Prune { size, run }) => prune(args, *size, run),
        Some(RunsCommand::Label { run, name, tag, untag }) => label(args, run, name.as_deref(), tag, untag),
        Some(RunsCommand::Notes { run, edit, rm }) => {
            let outcome = run_notes(run, &args.runs, edit, rm)?;
            print_outcome(args, "runs-notes", outcome.json, || outcome.text)
        }
        Some(RunsCommand::Check { run }) => check(args, run),
        Some(RunsCommand::Backup { run, output }) => backup(args, run, output),
        Some(RunsCommand::Import { file }) => import(args, file),
        Some(RunsCommand::Push(push)) => run_transfer::push(push, &args.runs, args.json),
        Some(RunsCommand::Pull(pull)) => run_transfer::pull(pull, &args.runs, args.json),
        Some(RunsCommand::Catalogue) => catalogue(args),
    }
}

fn list(args: &RunsArgs) -> Result<ExitCode> {
    let mut runs: Vec<(RunSummary, Option<Answer>)> = elsewhere::list_runs(&args.runs)?
        .into_iter()
        .map(|run| {
            let answer = kept_answer(&run.path);
            (run, answer)
        })
        .collect();
    let is_empty = runs.is_empty();
    if let Some(words) = &args.find {
        runs.retain(|(run, answer)| whyso_report::is_found(run, answer.as_ref(), words));
    }
    let mut out = crate::out::stdout();
    if args.json {
        let ids: Vec<_> = runs
            .iter()
            .map(|(run, answer)| {
                serde_json::json!({
                    "run": run.id,
                    "path": run.path,
                    "name": run.labels.name,
                    "tags": run.labels.tags,
                    "set": run.facts.set,
                    "answer": answer,
                    "bytes": run.bytes,
                    "ended": run.facts.ended,
                    "performance_schema": run.facts.performance_schema,
                    "problem": run.problem,
                })
            })
            .collect();
        crate::json::write(&mut out, "runs", serde_json::json!({ "runs": ids }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if is_empty {
        writeln!(out, "no runs in {}: `whyso run` makes one", args.runs.display())?;
    } else if let (true, Some(words)) = (runs.is_empty(), &args.find) {
        writeln!(out, "no run in {} contains {words}", args.runs.display())?;
    }
    for (run, answer) in &runs {
        writeln!(out, "{}", whyso_report::run_line(run))?;
        let more = whyso_report::run_details(run, answer.as_ref());
        if !more.is_empty() {
            writeln!(out, "    {more}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The runs that are named, each once.
fn named_runs(args: &RunsArgs, names: &[String]) -> Result<Vec<RunSummary>> {
    let mut there = whyso_record::list_runs(&args.runs)?;
    let mut found = Vec::new();
    for name in names {
        let Some(place) = there.iter().position(|run| run.id == *name) else {
            if found.iter().any(|run: &RunSummary| run.id == *name) {
                continue;
            }
            bail!(Error::Plan(format!(
                "there is no run {name} in {}: `whyso runs` lists them",
                args.runs.display()
            )));
        };
        found.push(there.remove(place));
    }
    Ok(found)
}

fn remove(args: &RunsArgs, names: &[String], yes: bool) -> Result<ExitCode> {
    let runs = named_runs(args, names)?;
    if !yes {
        if !std::io::stdin().is_terminal() {
            bail!(Error::Plan("nobody is there to be asked: add --yes to remove them".to_string()));
        }
        let all: u64 = runs.iter().map(|run| run.bytes).sum();
        for run in &runs {
            print_stderr!("{}", whyso_report::run_line(run));
        }
        print_stderr_part!(
            "Remove {} of {} for good? [y/N] ",
            count(runs.len() as u64, "run"),
            bytes(all as f64)
        );
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            bail!("nothing was removed");
        }
    }
    let mut freed = 0;
    for run in &runs {
        freed += whyso_record::remove_run(&run.path)?;
    }
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    print_outcome(args, "runs-remove", serde_json::json!({ "removed": ids, "freed_bytes": freed }), || {
        format!("removed {}, {} freed", count(ids.len() as u64, "run"), bytes(freed as f64))
    })
}

fn prune(args: &RunsArgs, size: u64, names: &[String]) -> Result<ExitCode> {
    let runs = match names {
        [] => whyso_record::list_runs(&args.runs)?.into_iter().filter(|run| !run.live).collect(),
        _ => named_runs(args, names)?,
    };
    let (mut freed, mut pruned) = (0, Vec::new());
    for run in runs.iter().filter(|run| run.bytes > size) {
        let of_run = whyso_record::prune_run(&run.path, size)?;
        if of_run > 0 {
            pruned.push(run.id.as_str());
        }
        freed += of_run;
    }
    print_outcome(args, "runs-prune", serde_json::json!({ "pruned": pruned, "freed_bytes": freed }), || {
        format!(
            "{} lost their oldest detail, {} freed",
            count(pruned.len() as u64, "run"),
            bytes(freed as f64)
        )
    })
}

fn label(
    args: &RunsArgs,
    run: &Path,
    name: Option<&str>,
    tags: &[String],
    gone: &[String],
) -> Result<ExitCode> {
    let path = crate::recordings::path_of(run, &args.runs)?;
    let before = whyso_record::labels_of(&path);
    if let Some(unknown) = gone.iter().find(|tag| !before.tags.contains(tag)) {
        bail!(Error::Plan(format!("the run has no tag {unknown}: it has {}", list_or_none(&before.tags))));
    }
    let kept = before.tags.iter().filter(|tag| !gone.contains(tag)).chain(tags).cloned();
    let labels = Labels::new(name.unwrap_or(&before.name), kept)?;
    if labels != before {
        whyso_record::set_labels(&path, &labels)?;
    }
    let id = path.file_name().map(|id| id.to_string_lossy().into_owned()).unwrap_or_default();
    print_outcome(
        args,
        "runs-label",
        serde_json::json!({ "run": id, "name": labels.name, "tags": labels.tags }),
        || {
            let name = if labels.name.is_empty() { "no name" } else { &labels.name };
            format!("{id}: {name}; tags: {}", list_or_none(&labels.tags))
        },
    )
}

fn list_or_none(tags: &[String]) -> String {
    if tags.is_empty() { "none".to_string() } else { tags.join(", ") }
}

fn check(args: &RunsArgs, names: &[String]) -> Result<ExitCode> {
    let runs: Vec<RunSummary> = match names {
        [] => whyso_record::list_runs(&args.runs)?,
        _ => named_runs(args, names)?,
    };
    let (mut files, mut problems) = (0, Vec::new());
    for run in &runs {
        let checked = whyso_record::check_run(&run.path)?;
        files += checked.files;
        problems.extend(checked.problems);
    }
    print_outcome(
        args,
        "runs-check",
        serde_json::json!({ "runs": runs.len(), "files": files, "problems": problems }),
        || {
            let all_well = format!(
                "{} of {} are as they were recorded",
                count(files as u64, "file"),
                count(runs.len() as u64, "run")
            );
            problems.iter().cloned().chain([all_well]).collect::<Vec<_>>().join("\n")
        },
    )?;
    Ok(ExitCode::from(u8::from(!problems.is_empty())))
}

fn backup(args: &RunsArgs, names: &[String], output: &Path) -> Result<ExitCode> {
    let runs: Vec<RunSummary> = match names {
        [] => whyso_record::list_runs(&args.runs)?.into_iter().filter(|run| !run.live).collect(),
        _ => named_runs(args, names)?,
    };
    if runs.is_empty() {
        bail!("there is no run to back up in {}", args.runs.display());
    }
    let paths: Vec<PathBuf> = runs.iter().map(|run| run.path.clone()).collect();
    let written = whyso_record::backup_runs(&paths, output)?;
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    print_outcome(
        args,
        "runs-backup",
        serde_json::json!({ "file": output, "runs": ids, "bytes": written }),
        || format!("{}: {}, {}", output.display(), count(ids.len() as u64, "run"), bytes(written as f64)),
    )
}

fn import(args: &RunsArgs, file: &Path) -> Result<ExitCode> {
    let (imported, there) = whyso_record::import_runs(file, &args.runs)?;
    print_outcome(
        args,
        "runs-import",
        serde_json::json!({ "imported": imported, "there_already": there }),
        || {
            let mut words = format!("took in {}", count(imported.len() as u64, "run"));
            if !there.is_empty() {
                words.push_str(&format!(", already there: {}", count(there.len() as u64, "run")));
            }
            words
        },
    )
}

fn catalogue(args: &RunsArgs) -> Result<ExitCode> {
    let (path, number) = whyso_record::write_catalogue(&args.runs)?;
    print_outcome(args, "runs-catalogue", serde_json::json!({ "file": path, "runs": number }), || {
        format!("{}: {}", path.display(), count(number as u64, "run"))
    })
}

fn print_outcome(
    args: &RunsArgs,
    schema: &str,
    object: serde_json::Value,
    words: impl FnOnce() -> String,
) -> Result<ExitCode> {
    let mut out = crate::out::stdout();
    match args.json {
        true => crate::json::write(&mut out, schema, object)?,
        false => writeln!(out, "{}", words())?,
    }
    Ok(ExitCode::SUCCESS)
}

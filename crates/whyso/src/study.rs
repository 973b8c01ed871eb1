//! `whyso study`: many runs that answer one question.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use whyso_lab::Error;
use whyso_study::{Journal, Spec};

use crate::INTERRUPTED;
use crate::given::{ask_password, source, take_ctrl_c};
use crate::progress::Bars;

#[derive(Args, Debug)]
pub(crate) struct StudyArgs {
    #[command(subcommand)]
    command: StudyCommand,
}

#[derive(Subcommand, Debug)]
enum StudyCommand {
    /// Carry a study out: fresh starts of every server and variant, in random order, compared within blocks
    Run {
        /// Its file (docs/studies.md has every key)
        file: PathBuf,
        /// Its short form
        #[arg(long)]
        quick: bool,
        /// Print what would be started, and how long it takes at most, and end
        #[arg(long)]
        dry_run: bool,
        /// Folder of this study; it must not be one yet [default: studies-run/ and the file's name]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Print the answer as one JSON object on standard output
        #[arg(long)]
        json: bool,
    },
    /// Go on with a study that was stopped, by Ctrl-C or by a crash
    Resume {
        /// Its folder
        dir: PathBuf,
        #[arg(long)]
        json: bool,
    },
    /// Show what a study found so far
    Show {
        /// Its folder
        dir: PathBuf,
        /// As Markdown
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        #[arg(long)]
        json: bool,
    },
    /// List the studies, with what of each is done
    List {
        /// Folder that holds them
        #[arg(default_value = FOLDER)]
        folder: PathBuf,
    },
}

/// Where studies go, each into a folder of its own.
const FOLDER: &str = "studies-run";

#[derive(Clone, Copy)]
enum Form {
    Terminal,
    Markdown,
    Json,
}

pub(crate) fn study(args: &StudyArgs) -> Result<ExitCode> {
    let form = |json: bool| if json { Form::Json } else { Form::Terminal };
    match &args.command {
        StudyCommand::Run { file, quick, dry_run, out, json } => {
            let text =
                std::fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))?;
            let spec = Spec::parse(&text, *quick)
                .map_err(|error| Error::Plan(format!("{}: {error}", file.display())))?;
            whyso_lab::check_study(&spec, &source(&spec.workload)?)?;
            if *dry_run {
                return print_plan(&spec);
            }
            let name = file.file_stem().unwrap_or_default();
            let dir = out.clone().unwrap_or_else(|| Path::new(FOLDER).join(name));
            carry_out(Journal::create(&dir, spec).map_err(told)?, form(*json))
        }
        StudyCommand::Resume { dir, json } => carry_out(Journal::open(dir).map_err(told)?, form(*json)),
        StudyCommand::Show { dir, markdown, json } => {
            let form = if *markdown { Form::Markdown } else { form(*json) };
            print_answer(&Journal::open(dir).map_err(told)?, form)?;
            Ok(ExitCode::SUCCESS)
        }
        StudyCommand::List { folder } => list(folder),
    }
}

fn told(error: whyso_study::Error) -> Error {
    Error::Plan(error.to_string())
}

fn print_plan(spec: &Spec) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let cells = spec.cells();
    writeln!(out, "{}\n{}\n", spec.title, spec.question)?;
    for (at, block) in spec.blocks().iter().enumerate() {
        let names: Vec<String> = block.iter().map(|start| cells[start.cell].name()).collect();
        writeln!(out, "block {}: {}", at + 1, names.join("; "))?;
    }
    let users: Vec<String> = spec.users.iter().map(u32::to_string).collect();
    writeln!(
        out,
        "\n{} cells, {} starts, {} users each; at most {:.0} min of measuring and warming up, and besides the time that servers take to start and data to \
         be restored",
        cells.len(),
        cells.len() * spec.repeats as usize,
        users.join(", "),
        (spec.measured_s_max() / 60.0).ceil()
    )?;
    Ok(ExitCode::SUCCESS)
}

fn carry_out(mut journal: Journal, form: Form) -> Result<ExitCode> {
    let source = source(&journal.spec.workload)?;
    let stop = take_ctrl_c()?;
    let bars = Bars::new();
    let command = whyso_lab::masked_command_line(std::env::args());
    let done = whyso_lab::study(&mut journal, &source, &command, &bars, stop, &ask_password);
    bars.clear();
    print_answer(&journal, form)?;
    let again = format!("`whyso study resume {}` goes on", journal.dir().display());
    match done {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Error::Interrupted) => {
            eprintln!("whyso: stopped; {again}");
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(error) if stop.is_asked() => {
            eprintln!("whyso: stopped ({error}); {again}");
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(error) => bail!("{error}; {again}"),
    }
}

fn print_answer(journal: &Journal, form: Form) -> Result<()> {
    let answer = whyso_lab::study_answer(journal)?;
    let mut out = std::io::stdout().lock();
    match form {
        Form::Terminal => writeln!(out, "{}", whyso_report::study(&answer))?,
        Form::Markdown => writeln!(out, "{}", whyso_report::study_markdown(&answer))?,
        Form::Json => writeln!(out, "{}", serde_json::to_string_pretty(&answer)?)?,
    }
    Ok(())
}

fn list(folder: &Path) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let mut dirs: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    dirs.sort();
    let journals: Vec<Journal> = dirs.iter().filter_map(|dir| Journal::open(dir).ok()).collect();
    if journals.is_empty() {
        writeln!(out, "no study in {}: `whyso study run FILE.toml` begins one", folder.display())?;
    }
    for journal in journals {
        let (done, left) = (journal.done().len(), journal.todo().len());
        writeln!(
            out,
            "{:40} {done} of {} starts   {}",
            journal.dir().display(),
            done + left,
            journal.spec.title
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

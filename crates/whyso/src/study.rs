//! `whyso study`: many runs that answer one question.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use whyso_control::{Error, ReachedServer, StudyPlace, StudyWorkers};
use whyso_study::{Answer, Design, Journal, Repeats, Spec, StoredStudy};
use whyso_words::rough_time;

use crate::exit_codes::INTERRUPTED;
use crate::progress::Bars;
use crate::text_format::{FormatArgs, TextFormat};
use crate::user::{ask_password, handle_ctrl_c};

#[derive(Args, Debug)]
pub(crate) struct StudyArgs {
    #[command(subcommand)]
    command: StudyCommand,
}

#[derive(Subcommand, Debug)]
enum StudyCommand {
    /// Carry a study out: fresh starts of every server and variant, in random order, compared within blocks
    Run {
        /// Its file (docs/reference/study-file.md has every key)
        file: PathBuf,
        /// Its short form
        #[arg(long)]
        quick: bool,
        /// Print what would be started, and how long it takes at most, and exit
        #[arg(long)]
        dry_run: bool,
        /// Run the programs that the file names: servers, libraries, plugins and add-ons that are not part of whyso
        #[arg(long)]
        allow_programs: bool,
        /// Carry it out on a server of your own, which is not restarted: its settings are changed and put back
        #[arg(long, value_name = "DSN", requires = "allow_experiments")]
        dsn: Option<String>,
        /// Carry it out on the first node of this cluster, as `whyso server cluster list` names it; every node is watched
        #[arg(long, value_name = "NAME", conflicts_with = "dsn")]
        cluster: Option<String>,
        /// Permit experiments on the server of --dsn
        #[arg(long, requires = "dsn")]
        allow_experiments: bool,
        #[command(flatten)]
        workers: WorkersArgs,
        /// Folder of this study; it must be new [default: studies-run/ and the file's name]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Print the answer as one JSON object on standard output
        #[arg(long)]
        json: bool,
    },
    /// Continue a study that was stopped, by Ctrl-C or by a crash
    Resume {
        /// Its folder
        dir: PathBuf,
        /// Run the programs that the study names: servers, libraries, plugins and add-ons that are not part of whyso
        #[arg(long)]
        allow_programs: bool,
        /// The server of your own that it was begun on
        #[arg(long, value_name = "DSN", requires = "allow_experiments")]
        dsn: Option<String>,
        /// Carry it out on the first node of this cluster, as `whyso server cluster list` names it; every node is watched
        #[arg(long, value_name = "NAME", conflicts_with = "dsn")]
        cluster: Option<String>,
        /// Permit experiments on the server of --dsn
        #[arg(long, requires = "dsn")]
        allow_experiments: bool,
        #[command(flatten)]
        workers: WorkersArgs,
        #[arg(long)]
        json: bool,
    },
    /// Show what a study has found
    Show {
        /// Its folder
        dir: PathBuf,
        #[command(flatten)]
        format: FormatArgs,
    },
    /// Write what a study found as a page: one file that needs no other
    Report {
        /// Its folder
        dir: PathBuf,
        /// Where to write [default: report.html in the study's folder]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// List the studies, with the progress of each
    List {
        /// Folder that holds them
        #[arg(default_value = FOLDER)]
        folder: PathBuf,
    },
}

/// Other machines that carry a study out.
#[derive(Args, Debug)]
struct WorkersArgs {
    /// Hosts whose agents carry its blocks out, on servers that they start: a TOML file (docs/reference/lab-file.md)
    #[arg(long, value_name = "LAB.toml", conflicts_with_all = ["dsn", "cluster"])]
    hosts: Option<PathBuf>,
    /// Mix machines that differ in CPU, memory, kernel or system
    #[arg(long, requires = "hosts")]
    unlike_machines: bool,
}

impl WorkersArgs {
    fn read(&self) -> Result<Option<StudyWorkers>> {
        let Some(path) = &self.hosts else { return Ok(None) };
        Ok(Some(StudyWorkers { hosts: crate::hosts_file::read(path)?, may_differ: self.unlike_machines }))
    }
}

/// Where studies go, each into a folder of its own.
pub(crate) const FOLDER: &str = "studies-run";
/// The page, in a study's folder.
const PAGE: &str = "report.html";

pub(crate) fn study(args: &StudyArgs) -> Result<ExitCode> {
    let form = |json: bool| if json { TextFormat::Json } else { TextFormat::Text };
    match &args.command {
        StudyCommand::Run {
            file, quick, dry_run, allow_programs, dsn, cluster, workers, out, json, ..
        } => {
            let workers = workers.read()?;
            let text =
                std::fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))?;
            let spec = Spec::parse(&text, *quick)
                .map_err(|error| Error::Plan(format!("{}: {error}", file.display())))?;
            if *dry_run && !whyso_control::study_programs(&spec).is_empty() {
                return print_unchecked(spec);
            }
            check_programs(&spec, *allow_programs)?;
            let folder = file.parent().unwrap_or(Path::new("."));
            let server = reached(dsn.as_deref(), cluster.as_deref())?;
            let study = whyso_control::plan_study(spec, folder, server.as_ref())?;
            if *dry_run {
                return print_plan(&study);
            }
            let name = file.file_stem().unwrap_or_default();
            let dir = out.clone().unwrap_or_else(|| Path::new(FOLDER).join(name));
            let journal = Journal::create(&dir, study).map_err(wrong_study)?;
            carry_out(journal, place(server.as_ref(), workers.as_ref()), form(*json))
        }
        StudyCommand::Resume { dir, allow_programs, dsn, cluster, workers, json, .. } => {
            let workers = workers.read()?;
            let journal = Journal::open(dir).map_err(wrong_study)?;
            check_programs(journal.spec(), *allow_programs)?;
            let server = reached(dsn.as_deref(), cluster.as_deref())?;
            carry_out(journal, place(server.as_ref(), workers.as_ref()), form(*json))
        }
        StudyCommand::Show { dir, format } => {
            print_answer(&Journal::open(dir).map_err(wrong_study)?, format.chosen())?;
            Ok(ExitCode::SUCCESS)
        }
        StudyCommand::Report { dir, output } => {
            let journal = Journal::open(dir).map_err(wrong_study)?;
            let page = output.clone().unwrap_or_else(|| dir.join(PAGE));
            write_page(&whyso_control::study_answer(&journal)?, &page)?;
            if output.is_none() {
                writeln!(crate::out::stdout(), "{}", page.display())?;
            }
            Ok(ExitCode::SUCCESS)
        }
        StudyCommand::List { folder } => list(folder),
    }
}

fn wrong_study(error: whyso_study::Error) -> Error {
    Error::Plan(error.to_string())
}

/// A study's file may be somebody else's: what it runs is shown first.
fn check_programs(spec: &Spec, are_allowed: bool) -> Result<(), Error> {
    let programs = whyso_control::study_programs(spec);
    if are_allowed || programs.is_empty() {
        return Ok(());
    }
    Err(Error::Plan(format!(
        "this study runs or loads {}: where you trust its author, give --allow-programs",
        programs.join(", ")
    )))
}

/// The plan of a study that names programs. Looking for its servers would run them.
fn print_unchecked(spec: Spec) -> Result<ExitCode> {
    let mut notes = vec![
        "Nothing was checked with its servers, for asking them runs them. The study runs or loads:"
            .to_string(),
    ];
    notes.extend(whyso_control::study_programs(&spec).iter().map(|program| format!("  {program}")));
    print_plan(&StoredStudy { spec, files: BTreeMap::new(), notes, endpoint: String::new() })
}

fn print_plan(study: &StoredStudy) -> Result<ExitCode> {
    let mut out = crate::out::stdout();
    let spec = &study.spec;
    let cells = spec.cells();
    writeln!(out, "{}\n{}\n", spec.title, spec.question)?;
    if let Some(start) = spec.pair().first() {
        writeln!(
            out,
            "first twice, to see whether the machine differs from itself: {}",
            cells[start.cell].name()
        )?;
    }
    for block in 0..spec.blocks_least() {
        let names: Vec<String> = spec.block(block).iter().map(|start| cells[start.cell].name()).collect();
        let (between, how) = match spec.design() {
            Design::Blocks => ("; ", ""),
            Design::Duet => (" · ", ", the load in turns"),
            Design::SwitchBack => (" · ", ", on one server"),
        };
        writeln!(out, "block {}{how}: {}", block + 1, names.join(between))?;
    }
    if let Repeats::Until { .. } = spec.repeats {
        writeln!(out, "and more blocks, {} at most, {}", spec.blocks_max(), spec.repeats)?;
    }
    let users: Vec<String> = spec.users.iter().map(u32::to_string).collect();
    let starts = spec.all_starts().len();
    writeln!(out, "\n{} cells, {starts} starts, {} users each", cells.len(), users.join(", "))?;
    match &spec.session_sweep {
        Some(sweep) => writeln!(
            out,
            "each start sweeps {} over {} values, {} executions each",
            sweep.knob,
            sweep.points().map_or(0, |points| points.len()),
            sweep.times
        )?,
        None => writeln!(
            out,
            "at most {} of measuring and warming up, plus the time that servers take to start and data to be restored",
            rough_time(spec.measured_s_max())
        )?,
    }
    for note in &study.notes {
        writeln!(out, "{note}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The running server that a study is carried out on; `None`: servers of whyso's own.
fn reached(dsn: Option<&str>, cluster: Option<&str>) -> Result<Option<ReachedServer>> {
    let Some(name) = cluster else {
        return Ok(dsn.map(|dsn| ReachedServer { dsn: dsn.to_string(), nodes: Vec::new() }));
    };
    let loaded = crate::cluster::loaded(name, false)?;
    Ok(Some(ReachedServer { dsn: loaded.dsn, nodes: loaded.nodes }))
}

fn place<'a>(server: Option<&'a ReachedServer>, workers: Option<&'a StudyWorkers>) -> StudyPlace<'a> {
    match workers {
        Some(workers) => StudyPlace::Workers(workers),
        None => StudyPlace::Here(server),
    }
}

fn carry_out(mut journal: Journal, on: StudyPlace<'_>, form: TextFormat) -> Result<ExitCode> {
    let stop = handle_ctrl_c()?;
    let bars = Bars::new();
    let command = crate::user::command_line();
    let done = whyso_control::study(&mut journal, on, &command, &bars, stop, &ask_password);
    bars.clear();
    print_answer(&journal, form)?;
    if done.is_ok() {
        let page = journal.dir().join(PAGE);
        // The answer is out, and the page can be written at any time: a full disk is no failure of the study.
        match write_page(&whyso_control::study_answer(&journal)?, &page) {
            Ok(()) => print_stderr!("whyso: the page: {}", page.display()),
            Err(error) => print_stderr!("whyso: warning: {error:#}"),
        }
    }
    let again = format!("`whyso study resume {}` continues it", journal.dir().display());
    match done {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some(why)) => {
            print_stderr!("whyso: ended early: {why}");
            Ok(ExitCode::SUCCESS)
        }
        Err(Error::Interrupted) => {
            print_stderr!("whyso: stopped; {again}");
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(error) if stop.is_asked() => {
            print_stderr!("whyso: stopped ({error}); {again}");
            Ok(ExitCode::from(INTERRUPTED))
        }
        Err(error) => bail!("{error}; {again}"),
    }
}

fn write_page(answer: &Answer, path: &Path) -> Result<()> {
    let refused = || format!("can't write {}", path.display());
    let mut out = BufWriter::new(File::create(path).with_context(refused)?);
    whyso_report::study_html(answer, &mut out)?;
    out.flush().with_context(refused)
}

fn print_answer(journal: &Journal, form: TextFormat) -> Result<()> {
    let answer = whyso_control::study_answer(journal)?;
    let mut out = crate::out::stdout();
    match form {
        TextFormat::Text => writeln!(out, "{}", whyso_report::study(&answer))?,
        TextFormat::Md => writeln!(out, "{}", whyso_report::study_markdown(&answer))?,
        TextFormat::Json => crate::json::write(&mut out, "study", &answer)?,
    }
    Ok(())
}

fn list(folder: &Path) -> Result<ExitCode> {
    let mut out = crate::out::stdout();
    let mut dirs: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    dirs.sort();
    let journals: Vec<Journal> = dirs.iter().filter_map(|dir| Journal::open(dir).ok()).collect();
    if journals.is_empty() {
        writeln!(out, "no study in {}: `whyso study run FILE.toml` begins one", folder.display())?;
    }
    for journal in journals {
        let (done, left) =
            (journal.finished_starts().len(), journal.todo(journal.spec().blocks_least()).len());
        writeln!(
            out,
            "{:40} {done} of {} starts   {}",
            journal.dir().display(),
            done + left,
            journal.spec().title
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

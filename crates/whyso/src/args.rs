//! The commands, as they are typed. Syntax only: nothing here touches a file, a clock or a server.

use clap::{ColorChoice, Parser, Subcommand};

use crate::addon::AddOnArgs;
use crate::export_args::ExportArgs;
use crate::load_args::LoadArgs;
use crate::profile_args::{ClassesArgs, FunctionsArgs, RelativesArgs, SourceArgs, WakersArgs};
use crate::record_args::RecordArgs;
use crate::report_args::{ReportArgs, SnapshotsArgs, WhyArgs};
use crate::run_args::RunArgs;
use crate::server::BuildsArgs;
use crate::statements::StatementsArgs;
use crate::sysbench::SysbenchArgs;

#[derive(Parser, Debug)]
#[command(
    name = "whyso",
    version,
    about = "Finds out why a database does not go faster",
    max_term_width = 110,
    override_help = crate::help::HELP
)]
pub(crate) struct Cli {
    /// Colours on standard output: auto (in a terminal, unless NO_COLOR is set), always or never
    #[arg(long, value_name = "WHEN", global = true, help_heading = "Common")]
    pub(crate) color: Option<ColorChoice>,

    /// List every command with what it is for
    #[arg(long)]
    pub(crate) help_all: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Sweep load levels, watch everything, explain, report: the main job
    Run(Box<RunArgs>),
    /// Only load a server: no samplers, no recording, a table or one JSON object
    Load(Box<LoadArgs>),
    /// Compare two settings, servers or statements in short windows that alternate: which is faster, and how sure that is
    Ab(Box<crate::ab::AbArgs>),
    /// Test the suspects of a run: remove each in an experiment, and measure what that gains
    Prove(crate::prove::ProveArgs),
    /// Find what makes two runs of the same workload differ, by halving: a setting, an option of the load, a build
    Bisect(crate::bisect::BisectArgs),
    /// Run sysbench's own command line and Lua scripts: `whyso sysbench --help` lists its options
    #[command(disable_help_flag = true)]
    Sysbench(SysbenchArgs),
    /// Record a server that something else loads, or any process, and show where its time goes; nothing is written to it
    Record(RecordArgs),
    /// Show the requests of a web server's access log, added up by kind: rates, errors and times, the slowest first
    AccessLog(Box<crate::access_log::AccessLogArgs>),
    /// Answer one question by many runs: servers × settings × users, fresh starts in random order, compared within blocks
    Study(crate::study::StudyArgs),
    /// Compare recorded runs, each one fresh start: what is faster, how sure that is, which settings differ, and what else differs
    Compare(crate::compare::CompareArgs),
    /// Show recorded runs in order of time, and where they became faster or slower for good
    History(crate::compare::HistoryArgs),
    /// Watch a server now, in the terminal: throughput, response time, waits, statements, locks and who holds them. Scroll
    /// back in time, take notes, and record where you want it
    Watch(crate::watch::WatchArgs),
    /// Show where each thread of a server spends its time: in a recorded run, or now
    Threads(crate::threads::ThreadsArgs),
    /// Show the CPU time of every program of a machine in a recorded run, and the functions that each was found in
    Programs(crate::programs::ProgramsArgs),
    /// Draw the threads of a recorded server over time: in which state each was, and the longest waits
    Timeline(crate::timeline::TimelineArgs),
    /// Show every thread's stack as it is now, of a server or of any process, with its role, its state and its statement
    Stacks(crate::stacks::StacksArgs),
    /// Show what connections waited for when they waited for locks, by table, index and instrument; or who waits for whom now
    Locks(crate::locks::LocksArgs),
    /// Show what the Performance Schema counted: waits, stages, statements, digests, files, tables, indexes, memory, locks, by thread, user and
    /// host; per second, statement and transaction
    Pfs(crate::pfs::PfsArgs),
    /// Note what you did, on the run that is being recorded or on any other; drawn on every chart
    Note(crate::note::NoteArgs),
    /// Check whether this machine is fit to measure on, and what can be watched here
    Doctor,
    /// Let the members of one group trace without root, by a copy of this program with three capabilities
    SetupTracing(crate::setup_tracing::SetupTracingArgs),
    /// Draw the report of a recorded run again, as HTML, Markdown, SVG or JSON
    Report(ReportArgs),
    /// Show where the time of a recorded run's transactions went, and why the server does not go faster
    Why(WhyArgs),
    /// Show what the server's status variables grew by in a recorded run, level by level
    Status(crate::status::StatusArgs),
    /// Show in which functions the server's threads spent their time, on CPUs, waiting for locks and for files
    Functions(FunctionsArgs),
    /// Show who called a function, and how much of its time came through each
    Callers(RelativesArgs),
    /// Show what a function called, and how much of its time went to each
    Callees(RelativesArgs),
    /// Show a function's source, each line with its time, where the build has line tables
    Source(SourceArgs),
    /// Show what the server's threads waited for, by wait class: row lock, redo flush, page latch, …
    Classes(ClassesArgs),
    /// Show who ended the waits of the server's threads: where they waited, which threads woke them, and in which function
    Wakers(WakersArgs),
    /// Show which statements the server spent its time on, or every command that it worked on, in order
    Statements(StatementsArgs),
    /// Write a recorded run's samples as CSV or as one Parquet file, or its stacks folded or for pprof
    Export(ExportArgs),
    /// Open the DuckDB shell with views over every recorded run
    Sql(crate::sql::SqlArgs),
    /// List the recorded runs; remove, prune, back up and import them; send them to storage, and fetch them
    Runs(crate::runs::RunsArgs),
    /// Draw series of a recorded run as an SVG picture: several windows side by side, on one scale
    Plot(crate::plot::PlotArgs),
    /// Show the recorded runs as a page in the browser: charts of any series over any window, tables, comparisons, notes
    Serve(crate::serve::ServeArgs),
    /// Answer an assistant's questions about the recorded runs, by the Model Context Protocol on standard input and output; read-only
    Mcp(crate::mcp::McpArgs),
    /// Print the JSON schema of what a command prints with --json, or list the schemas
    Schema(crate::schema::SchemaArgs),
    /// Add-ons, your own sources: list those that ship, or try one
    AddOn(AddOnArgs),
    /// One host of several: records what it may, for a commander of the hub
    Agent(crate::agent::AgentArgs),
    /// The bus between hosts: start it, invite hosts, and see which are there
    Hub(crate::hub::HubArgs),
    /// Print what a shell needs to complete commands, options and runs: `source <(whyso completions bash)`
    Completions(crate::completions::CompletionsArgs),
    /// Write the manual pages, one file per command, as packages contain them
    #[command(hide = true)]
    ManPages(crate::man_pages::ManPagesArgs),
    /// Server builds: list them, fetch one, name your own folder, start and stop one
    Server(BuildsArgs),
    /// List or remove the snapshots of loaded throw-away servers
    Snapshots(SnapshotsArgs),
}

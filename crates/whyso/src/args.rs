//! What was typed. Syntax only: nothing here touches a file, a clock or a server.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use whyso_explain::hidden::Source;
use whyso_explain::slo::Requirement;
use whyso_load::{EngineKind, SchedulingPolicy};
use whyso_query::SourcePath;

pub(crate) use crate::addon::{AddOnArgs, OthersArgs};
pub(crate) use crate::export_args::{ExportArgs, ExportFormat};
pub(crate) use crate::load_args::LoadArgs;
pub(crate) use crate::pfs_args::PfsSetupArgs;
pub(crate) use crate::profile_args::{
    ClassesArgs, FunctionsArgs, ProfileArgs, RelativesArgs, SourceArgs, WakersArgs,
};
pub(crate) use crate::record_args::{Length, RecordArgs};
pub(crate) use crate::recording_args::{RecordingArgs, RecordingOutputArgs};
pub(crate) use crate::server::BuildsArgs;
pub(crate) use crate::statements::StatementsArgs;

#[derive(Parser, Debug)]
#[command(
    name = "whyso",
    version,
    about = "Finds out why a database does not go faster",
    max_term_width = 110
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Sweep load levels, watch everything, explain, report: the main job
    Run(Box<RunArgs>),
    /// Only load a server: no samplers, no recording, a table or one JSON object
    Load(Box<LoadArgs>),
    /// Run sysbench's own command line and Lua scripts: `whyso sysbench --help` lists its options
    #[command(disable_help_flag = true)]
    Sysbench(SysbenchArgs),
    /// Record a server that something else loads, or any process, and say where its time goes; nothing is written to it
    Record(RecordArgs),
    /// Many runs that answer one question: servers × settings × users, fresh starts in random order, compared within blocks
    Study(crate::study::StudyArgs),
    /// Compare recorded runs, each one fresh start: what is faster, how sure that is, which settings differ, and what else differs
    Compare(crate::compare::CompareArgs),
    /// Show recorded runs in order of time, and where they became faster or slower for good
    History(crate::compare::HistoryArgs),
    /// Watch a server now, in the terminal: throughput, response time, waits, statements, locks and who holds them; back in time, with notes, and
    /// recorded where you want it
    Watch(crate::watch::WatchArgs),
    /// Show where each thread of a server spends its time: in a recorded run, or now
    Threads(crate::threads::ThreadsArgs),
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
    /// Say whether this machine is fit to measure on, and what can be watched here
    Doctor,
    /// Let the members of one group trace without root, by a copy of this program with three capabilities
    SetupTracing(crate::setup_tracing::SetupTracingArgs),
    /// Draw the report of a recorded run again, as HTML, Markdown, SVG or JSON
    Report(ReportArgs),
    /// Say where the time of a recorded run's transactions went, and why the server does not go faster
    Why(WhyArgs),
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
    Sql(SqlArgs),
    /// List the recorded runs; remove, prune, back up and import them
    Runs(crate::runs::RunsArgs),
    /// Draw series of a recorded run as an SVG picture: several windows side by side, on one scale
    Plot(crate::plot::PlotArgs),
    /// Show the recorded runs as a page in the browser: charts of any series over any window, tables, comparisons, notes
    Serve(crate::serve::ServeArgs),
    /// Sources of your own: list those that ship, or try one
    AddOn(AddOnArgs),
    /// Server builds: list them, fetch one, give a folder of your own a name, start and stop one
    Server(BuildsArgs),
    /// List or remove the snapshots of loaded throw-away servers
    Snapshots(SnapshotsArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SysbenchArgs {
    /// Everything that sysbench takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The workload, named as sysbench names it, such as oltp-read-write or oltp-point-select, or a file of SQL
    #[arg(value_name = "WORKLOAD|FILE.sql", default_value = "oltp-read-write")]
    pub(crate) workload: String,

    /// Print what the workload sends, and end
    #[arg(long)]
    pub(crate) describe: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    pub(crate) levels: LevelArgs,

    #[command(flatten)]
    pub(crate) drive: DriveArgs,

    /// Open loop: transactions that are due a second, with --users as the most under way at once (128); several are a sweep
    /// over rates, a level each
    #[arg(long, value_name = "R,R,…", value_delimiter = ',', help_heading = "How it is driven")]
    pub(crate) rate: Vec<f64>,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) options: WorkloadArgs,

    #[command(flatten)]
    pub(crate) others: OthersArgs,

    #[command(flatten)]
    pub(crate) pfs: PfsSetupArgs,

    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: RecordingOutputArgs,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerArgs {
    /// Server to load: mysql://user@host:3306/schema or mysql://user@localhost/schema?socket=/path
    ///
    /// Without it whyso starts a throw-away server of its own. The password comes from the DSN, MYSQL_PWD,
    /// ~/.my.cnf or a prompt, in this order. `whyso load` takes several: then each is an endpoint, with its share of
    /// the connections as the parameter weight=N says (1 where there is none).
    #[arg(long, value_name = "DSN")]
    pub(crate) dsn: Vec<String>,

    /// Server build to start: a folder with bin/mysqld or sbin/mariadbd in it, or a name of `whyso server list`
    #[arg(long, value_name = "DIR|NAME", conflicts_with = "dsn")]
    pub(crate) server: Option<PathBuf>,

    /// Setting of the server, such as innodb_flush_log_at_trx_commit=2; may be given more than once
    ///
    /// A throw-away server is started with it; on a server reached by --dsn it is set with SET GLOBAL and put
    /// back at the end.
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    pub(crate) set: Vec<String>,

    /// A my.cnf of your own for the throw-away server
    #[arg(long, value_name = "FILE", conflicts_with = "dsn")]
    pub(crate) defaults_file: Option<PathBuf>,

    /// CPUs of the throw-away server: a list such as 0-3,8, or words such as "1 socket", "no HT", "4 cores"
    #[arg(long, value_name = "CPUS", conflicts_with = "dsn")]
    pub(crate) server_cpus: Option<String>,

    /// Bound on the throw-away server's memory, the page cache of its files included, such as 512M
    #[arg(long, value_name = "SIZE", value_parser = whyso_model::parse_size, conflicts_with = "dsn")]
    pub(crate) server_memory: Option<u64>,

    /// A library that the throw-away server loads before its own, such as another allocator: libjemalloc.so.2
    #[arg(long, value_name = "LIBRARY", conflicts_with = "dsn")]
    pub(crate) server_preload: Option<PathBuf>,

    /// CPUs of the load generator, in the same words
    #[arg(long, value_name = "CPUS")]
    pub(crate) client_cpus: Option<String>,

    /// Folder in which the throw-away server's own folder is made; must be on a real disk for findings about
    /// the disk to be true
    #[arg(long, value_name = "DIR", conflicts_with = "dsn")]
    pub(crate) server_dir: Option<PathBuf>,

    /// Permit writing to this schema although whyso did not make it
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) allow_writes: Option<String>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Levels")]
pub(crate) struct LevelArgs {
    /// Users at each level, in order [default: 1,2,4,8,16,32,64; with --rate 128]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    pub(crate) users: Vec<u32>,

    /// Length of each level's measured window, in seconds
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    pub(crate) seconds: f64,

    /// Bound on each level's warm-up, in seconds; it ends earlier when throughput is steady
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    pub(crate) warmup: f64,

    /// Change something in mid-run: at this many seconds of measuring (5, 5s, 2m), do this
    ///
    /// The action is SQL (a SET GLOBAL is put back at the end), the word "restart" for the throw-away server, or
    /// a command for the shell after a "!". May be given more than once.
    #[arg(long, num_args = 2, value_names = ["TIME", "ACTION"])]
    pub(crate) at: Vec<String>,

    #[command(flatten)]
    pub(crate) recording: RecordingArgs,

    /// Begin with an empty buffer pool and none of the data in the page cache
    #[arg(long)]
    pub(crate) cold: bool,

    /// Do not repeat the best level at the end to look for drift
    #[arg(long)]
    pub(crate) no_repeat: bool,

    /// Seed of everything that is random: the same seed sends the same transactions
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// What `run` and `load` share in how transactions are sent.
#[derive(Args, Debug)]
#[command(next_help_heading = "How it is driven")]
pub(crate) struct DriveArgs {
    /// What drives the connections: threads, epoll, io-uring, or auto, chosen for the largest level
    #[arg(long, value_name = "ENGINE", default_value_t = EngineKind::Auto)]
    pub(crate) engine: EngineKind,

    /// Number of event loops [default: chosen]
    #[arg(long, value_name = "N")]
    pub(crate) loops: Option<u32>,

    /// Have an event loop wait until so many receives have completed, for up to TIME [default of TIME: 100us]
    ///
    /// Fewer wake-ups, for answers that wait for others. Of io_uring alone; the default is to go on with the first.
    #[arg(long, value_name = "N[,TIME]")]
    pub(crate) min_complete: Option<String>,

    /// Have an event loop look for news for so long before it sleeps, such as 50us: a CPU for a shorter wait
    #[arg(long, value_name = "TIME")]
    pub(crate) busy_poll: Option<String>,

    /// Scheduling policy of the load's threads: batch, idle, fifo or rr [default: as whyso was started]
    #[arg(long, value_name = "POLICY")]
    pub(crate) scheduling_policy: Option<SchedulingPolicy>,

    /// Pause between a user's transactions: 10ms, or exp:10ms for pauses that vary around this mean
    #[arg(long, value_name = "TIME")]
    pub(crate) think: Option<String>,

    /// How arrivals of an open loop lie: poisson (independent of each other) or uniform (evenly spaced)
    #[arg(long, value_enum, value_name = "PROCESS")]
    pub(crate) arrivals: Option<ArrivalsArg>,

    /// Response time that is required: p99=20ms, avg=5ms, max=1s, or of one kind of transaction or
    /// statement new_order:p90=50ms; may be given more than once
    #[arg(long, value_name = "[KIND:]MEASURE=TIME")]
    pub(crate) slo: Vec<Requirement>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ArrivalsArg {
    Poisson,
    Uniform,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Data set")]
pub(crate) struct DataArgs {
    /// Tables sbtest1 … sbtestN
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) tables: u32,

    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = 25_000)]
    pub(crate) rows: u64,

    /// Storage engine of the tables
    #[arg(long, value_name = "ENGINE", default_value = "InnoDB")]
    pub(crate) table_engine: String,
}

/// Options of the workload itself; names and defaults are sysbench's.
#[derive(Args, Debug)]
#[command(next_help_heading = "Workload options, as sysbench names them")]
pub(crate) struct WorkloadArgs {
    /// Any option of the workload as NAME=VALUE, such as range-size=50; may be given more than once
    ///
    /// The common ones have flags of their own.
    #[arg(long = "option", short = 'o', value_name = "NAME=VALUE")]
    pub(crate) option: Vec<String>,
    /// Rows of a range [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) range_size: Option<String>,
    /// Point selects a transaction [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) point_selects: Option<String>,
    /// Simple range selects a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) simple_ranges: Option<String>,
    /// SUM() range selects a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) sum_ranges: Option<String>,
    /// ORDER BY range selects a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) order_ranges: Option<String>,
    /// DISTINCT range selects a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) distinct_ranges: Option<String>,
    /// Updates of the indexed column a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) index_updates: Option<String>,
    /// Updates of a column without index a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) non_index_updates: Option<String>,
    /// Deletes followed by an insert of the same row a transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) delete_inserts: Option<String>,
    /// on: no BEGIN and COMMIT, each statement commits by itself [default: off]
    #[arg(long, value_name = "on|off", num_args = 0..=1, default_missing_value = "on")]
    pub(crate) skip_trx: Option<String>,
    /// Distribution of row numbers: uniform, zipfian, pareto, gaussian, special [default: special, as in sysbench 1.0]
    #[arg(long, value_name = "NAME")]
    pub(crate) rand_type: Option<String>,
    /// Exponent of the zipfian distribution [default: 0.8]
    #[arg(long, value_name = "X")]
    pub(crate) rand_zipfian_exp: Option<String>,
    /// Parameter h of the pareto distribution [default: 0.2]
    #[arg(long, value_name = "X")]
    pub(crate) rand_pareto_h: Option<String>,
}

impl WorkloadArgs {
    /// The options that were given, as (name with dashes, value).
    pub(crate) fn given(&self) -> Vec<(String, String)> {
        let flags = [
            ("range-size", &self.range_size),
            ("point-selects", &self.point_selects),
            ("simple-ranges", &self.simple_ranges),
            ("sum-ranges", &self.sum_ranges),
            ("order-ranges", &self.order_ranges),
            ("distinct-ranges", &self.distinct_ranges),
            ("index-updates", &self.index_updates),
            ("non-index-updates", &self.non_index_updates),
            ("delete-inserts", &self.delete_inserts),
            ("skip-trx", &self.skip_trx),
            ("rand-type", &self.rand_type),
            ("rand-zipfian-exp", &self.rand_zipfian_exp),
            ("rand-pareto-h", &self.rand_pareto_h),
        ];
        let mut given = Vec::new();
        for (name, value) in flags {
            if let Some(value) = value {
                given.push((name.to_string(), value.clone()));
            }
        }
        given
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ReportFormat {
    Html,
    Md,
    Svg,
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The run: its folder, or its id under --runs
    pub(crate) run: PathBuf,
    #[arg(long, value_enum, default_value_t = ReportFormat::Html)]
    pub(crate) format: ReportFormat,
    /// Another run with stacks: the page's flame graphs can be compared with its levels
    #[arg(long, value_name = "RUN")]
    pub(crate) against: Option<PathBuf>,
    /// Where the sources of the server are, whose lines the page shows: OLD=NEW for what begins with OLD in the build and with NEW here, or a
    /// folder to look in; may be given more than once
    #[arg(long, value_name = "OLD=NEW|DIR")]
    pub(crate) source_path: Vec<SourcePath>,
    /// Where to write [default: report.html in the run's folder for HTML, standard output otherwise]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) runs: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// The run: its folder, or its id under --runs
    pub(crate) run: PathBuf,
    /// Ask about the level of so many users [default: the one where throughput stopped growing]
    #[arg(long, value_name = "N")]
    pub(crate) users: Option<u32>,
    /// Hide sources, as if they had been absent: "tracer", "stacks", "waits" (the stacks of waits), "pfs"
    #[arg(long, value_name = "S,S,…", value_delimiter = ',')]
    pub(crate) without: Vec<Source>,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) runs: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct SqlArgs {
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// Run this statement and end, instead of opening the shell
    #[arg(long, short, value_name = "SQL")]
    pub(crate) command: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SnapshotsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SnapshotsCommand>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum SnapshotsCommand {
    /// List them with their size (what `whyso snapshots` alone does)
    List,
    /// Remove one, or all
    Remove {
        /// Name as `whyso snapshots list` prints it, or "all"
        name: String,
    },
}

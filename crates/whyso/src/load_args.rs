//! What was typed after `whyso load`. Syntax only.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::http_args::HttpConnectionArgs;
use crate::run_args::{DataArgs, DriveArgs, ServerArgs, WorkloadArgs};

#[derive(Args, Debug)]
pub(crate) struct LoadArgs {
    /// The workload, named as sysbench names it, or a file of SQL; two are run side by side. With --url, a scenario of pages
    ///
    /// [default: oltp-read-write]
    #[arg(value_name = "WORKLOAD|FILE.sql|FILE.toml", conflicts_with = "query")]
    pub(crate) workload: Vec<String>,

    /// Load with this single statement
    #[arg(long, value_name = "SQL")]
    pub(crate) query: Option<String>,

    /// Run this statement side by side with the one of --query
    #[arg(long, value_name = "SQL", requires = "query")]
    pub(crate) versus: Option<String>,

    /// Print what the workload sends, and exit
    #[arg(long)]
    pub(crate) describe: bool,

    /// Cluster to load, as `whyso server cluster list` names it: each node that takes changes is an endpoint
    #[arg(long, value_name = "NAME", help_heading = "Server", conflicts_with_all = ["dsn", "server", "defaults_file", "server_cpus"])]
    pub(crate) cluster: Option<String>,

    #[command(flatten)]
    pub(crate) http: HttpArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    pub(crate) levels: LoadLevelArgs,

    #[command(flatten)]
    pub(crate) drive: DriveArgs,

    #[command(flatten)]
    pub(crate) connections: ConnectionArgs,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) options: WorkloadArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Options that say nothing of a load over HTTP.
const ONLY_FOR_SQL: [&str; 34] = [
    "dsn",
    "cluster",
    "server",
    "set",
    "defaults_file",
    "server_cpus",
    "server_memory",
    "server_preload",
    "server_dir",
    "allow_writes",
    "query",
    "versus",
    "describe",
    "rounds",
    "compress",
    "placement",
    "idle_connections",
    "tables",
    "rows",
    "table_engine",
    "option",
    "range_size",
    "point_selects",
    "simple_ranges",
    "sum_ranges",
    "order_ranges",
    "distinct_ranges",
    "index_updates",
    "non_index_updates",
    "delete_inserts",
    "skip_trx",
    "rand_type",
    "rand_zipfian_exp",
    "rand_pareto_h",
];

#[derive(Args, Debug)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct HttpArgs {
    /// Load a site over HTTP instead of a database: its address, such as http://127.0.0.1:8080/
    ///
    /// A scenario (FILE.toml) has the site's pages, and without one the address is the page. Only this site is asked: redirects to
    /// another one are counted as errors.
    #[arg(long, value_name = "URL", conflicts_with_all = ONLY_FOR_SQL)]
    pub(crate) url: Option<String>,

    #[command(flatten)]
    pub(crate) connection: HttpConnectionArgs,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Levels")]
pub(crate) struct LoadLevelArgs {
    /// Users at each level, in order. In an open loop one number: the most transactions under way at once [default: 1,
    /// in an open loop 128]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    pub(crate) users: Vec<u32>,

    /// Open loop: transactions due per second, at each level in order
    ///
    /// Response times count from when a transaction was due, whether or not a user was free to begin it.
    #[arg(long, value_name = "R,R,…", value_delimiter = ',')]
    pub(crate) rate: Vec<f64>,

    /// One level that changes, such as "ramp 0..64 30s, hold 60s, step 128 30s, spike 500 5s"
    ///
    /// Numbers are users at work. Written as 500/s, they are transactions due per second. These parts
    /// follow each other: ramp A..B TIME, ramp B TIME, step B TIME, hold TIME and spike B TIME. A spike ends where it began.
    #[arg(long, value_name = "STAGES", conflicts_with_all = ["seconds", "warmup"])]
    pub(crate) stages: Option<String>,

    /// Length of each level's measured window, such as 10s or 2m; a bare number is seconds [default: 10; 3 per round of two workloads]
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds)]
    pub(crate) seconds: Option<f64>,

    /// Bound on each level's warm-up; it ends earlier when throughput is steady [default: 10]
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds)]
    pub(crate) warmup: Option<f64>,

    /// End each level after N transactions; there is no warm-up then, and only --seconds bounds the time
    #[arg(long, value_name = "N")]
    pub(crate) transactions: Option<u64>,

    /// Search for the highest rate that meets the service level of --slo
    #[arg(long)]
    pub(crate) find_capacity: bool,

    /// Rounds of two workloads side by side
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) rounds: u32,

    /// Seed of everything that is random: the same seed sends the same transactions
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionArgs {
    /// Which connection goes to which of several --dsn [default: weighted where a DSN has weight=N, else round-robin]
    #[arg(long, value_enum, value_name = "PLACEMENT")]
    pub(crate) placement: Option<PlacementArg>,

    /// Connections that all users share [default: one per user]
    #[arg(long, value_name = "N")]
    pub(crate) connections: Option<u32>,

    /// Connections that are opened in addition to those in use, and stay idle
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) idle_connections: u32,

    /// Compress what is sent and received, by the protocol's zlib compression
    #[arg(long)]
    pub(crate) compress: bool,

    /// Close each connection after N transactions, and open it again
    #[arg(long, value_name = "N")]
    pub(crate) reconnect_every: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PlacementArg {
    /// In turn
    RoundRobin,
    /// In turn, in proportion to the weights
    Weighted,
    /// User u stays at endpoint u modulo their number
    Pinned,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Percentiles of response time that are shown
    #[arg(long, value_name = "P,P,…", value_delimiter = ',', default_value = "95,99")]
    pub(crate) percentiles: Vec<f64>,

    /// Print a line every N seconds while a level runs
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) interval: Option<u32>,

    /// Write what was done in each second, one line per kind of statement
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Write the response times of each second in HdrHistogram's log format, one tag per kind of statement
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr_log: Option<PathBuf>,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

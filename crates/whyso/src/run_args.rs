//! What `run` takes, and what it shares with `load`. Syntax only.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whyso_explain::slo::Requirement;
use whyso_load::{EngineKind, SchedulingPolicy};
use whyso_server::cluster::ClusterKind;

use crate::addon::OthersArgs;
use crate::http_args::HttpConnectionArgs;
use crate::pfs_args::PfsSetupArgs;
use crate::recording_args::{RecordingArgs, RecordingOutputArgs};

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The workload, named as sysbench names it, such as oltp-read-write or oltp-point-select, or a file of SQL. With --url, a scenario of
    /// pages
    ///
    /// [default: oltp-read-write]
    #[arg(value_name = "WORKLOAD|FILE.sql|FILE.toml")]
    pub(crate) workload: Option<String>,

    /// Print what the workload sends, and exit
    #[arg(long)]
    pub(crate) describe: bool,

    /// Cluster to load, as `whyso server cluster list` names it: the load goes to its first node, and every node is watched
    #[arg(long, value_name = "NAME", help_heading = "Server", conflicts_with_all = ["dsn", "server", "defaults_file", "server_cpus"])]
    pub(crate) cluster: Option<String>,

    /// Spread the load of --cluster over every node that takes changes, and trace them all
    #[arg(long, requires = "cluster", help_heading = "Server")]
    pub(crate) all_nodes: bool,

    #[command(flatten)]
    pub(crate) http: RunHttpArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    #[command(flatten)]
    pub(crate) levels: LevelArgs,

    #[command(flatten)]
    pub(crate) drive: DriveArgs,

    /// Open loop: transactions due per second, with --users as the most under way at once (128); several rates are one level
    /// each
    #[arg(long, value_name = "R,R,…", value_delimiter = ',', help_heading = "How it is driven")]
    pub(crate) rate: Vec<f64>,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) options: WorkloadArgs,

    #[command(flatten)]
    pub(crate) others: OthersArgs,

    /// Hosts whose agents record with this one: a TOML file (docs/reference/lab-file.md)
    #[arg(long, value_name = "LAB.toml")]
    pub(crate) hosts: Option<std::path::PathBuf>,

    #[command(flatten)]
    pub(crate) pfs: PfsSetupArgs,

    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: RecordingOutputArgs,
}

/// Options that say nothing of a load over HTTP.
const ONLY_FOR_SQL: [&str; 31] = [
    "cluster",
    "all_nodes",
    "server",
    "set",
    "defaults_file",
    "server_cpus",
    "server_memory",
    "server_preload",
    "server_dir",
    "allow_writes",
    "describe",
    "at",
    "cold",
    "no_repeat",
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
pub(crate) struct RunHttpArgs {
    /// Load a site over HTTP instead of a database: its address, such as http://127.0.0.1:8080/
    ///
    /// A scenario (FILE.toml) has the site's pages, and without one the address is the page. Recorded are this machine, and what --process
    /// and --dsn name. The users begin one after the other during --warmup, which lasts to its end. Only this site is asked.
    #[arg(long, value_name = "URL", conflicts_with_all = ONLY_FOR_SQL)]
    pub(crate) url: Option<String>,

    /// Processes to record during the load, with all that they start, as of `whyso record`; may be given more than once
    #[arg(long, value_name = "NAME|PID", requires = "url")]
    pub(crate) process: Vec<String>,

    /// Let the users end one after the other for this long after the measured window [default: 0]
    #[arg(long, value_name = "TIME", requires = "url", value_parser = crate::values::seconds)]
    pub(crate) ramp_down: Option<f64>,

    #[command(flatten)]
    pub(crate) connection: HttpConnectionArgs,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerArgs {
    /// Server to load: mysql://user@host:3306/schema or mysql://user@localhost/schema?socket=/path
    ///
    /// Without it whyso starts a throw-away server. The password comes from the DSN, MYSQL_PWD, ~/.my.cnf or a prompt,
    /// in this order. `whyso run` and `whyso load` take several, which share the load. For `whyso load` the parameter
    /// weight=N is a server's share of the connections [default: 1].
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

    /// Your own my.cnf for the throw-away server
    #[arg(long, value_name = "FILE", conflicts_with = "dsn")]
    pub(crate) defaults_file: Option<PathBuf>,

    /// CPUs of the throw-away server: a list such as 0-3,8, or a description such as "1 socket", "no HT", "4 cores"
    #[arg(long, value_name = "CPUS", conflicts_with = "dsn")]
    pub(crate) server_cpus: Option<String>,

    /// Bound on the throw-away server's memory, the page cache of its files included, such as 512M
    #[arg(long, value_name = "SIZE", value_parser = whyso_model::parse_size, conflicts_with = "dsn")]
    pub(crate) server_memory: Option<u64>,

    /// A library that the throw-away server loads before its own, such as another allocator: libjemalloc.so.2
    #[arg(long, value_name = "LIBRARY", conflicts_with = "dsn")]
    pub(crate) server_preload: Option<PathBuf>,

    /// CPUs of the load generator, in the same form
    #[arg(long, value_name = "CPUS")]
    pub(crate) client_cpus: Option<String>,

    /// Folder in which the throw-away server's own folder is created; findings about the disk need a real disk there
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

    /// Length of each level's measured window, such as 10s or 2m; a bare number is seconds
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = crate::values::seconds)]
    pub(crate) seconds: f64,

    /// Bound on each level's warm-up; it ends earlier when throughput is steady
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = crate::values::seconds)]
    pub(crate) warmup: f64,

    /// Change something during a run: at this many seconds of measuring (5, 5s, 2m), do this
    ///
    /// The action is SQL, the word "restart" for the throw-away server, or a command for the shell after a "!". A SET
    /// GLOBAL is put back at the end. May be given more than once.
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

    /// Have an event loop wait until N receives have completed, for up to TIME [default of TIME: 100us]
    ///
    /// This saves wake-ups, and answers wait for others. Only io_uring has it. By default, a loop continues with the first.
    #[arg(long, value_name = "N[,TIME]")]
    pub(crate) min_complete: Option<String>,

    /// Have an event loop poll for this long before it sleeps, such as 50us: it uses a CPU for a shorter wait
    #[arg(long, value_name = "TIME")]
    pub(crate) busy_poll: Option<String>,

    /// Scheduling policy of the load's threads: batch, idle, fifo or rr [default: as whyso was started]
    #[arg(long, value_name = "POLICY")]
    pub(crate) scheduling_policy: Option<SchedulingPolicy>,

    /// Pause between a user's transactions: 10ms, or exp:10ms for pauses that vary around this mean
    #[arg(long, value_name = "TIME")]
    pub(crate) think: Option<String>,

    /// How arrivals of an open loop are spaced: poisson (independent of each other) or uniform (evenly)
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

    /// Storage engine of the tables, also of those that a workload brings along [default: InnoDB; on a cluster of ndb, ndbcluster]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) table_engine: Option<String>,
}

impl DataArgs {
    /// `kind`: of the cluster that is loaded.
    pub(crate) fn engine(&self, kind: Option<ClusterKind>) -> String {
        let usual = if kind == Some(ClusterKind::Ndb) { "ndbcluster" } else { "InnoDB" };
        self.table_engine.clone().unwrap_or_else(|| usual.to_string())
    }
}

/// Options of the workload itself; names and defaults are sysbench's.
#[derive(Args, Debug)]
#[command(next_help_heading = "Workload options, as sysbench names them")]
pub(crate) struct WorkloadArgs {
    /// Any option of the workload as NAME=VALUE, such as range-size=50; may be given more than once
    ///
    /// The common options have their own flags.
    #[arg(long = "option", short = 'O', short_alias = 'o', value_name = "NAME=VALUE")]
    pub(crate) option: Vec<String>,
    /// Rows of a range [default: 100]
    #[arg(long, value_name = "N")]
    pub(crate) range_size: Option<String>,
    /// Point selects per transaction [default: 10]
    #[arg(long, value_name = "N")]
    pub(crate) point_selects: Option<String>,
    /// Simple range selects per transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) simple_ranges: Option<String>,
    /// SUM() range selects per transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) sum_ranges: Option<String>,
    /// ORDER BY range selects per transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) order_ranges: Option<String>,
    /// DISTINCT range selects per transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) distinct_ranges: Option<String>,
    /// Updates of the indexed column per transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) index_updates: Option<String>,
    /// Updates of a column without index per transaction [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) non_index_updates: Option<String>,
    /// Deletes followed by an insert of the same row, per transaction [default: 1]
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
    /// Returns the options of the command line, as (name with dashes, value).
    pub(crate) fn named_options(&self) -> Vec<(String, String)> {
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
        let mut options = Vec::new();
        for (name, value) in flags {
            if let Some(value) = value {
                options.push((name.to_string(), value.clone()));
            }
        }
        options
    }
}

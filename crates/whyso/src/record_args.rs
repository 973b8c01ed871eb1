//! What was typed after `whyso record`. Syntax only.

use clap::Args;

use crate::addon::OthersArgs;
use crate::pfs_args::PfsSetupArgs;
use crate::recording_args::{RecordingArgs, RecordingOutputArgs};
use crate::values::{Length, Size};

#[derive(Args, Debug)]
pub(crate) struct RecordArgs {
    /// Server to watch: mysql://user@host:3306/ or mysql://user@localhost/?socket=/path
    /// [default: that of the configuration, else this machine's, as ~/.my.cnf names it]; up to four are recorded together
    #[arg(long, value_name = "DSN")]
    pub(crate) dsn: Vec<String>,

    /// A server in a container of this machine, by the container's name, id or image; a single --dsn gives user and schema of all.
    /// Several are recorded together
    #[arg(long, value_name = "NAME")]
    pub(crate) container: Vec<String>,

    /// Cluster to record, as `whyso server cluster list` names it: its first node is traced and explained, and every node is watched
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dsn", "container"])]
    pub(crate) cluster: Option<String>,

    /// Processes of any kind to watch, with all that they start: in place of a server, or together with those of --dsn. A number, or a name as
    /// `ps -e` shows it: that is every process of that name, also those that begin later. container:NAME is all of a container's; a whole name
    /// can also be that of threads of the kernel's, such as nfsd. Up to four more programs are recorded together
    #[arg(long, value_name = "NAME|PID")]
    pub(crate) process: Vec<String>,

    /// This machine only, without a server: its counters, and the functions of all its programs
    #[arg(long, conflicts_with_all = ["dsn", "container", "cluster", "process", "hosts"])]
    pub(crate) machine: bool,

    /// Hosts whose agents record with this one: a TOML file (docs/reference/lab-file.md)
    #[arg(long, value_name = "LAB.toml", conflicts_with_all = ["dsn", "container", "cluster", "process"])]
    pub(crate) hosts: Option<std::path::PathBuf>,

    /// How long to record, such as 60s or 5m [default: until the command ends, or until Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) length: Option<Length>,

    /// Begin and end windows by Enter or by SIGUSR1, such as after a warm-up
    #[arg(long)]
    pub(crate) toggle: bool,

    #[command(flatten)]
    pub(crate) recording: RecordingArgs,

    #[command(flatten)]
    pub(crate) others: OthersArgs,

    #[command(flatten)]
    pub(crate) pfs: PfsSetupArgs,

    /// Size of the recording, such as 20GiB, beyond which its oldest detail is removed and roll-ups of 10 seconds stay; from 100MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk_max: Option<Size>,

    #[command(flatten)]
    pub(crate) output: RecordingOutputArgs,

    /// A command that loads the server, with all that it starts: its time is recorded
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

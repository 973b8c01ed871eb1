//! What was typed of the Performance Schema's setup. Syntax only.

use anyhow::{Result, bail};
use clap::Args;
use whyso_control::Error;
use whyso_server::knobs::pfs::{PfsRequest, Preset, Timing, parse_object};

#[derive(Args, Debug)]
#[command(next_help_heading = "Performance Schema")]
pub(crate) struct PfsSetupArgs {
    /// What the Performance Schema is to count: none, default, tables, statements, synch, global or thread; or a server without it:
    /// not-started, compiled-out
    ///
    /// A server that whyso starts is started for it. On a server reached by --dsn its setup tables are changed, and put
    /// back at the end. Buffer sizes are set only when a server starts: --set performance_schema_digests_size=20000.
    #[arg(long, value_name = "PRESET")]
    pub(crate) pfs: Option<Preset>,

    /// Whether it times what it counts: yes, no, or all by the CPU's cycle counter [default: as the preset has it]
    #[arg(long, value_name = "yes|no|cycles", requires = "pfs")]
    pub(crate) pfs_timing: Option<Timing>,

    /// Count what threads of this user do alone; may be given more than once
    #[arg(long, value_name = "USER", requires = "pfs")]
    pub(crate) pfs_user: Vec<String>,

    /// Count what threads from this host do alone; may be given more than once
    #[arg(long, value_name = "HOST", requires = "pfs")]
    pub(crate) pfs_host: Vec<String>,

    /// Of waits for tables, count those for this one alone, or for all of a schema; may be given more than once
    #[arg(long, value_name = "SCHEMA[.TABLE]", requires = "pfs", value_parser = parse_object)]
    pub(crate) pfs_object: Vec<(String, String)>,

    /// Print the start options and the SQL of --pfs, and end; nothing is changed
    #[arg(long, requires = "pfs")]
    pub(crate) dry_run: bool,
}

impl PfsSetupArgs {
    /// Returns the setup that was asked for. `None`: nothing changes.
    pub(crate) fn setup(&self) -> Result<Option<PfsRequest>> {
        let Some(preset) = self.pfs else { return Ok(None) };
        let wanted = PfsRequest {
            preset,
            timing: self.pfs_timing,
            users: self.pfs_user.clone(),
            hosts: self.pfs_host.clone(),
            objects: self.pfs_object.clone(),
        };
        match wanted.check() {
            Ok(()) => Ok(Some(wanted)),
            Err(error) => bail!(Error::Server(error)),
        }
    }
}

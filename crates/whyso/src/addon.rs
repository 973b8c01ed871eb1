//! `whyso add-on`, and what `run` and `record` share of add-ons and of samples that go to others.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use whyso_control::{Error, RelayTargets};
use whyso_record::data::{Kind, Value};
use whyso_watch::{AccessLog, AddOn};

/// The user's own sources, and where samples go in addition to the recording.
#[derive(Args, Debug)]
#[command(next_help_heading = "In addition to the recording")]
pub(crate) struct OthersArgs {
    /// A source of your own: a TOML file (docs/reference/add-on-file.md), or the name of one of `whyso add-on list`; may be given more than once
    #[arg(long, value_name = "FILE.toml|NAME")]
    pub(crate) add_on: Vec<String>,

    /// Access log of a web server on this machine, followed as it grows (docs/how-to/access-logs.md); may be given up to four times
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Vec<PathBuf>,

    /// Format of these logs: a name such as combined, Apache's LogFormat or nginx's log_format itself [default: guessed by their lines]
    #[arg(long, value_name = "FORMAT", requires = "access_log")]
    pub(crate) log_format: Option<String>,

    /// Serve the latest value of every series as OpenMetrics at http://ADDRESS/metrics, such as 127.0.0.1:9104
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) openmetrics: Option<String>,

    /// Send every sample by Graphite's plain protocol
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) graphite: Option<String>,

    /// Prefix of Graphite's paths
    #[arg(long, value_name = "PREFIX", default_value = "whyso", requires = "graphite")]
    pub(crate) graphite_prefix: String,
}

impl OthersArgs {
    pub(crate) fn add_ons(&self) -> Result<Vec<AddOn>> {
        find_all(&self.add_on)
    }

    /// Returns the access logs that are followed.
    ///
    /// # Errors
    /// There are too many, one is named twice or can't be read, or the format can't be compiled.
    pub(crate) fn access_logs(&self) -> Result<Vec<AccessLog>> {
        crate::access_log::followed(&self.access_log, self.log_format.as_deref())
    }

    /// Returns where samples go. Warns on standard error if other machines can read them.
    pub(crate) fn relay(&self) -> RelayTargets {
        let wanted = RelayTargets {
            openmetrics: self.openmetrics.clone(),
            graphite: self.graphite.clone(),
            graphite_prefix: self.graphite_prefix.clone(),
        };
        if let Some(warning) = wanted.warning() {
            print_stderr!("whyso: {warning}");
        }
        wanted
    }
}

/// Returns the add-ons of these files and names.
///
/// # Errors
/// One can't be read, or two have one name.
pub(crate) fn find_all(named: &[String]) -> Result<Vec<AddOn>> {
    let mut found: Vec<AddOn> = Vec::new();
    for asked in named {
        let addon = AddOn::find(asked).map_err(Error::AddOn)?;
        if found.iter().any(|before| before.name == addon.name) {
            return Err(Error::Plan(format!("two add-ons are named {}: rename one", addon.name)).into());
        }
        found.push(addon);
    }
    Ok(found)
}

#[derive(Args, Debug)]
pub(crate) struct AddOnArgs {
    #[command(subcommand)]
    pub(crate) command: AddOnCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum AddOnCommand {
    /// List the add-ons that ship with whyso
    List,
    /// Read an add-on once, and print what it would record
    Check {
        /// Its file, or the name of an add-on that ships
        add_on: String,
        /// Server that its statement asks, or that its program connects to
        #[arg(long, value_name = "DSN")]
        dsn: Option<String>,
    },
}

pub(crate) fn run(args: &AddOnArgs) -> Result<ExitCode> {
    let mut out = crate::out::stdout();
    match &args.command {
        AddOnCommand::List => {
            for (name, title) in whyso_watch::shipped_add_ons() {
                writeln!(out, "{name:22} {title}")?;
            }
        }
        AddOnCommand::Check { add_on, dsn } => {
            let addon = AddOn::find(add_on).map_err(Error::AddOn)?;
            let server = dsn.as_deref().map(whyso_server::Dsn::resolve).transpose()?.map(|dsn| dsn.opts());
            let (values, not_measured) = whyso_watch::check_add_on(&addon, server).map_err(Error::AddOn)?;
            writeln!(out, "{}: {}", addon.source(), addon.title)?;
            for checked in values {
                let kind = if checked.kind == Kind::Counter { "counter" } else { "gauge" };
                let value = match checked.value {
                    Value::Int(value) => value.to_string(),
                    Value::Float(value) => value.to_string(),
                };
                let (metric, instance, unit) = (checked.metric, checked.instance, checked.unit);
                writeln!(out, "{metric:24} {instance:20} {value:>20} {unit:10} {kind}")?;
            }
            for line in not_measured {
                writeln!(out, "not measured: {line}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

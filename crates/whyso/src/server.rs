//! `whyso server`: the builds that are available, and servers that are started to stay.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use whyso_control::{Error, parse_knob};
use whyso_server::builds::{self, ListedBuild, Manifest, Progress};
use whyso_server::throwaway::{self, KeptServer, StopOutcome};
use whyso_server::{StartSpec, ThrowAway};

use crate::app::AppCommand;
use crate::cluster::ClusterCommand;
use crate::user::ask_password;

/// Name of a server that was started without one.
const OWN: &str = "own";
/// Room for the connections of whatever will use a server that stays.
const CONNECTIONS: u32 = 2000;

#[derive(Args, Debug)]
pub(crate) struct BuildsArgs {
    #[command(subcommand)]
    command: Option<BuildsCommand>,
}

#[derive(Subcommand, Debug)]
enum BuildsCommand {
    /// List the builds that can be fetched, those that are available, and the servers that were started; the default
    List {
        /// Print one JSON object on standard output, and nothing else there
        #[arg(long)]
        json: bool,
    },
    /// Show what a build supports, and the default values of its settings
    Show {
        /// Name of a build, or folder of an unpacked one; "" is the server on the PATH
        #[arg(default_value = "")]
        build: String,
        /// Part of the names of settings
        #[arg(default_value = "")]
        part: String,
        /// Print one JSON object on standard output, and nothing else there
        #[arg(long)]
        json: bool,
    },
    /// Download a build, through this machine's own Maven or apt, into ~/.cache/whyso/servers
    Fetch {
        /// Name as `whyso server list` prints it; several are fetched one after the other
        #[arg(required = true)]
        name: Vec<String>,
    },
    /// Give the folder of an unpacked server a name, to be used with --server
    Add { name: String, folder: PathBuf },
    /// Forget a build, and remove what was fetched of it; an added folder itself stays
    #[command(name = "rm", alias = "remove")]
    Remove { name: String },
    /// Start a server with its own empty data directory, which stays until `whyso server stop`
    Start {
        /// Name of a build, or folder of an unpacked one [default: the server on the PATH]
        build: Option<PathBuf>,
        /// Its name [default: the build's name]
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
        /// Setting of the server; may be given more than once
        #[arg(long = "set", value_name = "KNOB=VALUE")]
        set: Vec<String>,
    },
    /// Start several servers that belong together, which stay until they are stopped
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Start the sample application: a calendar in PHP on MariaDB, behind Apache, with troubles to find
    #[command(subcommand)]
    App(AppCommand),
    /// Put back the settings of a server that a run changed and did not put back, because it was ended by force
    Undo {
        /// The server: mysql://user@host:3306/ or mysql://user@localhost/?socket=/path
        #[arg(long, value_name = "DSN")]
        dsn: String,
    },
    /// Stop a server that was started to stay, and remove its data
    Stop {
        /// Its name; required if there are several
        name: Option<String>,
    },
}

pub(crate) fn run(args: BuildsArgs) -> Result<ExitCode> {
    match args.command.unwrap_or(BuildsCommand::List { json: false }) {
        BuildsCommand::List { json } => list(json)?,
        BuildsCommand::Show { build, part, json } => {
            let build = (!build.is_empty()).then(|| Path::new(&build));
            return crate::server_show::show(build, &part, json);
        }
        BuildsCommand::Fetch { name } => {
            for name in name {
                fetch(&name)?;
            }
        }
        BuildsCommand::Add { name, folder } => {
            let manifest = builds::add(&name, &folder).map_err(Error::Server)?;
            writeln!(
                crate::out::stdout(),
                "{name}: {} {}, {}",
                manifest.flavor,
                manifest.version,
                manifest.symbols
            )?;
        }
        BuildsCommand::Remove { name } => {
            let removed = builds::remove(&name).map_err(Error::Server)?;
            writeln!(
                crate::out::stdout(),
                "{}",
                if removed { format!("removed {name}") } else { format!("{name} was not here") }
            )?;
        }
        BuildsCommand::Start { build, name, set } => start(build, name, &set)?,
        BuildsCommand::Cluster(command) => crate::cluster::run(command)?,
        BuildsCommand::App(command) => crate::app::run(command)?,
        BuildsCommand::Undo { dsn } => undo(dsn)?,
        BuildsCommand::Stop { name } => stop(name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool) -> Result<()> {
    let listed = builds::list().map_err(Error::Server)?;
    let servers = throwaway::kept_servers().map_err(Error::Server)?;
    let mut out = crate::out::stdout();
    if json {
        let builds: Vec<_> = listed.iter().map(build_object).collect();
        let started: Vec<_> = servers
            .iter()
            .map(|server| {
                serde_json::json!({"name": server.name, "server": server.server, "dsn": server.dsn().display_masked(), "pid": server.pid})
            })
            .collect();
        let object = serde_json::json!({"builds": builds, "started": started});
        crate::json::write(&mut out, "builds", object)?;
        return Ok(());
    }
    writeln!(out, "{:16} {:34} {:8} FROM", "NAME", "VERSION", "SYMBOLS")?;
    for build in &listed {
        writeln!(out, "{}", build_line(build))?;
    }
    for server in &servers {
        writeln!(out, "{}", kept_line(server))?;
    }
    Ok(())
}

fn build_line(build: &ListedBuild) -> String {
    let (version, symbols, from) = match (&build.local, build.source) {
        (Some(Ok(manifest)), _) => (
            format!("{} {}", manifest.flavor, manifest.version),
            manifest.symbols.to_string(),
            manifest.from.clone(),
        ),
        (Some(Err(why)), _) => ("can't be read".to_string(), String::new(), why.to_string()),
        (None, Some(source)) => (
            source.version.to_string(),
            String::new(),
            format!(
                "{}; for {} (not here: whyso server fetch {})",
                source.source.words(),
                source.good_for,
                source.name
            ),
        ),
        (None, None) => (String::new(), String::new(), String::new()),
    };
    format!("{:16} {version:34} {symbols:8} {from}", build.name)
}

fn kept_line(server: &KeptServer) -> String {
    match server.pid {
        Some(pid) => {
            format!(
                "started: {} ({}, process {pid}): --dsn '{}'",
                server.name,
                server.server,
                server.dsn().display_masked()
            )
        }
        None => format!(
            "ended by itself: {} ({}): `whyso server stop {}` removes its data",
            server.name, server.server, server.name
        ),
    }
}

fn build_object(build: &ListedBuild) -> serde_json::Value {
    let manifest: Option<&Manifest> = build.local.as_ref().and_then(|read| read.as_ref().ok());
    serde_json::json!({
        "name": build.name,
        "at_hand": manifest.is_some(),
        "version": manifest.map_or_else(|| build.source.map_or("", |source| source.version).to_string(), |found| found.version.clone()),
        "flavor": manifest.map(|found| found.flavor.to_string()),
        "from": manifest.map_or_else(|| build.source.map(|source| source.source.words()).unwrap_or_default(), |found| found.from.clone()),
        "symbols": manifest.map(|found| found.symbols),
        "tree": manifest.map(|found| found.tree.clone()),
        "program": manifest.map(|found| found.program.clone()),
        "checked": manifest.map(|found| found.checked.clone()),
    })
}

fn fetch(name: &str) -> Result<()> {
    let on_terminal = std::io::stderr().is_terminal();
    let target =
        if on_terminal { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target);
    let last_printed = std::cell::Cell::new(String::new());
    let hear = |progress: Progress<'_>| {
        let template = if progress.total_bytes > 0 {
            "  {msg:36} {bar:30} {bytes} of {total_bytes}, {eta} left"
        } else {
            "  {spinner} {msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸ "));
        }
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.done_bytes.min(progress.total_bytes));
        bar.set_message(format!("{name}: {}", progress.step));
        let last_step = last_printed.take();
        if !on_terminal && last_step != progress.step {
            print_stderr!("whyso: {name}: {}", progress.step);
        }
        last_printed.set(progress.step.to_string());
    };
    let fetched = builds::fetch(name, &hear);
    bar.finish_and_clear();
    let manifest = fetched.map_err(Error::Server)?;
    writeln!(
        crate::out::stdout(),
        "{name}: {} {}, {}, in {}",
        manifest.flavor,
        manifest.version,
        manifest.symbols,
        manifest.tree.display()
    )?;
    Ok(())
}

fn start(build: Option<PathBuf>, name: Option<String>, set: &[String]) -> Result<()> {
    let name = name.unwrap_or_else(|| match build.as_deref().and_then(std::path::Path::file_name) {
        Some(last) => last.to_string_lossy().into_owned(),
        None => OWN.to_string(),
    });
    let mut spec = StartSpec::new(whyso_server::find(build.as_deref()).map_err(Error::Server)?);
    for knob in set {
        spec.set.push(parse_knob(knob)?);
    }
    spec.connections = CONNECTIONS;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = runtime.block_on(ThrowAway::start_kept(spec, &name)).map_err(Error::Server)?;
    writeln!(crate::out::stdout(), "{}", kept_line(&server))?;
    Ok(())
}

fn undo(dsn: String) -> Result<()> {
    let undone = whyso_control::undo(&dsn, &ask_password)?;
    if undone.is_empty() {
        writeln!(crate::out::stdout(), "nothing is left to be put back on this server")?;
    }
    for line in undone {
        writeln!(crate::out::stdout(), "{line}")?;
    }
    Ok(())
}

fn stop(name: Option<String>) -> Result<()> {
    let name = match name {
        Some(name) => name,
        None => {
            let servers = throwaway::kept_servers().map_err(Error::Server)?;
            match &servers[..] {
                [only] => only.name.clone(),
                [] => {
                    writeln!(crate::out::stdout(), "no server was started to stay")?;
                    return Ok(());
                }
                several => {
                    let names: Vec<&str> = several.iter().map(|server| server.name.as_str()).collect();
                    anyhow::bail!(Error::Plan(format!(
                        "several servers were started: say which of {}",
                        names.join(", ")
                    )));
                }
            }
        }
    };
    writeln!(
        crate::out::stdout(),
        "{}",
        match throwaway::stop_kept(&name).map_err(Error::Server)? {
            StopOutcome::Now => format!("stopped {name}"),
            StopOutcome::Before => format!("{name} had ended by itself; its data are removed"),
        }
    )?;
    Ok(())
}

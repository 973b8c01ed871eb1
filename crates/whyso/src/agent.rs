//! `whyso agent`: one host of several.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use whyso_agent::{Agent, AgentFolder, Settings};
use whyso_hub::Token;

use crate::config;
use crate::user::{handle_ctrl_c, state_folder};

/// More is no token.
const TOKEN_BYTES_MAX: u64 = 64 << 10;

#[derive(Args, Debug)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    command: AgentCommand,
    /// The agent's folder, with its token and what waits for the hub
    /// [default: whyso/agent in $XDG_STATE_HOME, or in ~/.local/state]
    #[arg(long, value_name = "FOLDER", global = true)]
    folder: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum AgentCommand {
    /// Keep the token that whyso hub invite printed
    Join {
        /// The token, or - to read it from standard input, where no process list shows it
        token: String,
    },
    /// Answer and record until Ctrl-C
    Run {
        /// What the agent may do, and the servers of this host (docs/reference/agent-file.md)
        /// [default: whyso/agent.toml in $XDG_CONFIG_HOME, or in ~/.config]
        #[arg(long, value_name = "FILE.toml")]
        settings: Option<PathBuf>,
    },
}

pub(crate) fn run(args: &AgentArgs) -> Result<ExitCode> {
    let path = match &args.folder {
        Some(folder) => folder.clone(),
        None => state_folder("agent")?,
    };
    let folder = AgentFolder::new(path);
    match &args.command {
        AgentCommand::Join { token } => {
            let line = match token.as_str() {
                "-" => read_token()?,
                line => line.to_string(),
            };
            let token = Token::from_line(&line)?;
            folder.join(&token)?;
            let (name, address) = (&token.name, &token.address);
            writeln!(crate::out::stdout(), "{name} is to join the hub at {address}: start whyso agent run")?;
        }
        AgentCommand::Run { settings } => {
            whyso_control::check_processes()?;
            let path = match settings {
                Some(path) => path.clone(),
                None => {
                    config::folder().context("there is no home folder: give --settings")?.join("agent.toml")
                }
            };
            let agent = Agent::new(folder, Settings::read(&path)?)?;
            let stop = handle_ctrl_c()?;
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            runtime.block_on(agent.run(stop, &|line| print_stderr!("whyso: {line}")))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read_token() -> Result<String> {
    let input = std::io::stdin();
    if input.is_terminal() {
        print_stderr!("whyso: paste the token, then press Ctrl-D");
    }
    let mut line = String::new();
    input.lock().take(TOKEN_BYTES_MAX).read_to_string(&mut line).context("can't read the token")?;
    Ok(line)
}

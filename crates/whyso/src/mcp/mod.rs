//! `whyso mcp`: the recorded runs as tools of an assistant, over standard input and output. Each tool only reads, except for experiments, which
//! the user has to permit.

mod answer;
mod request;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use rmcp::ServiceExt;

#[derive(Args, Debug)]
pub(crate) struct McpArgs {
    /// Folder that holds the recordings; no others are read
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,

    /// Offer ab and prove, too: experiments on servers that whyso starts for them, on this machine
    #[arg(long)]
    allow_experiments: bool,
}

/// Answers until the assistant closes standard input.
pub(crate) fn mcp(args: &McpArgs) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let service = tools::Tools::new(args.runs.clone(), args.allow_experiments)
            .serve(rmcp::transport::stdio())
            .await;
        let service = service.context("no assistant speaks on standard input")?;
        service.waiting().await.context("the assistant's requests can't be read")
    });
    // A read of standard input that can't be ended is not waited for.
    runtime.shutdown_background();
    served.map(|_| ExitCode::SUCCESS)
}

//! What `run` and `load` share in how a site is asked for pages. Syntax only.

use std::path::PathBuf;

use clap::Args;

/// How a site is asked for pages.
#[derive(Args, Debug)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct HttpConnectionArgs {
    /// Open a connection for each request
    #[arg(long, requires = "url")]
    pub(crate) no_keep_alive: bool,

    /// Longest time for one answer; one that takes longer is counted as an error [default: 30]
    #[arg(long, value_name = "TIME", requires = "url", value_parser = crate::values::seconds)]
    pub(crate) timeout: Option<f64>,

    /// Authorities whose certificates are trusted, a PEM file [default: those of this machine]
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,

    /// Trust any certificate
    #[arg(long, requires = "url", conflicts_with = "ca")]
    pub(crate) insecure: bool,
}

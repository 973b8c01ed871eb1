//! Records a server that something else loads, or processes of any kind. Nothing is written to a server, and it needs no
//! schema of ours.

mod across_hosts;
mod edges;
mod level;
mod plan;
mod processes;
mod programs;
mod server;
mod session;
mod site_level;
mod site_load;
mod site_session;
mod successor;
mod toggles;
mod watch;
mod windows;

pub use plan::{RecordPlan, RecordTarget, Taps};
pub use site_load::SiteLoad;
pub use watch::{Show, WatchedServer, watch};

use across_hosts::record_across_hosts;
pub use across_hosts::{ShowHosts, WatchedHosts, watch_hosts};
use processes::{record_machine, record_processes};
use server::with_server;

use crate::login::AskPassword;
use crate::process::check_processes;
use crate::progress::Listener;
use crate::recording::Outcome;
use crate::{Error, Stop};

/// Records until the plan's end. Returns where.
///
/// # Errors
/// The server can't be reached, or the command can't be started. There is no such process, or it may not be watched. Or
/// no window was recorded.
pub fn record(
    plan: &RecordPlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Outcome, Error> {
    plan.check()?;
    check_processes()?;
    if let Some(site) = &plan.load {
        site.reach()?;
    }
    if let Some(hosts) = &plan.hosts {
        return record_across_hosts(plan, hosts, listener, stop);
    }
    match &plan.target {
        RecordTarget::Server(dsn) => {
            with_server(plan, dsn, listener, stop, ask_password, |session, recording| session.run(recording))
        }
        RecordTarget::Processes(name) => record_processes(plan, name, listener, stop),
        RecordTarget::Machine => record_machine(plan, listener, stop),
    }
}

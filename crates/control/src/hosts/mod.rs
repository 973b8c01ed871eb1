//! Other machines that record with this one: their agents are asked by the hub, and what they send goes into one recording.

mod generators;
mod hosts_level;
mod load_host;
mod loaders;
mod recorded;
mod session;

use whyso_hub::{Bus, HostName, HostState, Token};

use crate::Error;
use crate::runtime::runtime;

pub(crate) use generators::Generators;
pub(crate) use hosts_level::HostsLevel;
pub(crate) use loaders::Loaders;
pub(crate) use session::{HostsSession, WhatToRecord};

/// Which hosts record with this one.
#[derive(Clone, Debug)]
pub struct HostsPlan {
    /// The commander's.
    pub token: Token,
    /// Empty: all whose agents are connected.
    pub hosts: Vec<HostPlan>,
}

impl HostsPlan {
    /// Whether other hosts send the load.
    pub(crate) fn has_generators(&self) -> bool {
        self.hosts.iter().any(|host| host.load.is_some())
    }

    /// The host of the run's server.
    pub(crate) fn server_host(&self) -> Option<&HostName> {
        self.hosts.iter().find(|host| host.server.is_some()).map(|host| &host.name)
    }
}

/// A host that records. Its programs are recorded in addition to its machine and its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    pub name: HostName,
    /// The run's server, as the file of the host's agent calls it. One host has it, at most.
    pub server: Option<String>,
    /// Programs that are recorded there, as the file of its agent calls them.
    pub programs: Vec<String>,
    /// The target of the host's part of the load, as the file of its agent calls it. `None`: it sends none.
    pub load: Option<String>,
}

impl HostPlan {
    /// Whether there is more to record than the machine.
    pub(crate) fn has_target(&self) -> bool {
        self.server.is_some() || !self.programs.is_empty()
    }

    /// Whether anything is traced there: programs are measured by the tracer alone.
    pub(crate) fn is_traced(&self, is_wanted: bool) -> bool {
        !self.programs.is_empty() || is_wanted && self.server.is_some()
    }
}

/// The agents that are connected to a hub.
///
/// # Errors
/// The hub can't be reached, or refuses.
pub fn connected_agents(token: &Token) -> Result<Vec<HostState>, Error> {
    let agents = runtime()?.block_on(async { Bus::join(token).await?.agents().await });
    Ok(agents?)
}

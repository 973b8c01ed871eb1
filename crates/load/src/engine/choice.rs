//! Which engine drives a load, and how many loops it has.

use crate::engine::uring;
use crate::engine_kind::EngineKind;
use crate::error::{LoadError, SpecError};
use crate::outcome::EngineUse;
use crate::spec::LoadSpec;
use crate::tuning::{Tuning, TuningError};

/// Up to this many users, threads of their own are the best that was measured (bench/client-cost).
const THREADS_USERS_MAX: u32 = 2;
/// Up to this many users a loop for each CPU is better than one for all, which the next answer finds asleep.
const FEW_USERS: u32 = 4;
/// Users for which one more event loop is worth having where the server has CPUs of its own: elsewhere each takes from it.
const USERS_PER_LOOP: u32 = 64;
const USERS_PER_LOOP_ON_SERVER_MACHINE: u32 = 4096;

pub(crate) struct Choice {
    /// Never [`EngineKind::Auto`].
    pub(crate) kind: EngineKind,
    loops: Option<u32>,
    connections: u32,
    cpus: u32,
    is_on_server_machine: bool,
    why: String,
    tuning: Tuning,
}

/// Chooses by the load's largest level, so that one engine drives all of them.
pub(crate) fn choose(spec: &LoadSpec, connects: bool, cpus: u32) -> Result<Choice, LoadError> {
    let connections = spec.connections.unwrap_or(spec.users_max).min(spec.users_max);
    let shares = connections < spec.users_max;
    let is_on_server_machine =
        spec.endpoints.iter().any(|endpoint| endpoint.target.address.is_this_machine());
    let (kind, why) = match spec.engine {
        EngineKind::Auto if shares => event_loops("users share connections, which event loops alone can do"),
        EngineKind::Auto if spec.loops.is_some() => event_loops("a number of event loops was asked for"),
        EngineKind::Auto if spec.tuning.min_complete.is_some() => {
            io_uring("completions to wait for were asked for, which io_uring alone does")?
        }
        EngineKind::Auto if !spec.tuning.busy_poll.is_zero() => {
            event_loops("busy polling was asked for, which event loops alone do")
        }
        EngineKind::Auto if connects => (
            EngineKind::Threads,
            "its transactions make connections, which each thread does for itself".to_string(),
        ),
        EngineKind::Auto if spec.users_max <= THREADS_USERS_MAX => {
            (EngineKind::Threads, format!("no level has more than {THREADS_USERS_MAX} users"))
        }
        EngineKind::Auto => event_loops(&format!("a level has {} users", spec.users_max)),
        EngineKind::IoUring => io_uring("it was asked for")?,
        other => (other, "it was asked for".to_string()),
    };
    if spec.tuning.min_complete.is_some() && kind != EngineKind::IoUring {
        // Users that share connections fall back to epoll where io_uring is not available.
        return Err(SpecError::Tuning(TuningError::NeedsIoUring).into());
    }
    Ok(Choice { kind, loops: spec.loops, connections, cpus, is_on_server_machine, why, tuning: spec.tuning })
}

fn io_uring(why: &str) -> Result<(EngineKind, String), LoadError> {
    let engine = EngineKind::IoUring;
    uring::try_it().map_err(|source| LoadError::Engine { engine, source })?;
    Ok((engine, why.to_string()))
}

/// io_uring where it is available.
fn event_loops(why: &str) -> (EngineKind, String) {
    match uring::try_it() {
        Ok(()) => (EngineKind::IoUring, why.to_string()),
        Err(error) => (EngineKind::Epoll, format!("{why}, and io_uring can't be had: {error}")),
    }
}

impl Choice {
    /// Event loops, or threads, of a level with this many users.
    pub(crate) fn loops(&self, users: u32, asked: Option<u32>) -> u32 {
        if self.kind == EngineKind::Threads {
            return users;
        }
        let most = users.min(self.connections);
        let each = if self.is_on_server_machine { USERS_PER_LOOP_ON_SERVER_MACHINE } else { USERS_PER_LOOP };
        let best = if users <= FEW_USERS { users } else { users.div_ceil(each) };
        asked.or(self.loops).unwrap_or(best.min(self.cpus)).clamp(1, most)
    }

    pub(crate) fn describe(&self, loops: u32) -> EngineUse {
        EngineUse { kind: self.kind, loops, why: self.why.clone(), tuning: self.tuning }
    }
}

//! The verdict of each level: whether it is valid, and what disturbed it.

use crate::generator::saturated_why;
use crate::in_flight;
use crate::level::Level;
use crate::model::{LevelInput, LoopKind, Machine};
use crate::other_clients::other_clients;

/// Returns a level with its verdict; only its regime is not known yet.
pub(crate) fn judge<'a>(input: &'a LevelInput, machine: &Machine) -> Level<'a> {
    let mut level = Level::new(input);
    level.verdict.cpu = level.cpu;
    if level.seconds > 0.0 {
        level.verdict.server_cpus = level.server_cpu_s.map(|cpu_s| cpu_s / level.seconds);
        level.verdict.client_cpus = level.client_cpu_s / level.seconds;
    }
    level.verdict.stuck = in_flight::stuck(input, level.seconds);
    level.verdict.other_clients = other_clients(&level);
    level.verdict.invalid_why = invalid_why(&level, machine).unwrap_or_default();
    level.verdict.valid = level.verdict.invalid_why.is_empty();
    level
}

/// Why a level shows nothing about the server; `None` where it does.
fn invalid_why(level: &Level, machine: &Machine) -> Option<String> {
    // Of what something else loads, the number of users may not be known.
    if level.users == 0 && level.pacing != LoopKind::Recorded {
        return Some("no users".to_string());
    }
    if level.seconds <= 0.0 {
        return Some("no measured window".to_string());
    }
    if level.transactions == 0 {
        return Some(match level.errors {
            0 => format!("no {} ended within the window", level.unit()),
            _ => "no transaction succeeded within the window".to_string(),
        });
    }
    saturated_why(level, machine)
}

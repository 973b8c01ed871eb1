//! What the Performance Schema is to count: presets of its setup tables, set on request and put back.
//!
//! The server is asked what it has ([`SetupTables`]). What changes follows from that only ([`PfsRequest::changes`]).
//! Each change holds its rows, with the value before and after ([`SetupChange`]). So it can be undone where nobody else
//! has touched the rows since. Nothing is ever emptied.

mod change;
mod names;
mod plan;
mod setup_tables;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

pub use change::SetupChange;
pub use names::Names;
pub use setup_tables::{SetupTables, State};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// A build without it.
    CompiledOut,
    /// Off from the start.
    NotStarted,
    /// Started, with every instrument and every consumer off.
    None,
    /// As the server has it.
    Default,
    /// Accesses to and locks of tables, and files.
    Tables,
    /// Statements, with digests.
    Statements,
    /// As the server has it, and all synchronisation.
    Synch,
    /// Every instrument, summed over the server.
    Global,
    /// Every instrument, by thread as well.
    Thread,
}

impl Preset {
    pub const ALL: [(&str, Preset); 9] = [
        ("compiled-out", Preset::CompiledOut),
        ("not-started", Preset::NotStarted),
        ("none", Preset::None),
        ("default", Preset::Default),
        ("tables", Preset::Tables),
        ("statements", Preset::Statements),
        ("synch", Preset::Synch),
        ("global", Preset::Global),
        ("thread", Preset::Thread),
    ];

    /// Whether it counts anything.
    pub fn counts(self) -> bool {
        !matches!(self, Preset::CompiledOut | Preset::NotStarted | Preset::None)
    }

    /// Whether the Performance Schema is on with it.
    fn is_on(self) -> bool {
        !matches!(self, Preset::CompiledOut | Preset::NotStarted)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Preset::ALL.iter().find(|(_, preset)| preset == self).map_or("", |(name, _)| name);
        out.write_str(name)
    }
}

/// Why an argument of the Performance Schema's setup can't be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PfsArgumentError {
    #[error("there is no preset {text:?}: give one of {names}")]
    Preset { text: String, names: String },
    #[error("{0:?} is no timing: give yes, no or cycles")]
    Timing(String),
    #[error("{0:?} names no table: give SCHEMA.TABLE, or SCHEMA for all of its tables")]
    Object(String),
}

impl FromStr for Preset {
    type Err = PfsArgumentError;

    fn from_str(text: &str) -> std::result::Result<Preset, PfsArgumentError> {
        let found = Preset::ALL.iter().find(|(name, _)| *name == text).map(|(_, preset)| *preset);
        found.ok_or_else(|| {
            let names: Vec<&str> = Preset::ALL.iter().map(|(name, _)| *name).collect();
            PfsArgumentError::Preset { text: text.to_string(), names: names.join(", ") }
        })
    }
}

/// Whether what is counted is timed too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    Yes,
    No,
    /// All of it by the CPU's cycle counter, the cheapest timer.
    Cycles,
}

impl fmt::Display for Timing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Timing::Yes => "timed",
            Timing::No => "not timed",
            Timing::Cycles => "timed by cycles",
        })
    }
}

impl FromStr for Timing {
    type Err = PfsArgumentError;

    fn from_str(text: &str) -> std::result::Result<Timing, PfsArgumentError> {
        match text {
            "yes" => Ok(Timing::Yes),
            "no" => Ok(Timing::No),
            "cycles" => Ok(Timing::Cycles),
            _ => Err(PfsArgumentError::Timing(text.to_string())),
        }
    }
}

/// How the Performance Schema should be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfsRequest {
    pub preset: Preset,
    /// `None`: as the preset has it, which is timed wherever it turns instruments on.
    pub timing: Option<Timing>,
    /// Only threads of these users; empty: of all.
    pub users: Vec<String>,
    /// Only threads from these hosts; empty: from all.
    pub hosts: Vec<String>,
    /// Only these tables, as (schema, table) with "%" for any; empty: all that the server has set up.
    pub objects: Vec<(String, String)>,
}

impl PfsRequest {
    pub fn new(preset: Preset) -> PfsRequest {
        PfsRequest { preset, timing: None, users: Vec::new(), hosts: Vec::new(), objects: Vec::new() }
    }

    /// Checks what can be checked without a server.
    ///
    /// # Errors
    ///
    /// [`Error::PerformanceSchema`].
    pub fn check(&self) -> Result<()> {
        let narrowed = !self.users.is_empty() || !self.hosts.is_empty() || !self.objects.is_empty();
        if !self.preset.counts() && (narrowed || self.timing.is_some()) {
            return Err(Error::PerformanceSchema(format!(
                "--pfs {} counts nothing that could be timed or narrowed down: leave out --pfs-timing, --pfs-user, --pfs-host and \
                 --pfs-object, or give another preset",
                self.preset
            )));
        }
        let named = self.users.iter().chain(&self.hosts);
        let of_objects = self.objects.iter().flat_map(|(schema, table)| [schema, table]);
        if named.chain(of_objects).any(|name| name.is_empty()) {
            return Err(Error::PerformanceSchema(
                "--pfs-user, --pfs-host and --pfs-object need a name; % stands for any".to_string(),
            ));
        }
        Ok(())
    }

    /// Whether the server's start matters to what whyso sets once it runs, so that a restart during a run would lose it.
    pub fn is_lost_at_restart(&self) -> bool {
        let plain = matches!(self.preset, Preset::CompiledOut | Preset::NotStarted | Preset::Default);
        !(plain && *self == PfsRequest::new(self.preset))
    }

    /// Options, (name, value), of a server that is started for this.
    pub fn start_options(&self) -> Vec<(String, String)> {
        let on = if self.preset.is_on() { "ON" } else { "OFF" };
        if self.preset == Preset::CompiledOut {
            return Vec::new();
        }
        let mut options = vec![("performance_schema".to_string(), on.to_string())];
        let how = if self.timing == Some(Timing::No) { "COUNTED" } else { "ON" };
        // Some locks are created at the start, and take up instrumentation then or never.
        let instruments = match self.preset {
            Preset::Synch => format!("wait/synch/%={how}"),
            Preset::Global | Preset::Thread => format!("%={how}"),
            _ => return options,
        };
        options.push(("performance_schema_instrument".to_string(), instruments));
        options
    }

    /// Describes it as text: "global, timed, of user app".
    pub fn words(&self) -> String {
        let mut words = self.preset.to_string();
        if let Some(timing) = self.timing {
            words += &format!(", {timing}");
        }
        let mut list = |what: &str, names: &[String]| {
            if !names.is_empty() {
                words += &format!(", {what} {}", names.join(", "));
            }
        };
        list("of user", &self.users);
        list("from host", &self.hosts);
        let objects: Vec<String> =
            self.objects.iter().map(|(schema, table)| format!("{schema}.{table}")).collect();
        list("of table", &objects);
        words
    }
}

/// Parses a schema and a table: "shop.orders", "shop.%" or "shop" for all of its tables.
///
/// # Errors
///
/// [`PfsArgumentError::Object`] if one of the two is empty.
pub fn parse_object(text: &str) -> std::result::Result<(String, String), PfsArgumentError> {
    let (schema, table) = text.split_once('.').unwrap_or((text, "%"));
    if schema.is_empty() || table.is_empty() {
        return Err(PfsArgumentError::Object(text.to_string()));
    }
    Ok((schema.to_string(), table.to_string()))
}

//! From a recording to the commands of the server's clients, and what following them cost.

use std::collections::HashMap;

use whyso_explain::statements::{CommandSeen, SqlTraceCost};
use whyso_record::Recording;
use whyso_record::data::ClientCommand;
use whyso_record::run::Window;

use crate::Error;
use crate::sql_trace::COMMANDS;

/// Who sent a command, where it was this program.
const OWN: &str = "own";

/// Which commands are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandFilter {
    /// Those of these threads alone; empty: of any.
    pub threads: Vec<u32>,
    /// Those of whyso's own connections, too.
    pub own: bool,
}

/// The commands of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandsIn {
    /// In order of the time at which the server had read them.
    pub commands: Vec<ClientCommand>,
    /// Of the statements, by number.
    pub texts: HashMap<u32, String>,
    /// Commands of whyso's own that were left out.
    pub own_left_out: u64,
    /// Of the whole run.
    pub trace: SqlTraceCost,
}

impl CommandsIn {
    /// As [`whyso_explain::statements::by_statement`] takes them.
    pub fn seen(&self) -> Vec<CommandSeen<'_>> {
        let seen = |one: &'_ ClientCommand| {
            one.times.map(|times| [times.cpu_ns, times.runqueue_ns, times.lock_ns, times.io_ns])
        };
        let commands = self.commands.iter().map(|one| CommandSeen {
            command: &one.command,
            statement: one.statement,
            response_ns: one.response_ns,
            times_ns: seen(one),
        });
        commands.collect()
    }
}

/// What the server's clients asked of it in a window.
///
/// # Errors
/// The run was recorded without that, or its files can't be read.
pub fn commands_in(
    recording: &Recording,
    window: Window,
    filter: &CommandFilter,
) -> Result<CommandsIn, Error> {
    let Some(trace) = cost_in(recording)? else {
        let not_measured = &recording.run().not_measured;
        let because = not_measured.iter().find_map(|line| line.strip_prefix(COMMANDS)?.strip_prefix(": "));
        let why = because.unwrap_or("it was recorded without --trace-sql");
        return Err(Error::Failed(format!("this run holds no commands: {why}")));
    };
    let mut commands = recording.commands(Some(window))?;
    commands.retain(|one| filter.threads.is_empty() || filter.threads.contains(&one.tid));
    let all = commands.len();
    commands.retain(|one| filter.own || one.client != OWN);
    let own_left_out = (all - commands.len()) as u64;
    Ok(CommandsIn { commands, texts: recording.statements()?, own_left_out, trace })
}

/// What following the commands of a run cost, and what was lost of them; `None` where they were not followed.
fn cost_in(recording: &Recording) -> Result<Option<SqlTraceCost>, Error> {
    let last = |metric: &str| -> Result<Vec<(String, f64)>, Error> {
        let mut values = Vec::new();
        for id in recording.find("sql", metric, None) {
            let instance = recording.info(id).map(|info| info.key.instance.clone()).unwrap_or_default();
            let samples = recording.samples(id, None)?;
            values.extend(samples.value.last().map(|value| (instance, *value)));
        }
        Ok(values)
    };
    let one = |metric: &str| Ok::<_, Error>(last(metric)?.first().map(|(_, value)| *value));
    let Some(commands) = one("commands")? else { return Ok(None) };
    let a_command = |ns: f64| if commands > 0.0 { ns / commands } else { 0.0 };
    let programs = last("program_ns")?;
    let lost = last("lost")?.into_iter().filter(|(_, count)| *count > 0.0);
    Ok(Some(SqlTraceCost {
        commands: commands as u64,
        probes_ns: one("probes_ns")?,
        programs_ns_a_command: (!programs.is_empty())
            .then(|| a_command(programs.iter().map(|(_, ns)| ns).sum())),
        reader_ns_a_command: a_command(one("cpu_ns")?.unwrap_or(0.0)),
        lost: lost.map(|(why, count)| (why, count as u64)).collect(),
    }))
}

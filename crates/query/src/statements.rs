//! From a recording to the commands of the server's clients, and what following them cost.

use std::collections::{HashMap, HashSet};

use whyso_explain::statements::{CommandRecord, SqlTraceCost};
use whyso_record::Recording;
use whyso_record::data::ClientCommand;
use whyso_record::run::Window;

use crate::{Error, ThreadFilter};
use whyso_model::{COMMANDS_INTERVAL, Missing};

/// Who sent a command, where it was this program.
const OWN: &str = "own";

/// Which commands are asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandFilter {
    /// Only those of these threads; empty: of any.
    pub threads: Vec<u32>,
    /// Only those of these connections, by the server's numbers; empty: of any.
    pub connections: Vec<u64>,
    /// Only those whose statement contains this text, in any case: without its literals, or as it was sent.
    pub statement: Option<String>,
    /// Those of whyso's own connections, too.
    pub own: bool,
}

impl CommandFilter {
    /// Whether a command is asked for, of any sender. `texts`: of the statements, by number.
    fn asked_of(&self, texts: &HashMap<u32, String>) -> impl Fn(&ClientCommand) -> bool {
        let part = self.statement.as_ref().map(|part| part.to_lowercase());
        let contains = |text: &str, part: &str| text.to_lowercase().contains(part);
        let numbers = part.as_deref().map(|part| -> HashSet<u32> {
            texts.iter().filter(|(_, text)| contains(text, part)).map(|(number, _)| *number).collect()
        });
        move |command| {
            let has_text = || match (&numbers, &part) {
                (Some(numbers), Some(part)) => {
                    command.statement.is_some_and(|number| numbers.contains(&number))
                        || command.text.as_deref().is_some_and(|text| contains(text, part))
                }
                _ => true,
            };
            (self.threads.is_empty() || self.threads.contains(&command.tid))
                && (self.connections.is_empty()
                    || command.connection.is_some_and(|number| self.connections.contains(&u64::from(number))))
                && has_text()
        }
    }

    /// Whether it leaves out commands by more than their sender.
    pub fn is_set(&self) -> bool {
        !self.threads.is_empty() || !self.connections.is_empty() || self.statement.is_some()
    }
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
    pub fn records(&self) -> Vec<CommandRecord<'_>> {
        let times_of = |command: &'_ ClientCommand| {
            command.times.map(|times| [times.cpu_ns, times.runqueue_ns, times.lock_ns, times.io_ns])
        };
        let commands = self.commands.iter().map(|command| CommandRecord {
            command: &command.command,
            statement: command.statement,
            response_ns: command.response_ns,
            times_ns: times_of(command),
            rows: [command.rows_sent, command.rows_examined, command.rows_affected],
            failed: command.error.map(|error| error != 0),
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
    let Some(trace) = sql_trace_cost(recording)? else {
        let not_measured = &recording.run().not_measured;
        let because = not_measured.iter().find(|line| line.source == Missing::Commands);
        let why = because.map_or("it was recorded without --trace-sql", |line| &line.reason);
        return Err(Error::NotRecorded(format!("this run holds no commands: {why}")));
    };
    let mut commands = recording.commands(Some(window))?;
    if !filter.connections.is_empty() && commands.iter().all(|command| command.connection.is_none()) {
        let because = recording.run().not_measured.iter().find(|line| line.source == Missing::Commands);
        let why = because.map_or(String::new(), |line| format!(" ({line})"));
        return Err(Error::NotRecorded(format!(
            "it was not recorded which connection a command was of{why}: leave --connection away"
        )));
    }
    let texts = recording.statements()?;
    commands.retain(filter.asked_of(&texts));
    let all = commands.len();
    commands.retain(|command| filter.own || command.client != OWN);
    let own_left_out = (all - commands.len()) as u64;
    Ok(CommandsIn { commands, texts, own_left_out, trace })
}

/// The threads that began to work in a window on a command of the filter's connections and statements; `None` where that was not followed.
pub(crate) fn threads_at_work(
    recording: &Recording,
    window: Window,
    filter: &ThreadFilter,
) -> Result<Option<HashSet<u32>>, Error> {
    let commands = recording.commands(Some(window))?;
    let has_connections =
        filter.connections.is_empty() || commands.iter().any(|command| command.connection.is_some());
    if commands.is_empty() || !has_connections {
        return Ok(None);
    }
    let wanted = CommandFilter {
        connections: filter.connections.clone(),
        statement: filter.statement.clone(),
        ..CommandFilter::default()
    };
    let texts = recording.statements()?;
    let asked = wanted.asked_of(&texts);
    Ok(Some(commands.iter().filter(|command| asked(command)).map(|command| command.tid).collect()))
}

/// What following the commands of a run cost, and what was lost of them; `None` where they were not followed.
///
/// # Errors
/// Its files can't be read.
pub fn sql_trace_cost(recording: &Recording) -> Result<Option<SqlTraceCost>, Error> {
    let last = |metric: &str| -> Result<Vec<(String, f64)>, Error> {
        let mut values = Vec::new();
        for id in recording.find("sql", metric, None) {
            let instance = recording.info(id).map(|info| info.key.instance.clone()).unwrap_or_default();
            let samples = recording.samples(id, None)?;
            values.extend(samples.value.last().map(|value| (instance, *value)));
        }
        Ok(values)
    };
    let value = |metric: &str| Ok::<_, Error>(last(metric)?.first().map(|(_, value)| *value));
    let Some(commands) = value("commands")? else { return Ok(None) };
    let per_command = |ns: f64| if commands > 0.0 { ns / commands } else { 0.0 };
    let runs: HashMap<String, f64> = last("program_runs")?.into_iter().collect();
    let added_ns = counting_ns(recording)?;
    // Each program runs once per command, and only some of the runs were counted.
    let per_run = |(program, ns): &(String, f64)| {
        let runs = runs.get(program).filter(|runs| **runs > 0.0)?;
        Some((ns / runs - added_ns).max(0.0))
    };
    let programs: Vec<f64> = last("program_ns")?.iter().filter_map(per_run).collect();
    let lost = last("lost")?.into_iter().filter(|(_, count)| *count > 0.0);
    let mut cost = SqlTraceCost {
        commands: commands as u64,
        probes_ns: value("probes_ns")?,
        programs_ns_a_command: (!programs.is_empty()).then(|| programs.iter().sum()),
        reader_ns_a_command: per_command(value("cpu_ns")?.unwrap_or(0.0)),
        cpu_share: 0.0,
        lost: lost.map(|(why, count)| (why, count as u64)).collect(),
    };
    let cpus_ns = followed_ns(recording)? * f64::from(recording.run().host.logical_cpus.max(1));
    cost.cpu_share = cost.ns_a_command() * commands / cpus_ns.max(1.0);
    Ok(Some(cost))
}

/// What counting added to each run of a program that was counted; 0 where that is not known.
fn counting_ns(recording: &Recording) -> Result<f64, Error> {
    let Some(id) = recording.find("trace_cost", "counting_ns", None).into_iter().next() else {
        return Ok(0.0);
    };
    Ok(recording.samples(id, None)?.value.last().copied().unwrap_or_default())
}

/// For how long commands were followed: from a second before the first reading, since each reading is of the second before it.
fn followed_ns(recording: &Recording) -> Result<f64, Error> {
    let Some(id) = recording.find("sql", "commands", None).into_iter().next() else { return Ok(0.0) };
    let times = recording.samples(id, None)?.t_end_ns;
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Ok(0.0) };
    Ok((last - first) as f64 + COMMANDS_INTERVAL.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_chosen_by_thread_connection_and_statement() {
        let command = |tid, connection, statement, text: Option<&str>| ClientCommand {
            tid,
            connection,
            statement,
            text: text.map(Into::into),
            ..ClientCommand::default()
        };
        let commands = [
            command(1, Some(40), Some(0), None),
            command(1, Some(41), Some(1), Some("DELETE FROM t WHERE a = 'Kept'")),
            command(2, None, None, None),
        ];
        let texts = HashMap::from([(0, "SELECT c FROM t".to_string()), (1, "DELETE FROM t".to_string())]);
        let chosen = |filter: CommandFilter| -> Vec<usize> {
            let asked = filter.asked_of(&texts);
            (0..commands.len()).filter(|place| asked(&commands[*place])).collect()
        };
        let none = CommandFilter::default;
        assert_eq!(chosen(none()), [0, 1, 2]);
        assert_eq!(chosen(CommandFilter { threads: vec![1, 3], ..none() }), [0, 1]);
        assert_eq!(chosen(CommandFilter { connections: vec![41], ..none() }), [1]);
        let of = |text: &str| CommandFilter { statement: Some(text.to_string()), ..none() };
        assert_eq!(chosen(of("select C")), [0]);
        assert_eq!(chosen(of("from T")), [0, 1]);
        assert_eq!(chosen(of("kept")), [1], "as it was sent");
        assert_eq!(chosen(CommandFilter { threads: vec![2], ..of("from t") }), [0usize; 0]);
    }
}

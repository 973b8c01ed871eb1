//! Statements and commands as JSON objects. The names are fixed: other programs rely on them.

use serde_json::{Map, Value, json};
use whyso_explain::statements::{COMMAND_METRICS, CommandMetric, SqlTraceCost, StatementTime};
use whyso_record::data::ClientCommand;

use super::CommandsOf;

/// Returns what `whyso statements --json` prints. Times are in nanoseconds. What is known of no command is null.
pub fn statements_json(about: &CommandsOf<'_>, statements: &[StatementTime], limit: usize) -> Value {
    let statement = |time: &StatementTime| {
        let named = |is_time: bool| {
            let metrics = COMMAND_METRICS.into_iter().filter(move |metric| metric.is_time() == is_time);
            metrics.map(|metric| (metric.name().to_string(), json!(time.sum(metric)))).collect::<Map<_, _>>()
        };
        json!({
            "command": time.command,
            "statement": about.text(time.statement),
            "count": time.count,
            "accounted": time.known[CommandMetric::Cpu as usize],
            "sum_ns": named(true),
            "sum": named(false),
            "mean_ns": time.mean_ns(),
            "p95_ns": time.p95_ns,
            "max_ns": time.max_ns,
        })
    };
    let mut object = window(about);
    object["statements"] = statements.iter().take(limit).map(statement).collect();
    object
}

/// Returns what `whyso statements --log --json` prints. Times are in nanoseconds, `t_s` in seconds since the load began.
pub fn commands_json(about: &CommandsOf<'_>, commands: &[ClientCommand], limit: usize) -> Value {
    let command = |command: &ClientCommand| {
        let times = command.times;
        json!({
            "t_ns": command.t_ns,
            "t_s": (command.t_ns - about.origin_ns) as f64 / 1e9,
            "tid": command.tid,
            "client": command.client,
            "command": command.command,
            "response_ns": command.response_ns,
            "cpu_ns": times.map(|times| times.cpu_ns),
            "runqueue_ns": times.map(|times| times.runqueue_ns),
            "lock_ns": times.map(|times| times.lock_ns),
            "io_ns": times.map(|times| times.io_ns),
            "rows_sent": command.rows_sent,
            "rows_examined": command.rows_examined,
            "rows_affected": command.rows_affected,
            "error": command.error,
            "connection": command.connection,
            "length": command.length,
            "prepared": command.prepared,
            "statement": about.text(command.statement),
            "text": command.text.as_deref(),
        })
    };
    let mut object = window(about);
    object["commands"] = commands.iter().take(limit).map(command).collect();
    object
}

fn window(about: &CommandsOf<'_>) -> Value {
    let SqlTraceCost { commands, probes_ns, programs_ns_a_command, reader_ns_a_command, cpu_share, lost } =
        about.trace;
    let lost: Map<_, _> = lost.iter().map(|(why, count)| (why.clone(), json!(count))).collect();
    json!({
        "window": about.window,
        "seconds": about.seconds,
        "own_left_out": about.own_left_out,
        "trace": {
            "commands": commands,
            "probes_ns": probes_ns,
            "programs_ns_a_command": programs_ns_a_command,
            "reader_ns_a_command": reader_ns_a_command,
            "ns_a_command": about.trace.ns_a_command(),
            "cpu_share": cpu_share,
            "lost": lost,
        },
    })
}

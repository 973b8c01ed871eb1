//! What clients asked of the server: as a table of statements and as a log, for people and for programs.

mod json;
mod page;
#[cfg(test)]
mod tests;

pub use json::{commands_json, statements_json};
pub use page::{LevelStatements, RunStatements};
pub(crate) use page::{StatementsHead, head as statements_head};

use std::collections::HashMap;
use std::io::Write;

use whyso_explain::statements::{CommandMetric, SqlTraceCost, StatementTime};
use whyso_record::data::ClientCommand;
use whyso_words::{count, number, percent_number, seconds, whole};

use crate::Error;
use crate::text::layout::aligned_with_words;
use crate::text::shortened;
use crate::text::statements::{STATEMENT_MAX, placeholder, plain, sql_trace_words};

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
/// Which commands are shown, and what following them cost.
#[derive(Clone, Copy, Debug)]
pub struct CommandsOf<'a> {
    /// Such as "the level of 16 users".
    pub window: &'a str,
    /// When the load began: times count from here.
    pub origin_ns: i64,
    /// Length of the window.
    pub seconds: f64,
    /// Commands of whyso's own connections that are not among them.
    pub own_left_out: u64,
    pub trace: &'a SqlTraceCost,
    /// Of the statements, by number.
    pub texts: &'a HashMap<u32, String>,
}

impl CommandsOf<'_> {
    fn text(&self, statement: Option<u32>) -> Option<&str> {
        self.texts.get(&statement?).map(String::as_str)
    }

    fn heading(&self, commands: u64) -> String {
        let mut out = format!("{} of {}, {}", count(commands, "command"), self.window, seconds(self.seconds));
        if self.own_left_out > 0 {
            out.push_str(&format!("; {} of whyso's own are left out (--own)", whole(self.own_left_out)));
        }
        out.push('\n');
        out
    }
}

/// Returns the statements with the most time, `limit` of them at most, by the sums of `by`.
pub fn statements(
    about: &CommandsOf<'_>,
    statements: &[StatementTime],
    by: &[CommandMetric],
    limit: usize,
) -> String {
    let mut rows = vec![head(by)];
    let total = total(statements);
    rows.push(row(&total, &total, by, "<Total>", String::new()));
    for time in statements.iter().take(limit) {
        let text = match about.text(time.statement) {
            Some(text) => shortened(&plain(text), STATEMENT_MAX),
            None => placeholder(&time.command).to_string(),
        };
        rows.push(row(time, &total, by, &time.command, text));
    }
    let words = [rows[0].len() - 2, rows[0].len() - 1];
    let mut out = format!("{}\n{}", about.heading(total.count), aligned_with_words(&rows, &words));
    let left = statements.len().saturating_sub(limit);
    if left > 0 {
        out.push_str(&format!("and {} more: --limit N shows N\n", whole(left as u64)));
    }
    let accounted = total.known[CommandMetric::Cpu as usize];
    if accounted < total.count {
        let without = total.count - accounted;
        out.push_str(&format!(
            "{} commands were of threads without an account: of their time the response alone is known\n",
            whole(without)
        ));
    }
    out.push_str(&format!("\n{}", sql_trace_words(about.trace)));
    out
}

/// Writes every command in order of time, `limit` of them at most.
///
/// # Errors
/// `out` can't be written.
pub fn commands(
    out: &mut impl Write,
    about: &CommandsOf<'_>,
    commands: &[ClientCommand],
    limit: usize,
) -> Result<(), Error> {
    writeln!(out, "{}", about.heading(commands.len() as u64))?;
    writeln!(
        out,
        "{:>11}  {:>8}  {:>10}  {:>11}  {:>10}  {:>10}  {:>8}  {:>8}  {:>8}  {:>5}  {:>7}  {:<16}  statement",
        "time s",
        "thread",
        "connection",
        "response ms",
        "cpu ms",
        "lock ms",
        "sent",
        "examined",
        "affected",
        "error",
        "length",
        "command"
    )?;
    for command in commands.iter().take(limit) {
        let ms = |ns: Option<u64>| ns.map_or_else(String::new, |ns| number(ns as f64 / NS_PER_MS));
        let count = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
        let length = count(command.length.map(u64::from));
        let error = count(command.error.filter(|error| *error != 0).map(u64::from));
        let text = command
            .text
            .as_deref()
            .or(about.text(command.statement))
            .unwrap_or(placeholder(&command.command));
        let line = format!(
            "{:>11.6}  {:>8}  {:>10}  {:>11}  {:>10}  {:>10}  {:>8}  {:>8}  {:>8}  {error:>5}  {length:>7}  {:<16}  {}",
            (command.t_ns - about.origin_ns) as f64 / NS_PER_S,
            command.tid,
            count(command.connection.map(u64::from)),
            ms(Some(command.response_ns)),
            ms(command.times.map(|times| times.cpu_ns)),
            ms(command.times.map(|times| times.lock_ns)),
            count(command.rows_sent),
            count(command.rows_examined),
            count(command.rows_affected),
            command.command,
            plain(text),
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    let left = commands.len().saturating_sub(limit);
    if left > 0 {
        writeln!(out, "and {} more: --limit N shows N", whole(left as u64))?;
    }
    write!(out, "\n{}", sql_trace_words(about.trace))?;
    Ok(())
}

fn head(by: &[CommandMetric]) -> Vec<String> {
    let unit = |metric: &CommandMetric| if metric.is_time() { " s" } else { "" };
    let sums = by.iter().flat_map(|metric| [format!("{}{}", metric.name(), unit(metric)), "%".to_string()]);
    let rest = ["count", "mean ms", "p95", "max", "command", "statement"].map(str::to_string);
    sums.chain(rest).collect()
}

fn row(
    time: &StatementTime,
    total: &StatementTime,
    by: &[CommandMetric],
    command: &str,
    statement: String,
) -> Vec<String> {
    let sums = by.iter().flat_map(|metric| {
        // Empty cells: the statement has no such count, or it is not known.
        let Some(sum) = time.sum(*metric) else { return [String::new(), String::new()] };
        let all = total.sums[*metric as usize];
        let share = if sum == 0 { String::new() } else { percent_number(sum as f64 / all as f64) };
        [if metric.is_time() { number(sum as f64 / NS_PER_S) } else { whole(sum) }, share]
    });
    let ms = |ns: f64| number(ns / NS_PER_MS);
    let is_total = std::ptr::eq(time, total);
    let p95 = if is_total { String::new() } else { ms(time.p95_ns as f64) };
    let rest =
        [whole(time.count), ms(time.mean_ns()), p95, ms(time.max_ns as f64), command.to_string(), statement];
    sums.chain(rest).collect()
}

/// All of them as one, without what 95 % of its response times do not exceed.
pub(crate) fn total(statements: &[StatementTime]) -> StatementTime {
    let mut total = StatementTime::default();
    for statement in statements {
        total.count += statement.count;
        total.max_ns = total.max_ns.max(statement.max_ns);
        total.sums.iter_mut().zip(statement.sums).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        total.known.iter_mut().zip(statement.known).for_each(|(known, more)| *known += more);
    }
    total
}

//! Which statements the server spent its time on: commands of clients added up by what they say.

use std::collections::HashMap;

/// What statements are compared by: parts of their commands' time, and what the server counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandMetric {
    /// From when the server had read it to when its reply was sent.
    Response,
    Cpu,
    /// Ready to run, and not running.
    Runqueue,
    Lock,
    /// Files: read, written, synced.
    Io,
    RowsSent,
    RowsExamined,
    RowsAffected,
    /// Commands that ended with an error.
    Errors,
}

/// All of them; their places are those in sums.
pub const COMMAND_METRICS: [CommandMetric; 9] = [
    CommandMetric::Response,
    CommandMetric::Cpu,
    CommandMetric::Runqueue,
    CommandMetric::Lock,
    CommandMetric::Io,
    CommandMetric::RowsSent,
    CommandMetric::RowsExamined,
    CommandMetric::RowsAffected,
    CommandMetric::Errors,
];
const NAMES: [&str; 9] =
    ["response", "cpu", "runqueue", "lock", "io", "rows_sent", "rows_examined", "rows_affected", "errors"];

impl CommandMetric {
    /// The name as it is typed and shown.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// Its sums are nanoseconds; those of others are counts.
    pub fn is_time(self) -> bool {
        self as usize <= CommandMetric::Io as usize
    }
}

/// A text that names no [`CommandMetric`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no metric of statements; give some of: {names}", names = NAMES.join(", "))]
pub struct UnknownCommandMetric(String);

impl std::str::FromStr for CommandMetric {
    type Err = UnknownCommandMetric;

    fn from_str(text: &str) -> Result<CommandMetric, UnknownCommandMetric> {
        // What rows cost is that they are examined.
        let name = if text == "rows" { CommandMetric::RowsExamined.name() } else { text };
        let found = COMMAND_METRICS.into_iter().find(|metric| metric.name() == name);
        found.ok_or_else(|| UnknownCommandMetric(text.to_string()))
    }
}

/// A command of a client. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommandRecord<'a> {
    /// The protocol's name of it.
    pub command: &'a str,
    /// Which statement it is; `None` where it has none, or it is not known.
    pub statement: Option<u32>,
    pub response_ns: u64,
    /// CPU, run queue, lock, io; `None` where its thread was not accounted for.
    pub times_ns: Option<[u64; 4]>,
    /// Sent, examined, affected; `None` where that is not known, and where there is no such count.
    pub rows: [Option<u64>; 3],
    /// Whether it ended with an error, where that is known.
    pub failed: Option<bool>,
}

/// All commands that say the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementTime {
    pub command: String,
    pub statement: Option<u32>,
    pub count: u64,
    /// By [`COMMAND_METRICS`]: times in nanoseconds, counts.
    pub sums: [u64; 9],
    /// By [`COMMAND_METRICS`]: the number of commands that the sums are of. Of the others it is not known, or they have no such count.
    pub known: [u64; 9],
    /// Of the response times, in nanoseconds: the least that 95 % of them do not exceed.
    pub p95_ns: u64,
    pub max_ns: u64,
}

impl StatementTime {
    /// Of the response times, in nanoseconds; 0 of nothing.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sums[0] as f64 / self.count as f64 }
    }

    /// The sum of a metric; `None` where it is known of no command.
    pub fn sum(&self, metric: CommandMetric) -> Option<u64> {
        (self.known[metric as usize] > 0).then_some(self.sums[metric as usize])
    }

    fn enter(&mut self, command: &CommandRecord<'_>) {
        self.count += 1;
        let times = command.times_ns.map_or([None; 4], |times_ns| times_ns.map(Some));
        let [sent, examined, affected] = command.rows;
        let [cpu, runqueue, lock, io] = times;
        let failed = command.failed.map(u64::from);
        let values = [Some(command.response_ns), cpu, runqueue, lock, io, sent, examined, affected, failed];
        for (place, value) in values.into_iter().enumerate() {
            let Some(value) = value else { continue };
            self.sums[place] = self.sums[place].saturating_add(value);
            self.known[place] += 1;
        }
    }
}

/// What following the commands of a run cost, and what was lost of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlTraceCost {
    /// That were followed in the whole run.
    pub commands: u64,
    /// What the two probes of a command cost the server's thread, without the programs at them. It was measured on this machine when the
    /// trace began.
    pub probes_ns: Option<f64>,
    /// What the programs take, where the kernel counts that.
    pub programs_ns_a_command: Option<f64>,
    /// CPU of the thread that reads what they write.
    pub reader_ns_a_command: f64,
    /// All of that while the commands were followed, 0 to 1 of the machine's CPUs; without what is not known of it.
    pub cpu_share: f64,
    /// Why, and how many.
    pub lost: Vec<(String, u64)>,
}

impl SqlTraceCost {
    /// Of what is known.
    pub fn ns_a_command(&self) -> f64 {
        self.probes_ns.unwrap_or(0.0) + self.programs_ns_a_command.unwrap_or(0.0) + self.reader_ns_a_command
    }
}

/// Commands added up by command and statement, those with the most of a metric first.
pub fn by_statement(commands: &[CommandRecord<'_>], by: CommandMetric) -> Vec<StatementTime> {
    let mut places: HashMap<(&str, Option<u32>), usize> = HashMap::new();
    let mut found: Vec<(StatementTime, Vec<u64>)> = Vec::new();
    for record in commands {
        let place = *places.entry((record.command, record.statement)).or_insert_with(|| {
            let (command, statement) = (record.command.to_string(), record.statement);
            found.push((StatementTime { command, statement, ..StatementTime::default() }, Vec::new()));
            found.len() - 1
        });
        let (time, response_ns) = &mut found[place];
        time.enter(record);
        response_ns.push(record.response_ns);
    }
    let closed = |(mut time, mut response_ns): (StatementTime, Vec<u64>)| {
        response_ns.sort_unstable();
        time.p95_ns = response_ns[(response_ns.len() * 95).div_ceil(100) - 1];
        time.max_ns = response_ns[response_ns.len() - 1];
        time
    };
    let mut times: Vec<StatementTime> = found.into_iter().map(closed).collect();
    // What is equal stays in the order in which it came first.
    times.sort_by_key(|time| std::cmp::Reverse((time.sums[by as usize], time.sums[0])));
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(command: &str, statement: Option<u32>, response_ns: u64, lock_ns: u64) -> CommandRecord<'_> {
        let times_ns = Some([response_ns / 2, 0, lock_ns, 0]);
        CommandRecord { command, statement, response_ns, times_ns, ..CommandRecord::default() }
    }

    #[test]
    fn commands_of_the_same_text_are_added_up_and_the_largest_sum_comes_first() {
        let mut commands: Vec<CommandRecord<'_>> =
            (1..=100).map(|ns| command("QUERY", Some(0), ns, 0)).collect();
        commands.push(command("STMT_EXECUTE", Some(0), 500, 400));
        commands.push(CommandRecord { times_ns: None, ..command("QUERY", Some(0), 1000, 0) });
        commands.push(command("PING", None, 1, 0));
        let times = by_statement(&commands, CommandMetric::Response);
        let sums: Vec<(&str, u64, &[u64])> =
            times.iter().map(|time| (time.command.as_str(), time.count, &time.sums[..5])).collect();
        // Of 1..=100 the halves, rounded down, add up to 2500.
        assert_eq!(
            sums,
            [
                ("QUERY", 101, &[6050, 2500, 0, 0, 0][..]),
                ("STMT_EXECUTE", 1, &[500, 250, 0, 400, 0]),
                ("PING", 1, &[1, 0, 0, 0, 0]),
            ]
        );
        assert_eq!((times[0].p95_ns, times[0].max_ns, times[0].known[1]), (96, 1000, 100));
        assert_eq!((times[2].p95_ns, times[2].mean_ns()), (1, 1.0));
        assert_eq!(by_statement(&commands, CommandMetric::Lock)[0].command, "STMT_EXECUTE");
        assert!(by_statement(&[], CommandMetric::Cpu).is_empty());
    }

    #[test]
    fn rows_and_errors_are_added_up_where_they_are_known() {
        let rows = |statement, rows: [Option<u64>; 3], failed| CommandRecord {
            rows,
            failed,
            ..command("QUERY", Some(statement), 10, 0)
        };
        let commands = [
            rows(0, [Some(1), Some(100), None], Some(false)),
            rows(0, [Some(2), Some(50), None], Some(true)),
            rows(1, [Some(0), Some(0), Some(4)], Some(true)),
            rows(1, [None; 3], Some(true)),
        ];
        let first = |by| by_statement(&commands, by)[0].clone();
        let examined = first(CommandMetric::RowsExamined);
        assert_eq!(examined.statement, Some(0));
        let sums = [CommandMetric::RowsSent, CommandMetric::RowsExamined, CommandMetric::RowsAffected];
        assert_eq!(sums.map(|metric| examined.sum(metric)), [Some(3), Some(150), None]);
        let errors = first(CommandMetric::Errors);
        assert_eq!((errors.statement, errors.sum(CommandMetric::Errors)), (Some(1), Some(2)));
        assert_eq!((errors.sum(CommandMetric::RowsAffected), errors.known[7]), (Some(4), 1));
    }

    #[test]
    fn a_metric_is_known_by_its_name() {
        for metric in COMMAND_METRICS {
            assert_eq!(metric.name().parse(), Ok(metric));
        }
        assert_eq!("rows".parse(), Ok(CommandMetric::RowsExamined));
        assert_eq!(
            "reads".parse::<CommandMetric>().unwrap_err().to_string(),
            "\"reads\" is no metric of statements; give some of: response, cpu, runqueue, lock, io, rows_sent, \
             rows_examined, rows_affected, errors"
        );
    }
}

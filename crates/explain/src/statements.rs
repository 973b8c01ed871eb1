//! Which statements the server spent its time on: commands of clients added up by what they say.

use std::collections::HashMap;

/// What a command's time is made of.
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
}

/// All of them; their places are those in sums.
pub const COMMAND_METRICS: [CommandMetric; 5] = [
    CommandMetric::Response,
    CommandMetric::Cpu,
    CommandMetric::Runqueue,
    CommandMetric::Lock,
    CommandMetric::Io,
];

impl CommandMetric {
    /// The name as it is typed and told.
    pub fn name(self) -> &'static str {
        ["response", "cpu", "runqueue", "lock", "io"][self as usize]
    }
}

impl std::str::FromStr for CommandMetric {
    type Err = String;

    fn from_str(text: &str) -> Result<CommandMetric, String> {
        let names = || COMMAND_METRICS.map(CommandMetric::name).join(", ");
        let found = COMMAND_METRICS.into_iter().find(|metric| metric.name() == text);
        found.ok_or_else(|| format!("{text:?} is no metric of statements; give some of: {}", names()))
    }
}

/// A command of a client, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommandSeen<'a> {
    /// The protocol's name of it.
    pub command: &'a str,
    /// Which statement it is; `None` where it has none, or it is not known.
    pub statement: Option<u32>,
    pub response_ns: u64,
    /// Those of [`COMMAND_METRICS`] but the first; `None` where its thread was not accounted for.
    pub times_ns: Option<[u64; 4]>,
}

/// All commands that say the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementTime {
    pub command: String,
    pub statement: Option<u32>,
    pub count: u64,
    /// By [`COMMAND_METRICS`], in nanoseconds. All but the first are of the commands that were accounted for alone.
    pub sum_ns: [u64; 5],
    pub accounted: u64,
    /// Of the response times, in nanoseconds: the least that 95 % of them do not exceed.
    pub p95_ns: u64,
    pub max_ns: u64,
}

impl StatementTime {
    /// Of the response times, in nanoseconds; 0 of nothing.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns[0] as f64 / self.count as f64 }
    }
}

/// What following the commands of a run cost, and what was lost of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlTraceCost {
    /// That were followed in the whole run.
    pub commands: u64,
    /// What the two probes of a command cost the server's thread, without the programs at them, as it was measured on this machine when
    /// the trace began.
    pub probes_ns: Option<f64>,
    /// What the programs take, where the kernel counts that.
    pub programs_ns_a_command: Option<f64>,
    /// CPU of the thread that reads what they tell.
    pub reader_ns_a_command: f64,
    /// Why, and how many.
    pub lost: Vec<(String, u64)>,
}

/// Commands added up by command and statement, those with the most of a metric first.
pub fn by_statement(commands: &[CommandSeen<'_>], by: CommandMetric) -> Vec<StatementTime> {
    let mut places: HashMap<(&str, Option<u32>), usize> = HashMap::new();
    let mut found: Vec<(StatementTime, Vec<u64>)> = Vec::new();
    for one in commands {
        let place = *places.entry((one.command, one.statement)).or_insert_with(|| {
            let (command, statement) = (one.command.to_string(), one.statement);
            found.push((StatementTime { command, statement, ..StatementTime::default() }, Vec::new()));
            found.len() - 1
        });
        let (time, response_ns) = &mut found[place];
        time.count += 1;
        time.sum_ns[0] += one.response_ns;
        response_ns.push(one.response_ns);
        if let Some(times_ns) = one.times_ns {
            time.accounted += 1;
            time.sum_ns[1..].iter_mut().zip(times_ns).for_each(|(sum, ns)| *sum += ns);
        }
    }
    let closed = |(mut time, mut response_ns): (StatementTime, Vec<u64>)| {
        response_ns.sort_unstable();
        time.p95_ns = response_ns[(response_ns.len() * 95).div_ceil(100) - 1];
        time.max_ns = response_ns[response_ns.len() - 1];
        time
    };
    let mut times: Vec<StatementTime> = found.into_iter().map(closed).collect();
    // What is equal stays in the order in which it came first.
    times.sort_by_key(|time| std::cmp::Reverse((time.sum_ns[by as usize], time.sum_ns[0])));
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(command: &str, statement: Option<u32>, response_ns: u64, lock_ns: u64) -> CommandSeen<'_> {
        CommandSeen { command, statement, response_ns, times_ns: Some([response_ns / 2, 0, lock_ns, 0]) }
    }

    #[test]
    fn commands_that_say_the_same_are_added_up_and_the_largest_sum_comes_first() {
        let mut commands: Vec<CommandSeen<'_>> = (1..=100).map(|ns| seen("QUERY", Some(0), ns, 0)).collect();
        commands.push(seen("STMT_EXECUTE", Some(0), 500, 400));
        commands.push(CommandSeen { times_ns: None, ..seen("QUERY", Some(0), 1000, 0) });
        commands.push(seen("PING", None, 1, 0));
        let times = by_statement(&commands, CommandMetric::Response);
        let told: Vec<(&str, u64, [u64; 5])> =
            times.iter().map(|one| (one.command.as_str(), one.count, one.sum_ns)).collect();
        // Of 1..=100 the halves, rounded down, add up to 2500.
        assert_eq!(
            told,
            [
                ("QUERY", 101, [6050, 2500, 0, 0, 0]),
                ("STMT_EXECUTE", 1, [500, 250, 0, 400, 0]),
                ("PING", 1, [1, 0, 0, 0, 0]),
            ]
        );
        assert_eq!((times[0].p95_ns, times[0].max_ns, times[0].accounted), (96, 1000, 100));
        assert_eq!((times[2].p95_ns, times[2].mean_ns()), (1, 1.0));
        assert_eq!(by_statement(&commands, CommandMetric::Lock)[0].command, "STMT_EXECUTE");
        assert!(by_statement(&[], CommandMetric::Cpu).is_empty());
    }

    #[test]
    fn a_metric_is_known_by_its_name() {
        for metric in COMMAND_METRICS {
            assert_eq!(metric.name().parse(), Ok(metric));
        }
        let refused = "rows".parse::<CommandMetric>().unwrap_err();
        assert_eq!(
            refused,
            "\"rows\" is no metric of statements; give some of: response, cpu, runqueue, lock, io"
        );
    }
}

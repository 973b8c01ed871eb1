//! Who is measured: sysbench, whyso on each engine, whyso with sysbench's scripts, and the floor.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use whyso_load::EngineKind;

use crate::child;
use crate::options::{Link, Plan};
use crate::places::{Place, example};
use crate::processes;
use crate::support::SCHEMA;
use crate::table::Ratios;

/// How much longer than its level a process may take: to start, to log in, to prepare, to end.
const TIME_EXTRA: Duration = Duration::from_secs(120);

/// Ratios whose range is at most this share of their median lie close together.
const NARROW: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    Sysbench,
    Whyso(EngineKind),
    /// `whyso sysbench`.
    Script,
    Floor(EngineKind),
}

/// What is sent, by how many, for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    pub(crate) workload: &'a str,
    pub(crate) users: u32,
    pub(crate) seconds: u64,
    /// Transactions per second of an open loop; `None`: closed. Only whyso has open loops.
    pub(crate) rate: Option<f64>,
}

/// One process's run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) queries: f64,
    pub(crate) seconds: f64,
    pub(crate) user_cpu_s: f64,
    pub(crate) system_cpu_s: f64,
    pub(crate) max_rss_kb: f64,
    /// This and what follows is known of whyso only; 0 for others.
    pub(crate) transactions: f64,
    /// Of the response times.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Which engine it was, with how many loops or threads.
    pub(crate) engine: String,
}

impl Run {
    pub(crate) fn queries_per_s(&self) -> f64 {
        self.queries / self.seconds
    }

    fn cpu_s(&self) -> f64 {
        self.user_cpu_s + self.system_cpu_s
    }

    pub(crate) fn cpu_us_per_query(&self) -> f64 {
        self.cpu_s() * 1e6 / self.queries
    }

    /// As though the client had one CPU for itself and used it up.
    pub(crate) fn queries_per_core_s(&self) -> f64 {
        self.queries / self.cpu_s()
    }
}

impl Contestant {
    pub(crate) fn command(self, plan: &Plan, place: &Place, link: Link, load: &Load<'_>) -> Result<Command> {
        let mut command = match self {
            Contestant::Sysbench | Contestant::Script => {
                let mut command = match self {
                    Contestant::Script => script(plan, place, link, load.workload)?,
                    _ => sysbench(plan, place, link, load.workload)?,
                };
                command
                    .arg(format!("--threads={}", load.users))
                    .arg(format!("--time={}", load.seconds))
                    .arg("run");
                return Ok(command);
            }
            Contestant::Whyso(engine) => {
                let own = std::env::current_exe()?;
                let mut command = with_cpus(&own, &plan.client_cpus);
                command.arg(child::COMMAND).args(place.arguments(link));
                command.args(["--workload", load.workload, "--engine", &engine.to_string()]);
                command.args(["--users", &load.users.to_string()]);
                command.args(["--tables", &plan.tables.to_string(), "--rows", &plan.rows.to_string()]);
                if let Some(loops) = plan.loops {
                    command.args(["--loops", &loops.to_string()]);
                }
                if let Some(rate) = load.rate {
                    command.args(["--rate", &rate.to_string()]);
                }
                command
            }
            Contestant::Floor(engine) => {
                let mut command = with_cpus(&example("floor")?, &plan.client_cpus);
                command.args(&place.arguments(link)[..2]);
                command.args(["--engine", &engine.to_string(), "--connections", &load.users.to_string()]);
                let loops = plan.loops.unwrap_or(1).min(load.users);
                command.args(["--loops", &loops.to_string()]);
                command
            }
        };
        command.args(["--seconds", &load.seconds.to_string()]);
        Ok(command)
    }

    /// # Errors
    /// What the process says, or that what it prints can't be understood.
    pub(crate) fn run(self, plan: &Plan, place: &Place, link: Link, load: &Load<'_>) -> Result<Run> {
        let mut command = self.command(plan, place, link, load)?;
        let result = processes::run(&mut command, Duration::from_secs(load.seconds) + TIME_EXTRA)?;
        let read = self.read(&result.output);
        let run =
            read.ok_or_else(|| anyhow!("what {self} printed can't be understood: {}", result.output))?;
        if run.queries == 0.0 {
            bail!("{self} sent no query: {}", result.output);
        }
        Ok(Run {
            user_cpu_s: result.user_cpu_s,
            system_cpu_s: result.system_cpu_s,
            max_rss_kb: result.max_rss_kb as f64,
            ..run
        })
    }

    /// Queries, seconds and what else is printed.
    pub(crate) fn read(self, printed: &str) -> Option<Run> {
        match self {
            Contestant::Sysbench | Contestant::Script => {
                let after = |name: &str| printed.lines().find_map(|line| line.trim().strip_prefix(name));
                // "    queries:                             123456 (12345.6 per sec.)"
                let queries = after("queries:")?.split_whitespace().next()?.parse().ok()?;
                let seconds = after("total time:")?.trim().trim_end_matches('s').parse().ok()?;
                Some(Run { queries, seconds, ..Run::default() })
            }
            Contestant::Whyso(_) => child::read(printed),
            Contestant::Floor(_) => {
                let mut fields = printed.split_whitespace().map(str::parse);
                let (queries, seconds) = (fields.next()?.ok()?, fields.next()?.ok()?);
                Some(Run { queries, seconds, ..Run::default() })
            }
        }
    }
}

/// As in "sysbench", "whyso auto", "whyso sysbench" and "floor epoll".
impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contestant::Sysbench => f.write_str("sysbench"),
            Contestant::Script => f.write_str("whyso sysbench"),
            Contestant::Whyso(engine) => write!(f, "whyso {engine}"),
            Contestant::Floor(engine) => write!(f, "floor {engine}"),
        }
    }
}

/// sysbench without its command (run or prepare).
pub(crate) fn sysbench(plan: &Plan, place: &Place, link: Link, workload: &str) -> Result<Command> {
    let command = with_cpus(Path::new("sysbench"), &plan.client_cpus);
    complete(command, plan, place, link, workload)
}

/// The same for `whyso sysbench`, whose program cargo puts into the folder above this one's.
fn script(plan: &Plan, place: &Place, link: Link, workload: &str) -> Result<Command> {
    let own = std::env::current_exe()?;
    let program = own.parent().and_then(Path::parent).map(|folder| folder.join("whyso"));
    let program = program.filter(|program| program.exists()).ok_or_else(|| {
        anyhow!(
            "there is no whyso in the folder above {}: cargo build --release -p whyso -p whyso-load",
            own.display()
        )
    })?;
    let mut command = with_cpus(&program, &plan.client_cpus);
    command.arg("sysbench");
    complete(command, plan, place, link, workload)
}

fn complete(mut command: Command, plan: &Plan, place: &Place, link: Link, workload: &str) -> Result<Command> {
    command.arg(workload.replace('-', "_")).args(["--db-driver=mysql", "--mysql-user=root"]);
    match link {
        Link::Unix => {
            command.arg(format!("--mysql-socket={}", place.socket.display()));
        }
        Link::Tcp => {
            let address = place.tcp.first().and_then(|tcp| tcp.rsplit_once(':'));
            let (host, port) = address.context("the server listens on no TCP address")?;
            command.arg(format!("--mysql-host={host}")).arg(format!("--mysql-port={port}"));
        }
    }
    command
        .arg(format!("--mysql-db={SCHEMA}"))
        .arg(format!("--tables={}", plan.tables))
        .arg(format!("--table-size={}", plan.rows));
    Ok(command)
}

/// The program, bound to these CPUs where some are named.
pub(crate) fn with_cpus(program: &Path, cpus: &str) -> Command {
    if cpus.is_empty() {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", cpus]).arg(program);
    command
}

/// Runs of the contestants, taking turns at going first, after one run each that does not count.
///
/// # Errors
/// The first that fails.
pub(crate) fn alternate(
    plan: &Plan,
    place: &Place,
    link: Link,
    load: &Load<'_>,
    contestants: &[Contestant],
) -> Result<Vec<Vec<Run>>> {
    let warm_up = Load { seconds: 1, ..*load };
    for contestant in contestants {
        contestant.run(plan, place, link, &warm_up)?;
    }
    let mut runs = vec![Vec::new(); contestants.len()];
    for round in 0..plan.rounds {
        for turn in 0..contestants.len() {
            let number = (round + turn) % contestants.len();
            runs[number].push(contestants[number].run(plan, place, link, load)?);
        }
        if plan.rounds_min.is_some_and(|least| round + 1 >= least) && are_narrow(&runs) {
            break;
        }
    }
    Ok(runs)
}

/// Whether more rounds are needless: all ratios to the first contestant lie close together.
fn are_narrow(runs: &[Vec<Run>]) -> bool {
    let [first, others @ ..] = runs else { return true };
    others.iter().all(|other| {
        Ratios::of(other, first, Run::cpu_us_per_query).spread() <= NARROW
            && Ratios::of(other, first, Run::queries_per_s).spread() <= NARROW
    })
}

//! Throughput and client CPU a query, side by side with sysbench: same server, same data, alternating rounds.
//!
//! ```text
//! bench_client_cost [--seconds 4] [--rounds 5] [--users 2,8,32] [--workloads oltp-point-select,oltp-read-write]
//!                   [--tables 4] [--rows 100000]
//! ```
//!
//! Each round runs both in a process of their own and takes the CPU of the whole process, start and login included,
//! from `getrusage`. What it prints is in `bench/client-cost/README.md`.

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use support::{SCHEMA, Server};
use whyso_load::{Address, Engine, Target, Tls};
use whyso_workload::{Options, Workload};

struct Plan {
    seconds: u64,
    rounds: usize,
    users: Vec<u32>,
    workloads: Vec<String>,
    tables: u32,
    rows: u32,
}

/// One process's run.
#[derive(Clone, Copy)]
struct Run {
    queries: f64,
    seconds: f64,
    user_cpu_s: f64,
    system_cpu_s: f64,
}

impl Run {
    fn queries_per_s(&self) -> f64 {
        self.queries / self.seconds
    }

    fn cpu_us_per_query(&self) -> f64 {
        (self.user_cpu_s + self.system_cpu_s) * 1e6 / self.queries
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "child") {
        return child(&arguments[1..]);
    }
    let plan = match parse(&arguments) {
        Ok(plan) => plan,
        Err(message) => {
            eprintln!("bench_client_cost: {message}");
            return ExitCode::from(2);
        }
    };
    let server = Server::start(&[
        "--innodb-buffer-pool-size=512M",
        "--innodb-log-file-size=256M",
        "--innodb-flush-log-at-trx-commit=2",
        "--max-connections=300",
    ]);
    prepare(&server, &plan);
    println!(
        "| workload | users | queries/s whyso | sysbench | ratio | CPU µs/query whyso (user + system) | sysbench | ratio |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for workload in &plan.workloads {
        for users in &plan.users {
            compare(&server, &plan, workload, *users);
        }
    }
    ExitCode::SUCCESS
}

fn parse(arguments: &[String]) -> Result<Plan, String> {
    let mut plan = Plan {
        seconds: 4,
        rounds: 5,
        users: vec![2, 8, 32],
        workloads: vec!["oltp-point-select".to_string(), "oltp-read-write".to_string()],
        tables: 4,
        rows: 100_000,
    };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        let wrong = |_| format!("{name} can't be '{value}'");
        match name.as_str() {
            "--seconds" => plan.seconds = value.parse().map_err(wrong)?,
            "--rounds" => plan.rounds = value.parse().map_err(wrong)?,
            "--tables" => plan.tables = value.parse().map_err(wrong)?,
            "--rows" => plan.rows = value.parse().map_err(wrong)?,
            "--users" => {
                plan.users = value.split(',').map(str::parse).collect::<Result<_, _>>().map_err(wrong)?
            }
            "--workloads" => plan.workloads = value.split(',').map(str::to_string).collect(),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(plan)
}

fn sysbench(server: &Server, plan: &Plan, workload: &str) -> Command {
    let mut command = Command::new("sysbench");
    command
        .arg(workload.replace('-', "_"))
        .args(["--db-driver=mysql", "--mysql-user=root"])
        .arg(format!("--mysql-socket={}", server.socket().display()))
        .arg(format!("--mysql-db={SCHEMA}"))
        .arg(format!("--tables={}", plan.tables))
        .arg(format!("--table-size={}", plan.rows));
    command
}

fn prepare(server: &Server, plan: &Plan) {
    let status = sysbench(server, plan, "oltp-read-write").arg("prepare").stdout(Stdio::null()).status();
    assert!(status.expect("sysbench runs").success(), "sysbench prepare failed");
}

fn compare(server: &Server, plan: &Plan, workload: &str, users: u32) {
    // One round of each that does not count: what is cold gets warm.
    run_sysbench(server, plan, workload, users, 1);
    run_whyso(server, plan, workload, users, 1);
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for round in 0..plan.rounds {
        let whyso_first = round % 2 == 0;
        if whyso_first {
            ours.push(run_whyso(server, plan, workload, users, plan.seconds));
        }
        theirs.push(run_sysbench(server, plan, workload, users, plan.seconds));
        if !whyso_first {
            ours.push(run_whyso(server, plan, workload, users, plan.seconds));
        }
    }
    let throughput = |runs: &[Run]| median(runs.iter().map(Run::queries_per_s).collect());
    let cost = |runs: &[Run]| median(runs.iter().map(Run::cpu_us_per_query).collect());
    let parts = |runs: &[Run]| {
        let user = median(runs.iter().map(|run| run.user_cpu_s * 1e6 / run.queries).collect());
        let system = median(runs.iter().map(|run| run.system_cpu_s * 1e6 / run.queries).collect());
        format!("({user:.2} + {system:.2})")
    };
    println!(
        "| {workload} | {users} | {:.0} | {:.0} | **{:.3}** | {:.2} {} | {:.2} {} | **{:.3}** |",
        throughput(&ours),
        throughput(&theirs),
        throughput(&ours) / throughput(&theirs),
        cost(&ours),
        parts(&ours),
        cost(&theirs),
        parts(&theirs),
        cost(&ours) / cost(&theirs),
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// User and system CPU of all children that have ended, in seconds.
fn children_cpu_s() -> (f64, f64) {
    // SAFETY: a zeroed rusage is a valid one, and it outlives the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}

fn measured(command: &mut Command, read: impl Fn(&str) -> Option<(f64, f64)>) -> Run {
    let (user_before, system_before) = children_cpu_s();
    let output = command.output().expect("the command runs");
    let (user_after, system_after) = children_cpu_s();
    let text = String::from_utf8_lossy(&output.stdout);
    let Some((queries, seconds)) = read(&text).filter(|_| output.status.success()) else {
        panic!("{command:?} failed: {text}{}", String::from_utf8_lossy(&output.stderr));
    };
    let (user_cpu_s, system_cpu_s) = (user_after - user_before, system_after - system_before);
    Run { queries, seconds, user_cpu_s, system_cpu_s }
}

fn run_sysbench(server: &Server, plan: &Plan, workload: &str, users: u32, seconds: u64) -> Run {
    let mut command = sysbench(server, plan, workload);
    command.arg(format!("--threads={users}")).arg(format!("--time={seconds}")).arg("run");
    measured(&mut command, |text| {
        // "    queries:                             123456 (12345.6 per sec.)"
        let line = text.lines().find_map(|line| line.trim().strip_prefix("queries:"))?;
        let queries: f64 = line.split_whitespace().next()?.parse().ok()?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("total time:"))?;
        let seconds: f64 = line.trim().trim_end_matches('s').parse().ok()?;
        Some((queries, seconds))
    })
}

fn run_whyso(server: &Server, plan: &Plan, workload: &str, users: u32, seconds: u64) -> Run {
    let mut command = Command::new(std::env::current_exe().expect("the program knows its path"));
    command.arg("child").arg(server.socket()).args([
        workload,
        &users.to_string(),
        &seconds.to_string(),
        &plan.tables.to_string(),
        &plan.rows.to_string(),
    ]);
    measured(&mut command, |text| {
        let mut fields = text.split_whitespace();
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

/// Runs one level and prints its queries and seconds.
fn child(arguments: &[String]) -> ExitCode {
    let [socket, workload, users, seconds, tables, rows] = arguments else {
        return ExitCode::from(2);
    };
    let target = Target {
        address: Address::Unix(socket.into()),
        user: "root".to_string(),
        password: String::new(),
        schema: SCHEMA.to_string(),
        tls: Tls::Off,
    };
    let run = || -> Result<(u64, f64), Box<dyn std::error::Error>> {
        let mut options = Options::default();
        options.set("tables", tables)?;
        options.set("table_size", rows)?;
        let workload = Workload::builtin(workload, &options)?;
        let users = users.parse()?;
        let seed = std::process::id().into();
        let mut engine = Engine::connect(&target, &workload, users, seed, None)?;
        let mut level = engine.level(users)?;
        level.begin_measuring();
        std::thread::sleep(Duration::from_secs(seconds.parse()?));
        let outcome = level.stop();
        if let Some(failure) = outcome.failure {
            return Err(failure.message.into());
        }
        let seconds = (outcome.window_end_ns - outcome.window_begin_ns) as f64 / 1e9;
        Ok((outcome.queries, seconds))
    };
    match run() {
        Ok((queries, seconds)) => {
            println!("{queries} {seconds}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

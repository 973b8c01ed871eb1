//! System calls and context switches a query, so that the figures can be explained. Counted by perf in runs of their
//! own, which no table of times comes from.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use whyso_load::EngineKind;

use crate::contestants::{Contestant, Load};
use crate::options::{Link, Plan};
use crate::places::{MariaDb, NullServer, Place};
use crate::processes;
use crate::table::{head, row};

/// Calls that are less often than this a query are left out.
const SHOWN_PER_QUERY_MIN: f64 = 0.005;
const WORKLOAD: &str = "oltp-point-select";
const LIMIT: Duration = Duration::from_secs(180);
const CALL: &str = "syscalls:sys_enter_";
/// Those that a client makes for a query, in one way or another. perf keeps a counter of each for every thread.
const CALLS: [&str; 14] = [
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "read",
    "write",
    "poll",
    "ppoll",
    "epoll_wait",
    "epoll_pwait",
    "epoll_ctl",
    "io_uring_enter",
    "futex",
    "sched_yield",
];
/// With more threads perf itself becomes the load.
const USERS_MAX: u32 = 128;

pub(crate) fn run(plan: &Plan) -> Result<()> {
    if !Command::new("perf").arg("version").output().is_ok_and(|output| output.status.success()) {
        bail!("system calls are counted by perf, which is not here: install linux-perf");
    }
    head(
        "System calls and context switches a query, oltp-point-select",
        &["server", "link", "#users", "client", "#context switches", "#CPU migrations", "system calls"],
    );
    let mut contestants = vec![Contestant::Sysbench, Contestant::Floor(EngineKind::Epoll)];
    contestants.push(Contestant::Floor(EngineKind::IoUring));
    contestants.extend(plan.engines.iter().copied().map(Contestant::Whyso));
    let mariadb = MariaDb::start(plan)?;
    print_rows(plan, "MariaDB", &mariadb.place, &contestants)?;
    drop(mariadb);
    let null_server = NullServer::start(plan)?;
    print_rows(plan, "null", &null_server.place, &contestants)?;
    println!();
    Ok(())
}

fn print_rows(plan: &Plan, name: &str, place: &Place, contestants: &[Contestant]) -> Result<()> {
    for link in &plan.links {
        for users in plan.users.iter().filter(|users| **users <= USERS_MAX) {
            for contestant in contestants {
                let load = Load { workload: WORKLOAD, users: *users, seconds: plan.seconds, rate: None };
                let counted = count(plan, place, *link, &load, *contestant)?;
                row(&[
                    name.to_string(),
                    link.to_string(),
                    users.to_string(),
                    contestant.to_string(),
                    format!("{:.3}", counted.context_switches),
                    format!("{:.4}", counted.migrations),
                    counted.calls.join(", "),
                ]);
            }
        }
    }
    Ok(())
}

/// All per query.
struct CallCounts {
    context_switches: f64,
    migrations: f64,
    /// As in "sendto 1.00", the most frequent ones first.
    calls: Vec<String>,
}

fn count(
    plan: &Plan,
    place: &Place,
    link: Link,
    load: &Load<'_>,
    contestant: Contestant,
) -> Result<CallCounts> {
    let file = tempfile::NamedTempFile::new()?;
    let client = contestant.command(plan, place, link, load)?;
    let mut command = Command::new("perf");
    command.args(["stat", "-x", ";", "-o"]).arg(file.path());
    let events = CALLS.map(|name| format!("{CALL}{name}")).join(",");
    command.args(["-e", &format!("{events},context-switches,cpu-migrations"), "--"]);
    command.arg(client.get_program()).args(client.get_args());
    let result = processes::run(&mut command, LIMIT)?;
    let run = contestant.read(&result.output);
    let queries = run
        .ok_or_else(|| anyhow!("what {contestant} printed can't be understood: {}", result.output))?
        .queries;
    let text = std::fs::read_to_string(file.path())?;
    // "COUNT;unit;event;…"
    let counts = text.lines().filter_map(|line| {
        let mut fields = line.split(';');
        let count: f64 = fields.next()?.parse().ok()?;
        Some((fields.nth(1)?, count / queries))
    });
    let mut counted = CallCounts { context_switches: 0.0, migrations: 0.0, calls: Vec::new() };
    let mut calls = Vec::new();
    for (event, per_query) in counts {
        match event {
            "context-switches" => counted.context_switches = per_query,
            "cpu-migrations" => counted.migrations = per_query,
            _ => calls.extend(event.strip_prefix(CALL).map(|name| (name, per_query))),
        }
    }
    calls.retain(|(_, per_query)| *per_query >= SHOWN_PER_QUERY_MIN);
    calls.sort_by(|a, b| b.1.total_cmp(&a.1));
    counted.calls = calls.iter().map(|(name, per_query)| format!("{name} {per_query:.2}")).collect();
    Ok(counted)
}

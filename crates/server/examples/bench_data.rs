//! Rows per second of whyso's loader against `sysbench prepare`, in alternating rounds on one server,
//! and what restoring a snapshot takes against loading. See bench/data/README.md.
//!
//! Arguments: rounds (3 where none), then knobs for the server as name=value.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use mysql_async::prelude::Queryable;
use whyso_server::dataset::{Dataset, Method, Phase, Progress, ensure_by};
use whyso_server::snapshot::{Provision, Store};
use whyso_server::throwaway::default_parent_dir;
use whyso_server::{StartSpec, ThrowAway, find};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let mut spec = StartSpec::new(find(None)?);
    let dataset = Dataset::default();
    spec.data_bytes = dataset.bytes_estimate();
    for setting in arguments {
        let (name, value) = setting.split_once('=').ok_or("knobs are given as name=value")?;
        spec.set.push((name.to_string(), value.to_string()));
    }
    println!(
        "{} {}, {} tables of {} rows",
        spec.binary.flavor, spec.binary.version, dataset.tables, dataset.rows
    );
    let load_seconds = loading(&spec, &dataset, rounds).await?;
    restoring(&spec, &dataset, rounds, load_seconds).await
}

/// Returns the median of our own loads, in seconds.
async fn loading(spec: &StartSpec, dataset: &Dataset, rounds: usize) -> Outcome<f64> {
    let server = ThrowAway::start(spec.clone()).await?;
    let on = server.file_system();
    println!("on {} ({}); settings: {}", on.kind, on.device, settings(&server));
    let server_pid = server.pid().ok_or("the server is gone")?;
    let mut seconds_by_method: [Vec<f64>; 3] = Default::default();
    let mut cpu_s_by_method: [Vec<f64>; 3] = Default::default();
    for round in 1..=rounds {
        for (place, method) in [Method::LoadData, Method::Insert].into_iter().enumerate() {
            empty(&server).await?;
            let (begin, cpu_before_s) = (Instant::now(), cpu_s(server_pid)?);
            let rows_done_at = std::sync::Mutex::new(0.0);
            let loaded = ensure_by(&server.dsn(), dataset, Some(method), &|progress: Progress| {
                if let (Phase::Indexes, 0, Ok(mut at)) =
                    (progress.phase, progress.rows_done, rows_done_at.lock())
                {
                    *at = begin.elapsed().as_secs_f64();
                }
            })
            .await?;
            let rows_seconds = rows_done_at.into_inner()?;
            let cpu_s = cpu_s(server_pid)? - cpu_before_s;
            println!(
                "round {round}: {method}: {:.2} s, of which rows {rows_seconds:.2} s; {:.0} rows/s; {cpu_s:.2} s of CPU",
                loaded.seconds, loaded.rows_per_s
            );
            seconds_by_method[place].push(loaded.seconds);
            cpu_s_by_method[place].push(cpu_s);
        }
        empty(&server).await?;
        let cpu_before_s = cpu_s(server_pid)?;
        let seconds = sysbench_prepare(&server, dataset)?;
        cpu_s_by_method[2].push(cpu_s(server_pid)? - cpu_before_s);
        println!(
            "round {round}: sysbench prepare: {seconds:.2} s; {:.0} rows/s",
            dataset.rows_total() as f64 / seconds
        );
        seconds_by_method[2].push(seconds);
    }
    let [by_file, by_insert, by_sysbench] = seconds_by_method.map(median);
    println!(
        "LOAD DATA is {:.2} times as fast as sysbench, INSERT {:.2} times (medians)",
        by_sysbench / by_file,
        by_sysbench / by_insert
    );
    let [by_file_cpu, by_insert_cpu, by_sysbench_cpu] = cpu_s_by_method.map(median);
    println!(
        "CPU of server and client: {by_file_cpu:.2} s, {by_insert_cpu:.2} s, sysbench {by_sysbench_cpu:.2} s (medians)"
    );
    server.stop().await?;
    Ok(by_file)
}

async fn restoring(spec: &StartSpec, dataset: &Dataset, rounds: usize, load_seconds: f64) -> Outcome<()> {
    let folder = default_parent_dir()?.join(format!("bench-snapshots-{}", std::process::id()));
    let store = Store { folder: folder.clone(), max_bytes: u64::MAX };
    let mut copying = Vec::new();
    for round in 0..=rounds {
        let begin = Instant::now();
        let (server, how) = ThrowAway::start_with_dataset(spec.clone(), dataset, &store, &|_| ()).await?;
        let whole = begin.elapsed().as_secs_f64();
        match how {
            Provision::Loaded { loaded, snapshot_seconds, not_kept } => println!(
                "first start: {whole:.2} s in all, loading {:.2} s, stop and snapshot {snapshot_seconds:.2} s {}",
                loaded.seconds,
                not_kept.unwrap_or_default()
            ),
            Provision::Restored { seconds } => {
                println!("restore {round}: copying {seconds:.2} s; {whole:.2} s until the server answers");
                copying.push(seconds);
            }
        }
        server.stop().await?;
    }
    for snapshot in store.list()? {
        println!("the snapshot takes {:.0} MiB on disk", snapshot.bytes as f64 / f64::from(1 << 20));
    }
    remove(&folder)?;
    println!("restoring is {:.1} times as fast as loading (medians)", load_seconds / median(copying));
    Ok(())
}

/// CPU that the server, this process and its ended children have used, in seconds. On a machine that
/// others use too it varies less than the time. A tick is a hundredth of a second (USER_HZ).
fn cpu_s(server_pid: u32) -> Outcome<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{server_pid}/stat"))?;
    let (_, after_name) = stat.rsplit_once(')').ok_or("no process name in stat")?;
    let ticks: u64 =
        after_name.split_whitespace().skip(14 - 3).take(2).map_while(|field| field.parse::<u64>().ok()).sum();
    let own = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = own.rsplit_once(')').ok_or("no process name in stat")?;
    // utime, stime, cutime, cstime
    let own_ticks: u64 =
        after_name.split_whitespace().skip(14 - 3).take(4).map_while(|field| field.parse::<u64>().ok()).sum();
    Ok((ticks + own_ticks) as f64 / 100.0)
}

fn settings(server: &ThrowAway) -> String {
    let settings: Vec<String> =
        server.settings().iter().map(|setting| format!("{}={}", setting.name, setting.value)).collect();
    settings.join(" ")
}

async fn empty(server: &ThrowAway) -> Outcome<()> {
    let mut connection = server.dsn().connect_without_schema().await?;
    for statement in
        ["DROP DATABASE IF EXISTS whyso", "DROP DATABASE IF EXISTS sbtest", "CREATE DATABASE sbtest"]
    {
        connection.query_drop(statement).await?;
    }
    connection.disconnect().await?;
    Ok(())
}

fn sysbench_prepare(server: &ThrowAway, dataset: &Dataset) -> Outcome<f64> {
    let socket: PathBuf = server.dsn().socket.ok_or("the server has no socket")?;
    let begin = Instant::now();
    let output = Command::new("sysbench")
        .args(["oltp_read_write", "--threads=4", "--mysql-user=root", "--mysql-db=sbtest"])
        .arg(format!("--tables={}", dataset.tables))
        .arg(format!("--table-size={}", dataset.rows))
        .arg(format!("--mysql-socket={}", socket.display()))
        .arg("prepare")
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(begin.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn remove(folder: &Path) -> Outcome<()> {
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

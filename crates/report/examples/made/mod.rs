//! A made run of oltp-read-write on a two-core machine: seven levels and a repeat.

mod budget;
mod found;
mod load;
mod stacks;
mod threads;
mod timeline;

use std::collections::BTreeMap;

use whyso_clock::Anchor;
use whyso_random::SplitMix64;
use whyso_record::StateLooks;
use whyso_record::data::{Event, Kind, LoadInterval, SeriesKey};
use whyso_record::run::{Ended, HostFacts, Level, Purpose, RunInfo, ServerFacts, Window};
use whyso_report::{Column, Error, Source, Stacks};
use whyso_series::{ThreadTable, Timeline};

pub(crate) use found::explanation;

pub(crate) const S: i64 = 1_000_000_000;
const START_NS: i64 = 5_000 * S;
const WARMUP_S: i64 = 4;
const MEASURED_S: i64 = 12;
const USERS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 4];
pub(crate) const HOSTILE: &str = "</script><img src=x onerror=\"window.broken=1\"><!--<script>&amp;";

/// Transactions a second that N users get of this machine.
pub(crate) fn throughput(users: u32) -> f64 {
    let n = f64::from(users);
    let usl = 420.0 * n / (1.0 + 0.19 * (n - 1.0) + 0.0009 * n * (n - 1.0));
    // One user pays for waking an idle core.
    if users == 1 { usl * 0.72 } else { usl }
}

pub(crate) struct Made {
    pub(crate) run: RunInfo,
    hostile: bool,
    keys: Vec<SeriesKey>,
    t_ns: Vec<i64>,
}

/// Numbers of a fixed seed.
pub(crate) struct Noise(SplitMix64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise(SplitMix64::new(seed))
    }

    /// Evenly from 0 to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0.unit_f64()
    }

    /// About normal, mean 0, deviation 1.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

impl Made {
    pub(crate) fn new(hostile: bool) -> Made {
        let mut levels = Vec::new();
        let mut begin_ns = START_NS + 3 * S;
        for (index, users) in USERS.iter().enumerate() {
            let warmup = Window { begin_ns, end_ns: begin_ns + WARMUP_S * S };
            let window = Window { begin_ns: warmup.end_ns, end_ns: warmup.end_ns + MEASURED_S * S };
            let purpose = if index + 1 == USERS.len() { Purpose::Repeat } else { Purpose::Sweep };
            levels.push(Level {
                index: index as u32,
                users: *users,
                purpose,
                warmup,
                warmup_steady: true,
                window,
                result: load::result(index as u32, *users, window),
                ended: Ended::Complete { at_ns: window.end_ns },
            });
            begin_ns = window.end_ns + S / 2;
        }
        let t_ns: Vec<i64> =
            (0..).map(|s| START_NS + s * S).take_while(|t_ns| *t_ns < begin_ns + S).collect();
        let run = run_info(levels, begin_ns, hostile);
        Made { run, hostile, keys: keys(hostile), t_ns }
    }

    fn users_at(&self, t_ns: i64) -> u32 {
        let running = |level: &&Level| level.warmup.begin_ns <= t_ns && t_ns < level.window.end_ns;
        self.run.levels.iter().find(running).map_or(0, |level| level.users)
    }

    fn column(&self, series: usize) -> Column {
        let key = &self.keys[series];
        let mut noise = Noise::new(series as u64 * 7919 + 1);
        let per_transaction = 10f64.powf(noise.next() * 4.0 - 2.0);
        let is_constant = noise.next() < 0.35 && !is_charted(key);
        let mut value = Vec::with_capacity(self.t_ns.len());
        let mut total: f64 = (noise.next() * 1e6).floor();
        for t_ns in &self.t_ns {
            let users = self.users_at(*t_ns);
            let rate = if users == 0 { 0.0 } else { throughput(users) };
            let noisy = 1.0 + 0.04 * noise.normal();
            let now = match cpu_share(key, users) {
                Some(share) => {
                    total += (share * 2.0 * S as f64 * noisy).max(0.0).round();
                    total
                }
                None if is_constant => total,
                None if key.kind == Kind::Counter => {
                    total += (rate * growth(key, users, per_transaction) * noisy).max(0.0).round();
                    total
                }
                None => (f64::from(users) * (1.0 + 0.2 * noise.normal())).max(0.0).round(),
            };
            // The status reading fails twice, so that gaps can be seen.
            let is_gap = key.source == "status" && (*t_ns - START_NS) / S == 40;
            value.push(if is_gap { f64::NAN } else { now });
        }
        let late_ns = key.source.len() as i64 * 1_300_000;
        Column {
            t_ns: self
                .t_ns
                .iter()
                .enumerate()
                .map(|(tick, t_ns)| t_ns + late_ns + (tick as i64 * 37 % 11) * 10_000)
                .collect(),
            value,
        }
    }
}

fn is_charted(key: &SeriesKey) -> bool {
    matches!(key.source.as_str(), "cpu" | "disk" | "server_process" | "generator_process")
        || key.metric.starts_with("Innodb_rows")
        || key.metric.starts_with("Innodb_row_lock")
}

/// Fraction of the machine's CPU time that a `cpu` series counts with so many users.
fn cpu_share(key: &SeriesKey, users: u32) -> Option<f64> {
    let busy = 0.97 * (1.0 - (-f64::from(users) / 2.2).exp());
    let of_machine = match key.metric.as_str() {
        "user_ns" => busy * 0.62,
        "system_ns" => busy * 0.30,
        "iowait_ns" => (1.0 - busy) * 0.2 + 0.004,
        "softirq_ns" => busy * 0.03,
        "steal_ns" => 0.006,
        "idle_ns" => (1.0 - busy) * 0.8,
        "run_ns" if key.instance == "server" => busy * 0.74,
        "run_ns" => busy * 0.17,
        "nice_ns" | "irq_ns" => 0.0,
        "cpu_ns" => 0.0012,
        _ => return None,
    };
    let of_one = if key.instance.starts_with("cpu") { 0.5 } else { 1.0 };
    Some(of_machine * of_one)
}

fn growth(key: &SeriesKey, users: u32, per_transaction: f64) -> f64 {
    let n = f64::from(users.max(1));
    match key.metric.as_str() {
        "Innodb_rows_read" => 412.0,
        "Innodb_rows_inserted" | "Innodb_rows_deleted" => 1.0,
        "Innodb_rows_updated" => 2.0,
        "Innodb_row_lock_waits" => 0.0004 * n * n,
        "Innodb_row_lock_time" => 0.0009 * n * n,
        "context_switches" => 20.0 + n.sqrt() * 9.0,
        "write_bytes" => 9_300.0,
        "read_bytes" => 120.0,
        _ => per_transaction,
    }
}

fn key(source: &str, metric: &str, instance: &str, kind: Kind, unit: &str) -> SeriesKey {
    let host = if source == "generator_process" { "client" } else { "server" };
    SeriesKey {
        host: host.to_string(),
        source: source.to_string(),
        metric: metric.to_string(),
        instance: instance.to_string(),
        kind,
        unit: unit.to_string(),
    }
}

const STATUS: &[&str] = &[
    "Aborted_clients",
    "Aborted_connects",
    "Binlog_cache_disk_use",
    "Binlog_cache_use",
    "Bytes_received",
    "Bytes_sent",
    "Com_begin",
    "Com_commit",
    "Com_delete",
    "Com_insert",
    "Com_select",
    "Com_stmt_execute",
    "Com_stmt_prepare",
    "Com_update",
    "Connections",
    "Created_tmp_disk_tables",
    "Created_tmp_tables",
    "Handler_commit",
    "Handler_delete",
    "Handler_prepare",
    "Handler_read_first",
    "Handler_read_key",
    "Handler_read_next",
    "Handler_read_rnd_next",
    "Handler_rollback",
    "Handler_update",
    "Handler_write",
    "Innodb_buffer_pool_pages_flushed",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_wait_free",
    "Innodb_buffer_pool_write_requests",
    "Innodb_data_fsyncs",
    "Innodb_data_reads",
    "Innodb_data_writes",
    "Innodb_data_written",
    "Innodb_dblwr_writes",
    "Innodb_log_waits",
    "Innodb_log_writes",
    "Innodb_mutex_os_waits",
    "Innodb_mutex_spin_rounds",
    "Innodb_os_log_fsyncs",
    "Innodb_os_log_written",
    "Innodb_row_lock_time",
    "Innodb_row_lock_waits",
    "Innodb_rows_deleted",
    "Innodb_rows_inserted",
    "Innodb_rows_read",
    "Innodb_rows_updated",
    "Key_read_requests",
    "Open_table_definitions_opened",
    "Queries",
    "Questions",
    "Select_full_join",
    "Select_range",
    "Select_scan",
    "Sort_merge_passes",
    "Sort_range",
    "Sort_rows",
    "Sort_scan",
    "Table_locks_immediate",
    "Table_locks_waited",
    "Threads_created",
];
const STATUS_GAUGES: &[&str] = &[
    "Innodb_buffer_pool_pages_data",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_pages_free",
    "Innodb_history_list_length",
    "Innodb_row_lock_current_waits",
    "Open_tables",
    "Threads_cached",
    "Threads_connected",
    "Threads_running",
];
const CPU: &[&str] =
    &["user_ns", "nice_ns", "system_ns", "iowait_ns", "irq_ns", "softirq_ns", "steal_ns", "idle_ns"];

fn keys(hostile: bool) -> Vec<SeriesKey> {
    let mut keys = Vec::new();
    for instance in ["all", "cpu0", "cpu1"] {
        keys.extend(CPU.iter().map(|metric| key("cpu", metric, instance, Kind::Counter, "ns")));
    }
    keys.push(key("cpu", "context_switches", "", Kind::Counter, "1"));
    for device in ["vda", "vdb", "nvme0n1", "nvme1n1"] {
        keys.push(key("disk", "read_bytes", device, Kind::Counter, "bytes"));
        keys.push(key("disk", "write_bytes", device, Kind::Counter, "bytes"));
        keys.push(key("disk", "queue_requests", device, Kind::Gauge, "requests"));
    }
    keys.push(key("server_process", "run_ns", "server", Kind::Counter, "ns"));
    keys.push(key("generator_process", "run_ns", "generator", Kind::Counter, "ns"));
    keys.push(key("server_process", "resident_bytes", "server", Kind::Gauge, "bytes"));
    keys.extend(STATUS.iter().map(|metric| key("status", metric, "", Kind::Counter, "1")));
    keys.extend(STATUS_GAUGES.iter().map(|metric| key("status", metric, "", Kind::Gauge, "1")));
    for number in 0..620 {
        keys.push(key("innodb_metrics", &format!("made_metric_{number:03}"), "", Kind::Counter, "1"));
    }
    for thread in 0..120 {
        keys.push(key("thread", "run_queue_ns", &format!("{}:mariadbd", 4000 + thread), Kind::Counter, "ns"));
    }
    for sampler in ["cpu", "disk", "server_process", "status", "innodb_metrics"] {
        keys.push(key("watch", "cpu_ns", sampler, Kind::Counter, "ns"));
        keys.push(key("watch", "duration_ns", sampler, Kind::Gauge, "ns"));
    }
    if hostile {
        keys.push(key("status", HOSTILE, HOSTILE, Kind::Counter, "1"));
    }
    keys
}

fn run_info(levels: Vec<Level>, end_ns: i64, hostile: bool) -> RunInfo {
    let mut variables = BTreeMap::new();
    for (name, value) in [
        ("innodb_buffer_pool_size", "1073741824"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_io_capacity", "200"),
        ("innodb_log_file_size", "536870912"),
        ("max_connections", "151"),
        ("sync_binlog", "0"),
        ("thread_handling", "one-thread-per-connection"),
        (
            "sql_mode",
            "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
        ),
        ("tx_isolation", "REPEATABLE-READ"),
    ] {
        variables.insert(name.to_string(), value.to_string());
    }
    for number in 0..600 {
        variables.insert(format!("made_variable_{number:03}"), format!("{}", number * 17 % 4096));
    }
    let mut version_comment = "Debian 12".to_string();
    if hostile {
        variables.insert(format!("hostile_{HOSTILE}"), HOSTILE.to_string());
        version_comment = HOSTILE.to_string();
    }
    RunInfo {
        id: "20261121-205300-oltp-read-write".to_string(),
        tool_version: "0.1.0".to_string(),
        command: ["whyso", "run", "oltp-read-write", "--users", "1,2,4,8,16,32,64"]
            .map(String::from)
            .to_vec(),
        spec: serde_json::json!({
            "workload": "oltp-read-write", "users": [1, 2, 4, 8, 16, 32, 64], "seconds": MEASURED_S, "tables": 4, "rows": 250_000,
        }),
        host: HostFacts {
            hostname: "lab-1".to_string(),
            kernel: "6.18.0".to_string(),
            os: "Debian GNU/Linux 12 (bookworm)".to_string(),
            cpu_model: "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz".to_string(),
            sockets: 1,
            cores: 1,
            logical_cpus: 2,
            memory_bytes: 24_689_217_536,
            clocksource: "tsc".to_string(),
            virtualization: "kvm".to_string(),
            data_filesystem: "ext4 on /dev/vda1".to_string(),
            other: BTreeMap::from([("transparent huge pages".to_string(), "madvise".to_string())]),
        },
        server: ServerFacts {
            version: "10.11.14-MariaDB-0+deb12u2".to_string(),
            version_comment,
            flavor: "MariaDB".to_string(),
            endpoint: "a throw-away server on a Unix socket".to_string(),
            throw_away: true,
            pid: Some(4_000),
            cpus: vec![0, 1],
            variables,
            variables_changed: BTreeMap::from([("innodb_io_capacity".to_string(), "400".to_string())]),
        },
        anchors: vec![Anchor {
            monotonic_ns: START_NS,
            wall_ns: 1_795_294_380 * S,
            boot_id: "made".to_string(),
        }],
        levels,
        not_measured: vec![
            "Hardware counters: the virtual machine has none.".to_string(),
            "Performance Schema: it is off on this server.".to_string(),
        ],
        ended: Some(Ended::Complete { at_ns: end_ns }),
        ..RunInfo::default()
    }
}

impl Source for Made {
    fn run(&self) -> &RunInfo {
        &self.run
    }

    fn keys(&self) -> Vec<SeriesKey> {
        self.keys.clone()
    }

    fn sample_count(&self) -> u64 {
        (self.keys.len() * self.t_ns.len()) as u64
    }

    fn columns(&self, series: &[usize]) -> Result<Vec<Column>, Error> {
        Ok(series.iter().map(|number| self.column(*number)).collect())
    }

    fn events(&self) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        for level in &self.run.levels {
            events.push(event(level.warmup.begin_ns, "level_begin", &format!("{} users", level.users)));
            events.push(event(level.window.end_ns, "level_end", &format!("{} users", level.users)));
        }
        events.push(event(START_NS + 40 * S, "gap", "status: no answer within 5 s"));
        events.push(event(START_NS + 77 * S, "variable", "innodb_io_capacity: 200 → 400"));
        if self.hostile {
            events.push(event(START_NS + 90 * S, "note", HOSTILE));
        }
        Ok(events)
    }

    fn load(&self) -> Result<Vec<LoadInterval>, Error> {
        Ok(load::intervals(&self.run.levels))
    }

    fn threads(&self) -> Result<ThreadTable, Error> {
        Ok(threads::table(&self.run.levels, self.hostile))
    }

    fn state_looks(&self) -> Result<StateLooks, Error> {
        Ok(timeline::looks(&self.run.levels))
    }

    fn timeline(&self, edges_ns: &[i64]) -> Result<Timeline, Error> {
        Ok(timeline::timeline(&self.run.levels, edges_ns, self.hostile))
    }

    fn stacks(&self) -> Result<Stacks, Error> {
        Ok(stacks::stacks(&self.run.levels, self.hostile))
    }

    fn problems(&self) -> Vec<String> {
        if self.hostile { vec![HOSTILE.to_string()] } else { Vec::new() }
    }
}

fn event(t_ns: i64, kind: &str, text: &str) -> Event {
    Event { t_ns, host: "client".to_string(), kind: kind.to_string(), text: text.to_string() }
}

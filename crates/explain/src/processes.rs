//! Processes of any kind: whether they answer requests or not, the time of all their threads is reported.

use std::collections::BTreeMap;

use crate::model::{Evidence, FileWait, Finding, LevelInput, ProcessTime, SeriesName, StateTime};

/// What the process of a recording is called that is of a machine without a server.
pub const THIS_MACHINE: &str = "this machine";
/// What the target of a recording of several hosts without a server is called.
pub const SEVERAL_HOSTS: &str = "several hosts";
/// Sampler of the threads' states; the instance is their role.
const SOURCE: &str = "threads";
/// Files that a level lists, those that were waited for longest.
const FILES_MAX: usize = 50;
/// States that the sentence names, each from this share of the time on.
const STATES_NAMED_MAX: usize = 5;
const STATE_SHARE_MIN: f64 = 0.005;
/// Files that have a sentence of their own, each from this share of the time on.
const FILES_NAMED_MAX: usize = 3;
const FILE_SHARE_MIN: f64 = 0.01;

/// More makes no sense: 30 years in nanoseconds, and more threads than the kernel has numbers for.
const NS_MAX: f64 = 1e18;
const THREADS_MAX: f64 = 1e9;

/// Part of a whole; 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

pub(crate) fn times(levels: &[LevelInput]) -> Vec<ProcessTime> {
    levels.iter().map(time).collect()
}

fn time(level: &LevelInput) -> ProcessTime {
    let mut states: BTreeMap<&str, f64> = BTreeMap::new();
    for counter in level.counters.iter().filter(|counter| counter.series.source == SOURCE) {
        let Some(state) = counter.series.metric.strip_suffix("_ns") else { continue };
        if counter.increase > 0.0 && counter.increase < NS_MAX {
            *states.entry(state).or_default() += counter.increase / 1e9;
        }
    }
    let mut states: Vec<StateTime> =
        states.into_iter().map(|(state, s)| StateTime { state: state.to_string(), s }).collect();
    states.sort_by(|a, b| b.s.total_cmp(&a.s));
    let of_threads = |series: &SeriesName| series.source == SOURCE && series.metric == "count";
    let means = level.gauges.iter().filter(|gauge| of_threads(&gauge.series)).map(|gauge| gauge.mean);
    let counts: Vec<f64> = means.filter(|mean| (0.0..THREADS_MAX).contains(mean)).collect();
    ProcessTime {
        level: level.index,
        seconds: level.end_ns.saturating_sub(level.begin_ns) as f64 / 1e9,
        threads: (!counts.is_empty()).then(|| counts.iter().sum()),
        states,
        files: files(&level.file_waits),
    }
}

/// Whatever the role of those that waited.
fn files(waits: &[FileWait]) -> Vec<FileWait> {
    let mut sums: BTreeMap<(&str, &str), FileWait> = BTreeMap::new();
    let makes_sense =
        |wait: &&FileWait| (0.0..NS_MAX).contains(&wait.ns) && (0.0..NS_MAX).contains(&wait.count);
    for wait in waits.iter().filter(makes_sense) {
        let sum = sums.entry((&wait.path, &wait.state)).or_default();
        sum.path.clone_from(&wait.path);
        sum.state.clone_from(&wait.state);
        sum.count += wait.count;
        sum.ns += wait.ns;
    }
    let mut files: Vec<FileWait> = sums.into_values().collect();
    files.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    files.truncate(FILES_MAX);
    files
}

/// `name`: what the processes are called. `answers`: they were seen to answer requests.
pub(crate) fn findings(
    name: &str,
    levels: &[LevelInput],
    times: &[ProcessTime],
    answers: bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if times.is_empty() {
        let text = format!("No window of {name} was recorded.");
        findings.push(Finding { id: "process".to_string(), text, evidence: Vec::new() });
    }
    for (level, time) in levels.iter().zip(times) {
        let window = if times.len() > 1 { format!("Window {}: ", level.index + 1) } else { String::new() };
        findings.push(Finding {
            id: "process".to_string(),
            text: format!("{window}{}", sentence(name, time, answers)),
            evidence: states_evidence(level, time),
        });
        let thread_s = time.thread_s();
        let long = time.files.iter().filter(|wait| share(wait.ns / 1e9, thread_s) >= FILE_SHARE_MIN);
        findings.extend(long.take(FILES_NAMED_MAX).map(|wait| Finding {
            id: "process-file".to_string(),
            text: format!("{window}{}", file_sentence(wait, thread_s)),
            evidence: series_of(level, &wait.state),
        }));
    }
    findings
}

fn sentence(name: &str, time: &ProcessTime, answers: bool) -> String {
    if name == THIS_MACHINE {
        let seconds = whyso_words::number(time.seconds);
        return format!(
            "{name} was watched for {seconds} s. `whyso programs` shows its CPU time by program."
        );
    }
    let threads = match time.threads {
        Some(threads) => format!("{} threads in the mean, ", whyso_words::number(threads)),
        None => String::new(),
    };
    let thread_s = time.thread_s();
    let were = if name == SEVERAL_HOSTS { "were" } else { "was" };
    let watched = format!(
        "{name} {were} watched for {} s: {threads}{} s of their time{}",
        whyso_words::number(time.seconds),
        whyso_words::number(thread_s),
        match (answers, name) {
            (true, _) => "",
            (false, SEVERAL_HOSTS) => ". They were not seen to answer requests",
            (false, _) => ". It was not seen to answer requests",
        },
    );
    let large = time.states.iter().filter(|state| share(state.s, thread_s) >= STATE_SHARE_MIN);
    let shares: Vec<String> = large
        .take(STATES_NAMED_MAX)
        .map(|state| {
            format!("{} {}", whyso_words::percent(share(state.s, thread_s)), state_words(&state.state))
        })
        .collect();
    match shares.is_empty() {
        true => format!("{watched}; none of its threads was seen."),
        false => format!("{watched}; its threads were {}.", whyso_words::list(&shares)),
    }
}

/// A state as it follows "its threads were 40 %".
fn state_words(state: &str) -> &str {
    match state {
        "cpu" => "on a CPU",
        "runqueue" => "ready while other threads had the CPUs",
        "wakeup" => "woken and not running yet",
        "lock" => "waiting for a lock or a condition of user space (futex)",
        "kernel_lock" => "waiting for a lock inside the kernel",
        "file_read" => "in reads of files",
        "file_write" => "in writes to files",
        "file_sync" => "in syncs of files",
        "net_send" => "sending",
        "net_receive" => "waiting for their peers",
        "upstream" => "waiting for servers that they asked",
        "page_fault" => "waiting for memory pages",
        "sleep" => "asleep",
        "idle" => "idle",
        "aio" => "waiting for asynchronous input and output",
        _ => "in other waits",
    }
}

fn file_sentence(wait: &FileWait, thread_s: f64) -> String {
    let is_folder = wait.path.ends_with('/');
    let what = match (wait.state.as_str(), is_folder) {
        ("kernel_lock", true) => {
            "waiting for the lock of this folder's inode: one thread at a time makes, renames and removes what is in it"
        }
        ("kernel_lock", false) => {
            "waiting for the lock of this file's inode: one thread at a time writes to it"
        }
        ("file_read", _) => "in reads of it",
        ("file_write", _) => "in writes to it",
        ("file_sync", _) => "in syncs of it",
        _ => "in waits for it",
    };
    let path = if wait.path.is_empty() { "a file" } else { &wait.path };
    format!(
        "{path}: {} of the threads' time was spent {what} ({} waits of {} in the mean).",
        whyso_words::percent(share(wait.ns / 1e9, thread_s)),
        whyso_words::whole(wait.count.round() as u64),
        whyso_words::milliseconds(wait.ns / 1e6 / wait.count.max(1.0)),
    )
}

fn states_evidence(level: &LevelInput, time: &ProcessTime) -> Vec<Evidence> {
    time.states.iter().take(STATES_NAMED_MAX).flat_map(|state| series_of(level, &state.state)).collect()
}

fn series_of(level: &LevelInput, state: &str) -> Vec<Evidence> {
    let metric = format!("{state}_ns");
    let of_state = level
        .counters
        .iter()
        .filter(|counter| counter.series.source == SOURCE && counter.series.metric == metric);
    of_state
        .map(|counter| Evidence::Series {
            series: counter.series.clone(),
            begin_ns: level.begin_ns,
            end_ns: level.end_ns,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counter, Gauge, Input};

    fn series(metric: &str, role: &str) -> SeriesName {
        let [host, source] = ["server", SOURCE].map(str::to_string);
        SeriesName { host, source, metric: metric.to_string(), instance: role.to_string() }
    }

    fn counter(metric: &str, role: &str, s: f64) -> Counter {
        Counter { series: series(metric, role), unit: "ns".to_string(), increase: s * 1e9 }
    }

    fn wait(path: &str, state: &str, role: &str, count: f64, s: f64) -> FileWait {
        let [path, state, role] = [path, state, role].map(str::to_string);
        FileWait { path, state, role, count, ns: s * 1e9 }
    }

    fn input() -> Input {
        let level = LevelInput {
            end_ns: 10_000_000_000,
            counters: vec![
                counter("kernel_lock_ns", "other", 50.0),
                counter("cpu_ns", "other", 20.0),
                counter("cpu_ns", "io", 5.0),
                counter("sleep_ns", "other", 5.0),
            ],
            gauges: vec![Gauge {
                series: series("count", "other"),
                unit: "1".to_string(),
                mean: 8.0,
                max: 8.0,
            }],
            file_waits: vec![
                wait("/var/log/access.log", "kernel_lock", "other", 1_000.0, 20.0),
                wait("/var/log/access.log", "kernel_lock", "io", 1_000.0, 20.0),
                wait("/tmp/", "kernel_lock", "other", 100.0, 10.0),
                wait("/etc/passwd", "file_read", "other", 1.0, 0.01),
            ],
            ..LevelInput::default()
        };
        Input { levels: vec![level], process: Some("apache2".to_string()), ..Input::default() }
    }

    #[test]
    fn the_time_of_threads_is_reported_by_state_and_by_file_and_nothing_of_requests() {
        let explained = crate::explain(&input());
        let texts: Vec<&str> = explained.findings.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(
            texts[..3],
            [
                "apache2 was watched for 10 s: 8 threads in the mean, 80 s of their time. It was not seen to answer requests; its \
                 threads were 63 % waiting for a lock inside the kernel, 31 % on a CPU and 6.3 % asleep.",
                "/var/log/access.log: 50 % of the threads' time was spent waiting for the lock of this file's inode: one thread at a \
                 time writes to it (2,000 waits of 20 ms in the mean).",
                "/tmp/: 13 % of the threads' time was spent waiting for the lock of this folder's inode: one thread at a time makes, \
                 renames and removes what is in it (100 waits of 100 ms in the mean).",
            ]
        );
        assert!(explained.findings[3..].iter().all(|finding| finding.id == "not-measured"), "{texts:?}");
        assert_eq!(explained.processes[0].thread_s(), 80.0);
        assert!(explained.suspects.is_empty() && explained.budgets.is_empty() && explained.peak.is_none());
        assert_eq!(explained.levels.len(), 1, "each window has its verdict");
        assert!(explained.levels[0].valid, "{}", explained.levels[0].invalid_why);
    }

    #[test]
    fn a_process_of_which_nothing_was_seen_has_a_finding_that_shows_it() {
        let mut nothing = input();
        nothing.levels[0] = LevelInput { end_ns: 1_000_000_000, ..LevelInput::default() };
        let explained = crate::explain(&nothing);
        assert!(explained.findings[0].text.ends_with("none of its threads was seen."));
        assert!(sentence(THIS_MACHINE, &ProcessTime::default(), false).ends_with("CPU time by program."));
        let mut odd = input();
        odd.levels[0].counters[0].increase = f64::NAN;
        odd.levels[0].file_waits[0].ns = f64::INFINITY;
        for finding in crate::explain(&odd).findings {
            assert!(!finding.text.contains("NaN") && !finding.text.contains("inf"), "{}", finding.text);
        }
    }
}

//! Is this machine fit to measure on? What can be watched here, and what would disturb a measurement.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_trace::{NOTHING, StackSampling, TraceSpec, Tracer};

/// Reads of the clock that are timed together, and how often.
const CLOCK_READS: u32 = 10_000;
const CLOCK_ROUNDS: usize = 21;
/// A clock that takes longer (hpet, acpi_pm) is not read without the kernel.
const CLOCK_SLOW_NS: f64 = 100.0;
const CLOCKS_THERE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
/// How long other programs are looked at.
const QUIET_TIME: Duration = Duration::from_secs(1);
/// Share of the machine's CPU time that others may use.
const OTHERS_MAX: f64 = 0.05;
const FSYNCS: u32 = 20;
/// A disk that syncs faster than this does not, or has a battery.
const FSYNC_FREE_US: f64 = 20.0;
/// Descriptors that a thousand users and their recording need.
const DESCRIPTORS_MIN: u64 = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    /// A measurement is possible, and what it says is to be read with this in mind.
    Warning,
    /// Something can't be done here.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub what: &'static str,
    pub verdict: Verdict,
    /// What was found, and what to do where it is not good.
    pub text: String,
}

/// Looks at everything; takes about two seconds.
pub fn doctor() -> Vec<Check> {
    let facts = whyso_watch::host_facts(None);
    vec![
        server(),
        tracer(),
        stacks(),
        clock(&facts.clocksource),
        quiet(),
        disk(),
        memory(),
        limits(),
        Check {
            what: "machine",
            verdict: Verdict::Good,
            text: format!(
                "{}, {}, {}, {}, kernel {}{}",
                facts.cpu_model,
                whyso_words::count(u64::from(facts.logical_cpus), "CPU"),
                whyso_words::bytes(facts.memory_bytes as f64),
                if facts.virtualization == "none" {
                    "bare metal".to_string()
                } else {
                    facts.virtualization.clone()
                },
                facts.kernel,
                facts.other.iter().map(|(name, value)| format!(", {name} {value}")).collect::<String>()
            ),
        },
    ]
}

fn check(what: &'static str, verdict: Verdict, text: impl Into<String>) -> Check {
    Check { what, verdict, text: text.into() }
}

fn server() -> Check {
    match whyso_server::find(None) {
        Ok(found) => check(
            "server",
            Verdict::Good,
            format!("{} {} can be started as a throw-away server", found.flavor, found.version),
        ),
        Err(error) => check(
            "server",
            Verdict::Warning,
            format!("{error}; a server of your own can be given with --dsn"),
        ),
    }
}

/// Whether the time budget can be measured: the programs are loaded and unloaded again.
fn tracer() -> Check {
    let began = Instant::now();
    match Tracer::start(&TraceSpec { servers: vec![std::process::id()], cost: true, ..TraceSpec::default() })
    {
        Ok(tracer) => {
            std::thread::sleep(Duration::from_millis(200));
            let costs = tracer.cost();
            let (runs, ns) = costs
                .iter()
                .filter(|cost| cost.program != NOTHING)
                .fold((0, 0), |(runs, ns), cost| (runs + cost.runs, ns + cost.ns));
            // The kernel counts it for CAP_SYS_ADMIN alone.
            let each = if runs == 0 {
                String::new()
            } else {
                format!("; {} a run of a program", whyso_words::nanoseconds(ns as f64 / runs as f64))
            };
            check(
                "time budget",
                Verdict::Good,
                format!(
                    "thread states and requests can be traced (loaded in {}{each})",
                    whyso_words::seconds(began.elapsed().as_secs_f64())
                ),
            )
        }
        Err(error) => {
            // Of our own process all may be read: what counts is whether another user's may be.
            let instead = if may_look_at_others() {
                "the states of the server's threads are sampled from /proc"
            } else {
                "the states of the server's threads are sampled from /proc where it is a process of the same user with no \
                 more capabilities, and of others it is only known when they ran"
            };
            check("time budget", Verdict::Missing, format!("{error}; without it {instead}"))
        }
    }
}

/// Whether stacks can be recorded: all of their programs are loaded and unloaded again.
fn stacks() -> Check {
    let began = Instant::now();
    let servers = vec![std::process::id()];
    let tracer = Tracer::start(&TraceSpec { servers, stacks: StackSampling::Full, ..TraceSpec::default() });
    match tracer.and_then(|tracer| tracer.stacks().map(drop)) {
        Ok(()) => {
            let text = format!(
                "stacks of threads and of waits can be taken (loaded in {})",
                whyso_words::seconds(began.elapsed().as_secs_f64())
            );
            check("stacks", Verdict::Good, text)
        }
        Err(error) => {
            let without = "without it no functions are named, and locks are not split by wait class";
            check("stacks", Verdict::Missing, format!("{error}; {without}"))
        }
    }
}

/// Whether this process has CAP_SYS_PTRACE.
fn may_look_at_others() -> bool {
    const SYS_PTRACE: u64 = 1 << 19;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .is_some_and(|all| all & SYS_PTRACE != 0)
}

fn clock(source: &str) -> Check {
    let each_ns = median_ns(|| {
        std::hint::black_box(monotonic_ns());
    });
    let text = format!("{source}, {} a read{}", whyso_words::nanoseconds(each_ns), cycle_counter());
    if each_ns > CLOCK_SLOW_NS {
        let others = std::fs::read_to_string(CLOCKS_THERE).unwrap_or_default();
        check("clock", Verdict::Warning, format!("{text}: slow; {}", faster_clock(source, &others)))
    } else {
        check("clock", Verdict::Good, text)
    }
}

/// What a slow clock means, and what to do.
fn faster_clock(source: &str, there: &str) -> String {
    let why = "a server that times itself (the Performance Schema) pays this twice an event";
    let better = ["tsc", "kvm-clock", "arch_sys_counter"]
        .into_iter()
        .find(|name| *name != source && there.split_whitespace().any(|word| word == *name));
    match better {
        Some(better) => format!(
            "{why}: as root, echo {better} > /sys/devices/system/clocksource/clocksource0/current_clocksource, where the kernel \
             still trusts it"
        ),
        None => format!(
            "{why}, and the kernel offers no faster clock source: time with --pfs-timing no or cycles, or measure on another machine"
        ),
    }
}

/// Returns the cost of reading the processor's own cycle counter, for comparison. Empty where there is none.
fn cycle_counter() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let each_ns = median_ns(|| {
            // SAFETY: every x86-64 processor has this instruction; it reads a counter and touches no memory.
            #[allow(unused_unsafe, reason = "it is safe to call in later compilers")]
            let cycles = unsafe { std::arch::x86_64::_rdtsc() };
            std::hint::black_box(cycles);
        });
        format!(" (the processor's cycle counter: {})", whyso_words::nanoseconds(each_ns))
    }
    #[cfg(not(target_arch = "x86_64"))]
    String::new()
}

/// Nanoseconds that a read takes: the median of rounds, so that an interruption does not count.
fn median_ns(read: impl Fn()) -> f64 {
    let mut rounds = [0.0; CLOCK_ROUNDS];
    for round in &mut rounds {
        let begin = Instant::now();
        for _ in 0..CLOCK_READS {
            read();
        }
        *round = begin.elapsed().as_nanos() as f64 / f64::from(CLOCK_READS);
    }
    rounds.sort_by(f64::total_cmp);
    rounds[CLOCK_ROUNDS / 2]
}

/// What others use of the CPUs, over a second.
fn quiet() -> Check {
    let Some(before) = cpu_times() else {
        return check(
            "quiet",
            Verdict::Warning,
            "/proc/stat can't be read: it is not known what else runs here",
        );
    };
    std::thread::sleep(QUIET_TIME);
    let Some(after) = cpu_times() else {
        return check(
            "quiet",
            Verdict::Warning,
            "/proc/stat can't be read: it is not known what else runs here",
        );
    };
    let all = (after.all - before.all).max(1.0);
    let (busy, steal) = ((after.busy - before.busy) / all, (after.steal - before.steal) / all);
    let percent = whyso_words::percent;
    let text = format!("{} of the CPUs busy, {} stolen by the hypervisor", percent(busy), percent(steal));
    if busy > OTHERS_MAX || steal > OTHERS_MAX / 5.0 {
        check(
            "quiet",
            Verdict::Warning,
            format!("{text}: others disturb what is measured; end them, or repeat more often"),
        )
    } else {
        check("quiet", Verdict::Good, text)
    }
}

struct CpuTimes {
    all: f64,
    busy: f64,
    steal: f64,
}

fn cpu_times() -> Option<CpuTimes> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<f64> = stat
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|tick| tick.parse().ok())
        .collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks[..] else { return None };
    let busy = user + nice + system + irq + softirq;
    Some(CpuTimes { all: busy + idle + iowait + steal, busy, steal })
}

/// How long a sync takes where throw-away servers keep their data.
fn disk() -> Check {
    let folder = match whyso_server::throwaway::default_parent_dir() {
        Ok(folder) => folder,
        Err(error) => return check("disk", Verdict::Warning, error.to_string()),
    };
    match fsync_us(&folder) {
        Ok(us) if us < FSYNC_FREE_US => check(
            "disk",
            Verdict::Warning,
            format!(
                "a sync in {} takes {}: as good as none; findings about the disk would not hold elsewhere",
                folder.display(),
                whyso_words::nanoseconds(us * 1e3)
            ),
        ),
        Ok(us) => check(
            "disk",
            Verdict::Good,
            format!("a sync in {} takes {}", folder.display(), whyso_words::nanoseconds(us * 1e3)),
        ),
        Err(error) => check(
            "disk",
            Verdict::Missing,
            format!("{} can't be written: {error}; name another with --server-dir", folder.display()),
        ),
    }
}

fn fsync_us(folder: &Path) -> std::io::Result<f64> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("doctor-{}", std::process::id()));
    let timed = (|| {
        let mut file = std::fs::File::create(&path)?;
        let mut times = Vec::new();
        for _ in 0..FSYNCS {
            file.write_all(&[1; 512])?;
            let begin = Instant::now();
            file.sync_data()?;
            times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    })();
    let removed = std::fs::remove_file(&path);
    timed.and_then(|us| removed.map(|()| us))
}

fn memory() -> Check {
    let read = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |name: &str| -> f64 {
        let line = read.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0.0)
    };
    let swapped = kib("SwapTotal:") - kib("SwapFree:");
    let text =
        format!("{} available", whyso_words::change(kib("MemAvailable:"), kib("MemTotal:"), "KiB", " of "));
    if swapped > 65_536.0 {
        check(
            "memory",
            Verdict::Warning,
            format!(
                "{text}, {} swapped out: what is swapped in will be measured",
                whyso_words::amount(swapped, "KiB")
            ),
        )
    } else {
        check("memory", Verdict::Good, text)
    }
}

fn limits() -> Check {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if most < DESCRIPTORS_MIN {
        return check(
            "limits",
            Verdict::Warning,
            format!(
                "at most {most} open files: a thousand users need more; raise it with ulimit -n {DESCRIPTORS_MIN}"
            ),
        );
    }
    check("limits", Verdict::Good, format!("at most {most} open files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_runs_once_and_reports_something() {
        let checks = doctor();
        let mut names: Vec<&str> = checks.iter().map(|check| check.what).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), checks.len());
        for check in checks {
            assert!(check.text.len() > 5, "{check:?}");
        }
    }

    #[test]
    fn a_slow_clock_is_exchanged_for_one_that_the_kernel_has() {
        assert!(faster_clock("hpet", "tsc hpet acpi_pm").contains("echo tsc >"));
        assert!(faster_clock("hpet", "hpet acpi_pm").contains("no faster clock source"));
        assert!(faster_clock("tsc", "tsc").contains("no faster clock source"));
    }

    #[test]
    fn a_read_of_a_clock_takes_time() {
        let each_ns = median_ns(|| {
            std::hint::black_box((0..50).fold(0_u64, |sum, one| std::hint::black_box(sum + one)));
        });
        assert!(each_ns > 1.0, "{each_ns}");
    }

    #[test]
    fn a_folder_that_can_not_be_written_is_reported() {
        assert!(fsync_us(Path::new("/proc/nowhere")).is_err());
    }
}

//! CPU use over a window, from what the counters of the operating system grew by.

use crate::model::{Counter, CpuUse, SeriesName};

const NS_PER_S: f64 = 1e9;

/// The use of the CPUs of the server's machine, as fractions of all its CPUs' time, from the counters of source "cpu",
/// instance "all". `None` where they were not recorded: those of the generator's machine show nothing about the server.
pub fn cpu_use(counters: &[Counter]) -> Option<CpuUse> {
    let mut parts = CpuUse::default();
    let mut total = 0.0;
    for counter in counters {
        let is_all = counter.series.source == "cpu" && counter.series.instance == "all";
        if !is_all || counter.series.is_of_generator() {
            continue;
        }
        let part = match counter.series.metric.as_str() {
            "user_ns" | "nice_ns" => &mut parts.user,
            "system_ns" | "irq_ns" | "softirq_ns" => &mut parts.system,
            "iowait_ns" => &mut parts.iowait,
            "steal_ns" => &mut parts.steal,
            "idle_ns" => &mut parts.idle,
            _ => continue,
        };
        *part += counter.increase;
        total += counter.increase;
    }
    if total <= 0.0 {
        return None;
    }
    for part in [&mut parts.user, &mut parts.system, &mut parts.iowait, &mut parts.steal, &mut parts.idle] {
        *part /= total;
    }
    Some(parts)
}

/// CPU seconds of the server's process, its ended threads included. `None` where the server's process
/// was not watched.
pub fn server_cpu_s(counters: &[Counter]) -> Option<f64> {
    let is_server_cpu = |series: &SeriesName| {
        series.source == "server_process" && series.instance == "server" && series.metric == "run_ns"
    };
    let counter = counters.iter().find(|counter| is_server_cpu(&counter.series))?;
    Some(counter.increase / NS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(source: &str, instance: &str, metric: &str, increase: f64) -> Counter {
        let series = SeriesName {
            host: "server".to_string(),
            source: source.to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
        };
        Counter { series, unit: "ns".to_string(), increase }
    }

    #[test]
    fn fractions_are_of_the_whole_machine_and_guests_count_once() {
        let counters = [
            counter("cpu", "all", "user_ns", 6e9),
            counter("cpu", "all", "guest_ns", 6e9),
            counter("cpu", "all", "softirq_ns", 1e9),
            counter("cpu", "all", "idle_ns", 3e9),
            counter("cpu", "cpu0", "idle_ns", 3e9),
            counter("server_process", "server", "run_ns", 2.5e9),
        ];
        let cpu = cpu_use(&counters).unwrap();
        assert_eq!((cpu.user, cpu.system, cpu.idle), (0.6, 0.1, 0.3));
        assert_eq!(server_cpu_s(&counters), Some(2.5));
        assert_eq!(cpu_use(&[]), None);
        let elsewhere = counters.map(|mut counter| {
            counter.series.host = "client".to_string();
            counter
        });
        assert_eq!(cpu_use(&elsewhere), None, "the server is on another machine");
    }
}

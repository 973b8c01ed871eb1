//! Clients that are neither the load nor whyso itself, at work while a level was measured. The budget holds nothing of their time.

use crate::budget::{SOURCE, is_relayed};
use crate::level::{Level, levels_evidence};
use crate::model::{Finding, OtherClients};

/// Source of the times of the server's threads by role.
const THREADS: &str = "threads";

/// From this share of the server's CPU time, of the load's queries, or of its connections on, other clients are a finding.
const CPU_SHARE_MIN: f64 = 0.01;
const REQUESTS_SHARE_MIN: f64 = 0.01;
const CONNECTIONS_SHARE_MIN: f64 = 0.25;

/// What other clients did. `None` where they can't be distinguished from the load:
///
/// - nothing was traced,
/// - something else than whyso or its command loaded the server,
/// - or a relay brought the load's requests.
pub(crate) fn other_clients(level: &Level) -> Option<OtherClients> {
    let grown = |metric: &str| Some(level.counter(SOURCE, metric, "")?.increase);
    let requests = grown("other_clients_requests")?;
    let connections = grown("other_clients_connections")?;
    let cpu_ns = grown("other_clients_cpu_ns")?;
    if level.seconds <= 0.0 || is_relayed(grown("requests")?, grown("relayed_requests")?) {
        return None;
    }
    let of_threads =
        |series: &crate::model::SeriesName| series.source == THREADS && series.metric == "cpu_ns";
    let server_ns: f64 = level
        .counters
        .iter()
        .filter(|counter| of_threads(&counter.series) && (0.0..1e24).contains(&counter.increase))
        .map(|counter| counter.increase)
        .sum();
    Some(OtherClients {
        connections: connections.round() as u64,
        requests_per_s: requests / level.seconds,
        cpu_share: if server_ns > 0.0 { (cpu_ns / server_ns).min(1.0) } else { 0.0 },
    })
}

/// Whether they may have mattered to the load.
fn matters(others: &OtherClients, level: &Level) -> bool {
    let queries_per_s = level.queries as f64 / level.seconds;
    others.cpu_share >= CPU_SHARE_MIN
        || others.requests_per_s >= REQUESTS_SHARE_MIN * queries_per_s.max(1.0)
        || others.connections as f64 > CONNECTIONS_SHARE_MIN * f64::from(level.users)
}

/// Which levels other clients were at work in, and how much. `about`: the level to quote; where nobody was at work in it, the
/// one in which they used the most of the server.
pub(crate) fn finding(levels: &[Level], about: Option<usize>) -> Option<Finding> {
    let of = |level: &Level| level.verdict.other_clients.filter(|others| matters(others, level));
    let disturbed: Vec<&Level> = levels.iter().filter(|level| of(level).is_some()).collect();
    let most = disturbed.iter().copied().max_by(|a, b| {
        let by =
            |level: &Level| of(level).map_or((0.0, 0.0), |others| (others.cpu_share, others.requests_per_s));
        by(a).partial_cmp(&by(b)).unwrap_or(std::cmp::Ordering::Equal)
    })?;
    let quoted = about.map(|at| &levels[at]).filter(|level| of(level).is_some()).unwrap_or(most);
    let OtherClients { connections, requests_per_s, cpu_share } = of(quoted)?;
    let text = format!(
        "Other clients were at work: at {} they had {} connection{}, sent {} requests per second and used {} of the server's CPU \
         time. The budget contains nothing of their time, but they may have held what the load waited for.",
        quoted.name(),
        whyso_words::whole(connections),
        if connections == 1 { "" } else { "s" },
        whyso_words::number(requests_per_s),
        whyso_words::percent(cpu_share),
    );
    let evidence = vec![levels_evidence("other_clients", &disturbed)];
    Some(Finding { id: "other-clients".to_string(), text, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counter, LevelInput, Machine, SeriesName};

    fn counter(source: &str, metric: &str, instance: &str, increase: f64) -> Counter {
        let series = SeriesName {
            host: "server".to_string(),
            source: source.to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
        };
        Counter { series, unit: String::new(), increase }
    }

    /// Ten seconds of 4 users with 1,000 requests per second; `others`: requests, connections and CPU time of other clients.
    fn input(others: [f64; 3], relayed: f64) -> LevelInput {
        let [requests, connections, cpu_ns] = others;
        LevelInput {
            users: 4,
            end_ns: 10_000_000_000,
            transactions: 10_000,
            queries: 10_000,
            counters: vec![
                counter("trace", "requests", "", 10_000.0),
                counter("trace", "relayed_requests", "", relayed),
                counter("trace", "other_clients_requests", "", requests),
                counter("trace", "other_clients_connections", "", connections),
                counter("trace", "other_clients_cpu_ns", "", cpu_ns),
                counter("threads", "cpu_ns", "connection", 6e9),
                counter("threads", "cpu_ns", "purge", 2e9),
            ],
            ..LevelInput::default()
        }
    }

    fn find_others(input: &LevelInput) -> (Option<OtherClients>, Option<String>) {
        let level = crate::verdict::judge(input, &Machine::default());
        let others = level.verdict.other_clients;
        (others, finding(&[level], Some(0)).map(|finding| finding.text))
    }

    #[test]
    fn other_clients_are_reported_with_their_share_of_the_servers_cpu_time() {
        let (others, text) = find_others(&input([200.0, 19.97, 0.4e9], 0.0));
        assert_eq!(others, Some(OtherClients { connections: 20, requests_per_s: 20.0, cpu_share: 0.05 }));
        let text = text.unwrap();
        assert!(
            text.contains("at 4 users they had 20 connections, sent 20 requests per second and used 5"),
            "{text}"
        );
    }

    #[test]
    fn a_monitor_that_asks_now_and_then_is_reported_and_no_finding() {
        let (others, text) = find_others(&input([10.0, 1.0, 1e6], 0.0));
        assert_eq!(others.map(|others| others.connections), Some(1));
        assert_eq!(text, None);
        assert_eq!(find_others(&input([0.0; 3], 0.0)), (Some(OtherClients::default()), None));
    }

    #[test]
    fn what_can_not_be_distinguished_from_the_load_is_unknown() {
        assert_eq!(find_others(&input([0.0; 3], 10_000.0)), (None, None), "a relay brought all requests");
        assert_eq!(find_others(&LevelInput { counters: Vec::new(), ..input([0.0; 3], 0.0) }), (None, None));
    }
}

//! Local ports that ran out: connections that failed for that, and ports in use to one destination.

use std::net::SocketAddr;

use whyso_model::tier;
use whyso_words::{count, percent, whole};

use crate::level::Level;
use crate::model::{Counter, Finding, TierCause, TierTime};

/// From this share of the range on, ports in use to one destination are scarce.
const SCARCE_MIN: f64 = 0.9;
const PORTS: &str = "ports";
/// More makes no sense.
const COUNT_MAX: f64 = 1e15;

/// A destination to which ports were scarce.
#[derive(Clone, Debug, PartialEq)]
struct Scarce<'a> {
    /// Such as "127.0.0.1:3306".
    destination: &'a str,
    used: f64,
    time_wait: f64,
    range: f64,
}

/// Connections of a program that failed.
#[derive(Clone, Debug, PartialEq)]
struct ConnectFailures<'a> {
    program: &'a str,
    /// Such as "tcp 3306".
    address: &'a str,
    count: f64,
}

/// Names the cause of first tiers where ports to a server behind them ran out. Failures come before what takes time. Scarce ports are only
/// named where nothing else has a name: a port can be used again before its time is over.
pub(crate) fn name_causes(level: &Level, only: Option<&str>, tiers: &mut [TierTime]) {
    let scarce = scarce(level);
    let failed = failed(level, only);
    let asked: Vec<(String, bool)> = tiers
        .iter()
        .flat_map(|tier| {
            let fails = |address: &str| {
                failed.iter().any(|each| each.program == tier.name && each.address == address)
            };
            let found: Vec<(String, bool)> = tier
                .upstreams
                .iter()
                .filter(|upstream| {
                    fails(&upstream.address) || scarce.iter().any(|each| each.is_at(&upstream.address))
                })
                .map(|upstream| (tier.name.clone(), fails(&upstream.address)))
                .collect();
            found
        })
        .collect();
    if asked.is_empty() {
        return;
    }
    for tier in tiers.iter_mut().filter(|tier| tier.is_first && !tier.lines.is_empty()) {
        let mut behind = asked
            .iter()
            .filter(|(name, _)| *name == tier.name || tier.lines.iter().any(|line| line.tier == *name))
            .peekable();
        if behind.peek().is_some() && (tier.cause.is_none() || behind.any(|(_, fails)| *fails)) {
            tier.cause = Some(TierCause::EphemeralPorts);
        }
    }
}

/// A sentence for each program whose connections failed, and for each destination to which ports were scarce.
pub(crate) fn findings(level: &Level, only: Option<&str>) -> Vec<Finding> {
    let scarce = scarce(level);
    let failed = failed(level, only);
    let mut texts: Vec<String> = failed
        .iter()
        .map(|each| {
            format!(
                "{} failed to connect to {} {}: no local port was left.{}",
                each.program,
                each.address,
                count(each.count.round().max(1.0) as u64, "time"),
                scarce
                    .iter()
                    .find(|ports| ports.is_at(each.address))
                    .map_or_else(String::new, |ports| format!(" {}", ports.words()))
            )
        })
        .collect();
    let is_named = |ports: &&Scarce| !failed.iter().any(|each| ports.is_at(each.address));
    texts.extend(scarce.iter().filter(is_named).map(|ports| {
        format!("{} When none is left, connections fail. No such failure was counted.", ports.words())
    }));
    let finding = |text: String| Finding {
        id: "ephemeral-ports".to_string(),
        text: format!("{text} Keep connections open, or widen net.ipv4.ip_local_port_range."),
        evidence: Vec::new(),
    };
    texts.into_iter().map(finding).collect()
}

impl Scarce<'_> {
    fn words(&self) -> String {
        format!(
            "Up to {} of the {} local ports, {}, were in use to {}, {} of them by closed connections (TIME_WAIT).",
            whole(self.used.round() as u64),
            whole(self.range.round() as u64),
            percent(self.used / self.range),
            self.destination,
            whole(self.time_wait.round() as u64),
        )
    }

    /// Whether it is the server behind at an address such as "tcp 3306", which is on this machine, or "tcp 192.0.2.7:3306".
    fn is_at(&self, address: &str) -> bool {
        match address.strip_prefix("tcp ") {
            Some(with_host) if with_host.contains(':') => with_host == self.destination,
            Some(port) => self
                .destination
                .parse::<SocketAddr>()
                .is_ok_and(|own| own.ip().is_loopback() && own.port().to_string() == port),
            None => false,
        }
    }
}

fn scarce<'a>(level: &Level<'a>) -> Vec<Scarce<'a>> {
    if level.is_over_hosts() {
        return Vec::new();
    }
    let Some(range) = level.gauge(PORTS, "range", "").map(|gauge| gauge.max).filter(|range| *range >= 1.0)
    else {
        return Vec::new();
    };
    let of = level.gauges.iter().filter(|gauge| {
        gauge.series.source == PORTS && gauge.series.metric == "used" && (0.0..COUNT_MAX).contains(&gauge.max)
    });
    let scarce = of.filter(|gauge| gauge.max >= SCARCE_MIN * range).map(|gauge| {
        let destination = gauge.series.instance.as_str();
        let time_wait = level.gauge(PORTS, "time_wait", destination).map_or(0.0, |gauge| gauge.max);
        Scarce { destination, used: gauge.max, time_wait: time_wait.clamp(0.0, gauge.max), range }
    });
    scarce.collect()
}

/// `only`: what the watched processes are called, where they are the only target.
fn failed<'a>(level: &Level<'a>, only: Option<&'a str>) -> Vec<ConnectFailures<'a>> {
    let first = level.nodes.first().map(|node| node.name.as_str()).or(only).unwrap_or("the program");
    let of = |program: &'a str, counters: &'a [Counter]| {
        let failures = counters.iter().filter(|counter| {
            counter.series.source == tier::UPSTREAM
                && counter.series.metric == tier::WITHOUT_PORT
                && (f64::MIN_POSITIVE..COUNT_MAX).contains(&counter.increase)
        });
        failures.map(move |counter| ConnectFailures {
            program,
            address: &counter.series.instance,
            count: counter.increase,
        })
    };
    let mut found: Vec<ConnectFailures<'a>> =
        level.nodes.iter().flat_map(|node| of(&node.name, &node.counters)).collect();
    if level.nodes.is_empty() {
        found.extend(of(first, level.counters));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Gauge, Input, LevelInput, SeriesName};

    fn gauge(metric: &str, instance: &str, max: f64) -> Gauge {
        let [host, source, metric, instance] = ["server", PORTS, metric, instance].map(str::to_string);
        Gauge { series: SeriesName { host, source, metric, instance }, unit: "1".to_string(), mean: max, max }
    }

    fn input(used: f64, failures: f64) -> Input {
        let [host, source, metric, instance] =
            ["server", tier::UPSTREAM, tier::WITHOUT_PORT, "tcp 3306"].map(str::to_string);
        let series = SeriesName { host, source, metric, instance };
        let level = LevelInput {
            end_ns: 10_000_000_000,
            counters: vec![Counter { series, unit: "1".to_string(), increase: failures }],
            gauges: vec![
                gauge("range", "", 200.0),
                gauge("used", "127.0.0.1:3306", used),
                gauge("time_wait", "127.0.0.1:3306", used - 1.0),
                gauge("used", "127.0.0.1:80", 20.0),
            ],
            ..LevelInput::default()
        };
        Input { levels: vec![level], process: Some("php".to_string()), ..Input::default() }
    }

    fn texts(input: &Input) -> Vec<String> {
        let findings = crate::explain(input).findings;
        findings
            .into_iter()
            .filter(|finding| finding.id == "ephemeral-ports")
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn failures_are_named_with_their_number_and_the_ports_in_use() {
        assert_eq!(
            texts(&input(198.0, 1_204.0)),
            [
                "php failed to connect to tcp 3306 1,204 times: no local port was left. Up to 198 of the 200 local ports, 99 %, were in use to \
              127.0.0.1:3306, 197 of them by closed connections (TIME_WAIT). Keep connections open, or widen net.ipv4.ip_local_port_range."
            ]
        );
        assert!(
            texts(&input(20.0, 3.0))[0]
                .starts_with("php failed to connect to tcp 3306 3 times: no local port was left. Keep")
        );
    }

    #[test]
    fn scarce_ports_without_a_failure_are_reported_as_such_and_enough_ports_not_at_all() {
        let scarce = texts(&input(180.0, 0.0));
        assert!(scarce.len() == 1 && scarce[0].contains("No such failure was counted"), "{scarce:?}");
        assert_eq!(texts(&input(179.0, 0.0)), [] as [String; 0]);
        let mut odd = input(f64::NAN, f64::INFINITY);
        odd.levels[0].gauges[0].max = f64::NAN;
        assert_eq!(texts(&odd), [] as [String; 0]);
    }

    #[test]
    fn an_address_of_this_machine_is_known_by_its_port() {
        let to = |destination| Scarce { destination, used: 1.0, time_wait: 0.0, range: 1.0 };
        assert!(to("127.0.0.1:3306").is_at("tcp 3306") && to("[::1]:3306").is_at("tcp 3306"));
        let ports = to("192.0.2.7:3306");
        assert!(ports.is_at("tcp 192.0.2.7:3306") && !ports.is_at("tcp 3306"));
        assert!(
            !ports.is_at("tcp 192.0.2.8:3306") && !ports.is_at("unix /run/3306") && !ports.is_at("tcp 306")
        );
    }
}

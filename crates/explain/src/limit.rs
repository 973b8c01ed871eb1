//! What stopped throughput: the CPU, or something else? And what grows per transaction?

use crate::generator::IDLE_FULL;
use crate::growth::{CounterGrowth, Span, as_ms};
use crate::level::{Level, levels_evidence};
use crate::meanings::Kind;
use crate::model::{Evidence, Finding, Machine};
use crate::others;
use crate::regime::{Shape, ratio};

/// The server's own CPUs are full from this share of their time.
const SERVER_FULL_SHARE: f64 = 0.9;

/// From here to full, the CPUs are part of the limit: a few threads seldom keep all of them busy all
/// the time.
const SERVER_NEARLY_FULL_SHARE: f64 = 0.8;
const IDLE_NEARLY_FULL: f64 = 0.15;

/// Shares of CPU time worth a word.
const IOWAIT_MIN: f64 = 0.10;

/// Suspects that a sentence names.
const NAMED_MAX: usize = 4;

/// A counter is named when it surely grew by this.
const NAMED_RATIO_MIN: f64 = 1.2;

/// CPU time counts from less: 10 % more of it is 10 % less throughput on full CPUs.
const NAMED_RATIO_MIN_CPU: f64 = 1.05;

const NAMED_MATTERS_MIN: f64 = 0.05;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpus {
    Full,
    NearlyFull,
    NotFull,
    Unknown,
}

fn cpus(level: &Level, machine: &Machine) -> Cpus {
    let server_share = level.server_cpu_share(machine);
    if server_share.is_some_and(|share| share >= SERVER_FULL_SHARE) {
        return Cpus::Full;
    }
    // A server with CPUs of its own is judged by them, not by the machine around it.
    if !machine.shared
        && let Some(share) = server_share
    {
        return if share >= SERVER_NEARLY_FULL_SHARE { Cpus::NearlyFull } else { Cpus::NotFull };
    }
    match level.cpu {
        Some(cpu) if cpu.idle + cpu.iowait < IDLE_FULL => Cpus::Full,
        Some(cpu) if cpu.idle + cpu.iowait < IDLE_NEARLY_FULL => Cpus::NearlyFull,
        Some(_) => Cpus::NotFull,
        None => Cpus::Unknown,
    }
}

/// Whether the CPUs limited the best level; with what grows instead where they did not.
pub(crate) fn finding(
    shape: &Shape,
    levels: &[Level],
    machine: &Machine,
    span: Option<Span>,
    counters: &[CounterGrowth],
) -> Option<Finding> {
    let best = &levels[*shape.best_point().positions.first()?];
    let shares = shares(best, machine);
    let users = best.name();
    let mut shown = vec![best];
    let (id, text) = match cpus(best, machine) {
        Cpus::Full => {
            let mut text = format!(
                "The CPUs were full at {users}: {shares}. As far as the counters tell, the CPU is the limit."
            );
            if let Some(span) = span
                && let Some(sentence) = cpu_per_transaction(span)
            {
                text.push_str(&sentence);
                shown.push(span.last);
            }
            ("server-cpu-full", text)
        }
        _ if shape.still_rising || shape.points.len() < 2 => return None,
        Cpus::NotFull | Cpus::NearlyFull => {
            let named = named(counters);
            let instead = match (named.first(), span) {
                (Some(_), Some(span)) => {
                    let names: Vec<String> = named.iter().map(|counter| name(counter)).collect();
                    format!(
                        "As far as the counters tell, what grows per {} from {} to {} users is: {}.",
                        best.unit(),
                        span.best.users,
                        span.last.users,
                        whyso_words::list(&names),
                    )
                }
                _ => "No counter that was recorded grows enough to say what is.".to_string(),
            };
            if cpus(best, machine) == Cpus::NearlyFull {
                let text = format!(
                    "The CPUs were nearly full at {users}, the best level: {shares}. They're part of the limit. {instead}"
                );
                ("server-cpu-nearly-full", text)
            } else {
                let text =
                    format!("The CPUs were not the limit: at {users}, the best level, {shares}. {instead}");
                ("limit-not-cpu", text)
            }
        }
        Cpus::Unknown => {
            let text = format!(
                "Whether the CPUs were the limit at {users}, the best level, is unknown: their use was not measured."
            );
            ("limit-unknown", text)
        }
    };
    let mut evidence = vec![levels_evidence("cpu", &shown)];
    if matches!(id, "limit-not-cpu" | "server-cpu-nearly-full") {
        evidence.extend(series_evidence(&named(counters), span));
    }
    Some(Finding { id: id.to_string(), text, evidence })
}

/// Response time and throughput from the best level to the last, and the counters that grow.
pub(crate) fn growth_finding(span: Span, counters: &[CounterGrowth]) -> Finding {
    let Span { best, last } = span;
    let unit = last.unit();
    let mut text = format!("From {} to {} users ", best.users, last.users);
    if last.is_unstable() {
        text.push_str("(which was unstable; these numbers are of its whole window) ");
    }
    if let (Some(best_ms), Some(last_ms)) = (best.latency_mean_ms, last.latency_mean_ms) {
        let verb = if last_ms >= best_ms { "grew" } else { "went" };
        text.push_str(&format!(
            "a {unit}'s response time {verb} from {} while ",
            whyso_words::change(best_ms, last_ms, "ms", " to "),
        ));
    }
    let rise = ratio(mean_per_s(last), mean_per_s(best)) - 1.0;
    text.push_str(&if rise.abs() < 0.005 {
        "throughput stayed the same".to_string()
    } else if rise < 0.0 {
        format!("throughput fell by {}", whyso_words::percent(-rise))
    } else {
        format!("throughput rose by {}", whyso_words::percent(rise))
    });
    if let (Some(best_cpu), Some(last_cpu)) = (best.cpu, last.cpu)
        && (last_cpu.idle - best_cpu.idle).abs() >= 0.05
    {
        text.push_str(&format!(
            " and the machine's idle CPU time went from {} to {}",
            whyso_words::percent(best_cpu.idle.max(0.0)),
            whyso_words::percent(last_cpu.idle.max(0.0)),
        ));
    }
    let named = named(counters);
    if counters.is_empty() {
        text.push_str("; no counters were recorded that could tell more.");
    } else if named.is_empty() {
        text.push_str(&format!("; no counter grew per {unit} in a way that stands out."));
    } else {
        let parts: Vec<String> = named.iter().map(|counter| change(counter, span)).collect();
        text.push_str(&format!("; per {unit}, {}.", whyso_words::list(&parts)));
        text.push_str(" These counters go with the change; they don't prove its cause.");
    }
    text.push_str(&waiting_for_a_turn(span).unwrap_or_default());
    let mut evidence = vec![
        levels_evidence("latency_mean_ms", &[best, last]),
        levels_evidence("transactions_per_s", &[best, last]),
    ];
    evidence.extend(series_evidence(&named, Some(span)));
    Finding { id: "growth".to_string(), text, evidence }
}

/// In a closed loop the response time is the users over the throughput (J. D. C. Little, 1961). It is in the text where more users only
/// waited.
fn waiting_for_a_turn(span: Span) -> Option<String> {
    let Span { best, last } = span;
    if last.is_unstable() {
        return None;
    }
    let measured_ms = last.latency_mean_ms?;
    let per_s = mean_per_s(last);
    let little_ms = f64::from(last.users) / per_s * 1e3;
    let is_closed_loop = (0.9..=1.1).contains(&ratio(little_ms, measured_ms));
    let is_flat = ratio(per_s, mean_per_s(best)) > 0.85;
    if !is_closed_loop || !is_flat || last.users < best.users.saturating_mul(2) {
        return None;
    }
    Some(format!(
        " The response time is the users over the throughput ({} ÷ {}/s = {}): more users only wait longer for their turn.",
        whyso_words::whole(u64::from(last.users)),
        whyso_words::number(per_s),
        whyso_words::milliseconds(little_ms),
    ))
}

/// Over the whole window, as the counters are.
fn mean_per_s(level: &Level) -> f64 {
    level.transactions as f64 / level.seconds
}

/// "context switches grew 3.1-fold (4 → 12.4)"
fn change(counter: &CounterGrowth, span: Span) -> String {
    let growth = &counter.growth;
    let name = name(counter);
    let covered = share_covered(counter, span);
    let pair = |between| {
        whyso_words::change(growth.best_per_transaction, growth.last_per_transaction, &growth.unit, between)
    };
    match growth.ratio {
        Some(ratio) if ratio < RATIO_AS_FOLD_MAX => {
            let covered = covered.map_or(String::new(), |covered| format!("; {covered}"));
            format!("{name} grew {} ({}{covered})", whyso_words::growth(ratio), pair(" → "))
        }
        _ => {
            let covered = covered.map_or(String::new(), |covered| format!(" ({covered})"));
            format!("{name} went from {}{covered}", pair(" to "))
        }
    }
}

/// "as much as 85 % of the growth in response time", for a waiting time that covers a good part of it.
fn share_covered(counter: &CounterGrowth, span: Span) -> Option<String> {
    if counter.meaning.kind != Kind::WaitTime {
        return None;
    }
    let growth = &counter.growth;
    let grown_ms = as_ms(growth.last_per_transaction - growth.best_per_transaction, &growth.unit)?;
    let share = ratio(grown_ms, span.last.latency_mean_ms? - span.best.latency_mean_ms?);
    // Past all of it the waiting is not the transactions' own alone.
    (0.1..=1.05)
        .contains(&share)
        .then(|| format!("as much as {} of the growth in response time", whyso_words::percent(share)))
}

/// Beyond this a pair of numbers shows more than the ratio.
const RATIO_AS_FOLD_MAX: f64 = 20.0;

/// The first few that surely grew, one for each thing that they stand for.
fn named(counters: &[CounterGrowth]) -> Vec<&CounterGrowth> {
    let mut named: Vec<&CounterGrowth> = Vec::new();
    for counter in counters {
        let ratio_min = match counter.meaning.kind {
            Kind::Bookkeeping | Kind::Statement | Kind::Network => continue,
            Kind::Cpu => NAMED_RATIO_MIN_CPU,
            _ => NAMED_RATIO_MIN,
        };
        let is_named = counter.ratio_sure >= ratio_min && counter.matters >= NAMED_MATTERS_MIN;
        let is_repeated = named.iter().any(|other| name(other) == name(counter));
        if is_named && !is_repeated {
            named.push(counter);
        }
        if named.len() == NAMED_MAX {
            break;
        }
    }
    named
}

fn name(counter: &CounterGrowth) -> String {
    let series = &counter.growth.series;
    if counter.meaning.name.is_empty() {
        return match series.instance.as_str() {
            "" => series.metric.clone(),
            instance => format!("{} of {instance}", series.metric),
        };
    }
    let resource = match series.instance.as_str() {
        "cpu" => "a CPU",
        "io" => "reads and writes",
        "memory" => "memory",
        _ => "this resource",
    };
    counter.meaning.name.replace("this resource", resource)
}

fn series_evidence(named: &[&CounterGrowth], span: Option<Span>) -> Vec<Evidence> {
    let Some(span) = span else {
        return Vec::new();
    };
    let mut evidence = Vec::new();
    for counter in named {
        for level in [span.best, span.last] {
            evidence.push(Evidence::Series {
                series: counter.growth.series.clone(),
                begin_ns: level.begin_ns,
                end_ns: level.end_ns,
            });
        }
    }
    evidence
}

/// " One transaction took 1.22 ms of server CPU at 8 users and 1.33 ms at 64 (+9 %), …"
fn cpu_per_transaction(span: Span) -> Option<String> {
    let best_ms = span.best.server_cpu_ms_per_transaction()?;
    let last_ms = span.last.server_cpu_ms_per_transaction()?;
    let rise = last_ms / best_ms - 1.0;
    if !rise.is_finite() {
        return None;
    }
    let sign = if rise < 0.0 { "−" } else { "+" };
    Some(format!(
        " One {} took {} of the server's CPU time at {} and {} at {} ({sign}{}).",
        span.last.unit(),
        whyso_words::milliseconds(best_ms),
        whyso_words::users(span.best.users),
        whyso_words::milliseconds(last_ms),
        whyso_words::users(span.last.users),
        whyso_words::percent(rise.abs()),
    ))
}

/// "3 % idle, 78 % user, 19 % system; the server used 1.52 of 2 CPUs, the generator 0.41 of 2"
fn shares(level: &Level, machine: &Machine) -> String {
    let mut parts = Vec::new();
    if let Some(cpu) = level.cpu {
        let mut text = format!(
            "{} of the machine's CPU time was idle, {} user, {} system",
            whyso_words::percent(cpu.idle.max(0.0)),
            whyso_words::percent(cpu.user.max(0.0)),
            whyso_words::percent(cpu.system.max(0.0)),
        );
        if cpu.iowait >= IOWAIT_MIN {
            text.push_str(&format!(", {} waiting for reads and writes", whyso_words::percent(cpu.iowait)));
        }
        if cpu.steal >= others::STOLEN_MIN {
            text.push_str(&format!(", {} taken by the hypervisor", whyso_words::percent(cpu.steal)));
        }
        parts.push(text);
    }
    let server = level.server_cpu_s.map(|cpu_s| cpu_s / level.seconds);
    if let Some(used) = server.filter(|used| used.is_finite()) {
        parts.push(format!("the server used {}", of_cpus(used, machine.server_cpus)));
        let client = level.client_cpu_s / level.seconds;
        if machine.shared && client > 0.0 && client.is_finite() {
            parts.push(format!("the generator {}", of_cpus(client, machine.client_cpus)));
        }
        if let Some(others) = others::disturbing_cpus(level, machine) {
            parts.push(format!("other programs {}", whyso_words::number(others)));
        }
    }
    whyso_words::list(&parts)
}

fn of_cpus(used: f64, cpus: u32) -> String {
    match cpus {
        0 => format!("{} CPUs", whyso_words::number(used)),
        _ => format!("{} of {}", whyso_words::number(used), whyso_words::count(u64::from(cpus), "CPU")),
    }
}

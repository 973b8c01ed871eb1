//! Causes that lie outside of the server's work: idle CPUs to wake, too little load, a full generator, connections, the network.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use super::proxy;
use crate::generator;
use crate::model::{LoopKind, Part};
use whyso_model::Role;

/// Requests of a recording from which anything can be concluded.
const REQUESTS_MIN: u64 = 30;

/// CPUs that are idle this much are not what users wait for.
const IDLE_MIN: f64 = 0.3;

/// Users that wait for each other less than this share of the time do not queue.
const QUEUEING_MAX: f64 = 0.3;

/// Above this share of their time without a CPU, threads of load hosts delay answers, so that the way between the hosts is not known.
const LOAD_HOSTS_WAITED_MAX: f64 = 0.1;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    let of_each = [
        wakeup_latency(case),
        unsaturated(case),
        generator(case),
        load_hosts(case),
        network(case),
        connection_churn(case),
    ];
    of_each.into_iter().flatten().collect()
}

/// A server that something else should load, and next to nothing did: then nothing else is worth a word.
pub(super) fn hardly_asked(case: &Case) -> Option<Claim> {
    let level = case.level;
    if let Some(claim) = hardly_at_work(case) {
        return Some(claim);
    }
    // Few requests may end because those that were sent are held up.
    if level.pacing != LoopKind::Recorded || level.transactions >= REQUESTS_MIN || case.sessions().is_some() {
        return None;
    }
    let why = format!(
        "there were {} in {} s, which is too few to judge a server under load: record it while something loads it",
        match level.transactions {
            1 => "1 request".to_string(),
            several => format!("{} requests", whyso_words::whole(several)),
        },
        whyso_words::number(level.seconds),
    );
    let claim = Claim::new(Cause::Unsaturated, "the requests' own work holds", why).certain(1.0).first();
    Some(claim.rests_on([case.level_quantity("transactions_per_s")]))
}

/// Of a server that nothing traced. In its process list next to no session was ever in a statement, and nothing else used its CPUs.
fn hardly_at_work(case: &Case) -> Option<Claim> {
    let sessions = case.level.sessions.as_ref().filter(|sessions| !sessions.are_enough())?;
    if !case.level.is_untraced || case.others_share() >= 0.1 {
        return None;
    }
    let why = format!(
        "in {} snapshots of the process list {} sessions were found in a statement: clients hardly wait for this server",
        whyso_words::whole(sessions.snapshots.round() as u64),
        whyso_words::whole(sessions.samples().round() as u64),
    );
    let claim = Claim::new(Cause::Unsaturated, "the requests' own work holds", why).certain(1.0).first();
    Some(claim.rests_on([case.level_quantity("transactions_per_s")]))
}

fn wakeup_latency(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let idle = 1.0 - case.cpus_used()?;
    if let Some(budget) = case.budget {
        // A thread that was woken while its group was stopped seems to have had an idle CPU.
        let of_server_ms =
            budget.ms(Part::Wakeup) - (super::quota::stopped_ms(case) - budget.ms(Part::Runqueue)).max(0.0);
        let ms = of_server_ms.max(0.0) + budget.client_wakeup_ms;
        if case.share(ms) < 0.1 {
            return None;
        }
        let why = format!(
            "{} of the CPU time was idle, and from a thread's being woken on an idle CPU until it ran took {} per {unit}",
            whyso_words::percent(idle),
            whyso_words::milliseconds(ms),
        );
        let claim = Claim::new(Cause::WakeupLatency, "waking idle CPUs holds", why).holds(ms).certain(1.0);
        return Some(claim.rests_on(case.parts(&[Part::Wakeup, Part::ClientDelay])));
    }
    // Without a trace: what a lone user waits for is neither work, nor other users, nor a disk.
    if case.level.users > 1 || idle < IDLE_MIN || is_disk_bound(case) {
        return None;
    }
    let rest_ms = case.lock_ms();
    let why = format!(
        "a lone user has nobody to wait for, {} of the CPU time was idle, and neither server nor generator worked for {} of a {unit}: \
         most likely the wake-up of idle CPUs, at every statement",
        whyso_words::percent(idle),
        whyso_words::milliseconds(rest_ms),
    );
    let claim = Claim::new(Cause::WakeupLatency, "waking idle CPUs holds", why);
    let evidence = [case.level_quantity("cpu"), case.level_quantity("latency_mean_ms")];
    Some(claim.may_be_in(&[Part::Wakeup]).rests_on(evidence))
}

/// Whether disks were busy for much of the window, by their own counters.
fn is_disk_bound(case: &Case) -> bool {
    let times = ["flush_ns", "read_ns", "busy_ns"].into_iter().flat_map(|metric| case.disks(metric));
    times.into_iter().any(|counter| counter.increase / 1e9 / case.level.seconds > 0.2)
}

/// The server would do more if it were asked for more.
fn unsaturated(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let used = case.cpus_used()?;
    let level = case.level;
    let pauses =
        1.0 - case.transactions * case.response_ms / (f64::from(level.users).max(1.0) * level.seconds * 1e3);
    let paused = level.pacing != LoopKind::Closed && pauses > 0.5;
    if 1.0 - used < IDLE_MIN || generator::saturated_why(level, case.machine).is_some() {
        return None;
    }
    // Users who pause most of the time may wait for a CPU at the same moments, although the CPUs are idle on average: more of them would get more done.
    // A lock that they queue for may be held all the time, however long they pause.
    let is_queue = |part: Part| part.is_waiting() && !(paused && part == Part::Runqueue);
    let queueing_ms = match case.budget {
        Some(budget) => budget.parts.iter().filter(|part| is_queue(part.part)).map(|part| part.ms).sum(),
        None => case.counts(&["Innodb_row_lock_time"]).0,
    };
    let queueing = case.share(queueing_ms);
    let has_stopped = case.still_rising == Some(false) && !paused;
    if queueing >= QUEUEING_MAX || has_stopped {
        return None;
    }
    if level.users == 1 && !paused {
        // Nobody else is there to be waited for: what holds a lone user is its own transaction.
        return None;
    }
    let rises = match case.still_rising {
        Some(true) => "throughput still rises with users",
        _ => "nothing says that more users would not give more",
    };
    let of_pauses = if paused {
        format!("users were out of {unit}s {} of the time, ", whyso_words::percent(pauses.clamp(0.0, 1.0)))
    } else {
        String::new()
    };
    let why = format!(
        "{of_pauses}{} of the CPU time was idle, users waited for each other {} of a {unit}, and {rises}: give it more users",
        whyso_words::percent(1.0 - used),
        whyso_words::percent(queueing),
    );
    let certainty = match (case.still_rising, case.is_traced()) {
        _ if paused => 1.0,
        (Some(true), true) => 0.9,
        (Some(true), false) => 0.6,
        _ => 0.5,
    };
    let not_queued_ms = (case.response_ms - queueing_ms).max(0.0);
    // Neither counters nor the process list show all waits: what is neither work nor known to be something else stays unknown.
    let own_ms = match case.is_traced() || paused {
        true => not_queued_ms,
        false => not_queued_ms.min(case.cpu_ms() + case.client_cpu_ms()),
    };
    let what = match level.pacing {
        LoopKind::Recorded => "the request's own work, which nothing queues for, holds",
        _ => "the transaction's own work, which nothing queues for, holds",
    };
    let claim = Claim::new(Cause::Unsaturated, what, why)
        .certain(certainty)
        .rests_on([case.level_quantity("cpu"), case.level_quantity("transactions_per_s")]);
    let claim = claim.holds(own_ms);
    Some(if paused { claim.first() } else { claim })
}

fn generator(case: &Case) -> Option<Claim> {
    let parts = [Part::ClientQueue, Part::ClientCpu, Part::ClientDelay];
    let ms = match case.budget {
        Some(budget) => parts.iter().map(|part| budget.ms(*part)).sum(),
        None => case.client_cpu_ms(),
    };
    let evidence = case.parts(&parts);
    if let Some(why) = generator::saturated_why(case.level, case.machine) {
        let claim =
            Claim::new(Cause::Generator, "the load generator holds", why).holds(ms).certain(1.0).first();
        return Some(claim.rests_on([case.level_quantity("client_cpu")]).rests_on(evidence));
    }
    let is_pooled = case.machine.shared && case.are_cpus_full();
    let own_ms = ms - case.ms(Part::ClientQueue) - case.budget.map_or(0.0, |budget| budget.client_wakeup_ms);
    if !case.is_traced() || is_pooled || case.share(own_ms) < 0.15 {
        return None;
    }
    let why = "answers had arrived and the generator had yet to come to them, or to send what came next"
        .to_string();
    Some(
        Claim::new(Cause::Generator, "the load generator holds", why)
            .holds(own_ms)
            .certain(0.7)
            .rests_on(evidence),
    )
}

/// Time outside of the server that the hosts of the load take themselves, by an estimate; 0 where what sent the load was traced, or one process
/// sent it. Their delays are in the way back.
fn load_hosts_ms(case: &Case) -> f64 {
    let of_clients = [Part::ClientQueue, Part::ClientCpu, Part::ClientDelay];
    let is_in_transit = case.level.is_across_hosts && of_clients.iter().all(|part| case.ms(*part) <= 0.0);
    if is_in_transit { case.level.load_hosts_ms.min(case.ms(Part::TransitOut)) } else { 0.0 }
}

/// Whether threads of a load host waited for CPUs for so long that it delayed answers.
pub(super) fn are_hosts_starved(case: &Case) -> bool {
    case.level.load_hosts_waited > LOAD_HOSTS_WAITED_MAX
}

/// The load hosts' part of the time outside of the server.
fn load_hosts(case: &Case) -> Option<Claim> {
    let ms = load_hosts_ms(case);
    // One that is full comes first by itself.
    let is_full = generator::saturated_why(case.level, case.machine).is_some();
    if is_full || are_hosts_starved(case) || case.share(ms) < 0.15 {
        return None;
    }
    let why = "how busy the threads of the load hosts were, and how long they waited for a CPU, gives this"
        .to_string();
    Some(
        Claim::new(Cause::Generator, "the load hosts' own work holds by an estimate", why)
            .holds(ms)
            .certain(0.7)
            .by(Class::Inferred)
            .rests_on([case.level_quantity("client_cpu")]),
    )
}

/// The way between the two sides. Sending itself is that of [`super::clients`]' slow readers.
fn network(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    if case.are_cpus_full() && case.machine.shared {
        return None;
    }
    // Their own waits for a CPU are in the way back, and nothing separates them.
    if are_hosts_starved(case) {
        return None;
    }
    let has_proxy = proxy::of(case).is_some();
    let parts = if has_proxy {
        // What lies in between is the proxy's.
        vec![Part::TransitIn]
    } else if case.variable("thread_handling") == Some("pool-of-threads") {
        // There a request waits in its socket for a thread of the pool.
        vec![Part::TransitOut]
    } else {
        vec![Part::TransitIn, Part::TransitOut]
    };
    let outside_ms: f64 = parts.iter().map(|part| case.ms(*part)).sum();
    let of_hosts_ms = load_hosts_ms(case);
    let ms = outside_ms - of_hosts_ms;
    if case.share(ms) < 0.1 {
        return None;
    }
    let retransmitted =
        case.measure("net", "retransmitted_segments", "").filter(|measure| measure.per_s > 1.0);
    let again = retransmitted.as_ref().map_or(String::new(), |measure| {
        format!("; {} segments per second had to be sent again", whyso_words::number(measure.per_s))
    });
    let evidence = case.parts(&parts);
    let claim = if of_hosts_ms > 0.0 {
        let why = format!(
            "{} per {unit} passed outside of the server, of which the load hosts' own threads account for {}, by an estimate from their CPU time{again}",
            whyso_words::milliseconds(outside_ms),
            whyso_words::milliseconds(of_hosts_ms)
        );
        let claim = Claim::new(Cause::Network, "the way between client and server holds", why);
        claim.holds(ms).certain(0.8).by(Class::Inferred)
    } else {
        let why = format!(
            "{} per {unit} passed between sending and the other side's picking up, while CPUs were available{again}",
            whyso_words::milliseconds(ms)
        );
        Claim::new(Cause::Network, "the way between client and server holds", why).holds(ms).certain(0.8)
    };
    Some(claim.rests_on(evidence).rests_on(retransmitted.map(|measure| case.series(&measure.series))))
}

/// Share of the server's CPU time that its connections' threads and its listener took outside of requests: for connections that are made and
/// ended. `server_ms`: its CPU time for one transaction. 0 where it was not traced.
pub(super) fn connecting_share(case: &Case, server_ms: f64) -> f64 {
    let of_role = |role: Role| {
        case.measure("threads", "cpu_ns", role.name()).map_or(0.0, |cpu| cpu.per_transaction / 1e6)
    };
    let outside_ms = of_role(Role::Connection) + of_role(Role::Listener) - case.ms(Part::Cpu);
    let share = outside_ms / server_ms;
    if case.is_traced() && share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

fn connection_churn(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let connections = case.count(&["Connections"])?;
    // whyso's own samplers hold their connections open.
    if connections.per_transaction < 0.2 {
        return None;
    }
    let waited_ms = case.level.connect_ms();
    let waited = match waited_ms > 0.0 {
        true => format!(", and clients waited {} per {unit} for them", whyso_words::milliseconds(waited_ms)),
        false => String::new(),
    };
    let new_threads =
        case.count(&["Threads_created"]).filter(|new_threads| new_threads.per_transaction > 0.05);
    let threads = new_threads.as_ref().map_or(String::new(), |new_threads| {
        format!(
            ", {} of them with a new thread",
            whyso_words::percent((new_threads.per_transaction / connections.per_transaction).min(1.0))
        )
    });
    let why = format!(
        "{} connections are made per {unit}{threads}{waited}",
        whyso_words::number(connections.per_transaction)
    );
    Some(
        // Only a load generator measures how long a connection takes to make.
        Claim::new(Cause::ConnectionChurn, "making connections holds", why)
            .holds(waited_ms)
            .may_be_in(&[Part::Cpu, Part::Lock])
            .certain(0.95)
            .rests_on([case.series(&connections.series)])
            .rests_on(new_threads.map(|new_threads| case.series(&new_threads.series))),
    )
}

//! Causes that lie with the CPUs: full ones, queues for them, who else uses them, and what is burnt on them in vain.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use crate::model::Part;
use crate::neighbours::Neighbours;
use crate::watching::WatchCost;

/// Below this share of the response time a queue is not worth a word.
const SHARE_MIN: f64 = 0.1;

/// Spinning below this share of the time on CPUs is nobody's trouble.
const SPUN_MIN: f64 = 0.05;

/// Rounds of spinning a transaction from which on they may cost something: each is a microsecond or so.
const SPIN_ROUNDS_MIN: f64 = 50.0;

/// CPU time of a transaction that grew by this without more work is suspect.
const CPU_GROWN_MIN: f64 = 1.5;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [cpu(case), runqueue(case), spin(case), preempted_holder(case), noisy_neighbour(case), observer(case)]
        .into_iter()
        .flatten()
        .collect()
}

/// Takes what of the pool no other cause asks for.
fn cpu(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let used = case.cpus_used()?;
    let only = if case.are_cpus_full() { "" } else { "only " };
    let needs = match case.cpu_ms() {
        ms if ms > 0.0 => {
            format!(", and a {unit} needs {} of the server's CPU time", whyso_words::milliseconds(ms))
        }
        _ => String::new(),
    };
    let why = format!(
        "{only}{} of the CPUs that the server may use were busy{needs}{}{}{}",
        whyso_words::percent(used),
        generators_waits(case),
        super::activities::ordinary_work(case),
        super::statements::busiest(case)
    );
    let what = if case.are_cpus_full() {
        "the statements' ordinary work on full CPUs and the wait for them hold"
    } else {
        "the statements' ordinary work holds"
    };
    let certainty = match used {
        _ if used >= 0.95 => 1.0,
        _ if case.are_cpus_full() => 0.8,
        // Work that nothing waits for is what a transaction is there for.
        _ => 0.4,
    };
    let evidence = case.parts(&[Part::Cpu, Part::Runqueue]);
    Some(
        Claim::new(Cause::Cpu, what, why)
            .certain(certainty)
            .by(if case.level.activities.is_some() { Class::Measured } else { Class::Inferred })
            .rests_on(evidence)
            .rests_on([case.level_quantity("cpu")]),
    )
}

/// ", and answers waited 5.2 ms for the load generator, which uses the same CPUs": the time line shows them as the generator's.
fn generators_waits(case: &Case) -> String {
    let waited_ms = case.ms(Part::ClientDelay);
    if !case.machine.shared || !case.are_cpus_full() || case.share(waited_ms) < SHARE_MIN {
        return String::new();
    }
    format!(
        ", and answers waited {} for the load generator, which uses the same CPUs",
        whyso_words::milliseconds(waited_ms)
    )
}

/// Threads wait for a CPU although the CPUs are not full.
fn runqueue(case: &Case) -> Option<Claim> {
    let waited_ms = case.runqueue_ms() - super::quota::stopped_ms(case);
    if case.are_cpus_full() || case.share(waited_ms) < SHARE_MIN {
        return None;
    }
    let used = case.cpus_used().map_or(String::new(), |used| {
        format!(
            " although only {} of the CPUs that they may use were busy on average",
            whyso_words::percent(used)
        )
    });
    let why = format!("the server's threads were ready to run and waited{used}");
    let claim = Claim::new(Cause::Runqueue, "queues for a CPU hold", why)
        .holds(waited_ms)
        .certain(0.8)
        .rests_on(case.parts(&[Part::Runqueue]));
    Some(claim)
}

fn spin(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    const ROUNDS: [&str; 7] = [
        "innodb_rwlock_s_spin_rounds",
        "innodb_rwlock_x_spin_rounds",
        "innodb_rwlock_sx_spin_rounds",
        "Innodb_mutex_spin_rounds",
        "Innodb_s_lock_spin_rounds",
        "Innodb_x_lock_spin_rounds",
        "Innodb_sx_lock_spin_rounds",
    ];
    if let Some((spun_ms, samples, classes)) = super::classes::spun(case) {
        return seen_spinning(case, spun_ms, samples, &classes);
    }
    let (rounds, series) = case.counts(&ROUNDS);
    let grown = cpu_growth(case).unwrap_or(1.0);
    if rounds < SPIN_ROUNDS_MIN && (rounds > 0.0 || grown < CPU_GROWN_MIN) {
        return None;
    }
    let why = if rounds > 0.0 {
        format!(
            "{} rounds of spinning on InnoDB's locks per {unit} use CPU time",
            whyso_words::number(rounds)
        )
    } else {
        format!(
            "a {unit} takes {} times the CPU time that it takes with few users, for the same work: spinning, or caches that threads take from each other",
            whyso_words::number(grown)
        )
    };
    let evidence = if series.is_empty() { case.parts(&[Part::Cpu]) } else { case.all_series(&series) };
    Some(Claim::new(Cause::Spin, "spinning for locks holds", why).may_be_in(&[Part::Cpu]).rests_on(evidence))
}

/// Stacks show it exactly enough: counters are not needed for it any more.
fn seen_spinning(case: &Case, spun_ms: f64, samples: u64, classes: &[String]) -> Option<Claim> {
    let share_of_cpu = Some(spun_ms / case.cpu_ms()).filter(|share| *share >= SPUN_MIN)?;
    let why = format!(
        "{} of a {}'s time on a CPU was spinning for locks of the class {}, by {} samples of stacks",
        whyso_words::percent(share_of_cpu),
        case.unit(),
        whyso_words::list(classes),
        whyso_words::whole(samples)
    );
    Some(
        Claim::new(Cause::Spin, "spinning for locks holds", why)
            .holds_cpu(share_of_cpu)
            .certain(0.95)
            .by(Class::Sampled)
            .rests_on(case.parts(&[Part::Cpu])),
    )
}

/// CPU time of a transaction here ÷ with the fewest users that keep more than one CPU awake, where both read as many rows.
fn cpu_growth(case: &Case) -> Option<f64> {
    let fewest = case.fewest()?;
    let rows = |level: &crate::level::Level| {
        let counter =
            level.counter("status", "Innodb_rows_read", "").or(level.counter("status", "Rows_read", ""))?;
        Some(counter.increase / level.transactions as f64)
    };
    let rows_ratio = rows(case.level)? / rows(fewest)?;
    let here = case.level.server_cpu_ms_per_transaction()?;
    let there = fewest.server_cpu_ms_per_transaction()?;
    let ratio = here / there / rows_ratio.max(1.0);
    ratio.is_finite().then_some(ratio)
}

/// The thread that holds a lock is put off its CPU, and all others sleep until it is back. With chains of waits
/// ([`super::classes::settle`]) that is measured, and not guessed.
fn preempted_holder(case: &Case) -> Option<Claim> {
    if super::classes::are_chains_followed(case.level) {
        return None;
    }
    let waited_ms = case.runqueue_ms();
    let threads_a_cpu = f64::from(case.level.users) / f64::from(case.machine.server_cpus.max(1));
    let locked = case.share(case.ms(Part::Lock));
    if !case.are_cpus_full() || threads_a_cpu < 2.0 || case.share(waited_ms) < SHARE_MIN || locked < SHARE_MIN
    {
        return None;
    }
    let why = format!(
        "{} users per CPU take turns on full CPUs, so a thread that holds a lock is put off its CPU while others wait for that lock",
        whyso_words::number(threads_a_cpu)
    );
    Some(
        Claim::new(Cause::PreemptedHolder, "locks whose holders were put off their CPU hold", why)
            .may_be_in(&[Part::Lock])
            .rests_on(case.parts(&[Part::Lock, Part::Runqueue])),
    )
}

fn noisy_neighbour(case: &Case) -> Option<Claim> {
    let others = case.others_share();
    if others < 0.1 {
        return None;
    }
    let steal = case.level.cpu.map_or(0.0, |cpu| cpu.steal);
    let who = if steal > others / 2.0 { "the hypervisor's other machines" } else { "other programs" };
    let neighbours = Neighbours::of(case.level);
    let named = neighbours.as_ref().map(|neighbours| neighbours.in_words(case.machine));
    let named = named.filter(|words| !words.is_empty()).map_or(String::new(), |words| format!(" ({words})"));
    let why = format!("{who} used {} of the CPUs meanwhile{named}", whyso_words::percent(others));
    // A thread that is served in turn with others waits for as long as they run: their share of the busy time, twice where they
    // are served first half of the time.
    let strength = 2.0 * others / case.cpus_used().unwrap_or(1.0).max(others).max(0.01);
    let claim = Claim::new(Cause::NoisyNeighbour, "CPU time that went to others holds as much as", why)
        .holds_cpu(strength)
        .certain(0.9)
        .by(Class::Inferred);
    let claim = if case.are_cpus_full() { claim } else { claim.certain(0.4) };
    let series = neighbours
        .iter()
        .flat_map(|neighbour| neighbour.named(case.machine))
        .map(|neighbour| neighbour.series.clone());
    let series: Vec<_> = series.collect();
    Some(claim.rests_on([case.level_quantity("cpu")]).rests_on(case.all_series(&series)))
}

/// What whyso's own samplers and tracer used.
fn observer(case: &Case) -> Option<Claim> {
    let watching = WatchCost::of(case.level)?;
    let share = watching.share();
    if share < 0.05 {
        return None;
    }
    let why = format!(
        "whyso's own samplers and tracer used {} of the CPU time that was used",
        whyso_words::percent(share)
    );
    Some(
        Claim::new(Cause::Observer, "the observer holds", why)
            .holds_cpu(share)
            .certain(0.9)
            .rests_on(case.all_series(&watching.evidence)),
    )
}

//! What drove a load, in sentences.

use whyso_record::run::{EngineResult, Level, Purpose, RunInfo};
use whyso_words::{count, nanoseconds, percent_change, users};

/// Returns what drove the levels and why: one sentence per engine, and one on what else was asked for. Levels whose engine was not
/// recorded are left out, as are those of the load generator's own step.
pub(crate) fn engines<'l>(levels: impl Iterator<Item = &'l Level>) -> Vec<String> {
    let mut driven: Vec<Vec<&Level>> = Vec::new();
    for level in
        levels.filter(|level| level.purpose != Purpose::Switch && !level.result.engine.kind.is_empty())
    {
        match driven.iter_mut().find(|same| is_same(&same[0].result.engine, &level.result.engine)) {
            Some(same) => same.push(level),
            None => driven.push(vec![level]),
        }
    }
    driven.iter().map(|levels| sentence(levels)).collect()
}

/// Returns the load generator's own step, one sentence for each place where the number of its event loops falls.
pub(crate) fn switches(run: &RunInfo) -> Vec<String> {
    let event_loops = |level: &Level| count(u64::from(level.result.engine.loops), "event loop");
    let sentence = |switch: &Level| {
        let same = |level: &&Level| level.purpose == Purpose::Sweep && level.users == switch.users;
        let swept = run.levels.iter().find(same)?;
        let change = swept.result.transactions_per_s / switch.result.transactions_per_s - 1.0;
        Some(format!(
            "From {} on the load has {} in place of {}. There this changed throughput by {}: that is the \
             generator's own step, and not the server's.",
            users(switch.users),
            event_loops(swept),
            event_loops(switch),
            percent_change(change),
        ))
    };
    run.levels.iter().filter(|level| level.purpose == Purpose::Switch).filter_map(sentence).collect()
}

/// Whether they differ in the number of loops at most.
fn is_same(one: &EngineResult, other: &EngineResult) -> bool {
    *one == EngineResult { loops: one.loops, ..other.clone() }
}

fn sentence(levels: &[&Level]) -> String {
    let engine = &levels[0].result.engine;
    let how = match engine.kind.as_str() {
        // Their number follows that of the users.
        "threads" => "threads, one a connection".to_string(),
        kind => format!("{kind}, {}", loops(levels)),
    };
    let why =
        if engine.why.is_empty() { String::new() } else { format!(": {}", engine.why.trim_end_matches('.')) };
    let tuning = match tuning(engine) {
        tuned if tuned.is_empty() => String::new(),
        tuned => format!(" As asked for, {}.", tuned.join(", and ")),
    };
    format!("Driven by {how}{why}.{tuning}")
}

/// "1 loop", or "2 loops at 2 and 4 users, 1 loop at 8 to 64 users": a stretch of levels each.
fn loops(levels: &[&Level]) -> String {
    let mut by_users: Vec<(u32, u32)> =
        levels.iter().map(|level| (level.users, level.result.engine.loops)).collect();
    by_users.sort_unstable();
    by_users.dedup();
    let mut stretches: Vec<(u32, Vec<u32>)> = Vec::new();
    for (users, loops) in by_users {
        match stretches.last_mut() {
            Some((known, stretch)) if *known == loops => stretch.push(users),
            _ => stretches.push((loops, vec![users])),
        }
    }
    let loop_count = |loops: u32| count(u64::from(loops), "loop");
    if let [(loops, _)] = stretches[..] {
        return loop_count(loops);
    }
    let stretch = |(loops, users): &(u32, Vec<u32>)| format!("{} at {}", loop_count(*loops), users_of(users));
    stretches.iter().map(stretch).collect::<Vec<_>>().join(", ")
}

/// Returns "1 user", "2 and 4 users", or "8 to 64 users" for three or more. `levels` are ascending.
fn users_of(levels: &[u32]) -> String {
    match levels {
        [] => "no users".to_string(),
        [only] => users(*only),
        [one, other] => format!("{one} and {}", users(*other)),
        [first, .., last] => format!("{first} to {}", users(*last)),
    }
}

/// Returns what was asked for in addition to the engine.
fn tuning(engine: &EngineResult) -> Vec<String> {
    let mut tuned = Vec::new();
    if engine.min_complete > 0 {
        tuned.push(format!(
            "it waits for {} at a time, for up to {}",
            count(u64::from(engine.min_complete), "completion"),
            nanoseconds(engine.min_complete_at_most_ns as f64)
        ));
    }
    if engine.busy_poll_ns > 0 {
        tuned.push(format!(
            "it looks for news for {} before it sleeps",
            nanoseconds(engine.busy_poll_ns as f64)
        ));
    }
    if !engine.scheduling_policy.is_empty() {
        tuned.push(format!("its threads have the scheduling policy {}", engine.scheduling_policy));
    }
    tuned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driven(users: u32, loops: u32) -> Level {
        let mut level = crate::svg::tests::level(users, users, 100.0);
        level.result.engine = EngineResult {
            kind: "io-uring".to_string(),
            loops,
            why: "so it is".to_string(),
            ..Default::default()
        };
        level
    }

    fn sentences(levels: &[Level]) -> Vec<String> {
        engines(levels.iter())
    }

    #[test]
    fn every_number_of_loops_is_shown_with_the_users_that_it_was_for() {
        let levels = [driven(1, 1), driven(2, 1)];
        assert_eq!(sentences(&levels), ["Driven by io-uring, 1 loop: so it is."]);
        let mut step = driven(8, 2);
        step.purpose = Purpose::Switch;
        let levels =
            [driven(1, 1), driven(2, 2), driven(4, 2), driven(8, 1), step, driven(16, 1), driven(4, 2)];
        assert_eq!(
            sentences(&levels),
            ["Driven by io-uring, 1 loop at 1 user, 2 loops at 2 and 4 users, 1 loop at 8 and 16 users: so \
             it is."]
        );
        assert_eq!(
            sentences(&[driven(1, 1), driven(2, 3)]),
            ["Driven by io-uring, 1 loop at 1 user, 3 loops at 2 users: so it is."]
        );
    }

    #[test]
    fn what_was_asked_for_in_addition_is_shown() {
        let mut level = driven(8, 1);
        level.result.engine.min_complete = 4;
        level.result.engine.min_complete_at_most_ns = 50_000;
        level.result.engine.scheduling_policy = "batch".to_string();
        assert_eq!(
            sentences(&[level]),
            ["Driven by io-uring, 1 loop: so it is. As asked for, it waits for 4 completions at a \
                                     time, for up to 50 µs, and its threads have the scheduling policy batch."]
        );
    }

    #[test]
    fn an_engine_that_was_not_recorded_is_left_out() {
        let mut level = driven(8, 1);
        level.result.engine = EngineResult::default();
        assert!(sentences(&[level]).is_empty());
    }
}

use proptest::prelude::*;

use super::*;

fn name(name: &str) -> FunctionName {
    FunctionName { name: name.to_string(), module: "server".to_string() }
}

/// Stacks as `main;log_write_up_to;os_event_wait`, outermost first, with seconds of CPU and of lock wait.
fn profile(stacks: &[(&str, f64, f64)]) -> Profile {
    let mut profile = Profile { metrics: vec!["cpu".to_string(), "lock".to_string()], ..Profile::default() };
    for (number, (stack, cpu_s, lock_s)) in stacks.iter().enumerate() {
        let number = number as u32;
        profile.stacks.insert(number, stack.split(';').rev().map(name).collect());
        for (metric, seconds) in [cpu_s, lock_s].into_iter().enumerate() {
            let weight_ns = seconds * 1e9;
            profile.samples.push(ProfileSample::one(number, metric, weight_ns, 0.0));
        }
    }
    profile
}

fn seconds(times: &[f64]) -> Vec<f64> {
    times.iter().map(|ns| ns / 1e9).collect()
}

/// The seed's example: os_event_wait_low between those that waited and pthread_cond_wait.
#[test]
fn callers_and_callees_are_those_of_er_print() {
    let profile = profile(&[
        ("main;trx_commit;os_event_wait_low;cond_wait", 1.0, 270.0),
        ("main;trx_commit;log_write_up_to;os_event_wait_low;cond_wait", 2.0, 250.0),
        ("main;trx_commit;log_write_up_to;os_event_wait_low", 0.5, 0.0),
        ("main;trx_commit", 30.0, 0.0),
    ]);
    let all = functions(&profile);
    assert_eq!(seconds(&all.total.exclusive_ns), [33.5, 520.0]);
    assert_eq!(all.functions[0].function, name("trx_commit"));
    let found = relatives(&profile, &name("os_event_wait_low")).unwrap();
    assert_eq!(seconds(&found.function.exclusive_ns), [0.5, 0.0]);
    assert_eq!(seconds(&found.function.inclusive_ns), [3.5, 520.0]);
    let row =
        |relative: &AttributedTime| (relative.time.function.name.clone(), seconds(&relative.attributed_ns));
    let callers: Vec<_> = found.callers.iter().map(row).collect();
    assert_eq!(
        callers,
        [("log_write_up_to".to_string(), vec![2.5, 250.0]), ("trx_commit".to_string(), vec![1.0, 270.0])]
    );
    assert_eq!(
        found.callees.iter().map(row).collect::<Vec<_>>(),
        [("cond_wait".to_string(), vec![3.0, 520.0])]
    );
    let outermost = relatives(&profile, &name("main")).unwrap();
    assert_eq!(row(&outermost.callers[0]), (TOTAL.to_string(), vec![33.5, 520.0]));
    assert_eq!(relatives(&profile, &name("absent")), None);
}

#[test]
fn a_function_that_calls_itself_counts_once() {
    let profile = profile(&[("main;walk;walk;walk;compare", 4.0, 0.0), ("main;walk;walk", 1.0, 0.0)]);
    let walk = relatives(&profile, &name("walk")).unwrap();
    assert_eq!(seconds(&walk.function.inclusive_ns), [5.0, 0.0]);
    assert_eq!(seconds(&walk.function.exclusive_ns), [1.0, 0.0]);
    assert_eq!(walk.callers.len(), 1);
    assert_eq!(walk.callees.len(), 1);
    assert_eq!(seconds(&walk.callees[0].attributed_ns), [4.0, 0.0]);
}

#[test]
fn folded_stacks_begin_with_the_outermost_function() {
    let profile = profile(&[("main;a;b", 1.0, 2.0), ("main;a", 0.0, 3.0)]);
    assert_eq!(profile.folded(0), [(vec!["main", "a", "b"], 1e9)]);
    assert_eq!(profile.folded(1).len(), 2);
    assert!(profile.folded(2).is_empty());
}

#[test]
fn what_was_seen_whole_has_no_interval() {
    let mut profile = profile(&[("main", 1.0, 1.0)]);
    profile.samples[1] = ProfileSample::one(profile.samples[1].stack, 1, 1e9, 1e9);
    assert_eq!(profile.half_intervals_ns(), [1.96e9, 0.0]);
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let stack = prop::collection::vec(0u8..6, 0..8);
    let sample = (0u32..12, 0usize..4, 0u32..1000);
    (prop::collection::vec(stack, 1..10), prop::collection::vec(sample, 0..40)).prop_map(
        |(stacks, samples)| {
            let function = |number: u8| name(&format!("f{number}"));
            Profile {
                metrics: ["cpu", "lock", "io"].map(str::to_string).to_vec(),
                stacks: (0..)
                    .zip(stacks)
                    .map(|(id, stack)| (id, stack.into_iter().map(function).collect()))
                    .collect(),
                wakes: Vec::new(),
                other_wakes: Vec::new(),
                samples: samples
                    .into_iter()
                    .map(|(stack, metric, weight)| ProfileSample::one(stack, metric, f64::from(weight), 0.0))
                    .collect(),
            }
        },
    )
}

fn sum<'a>(rows: impl Iterator<Item = &'a Vec<f64>>, metrics: usize) -> Vec<f64> {
    let mut sum = vec![0.0; metrics];
    for row in rows {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    sum
}

// The weights are whole and small: sums are exact.
proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn the_sums_agree(profile in any_profile()) {
        let all = functions(&profile);
        let metrics = profile.metrics.len();
        prop_assert_eq!(&sum(all.functions.iter().map(|function| &function.exclusive_ns), metrics), &all.total.exclusive_ns);
        for time in &all.functions {
            for metric in 0..metrics {
                prop_assert!(time.exclusive_ns[metric] <= time.inclusive_ns[metric]);
                prop_assert!(time.inclusive_ns[metric] <= all.total.inclusive_ns[metric]);
            }
            let found = relatives(&profile, &time.function).unwrap();
            prop_assert_eq!(&sum(found.callers.iter().map(|relative| &relative.attributed_ns), metrics), &time.inclusive_ns);
            let callees = found.callees.iter().map(|relative| &relative.attributed_ns);
            prop_assert_eq!(&sum(callees.chain([&time.exclusive_ns]), metrics), &time.inclusive_ns);
        }
        let folded: f64 = (0..metrics).flat_map(|metric| profile.folded(metric)).map(|(_, ns)| ns).sum();
        prop_assert_eq!(folded, all.total.exclusive_ns.iter().sum::<f64>());
    }
}

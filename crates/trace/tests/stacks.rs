//! The time that sampled stacks stand for is the time that the accounts hold, and lies in the functions that spent it.

mod support;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use support::{Between, Subject, agree, alone, tracer};
use whyso_stacks::{End, Frame, ModuleId, Names, Registers, Unwinding};
use whyso_trace::{StackKind, StackRecord, State};

const TAKEN: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);
/// Threads that print their number.
const JOBS: usize = 7;
/// Of the program: it makes no difference to what is expected, only to how closely it is met.
const PERIOD_NS: u64 = 1_000_000;

/// A stack, and what it stands for.
struct Sample {
    kind: StackKind,
    state: State,
    tid: u32,
    wait: u64,
    length_ns: u64,
    weight_ns: u64,
    frames: Vec<Frame>,
    end: End,
}

fn user(unwinding: &mut Unwinding, record: &StackRecord<'_>) -> (Vec<Frame>, End) {
    let from = record.registers;
    let registers = Registers {
        instruction_pointer: from.instruction_pointer,
        stack_pointer: from.stack_pointer,
        frame_pointer: from.frame_pointer,
        link_register: from.link_register,
    };
    let stack = unwinding.user(record.pid, registers, record.user);
    (stack.frames, stack.end)
}

/// The functions of each sample, innermost first.
fn named(samples: &[Sample], unwinding: &Unwinding) -> Vec<Vec<String>> {
    let frames: Vec<Frame> = samples.iter().flat_map(|sample| sample.frames.iter().copied()).collect();
    let names = Names::default().of(&frames, unwinding);
    let of = |sample: &Sample| {
        let functions = sample.frames.iter().flat_map(|frame| &names[frame]);
        functions.map(|function| function.name.clone()).collect()
    };
    samples.iter().map(of).collect()
}

#[test]
fn three_lock_sites_and_a_computing_function_get_the_time_that_they_took() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut subject = Subject::start(&["sites"], folder.path());
    let mut tids: HashMap<String, u32> = HashMap::new();
    for _ in 0..JOBS {
        let line = subject.line();
        tids.insert(line[1].clone(), line[2].parse().unwrap());
    }
    let Some(mut tracer) = tracer(&[subject.pid()]) else { return };
    let mut stacks = tracer.stacks().unwrap();
    stacks.set_period_ns(PERIOD_NS);
    let mut unwinding = Unwinding::default();
    // Until every thread was seen once.
    std::thread::sleep(Duration::from_millis(100));
    stacks.take(|_| {}).unwrap();
    let before = tracer.read();
    let (mut samples, mut waits): (Vec<Sample>, BTreeMap<u64, Sample>) = Default::default();
    let mut wakers: HashMap<u64, Sample> = HashMap::new();
    let began = Instant::now();
    while began.elapsed() < TAKEN {
        std::thread::sleep(LOOK);
        stacks
            .take(|record| {
                let (frames, end) = match record.kind {
                    StackKind::Wait => (Vec::new(), End::Lost),
                    _ => user(&mut unwinding, record),
                };
                let StackRecord { kind, state, tid, wait, length_ns, weight_ns, .. } = *record;
                let sample = Sample { kind, state, tid, wait, length_ns, weight_ns, frames, end };
                match sample.kind {
                    StackKind::OnCpu => samples.push(sample),
                    StackKind::Wait => drop(waits.insert(sample.wait, sample)),
                    StackKind::Waker => drop(wakers.insert(sample.wait, sample)),
                    StackKind::Back => {
                        for (_, wait) in waits.range_mut(..=sample.wait) {
                            if wait.tid == sample.tid && wait.frames.is_empty() {
                                wait.frames.clone_from(&sample.frames);
                                wait.end = sample.end;
                            }
                        }
                    }
                }
            })
            .unwrap();
    }
    let after = tracer.read();
    assert_eq!(stacks.lost(), whyso_trace::StacksLost::default());

    for site in ["a", "b", "c"] {
        let tid = tids[&format!("wait-{site}")];
        let here: Vec<Sample> = waits
            .extract_if(.., |_, wait| wait.tid == tid && wait.state == State::Lock)
            .map(|(_, wait)| wait)
            .collect();
        let exact_ns = Between::of(&before, &after, tid).ns(State::Lock);
        let function = format!("wait_at_site_{site}");
        let at_site = named(&here, &unwinding);
        let is_there = |names: &Vec<String>| names.iter().any(|name| name.contains(&function));
        let there = here.iter().zip(&at_site).filter(|(_, names)| is_there(names));
        let sampled_ns: u64 = there.map(|(wait, _)| wait.weight_ns).sum();
        let variance = |wait: &Sample| wait.weight_ns as f64 * (wait.weight_ns - wait.length_ns) as f64;
        let error_ns = here.iter().map(variance).sum::<f64>().sqrt();
        println!(
            "site {site}: {} of {} ms, {} waits, {:.1} ms",
            sampled_ns / 1_000_000,
            exact_ns / 1_000_000,
            here.len(),
            error_ns / 1e6
        );
        assert!(exact_ns > TAKEN.as_nanos() as u64 / 10, "site {site} waits: {exact_ns} ns");
        assert!(
            agree(sampled_ns, exact_ns, 0.05, 3 * error_ns as u64),
            "site {site}: {sampled_ns} ns sampled, {exact_ns} ns waited"
        );
        assert!(here.iter().all(|wait| wait.end == End::Root), "site {site}: a stack is not whole");

        let holder = tids[&format!("hold-{site}")];
        let woken: Vec<Sample> = here.iter().filter_map(|wait| wakers.remove(&wait.wait)).collect();
        let release = format!("release_site_{site}");
        let by_holder = named(&woken, &unwinding)
            .into_iter()
            .zip(&woken)
            .filter(|(names, waker)| waker.tid == holder && names.iter().any(|name| name.contains(&release)))
            .count();
        assert!(
            by_holder * 10 >= here.len() * 9,
            "site {site}: {by_holder} of {} name their waker",
            here.len()
        );
    }

    let tid = tids["compute"];
    let here: Vec<Sample> = samples.into_iter().filter(|sample| sample.tid == tid).collect();
    let exact_ns = Between::of(&before, &after, tid).ns(State::Cpu);
    let names = named(&here, &unwinding);
    let computing =
        here.iter().zip(&names).filter(|(_, names)| names.iter().any(|name| name.ends_with("compute")));
    let sampled_ns: u64 = computing.map(|(sample, _)| sample.weight_ns).sum();
    let error_ns = (here.len() as f64).sqrt() * here.first().map_or(0, |sample| sample.weight_ns) as f64;
    println!("compute: {} of {} ms", sampled_ns / 1_000_000, exact_ns / 1_000_000);
    assert!(
        agree(sampled_ns, exact_ns, 0.05, error_ns as u64),
        "compute: {sampled_ns} ns sampled, {exact_ns} ns on a CPU"
    );
}

#[test]
fn addresses_of_no_function_have_no_name() {
    let frames =
        [Frame { module: ModuleId::NONE, address: 0 }, Frame { module: ModuleId::KERNEL, address: 1 }];
    let named = Names::default().of(&frames, &Unwinding::default());
    assert!(frames.iter().all(|frame| named[frame][0].name == "[unknown]"), "{named:?}");
}

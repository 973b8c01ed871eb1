//! The time that sampled stacks stand for is the time that the accounts hold, and lies in the functions that spent it.

// Runs alone: it judges shares of sampled time.

mod support;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use support::{Between, Subject, agree, alone, tracer};
use whyso_model::State;
use whyso_stacks::{End, Frame, ModuleId, Names, Registers, Unwinding};
use whyso_trace::{StackKind, StackRecord};

const TAKEN: Duration = Duration::from_secs(3);
const READ_INTERVAL: Duration = Duration::from_millis(20);
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

/// What the thread that ended a wait did meanwhile.
struct Past {
    length_ns: u64,
    slept_ns: u64,
    /// It reaches back to when the wait began, and its states follow each other to its end.
    is_whole: bool,
}

impl Past {
    fn of(record: &StackRecord<'_>, length_ns: u64) -> Past {
        let began_ns = record.t_ns - length_ns as i64;
        let (reaches_ns, states) = record.past(began_ns);
        let (mut from_ns, mut slept_ns) = (reaches_ns, 0);
        for (state, to_ns) in states {
            // When it wakes up, others may have the CPU.
            let sleeps = matches!(state, State::Sleep | State::Runqueue | State::Wakeup);
            slept_ns += if sleeps { (to_ns - from_ns).unsigned_abs() } else { 0 };
            from_ns = to_ns;
        }
        Past { length_ns, slept_ns, is_whole: reaches_ns == began_ns && from_ns == record.t_ns }
    }
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
    // The one that computes has to queue for its CPU.
    let _competitor = Competitor::on_the_cpu_of(tids["compute"]);
    let (mut samples, mut waits): (Vec<Sample>, BTreeMap<u64, Sample>) = Default::default();
    let mut queued = Vec::new();
    let mut wakers: HashMap<u64, Sample> = HashMap::new();
    let mut pasts: HashMap<u64, Past> = HashMap::new();
    let began = Instant::now();
    while began.elapsed() < TAKEN {
        std::thread::sleep(READ_INTERVAL);
        // As many as there are, the test wants.
        stacks.begin_reading();
        stacks
            .take(|record| {
                let (frames, end) = match record.kind {
                    StackKind::Wait | StackKind::Past => (Vec::new(), End::Lost),
                    _ => user(&mut unwinding, record),
                };
                let StackRecord { kind, state, tid, wait, length_ns, weight_ns, .. } = *record;
                let sample = Sample { kind, state, tid, wait, length_ns, weight_ns, frames, end };
                match sample.kind {
                    StackKind::OnCpu => samples.push(sample),
                    StackKind::Ready => queued.push(sample),
                    StackKind::Wait => drop(waits.insert(sample.wait, sample)),
                    StackKind::Waker => drop(wakers.insert(sample.wait, sample)),
                    StackKind::Past => {
                        // Of a wait that ended before the first reading, the past may come after it.
                        if let Some(wait) = waits.get(&sample.wait) {
                            pasts.insert(sample.wait, Past::of(record, wait.length_ns));
                        }
                    }
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

    let variance = |wait: &Sample| wait.weight_ns as f64 * (wait.weight_ns - wait.length_ns) as f64;
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
        // The thread of the last wait may not be back yet.
        let not_whole = here.iter().rev().skip(1).filter(|wait| wait.end != End::Root).count();
        assert_eq!(not_whole, 0, "site {site}: of {} stacks", here.len());

        // The one that holds the lock sleeps with it.
        let held_pasts: Vec<&Past> = here.iter().filter_map(|wait| pasts.get(&wait.wait)).collect();
        let (slept_ns, all_ns): (u64, u64) = held_pasts
            .iter()
            .fold((0, 0), |(slept, all), past| (slept + past.slept_ns, all + past.length_ns));
        println!(
            "site {site}: {} of {} ms of the holder's past is sleep",
            slept_ns / 1_000_000,
            all_ns / 1_000_000
        );
        assert!(
            held_pasts.len() * 10 >= here.len() * 9,
            "site {site}: {} of {} pasts",
            held_pasts.len(),
            here.len()
        );
        assert!(
            held_pasts.iter().all(|past| past.is_whole),
            "site {site}: a past does not reach back to its wait's begin"
        );
        assert!(slept_ns * 10 >= all_ns * 8, "site {site}: {slept_ns} of {all_ns} ns in sleep");

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

    let here: Vec<Sample> = queued.into_iter().filter(|sample| sample.tid == tid).collect();
    let exact_ns = Between::of(&before, &after, tid).ns(State::Runqueue);
    let names = named(&here, &unwinding);
    let queueing =
        here.iter().zip(&names).filter(|(_, names)| names.iter().any(|name| name.ends_with("compute")));
    let sampled_ns: u64 = queueing.map(|(sample, _)| sample.weight_ns).sum();
    let error_ns = here.iter().map(variance).sum::<f64>().sqrt();
    println!("queued: {} of {} ms, {} samples", sampled_ns / 1_000_000, exact_ns / 1_000_000, here.len());
    assert!(exact_ns > TAKEN.as_nanos() as u64 / 10, "it queued for {exact_ns} ns");
    assert!(
        agree(sampled_ns, exact_ns, 0.05, 3 * error_ns as u64),
        "queued: {sampled_ns} ns sampled, {exact_ns} ns ready without a CPU"
    );
}

/// A thread of this process that keeps a CPU busy, and shares it with another.
struct Competitor {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Competitor {
    fn on_the_cpu_of(tid: u32) -> Competitor {
        keep_to_cpu_0(tid);
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let spin = move || {
            keep_to_cpu_0(0);
            while !ended.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        Competitor { ends, thread: Some(std::thread::spawn(spin)) }
    }
}

impl Drop for Competitor {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// `tid`: 0 is the thread that calls.
fn keep_to_cpu_0(tid: u32) {
    // SAFETY: a set of CPUs is plain bits.
    let mut cpus: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: 0 is within the set.
    unsafe { libc::CPU_SET(0, &mut cpus) };
    // SAFETY: the set lives through the call, and its size is passed with it.
    let status = unsafe { libc::sched_setaffinity(tid as libc::pid_t, size_of_val(&cpus), &raw const cpus) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn addresses_of_no_function_have_no_name() {
    let frames =
        [Frame { module: ModuleId::NONE, address: 0 }, Frame { module: ModuleId::KERNEL, address: 1 }];
    let named = Names::default().of(&frames, &Unwinding::default());
    assert!(frames.iter().all(|frame| named[frame][0].name == "[unknown]"), "{named:?}");
}

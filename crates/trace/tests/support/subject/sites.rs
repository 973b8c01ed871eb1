//! Threads that wait for locks at three known sites, those that let them go, and one that computes.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::jobs::wait_for_byte;
use crate::spin_ns;

/// How long a lock is held at each site: shorter than the period that the test gives, about as long, and longer.
const HELD: [Duration; 3] = [Duration::from_micros(500), Duration::from_millis(2), Duration::from_millis(5)];
/// Between two checks whether it is the other one's turn.
const TURN: Duration = Duration::from_micros(50);

/// A lock, and whether it is held so that the other one is to wait for it.
#[derive(Default)]
struct Site {
    lock: Mutex<u64>,
    is_held: AtomicBool,
}

/// Prints `job NAME TID` for each thread, waits for a byte, and continues until it is ended.
pub(crate) fn all() {
    let waits: [fn(&Site); 3] = [wait_at_site_a, wait_at_site_b, wait_at_site_c];
    let releases: [fn(MutexGuard<'_, u64>); 3] = [release_site_a, release_site_b, release_site_c];
    for ((name, held), (wait, release)) in
        ["a", "b", "c"].into_iter().zip(HELD).zip(waits.into_iter().zip(releases))
    {
        let site = Arc::new(Site::default());
        let its = Arc::clone(&site);
        job(format!("wait-{name}"), move || {
            while !its.is_held.load(Ordering::Acquire) {
                std::thread::sleep(TURN);
            }
            wait(&its);
            its.is_held.store(false, Ordering::Release);
        });
        job(format!("hold-{name}"), move || {
            let guard = site.lock.lock().unwrap();
            site.is_held.store(true, Ordering::Release);
            std::thread::sleep(held);
            release(guard);
            while site.is_held.load(Ordering::Acquire) {
                std::thread::sleep(TURN);
            }
        });
    }
    job("compute".to_string(), compute);
    wait_for_byte();
}

fn job(name: String, mut turn: impl FnMut() + Send + 'static) {
    let mut work = move || {
        loop {
            turn();
        }
    };
    let printed_name = name.clone();
    let named = move || {
        // SAFETY: a plain system call.
        println!("job {printed_name} {}", unsafe { libc::gettid() });
        work()
    };
    std::thread::Builder::new().name(name).spawn(named).unwrap();
}

// Each a function of its own on the stack: not put into others, and with something to do after its call.

#[inline(never)]
fn wait_at_site_a(site: &Site) {
    *black_box(site).lock.lock().unwrap() += 1;
}

#[inline(never)]
fn wait_at_site_b(site: &Site) {
    *black_box(site).lock.lock().unwrap() += 2;
}

#[inline(never)]
fn wait_at_site_c(site: &Site) {
    *black_box(site).lock.lock().unwrap() += 3;
}

#[inline(never)]
fn release_site_a(guard: MutexGuard<'_, u64>) {
    drop(guard);
    black_box('a');
}

#[inline(never)]
fn release_site_b(guard: MutexGuard<'_, u64>) {
    drop(guard);
    black_box('b');
}

#[inline(never)]
fn release_site_c(guard: MutexGuard<'_, u64>) {
    drop(guard);
    black_box('c');
}

#[inline(never)]
fn compute() {
    spin_ns(1_000_000);
    black_box(());
}

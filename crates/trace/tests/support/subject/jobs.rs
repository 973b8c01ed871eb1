//! Threads of known behaviour. Each times its own waits by the clock, and prints their sum at its end.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::{clock_ns, now_ns, spin_ns};

const JOB: Duration = Duration::from_millis(1200);
const WAIT: Duration = Duration::from_millis(1);
const SHORT_THREAD_NS: u64 = 20_000;

/// Starts every job, and never ends.
pub(crate) fn all() {
    let mutex = Arc::new(ServerMutex::new());
    let bell = Arc::new((Mutex::new(()), Condvar::new()));
    let (lock_a, lock_b, waited, rung) = (mutex.clone(), mutex, bell.clone(), bell);
    let mut jobs = vec![
        job("spin", || timed(|| spin_ns(1_000_000))),
        job("sleep", || timed(|| std::thread::sleep(WAIT))),
        job("mutex-a", move || hold(&lock_a)),
        job("mutex-b", move || hold(&lock_b)),
        job("condvar", move || {
            let held = waited.0.lock().unwrap();
            timed(|| drop(waited.1.wait_timeout(held, 10 * WAIT)))
        }),
        job("ringer", move || {
            let slept = timed(|| std::thread::sleep(WAIT));
            rung.1.notify_all();
            slept
        }),
        job("poll", || timed(poll_nothing)),
    ];
    let mut pipe = fed_pipe();
    jobs.push(job("pipe", move || timed(|| pipe.read_exact(&mut [0; 1]).unwrap())));
    let mut timer = periodic_timer();
    jobs.push(job("timer", move || timed(|| timer.read_exact(&mut [0; 8]).unwrap())));
    let mut file = tempfile();
    jobs.push(job("sync", move || {
        file.write_all(&[1; 4096]).unwrap();
        timed(|| file.sync_data().unwrap())
    }));
    jobs.extend(["yield-a", "yield-b"].map(|name| job(name, || timed(yield_often))));
    for job in jobs {
        job.join().unwrap();
    }
}

/// A thread that waits for its byte, does `turn` again and again, prints the sum of what the turns give, and stays.
fn job(name: &'static str, mut turn: impl FnMut() -> u64 + Send + 'static) -> std::thread::JoinHandle<()> {
    let work = move || {
        // SAFETY: a plain system call.
        println!("job {name} {}", unsafe { libc::gettid() });
        wait_for_byte();
        let end = now_ns() + JOB.as_nanos() as u64;
        let mut sum = 0;
        while now_ns() < end {
            sum += turn();
        }
        println!("done {name} {sum}");
        loop {
            // SAFETY: a plain system call.
            unsafe { libc::pause() };
        }
    };
    std::thread::Builder::new().name(format!("job-{name}")).spawn(work).unwrap()
}

/// Holds the lock for a while. Returns how long it waited for it.
fn hold(mutex: &ServerMutex) -> u64 {
    let begun = now_ns();
    mutex.lock();
    let waited = now_ns() - begun;
    std::thread::sleep(WAIT);
    mutex.unlock();
    spin_ns(100_000);
    waited
}

/// A mutex as servers use it. Rust's own waits as one waits for a condition.
struct ServerMutex(std::cell::UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: that is what a mutex is for.
unsafe impl Sync for ServerMutex {}
// SAFETY: it is moved before it is used only.
unsafe impl Send for ServerMutex {}

impl ServerMutex {
    fn new() -> ServerMutex {
        ServerMutex(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    fn lock(&self) {
        // SAFETY: it is initialised, and stays where it is.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0.get()) }, 0);
    }

    fn unlock(&self) {
        // SAFETY: this thread holds it.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0.get()) }, 0);
    }
}

fn timed(wait: impl FnOnce()) -> u64 {
    let begun = now_ns();
    wait();
    now_ns() - begun
}

fn yield_often() {
    for _ in 0..100 {
        // SAFETY: a plain system call.
        unsafe { libc::sched_yield() };
    }
}

fn poll_nothing() {
    // SAFETY: no descriptors are passed.
    unsafe { libc::poll(std::ptr::null_mut(), 0, WAIT.as_millis() as i32) };
}

/// The reading end of a pipe that gets a byte every millisecond, for ever.
fn fed_pipe() -> std::io::PipeReader {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(WAIT);
            writer.write_all(&[0]).unwrap();
        }
    });
    reader
}

/// A descriptor that gives eight bytes every millisecond, for ever.
fn periodic_timer() -> File {
    let period = libc::timespec { tv_sec: 0, tv_nsec: WAIT.as_nanos() as i64 };
    let times = libc::itimerspec { it_interval: period, it_value: period };
    // SAFETY: the times are read only during the call, and only we have the descriptor.
    unsafe {
        let timer = libc::timerfd_create(libc::CLOCK_MONOTONIC, 0);
        assert_eq!(libc::timerfd_settime(timer, 0, &raw const times, std::ptr::null_mut()), 0);
        File::from_raw_fd(timer)
    }
}

/// An open file without a name, in the folder that the test gave.
fn tempfile() -> File {
    let path = std::path::Path::new("synced");
    let file = File::create(path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

/// Short threads, one after the other; prints the CPU time that they used, as they read it last.
pub(crate) fn churn(threads: u32) {
    wait_for_byte();
    let mut cpu_ns = 0;
    for _ in 0..threads {
        let short = std::thread::spawn(|| {
            spin_ns(SHORT_THREAD_NS);
            clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
        });
        cpu_ns += short.join().unwrap();
    }
    println!("done churn {cpu_ns}");
    wait_for_byte();
}

pub(crate) fn rename() {
    let renamed = || {
        // SAFETY: a plain system call.
        println!("job rename {}", unsafe { libc::gettid() });
        wait_for_byte();
        // SAFETY: the name ends in a zero.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"ib_log_writer".as_ptr()) };
        println!("done rename 0");
        wait_for_byte();
    };
    std::thread::Builder::new().name("before".to_string()).spawn(renamed).unwrap().join().unwrap();
}

/// Once there is a byte, another program, which ends with this one.
pub(crate) fn forks() {
    use std::os::unix::process::CommandExt;
    wait_for_byte();
    let mut command = std::process::Command::new("sleep");
    let end_with_parent = || {
        // SAFETY: a plain system call.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        Ok(())
    };
    // SAFETY: it makes one system call between fork and exec.
    unsafe { command.arg("60").pre_exec(end_with_parent) };
    println!("child {}", command.spawn().expect("sleep").id());
    wait_for_byte();
}

/// Starts a thread once there is a byte. It sleeps on a condition without a time, as a server's background threads do without work.
/// Each further byte wakes it.
pub(crate) fn sleeper() {
    wait_for_byte();
    let bell = Arc::new((Mutex::new(()), Condvar::new()));
    let rung = bell.clone();
    let work = move || {
        // SAFETY: a plain system call.
        println!("sleeper {}", unsafe { libc::gettid() });
        let mut held = rung.0.lock().unwrap();
        loop {
            held = rung.1.wait(held).unwrap();
        }
    };
    std::thread::spawn(work);
    loop {
        wait_for_byte();
        bell.1.notify_all();
    }
}

pub(crate) fn wait_for_byte() {
    let mut byte = 0_u8;
    // SAFETY: one byte is written to `byte`.
    let count = unsafe { libc::read(0, (&raw mut byte).cast(), 1) };
    if count != 1 {
        std::process::exit(0);
    }
}

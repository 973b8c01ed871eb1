//! What a request spends its time on, and how much that was.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// What each request does, in microseconds; `sync_kib` is what is written to a file and synced, in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) sleep_us: u64,
    pub(crate) lock_us: u64,
    pub(crate) sync_kib: u64,
    pub(crate) spin_us: u64,
    pub(crate) user_us: u64,
    pub(crate) kernel_us: u64,
}

/// What requests spent, in nanoseconds. Waits are without the time in which the thread ran or was ready to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    requests: u64,
    sleep_ns: u64,
    lock_ns: u64,
    /// Writing to a file and syncing it.
    sync_ns: u64,
    cpu_ns: u64,
    ready_ns: u64,
    elapsed_ns: u64,
    /// The send of the answer, which a request ends within.
    send: Sending,
}

/// What the send of an answer spent, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    cpu_ns: u64,
    ready_ns: u64,
    elapsed_ns: u64,
}

impl Spent {
    /// The answer was sent from `ended` to `sent`.
    pub(crate) fn add_send(&mut self, ended: &Moment, sent: &Moment) {
        self.send.cpu_ns += sent.cpu_ns - ended.cpu_ns;
        self.send.ready_ns += sent.ready_ns - ended.ready_ns;
        self.send.elapsed_ns += (sent.at - ended.at).as_nanos() as u64;
    }

    pub(crate) fn add(&mut self, more: &Spent) {
        self.requests += more.requests;
        self.sleep_ns += more.sleep_ns;
        self.lock_ns += more.lock_ns;
        self.sync_ns += more.sync_ns;
        self.cpu_ns += more.cpu_ns;
        self.ready_ns += more.ready_ns;
        self.elapsed_ns += more.elapsed_ns;
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "requests {}", self.requests)?;
        writeln!(f, "sleep {}\nlock {}\nsync {}", self.sleep_ns, self.lock_ns, self.sync_ns)?;
        writeln!(f, "cpu {}\nready {}\nelapsed {}", self.cpu_ns, self.ready_ns, self.elapsed_ns)?;
        let send = &self.send;
        writeln!(
            f,
            "send-cpu {}\nsend-ready {}\nsend-elapsed {}",
            send.cpu_ns, send.ready_ns, send.elapsed_ns
        )
    }
}

/// A thread's clocks at one moment, in nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    at: Instant,
    cpu_ns: u64,
    /// Ready without running, as the kernel counts it.
    ready_ns: u64,
}

impl Moment {
    /// Time since `before` in which the thread neither ran nor was ready to.
    fn waited_ns(&self, before: &Moment) -> u64 {
        let elapsed = (self.at - before.at).as_nanos() as u64;
        elapsed.saturating_sub(self.cpu_ns - before.cpu_ns).saturating_sub(self.ready_ns - before.ready_ns)
    }
}

/// The other thread, which ends a wait after its time.
struct Partner {
    asked: Sender<(Duration, Task)>,
    is_true: Arc<(Mutex<bool>, Condvar)>,
    is_set: Arc<AtomicBool>,
}

#[derive(Clone, Copy)]
enum Task {
    MakeTrue,
    Set,
}

impl Partner {
    fn new() -> io::Result<Partner> {
        let (asked, asks) = channel::<(Duration, Task)>();
        let is_true = Arc::new((Mutex::new(false), Condvar::new()));
        let is_set = Arc::new(AtomicBool::new(false));
        let (condition, flag) = (is_true.clone(), is_set.clone());
        let work = move || {
            for (after, task) in asks {
                std::thread::sleep(after);
                match task {
                    Task::MakeTrue => {
                        *condition.0.lock().expect("no one panics with the lock") = true;
                        condition.1.notify_one();
                    }
                    Task::Set => flag.store(true, Ordering::Release),
                }
            }
        };
        std::thread::Builder::new().name("partner".to_string()).spawn(work)?;
        Ok(Partner { asked, is_true, is_set })
    }

    fn ask(&self, after_us: u64, task: Task) {
        // It runs as long as this lives.
        let _ = self.asked.send((Duration::from_micros(after_us), task));
    }
}

/// One connection's means to spend time.
pub(crate) struct Parts {
    plan: Plan,
    partner: Partner,
    file: File,
    zeros: File,
    schedstat: File,
    buffer: Vec<u8>,
    written: Vec<u8>,
}

impl Parts {
    /// For the thread that calls this.
    ///
    /// # Errors
    /// Where a file can't be opened or a thread not made.
    pub(crate) fn new(plan: Plan) -> io::Result<Parts> {
        Ok(Parts {
            plan,
            partner: Partner::new()?,
            file: tempfile::tempfile()?,
            zeros: File::open("/dev/zero")?,
            schedstat: File::open("/proc/thread-self/schedstat")?,
            buffer: vec![0; 64 * 1024],
            written: vec![1; plan.sync_kib as usize * 1024],
        })
    }

    /// # Errors
    /// The kernel does not show how long the thread was ready.
    pub(crate) fn now(&self) -> io::Result<Moment> {
        let mut text = [0; 128];
        let count = self.schedstat.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(&text[..count]);
        let ready_ns = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        let ready_ns =
            ready_ns.ok_or_else(|| io::Error::other("/proc/thread-self/schedstat has no second number"))?;
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let cpu_ns = cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64;
        Ok(Moment { at: Instant::now(), cpu_ns, ready_ns })
    }

    /// Does all that the plan has; the request began at `begun`. Returns what was spent, and when it ended.
    ///
    /// # Errors
    /// Where a file can't be written, synced or read.
    pub(crate) fn spend(&mut self, begun: Moment) -> io::Result<(Spent, Moment)> {
        let plan = self.plan;
        let mut spent = Spent { requests: 1, ..Spent::default() };
        if plan.sleep_us > 0 {
            spent.sleep_ns = self.timed(|_| {
                std::thread::sleep(Duration::from_micros(plan.sleep_us));
                Ok(())
            })?;
        }
        if plan.lock_us > 0 {
            spent.lock_ns = self.timed(|parts| {
                parts.partner.ask(plan.lock_us, Task::MakeTrue);
                let (lock, condition) = &*parts.partner.is_true;
                let mut is_true = lock.lock().expect("no one panics with the lock");
                while !*is_true {
                    is_true = condition.wait(is_true).expect("no one panics with the lock");
                }
                *is_true = false;
                Ok(())
            })?;
        }
        if plan.sync_kib > 0 {
            spent.sync_ns = self.timed(|parts| {
                parts.file.write_all_at(&parts.written, 0)?;
                parts.file.sync_data()
            })?;
        }
        if plan.spin_us > 0 {
            self.partner.ask(plan.spin_us, Task::Set);
            while !self.partner.is_set.swap(false, Ordering::AcqRel) {
                std::hint::spin_loop();
            }
        }
        self.compute()?;
        let ended = self.now()?;
        spent.cpu_ns = ended.cpu_ns - begun.cpu_ns;
        spent.ready_ns = ended.ready_ns - begun.ready_ns;
        spent.elapsed_ns = (ended.at - begun.at).as_nanos() as u64;
        Ok((spent, ended))
    }

    /// On the CPU, in user space and then in the kernel.
    fn compute(&mut self) -> io::Result<()> {
        let until = Instant::now() + Duration::from_micros(self.plan.user_us);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let until = Instant::now() + Duration::from_micros(self.plan.kernel_us);
        while Instant::now() < until {
            self.zeros.read_exact(&mut self.buffer)?;
        }
        Ok(())
    }

    /// How long the thread waited in `work`.
    fn timed(&mut self, work: impl FnOnce(&mut Parts) -> io::Result<()>) -> io::Result<u64> {
        let before = self.now()?;
        work(self)?;
        Ok(self.now()?.waited_ns(&before))
    }
}

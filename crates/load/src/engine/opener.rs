//! Makes connections for an event loop, on threads of its own: a login waits for the server several times.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::connection::connect;
use crate::connection::session::Session;
use crate::engine::shared::LevelState;
use crate::error::LoadError;

/// Threads of one loop that make connections at the same time; a server's backlog is short.
const OPENING_MAX: usize = 16;
const STACK_BYTES: usize = 256 * 1024;

/// A connection that was asked for; `None`: the level was over first.
pub(crate) struct ConnectAttempt {
    pub(crate) slot: u32,
    pub(crate) result: Result<Option<Session>, LoadError>,
}

#[derive(Clone, Copy)]
struct Job {
    slot: u32,
    connection: u32,
}

pub(crate) struct Opener {
    shared: Arc<LevelState>,
    loop_number: u32,
    jobs: Option<Sender<Job>>,
    queue: Arc<Mutex<Receiver<Job>>>,
    /// Jobs that no thread has begun, and threads that wait for one.
    open_jobs: Arc<AtomicUsize>,
    done: Sender<ConnectAttempt>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Opener {
    pub(crate) fn new(shared: Arc<LevelState>, loop_number: u32) -> (Opener, Receiver<ConnectAttempt>) {
        let (jobs, queue) = channel();
        let (done, opened) = channel();
        let opener = Opener {
            shared,
            loop_number,
            jobs: Some(jobs),
            queue: Arc::new(Mutex::new(queue)),
            open_jobs: Arc::new(AtomicUsize::new(0)),
            done,
            threads: Vec::new(),
        };
        (opener, opened)
    }

    /// Has a connection opened. The result is sent, and the loop woken, when that is done.
    pub(crate) fn open(&mut self, slot: u32, connection: u32) {
        let job = Job { slot, connection };
        let waiting = self.open_jobs.fetch_add(1, Relaxed) + 1;
        if waiting > self.threads.len() && self.threads.len() < OPENING_MAX {
            self.spawn();
        }
        let queued = self.jobs.as_ref().filter(|_| !self.threads.is_empty()).map(|jobs| jobs.send(job));
        if queued.is_none_or(|sent| sent.is_err()) {
            // Without a thread to be had, the loop does it itself.
            do_job(&self.shared, self.loop_number, job, &self.done);
        }
    }

    fn spawn(&mut self) {
        let (shared, queue, done) = (self.shared.clone(), self.queue.clone(), self.done.clone());
        let (open_jobs, loop_number) = (self.open_jobs.clone(), self.loop_number);
        let name = format!("load-open-{loop_number}");
        let spawned = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
            loop {
                let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(job) = job else { return };
                do_job(&shared, loop_number, job, &done);
                open_jobs.fetch_sub(1, Relaxed);
            }
        });
        self.threads.extend(spawned);
    }
}

fn do_job(shared: &LevelState, loop_number: u32, job: Job, done: &Sender<ConnectAttempt>) {
    let result = connect::open_in_level(shared, job.connection);
    // A loop that has ended does not want it any more.
    if done.send(ConnectAttempt { slot: job.slot, result }).is_ok() {
        shared.wake(loop_number);
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // Each ends within one try of connecting, since the level is over.
            let _ = thread.join();
        }
    }
}

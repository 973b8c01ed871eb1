//! A running level, and how it is stopped.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;

use crate::engine::Pool;
use crate::engine::event_loop::Connections;
use crate::engine::shared::LevelState;
use crate::measure::closing::{PendingKind, PendingWork};
use crate::measure::collector::LevelMeasures;
use crate::measure::histogram::Histogram;
use crate::measure::tally::{Sizes, TransactionTally};
use crate::measure::usage::Usage;
use crate::outcome::{
    ArrivalsOutcome, CONNECT, EndpointOutcome, EngineUse, Failure, InFlight, Interval, KindOutcome,
    LevelOutcome, Live, ROLLBACK, TransactionOutcome,
};

const POLL: Duration = Duration::from_millis(1);

/// A level that runs. Dropping it stops it and forgets its result.
pub struct Running {
    pub(crate) shared: Arc<LevelState>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) users: u32,
    pub(crate) begin_ns: i64,
    pub(crate) cpus_allowed: u32,
    pub(crate) engine: EngineUse,
    /// Empty once they are joined.
    pub(crate) threads: Vec<JoinHandle<Connections>>,
    pub(crate) collector: Option<JoinHandle<LevelMeasures>>,
    /// Closed to tell the collector that the threads are done.
    pub(crate) collecting: Option<Sender<()>>,
    pub(crate) intervals: Receiver<Interval>,
    pub(crate) usage_at_begin: Option<Usage>,
    /// Where the window has ended before the level.
    pub(crate) usage_at_end: Option<Usage>,
    /// A number of transactions bounds it: it is measured from its begin to the last of them.
    pub(crate) measures_all: bool,
}

impl Running {
    /// Ends the warm-up: what is completed from now on counts into the result. The load continues without a pause.
    /// Returns the exact begin of the window, in monotonic nanoseconds; a second call changes nothing. A level with a
    /// number of transactions ([`LevelSpec::transactions_max`](crate::LevelSpec::transactions_max)) is measured from
    /// its begin: there the first call changes nothing, either.
    pub fn begin_measuring(&mut self) -> i64 {
        if self.usage_at_begin.is_none() {
            self.usage_at_begin = Some(Usage::read(&self.shared.rings));
        }
        let mut ledger = self.shared.ledger();
        let now_ns = monotonic_ns();
        ledger.begin_window(now_ns)
    }

    /// Ends the window. The load continues without a pause, and what is completed from now on counts into no result. Without this,
    /// [`stop`](Running::stop) ends it.
    pub fn end_measuring(&mut self) {
        if self.usage_at_end.is_none() {
            self.end_window();
            self.usage_at_end = Some(Usage::read(&self.shared.rings));
        }
    }

    /// Opens the window at the level's begin; to be called before anything runs.
    pub(crate) fn measure_all(&mut self) {
        self.measures_all = true;
        self.usage_at_begin = Some(Usage::read(&self.shared.rings));
        self.shared.ledger().begin_window(self.begin_ns);
    }

    /// What has been done since the level began, warm-up included. Cheap; may be called as often as wanted.
    pub fn live(&self) -> Live {
        let mut live = Live::default();
        for ring in &self.shared.rings {
            let errors = ring.totals.errors.load(Relaxed);
            live.transactions += ring.totals.transactions.load(Relaxed);
            live.queries += ring.totals.queries.load(Relaxed);
            live.errors += errors;
        }
        live
    }

    /// Sends each second's interval about 0.3 s after its end, and the last ones when the level is stopped (take them
    /// from [`stop_with_intervals`](Running::stop_with_intervals)). It holds 1,024 of them; more are lost and counted.
    pub fn intervals(&self) -> &Receiver<Interval> {
        &self.intervals
    }

    /// Lets a stop end transactions with the statement in flight, whatever the level's `finishes_transactions` says.
    pub fn break_transactions_off(&self) {
        self.shared.break_transactions_off();
    }

    /// Why the level has ended by itself; `None` while it runs. It still has to be stopped.
    pub fn failure(&self) -> Option<Failure> {
        self.shared.failure()
    }

    /// Kernel's ids of the threads that drive the load, one a loop, or a user.
    pub fn thread_ids(&self) -> Vec<i32> {
        self.shared.rings.iter().map(|ring| ring.thread_id.load(Acquire)).collect()
    }

    /// Whether every user has done all that there was to do: `transactions_max`, a schedule that ended, or drivers
    /// that left. The level still has to be stopped.
    pub fn is_over(&self) -> bool {
        self.shared.rings.iter().all(|ring| ring.finished.load(Acquire))
    }

    /// When the level began, in monotonic nanoseconds.
    pub fn begin_ns(&self) -> i64 {
        self.begin_ns
    }

    /// Number of users.
    pub fn users(&self) -> u32 {
        self.users
    }

    /// Ends the window here, where [`end_measuring`](Running::end_measuring) has not, then the level; the window of a level whose number of transactions
    /// ([`LevelSpec::transactions_max`](crate::LevelSpec::transactions_max)) was reached ended with the last of them. Statements in flight get `Limits::stop` to be answered.
    pub fn stop(self) -> LevelOutcome {
        self.stop_with_intervals().0
    }

    /// The same, and the intervals that are still in the channel, the last ones included.
    pub fn stop_with_intervals(mut self) -> (LevelOutcome, Vec<Interval>) {
        let (window_begin_ns, window_end_ns) = self.end_window();
        let usage_at_end = self.usage_at_end.take().unwrap_or_else(|| Usage::read(&self.shared.rings));
        let collected = self.wind_up();
        let window_ns = (window_end_ns - window_begin_ns) as u64;
        let client = match &self.usage_at_begin {
            Some(begin) => begin.until(&usage_at_end, window_ns, self.cpus_allowed),
            None => usage_at_end.until(&usage_at_end, 0, self.cpus_allowed),
        };
        let mut outcome = LevelOutcome {
            begin_ns: self.begin_ns,
            client_limit: self.shared.client_limit(),
            client,
            failure: self.shared.failure(),
            reconnects: self.shared.reconnects.load(Relaxed),
            ..LevelOutcome::nothing(self.users, self.engine.clone(), (window_begin_ns, window_end_ns))
        };
        if let Some(collected) = collected {
            self.fill(&mut outcome, collected);
        }
        (outcome, self.intervals.try_iter().collect())
    }

    /// Ends the window: here and now or, where all transactions that were asked for have ended, with the last of them.
    fn end_window(&self) -> (i64, i64) {
        let is_over = self.measures_all && self.is_over();
        let mut ledger = self.shared.ledger();
        let now_ns = monotonic_ns();
        if !is_over {
            return ledger.end_window(now_ns);
        }
        for ring in &self.shared.rings {
            ring.drain(|event| ledger.enter(event));
        }
        ledger.end_window_with_work(now_ns)
    }

    fn fill(&self, outcome: &mut LevelOutcome, collected: LevelMeasures) {
        let window = collected.window;
        outcome.transactions = window.response.count();
        outcome.retries = window.retries;
        outcome.response = window.response;
        outcome.service = window.service;
        outcome.retried = window.retried;
        outcome.lost_ns_by_code = window.lost.into_iter().collect();
        outcome.bins_100ms = collected.bins_100ms;
        outcome.intervals_lost = collected.intervals_lost;
        outcome.user_time = collected.closed.user_time;
        outcome.last_answer_ns = collected.closed.last_answer_ns;
        let ages = self.ages(&collected.closed.unanswered, outcome);
        outcome.in_flight = ages.all;
        for ((name, tally), in_flight) in
            self.shared.transactions.iter().zip(window.transactions).zip(ages.transactions)
        {
            let TransactionTally { response, service } = tally;
            outcome.by_transaction.push(TransactionOutcome {
                kind: name.clone(),
                response,
                service,
                in_flight,
            });
        }
        for ((name, kind), in_flight) in self.shared.kinds.iter().zip(window.kinds).zip(ages.kinds).skip(1) {
            let errors = kind.errors.iter().map(|(_, count)| count).sum();
            for (code, count) in kind.errors {
                *outcome.errors_by_code.entry(code).or_default() += count;
            }
            let count = kind.latency.count();
            let is_ours = name == ROLLBACK || name == CONNECT;
            if name != CONNECT {
                outcome.queries += count + errors;
            }
            if count + errors == 0 && is_ours {
                continue;
            }
            outcome.kinds.push(KindOutcome {
                kind: name.clone(),
                count,
                errors,
                rows: kind.rows,
                latency: kind.latency,
                error_latency: kind.error_latency,
                in_flight,
            });
        }
        for (endpoint, tally) in (0..).zip(window.endpoints) {
            outcome.endpoints.push(EndpointOutcome {
                address: self.shared.endpoints.address(endpoint),
                transactions: tally.response.count(),
                errors: tally.errors,
                response: tally.response,
                outages: self.shared.endpoints.take_outages(endpoint),
            });
        }
        if let Some(mut backlog) = self.shared.schedule.backlog() {
            let due_before = backlog.due(outcome.window_begin_ns);
            let at = |time_ns: i64| {
                let until_then = collected.backlog.iter().filter(|(at_ns, _)| *at_ns <= time_ns);
                until_then.map(|(_, backlog)| *backlog).next_back().unwrap_or(0)
            };
            let in_window =
                |(at_ns, _): &&(i64, u64)| (outcome.window_begin_ns..outcome.window_end_ns).contains(at_ns);
            let most = collected.backlog.iter().filter(in_window).map(|(_, backlog)| *backlog).max();
            outcome.arrivals = Some(ArrivalsOutcome {
                due: backlog.due(outcome.window_end_ns) - due_before,
                backlog_begin: at(outcome.window_begin_ns),
                backlog_end: at(outcome.window_end_ns),
                backlog_max: most.unwrap_or(0),
                late: window.late,
            });
        }
    }

    /// Ages of what was unanswered when the window ended: what users had begun or waited for, and what no user took.
    fn ages(&self, unanswered: &[PendingWork], outcome: &LevelOutcome) -> Ages {
        let mut ages = Ages::new(self.shared.sizes, outcome.response.max_ns());
        unanswered.iter().for_each(|pending| ages.record(pending));
        if outcome.window_end_ns > outcome.window_begin_ns {
            for (number, due_ns) in self.shared.schedule.never_taken(outcome.window_end_ns) {
                let kind = self.shared.work.transaction_kind(None, number);
                let age_ns = (outcome.window_end_ns - due_ns) as u64;
                ages.record(&PendingWork {
                    what: PendingKind::Transaction { kind, has_begun: false },
                    age_ns,
                });
            }
        }
        ages
    }

    /// Stops every thread, gives the connections back, and ends the collecting.
    fn wind_up(&mut self) -> Option<LevelMeasures> {
        self.shared.stop();
        let deadline = Instant::now() + self.shared.limits.stop;
        let all_finished = || self.shared.rings.iter().all(|ring| ring.finished.load(Acquire));
        while !all_finished() && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
        self.shared.stop_is_over.store(true, Release);
        for (number, ring) in self.shared.rings.iter().enumerate() {
            if !ring.finished.load(Acquire) {
                self.shared.shut_down(number);
            }
        }
        let mut sessions = self.pool.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in self.threads.drain(..) {
            // A thread that panicked has lost its connections; the next level makes new ones.
            for (number, session) in thread.join().unwrap_or_default() {
                sessions[number as usize] = session;
            }
        }
        drop(sessions);
        self.collecting = None;
        let collected = self.collector.take().and_then(|collector| collector.join().ok());
        self.pool.is_busy.store(false, std::sync::atomic::Ordering::Release);
        collected
    }
}

/// Ages of what was unanswered when the window ended: of all transactions, of each kind of them, and of each kind of
/// statement.
struct Ages {
    all: InFlight,
    transactions: Vec<Histogram>,
    kinds: Vec<Histogram>,
    /// Longest response time of those that ended in the window.
    longest_ns: u64,
}

impl Ages {
    fn new(sizes: Sizes, longest_ns: u64) -> Ages {
        let empty = |count: usize| (0..count).map(|_| Histogram::new()).collect();
        Ages {
            all: InFlight::default(),
            transactions: empty(sizes.transactions),
            kinds: empty(sizes.kinds),
            longest_ns,
        }
    }

    fn record(&mut self, PendingWork { what, age_ns }: &PendingWork) {
        let of_kind = match *what {
            PendingKind::Transaction { kind, has_begun } => {
                self.all.ages.record(*age_ns);
                self.all.not_begun += u64::from(!has_begun);
                self.all.older_than_ended += u64::from(*age_ns > self.longest_ns);
                kind.and_then(|kind| self.transactions.get_mut(usize::from(kind)))
            }
            PendingKind::Statement { kind } => self.kinds.get_mut(usize::from(kind)),
        };
        if let Some(of_kind) = of_kind {
            of_kind.record(*age_ns);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.threads.is_empty() || self.collector.is_some() {
            self.wind_up();
        }
    }
}

//! When transactions are due: what all users of a level take their next one from.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use whyso_random::SplitMix64;
use whyso_workload::{ArrivalClock, exponential_think};

use crate::error::LoadError;
use crate::spec::{LevelSpec, Pacing, Profile, Think};

/// Never, as far as a level is concerned.
const NEVER_NS: i64 = i64::MAX;

/// A transaction that one user is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) number: u64,
    pub(crate) by_arrival: bool,
    /// Response time counts from here; may lie in the past.
    pub(crate) due_ns: i64,
}

/// Hands out the transactions of a level.
pub(crate) struct Schedule {
    begin_ns: i64,
    /// Number of the level's first transaction.
    first: u64,
    seed: u64,
    form: Form,
    transactions_left: Option<AtomicU64>,
    begun: AtomicU64,
}

enum Form {
    Closed { think: Think, active: Option<Profile>, begins_within: Duration },
    Open { clock: Mutex<Arrivals>, all: ArrivalClock },
}

struct Arrivals {
    clock: ArrivalClock,
    count: u64,
}

impl Schedule {
    pub(crate) fn new(spec: &LevelSpec, seed: u64, first: u64, begin_ns: i64) -> Result<Schedule, LoadError> {
        let form = match &spec.pacing {
            Pacing::Closed { think, active } => {
                let begins_within = spec.begins_within;
                Form::Closed { think: *think, active: active.clone(), begins_within }
            }
            Pacing::Open { arrivals, rate } => {
                // Levels of one load differ in their arrivals too.
                let all = ArrivalClock::new(seed ^ first, *arrivals, rate.points())
                    .map_err(|error| LoadError::Schedule { why: error.to_string() })?;
                let clock = Mutex::new(Arrivals { clock: all.clone(), count: 0 });
                Form::Open { clock, all }
            }
        };
        let transactions_left = spec.transactions_max.map(AtomicU64::new);
        Ok(Schedule { begin_ns, first, seed, form, transactions_left, begun: AtomicU64::new(0) })
    }

    /// The user's next transaction, `done` being how many it has had in this level; `None`: there is none any more.
    #[inline]
    pub(crate) fn take(&self, user: u32, done: u64, now_ns: i64) -> Option<Ticket> {
        if let Some(left) = &self.transactions_left {
            left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).ok()?;
        }
        match &self.form {
            Form::Closed { think, active, begins_within } => {
                let number = self.first + done;
                let pause = match think {
                    _ if done == 0 && begins_within.is_zero() => Duration::ZERO,
                    _ if done == 0 => begins_within.mul_f64(self.share_of(user)),
                    Think::None => Duration::ZERO,
                    Think::Fixed(pause) => *pause,
                    Think::Exponential(mean) => exponential_think(self.seed, u64::from(user), number, *mean),
                };
                let mut due_ns = now_ns.saturating_add(i64::try_from(pause.as_nanos()).unwrap_or(NEVER_NS));
                if let Some(active) = active {
                    due_ns = self.active_from(active, user, due_ns)?;
                }
                Some(Ticket { number, by_arrival: false, due_ns })
            }
            Form::Open { clock, .. } => {
                let mut arrivals = clock.lock().unwrap_or_else(PoisonError::into_inner);
                let due_ns = self.begin_ns.saturating_add_unsigned(arrivals.clock.next()?);
                let number = self.first + arrivals.count;
                arrivals.count += 1;
                Some(Ticket { number, by_arrival: true, due_ns })
            }
        }
    }

    /// A user's random share of this level, from 0 to 1.
    fn share_of(&self, user: u32) -> f64 {
        SplitMix64::new(self.seed ^ self.first.rotate_left(32) ^ u64::from(user)).unit_f64()
    }

    /// A transaction of an open loop has begun.
    #[inline]
    pub(crate) fn begin(&self, ticket: &Ticket) {
        if ticket.by_arrival {
            self.begun.fetch_add(1, Relaxed);
        }
    }

    /// When the level began.
    pub(crate) fn begin_ns(&self) -> i64 {
        self.begin_ns
    }

    /// Numbers and due times of the transactions of an open loop that were due before then, and that no user took. None where
    /// the level's number of transactions was reached.
    pub(crate) fn never_taken(&self, end_ns: i64) -> impl Iterator<Item = (u64, i64)> + '_ {
        let rest = match &self.form {
            Form::Closed { .. } => None,
            Form::Open { clock, .. } => {
                let arrivals = clock.lock().unwrap_or_else(PoisonError::into_inner);
                Some((arrivals.clock.clone(), arrivals.count))
            }
        };
        let left = self.transactions_left.as_ref().map_or(u64::MAX, |left| left.load(Relaxed));
        let due = rest.into_iter().flat_map(move |(mut clock, count)| {
            let times = std::iter::from_fn(move || clock.next());
            let times = times.map(move |due_ns| self.begin_ns.saturating_add_unsigned(due_ns));
            (self.first + count..).zip(times.take_while(move |due_ns| *due_ns < end_ns))
        });
        due.take(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// The first time from `from_ns` on at which this user is at work; `None`: it never will be again.
    fn active_from(&self, active: &Profile, user: u32, from_ns: i64) -> Option<i64> {
        let user = f64::from(user);
        let from_s = (from_ns - self.begin_ns) as f64 / 1e9;
        if active.at(from_s) > user {
            return Some(from_ns);
        }
        let mut before: Option<(f64, f64)> = None;
        for (time, value) in active.points() {
            let time = time.as_secs_f64();
            if time > from_s && *value > user {
                // On the line up to this point, where the one before is on it too; at the point where that is a step.
                let at_s = match before {
                    Some((begin, low)) if low <= user && time > begin => {
                        begin + (time - begin) * (user - low) / (value - low)
                    }
                    _ => time,
                };
                return Some(self.begin_ns + (at_s.max(from_s) * 1e9).ceil() as i64 + 1);
            }
            before = Some((time, *value));
        }
        None
    }

    /// Follows an open loop's backlog; `None` in a closed loop.
    pub(crate) fn backlog(&self) -> Option<Backlog> {
        match &self.form {
            Form::Closed { .. } => None,
            Form::Open { all, .. } => {
                let mut clock = all.clone();
                let next_due_ns = clock.next();
                Some(Backlog { clock, next_due_ns, begin_ns: self.begin_ns, due: 0 })
            }
        }
    }
}

/// Counts what has become due, as time passes.
pub(crate) struct Backlog {
    clock: ArrivalClock,
    next_due_ns: Option<u64>,
    begin_ns: i64,
    due: u64,
}

impl Backlog {
    /// How many transactions became due until then; times must ascend.
    pub(crate) fn due(&mut self, now_ns: i64) -> u64 {
        while let Some(due_ns) = self.next_due_ns
            && self.begin_ns.saturating_add_unsigned(due_ns) <= now_ns
        {
            self.due += 1;
            self.next_due_ns = self.clock.next();
        }
        self.due
    }

    /// How many of them have not begun at that time.
    pub(crate) fn unbegun(&mut self, schedule: &Schedule, now_ns: i64) -> u64 {
        let begun = schedule.begun.load(Relaxed);
        self.due(now_ns).saturating_sub(begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Arrivals as Process;

    const S: i64 = 1_000_000_000;

    fn schedule(pacing: Pacing, transactions_max: Option<u64>) -> Schedule {
        let spec = LevelSpec { users: 10, pacing, transactions_max, ..LevelSpec::users(10) };
        Schedule::new(&spec, 1, 0, 100 * S).unwrap()
    }

    #[test]
    fn users_begin_within_a_time_and_at_other_times_in_each_level() {
        let begins_within = Duration::from_millis(300);
        let spec = LevelSpec { begins_within, ..LevelSpec::users(50) };
        let due_ns = |first: u64| -> Vec<i64> {
            let schedule = Schedule::new(&spec, 7, first, 0).unwrap();
            (0..50).map(|user| schedule.take(user, 0, 0).unwrap().due_ns).collect()
        };
        let (one, other) = (due_ns(0), due_ns(1_000));
        assert!(one.iter().all(|due_ns| (0..300_000_000).contains(due_ns)), "{one:?}");
        let mean_ns = one.iter().sum::<i64>() / 50;
        assert!((100_000_000..200_000_000).contains(&mean_ns), "{mean_ns}");
        assert_ne!(one, other);
    }

    #[test]
    fn a_closed_loop_goes_on_at_once_and_numbers_each_users_own() {
        let schedule = schedule(Pacing::Closed { think: Think::None, active: None }, None);
        let ticket = schedule.take(3, 7, 105 * S).unwrap();
        assert_eq!(ticket, Ticket { number: 7, by_arrival: false, due_ns: 105 * S });
        assert!(schedule.backlog().is_none());
    }

    #[test]
    fn think_time_comes_between_transactions_and_not_before_the_first() {
        let think = Think::Fixed(Duration::from_secs(2));
        let schedule = schedule(Pacing::Closed { think, active: None }, None);
        assert_eq!(schedule.take(0, 0, 100 * S).unwrap().due_ns, 100 * S);
        assert_eq!(schedule.take(0, 1, 100 * S).unwrap().due_ns, 102 * S);
    }

    #[test]
    fn a_user_waits_for_its_place_in_a_ramp_and_leaves_where_there_is_none() {
        let points = vec![
            (Duration::ZERO, 0.0),
            (Duration::from_secs(10), 10.0),
            (Duration::from_secs(20), 10.0),
            (Duration::from_secs(20), 2.0),
        ];
        let active = Some(Profile::new(points).unwrap());
        let schedule = schedule(Pacing::Closed { think: Think::None, active }, None);
        let due_s = |user, now_s| schedule.take(user, 1, now_s * S).map(|ticket| ticket.due_ns as f64 / 1e9);
        assert!((due_s(5, 100).unwrap() - 105.0).abs() < 0.01);
        assert_eq!(due_s(5, 107), Some(107.0));
        assert_eq!(due_s(5, 121), None);
        assert_eq!(due_s(1, 121), Some(121.0));
    }

    #[test]
    fn every_arrival_is_handed_out_once_and_those_not_begun_are_the_backlog() {
        let pacing = Pacing::Open { arrivals: Process::Uniform, rate: Profile::constant(10.0) };
        let schedule = schedule(pacing, None);
        let mut backlog = schedule.backlog().unwrap();
        let tickets: Vec<Ticket> = (0..20).map(|_| schedule.take(0, 0, 100 * S).unwrap()).collect();
        assert!(tickets.iter().map(|ticket| ticket.number).eq(0..20));
        assert!(tickets.windows(2).all(|pair| pair[1].due_ns - pair[0].due_ns - S / 10 < 10));
        assert_eq!(backlog.unbegun(&schedule, 101 * S), 10);
        tickets[..4].iter().for_each(|ticket| schedule.begin(ticket));
        assert_eq!(backlog.unbegun(&schedule, 102 * S), 16);
    }

    #[test]
    fn what_was_due_and_never_taken_has_a_number_and_a_time() {
        let pacing = Pacing::Open { arrivals: Process::Uniform, rate: Profile::constant(10.0) };
        let bounded = schedule(pacing.clone(), Some(7));
        let schedule = schedule(pacing, None);
        let all: Vec<(u64, i64)> = schedule.never_taken(101 * S).collect();
        assert_eq!(all.len(), 10);
        let tickets: Vec<Ticket> = (0..4).map(|_| schedule.take(0, 0, 100 * S).unwrap()).collect();
        assert!(tickets.iter().map(|ticket| (ticket.number, ticket.due_ns)).eq(all[..4].iter().copied()));
        assert!(schedule.never_taken(101 * S).eq(all[4..].iter().copied()));
        assert_eq!(schedule.never_taken(100 * S).count(), 0);
        assert_eq!(bounded.never_taken(101 * S).count(), 7);
        let closed = Pacing::Closed { think: Think::None, active: None };
        assert_eq!(super::tests::schedule(closed, None).never_taken(101 * S).count(), 0);
    }

    #[test]
    fn no_more_transactions_are_handed_out_than_were_asked_for() {
        let schedule = schedule(Pacing::Closed { think: Think::None, active: None }, Some(2));
        assert!(schedule.take(0, 0, 0).is_some() && schedule.take(1, 0, 0).is_some());
        assert!(schedule.take(2, 0, 0).is_none());
    }
}

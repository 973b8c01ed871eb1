//! What the users did with the time of the measured window, and what was unanswered when it ended.
//!
//! Each moment of each user belongs to one transaction, or lies between two. Events close all of it but what a user is at
//! when the level ends: that is its [`Departure`].

use crate::measure::ring::{Event, What};
use crate::outcome::UserTime;

/// The window's edges; `None` where one lies in the future.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) begin_ns: Option<i64>,
    pub(crate) end_ns: Option<i64>,
}

/// What a user was at when the level ended, or when it left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// Since when it was at that. That is the begin of its time in the transaction, where that has begun; else the end
    /// of the one before, or the level's begin.
    pub(crate) since_ns: i64,
    /// Due time of the transaction that it had begun, or waited for, and not ended.
    pub(crate) due_ns: Option<i64>,
    /// The kind of that transaction, where there are several.
    pub(crate) transaction: Option<u16>,
    /// Whether that transaction had begun.
    pub(crate) has_begun: bool,
    /// Kind of the statement that was sent and not answered, and when it was sent.
    pub(crate) statement: Option<(u16, i64)>,
}

/// Something that was due and unanswered when the window ended, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingWork {
    pub(crate) what: PendingKind,
    pub(crate) age_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingKind {
    Transaction { kind: Option<u16>, has_begun: bool },
    Statement { kind: u16 },
}

#[derive(Default)]
pub(crate) struct Closing {
    ended_ns: i64,
    before_ns: i64,
    in_flight_ns: i64,
    outside_ns: i64,
    paused_ns: i64,
    /// When the last answer within the window, or before it, arrived.
    last_answer_ns: Option<i64>,
    unanswered: Vec<PendingWork>,
    departures: Vec<Departure>,
}

/// The window, closed.
#[derive(Default)]
pub(crate) struct WindowEnd {
    pub(crate) user_time: UserTime,
    pub(crate) unanswered: Vec<PendingWork>,
    pub(crate) last_answer_ns: Option<i64>,
}

impl Closing {
    /// Reserves room for what this many users may have in flight: a transaction and a statement each.
    pub(crate) fn new(users: usize) -> Closing {
        Closing {
            unanswered: Vec::with_capacity(2 * users),
            departures: Vec::with_capacity(users),
            ..Closing::default()
        }
    }

    #[inline]
    pub(crate) fn enter(&mut self, event: &Event, window: Window) {
        let end_ns = event.end_ns;
        let is_after = window.end_ns.is_some_and(|window_end_ns| end_ns >= window_end_ns);
        match event.what {
            What::Statement { kind, latency_ns, .. } | What::Error { kind, latency_ns, .. } => {
                self.answered(end_ns, is_after);
                if is_after {
                    self.add_unanswered(PendingKind::Statement { kind }, end_ns - latency_ns as i64, window);
                }
            }
            What::Transaction { transaction, response_ns, user_ns, .. } => {
                self.answered(end_ns, is_after);
                self.close_transaction(end_ns, user_ns, window);
                if is_after {
                    let what = PendingKind::Transaction { kind: Some(transaction), has_begun: true };
                    self.add_unanswered(what, end_ns - response_ns as i64, window);
                }
            }
            What::Uncounted { response_ns, user_ns } => {
                self.close_transaction(end_ns, user_ns, window);
                if is_after {
                    let what = PendingKind::Transaction { kind: None, has_begun: true };
                    self.add_unanswered(what, end_ns - response_ns as i64, window);
                }
            }
            What::Outside { outside_ns } => {
                self.outside_ns += within(end_ns - outside_ns as i64, end_ns, window);
            }
            What::Paused { paused_ns } => {
                self.paused_ns += within(end_ns - paused_ns as i64, end_ns, window);
            }
            What::GivenUp { .. } | What::Late { .. } => {}
        }
    }

    /// A user ends. Its time is counted by [`finish`](Closing::finish), once the window has ended.
    pub(crate) fn depart(&mut self, departure: Departure) {
        self.departures.push(departure);
    }

    /// Closes the window: every user has departed. What no user took of an open loop is left to the schedule.
    pub(crate) fn finish(&mut self, window: Window) -> WindowEnd {
        let (Some(begin_ns), Some(end_ns)) = (window.begin_ns, window.end_ns) else {
            return WindowEnd::default();
        };
        for departure in std::mem::take(&mut self.departures) {
            let Departure { since_ns, due_ns, transaction, has_begun, statement } = departure;
            let inside_from_ns = due_ns.map_or(end_ns, |due_ns| due_ns.max(since_ns)).min(end_ns);
            self.outside_ns += within(since_ns, inside_from_ns, window);
            self.in_flight_ns += within(inside_from_ns, end_ns, window);
            if let Some(due_ns) = due_ns {
                let what = PendingKind::Transaction { kind: transaction, has_begun };
                self.add_unanswered(what, due_ns, window);
            }
            if let Some((kind, asked_ns)) = statement {
                self.add_unanswered(PendingKind::Statement { kind }, asked_ns, window);
            }
        }
        let is_empty = end_ns <= begin_ns;
        WindowEnd {
            user_time: UserTime {
                ended_ns: self.ended_ns as u64,
                before_ns: self.before_ns as u64,
                in_flight_ns: self.in_flight_ns as u64,
                outside_ns: self.outside_ns as u64,
                paused_ns: self.paused_ns as u64,
            },
            unanswered: if is_empty { Vec::new() } else { std::mem::take(&mut self.unanswered) },
            last_answer_ns: self.last_answer_ns,
        }
    }

    #[inline]
    fn answered(&mut self, at_ns: i64, is_after: bool) {
        if !is_after {
            self.last_answer_ns = self.last_answer_ns.max(Some(at_ns));
        }
    }

    #[inline]
    fn close_transaction(&mut self, end_ns: i64, user_ns: u64, window: Window) {
        let begin_ns = end_ns - user_ns as i64;
        match window {
            Window { begin_ns: Some(from_ns), .. } if end_ns < from_ns => {}
            Window { end_ns: Some(until_ns), .. } if end_ns >= until_ns => {
                self.in_flight_ns += within(begin_ns, end_ns, window);
            }
            Window { begin_ns: Some(from_ns), .. } => {
                self.ended_ns += end_ns - begin_ns.max(from_ns);
                self.before_ns += (from_ns - begin_ns).max(0);
            }
            Window { begin_ns: None, .. } => {}
        }
    }

    /// It ended after the window, or never. It counts where it was due within the window, or before.
    fn add_unanswered(&mut self, what: PendingKind, due_ns: i64, window: Window) {
        if let Some(end_ns) = window.end_ns.filter(|end_ns| due_ns < *end_ns) {
            self.unanswered.push(PendingWork { what, age_ns: (end_ns - due_ns) as u64 });
        }
    }
}

/// The part of a stretch of time that lies in the window, in nanoseconds; 0 before the window has begun.
#[inline]
fn within(begin_ns: i64, end_ns: i64, window: Window) -> i64 {
    let Some(window_begin_ns) = window.begin_ns else { return 0 };
    let end_ns = window.end_ns.map_or(end_ns, |window_end_ns| end_ns.min(window_end_ns));
    (end_ns - begin_ns.max(window_begin_ns)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn transaction(end_ns: i64, response_ns: u64, user_ns: u64) -> Event {
        let service_ns = user_ns;
        let what = What::Transaction { transaction: 3, response_ns, service_ns, user_ns, was_retried: false };
        Event { end_ns, endpoint: 0, what }
    }

    fn window(begin_ns: i64, end_ns: i64) -> Window {
        Window { begin_ns: Some(begin_ns), end_ns: Some(end_ns) }
    }

    const NOBODY: Departure =
        Departure { since_ns: 0, due_ns: None, transaction: None, has_begun: false, statement: None };

    #[test]
    fn what_ended_after_the_window_was_in_flight_when_it_ended_with_its_age_and_not_its_whole_time() {
        let mut closing = Closing::new(1);
        let edges = window(100, 200);
        closing.enter(&transaction(130, 80, 80), edges);
        closing.enter(&transaction(250, 120, 120), edges);
        closing.depart(Departure { since_ns: 250, ..NOBODY });
        let closed = closing.finish(edges);
        let expected = UserTime { ended_ns: 30, before_ns: 50, in_flight_ns: 70, ..UserTime::default() };
        assert_eq!(closed.user_time, expected);
        let what = PendingKind::Transaction { kind: Some(3), has_begun: true };
        assert_eq!(closed.unanswered, [PendingWork { what, age_ns: 70 }]);
        assert_eq!(closed.last_answer_ns, Some(130));
    }

    #[test]
    fn a_transaction_that_waited_for_its_user_ages_from_when_it_was_due() {
        let mut closing = Closing::new(3);
        let edges = window(100, 200);
        // Due at 110, begun when its user was free at 150, not ended.
        closing.enter(&transaction(150, 60, 50), edges);
        let statement = Some((1, 160));
        closing.depart(Departure {
            since_ns: 150,
            due_ns: Some(110),
            transaction: Some(7),
            has_begun: true,
            statement,
        });
        // Due before the window's end, and waiting for its time when the level ended; and due after it.
        closing.depart(Departure { since_ns: 195, due_ns: Some(199), transaction: Some(4), ..NOBODY });
        closing.depart(Departure { since_ns: 195, due_ns: Some(200), ..NOBODY });
        let closed = closing.finish(edges);
        let expected = UserTime { ended_ns: 50, in_flight_ns: 51, outside_ns: 9, ..UserTime::default() };
        assert_eq!(closed.user_time, expected);
        let ages: Vec<(PendingKind, u64)> =
            closed.unanswered.iter().map(|pending| (pending.what, pending.age_ns)).collect();
        let transaction = |kind, has_begun| PendingKind::Transaction { kind, has_begun };
        assert_eq!(
            ages,
            [
                (transaction(Some(7), true), 90),
                (PendingKind::Statement { kind: 1 }, 40),
                (transaction(Some(4), false), 1),
            ]
        );
    }

    #[test]
    fn a_pause_counts_as_far_as_it_lies_in_the_window() {
        let mut closing = Closing::new(1);
        for (end_ns, paused_ns) in [(110, 30), (150, 20), (230, 60)] {
            closing.enter(&Event { end_ns, endpoint: 0, what: What::Paused { paused_ns } }, window(100, 200));
        }
        let closed = closing.finish(window(100, 200));
        assert_eq!(closed.user_time.paused_ns, 10 + 20 + 30);
    }

    #[test]
    fn a_window_that_never_began_holds_nothing() {
        let mut closing = Closing::new(1);
        closing.enter(&transaction(130, 80, 80), Window::default());
        closing.depart(Departure { due_ns: Some(130), ..NOBODY });
        let closed = closing.finish(Window::default());
        assert_eq!((closed.user_time, closed.unanswered.len()), (UserTime::default(), 0));
    }

    /// One user's life from 0 on: pauses and transactions in turn, cut off where the level ends.
    fn live(closing: &mut Closing, steps: &[(u16, u16)], edges: (i64, i64), over_ns: i64) {
        let window_at = |at_ns: i64| Window {
            begin_ns: Some(edges.0).filter(|begin_ns| at_ns >= *begin_ns),
            end_ns: Some(edges.1).filter(|end_ns| at_ns >= *end_ns),
        };
        let mut free_since_ns = 0;
        for (pause, length) in steps {
            let due_ns = free_since_ns + i64::from(*pause);
            let end_ns = due_ns + i64::from(*length);
            if due_ns > free_since_ns && due_ns < over_ns {
                let what = What::Outside { outside_ns: u64::from(*pause) };
                closing.enter(&Event { end_ns: due_ns, endpoint: 0, what }, window_at(due_ns));
            }
            if end_ns >= over_ns {
                let since_ns = if due_ns < over_ns { due_ns } else { free_since_ns };
                closing.depart(Departure { since_ns, due_ns: Some(due_ns), ..NOBODY });
                return;
            }
            closing.enter(&transaction(end_ns, u64::from(*length), u64::from(*length)), window_at(end_ns));
            free_since_ns = end_ns;
        }
        closing.depart(Departure { since_ns: free_since_ns, ..NOBODY });
    }

    proptest! {
        #[test]
        fn users_times_the_window_is_the_sum_of_the_three(
            users in prop::collection::vec(prop::collection::vec((0u16..300, 0u16..900), 0..20), 1..6),
            begin_ns in 0i64..3_000,
            length_ns in 1i64..3_000,
            rest_ns in 0i64..500,
        ) {
            let end_ns = begin_ns + length_ns;
            let mut closing = Closing::new(users.len());
            for steps in &users {
                live(&mut closing, steps, (begin_ns, end_ns), end_ns + rest_ns);
            }
            let UserTime { ended_ns, in_flight_ns, outside_ns, .. } =
                closing.finish(window(begin_ns, end_ns)).user_time;
            prop_assert_eq!(ended_ns + in_flight_ns + outside_ns, users.len() as u64 * length_ns as u64);
        }
    }
}

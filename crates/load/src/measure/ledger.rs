//! Where every event is entered: which interval it belongs to, and whether it lies in the measured window.

use std::collections::VecDeque;

use crate::measure::closing::{Closing, Departure, Window, WindowEnd};
use crate::measure::ring::{Event, What};
use crate::measure::tally::{Sizes, Tally};

/// Length of an interval, where no edge of the window cuts it.
pub(crate) const INTERVAL_NS: i64 = 1_000_000_000;
/// How long after its end an interval stays open for late events. A thread may take an event's time and be put aside
/// before it enters the event, on a machine with more threads than CPUs.
const GRACE_NS: i64 = 300_000_000;
const BIN_NS: i64 = 100_000_000;
/// A day of bins; a longer window is not binned beyond it.
const BINS_MAX: usize = 864_000;
/// Bins that a window starts with room for: ten minutes.
const BINS_RESERVED: usize = 6_000;

/// An interval and what has been counted in it.
pub(crate) struct Stretch {
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) measured: bool,
    pub(crate) tally: Tally,
}

pub(crate) struct Ledger {
    sizes: Sizes,
    /// Ascending, without gaps, never empty while the level runs.
    open: VecDeque<Stretch>,
    spare: Vec<Tally>,
    /// Events of the window whose interval was closed before they arrived.
    late: Tally,
    window_begin_ns: Option<i64>,
    window_end_ns: Option<i64>,
    /// End of what was done last.
    last_ns: i64,
    bins_100ms: Vec<u32>,
    closing: Closing,
}

impl Ledger {
    /// Of a level of this many users.
    pub(crate) fn new(begin_ns: i64, sizes: Sizes, users: usize) -> Ledger {
        let tally = || Tally::new(sizes);
        let first = Stretch { begin_ns, end_ns: begin_ns + INTERVAL_NS, measured: false, tally: tally() };
        Ledger {
            sizes,
            open: VecDeque::from([first]),
            spare: vec![tally()],
            late: tally(),
            window_begin_ns: None,
            window_end_ns: None,
            last_ns: begin_ns,
            bins_100ms: Vec::new(),
            closing: Closing::new(users),
        }
    }

    /// Begins the measured window now; later calls change nothing. `now_ns` must have been read under the lock that
    /// guards the ledger, so that no event of a later time can have been entered. Gives the window's begin.
    pub(crate) fn begin_window(&mut self, now_ns: i64) -> i64 {
        if let Some(begin_ns) = self.window_begin_ns {
            return begin_ns;
        }
        self.window_begin_ns = Some(now_ns);
        self.bins_100ms.reserve(BINS_RESERVED);
        self.cut(now_ns, true);
        now_ns
    }

    /// Ends the window, where it has begun and not ended: its edges, the same twice where it never began.
    pub(crate) fn end_window(&mut self, now_ns: i64) -> (i64, i64) {
        let Some(begin_ns) = self.window_begin_ns else {
            return (now_ns, now_ns);
        };
        if let Some(end_ns) = self.window_end_ns {
            return (begin_ns, end_ns);
        }
        self.window_end_ns = Some(now_ns);
        self.cut(now_ns, false);
        (begin_ns, now_ns)
    }

    /// Ends the window, where it has begun and not ended, just after what was done last: nothing more will be done. Its
    /// edges, as [`end_window`](Ledger::end_window) gives them.
    pub(crate) fn end_window_with_work(&mut self, now_ns: i64) -> (i64, i64) {
        if self.window_end_ns.is_none()
            && let Some(begin_ns) = self.window_begin_ns
        {
            // Intervals that have been reported stay as they are.
            let reported_ns = self.open.front().map_or(begin_ns, |first| first.begin_ns);
            let end_ns = (self.last_ns + 1).max(begin_ns).max(reported_ns).min(now_ns);
            while self.open.len() > 1 && self.open.back().is_some_and(|last| last.begin_ns >= end_ns) {
                self.open.pop_back();
            }
            return self.end_window(end_ns);
        }
        self.end_window(now_ns)
    }

    /// Ends the current interval here and begins another.
    fn cut(&mut self, at_ns: i64, measured: bool) {
        self.extend(at_ns);
        if let Some(current) = self.open.back_mut() {
            current.end_ns = at_ns;
        }
        self.push(at_ns, measured);
    }

    fn push(&mut self, begin_ns: i64, measured: bool) {
        let tally = self.spare.pop().unwrap_or_else(|| Tally::new(self.sizes));
        self.open.push_back(Stretch { begin_ns, end_ns: begin_ns + INTERVAL_NS, measured, tally });
    }

    /// Makes sure that there is an interval which `now_ns` lies in.
    pub(crate) fn extend(&mut self, now_ns: i64) {
        while let Some(last) = self.open.back()
            && now_ns >= last.end_ns
        {
            let (end_ns, measured) = (last.end_ns, last.measured);
            self.push(end_ns, measured);
        }
    }

    /// Enters an event. Allocates nothing, but at the beginning of an interval.
    pub(crate) fn enter(&mut self, event: Event) {
        let end_ns = event.end_ns;
        self.closing.enter(&event, self.window());
        if let What::Outside { .. } | What::Paused { .. } | What::Uncounted { .. } = event.what {
            return;
        }
        self.last_ns = self.last_ns.max(end_ns);
        let is_transaction = matches!(event.what, What::Transaction { .. });
        if is_transaction && self.is_measured(end_ns) {
            self.bin(end_ns);
        }
        self.extend(end_ns);
        let mut position = self.open.len() - 1;
        while position > 0 && end_ns < self.open[position].begin_ns {
            position -= 1;
        }
        let is_late = end_ns < self.open[position].begin_ns;
        if !is_late {
            self.open[position].tally.count(event);
        } else if self.is_measured(end_ns) {
            self.late.count(event);
        }
        // A late event of the warm-up is dropped: its interval has been reported, and no result counts it.
    }

    /// A user ends, with what it was at.
    pub(crate) fn depart(&mut self, departure: Departure) {
        self.closing.depart(departure);
    }

    /// Closes the window, when every user has departed: see [`Closing::finish`].
    pub(crate) fn close(&mut self) -> WindowEnd {
        let window = self.window();
        self.closing.finish(window)
    }

    fn window(&self) -> Window {
        Window { begin_ns: self.window_begin_ns, end_ns: self.window_end_ns }
    }

    fn is_measured(&self, at_ns: i64) -> bool {
        let has_begun = self.window_begin_ns.is_some_and(|begin_ns| at_ns >= begin_ns);
        let has_ended = self.window_end_ns.is_some_and(|end_ns| at_ns >= end_ns);
        has_begun && !has_ended
    }

    fn bin(&mut self, at_ns: i64) {
        let bin = ((at_ns - self.window_begin_ns.unwrap_or(at_ns)) / BIN_NS) as usize;
        if bin >= BINS_MAX {
            return;
        }
        if bin >= self.bins_100ms.len() {
            self.bins_100ms.resize(bin + 1, 0);
        }
        self.bins_100ms[bin] += 1;
    }

    /// Takes out the first interval that nothing more is expected for.
    pub(crate) fn take_due(&mut self, now_ns: i64) -> Option<Stretch> {
        let is_due = self.open.len() > 1 && self.open[0].end_ns + GRACE_NS <= now_ns;
        if is_due { self.open.pop_front() } else { None }
    }

    /// Takes out every interval, the last one cut at `now_ns`: the level is over. Then the late events of the window.
    pub(crate) fn take_all(&mut self, now_ns: i64) -> (Vec<Stretch>, Tally) {
        self.extend(now_ns);
        if let Some(last) = self.open.back_mut() {
            last.end_ns = now_ns.max(last.begin_ns);
        }
        (self.open.drain(..).collect(), std::mem::replace(&mut self.late, Tally::new(self.sizes)))
    }

    /// Gives a tally back to be used again.
    pub(crate) fn give_back(&mut self, mut tally: Tally) {
        tally.clear();
        self.spare.push(tally);
    }

    /// Transactions that ended in each 100 ms of the window, one for every 100 ms begun.
    pub(crate) fn take_bins(&mut self) -> Vec<u32> {
        let mut bins = std::mem::take(&mut self.bins_100ms);
        if let (Some(begin_ns), Some(end_ns)) = (self.window_begin_ns, self.window_end_ns) {
            let count = ((end_ns - begin_ns) as u64).div_ceil(BIN_NS as u64) as usize;
            bins.resize(count.min(BINS_MAX), 0);
        }
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = INTERVAL_NS;
    const SIZES: Sizes = Sizes { kinds: 2, transactions: 0, endpoints: 1 };

    fn transaction(end_ns: i64) -> Event {
        let what = What::Transaction {
            transaction: 0,
            response_ns: 9,
            service_ns: 9,
            user_ns: 9,
            was_retried: false,
        };
        Event { end_ns, endpoint: 0, what }
    }

    #[test]
    fn the_window_counts_what_was_completed_in_it_and_nothing_else() {
        let mut ledger = Ledger::new(0, SIZES, 1);
        ledger.enter(transaction(S / 2));
        assert_eq!(ledger.begin_window(S / 2 + 1), S / 2 + 1);
        assert_eq!(ledger.begin_window(S), S / 2 + 1);
        ledger.enter(transaction(S / 2 + 1));
        ledger.enter(transaction(2 * S));
        // The time lies before the window's begin, and the event is entered after it.
        ledger.enter(transaction(S / 2));
        assert_eq!(ledger.end_window(2 * S + 1), (S / 2 + 1, 2 * S + 1));
        assert_eq!(ledger.end_window(3 * S), (S / 2 + 1, 2 * S + 1));
        ledger.enter(transaction(2 * S + 1));
        let bins = ledger.take_bins();
        assert_eq!((bins.len(), bins.iter().sum::<u32>(), bins[0]), (15, 2, 1));
        let (stretches, late) = ledger.take_all(3 * S);
        let measured: u64 = stretches.iter().filter(|s| s.measured).map(|s| s.tally.response.count()).sum();
        let before: u64 = stretches[0].tally.response.count();
        assert_eq!((measured + late.response.count(), before), (2, 2));
    }

    #[test]
    fn an_event_that_comes_after_its_interval_was_closed_still_counts_into_the_window() {
        let mut ledger = Ledger::new(0, SIZES, 1);
        ledger.begin_window(0);
        ledger.extend(2 * S);
        let mut closed = Vec::new();
        while let Some(stretch) = ledger.take_due(2 * S + GRACE_NS) {
            closed.push((stretch.begin_ns, stretch.end_ns));
        }
        // The interval before the window has no length.
        assert_eq!(closed, [(0, 0), (0, S), (S, 2 * S)]);
        ledger.enter(transaction(S / 2));
        let (_, late) = ledger.take_all(3 * S);
        assert_eq!(late.response.count(), 1);
    }

    #[test]
    fn a_window_that_ends_with_the_work_ends_just_after_what_was_done_last() {
        let mut ledger = Ledger::new(0, SIZES, 1);
        ledger.begin_window(0);
        ledger.enter(transaction(S / 2));
        ledger.enter(transaction(S + 7));
        // Somebody has looked later, and what was empty until then is open.
        ledger.extend(4 * S);
        assert_eq!(ledger.end_window_with_work(4 * S), (0, S + 8));
        assert_eq!(ledger.end_window(5 * S), (0, S + 8));
        assert_eq!(ledger.take_bins().iter().sum::<u32>(), 2);
        let (stretches, _) = ledger.take_all(5 * S);
        assert!(stretches.windows(2).all(|pair| pair[0].end_ns == pair[1].begin_ns));
        let measured: Vec<_> = stretches.iter().filter(|s| s.measured).collect();
        assert_eq!(measured.last().map(|s| (s.begin_ns, s.end_ns)), Some((S, S + 8)));
        assert_eq!(measured.iter().map(|s| s.tally.response.count()).sum::<u64>(), 2);
    }

    #[test]
    fn a_window_that_never_began_is_empty() {
        let mut ledger = Ledger::new(0, SIZES, 1);
        ledger.enter(transaction(5));
        assert_eq!(ledger.end_window(9), (9, 9));
        assert!(ledger.take_bins().is_empty());
        let (stretches, _) = ledger.take_all(9);
        assert!(stretches.iter().all(|stretch| !stretch.measured));
    }

    proptest! {
        #[test]
        fn intervals_have_no_gaps_and_hold_every_event_once(
            times in prop::collection::vec(0i64..5 * S, 0..200),
            begin in 0i64..2 * S,
            length in 1i64..3 * S,
        ) {
            // Events come in order of time, but those of one tick in any order: as from several threads.
            let end = begin + length;
            let mut times = times;
            times.sort_unstable();
            let mut ledger = Ledger::new(0, SIZES, 1);
            let mut stretches = Vec::new();
            let edges = [(begin, true), (end, false), (5 * S, false)];
            let mut entered = 0;
            for (edge, opens) in edges {
                let until = times.partition_point(|time| *time < edge);
                for time in times[entered..until].iter().rev() {
                    ledger.enter(transaction(*time));
                }
                entered = until;
                match (opens, edge == end) {
                    (true, _) => { ledger.begin_window(edge); }
                    (false, true) => { ledger.end_window(edge); }
                    _ => {}
                }
                ledger.extend(edge);
                while let Some(stretch) = ledger.take_due(edge) {
                    stretches.push(stretch);
                }
            }
            let in_window = times.iter().filter(|time| (begin..end).contains(time)).count() as u64;
            prop_assert_eq!(ledger.take_bins().iter().map(|n| u64::from(*n)).sum::<u64>(), in_window);
            let (rest, late) = ledger.take_all(5 * S);
            stretches.extend(rest);
            prop_assert!(stretches.windows(2).all(|pair| pair[0].end_ns == pair[1].begin_ns));
            let count = |measured: bool| -> u64 {
                stretches.iter().filter(|s| s.measured == measured).map(|s| s.tally.response.count()).sum()
            };
            prop_assert_eq!(count(true) + late.response.count(), in_window);
            prop_assert_eq!(count(true) + count(false) + late.response.count(), times.len() as u64);
        }
    }
}

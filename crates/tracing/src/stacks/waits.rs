//! Waits whose parts come one after the other: that it ended, who ended it, and, when the thread is back, where it waited.

use std::collections::{BTreeMap, HashMap};

use whyso_model::State;
use whyso_record::data::{PastState, StackWait};
use whyso_stacks::{End, Frame, StackId, Table};
use whyso_trace::StackRecord;

/// A thread that was woken and does not come back to user space within this has ended, or never had a user's side.
const BACK_TIME_MAX_NS: i64 = 5_000_000_000;

struct Pending {
    row: StackWait,
    frames: Vec<Frame>,
    /// `None`: its thread is not back yet.
    end: Option<End>,
}

/// One entry per state between two waits for locks. Threads that lose their CPU change states a thousand times per second. When a state
/// was matters only at waits for locks.
fn merged((mut begin_ns, states): (i64, Vec<(State, i64)>)) -> Vec<PastState> {
    let mut past: Vec<PastState> = Vec::new();
    let mut since_lock = 0;
    for (state, end_ns) in states {
        let ns = end_ns.saturating_sub(begin_ns).unsigned_abs();
        begin_ns = end_ns;
        match past[since_lock..].iter_mut().find(|past_state| past_state.state == state.name()) {
            Some(past_state) => past_state.ns += ns,
            None => past.push(PastState { state: state.name().to_string(), ns }),
        }
        if matches!(state, State::Lock | State::KernelLock) {
            since_lock = past.len();
        }
    }
    past
}

fn row(record: &StackRecord<'_>, role: &str) -> StackWait {
    StackWait {
        t_ns: record.t_ns,
        wait: record.wait,
        tid: record.tid,
        role: role.to_string(),
        state: record.state.name().to_string(),
        length_ns: record.length_ns,
        weight_ns: record.weight_ns,
        stack: 0,
        waker_tid: 0,
        waker_stack: None,
        waker_past: Vec::new(),
    }
}

#[derive(Default)]
pub(super) struct Waits {
    pending: BTreeMap<u64, Pending>,
    by_thread: HashMap<u32, Vec<u64>>,
    /// Waits that were recorded without their user's stack.
    pub(super) without_user: u64,
}

impl Waits {
    /// A wait has ended; `kernel` is what it waited in there.
    pub(super) fn begin(&mut self, record: &StackRecord<'_>, role: &str, kernel: Vec<Frame>) {
        self.pending.insert(record.wait, Pending { row: row(record, role), frames: kernel, end: None });
        self.by_thread.entry(record.tid).or_default().push(record.wait);
    }

    /// A wait that nobody ended, and whose stack is known: that for a CPU.
    pub(super) fn whole(&mut self, record: &StackRecord<'_>, role: &str, frames: Vec<Frame>, end: End) {
        self.pending.insert(record.wait, Pending { row: row(record, role), frames, end: Some(end) });
    }

    pub(super) fn woken(&mut self, wait: u64, waker_tid: u32, waker_stack: Option<StackId>) {
        if let Some(pending) = self.pending.get_mut(&wait) {
            pending.row.waker_tid = waker_tid;
            pending.row.waker_stack = waker_stack.map(|StackId(stack)| stack);
        }
    }

    /// What the thread that ended a wait did meanwhile. Nothing of one that an interrupt stopped on its way.
    pub(super) fn past(&mut self, record: &StackRecord<'_>) {
        let Some(pending) = self.pending.get_mut(&record.wait) else { return };
        if pending.row.waker_tid != record.tid {
            return;
        }
        let began_ns = pending.row.t_ns.saturating_sub_unsigned(pending.row.length_ns);
        pending.row.waker_past = merged(record.past(began_ns));
    }

    /// A thread is back in user space: all its waits up to `last` were on the way of the same call.
    pub(super) fn enter_return(&mut self, tid: u32, last: u64, user: &[Frame], end: End) {
        let Some(waits) = self.by_thread.get_mut(&tid) else { return };
        waits.retain(|wait| *wait > last || !finish(&mut self.pending, *wait, user, end));
        if waits.is_empty() {
            self.by_thread.remove(&tid);
        }
    }

    /// No thread will come back any more.
    pub(super) fn give_up(&mut self) {
        self.give_up_before(i64::MAX);
    }

    fn give_up_before(&mut self, t_ns: i64) {
        for pending in self.pending.values_mut() {
            if pending.end.is_none() && pending.row.t_ns < t_ns {
                pending.end = Some(End::Lost);
                self.without_user += 1;
            }
        }
        let pending = &self.pending;
        self.by_thread.retain(|_, waits| {
            waits.retain(|wait| pending.get(wait).is_some_and(|pending| pending.end.is_none()));
            !waits.is_empty()
        });
    }

    /// The waits that are whole, in order of time. `full` counts those that the table has no place for.
    pub(super) fn take_whole(&mut self, now_ns: i64, table: &mut Table, full: &mut u64) -> Vec<StackWait> {
        self.give_up_before(now_ns.saturating_sub(BACK_TIME_MAX_NS));
        let mut whole = Vec::new();
        self.pending.retain(|_, pending| {
            let Some(end) = pending.end else { return true };
            match table.intern(std::mem::take(&mut pending.frames), end) {
                Some(StackId(stack)) => whole.push(StackWait { stack, ..pending.row.clone() }),
                None => *full += 1,
            }
            false
        });
        whole.sort_by_key(|wait| wait.t_ns);
        whole
    }
}

/// Whether the wait is whole now, or gone.
fn finish(pending: &mut BTreeMap<u64, Pending>, wait: u64, user: &[Frame], end: End) -> bool {
    if let Some(pending) = pending.get_mut(&wait) {
        pending.frames.extend_from_slice(user);
        pending.end = Some(end);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_model::Role;
    use whyso_stacks::ModuleId;
    use whyso_trace::{Registers, StackKind};

    fn wait_record(wait: u64, tid: u32, t_ns: i64) -> StackRecord<'static> {
        StackRecord {
            kind: StackKind::Wait,
            state: State::Lock,
            role: Role::Connection,
            client: None,
            tid,
            pid: 1,
            t_ns,
            wait,
            length_ns: 5,
            weight_ns: 50,
            kernel: Vec::new(),
            registers: Registers::default(),
            user: &[],
            user_rest_bytes: None,
        }
    }

    fn frame(address: u64) -> Frame {
        Frame { module: ModuleId(2), address }
    }

    #[test]
    fn a_wait_is_handed_over_when_its_thread_is_back_and_has_the_stack_of_then() {
        let mut waits = Waits::default();
        let (mut table, mut full) = (Table::new(100), 0);
        waits.begin(&wait_record(1, 7, 10), "connection", vec![frame(1)]);
        waits.woken(1, 8, Some(StackId(40)));
        waits.begin(&wait_record(2, 9, 11), "connection", vec![frame(1)]);
        assert!(waits.take_whole(20, &mut table, &mut full).is_empty());
        // Two waits of one call, such as of a sync.
        waits.begin(&wait_record(3, 7, 12), "connection", vec![frame(2)]);
        waits.enter_return(7, 3, &[frame(5)], End::Root);
        let whole = waits.take_whole(20, &mut table, &mut full);
        assert_eq!(
            whole.iter().map(|wait| (wait.wait, wait.waker_tid)).collect::<Vec<_>>(),
            [(1, 8), (3, 0)]
        );
        assert_eq!(whole[0].waker_stack, Some(40));
        let frames: Vec<_> =
            table.take_fresh().into_iter().map(|stack| (stack.frames.to_vec(), stack.end)).collect();
        assert_eq!(frames[0], (vec![frame(1), frame(5)], End::Root));
        assert_eq!(frames[1], (vec![frame(2), frame(5)], End::Root));
        assert_eq!(waits.without_user, 0);
    }

    #[test]
    fn what_lies_between_two_waits_for_locks_has_one_entry_per_state() {
        use State::{Cpu, FileSync, Lock, Runqueue};
        let states =
            [(Cpu, 3), (Runqueue, 5), (Cpu, 9), (Lock, 20), (Lock, 21), (Cpu, 22), (FileSync, 30), (Cpu, 31)];
        let past: Vec<(String, u64)> =
            merged((1, states.to_vec())).into_iter().map(|entry| (entry.state, entry.ns)).collect();
        let expected = [("cpu", 6), ("runqueue", 2), ("lock", 11), ("lock", 1), ("cpu", 2), ("file_sync", 8)];
        assert_eq!(past, expected.map(|(state, ns)| (state.to_string(), ns)));
    }

    #[test]
    fn a_thread_that_never_comes_back_has_its_wait_handed_over_and_counted() {
        let mut waits = Waits::default();
        let (mut table, mut full) = (Table::new(1), 0);
        waits.begin(&wait_record(1, 7, 10), "connection", vec![frame(1)]);
        waits.begin(&wait_record(2, 8, BACK_TIME_MAX_NS), "connection", vec![frame(2)]);
        let whole = waits.take_whole(BACK_TIME_MAX_NS + 100, &mut table, &mut full);
        assert_eq!((whole.len(), waits.without_user, full), (1, 1, 0));
        waits.give_up();
        let whole = waits.take_whole(BACK_TIME_MAX_NS + 100, &mut table, &mut full);
        assert_eq!((whole.len(), waits.without_user, full), (0, 2, 1), "the table was full");
        assert!(waits.by_thread.is_empty() && waits.pending.is_empty());
    }
}

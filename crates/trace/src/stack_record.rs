//! One record of the ring buffer: a stack, and what it stands for.

use crate::pauses::Client;
use whyso_model::{Role, State};

const KERNEL_FRAMES_MAX: usize = 64;
/// Up to where the user's bytes begin: `struct stack_record` of `bpf/stack.h`.
const HEADER_BYTES: usize = 88 + 8 * KERNEL_FRAMES_MAX;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackKind {
    /// A thread was found on its CPU.
    OnCpu,
    /// A thread is woken: what it waited for in the kernel, and how long.
    Wait,
    /// The thread that woke it.
    Waker,
    /// The thread that waited goes back to user space: its user's stack, which belongs to all its earlier waits.
    Back,
    /// What the thread that woke it did last; see [`StackRecord::past`].
    Past,
    /// A thread that was ready and had no CPU goes back to user space: its user's stack.
    Ready,
}

/// The registers of a thread's user side that unwinding begins with. All zero: it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    pub instruction_pointer: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// On aarch64; 0 elsewhere.
    pub link_register: u64,
}

/// A stack as it was copied, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackRecord<'a> {
    pub kind: StackKind,
    /// What the thread was in; only [`StackKind::Wait`] and [`StackKind::Ready`] have another than `Cpu`.
    pub state: State,
    /// Of [`StackKind::OnCpu`], [`StackKind::Wait`] and [`StackKind::Ready`].
    pub role: Role,
    /// Of the same: who sent the request that the thread worked on last; `None`: it has worked on none.
    pub client: Option<Client>,
    pub tid: u32,
    pub pid: u32,
    /// When it was taken: `CLOCK_MONOTONIC`, in nanoseconds.
    pub t_ns: i64,
    /// Joins a wait and its waker; of [`StackKind::Back`] the last wait that it belongs to.
    pub wait: u64,
    /// How long the thread waited.
    pub length_ns: u64,
    /// The time that this record stands for: that between two samples, or the wait's length divided by the probability with which
    /// it was chosen.
    pub weight_ns: u64,
    /// Addresses in the kernel.
    pub kernel: Vec<u64>,
    pub registers: Registers,
    /// The user's stack from its pointer on; of [`StackKind::Past`] the thread's last states.
    pub user: &'a [u8],
    /// How much of the user's stack was left out; `None` where its end is not known.
    pub user_rest_bytes: Option<u32>,
}

impl<'a> StackRecord<'a> {
    /// `None` for bytes that no program of ours wrote.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<StackRecord<'a>> {
        let (header, user) = bytes.split_at_checked(HEADER_BYTES)?;
        let long = |at: usize| Some(u64::from_ne_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let int = |at: usize| Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let kind = match header[0] {
            1 => StackKind::OnCpu,
            2 => StackKind::Wait,
            3 => StackKind::Waker,
            4 => StackKind::Back,
            5 => StackKind::Past,
            6 => StackKind::Ready,
            _ => return None,
        };
        let kernel_frames = (int(12)? as usize / 8).min(KERNEL_FRAMES_MAX);
        let kernel = (0..kernel_frames).map_while(|frame| long(88 + 8 * frame)).collect();
        let rest_bytes = int(84)?;
        Some(StackRecord {
            kind,
            state: State::of_number(header[1])?,
            role: Role::of_number(header[2])?,
            client: client(header[3]),
            tid: int(4)?,
            pid: int(8)?,
            t_ns: long(16)? as i64,
            wait: long(24)?,
            length_ns: long(32)?,
            weight_ns: long(40)?,
            kernel,
            registers: Registers {
                instruction_pointer: long(48)?,
                stack_pointer: long(56)?,
                frame_pointer: long(64)?,
                link_register: long(72)?,
            },
            user: user.get(..int(80)? as usize)?,
            user_rest_bytes: (rest_bytes != u32::MAX).then_some(rest_bytes),
        })
    }
}

/// By `enum whose` of `bpf/account.h`, plus one.
fn client(number: u8) -> Option<Client> {
    match number {
        1 => Some(Client::Own),
        2 => Some(Client::Load),
        3 => Some(Client::Unknown),
        _ => None,
    }
}

impl StackRecord<'_> {
    /// Of [`StackKind::Past`]: what the thread was in during `[from_ns, self.t_ns]`, as far as that was kept. Returns each state with
    /// the time at which it ended, in order. The first begins at the returned time, which is `from_ns` where it was kept whole.
    pub fn past(&self, from_ns: i64) -> (i64, Vec<(State, i64)>) {
        let words = self.user.chunks_exact(8).filter_map(|word| word.try_into().ok()).map(u64::from_ne_bytes);
        let words: Vec<u64> = words.collect();
        let Some((count, states)) = words.split_first() else { return (self.t_ns, Vec::new()) };
        let count_held = (*count).min(states.len() as u64);
        let mut past: Vec<(State, i64)> = Vec::new();
        let mut begin_ns = self.t_ns;
        let mut end_ns = self.t_ns;
        for back in 1..=count_held {
            let word = states[((count - back) % states.len() as u64) as usize];
            let Some(state) = State::of_number((word & 15) as u8) else { break };
            let since_ns = ((word >> 4) as i64).clamp(from_ns, end_ns);
            if since_ns < end_ns {
                past.push((state, end_ns));
            }
            (begin_ns, end_ns) = (since_ns, since_ns);
            if since_ns == from_ns {
                break;
            }
        }
        past.reverse();
        (begin_ns, past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_is_cut_to_the_wait_and_shows_how_far_back_it_reaches() {
        let past_of = |count: u64, states: &[(State, u64)], from_ns: i64| {
            let mut bytes = count.to_ne_bytes().to_vec();
            bytes.extend(states.iter().flat_map(|(state, at)| (at << 4 | *state as u64).to_ne_bytes()));
            let mut record = record();
            record[0] = 5;
            record[80..84].copy_from_slice(&(bytes.len() as u32).to_ne_bytes());
            record[16..24].copy_from_slice(&100i64.to_ne_bytes());
            record.truncate(HEADER_BYTES);
            record.extend(bytes);
            let read = StackRecord::of(&record).unwrap();
            assert_eq!(read.kind, StackKind::Past);
            read.past(from_ns)
        };
        use State::{Cpu, FileSync, Lock};
        let three = [(Cpu, 10), (FileSync, 30), (Cpu, 90)];
        assert_eq!(past_of(3, &three, 20), (20, vec![(Cpu, 30), (FileSync, 90), (Cpu, 100)]));
        assert_eq!(past_of(3, &three, 5), (10, vec![(Cpu, 30), (FileSync, 90), (Cpu, 100)]));
        assert_eq!(past_of(3, &three, 95), (95, vec![(Cpu, 100)]));
        // The oldest was written over: 40 is before 30 in the ring.
        assert_eq!(
            past_of(5, &[(Lock, 80), (Cpu, 90), (FileSync, 30)], 0),
            (30, vec![(FileSync, 80), (Lock, 90), (Cpu, 100)])
        );
        assert_eq!(past_of(0, &three, 20), (100, vec![]));
        assert_eq!(past_of(2, &[], 20), (100, vec![]));
    }

    fn record() -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[0] = 2;
        bytes[1] = State::Lock as u8;
        bytes[2] = Role::Connection as u8;
        bytes[3] = 3;
        bytes[4..8].copy_from_slice(&7u32.to_ne_bytes());
        bytes[12..16].copy_from_slice(&16u32.to_ne_bytes());
        bytes[32..40].copy_from_slice(&5_000u64.to_ne_bytes());
        bytes[80..84].copy_from_slice(&3u32.to_ne_bytes());
        bytes[84..88].copy_from_slice(&u32::MAX.to_ne_bytes());
        bytes[88..96].copy_from_slice(&0xabcu64.to_ne_bytes());
        bytes.extend([1, 2, 3, 0, 0]);
        bytes
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let bytes = record();
        let read = StackRecord::of(&bytes).unwrap();
        assert_eq!(
            (read.kind, read.state, read.role, read.client, read.tid),
            (StackKind::Wait, State::Lock, Role::Connection, Some(Client::Unknown), 7)
        );
        assert_eq!((read.length_ns, read.kernel, read.user), (5_000, vec![0xabc, 0], &[1, 2, 3][..]));
        assert_eq!(read.user_rest_bytes, None);
    }

    #[test]
    fn what_no_program_wrote_is_no_record() {
        let bytes = record();
        assert_eq!(StackRecord::of(&bytes[..HEADER_BYTES]), None, "without the bytes that it announces");
        assert_eq!(StackRecord::of(&[]), None);
        for (place, value) in [(0, 9), (1, 200), (2, 200)] {
            let mut odd = bytes.clone();
            odd[place] = value;
            assert_eq!(StackRecord::of(&odd), None, "byte {place} is {value}");
        }
        let mut many = bytes.clone();
        many[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(StackRecord::of(&many).unwrap().kernel.len(), KERNEL_FRAMES_MAX);
    }
}

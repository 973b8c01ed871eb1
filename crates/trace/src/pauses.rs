//! Pauses: waits of one thread of 20 ms to a minute, in one state and one system call, and the times between them.

use std::collections::{HashMap, HashSet};

use crate::account::{SIDE_LOAD, SIDE_OWN};
use crate::reading::ThreadSums;
use crate::system_calls::name_of_syscall;
use whyso_model::{self as model, PauseRow, Role, State};

/// A thread's waits of 20 ms to a minute, of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Pauses {
    pub tid: u32,
    /// When the thread was seen first: numbers of threads are reused.
    pub born_ns: u64,
    pub name: String,
    pub role: Role,
    pub state: State,
    /// Number of the system call that it waited in; `None` in the run queue and in page faults.
    pub call: Option<u16>,
    /// The thread had received a request and had yet to answer it.
    pub in_request: bool,
    pub client: Client,
    /// How long each lasted.
    pub length: Moments,
    /// From the begin of one to the begin of the next, where that is no more than a minute.
    pub period: Moments,
}

impl Pauses {
    /// Returns the name of the system call, such as "poll"; empty where it was none.
    pub fn call_name(&self) -> String {
        self.call.map_or(String::new(), |call| {
            name_of_syscall(i64::from(call)).map_or_else(|| format!("system call {call}"), str::to_string)
        })
    }

    /// Returns the row of a recording's table.
    pub fn row(&self) -> PauseRow {
        PauseRow {
            tid: self.tid,
            born_ns: self.born_ns,
            name: self.name.clone(),
            role: self.role.name().to_string(),
            state: self.state.name().to_string(),
            call: self.call_name(),
            in_request: self.in_request,
            client: self.client.name().to_string(),
            length: self.length.of_floats(),
            period: self.period.of_floats(),
        }
    }
}

/// Who sent the request that the thread received last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The load generator.
    Load,
    /// This program, which asked the server something.
    Own,
    /// A program that is not watched; or nothing was received yet.
    Unknown,
}

impl Client {
    pub(crate) fn of_side(side: u8) -> Client {
        match side {
            SIDE_LOAD => Client::Load,
            SIDE_OWN => Client::Own,
            _ => Client::Unknown,
        }
    }

    /// The name as tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Client::Load => "load",
            Client::Own => "own",
            Client::Unknown => "unknown",
        }
    }
}

/// Count, sum and sum of squares of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    pub count: u64,
    pub sum_us: u64,
    pub squares_us2: u64,
}

impl Moments {
    /// The mean, in nanoseconds; 0 of nothing.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_us as f64 / self.count as f64 * 1e3 }
    }

    /// The standard deviation around the mean, in nanoseconds; 0 of nothing.
    pub fn spread_ns(&self) -> f64 {
        let (count, sum) = (u128::from(self.count), u128::from(self.sum_us));
        // Whole numbers until here: the difference of two large ones would be noise.
        let around = (count * u128::from(self.squares_us2)).saturating_sub(sum * sum);
        if self.count == 0 { 0.0 } else { (around as f64).sqrt() / self.count as f64 * 1e3 }
    }

    fn of_floats(&self) -> model::Moments {
        model::Moments { count: self.count as f64, mean_ns: self.mean_ns(), spread_ns: self.spread_ns() }
    }

    fn since(&self, before: &Moments) -> Moments {
        Moments {
            count: self.count.saturating_sub(before.count),
            sum_us: self.sum_us.saturating_sub(before.sum_us),
            // The programs' sum wraps.
            squares_us2: self.squares_us2.wrapping_sub(before.squares_us2),
        }
    }
}

/// `struct pause_key` and `struct pauses` of `bpf/account.h`, as bytes.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// What was handed over already.
#[derive(Default)]
pub(crate) struct PauseBaseline {
    before: HashMap<Vec<u8>, (Moments, Moments)>,
}

impl PauseBaseline {
    /// What each entry grew by since the last call, where it grew.
    pub(crate) fn grown(&mut self, entries: Vec<Entry>) -> Vec<Pauses> {
        let mut before = HashMap::with_capacity(entries.len());
        let mut grown = Vec::new();
        for (key, value) in entries {
            let Some(mut pauses) = read(&key, &value) else { continue };
            let now = (pauses.length, pauses.period);
            if let Some((length, period)) = self.before.get(&key) {
                pauses.length = pauses.length.since(length);
                pauses.period = pauses.period.since(period);
            }
            before.insert(key, now);
            if pauses.length.count > 0 {
                grown.push(pauses);
            }
        }
        self.before = before;
        grown
    }

    /// Keys of threads that live no more.
    pub(crate) fn departed(&self, threads: &[ThreadSums]) -> Vec<Vec<u8>> {
        let living: HashSet<(u32, u64)> = threads.iter().map(|thread| (thread.tid, thread.born_ns)).collect();
        let is_gone = |key: &&Vec<u8>| match (int(key, 8), long(key, 0)) {
            (Some(tid), Some(born_ns)) => !living.contains(&(tid, born_ns)),
            _ => true,
        };
        self.before.keys().filter(is_gone).cloned().collect()
    }
}

fn read(key: &[u8], value: &[u8]) -> Option<Pauses> {
    let moments = |at: usize| {
        Some(Moments {
            count: long(value, at)?,
            sum_us: long(value, at + 8)?,
            squares_us2: long(value, at + 16)?,
        })
    };
    let name = value.get(56..72)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let call = u16::from_ne_bytes(key.get(12..14)?.try_into().ok()?);
    Some(Pauses {
        tid: int(key, 8)?,
        born_ns: long(key, 0)?,
        name: String::from_utf8_lossy(&name[..end]).into_owned(),
        role: Role::of_number(*value.get(72)?).unwrap_or(Role::Other),
        state: State::of_number(*key.get(14)?).unwrap_or(State::Other),
        call: (call != u16::MAX).then_some(call),
        in_request: *key.get(15)? == 1,
        client: Client::of_side(*value.get(73)?),
        length: moments(8)?,
        period: moments(32)?,
    })
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(lengths_us: &[u64]) -> Moments {
        Moments {
            count: lengths_us.len() as u64,
            sum_us: lengths_us.iter().sum(),
            squares_us2: lengths_us.iter().map(|us| us * us).sum(),
        }
    }

    fn entry(tid: u32, length: &Moments) -> Entry {
        let mut key = 5_u64.to_ne_bytes().to_vec();
        key.extend(tid.to_ne_bytes());
        key.extend(7_u16.to_ne_bytes());
        key.extend([State::NetReceive as u8, 0]);
        let mut value = Vec::new();
        for number in [1, length.count, length.sum_us, length.squares_us2, 0, 0, 0] {
            value.extend(number.to_ne_bytes());
        }
        value.extend(b"one_connection\0\0");
        value.extend([Role::Connection as u8, SIDE_LOAD, 0, 0, 0, 0, 0, 0]);
        (key, value)
    }

    fn thread(tid: u32, born_ns: u64) -> ThreadSums {
        ThreadSums {
            tid,
            pid: 1,
            name: String::new(),
            role: Role::Other,
            born_ns,
            requests: 0,
            states: [0; whyso_model::STATES],
            now: State::Cpu,
        }
    }

    #[test]
    fn mean_and_spread_are_of_what_was_counted() {
        let two = moments(&[300_000, 500_000]);
        assert_eq!((two.mean_ns(), two.spread_ns()), (400e6, 100e6));
        let long = moments(&vec![60_000_000; 5_000]);
        assert_eq!((long.mean_ns(), long.spread_ns()), (60e9, 0.0));
        assert_eq!((Moments::default().mean_ns(), Moments::default().spread_ns()), (0.0, 0.0));
    }

    #[test]
    fn pauses_that_were_read_are_not_read_again() {
        let mut baseline = PauseBaseline::default();
        let first = baseline.grown(vec![entry(1, &moments(&[400_000, 400_000]))]);
        assert_eq!((first[0].tid, first[0].length.count, first[0].call), (1, 2, Some(7)));
        assert_eq!((first[0].name.as_str(), first[0].client), ("one_connection", Client::Load));
        let second = vec![entry(1, &moments(&[400_000, 400_000, 100_000])), entry(2, &moments(&[30_000]))];
        let second = baseline.grown(second);
        assert_eq!(second[0].length, moments(&[100_000]));
        assert_eq!(second[1].length, moments(&[30_000]));
        let nothing_new = vec![entry(1, &moments(&[400_000, 400_000, 100_000]))];
        assert!(baseline.grown(nothing_new).is_empty());
    }

    #[test]
    fn a_sum_of_squares_that_has_wrapped_gives_the_right_difference() {
        let before = Moments { count: 9, sum_us: 90, squares_us2: u64::MAX - 9 };
        let now = Moments { count: 11, sum_us: 110, squares_us2: 190 };
        assert_eq!(now.since(&before), moments(&[10, 10]));
    }

    #[test]
    fn a_thread_that_took_the_number_of_another_is_another() {
        let mut baseline = PauseBaseline::default();
        baseline.grown(vec![entry(1, &moments(&[30_000])), entry(2, &moments(&[30_000]))]);
        let (first, _) = entry(1, &Moments::default());
        assert_eq!(baseline.departed(&[thread(1, 6), thread(2, 5)]), [first]);
    }

    #[test]
    fn bytes_that_are_no_entry_are_left_out() {
        let (key, value) = entry(1, &moments(&[30_000]));
        let short = vec![(key[..9].to_vec(), value.clone()), (key, value[..60].to_vec())];
        assert!(PauseBaseline::default().grown(short).is_empty());
    }
}

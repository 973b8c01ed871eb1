//! The server's threads over time, from the stream of their states. Of recordings without that stream: from the snapshots every ten
//! seconds.

use whyso_series::{Stretch, ThreadTable, Timeline};

use super::Recording;
use crate::data::StatesInterval;
use crate::error::Result;
use crate::{layout, state_table};

const NS_PER_MS: f64 = 1e6;

/// When the states of the server's threads were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateTimes {
    /// In monotonic nanoseconds, ascending. Each state holds between two of these times.
    pub t_ns: Vec<i64>,
    /// How many threads were read, summed over the times.
    pub cells: usize,
}

impl Recording {
    /// When the states of the server's threads were read; empty where nothing traced them.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn state_times(&self) -> Result<StateTimes> {
        let mut times = StateTimes::default();
        self.each_interval(|interval| {
            times.cells += interval.threads.len();
            times.t_ns.extend([interval.begin_ns, interval.t_ns]);
        })?;
        if times.cells == 0 {
            let table = self.threads()?;
            times.cells = table.threads.iter().map(|thread| thread.snapshots.len()).sum();
            times.t_ns = table.t_ns;
        }
        times.t_ns.sort_unstable();
        times.t_ns.dedup();
        Ok(times)
    }

    /// The server's threads, with their time by state between these edges, in monotonic nanoseconds.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn timeline(&self, edges_ns: &[i64]) -> Result<Timeline> {
        let mut timeline = Timeline::default();
        let (Some(begin_ns), Some(end_ns)) = (edges_ns.first(), edges_ns.last()) else { return Ok(timeline) };
        let mut states_ms = Vec::new();
        let mut is_recorded = false;
        self.each_interval(|interval| {
            if !is_recorded {
                timeline = Timeline::new(interval.states.clone(), edges_ns.to_vec());
                is_recorded = true;
            }
            if interval.t_ns <= *begin_ns || interval.begin_ns >= *end_ns {
                return;
            }
            for thread in &interval.threads {
                states_ms.clear();
                states_ms.extend(thread.states_ms.iter().map(|ms| f64::from(*ms)));
                timeline.enter(&Stretch {
                    tid: thread.tid,
                    born_ns: thread.born_ns,
                    name: &thread.name,
                    role: &thread.role,
                    begin_ns: interval.begin_ns,
                    end_ns: interval.t_ns,
                    states_ms: &states_ms,
                });
            }
        })?;
        Ok(if is_recorded { timeline } else { of_table(&self.threads()?, edges_ns) })
    }

    /// Hands over the intervals one after the other, so that never all of them are in memory. One may come in parts.
    fn each_interval(&self, mut take: impl FnMut(&StatesInterval)) -> Result<()> {
        for part in self.plain.get(layout::STATES).map_or(&[][..], Vec::as_slice) {
            for batch in part.batches()? {
                state_table::intervals_of(&batch).unwrap_or_default().iter().for_each(&mut take);
            }
        }
        Ok(())
    }
}

fn of_table(table: &ThreadTable, edges_ns: &[i64]) -> Timeline {
    let mut timeline = Timeline::new(table.states.clone(), edges_ns.to_vec());
    let snapshots = table.t_ns.len();
    let mut states_ms = vec![0.0; table.states.len()];
    for (number, thread) in table.threads.iter().enumerate() {
        // What the first snapshot of all found lies before it.
        for snapshot in thread.snapshots.start.max(1)..thread.snapshots.end {
            let cell = number * snapshots + snapshot;
            for (ms, running) in states_ms.iter_mut().zip(&table.running_ns) {
                *ms = (running[cell] - running[cell - 1]) as f64 / NS_PER_MS;
            }
            timeline.enter(&Stretch {
                tid: thread.tid,
                // The table has two threads where two bore one number. Their places are different here.
                born_ns: -(number as i64),
                name: &thread.name,
                role: &thread.role,
                begin_ns: table.t_ns[snapshot - 1],
                end_ns: table.t_ns[snapshot],
                states_ms: &states_ms,
            });
        }
    }
    timeline
}

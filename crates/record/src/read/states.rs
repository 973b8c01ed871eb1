//! The server's threads over time, from the stream of their states; of recordings without one, from the looks every ten seconds.

use whyso_series::{Stretch, ThreadTable, Timeline};

use super::Recording;
use crate::data::StatesLook;
use crate::error::Result;
use crate::{layout, state_table};

const NS_PER_MS: f64 = 1e6;

/// When the states of the server's threads were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateLooks {
    /// In monotonic nanoseconds, ascending; what is told lies between each two.
    pub t_ns: Vec<i64>,
    /// How many threads were looked at, summed over the looks.
    pub cells: usize,
}

impl Recording {
    /// When the states of the server's threads were read; empty where nothing traced them.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn state_looks(&self) -> Result<StateLooks> {
        let mut looks = StateLooks::default();
        self.each_look(|look| {
            looks.cells += look.threads.len();
            looks.t_ns.extend([look.begin_ns, look.t_ns]);
        })?;
        if looks.cells == 0 {
            let table = self.threads()?;
            looks.cells = table.threads.iter().map(|thread| thread.looks.len()).sum();
            looks.t_ns = table.t_ns;
        }
        looks.t_ns.sort_unstable();
        looks.t_ns.dedup();
        Ok(looks)
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
        self.each_look(|look| {
            if !is_recorded {
                timeline = Timeline::new(look.states.clone(), edges_ns.to_vec());
                is_recorded = true;
            }
            if look.t_ns <= *begin_ns || look.begin_ns >= *end_ns {
                return;
            }
            for thread in &look.threads {
                states_ms.clear();
                states_ms.extend(thread.states_ms.iter().map(|ms| f64::from(*ms)));
                timeline.enter(&Stretch {
                    tid: thread.tid,
                    born_ns: thread.born_ns,
                    name: &thread.name,
                    role: &thread.role,
                    begin_ns: look.begin_ns,
                    end_ns: look.t_ns,
                    states_ms: &states_ms,
                });
            }
        })?;
        Ok(if is_recorded { timeline } else { of_table(&self.threads()?, edges_ns) })
    }

    /// Hands over the looks one after the other, so that never all of them are in memory; one may come in parts.
    fn each_look(&self, mut take: impl FnMut(&StatesLook)) -> Result<()> {
        for part in self.plain.get(layout::STATES).map_or(&[][..], Vec::as_slice) {
            for batch in part.batches()? {
                state_table::looks_of(&batch).unwrap_or_default().iter().for_each(&mut take);
            }
        }
        Ok(())
    }
}

fn of_table(table: &ThreadTable, edges_ns: &[i64]) -> Timeline {
    let mut timeline = Timeline::new(table.states.clone(), edges_ns.to_vec());
    let looks = table.t_ns.len();
    let mut states_ms = vec![0.0; table.states.len()];
    for (number, thread) in table.threads.iter().enumerate() {
        // What the first look of all found lies before it.
        for look in thread.looks.start.max(1)..thread.looks.end {
            let cell = number * looks + look;
            for (ms, running) in states_ms.iter_mut().zip(&table.running_ns) {
                *ms = (running[cell] - running[cell - 1]) as f64 / NS_PER_MS;
            }
            timeline.enter(&Stretch {
                tid: thread.tid,
                // The table has made threads that bore one number two; their places tell them apart here.
                born_ns: -(number as i64),
                name: &thread.name,
                role: &thread.role,
                begin_ns: table.t_ns[look - 1],
                end_ns: table.t_ns[look],
                states_ms: &states_ms,
            });
        }
    }
    timeline
}

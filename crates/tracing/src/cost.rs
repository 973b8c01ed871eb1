//! What the programs in the kernel cost. Having the kernel count that costs more than most programs do, so that it is
//! counted for a fiftieth of the time.

use std::time::{Duration, Instant};

use whyso_record::Recorder;
use whyso_record::data::{Kind, SeriesId, SeriesKey, Value};
use whyso_trace::{Cost, CountingCost};

/// Each of these has one window in which the kernel counts.
const ROUND: Duration = Duration::from_secs(1);
/// As long as this holds thousands of runs where the cost matters. Counting adds some 60 ns to each of a dozen runs per query: in a tenth of
/// the time it would cost as much as some of the programs.
const WINDOW: Duration = Duration::from_millis(20);
/// The windows wander through their rounds. Otherwise they would always meet the same part of what is done each second. The golden
/// ratio spreads them evenly, for any number of windows.
const WANDER: f64 = 0.618_033_988_749_895;

/// The times in which the kernel counts.
pub(crate) struct CountedTimes {
    /// It does without us.
    always: bool,
    begun: Instant,
    round: u32,
    open: Option<(CountingCost, Instant)>,
    closed: Duration,
    due: Instant,
    /// What counting adds to each run of a program that is counted; `None` where that is not known, and where it is added
    /// to all runs.
    pub(crate) added_ns: Option<f64>,
}

impl CountedTimes {
    /// `None` where the kernel may not be asked to count, and does not. `counting_ns` measures what counting adds to a run.
    pub(crate) fn begin(counting_ns: impl Fn() -> Option<f64>) -> Option<CountedTimes> {
        let always = CountingCost::is_always();
        let open = CountingCost::begin().map(|counting| (counting, Instant::now()));
        if open.is_none() && !always {
            return None;
        }
        let added_ns = if always { None } else { counting_ns() };
        let begun = Instant::now();
        let due = begun + WINDOW;
        Some(CountedTimes { always, begun, round: 0, open, closed: Duration::ZERO, due, added_ns })
    }

    /// When [`CountedTimes::turn`] is next to be called.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Begins or ends a window, where it is time to.
    pub(crate) fn turn(&mut self) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        if let Some((counting, since)) = self.open.take() {
            drop(counting);
            self.closed += since.elapsed();
            // Rounds that were slept through are left out.
            let rounds = now.duration_since(self.begun).as_secs() as u32;
            self.round = rounds.max(self.round) + 1;
            let place = (f64::from(self.round) * WANDER).fract();
            self.due = self.begun + ROUND * self.round + (ROUND - WINDOW).mul_f64(place);
        } else {
            self.open = CountingCost::begin().map(|counting| (counting, Instant::now()));
            self.due = now + WINDOW;
        }
    }

    /// For how long the kernel has counted.
    pub(crate) fn counted(&self) -> Duration {
        if self.always {
            return self.begun.elapsed();
        }
        self.closed + self.open.as_ref().map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }
}

/// How often each program ran and for how long, of the runs that the kernel counted.
pub(crate) fn program_values(recorder: &Recorder, source: &str, costs: &[Cost]) -> Vec<(SeriesId, Value)> {
    let of_program = |cost: &Cost| {
        [("program_runs", "1", cost.runs), ("program_ns", "ns", cost.ns)].map(|(metric, unit, sum)| {
            let id = recorder.series(&SeriesKey {
                host: "client".to_string(),
                source: source.to_string(),
                metric: metric.to_string(),
                instance: cost.program.clone(),
                kind: Kind::Counter,
                unit: unit.to_string(),
            });
            (id, Value::Int(i64::try_from(sum).unwrap_or(i64::MAX)))
        })
    };
    costs.iter().filter(|cost| cost.runs > 0).flat_map(of_program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fiftieth_of_the_time_is_counted_and_no_window_leaves_its_round() {
        // Nothing is to be counted where that is not allowed.
        let Some(mut times) = CountedTimes::begin(|| None) else { return };
        times.always = false;
        let mut begins = Vec::new();
        while times.begun.elapsed() < Duration::from_millis(3300) {
            std::thread::sleep(times.due().saturating_duration_since(Instant::now()));
            let was_open = times.open.is_some();
            times.turn();
            assert_ne!(was_open, times.open.is_some(), "each turn begins or ends one");
            if times.open.is_some() {
                begins.push(times.begun.elapsed());
            }
        }
        let rounds: Vec<u64> = begins.iter().map(Duration::as_secs).collect();
        assert!(rounds.windows(2).all(|pair| pair[0] < pair[1]), "{begins:?}");
        let (counted, whole) = (times.counted().as_secs_f64(), times.begun.elapsed().as_secs_f64());
        assert!(counted / whole > 0.015 && counted / whole < 0.1, "{counted} s of {whole}");
    }
}

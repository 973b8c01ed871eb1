//! What the clock of another host shows, by questions to it and their answers.
//!
//! Each question gives bounds that only a step of a clock can break: the other host read its clock after the question was sent and
//! before its answer arrived. [`ClockBetween`] draws a line through the questions with the smallest round trips. The line's bound is the
//! largest difference that one of these questions still allows. Before the first and after the last question it grows.

use std::collections::VecDeque;

/// Questions that are kept, at most: those with the smallest round trips of their stretch of time.
const KEPT_MAX: usize = 64;
/// Of questions within one such stretch, the one with the smallest round trip is kept.
const STRETCH_NS: i64 = 2_000_000_000;
/// A line has a slope from this length of time on. Before that, the clocks are taken as equally fast, up to [`DRIFT_MAX`].
const LINE_NS_MIN: i64 = 4_000_000_000;
/// Two machines' clocks drift apart by less: NTP slews one by at most 500 ppm.
const DRIFT_MAX: f64 = 5e-4;

/// A question to another host about its clock. Times in nanoseconds: of this host's clock, except for `there_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockQuestion {
    pub sent_ns: i64,
    /// What the other host's clock showed when it answered.
    pub there_ns: i64,
    pub received_ns: i64,
}

impl ClockQuestion {
    fn round_trip_ns(self) -> i64 {
        self.received_ns.saturating_sub(self.sent_ns)
    }

    fn middle_ns(self) -> i64 {
        self.sent_ns.saturating_add(self.round_trip_ns() / 2)
    }

    /// What the other clock shows more than this one, halfway.
    fn offset_ns(self) -> i64 {
        self.there_ns.saturating_sub(self.middle_ns())
    }
}

/// Another host's clock against this one's, as a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockLine {
    /// When this clock shows it, the other one shows `at_ns + offset_ns`.
    pub at_ns: i64,
    pub offset_ns: i64,
    /// How much faster the other clock is, as a fraction: 1e-4 is 100 ppm.
    pub drift: f64,
    /// Times between `from_ns` and `to_ns` of this clock are converted to within it, in nanoseconds.
    pub bound_ns: i64,
    pub from_ns: i64,
    pub to_ns: i64,
    /// What the bound grows by for each nanosecond before or after that.
    pub slack: f64,
    /// The smallest round trip among its questions, in nanoseconds.
    pub round_trip_ns: i64,
}

impl ClockLine {
    /// Through one question, as if both clocks were equally fast.
    fn through(question: ClockQuestion) -> ClockLine {
        let at_ns = question.middle_ns();
        ClockLine {
            at_ns,
            offset_ns: question.offset_ns(),
            drift: 0.0,
            bound_ns: (question.round_trip_ns() + 1) / 2,
            from_ns: at_ns,
            to_ns: at_ns,
            slack: DRIFT_MAX,
            round_trip_ns: question.round_trip_ns(),
        }
    }

    /// The time on this clock when the other one shows `there_ns`.
    pub fn here(&self, there_ns: i64) -> i64 {
        let since = there_ns.saturating_sub(self.at_ns).saturating_sub(self.offset_ns) as f64;
        let drifted = (since * self.drift / (1.0 + self.drift)).round() as i64;
        there_ns.saturating_sub(self.offset_ns).saturating_sub(drifted)
    }

    /// Within which a time of this clock is right that was converted.
    pub fn bound_at(&self, here_ns: i64) -> i64 {
        let outside_ns = self.from_ns.saturating_sub(here_ns).max(here_ns.saturating_sub(self.to_ns)).max(0);
        self.bound_ns.saturating_add((outside_ns as f64 * self.slack).ceil() as i64)
    }

    /// What the other clock shows more than this one at a time of this one.
    pub fn offset_at(&self, here_ns: i64) -> i64 {
        let drifted = here_ns.saturating_sub(self.at_ns) as f64 * self.drift;
        self.offset_ns.saturating_add(drifted.round() as i64)
    }
}

/// What is known of another host's clock.
#[derive(Clone, Debug, Default)]
pub struct ClockBetween {
    /// In order of time.
    kept: VecDeque<ClockQuestion>,
}

impl ClockBetween {
    /// Takes in a question that was answered. An answer that came before its question is none.
    pub fn add(&mut self, question: ClockQuestion) {
        if question.round_trip_ns() < 0 {
            return;
        }
        let begun_ns = self.stretch_begin();
        match self.kept.back_mut() {
            Some(last) if question.sent_ns.saturating_sub(begun_ns) < STRETCH_NS => {
                if question.round_trip_ns() < last.round_trip_ns() {
                    *last = question;
                }
            }
            _ => self.kept.push_back(question),
        }
        if self.kept.len() > KEPT_MAX {
            self.kept.pop_front();
        }
    }

    /// When the last stretch began: stretches lie on a grid.
    fn stretch_begin(&self) -> i64 {
        self.kept.back().map_or(i64::MIN, |last| last.sent_ns.div_euclid(STRETCH_NS) * STRETCH_NS)
    }

    /// The other clock as a line; `None` before the first answer.
    pub fn line(&self) -> Option<ClockLine> {
        let best = *self.kept.iter().min_by_key(|question| question.round_trip_ns())?;
        let mut middles = self.chosen(best).map(|question| question.middle_ns());
        let from_ns = middles.next()?;
        let to_ns = middles.last().unwrap_or(from_ns);
        let length_ns = to_ns.saturating_sub(from_ns);
        if length_ns < LINE_NS_MIN {
            return Some(ClockLine::through(best));
        }
        let line = self.fitted(best);
        let allowed = |question: &ClockQuestion| {
            let off_ns = question.offset_ns().saturating_sub(line.offset_at(question.middle_ns()));
            off_ns.saturating_abs().saturating_add((question.round_trip_ns() + 1) / 2)
        };
        let bound_ns = self.chosen(best).map(allowed).max()?;
        // At both ends of the line, the other clock may be off by the bound in opposite directions.
        let slack = (2.0 * bound_ns as f64 / length_ns as f64).min(2.0 * DRIFT_MAX);
        Some(ClockLine { bound_ns, from_ns, to_ns, slack, ..line })
    }

    /// Questions whose round trip is small enough that they add to what the best one shows.
    fn chosen(&self, best: ClockQuestion) -> impl Iterator<Item = &ClockQuestion> {
        let round_trip_ns_max = best.round_trip_ns().saturating_mul(2).saturating_add(20_000);
        self.kept.iter().filter(move |question| question.round_trip_ns() <= round_trip_ns_max)
    }

    /// A line by least squares, each question weighted by the inverse square of its round trip.
    fn fitted(&self, best: ClockQuestion) -> ClockLine {
        let (at_ns, offset_ns) = (best.middle_ns(), best.offset_ns());
        let points: Vec<(f64, f64, f64)> = self
            .chosen(best)
            .map(|question| {
                let x = (question.middle_ns() - at_ns) as f64;
                let y = (question.offset_ns() - offset_ns) as f64;
                (x, y, (question.round_trip_ns().max(1) as f64).powi(-2))
            })
            .collect();
        let weight: f64 = points.iter().map(|(_, _, w)| w).sum();
        let mean_x = points.iter().map(|(x, _, w)| x * w).sum::<f64>() / weight;
        let mean_y = points.iter().map(|(_, y, w)| y * w).sum::<f64>() / weight;
        let spread: f64 = points.iter().map(|(x, _, w)| w * (x - mean_x).powi(2)).sum();
        let common: f64 = points.iter().map(|(x, y, w)| w * (x - mean_x) * (y - mean_y)).sum();
        let drift = if spread > 0.0 { (common / spread).clamp(-DRIFT_MAX, DRIFT_MAX) } else { 0.0 };
        let offset_ns = offset_ns.saturating_add((mean_y - drift * mean_x).round() as i64);
        ClockLine { offset_ns, drift, ..ClockLine::through(best) }
    }
}

#[cfg(test)]
mod tests;

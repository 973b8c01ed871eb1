//! The search for the highest rate that holds the service level.

use std::time::Duration;

use whyso_explain::capacity::{Answer, ProbeResult, Search};
use whyso_load::{Pacing, Think};
use whyso_record::run::Level;

use super::session::Session;
use crate::Error;
use crate::engine::Engine;

/// Where no rate is named, the search begins at this share of what the same users reach in a closed loop.
const START_SHARE: f64 = 0.5;

impl Session<'_> {
    /// Searches until the answer stands. A server that stops answering ends the search: that it hung says nothing of the rate, and each
    /// probe depends on those before it.
    pub(super) fn find_capacity(&mut self, engine: &mut (Engine, &str)) -> Result<(), Error> {
        let Some(start_per_s) = self.start(engine)? else { return Ok(()) };
        let mut search = Search::new(start_per_s);
        let mut probes = Vec::new();
        while let Some(rate_per_s) = search.next_per_s() {
            let goes_on = self.level(engine, &self.plan.level_at_rate(rate_per_s), Duration::ZERO)?;
            if self.stop.is_asked() || self.outcome.failure.is_some() || self.silent.is_some() {
                break;
            }
            let Some(level) = self.last() else { break };
            let why = why_not_held(level);
            search.record(rate_per_s, why.is_empty());
            probes.push(ProbeResult { level: level.index, rate_per_s, held: why.is_empty(), why });
            if !goes_on {
                break;
            }
        }
        self.outcome.capacity = Some(Answer::new(search.bounds(), probes));
        Ok(())
    }

    /// The rate to begin with; `None` where the load was ended before one could be found.
    fn start(&mut self, engine: &mut (Engine, &str)) -> Result<Option<f64>, Error> {
        if let Some(&rate_per_s) = self.plan.rates_per_s.first() {
            return Ok(Some(rate_per_s));
        }
        let users = self.plan.users.first().copied().unwrap_or(1);
        let closed = self.plan.level(users, Pacing::Closed { think: Think::None, active: None });
        if !self.level(engine, &closed, Duration::ZERO)? || self.silent.is_some() {
            return Ok(None);
        }
        Ok(self.last().map(|level| level.result.transactions_per_s * START_SHARE))
    }
}

/// Why a probe did not hold the service level; empty where it did.
fn why_not_held(level: &Level) -> String {
    let result = &level.result;
    if result.client.saturated {
        return format!("the load generator was the limit: {}", result.client.saturated_why);
    }
    if !result.client_limit.is_empty() {
        return format!("the load generator was the limit: {}", result.client_limit);
    }
    let mut reasons = Vec::new();
    for slo in result.slo.iter().filter(|slo| !slo.held) {
        reasons.push(match slo.measured_ms {
            Some(measured) if measured <= slo.required_ms => {
                format!("too many requests for {} failed", slo.kind)
            }
            Some(measured) => {
                let was = if slo.is_lower_bound { "was at least" } else { "was" };
                format!(
                    "{} of {} {was} {}, {} required",
                    slo.measure,
                    slo.kind,
                    whyso_words::milliseconds(measured),
                    whyso_words::milliseconds(slo.required_ms)
                )
            }
            None => format!("nothing was measured of {}", slo.kind),
        });
    }
    if let Some(arrivals) = result.arrivals.as_ref().filter(|arrivals| !arrivals.held) {
        reasons.push(format!(
            "the rate was not kept up with: the backlog grew from {} to {}",
            arrivals.backlog_begin, arrivals.backlog_end
        ));
    }
    reasons.join("; ")
}

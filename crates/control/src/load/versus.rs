//! Two workloads side by side, in rounds that alternate.

use std::time::Duration;

use whyso_explain::versus::{RoundResult, compare};
use whyso_record::run::Level;

use super::session::Session;
use crate::Error;
use crate::engine::Engine;

impl Session<'_> {
    /// Rounds of a and b; every other round begins with b, so that neither is always the one that comes first.
    pub(super) fn compare<'w>(
        &mut self,
        a: &mut (Engine, &'w str),
        b: &mut (Engine, &'w str),
    ) -> Result<(), Error> {
        let level = match self.plan.levels().pop() {
            Some(level) => level,
            None => return Ok(()),
        };
        let each = level.warmup_max + level.measure;
        let mut rounds = Vec::new();
        for number in 0..self.plan.rounds {
            let rest: Duration = each * ((self.plan.rounds - number) * 2 - 2);
            let b_first = number % 2 == 1;
            let (first, second) = if b_first { (&mut *b, &mut *a) } else { (&mut *a, &mut *b) };
            let goes_on = self.level(first, &level, rest + each)? && self.level(second, &level, rest)?;
            if !goes_on {
                break;
            }
            let [.., first, second] = &self.outcome.levels[..] else { break };
            let (of_a, of_b) = if b_first { (second, first) } else { (first, second) };
            rounds.push((measured(of_a), measured(of_b)));
        }
        self.outcome.comparison = compare(a.1, b.1, &rounds);
        Ok(())
    }
}

fn measured(level: &Level) -> RoundResult {
    let result = &level.result;
    RoundResult {
        transactions_per_s: result.transactions_per_s,
        mean_ms: result.latency_ms.mean,
        p95_ms: result.latency_ms.p95,
        p99_ms: result.latency_ms.p99,
    }
}

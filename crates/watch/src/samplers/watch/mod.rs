//! What the watching itself costs: series of the source `watch`, one instance per sampler.
//!
//! `cpu_ns` is what the sampler's thread used here, with the programs of an add-on. What it costs the server is not in it; a server
//! that finds a sampler's query expensive shows it in `duration_ns`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cost::Cost;
use crate::metric::{Metric, counter, gauge};
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::SamplerEntry;
use crate::sink::Batch;

/// The watcher starts it itself, since it needs the costs of all others.
pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["watch"],
    counts: "cost, missed and failed readings of each sampler",
    origin: "itself",
    metrics: &[&METRICS],
    start: |_| Vec::new(),
};

pub(crate) const METRICS: [Metric; 6] = [
    counter("cpu_ns", "ns", "CPU time that the sampler's own thread used, and the programs that it runs"),
    counter("duration_ns", "ns", "time that the sampler's readings took, waiting included"),
    gauge("last_duration_ns", "ns", "time that the sampler's last reading took"),
    counter("readings", "1", "readings that the sampler completed"),
    counter(
        "missed",
        "1",
        "readings that were due and not taken: the one before was still going on, or what reading may take was used up",
    ),
    counter("failed", "1", "attempts to read that failed"),
];

pub(crate) struct CostSampler {
    pub(crate) costs: Vec<(&'static str, Arc<Cost>)>,
}

impl Sampler for CostSampler {
    fn source(&self) -> &'static str {
        "watch"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        for (sampler, cost) in &self.costs {
            let sums = [
                &cost.cpu_ns,
                &cost.duration_ns,
                &cost.last_duration_ns,
                &cost.readings,
                &cost.missed,
                &cost.failed,
            ];
            for (metric, sum) in METRICS.iter().zip(sums) {
                batch.put(metric, sampler, sum.load(Ordering::Relaxed));
            }
        }
        Ok(())
    }
}

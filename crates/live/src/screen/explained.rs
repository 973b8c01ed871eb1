//! The explanation of the window on the screen, computed again when there is something new.

use std::time::{Duration, Instant};

use whyso_explain::model::{Explanation, Input, LevelInput};
use whyso_record::run::Window;

use super::app::App;
use crate::About;
use crate::history::History;

/// An explanation is computed at most this often while time continues.
const INTERVAL: Duration = Duration::from_millis(900);
/// A shorter window has too few requests to show where their time went.
const LENGTH_NS_MIN: i64 = 5_000_000_000;

#[derive(Default)]
pub(super) struct LatestExplanation {
    latest: Option<(Instant, Window, Explanation)>,
}

impl LatestExplanation {
    pub(super) fn latest(&self) -> Option<&Explanation> {
        self.latest.as_ref().map(|(_, _, explanation)| explanation)
    }

    pub(super) fn at(
        &mut self,
        history: &History,
        about: &About,
        app: &App,
        span_ns: (i64, i64),
    ) -> Option<&Explanation> {
        let length_ns = app.length_ns().max(LENGTH_NS_MIN);
        let end_ns = app.end_ns(span_ns);
        let asked = Window { begin_ns: end_ns - length_ns, end_ns };
        let is_new = match &self.latest {
            None => true,
            Some((at, window, _)) => {
                let same_length = window.end_ns - window.begin_ns == length_ns;
                *window != asked && (app.is_paused() || !same_length || at.elapsed() >= INTERVAL)
            }
        };
        if is_new {
            let explanation = explain(history, about, length_ns, end_ns);
            self.latest = Some((Instant::now(), asked, explanation));
        }
        self.latest()
    }
}

fn explain(history: &History, about: &About, length_ns: i64, end_ns: i64) -> Explanation {
    let window = ["trace", "status"].iter().find_map(|source| history.aligned(source, length_ns, end_ns));
    let Some(window) = window else { return Explanation::default() };
    let mut level = history.level(window, |_| true);
    let sum = |level: &LevelInput, source: &str, metric: &str| {
        let all = level.counters.iter();
        let sums = all.filter(|counter| counter.series.source == source && counter.series.metric == metric);
        sums.map(|counter| counter.increase)
            .fold(None, |sum: Option<f64>, increase| Some(sum.unwrap_or(0.0) + increase))
    };
    let requests = sum(&level, "trace", "requests");
    let answered = requests.or_else(|| sum(&level, "status", "Questions")).unwrap_or(0.0);
    let times = ["request_ns", "transit_in_ns"].map(|metric| sum(&level, "trace", metric).unwrap_or(0.0));
    level.transactions = answered.round().max(0.0) as u64;
    level.queries = level.transactions;
    if level.transactions > 0 {
        level.latency_mean_ms = times.iter().sum::<f64>() / answered / 1e6;
        level.service_mean_ms = level.latency_mean_ms;
    }
    level.users = connections_at_work(history, window);
    level.cpu = whyso_explain::cpu_use(&level.counters);
    level.server_cpu_s = whyso_explain::server_cpu_s(&level.counters);
    let snapshots = history.lock_snapshots(window);
    level.lock_objects = whyso_explain::locks::objects(&snapshots, &std::collections::BTreeMap::new());
    whyso_explain::explain(&Input {
        levels: vec![level],
        machine: about.machine.clone(),
        variables: about.variables.clone(),
        ..Input::default()
    })
}

/// Threads of connections that ran in the window.
fn connections_at_work(history: &History, window: Window) -> u32 {
    let (states, threads) = history.threads(window);
    let Some(cpu) = states.iter().position(|state| state == "cpu") else { return 0 };
    let ran = threads
        .values()
        .filter(|did| did.role == "connection" && did.states_ms.get(cpu).is_some_and(|ms| *ms > 0));
    ran.count() as u32
}

//! A recording that an agent makes, in a thread of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use whyso_control::{Quiet, RecordPlan, RecordTarget, RelayTargets, StackSampling, StacksOf, Stop, Taps};
use whyso_hub::RecordOrder;
use whyso_record::data::Event;
use whyso_record::{Entry, EntryTap, Labels};

use crate::outbox::Outbox;
use crate::settings::AgentServer;

/// Shortest and longest time between two readings that a commander may ask for.
const INTERVAL_MIN_MS: u64 = 100;
const INTERVAL_MAX_MS: u64 = 60_000;
/// Size of the recording beyond which its oldest detail is removed on this host.
const BYTES_MAX: u64 = 2 << 30;

/// A recording that is under way.
pub(crate) struct RecordingTask {
    stop: Arc<Stop>,
    begun: Instant,
    length_max: Duration,
    is_over: Arc<AtomicBool>,
    pub(crate) outbox: Arc<Outbox>,
}

impl RecordingTask {
    /// Begins to record. `server`, `programs`: those of the order, from the agent's own file.
    pub(crate) fn begin(
        order: &RecordOrder,
        (server, programs): (Option<&AgentServer>, Vec<String>),
        out: PathBuf,
        outbox: Arc<Outbox>,
        keeps: bool,
    ) -> std::io::Result<RecordingTask> {
        let stop = Arc::new(Stop::new());
        let is_over = Arc::new(AtomicBool::new(false));
        let receiver = Arc::clone(&outbox);
        let tap = EntryTap::new(move |entry: Entry| receiver.put(&entry));
        let mut plan = plan(order, server, out, Taps(vec![Arc::new(tap)]));
        plan.other_processes = programs;
        let (of_thread, thread_over, last) = (Arc::clone(&stop), Arc::clone(&is_over), Arc::clone(&outbox));
        std::thread::Builder::new().name("record".to_string()).spawn(move || {
            let recorded = whyso_control::record(&plan, &Quiet, &of_thread, &|_| None);
            let problem = match &recorded {
                Ok(outcome) => outcome.failure.clone(),
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = problem {
                last.put(&failure(problem));
            }
            last.end();
            if let (Ok(outcome), false) = (recorded, keeps) {
                // What is handed over needs no second place. One that can't be removed is in the way of nothing.
                let _ = std::fs::remove_dir_all(outcome.path);
            }
            thread_over.store(true, Ordering::Release);
        })?;
        let length_max = Duration::from_secs(order.seconds_max);
        Ok(RecordingTask { stop, begun: Instant::now(), length_max, is_over, outbox })
    }

    pub(crate) fn end(&self) {
        self.stop.ask();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Ends it where it has taken as long as it may.
    pub(crate) fn end_if_due(&self) {
        if self.begun.elapsed() > self.length_max {
            self.end();
        }
    }
}

/// Why a recording failed, as an event of the recording.
fn failure(text: String) -> Entry {
    let [host, kind] = ["client", "error"].map(str::to_string);
    Entry::Event(Event { t_ns: whyso_clock::monotonic_ns(), host, kind, text })
}

fn plan(order: &RecordOrder, server: Option<&AgentServer>, out: PathBuf, taps: Taps) -> RecordPlan {
    let target = match server {
        Some(server) => RecordTarget::Server(server.dsn.clone()),
        None => RecordTarget::Machine,
    };
    let stacks = match order.stacks.as_str() {
        _ if !order.trace => StackSampling::Off,
        "full" => StackSampling::Full,
        "light" => StackSampling::Light,
        _ => StackSampling::Off,
    };
    RecordPlan {
        target,
        nodes: Vec::new(),
        other_dsns: Vec::new(),
        other_processes: Vec::new(),
        length: None,
        command: Vec::new(),
        load: None,
        toggle: false,
        interval: Duration::from_millis(order.interval_ms.clamp(INTERVAL_MIN_MS, INTERVAL_MAX_MS)),
        trace: order.trace,
        stacks,
        stacks_of: StacksOf::Server,
        sql: None,
        add_ons: Vec::new(),
        access_logs: Vec::new(),
        relay: RelayTargets::default(),
        taps,
        hosts: None,
        pfs: None,
        out,
        labels: Labels::default(),
        bytes_max: Some(BYTES_MAX),
        command_line: vec!["whyso".to_string(), "agent".to_string(), "run".to_string()],
    }
}

//! The threads of a cluster's other nodes: their time by state, by what they are for. Of those that apply what other nodes have changed, each
//! one by itself. And the threads and requests of other programs that are recorded together with a server, as one sum for each program.
//!
//! One tracer counts up to four nodes; a program has one of its own, which follows the processes that it starts. Nothing is known of the
//! requests of nodes: the load goes to another one. Stacks are taken of programs only.

use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_model::{Missing, NotMeasured, Role, STATES, state};
use whyso_record::Recorder;
use whyso_record::data::{Kind, Reading, SeriesId, SeriesKey, Status, TextRows, Value};
use whyso_trace::{Program, StackSampling, StacksOf, ThreadSums, TraceSpec, Tracer};

use crate::error::Error;
use crate::stacks::{Owner, StackTaking, StacksOfProgram};
use crate::tier::TierSeries;
use crate::workers;

/// Servers that one tracer counts, at most.
const SERVERS_MAX: usize = 4;
/// Between two readings of the sums.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two readings of the programs' waits by file.
const FILES_INTERVAL: Duration = Duration::from_secs(10);
/// Nodes that came back and wait to be counted, at most.
const CHANGED_MAX: usize = 64;
/// Source of the series of single threads.
const APPLIERS: &str = "appliers";
const THREADS: &str = "threads";

/// A node's process on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedNode {
    /// The host of its series.
    pub name: String,
    pub pid: u32,
    /// Threads that apply changes, by number, with what the server calls them.
    pub appliers: HashMap<u32, String>,
}

/// A program that is recorded together with a server, with all its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedProgram {
    /// The host of its series.
    pub name: String,
    pub program: Program,
}

/// What of the stacks of other programs is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherStacks {
    pub sampling: StackSampling,
    pub of: StacksOf,
}

/// Tracers of nodes, in a thread of their own. Dropping it takes a last reading and ends them.
pub struct NodeTracing {
    /// A thread for each program whose stacks are taken. They end before the tracers, whose accounts they read.
    stacks: Vec<StackTaking>,
    /// Nodes that are another process now; none any more: the end.
    changed: Option<SyncSender<TracedNode>>,
    thread: Option<JoinHandle<()>>,
}

impl NodeTracing {
    /// Begins to count; nothing where there are neither nodes nor programs. `not_measured` gets what of the stacks is missing.
    ///
    /// # Errors
    /// The kernel or the rights do not allow it, or no thread could be started.
    pub fn begin(
        nodes: Vec<TracedNode>,
        programs: &[TracedProgram],
        stacks: OtherStacks,
        recorder: Recorder,
        not_measured: &mut Vec<NotMeasured>,
    ) -> Result<NodeTracing, Error> {
        let mut tracers = Vec::new();
        for some in nodes.chunks(SERVERS_MAX) {
            let servers = some.iter().map(|node| node.pid).collect();
            let spec = TraceSpec { servers, ..TraceSpec::default() };
            tracers.push(Tracer::start(&spec).map_err(Error::Trace)?);
        }
        // In a light sampling, only the server's are taken.
        let sampling = if stacks.sampling.takes_waits() { stacks.sampling } else { StackSampling::Off };
        let of_program = |traced: &TracedProgram| {
            let program = Some(traced.program.clone());
            let spec = TraceSpec { program, stacks: sampling, ..TraceSpec::default() };
            Ok((traced.name.clone(), Tracer::start(&spec).map_err(Error::Trace)?, TierSeries::default()))
        };
        let programs = programs.iter().map(of_program).collect::<Result<Vec<_>, Error>>()?;
        let taken = match sampling {
            StackSampling::Off => Vec::new(),
            _ => take_stacks(&programs, stacks.of == StacksOf::Server, &recorder, not_measured),
        };
        let (sender, changed) = sync_channel::<TracedNode>(CHANGED_MAX);
        let files_due = Instant::now();
        let mut keeper = NodeKeeper { tracers, nodes, programs, recorder, totals: HashMap::new(), files_due };
        let run = move || {
            let mut next = Instant::now();
            loop {
                keeper.read(false);
                next += INTERVAL;
                loop {
                    let rest = next.saturating_duration_since(Instant::now());
                    match changed.recv_timeout(rest) {
                        Ok(node) => keeper.follow(node),
                        Err(RecvTimeoutError::Timeout) => break,
                        Err(RecvTimeoutError::Disconnected) => return keeper.read(true),
                    }
                }
            }
        };
        let spawned = std::thread::Builder::new().name("trace-nodes".to_string()).spawn(run);
        Ok(NodeTracing {
            stacks: taken,
            changed: Some(sender),
            thread: Some(spawned.map_err(Error::Thread)?),
        })
    }

    /// A level has ended, and the next has not begun: a time for what would disturb a measurement.
    pub fn between_levels(&self) {
        self.stacks.iter().for_each(StackTaking::name);
    }

    /// A node is another process now, by its name. Never waits.
    pub fn process_changed(&self, node: TracedNode) {
        if let Some(changed) = &self.changed {
            let _ = changed.try_send(node);
        }
    }
}

impl Drop for NodeTracing {
    fn drop(&mut self) {
        self.stacks.clear();
        self.changed = None;
        if let Some(thread) = self.thread.take() {
            // A panic there is no reason to lose the recording.
            let _ = thread.join();
        }
    }
}

/// Takes the stacks of each program. `on_cpu`: of its threads on CPUs, too.
fn take_stacks(
    programs: &[(String, Tracer, TierSeries)],
    on_cpu: bool,
    recorder: &Recorder,
    not_measured: &mut Vec<NotMeasured>,
) -> Vec<StackTaking> {
    let mut taken = Vec::new();
    for (place, (name, tracer, _)) in programs.iter().enumerate() {
        let owner = Owner::Program(StacksOfProgram { name: name.clone(), place: place as u32, on_cpu });
        let started = tracer
            .stacks()
            .map_err(Error::from)
            .and_then(|stacks| StackTaking::start(stacks, owner, tracer.strange_is_load(), recorder.clone()));
        match started {
            Ok(taking) => taken.push(taking),
            Err(why) => {
                let what = format!("the stacks of {name}");
                not_measured.push(NotMeasured::new(Missing::Other, what, why.to_string()));
            }
        }
    }
    taken
}

/// Which of a node's sums: of all threads of a role, or of one that applies.
type Instance = (&'static str, String);

struct NodeKeeper {
    tracers: Vec<Tracer>,
    nodes: Vec<TracedNode>,
    /// A tracer for each program, by its name, and what of it is recorded.
    programs: Vec<(String, Tracer, TierSeries)>,
    recorder: Recorder,
    /// By name.
    totals: HashMap<String, NodeTotals>,
    files_due: Instant,
}

/// Sums of one node since the tracing began; none ever falls, whichever threads end.
#[derive(Default)]
struct NodeTotals {
    sums: HashMap<Instance, [u64; STATES]>,
    /// By number and birth of a thread: its sums at the last reading.
    last: HashMap<(u32, u64), [u64; STATES]>,
}

impl NodeTotals {
    fn add(&mut self, threads: &[&ThreadSums], appliers: &HashMap<u32, String>) {
        let mut last = HashMap::with_capacity(threads.len());
        for thread in threads {
            let key = (thread.tid, thread.born_ns);
            let before = self.last.get(&key).copied().unwrap_or_default();
            for instance in instances(thread, appliers) {
                let sums = self.sums.entry(instance).or_default();
                for (sum, (now, then)) in sums.iter_mut().zip(thread.states.iter().zip(before)) {
                    *sum += now.saturating_sub(then);
                }
            }
            last.insert(key, thread.states);
        }
        self.last = last;
        // Those that have not run since the tracing began are known, too.
        for (tid, name) in appliers {
            self.sums.entry(applier(name, *tid)).or_default();
        }
    }
}

fn instances(thread: &ThreadSums, appliers: &HashMap<u32, String>) -> Vec<Instance> {
    let name = appliers.get(&thread.tid);
    let role = if name.is_some() { Role::Replication } else { thread.role };
    let mut of_thread = vec![(THREADS, role.name().to_string())];
    of_thread.extend(name.map(|name| applier(name, thread.tid)));
    of_thread
}

fn applier(name: &str, tid: u32) -> Instance {
    (APPLIERS, format!("{name}-{tid}"))
}

impl NodeKeeper {
    /// Counts a node as the process that it is now. What it did before stays.
    fn follow(&mut self, node: TracedNode) {
        let Some(place) = self.nodes.iter().position(|known| known.name == node.name) else { return };
        if self.nodes[place].pid != node.pid
            && let Some(totals) = self.totals.get_mut(&node.name)
        {
            // Its threads of before are gone.
            totals.sums.retain(|(source, _), _| *source != APPLIERS);
        }
        self.nodes[place] = node;
        let some = self.nodes.chunks(SERVERS_MAX).nth(place / SERVERS_MAX).unwrap_or_default();
        let pids: Vec<u32> = some.iter().map(|node| node.pid).collect();
        if let Some(tracer) = self.tracers.get_mut(place / SERVERS_MAX) {
            // As many as before.
            let _ = tracer.watch(&pids, &[]);
        }
    }

    fn read(&mut self, is_last: bool) {
        let begin_ns = monotonic_ns();
        let threads: Vec<ThreadSums> =
            self.tracers.iter_mut().flat_map(|tracer| tracer.read().threads).collect();
        let end_ns = monotonic_ns();
        for node in &self.nodes {
            let of_node: Vec<&ThreadSums> = threads.iter().filter(|thread| thread.pid == node.pid).collect();
            let totals = self.totals.entry(node.name.clone()).or_default();
            totals.add(&of_node, &node.appliers);
            for source in [THREADS, APPLIERS] {
                let values = values(&self.recorder, &node.name, source, totals);
                let source = source.to_string();
                self.recorder.reading(Reading { source, begin_ns, end_ns, status: Status::Ok, values });
            }
        }
        // The first reading and the last one have them, too.
        let with_files = is_last || Instant::now() >= self.files_due;
        let mut files = Vec::new();
        let mut threads_of: Vec<(String, Vec<ThreadSums>)> = Vec::new();
        for (name, tracer, series) in &mut self.programs {
            if with_files {
                let of_program = tracer
                    .files()
                    .into_iter()
                    .map(|wait| whyso_model::FileWait { role: name.clone(), ..wait.row() });
                files.extend(of_program.map(|wait| wait.into_cells().map(Some).to_vec()));
            }
            let begin_ns = monotonic_ns();
            let read = tracer.read();
            let end_ns = monotonic_ns();
            series.record(&self.recorder, name, &read, (begin_ns, end_ns));
            let threads = read.threads;
            let totals = self.totals.entry(name.clone()).or_default();
            totals.add(&threads.iter().collect::<Vec<_>>(), &HashMap::new());
            let values = values(&self.recorder, name, THREADS, totals);
            let source = THREADS.to_string();
            self.recorder.reading(Reading { source, begin_ns, end_ns, status: Status::Ok, values });
            if with_files {
                threads_of.push((name.clone(), threads));
            }
        }
        if with_files && !self.programs.is_empty() {
            self.files_due = Instant::now() + FILES_INTERVAL;
            let programs = threads_of.iter().map(|(name, threads)| (name.as_str(), threads.as_slice()));
            workers::record(&self.recorder, programs);
            self.recorder.rows(TextRows {
                source: whyso_model::FileWait::OF_PROGRAMS.to_string(),
                t_ns: monotonic_ns(),
                columns: whyso_model::FileWait::COLUMNS.map(str::to_string).to_vec(),
                rows: files,
            });
        }
    }
}

/// A node's series of one source.
fn values(recorder: &Recorder, host: &str, source: &str, totals: &NodeTotals) -> Vec<(SeriesId, Value)> {
    let mut values = Vec::new();
    for ((_, instance), sums) in totals.sums.iter().filter(|((of, _), _)| *of == source) {
        for (state, ns) in state::ALL.iter().zip(sums) {
            let id = recorder.series(&SeriesKey {
                host: host.to_string(),
                source: source.to_string(),
                metric: format!("{}_ns", state.name()),
                instance: instance.clone(),
                kind: Kind::Counter,
                unit: "ns".to_string(),
            });
            values.push((id, Value::Int(i64::try_from(*ns).unwrap_or(i64::MAX))));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_model::State;

    fn thread(tid: u32, role: Role, cpu_ns: u64) -> ThreadSums {
        let mut states = [0; STATES];
        states[State::Cpu as usize] = cpu_ns;
        ThreadSums {
            pid: 1,
            tid,
            name: "mariadbd".to_string(),
            role,
            born_ns: 7,
            requests: 0,
            states,
            now: State::Cpu,
        }
    }

    fn appliers() -> HashMap<u32, String> {
        [1, 2].map(|tid| (tid, "worker".to_string())).into()
    }

    #[test]
    fn sums_never_fall_when_a_thread_ends() {
        let mut totals = NodeTotals::default();
        let (first, second) = (thread(1, Role::Other, 5), thread(2, Role::Other, 30));
        totals.add(&[&first, &second], &appliers());
        totals.add(&[&thread(1, Role::Other, 9)], &appliers());
        let cpu = |source, instance: &str| totals.sums[&(source, instance.to_string())][State::Cpu as usize];
        assert_eq!(cpu(THREADS, "replication"), 39);
        assert_eq!((cpu(APPLIERS, "worker-1"), cpu(APPLIERS, "worker-2")), (9, 30));
    }

    #[test]
    fn only_threads_that_apply_have_sums_of_their_own() {
        assert_eq!(instances(&thread(3, Role::Purge, 1), &appliers()), [(THREADS, "purge".to_string())]);
    }
}

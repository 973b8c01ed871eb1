//! A study whose blocks are carried out by the agents of other machines. Each block is done on one machine as a whole, so that a difference between machines
//! is one between blocks. What is to be done lies in a queue of the hub. A block of a machine that is lost goes to another one, which begins it again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use whyso_hub::{
    AGENT_LOST_AFTER, Answer, Bus, HostName, HostState, Order, ReceivedPart, RecordingId, Right, WorkOrder,
    WorkState, WorkStep,
};
use whyso_model::HostFacts;
use whyso_study::{Journal, Start, StartRecord};

use super::unit::{check_study_of_others, describe_unit, unpack_unit};
use super::{check_errors, count_begun_blocks, is_over, wants_more, wrong_study};
use crate::hosts::HostsPlan;
use crate::progress::{Listener, News};
use crate::runtime::runtime;
use crate::{Error, Stop};

/// Bound on one wait for a part of a result.
const PART_TIME: Duration = Duration::from_millis(300);
/// Between two questions of what each worker does.
const ASK_INTERVAL: Duration = Duration::from_secs(3);
/// A worker that does not answer for this long is reported as lost. Its block goes to another one by itself.
const LOST_AFTER: Duration = Duration::from_secs(45);
/// With no worker for this long, the study ends. It can be continued.
const ALL_LOST_TIME_MAX: Duration = Duration::from_secs(600);
/// The most bytes of a block's result.
const RESULT_BYTES_MAX: u64 = 4 << 30;
/// Memory of like machines differs by less than this share.
const MEMORY_SHARE: f64 = 0.05;
/// Before the name of a result that is not whole yet.
const COMING: &str = ".coming-";

/// The hosts that carry a study out.
#[derive(Clone, Debug)]
pub struct StudyWorkers {
    pub hosts: HostsPlan,
    /// Machines may differ in more than their name.
    pub may_differ: bool,
}

/// A result that has not arrived as a whole.
struct ComingResult {
    path: PathBuf,
    file: File,
    next: u64,
    bytes: u64,
    /// What the hub may forget once the result is kept.
    parts: Vec<ReceivedPart>,
}

/// A study that is carried out by others.
struct WorkersSession<'a> {
    journal: &'a mut Journal,
    listener: &'a dyn Listener,
    runtime: Runtime,
    bus: Bus,
    work: RecordingId,
    workers: Vec<HostName>,
    study: String,
    coming: HashMap<(HostName, u32, u32), ComingResult>,
    /// When each answered last.
    answered: HashMap<HostName, Instant>,
    lost: HashSet<HostName>,
}

/// Carries out what a study still has to do on other machines. Returns why the study ended early, where it did.
///
/// # Errors
/// A start failed, the hub can't be reached, or the user broke off: what is missing can be done later.
pub(super) fn study_on_workers(
    journal: &mut Journal,
    workers: &StudyWorkers,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Option<String>, Error> {
    check_study_of_others(journal.stored())?;
    if workers.hosts.hosts.iter().any(|host| host.server.is_some() || host.load.is_some()) {
        let why = "a study starts its servers, and each host loads its own: leave server and load out of the file of --hosts";
        return Err(Error::Plan(why.to_string()));
    }
    journal.remove_unfinished().map_err(wrong_study)?;
    let study = serde_json::to_string(journal.stored()).map_err(|error| Error::Failed(error.to_string()))?;
    let work = RecordingId::new(&journal.work_id().map_err(wrong_study)?)?;
    let runtime = runtime()?;
    let (bus, workers) = runtime.block_on(async {
        let bus = Bus::join(&workers.hosts.token).await?;
        let workers = workers_of(&bus, workers).await?;
        Ok::<_, Error>((bus, workers))
    })?;
    let names: Vec<&str> = workers.iter().map(HostName::as_str).collect();
    listener.hear(News::Step(&format!("carried out by {}", names.join(", "))));
    let now = Instant::now();
    let answered = workers.iter().map(|worker| (worker.clone(), now)).collect();
    let (coming, lost) = (HashMap::new(), HashSet::new());
    let mut session =
        WorkersSession { journal, listener, runtime, bus, work, workers, study, coming, answered, lost };
    let ended = session.carry_out(stop);
    session.end(ended.is_ok());
    ended
}

impl WorkersSession<'_> {
    fn carry_out(&mut self, stop: &Stop) -> Result<Option<String>, Error> {
        let mut results = self.runtime.block_on(self.bus.results(&self.work))?;
        let mut blocks = count_begun_blocks(self.journal).max(self.journal.spec().blocks_least());
        let mut queued_for = None;
        let mut asked: Option<Instant> = None;
        loop {
            let todo = self.journal.todo(blocks);
            if todo.is_empty() {
                if !wants_more(self.journal, blocks) {
                    return Ok(None);
                }
                blocks += 1;
                continue;
            }
            if let Some(why) = is_over(self.journal) {
                return Ok(Some(why));
            }
            if stop.is_asked() {
                return Err(Error::Interrupted);
            }
            let received = match self.runtime.block_on(results.next(PART_TIME)) {
                Ok(received) => received,
                Err(_) => {
                    // The connection is made again meanwhile, and the receiver with it.
                    std::thread::sleep(PART_TIME);
                    if let Ok(again) = self.runtime.block_on(self.bus.results(&self.work)) {
                        results = again;
                    }
                    continue;
                }
            };
            let is_quiet = received.is_none();
            if let Some(part) = received {
                self.take_part(part)?;
            }
            // What was done before this commander began has arrived by then.
            if is_quiet && queued_for != Some(blocks) {
                let units: BTreeSet<u32> = self.journal.todo(blocks).iter().map(Start::unit).collect();
                // Where the hub is away for a while, it is tried again.
                if self.runtime.block_on(self.bus.queue_work(&self.work, &units, AGENT_LOST_AFTER)).is_ok() {
                    queued_for = Some(blocks);
                    self.listener.hear(News::Step(&self.describe(blocks)));
                }
            }
            if asked.is_none_or(|at| at.elapsed() > ASK_INTERVAL) && queued_for.is_some() {
                asked = Some(Instant::now());
                self.ask_workers()?;
            }
        }
    }

    /// Takes in a part of a result. What was measured is kept once the last one has come, unless its block was done before.
    fn take_part(&mut self, part: ReceivedPart) -> Result<(), Error> {
        let is_wanted = self.workers.contains(&part.host)
            && part.number <= self.journal.spec().blocks_max()
            && self.is_left(part.number);
        let key = (part.host.clone(), part.number, part.attempt);
        let frame = match &part.frame {
            Ok(frame) if is_wanted => frame,
            _ => {
                self.forget(vec![part]);
                return Ok(());
            }
        };
        let (number, is_last, bytes) = (frame.number, frame.is_last, frame.entries.clone());
        let coming = match self.coming.entry(key.clone()) {
            std::collections::hash_map::Entry::Occupied(coming) => coming.into_mut(),
            std::collections::hash_map::Entry::Vacant(place) => {
                let name = format!("{COMING}{}-{}-{}", key.0, key.1, key.2);
                let path = self.journal.dir().join(name);
                let failed = |error| Error::Failed(format!("can't write {}: {error}", path.display()));
                let mut options = OpenOptions::new();
                let file = options.write(true).create(true).truncate(true).open(&path).map_err(failed)?;
                place.insert(ComingResult { path, file, next: 1, bytes: 0, parts: Vec::new() })
            }
        };
        if number != coming.next {
            // It came before, or follows one that did not come: then it comes once more, in order.
            if number < coming.next {
                coming.parts.push(part);
            }
            return Ok(());
        }
        coming.next += 1;
        coming.bytes += bytes.len() as u64;
        let written = coming.file.write_all(&bytes);
        coming.parts.push(part);
        written.map_err(|error| Error::Failed(format!("can't write {}: {error}", coming.path.display())))?;
        if coming.bytes > RESULT_BYTES_MAX {
            return Err(Error::Failed(format!("the result of {} is larger than 4 GiB", key.0)));
        }
        if !is_last {
            return Ok(());
        }
        match self.coming.remove(&key) {
            Some(result) => self.take_result(&key, result),
            None => Ok(()),
        }
    }

    /// The starts of a unit that are not done yet.
    fn left(&self, unit: u32) -> BTreeSet<Start> {
        self.journal.todo(unit).into_iter().filter(|start| start.unit() == unit).collect()
    }

    fn is_left(&self, unit: u32) -> bool {
        !self.left(unit).is_empty()
    }

    /// Keeps a result that is whole.
    fn take_result(
        &mut self,
        (host, unit, _): &(HostName, u32, u32),
        result: ComingResult,
    ) -> Result<(), Error> {
        let known: HashSet<String> =
            self.journal.finished_starts().iter().map(|done| done.run.clone()).collect();
        let unpacked = unpack_unit(&result.path, &self.journal.runs(), &known);
        let _ = fs::remove_file(&result.path);
        let mut records = match unpacked {
            Ok(records) => records,
            Err(error) => {
                // Another attempt may be whole.
                self.listener
                    .hear(News::Warning(&format!("{host}: {error}; {} is done again", describe_unit(*unit))));
                self.forget(result.parts);
                let again = BTreeSet::from([*unit]);
                return Ok(self.runtime.block_on(self.bus.queue_work(
                    &self.work,
                    &again,
                    AGENT_LOST_AFTER,
                ))?);
            }
        };
        let wanted = self.left(*unit);
        let came: BTreeSet<Start> = records.iter().map(|record| record.start).collect();
        if !wanted.is_subset(&came) {
            self.forget(result.parts);
            return Err(Error::Failed(format!("{host} left out a part of {}", describe_unit(*unit))));
        }
        records.retain(|record| wanted.contains(&record.start));
        let cells = self.journal.spec().cells();
        // Written before the hub forgets it: a commander that is killed in between receives it once more.
        for record in records {
            check_errors(self.journal.spec(), &cells[record.start.cell], &record)?;
            self.journal.finish(StartRecord { host: host.to_string(), ..record }).map_err(wrong_study)?;
        }
        self.forget(result.parts);
        let (done, unit) = (self.journal.finished_starts().len(), describe_unit(*unit));
        self.listener.hear(News::Step(&format!("{unit} done by {host}; {done} starts done")));
        Ok(())
    }

    fn forget(&self, parts: Vec<ReceivedPart>) {
        self.runtime.block_on(async {
            for part in &parts {
                // One that stays comes once more, and is known.
                let _ = part.done().await;
            }
        });
    }

    /// Asks each worker what it does. One that knows nothing of the study, as after its restart, gets it again.
    fn ask_workers(&mut self) -> Result<(), Error> {
        let states = self.order_all(&WorkStep::State);
        let mut begin = Vec::new();
        for (worker, state) in states {
            let Ok(state) = state else { continue };
            self.answered.insert(worker.clone(), Instant::now());
            if self.lost.remove(&worker) {
                self.listener.hear(News::Step(&format!("{worker} is back")));
            }
            if let Some(problem) = state.problem {
                return Err(Error::Failed(format!("{worker}: {problem}")));
            }
            if !state.is_at_work {
                begin.push(worker);
            }
        }
        for worker in begin {
            let step = WorkStep::Begin { study: self.study.clone() };
            match self.runtime.block_on(order(&self.bus, &worker, &self.work, step)) {
                Ok(_) | Err(whyso_hub::Error::Silent { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for (worker, at) in &self.answered {
            if at.elapsed() > LOST_AFTER && self.lost.insert(worker.clone()) {
                self.listener.hear(News::Warning(&format!(
                    "{worker} does not answer: another machine gets its block"
                )));
            }
        }
        let last = self.answered.values().max();
        match last.is_some_and(|last| last.elapsed() > ALL_LOST_TIME_MAX) {
            true => Err(Error::Failed("no machine answers any more".to_string())),
            false => Ok(()),
        }
    }

    fn order_all(&self, step: &WorkStep) -> BTreeMap<HostName, Result<WorkState, whyso_hub::Error>> {
        self.runtime.block_on(async {
            let mut asked = JoinSet::new();
            for worker in self.workers.clone() {
                let (bus, work, step) = (self.bus.clone(), self.work.clone(), step.clone());
                asked.spawn(async move {
                    let state = order(&bus, &worker, &work, step).await;
                    (worker, state)
                });
            }
            let mut states = BTreeMap::new();
            while let Some(answered) = asked.join_next().await {
                states.extend(answered.ok());
            }
            states
        })
    }

    fn describe(&self, blocks: u32) -> String {
        let (done, todo) = (self.journal.finished_starts().len(), self.journal.todo(blocks).len());
        let workers = self.workers.len();
        format!("{done} of {} starts done; {workers} machines at work", done + todo)
    }

    /// `is_done`: nothing is left in the queue that anybody needs.
    fn end(&mut self, is_done: bool) {
        self.order_all(&WorkStep::End);
        for coming in self.coming.values() {
            let _ = fs::remove_file(&coming.path);
        }
        if is_done {
            // What stays is forgotten by its age.
            let _ = self.runtime.block_on(self.bus.forget_work(&self.work));
        }
    }
}

async fn order(
    bus: &Bus,
    worker: &HostName,
    work: &RecordingId,
    step: WorkStep,
) -> Result<WorkState, whyso_hub::Error> {
    let order = Order::Work(WorkOrder { work: work.clone(), step });
    match bus.order(worker, &order).await? {
        Answer::Work(state) => Ok(state),
        _ => Err(whyso_hub::Error::Silent { host: worker.to_string() }),
    }
}

/// The machines of a plan that may carry out a study, after it was checked that they are alike.
async fn workers_of(bus: &Bus, workers: &StudyWorkers) -> Result<Vec<HostName>, Error> {
    let mut states: Vec<HostState> = Vec::new();
    if workers.hosts.hosts.is_empty() {
        states = bus.agents().await?;
        states.retain(|state| state.may.contains(&Right::StartServers));
    }
    for host in &workers.hosts.hosts {
        let Answer::State(state) = bus.order(&host.name, &Order::State).await? else {
            return Err(whyso_hub::Error::Silent { host: host.name.to_string() }.into());
        };
        if !state.may.contains(&Right::StartServers) {
            return Err(Error::Plan(format!(
                "the agent on {} may not start servers: allow it in its agent.toml, by may = [\"observe\", \"start-servers\"]",
                host.name
            )));
        }
        states.push(*state);
    }
    let here = env!("CARGO_PKG_VERSION");
    if let Some(other) = states.iter().find(|state| state.whyso != here) {
        let (name, version) = (&other.name, &other.whyso);
        return Err(Error::Plan(format!(
            "the agent on {name} is whyso {version}, and this is {here}: one study needs one version"
        )));
    }
    if states.is_empty() {
        return Err(Error::Plan(
            "no agent that is connected may start servers: allow it in its agent.toml, by may = [\"start-servers\"]".to_string(),
        ));
    }
    if !workers.may_differ
        && let Some((one, other, what)) = first_difference(&states)
    {
        return Err(Error::Plan(format!(
            "{one} and {other} are unlike machines ({what}): leave one out, or mix them by --unlike-machines"
        )));
    }
    states.iter().map(|state| Ok(HostName::new(&state.name)?)).collect()
}

/// Two machines that are not alike, and in what.
fn first_difference(states: &[HostState]) -> Option<(&str, &str, String)> {
    let (first, others) = states.split_first()?;
    others.iter().find_map(|other| {
        let what = difference(&first.facts, &other.facts)?;
        Some((first.name.as_str(), other.name.as_str(), what))
    })
}

fn difference(one: &HostFacts, other: &HostFacts) -> Option<String> {
    let texts = [
        ("CPU", &one.cpu_model, &other.cpu_model),
        ("kernel", &one.kernel, &other.kernel),
        ("system", &one.os, &other.os),
        ("virtualization", &one.virtualization, &other.virtualization),
    ];
    if let Some((what, one, other)) = texts.iter().find(|(_, one, other)| one != other) {
        return Some(format!("{what} {one} and {other}"));
    }
    if one.logical_cpus != other.logical_cpus {
        return Some(format!("{} and {} CPUs", one.logical_cpus, other.logical_cpus));
    }
    let (less, more) = (one.memory_bytes.min(other.memory_bytes), one.memory_bytes.max(other.memory_bytes));
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let is_alike = less as f64 >= more as f64 * (1.0 - MEMORY_SHARE);
    (!is_alike).then(|| format!("{:.1} and {:.1} GiB of memory", gib(less), gib(more)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_alike_where_all_that_counts_is() {
        let facts = HostFacts {
            hostname: "one".to_string(),
            cpu_model: "EPYC".to_string(),
            logical_cpus: 8,
            memory_bytes: 64 << 30,
            ..HostFacts::default()
        };
        let alike = HostFacts { hostname: "two".to_string(), memory_bytes: 63 << 30, ..facts.clone() };
        assert_eq!(difference(&facts, &alike), None);
        let others = [
            (HostFacts { cpu_model: "Xeon".to_string(), ..facts.clone() }, "CPU EPYC and Xeon"),
            (HostFacts { logical_cpus: 4, ..facts.clone() }, "8 and 4 CPUs"),
            (HostFacts { memory_bytes: 32 << 30, ..facts.clone() }, "32.0 and 64.0 GiB of memory"),
        ];
        for (other, what) in others {
            assert_eq!(difference(&facts, &other).as_deref(), Some(what));
        }
    }
}

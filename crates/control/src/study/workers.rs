//! A study whose blocks are carried out by the agents of other machines. Each block is done on one machine as a whole, so that a difference between machines
//! is one between blocks. What is to be done lies in a queue of the hub. A block of a machine that is lost goes to another one, which begins it again.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use whyso_hub::{
    AGENT_LOST_AFTER, Answer, Bus, HostName, Order, PartReceipt, ReceivedPart, RecordingId, WorkOrder,
    WorkState, WorkStep,
};
use whyso_study::{Journal, Start, StartRecord};

use super::alike::{StudyWorkers, workers_of};
use super::unit::{check_study_of_others, describe_unit, unpack_unit};
use super::{check_errors, count_begun_blocks, is_over, wants_more, wrong_study};
use crate::progress::{Listener, News};
use crate::runtime::runtime;
use crate::{Error, Stop};

/// Between two looks at what is to be queued.
const QUEUE_INTERVAL: Duration = Duration::from_secs(5);
/// A result of which no part has come for this long does not come any more.
const COMING_TIME_MAX: Duration = Duration::from_secs(300);
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
/// Before the name of a result that is not whole yet.
const COMING: &str = ".coming-";

/// A result that has not arrived as a whole.
struct ComingResult {
    attempt: u32,
    path: PathBuf,
    file: File,
    next: u64,
    bytes: u64,
    came_at: Instant,
    /// What the hub may forget once the result is kept.
    receipts: Vec<PartReceipt>,
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
    /// By host and unit.
    coming: HashMap<(HostName, u32), ComingResult>,
    /// Hosts that were asked to begin.
    begun: HashSet<HostName>,
    /// Units that hosts are at work on.
    under_way: BTreeSet<u32>,
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
    // A unit that was carried out in part, as here before, would be one of two machines.
    journal.forget_unfinished_units().map_err(wrong_study)?;
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
    let mut session = WorkersSession {
        journal,
        listener,
        runtime,
        bus,
        work,
        workers,
        study,
        coming: HashMap::new(),
        begun: HashSet::new(),
        under_way: BTreeSet::new(),
        answered,
        lost: HashSet::new(),
    };
    let ended = session.carry_out(stop);
    session.end(ended.is_ok());
    ended
}

impl WorkersSession<'_> {
    fn carry_out(&mut self, stop: &Stop) -> Result<Option<String>, Error> {
        let mut results = self.runtime.block_on(self.bus.results(&self.work))?;
        let mut blocks = count_begun_blocks(self.journal).max(self.journal.spec().blocks_least());
        let (mut queued, mut asked): (Option<Instant>, Option<Instant>) = (None, None);
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
            if asked.is_none_or(|at| at.elapsed() > ASK_INTERVAL) {
                self.ask_workers()?;
                // A host that does not answer takes its time: results are received in between.
                asked = Some(Instant::now());
            }
            // What was done before this commander began has arrived by then.
            if is_quiet && queued.is_none_or(|at| at.elapsed() > QUEUE_INTERVAL) {
                if queued.is_none() {
                    self.listener.hear(News::Step(&self.describe(blocks)));
                }
                queued = Some(Instant::now());
                self.queue(blocks);
            }
        }
    }

    /// Queues the units that are left, and that nobody has: also one whose result could not be used, or that was lost on its way.
    fn queue(&mut self, blocks: u32) {
        self.coming.retain(|_, coming| coming.came_at.elapsed() < COMING_TIME_MAX);
        let left = self.journal.todo(blocks).iter().map(Start::unit).collect::<BTreeSet<u32>>();
        let has = |unit: &u32| {
            self.under_way.contains(unit) || self.coming.keys().any(|(_, coming)| coming == unit)
        };
        let units = left.into_iter().filter(|unit| !has(unit)).collect();
        // Where the hub is away for a while, it is tried again.
        let _ = self.runtime.block_on(self.bus.queue_work(&self.work, &units, AGENT_LOST_AFTER));
    }

    /// Takes in a part of a result. What was measured is kept once the last one has come, unless its block was done before.
    fn take_part(&mut self, part: ReceivedPart) -> Result<(), Error> {
        let is_wanted = self.workers.contains(&part.host)
            && part.number <= self.journal.spec().blocks_max()
            && self.is_left(part.number);
        let ReceivedPart { host, number: unit, attempt, frame, receipt } = part;
        let frame = match frame {
            Ok(frame) if is_wanted => frame,
            _ => {
                self.forget(vec![receipt]);
                return Ok(());
            }
        };
        let key = (host, unit);
        match self.coming.get(&key).map(|coming| coming.attempt) {
            Some(before) if before > attempt => {
                self.forget(vec![receipt]);
                return Ok(());
            }
            Some(before) if before < attempt => {
                // It was begun again: the rest of the one before does not come.
                if let Some(before) = self.coming.remove(&key) {
                    self.forget(before.receipts);
                }
            }
            _ => {}
        }
        let path = self.journal.dir().join(format!("{COMING}{}-{unit}", key.0));
        let failed =
            |error: std::io::Error| Error::Failed(format!("can't write {}: {error}", path.display()));
        let coming = match self.coming.entry(key.clone()) {
            Entry::Occupied(coming) => coming.into_mut(),
            Entry::Vacant(place) => {
                let mut options = OpenOptions::new();
                let file = options.write(true).create(true).truncate(true).open(&path).map_err(failed)?;
                let (path, came_at) = (path.clone(), Instant::now());
                place.insert(ComingResult {
                    attempt,
                    path,
                    file,
                    next: 1,
                    bytes: 0,
                    came_at,
                    receipts: Vec::new(),
                })
            }
        };
        if frame.number != coming.next {
            // It came before, or follows one that did not come: then it comes once more, in order.
            if frame.number < coming.next {
                coming.receipts.push(receipt);
            }
            return Ok(());
        }
        coming.next += 1;
        coming.bytes += frame.entries.len() as u64;
        coming.came_at = Instant::now();
        coming.receipts.push(receipt);
        coming.file.write_all(&frame.entries).map_err(failed)?;
        if coming.bytes > RESULT_BYTES_MAX {
            return Err(Error::Failed(format!("the result of {} is larger than 4 GiB", key.0)));
        }
        if !frame.is_last {
            return Ok(());
        }
        match self.coming.remove(&key) {
            Some(result) => self.take_result(&key, result),
            None => Ok(()),
        }
    }

    /// The starts of a unit that are not done yet.
    fn starts_left(&self, unit: u32) -> BTreeSet<Start> {
        self.journal.todo(unit).into_iter().filter(|start| start.unit() == unit).collect()
    }

    fn is_left(&self, unit: u32) -> bool {
        !self.starts_left(unit).is_empty()
    }

    /// Keeps a result that is whole.
    fn take_result(&mut self, (host, unit): &(HostName, u32), result: ComingResult) -> Result<(), Error> {
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
                self.forget(result.receipts);
                return Ok(());
            }
        };
        let wanted = self.starts_left(*unit);
        let came: BTreeSet<Start> = records.iter().map(|record| record.start).collect();
        if !wanted.is_subset(&came) {
            self.forget(result.receipts);
            return Err(Error::Failed(format!("{host} left out a part of {}", describe_unit(*unit))));
        }
        records.retain(|record| wanted.contains(&record.start));
        let cells = self.journal.spec().cells();
        for record in &records {
            check_errors(self.journal.spec(), &cells[record.start.cell], record)?;
        }
        let with_host = |record: StartRecord| StartRecord { host: host.to_string(), ..record };
        // As a whole, and before the hub forgets it: a commander that is killed in between receives it once more.
        self.journal.finish_all(records.into_iter().map(with_host).collect()).map_err(wrong_study)?;
        self.forget(result.receipts);
        let (done, unit) = (self.journal.finished_starts().len(), describe_unit(*unit));
        self.listener.hear(News::Step(&format!("{unit} done by {host}; {done} starts done")));
        Ok(())
    }

    fn forget(&self, receipts: Vec<PartReceipt>) {
        self.runtime.block_on(async {
            for receipt in &receipts {
                // One that stays comes once more, and is known.
                let _ = receipt.done().await;
            }
        });
    }

    /// Asks each worker what it does. One that knows nothing of the study, as after its restart, gets it again.
    fn ask_workers(&mut self) -> Result<(), Error> {
        let states = self.order_all(&WorkStep::State);
        let mut begin = Vec::new();
        self.under_way.clear();
        for (worker, state) in states {
            let Ok(state) = state else { continue };
            self.answered.insert(worker.clone(), Instant::now());
            if self.lost.remove(&worker) {
                self.listener.hear(News::Step(&format!("{worker} is back")));
            }
            self.under_way.extend(state.piece.map(|(unit, _)| unit));
            // A problem from before this session may be mended.
            if let Some(problem) = state.problem.filter(|_| self.begun.contains(&worker)) {
                return Err(Error::Failed(format!("{worker}: {problem}")));
            }
            if !state.is_at_work {
                begin.push(worker);
            }
        }
        for worker in begin {
            let step = WorkStep::Begin { study: self.study.clone() };
            match self.runtime.block_on(order(&self.bus, &worker, &self.work, step)) {
                Ok(_) => {
                    self.begun.insert(worker);
                }
                Err(whyso_hub::Error::Silent { .. }) => {}
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

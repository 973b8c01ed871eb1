//! `whyso prove`: removes each suspect of a recording in an experiment, and measures what that gains.

mod candidate;
mod case;
mod plan;

use std::time::{Duration, Instant};

use whyso_explain::ab::{AbVerdict, answer};
use whyso_load::{Arrivals, EngineKind, Think, Tuning};
use whyso_record::Recording;
use whyso_record::run::RunInfo;
use whyso_remedy::{
    After, Change, MeasuredGain, Proof, ProofVerdict, Proofs, Proposal, SlowPart, SlowedPoint,
    at_twice_the_speed, judge,
};
use whyso_server::Dsn;
use whyso_trace::{StackSampling, StacksOf};

pub use plan::ProvePlan;
pub(crate) use plan::own_baseline;

use crate::ab::{AbPlan, AbSide, ab};
use crate::login::AskPassword;
use crate::plan::Plan;
use crate::progress::{Listener, News};
use crate::runtime::runtime;
use crate::server_identity::{identity, server_identity};
use crate::server_plan::ServerPlan;
use crate::{Error, Stop};
use candidate::{Candidate, candidates, slowed_side};
use case::Case;

/// Shortest experiment.
const EXPERIMENT_MIN: Duration = Duration::from_secs(20);
/// Of an experiment's part of the budget, what its servers need to start.
const START_TIME: Duration = Duration::from_secs(8);
/// Of the recording that shows what remains.
const RECORDED: Duration = Duration::from_secs(6);

/// What would be done, without doing anything.
///
/// # Errors
/// The recording can't be read, or its load can't be repeated.
pub fn proposals_for(plan: &ProvePlan) -> Result<Vec<Proposal>, Error> {
    let case = Case::open(&plan.recording)?;
    let baseline = plan.baseline(&case.run, case.users)?;
    let candidates = candidates(plan, &case, &baseline);
    Ok(candidates.iter().map(Candidate::proposal).collect())
}

/// Tests the suspects of a recording.
///
/// # Errors
/// The plan is wrong, the recording can't be read, or the server is another one.
pub fn prove(
    plan: &ProvePlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Proofs, Error> {
    plan.check()?;
    let case = Case::open(&plan.recording)?;
    let mut baseline = plan.baseline(&case.run, case.users)?;
    check_server(&case.run, &baseline.server)?;
    let deadline = Instant::now() + plan.budget;
    let mut prover = Prover { plan, listener, stop, ask_password, deadline, proofs: Vec::new() };
    let mut tested = candidates(plan, &case, &baseline);
    let mut after = None;
    let mut gain_so_far = 1.0;
    loop {
        let first = prover.proofs.len();
        let best = prover.test_all(&case.run, &baseline, &tested)?;
        let Some((best, side)) = best.filter(|_| !stop.is_asked()) else { break };
        gain_so_far *= prover.proofs[first + best].measured_gain.map_or(1.0, |gain| gain.value);
        let change = tested[best].change();
        baseline = side;
        let Some((found, recorded)) = prover.record_after(&case.run, &baseline, &change)? else { break };
        after = Some(found);
        let goes_on =
            plan.until.is_some_and(|until| gain_so_far < until) && prover.time_left() > EXPERIMENT_MIN;
        if !goes_on {
            break;
        }
        let known: Vec<String> = prover.proofs.iter().map(|proof| proof.intervention.clone()).collect();
        tested = candidates(plan, &recorded, &baseline);
        tested.retain(|candidate| !known.contains(&candidate.intervention.id));
    }
    Ok(Proofs {
        run: case.run.id.clone(),
        users: case.users,
        smallest_gain: plan.smallest,
        proofs: prover.proofs,
        after,
        interrupted: stop.is_asked(),
    })
}

/// Experiments under way.
struct Prover<'a> {
    plan: &'a ProvePlan,
    listener: &'a dyn Listener,
    stop: &'a Stop,
    ask_password: &'a AskPassword,
    deadline: Instant,
    proofs: Vec<Proof>,
}

impl Prover<'_> {
    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Tests each proposal, and returns the one whose removal gains most, with its side. `None` where none is confirmed that can be kept: nobody has CPUs
    /// or storage of twice the speed.
    fn test_all(
        &mut self,
        run: &RunInfo,
        baseline: &AbSide,
        candidates: &[Candidate],
    ) -> Result<Option<(usize, AbSide)>, Error> {
        let mut best: Option<(usize, f64, AbSide)> = None;
        let first = self.proofs.len();
        for (number, candidate) in candidates.iter().enumerate() {
            let rest = distinct(&candidates[number..]);
            // Interventions against two causes may change the same.
            let tested = candidates[..number].iter().zip(&self.proofs[first..]);
            let same = tested
                .filter(|(earlier, _)| candidate.variant.is_ok() && earlier.variant == candidate.variant);
            let proof = match same.map(|(_, proof)| proof).find(|proof| proof.measured_gain.is_some()) {
                Some(proof) => candidate.proven_by(proof),
                None => self.test(run, baseline, candidate, rest),
            };
            let (proof, candidate) = self.or_next(run, baseline, (proof, candidate), rest);
            if let (ProofVerdict::Confirmed, Some(gain), Ok(side)) =
                (proof.verdict, proof.measured_gain, &candidate.variant)
                && proof.slowed.is_empty()
                && best.as_ref().is_none_or(|(_, most, _)| gain.value > *most)
            {
                best = Some((number, gain.value, side.clone()));
            }
            self.proofs.push(proof);
        }
        Ok(best.map(|(number, _, side)| (number, side)))
    }

    /// Where an intervention removes a part of the cause at most, and gains nothing, the next one is tried. Without a next one the cause is not
    /// testable.
    fn or_next<'c>(
        &self,
        run: &RunInfo,
        baseline: &AbSide,
        (proof, candidate): (Proof, &'c Candidate),
        rest: usize,
    ) -> (Proof, &'c Candidate) {
        let is_open = candidate.intervention.is_partial && proof.verdict == ProofVerdict::Refuted;
        let Some(gain) = proof.measured_gain.filter(|_| is_open) else { return (proof, candidate) };
        let before = format!(
            "{} gained nothing (×{:.2}), and removes a part of the cause at most",
            candidate.intervention.words, gain.value
        );
        if let Some(next) = &candidate.next {
            let found = self.test(run, baseline, next, rest);
            if found.measured_gain.is_some() {
                let undone = proof.undone && found.undone;
                return (Proof { also: format!("{}; {before}", found.also), undone, ..found }, next);
            }
        }
        let untested = Proof { undone: proof.undone, why: before, ..candidate.untested() };
        (untested, candidate)
    }

    /// `rest`: experiments that share what is left of the budget, this one included.
    fn test(&self, run: &RunInfo, baseline: &AbSide, candidate: &Candidate, rest: usize) -> Proof {
        let Candidate { suspect, intervention, variant, .. } = candidate;
        let mut proof = candidate.untested();
        let variant = match variant {
            Ok(variant) => variant,
            Err(why) => {
                proof.why = why.clone();
                return proof;
            }
        };
        let length = (self.time_left() / rest.max(1) as u32).saturating_sub(START_TIME);
        if self.stop.is_asked() || length < EXPERIMENT_MIN {
            proof.why = "the budget was used up before: give more with --budget".to_string();
            return proof;
        }
        self.listener.hear(News::Step(&format!(
            "{}: {} ({})",
            suspect.id.name(),
            intervention.words,
            candidate.change()
        )));
        let found = match &intervention.change {
            Change::Slow(part, speeds) => self.slow(run, baseline, (*part, speeds), length, &mut proof),
            _ => {
                let threshold = Some(self.plan.smallest);
                self.compare(run, [baseline.clone(), variant.clone()], length, threshold, &mut proof)
            }
        };
        match found {
            Ok(gain) => {
                proof.measured_gain = Some(gain);
                proof.verdict = judge(gain, self.plan.smallest);
            }
            // A refusal of one experiment is its own result: the others go on.
            Err(why) => proof.why = why,
        }
        proof
    }

    /// Throughput at twice the speed of the server's CPUs or storage, from comparisons with slower ones.
    ///
    /// # Errors
    /// Why one of them has no result.
    fn slow(
        &self,
        run: &RunInfo,
        baseline: &AbSide,
        (part, speeds): (SlowPart, &[u8]),
        length: Duration,
        proof: &mut Proof,
    ) -> Result<MeasuredGain, String> {
        let count = speeds.len().max(1) as u32;
        let each = (length.saturating_sub(START_TIME * (count - 1)) / count).max(EXPERIMENT_MIN);
        for &speed_percent in speeds {
            let slowed = slowed_side(baseline, part, speed_percent);
            let ratio = self.compare(run, [baseline.clone(), slowed], each, None, proof)?;
            proof.slowed.push(SlowedPoint { speed_percent, ratio });
        }
        at_twice_the_speed(&proof.slowed).ok_or_else(|| "the server could not be slowed".to_string())
    }

    /// Throughput of the second side as a multiple of the first one's. `threshold`: it ends once it is known on which side of it the truth lies.
    ///
    /// # Errors
    /// Why there is no result.
    fn compare(
        &self,
        run: &RunInfo,
        sides: [AbSide; 2],
        length: Duration,
        threshold: Option<f64>,
        proof: &mut Proof,
    ) -> Result<MeasuredGain, String> {
        let sides_users = sides[0].users;
        let comparison = AbPlan {
            sides,
            seed: run.spec.seed.unwrap_or(1),
            window: None,
            length,
            starts: Some(1),
            matters: self.plan.smallest.max(MATTERS_MIN),
            threshold,
            slow: slow_transactions(run, sides_users),
            client_cpus: None,
            allow_writes: self.plan.allow_writes.clone(),
            replicas: self.plan.replicas.clone(),
            hosts: self.plan.hosts.clone(),
        };
        let outcome = ab(&comparison, self.listener, self.stop, self.ask_password)
            .map_err(|error| error.to_string())?;
        proof.design = Some(outcome.design);
        proof.undone &= outcome.undone;
        match answer(&outcome) {
            Some(found) if found.carry_over.is_none() || found.verdict != AbVerdict::Undecided => {
                Ok(MeasuredGain { value: found.ratio.value, low: found.ratio.low, high: found.ratio.high })
            }
            Some(_) => {
                Err("windows still show the ones before them: use fresh starts (whyso study)".to_string())
            }
            None => Err("it ended before there was enough to compare".to_string()),
        }
    }

    /// Records the load with what was confirmed, on a server of whyso's own. `None`: on a server of the user nothing more is changed, and a run
    /// executes no statements that prepare its data. It leaves none out, and pauses nobody.
    fn record_after(
        &self,
        run: &RunInfo,
        side: &AbSide,
        change: &str,
    ) -> Result<Option<(After, Case)>, Error> {
        if !side.server.is_own()
            || !side.prepare.is_empty()
            || !side.left_out.is_empty()
            || !side.paused.is_empty()
        {
            return Ok(None);
        }
        self.listener.hear(News::Step("recording what remains"));
        let spec = &run.spec;
        let plan = Plan {
            source: side.source.clone(),
            options: side.options.clone(),
            tables: side.data.tables,
            rows: side.data.rows,
            table_engine: side.data.engine.clone(),
            seed: spec.seed.unwrap_or(1),
            users: vec![1, side.users],
            measure: RECORDED,
            warmup_max: RECORDED,
            cold: false,
            interval: Duration::from_millis(spec.interval_ms.unwrap_or(1000)),
            trace: true,
            stacks: StackSampling::Light,
            stacks_of: StacksOf::Server,
            sql: None,
            engine: EngineKind::Auto,
            loops: None,
            tuning: Tuning::default(),
            think: Think::None,
            rates_per_s: Vec::new(),
            arrivals: Arrivals::Poisson,
            slo: Vec::new(),
            repeat_best: false,
            check_loops: false,
            actions: Vec::new(),
            server: side.server.with_settings(&side.set),
            nodes: Vec::new(),
            other_servers: Vec::new(),
            cluster: None,
            pfs: None,
            client_cpus: None,
            allow_writes: self.plan.allow_writes.clone(),
            add_ons: Vec::new(),
            access_logs: Vec::new(),
            relay: whyso_relay::RelayTargets::default(),
            hosts: None,
            out: self.plan.out.clone(),
            labels: whyso_record::Labels::default(),
            command: self.plan.command.clone(),
        };
        let outcome = crate::run::run(&plan, self.listener, self.stop, self.ask_password)?;
        let case = Case::of(&Recording::open(&outcome.path)?, side.users)?;
        let last = case.run.levels.last();
        let found = After {
            change: change.to_string(),
            run: case.run.id.clone(),
            transactions_per_s: last.map_or(0.0, |level| level.result.transactions_per_s),
            limit: case.explanation.limit.clone(),
            cause: case
                .explanation
                .suspects
                .first()
                .map_or(String::new(), |suspect| suspect.id.words().to_string()),
        };
        Ok(Some((found, case)))
    }
}

/// Experiments that these need: causes with the same change share one.
fn distinct(candidates: &[Candidate]) -> usize {
    let variants: Vec<&AbSide> =
        candidates.iter().filter_map(|candidate| candidate.variant.as_ref().ok()).collect();
    let is_first = |at: &usize| !variants[..*at].contains(&variants[*at]);
    (0..variants.len()).filter(is_first).count()
}

/// How long slow transactions of the recording took at these users.
fn slow_transactions(run: &RunInfo, users: u32) -> Duration {
    let own = run.levels.iter().filter(|level| level.users == users);
    let slow_ms = own.map(|level| level.result.latency_ms.p99).fold(0.0, f64::max);
    Duration::try_from_secs_f64(slow_ms / 1e3).unwrap_or(Duration::ZERO)
}

/// What may be carried over between windows without harm, and is no difference.
const MATTERS_MIN: f64 = 1.01;

/// Refuses a server other than the recording's.
fn check_server(run: &RunInfo, server: &ServerPlan) -> Result<(), Error> {
    match server {
        ServerPlan::ThrowAway { build, .. } => {
            let binary = whyso_server::find(build.as_deref())?;
            if run.server.version.starts_with(&binary.version)
                || binary.version.starts_with(&run.server.version)
            {
                return Ok(());
            }
            Err(Error::Plan(format!(
                "{} was made with version {}, and its folder has {} now: record again with whyso run",
                run.id, run.server.version, binary.version
            )))
        }
        ServerPlan::Dsn { dsn, .. } => {
            let known = identity(|name| run.server.variables.get(name).cloned());
            let dsn = Dsn::resolve(dsn)?;
            let now = runtime()?.block_on(server_identity(&dsn))?;
            if now == known {
                return Ok(());
            }
            Err(Error::Plan(format!(
                "{} is of another server ({known}) than {} ({now}): nothing was changed",
                run.id,
                dsn.endpoint()
            )))
        }
    }
}

//! Which experiments follow from a recording.

use whyso_explain::model::{Cause, CpuGains, Gain, Suspect};
use whyso_record::run::{RunInfo, StatementResult};
use whyso_remedy::{
    Change, Cost, Intervention, LeftOut, Proof, ProofVerdict, Proposal, SlowPart, of_cause, of_half,
};
use whyso_server::Neighbour;
use whyso_workload::RECONNECTS;

use super::case::Case;
use super::plan::ProvePlan;
use crate::ab::{AbSide, SideChange};
use crate::server_plan::ServerPlan;
use crate::source::Source;

/// Suspects that are tested, the first ones first.
const SUSPECTS_MAX: usize = 5;
/// Kinds of statements that begin and end transactions, and connections.
const ENDS: [&str; 6] = ["begin", "start transaction", "commit", "rollback", "connect", "retry"];
/// Id of an intervention that the user proposes.
const OWN: &str = "own";

/// A suspect, and how it may be tested.
pub(super) struct Candidate {
    pub(super) suspect: Suspect,
    cpu_gains: CpuGains,
    pub(super) intervention: Intervention,
    /// The side without the cause, or why there is none.
    pub(super) variant: Result<AbSide, String>,
    /// What is tried where this one removes a part of the cause at most, and gains nothing.
    pub(super) next: Option<Box<Candidate>>,
}

impl Candidate {
    pub(super) fn proposal(&self) -> Proposal {
        Proposal {
            cause: self.suspect.id,
            share: self.suspect.share,
            predicted_gain: self.predicted_gain(),
            intervention: self.intervention.id.clone(),
            words: self.intervention.words.clone(),
            change: self.change(),
            costs: self.intervention.costs,
            why: self.variant.as_ref().err().cloned().unwrap_or_default(),
        }
    }

    /// Of what the experiment does: storage of twice the speed leaves half of the cause, and the machine's CPUs are as many as it has.
    fn predicted_gain(&self) -> Option<Gain> {
        match self.intervention.change {
            Change::Slow(SlowPart::Storage, _) => self.suspect.predicted_gain.map(of_half),
            Change::Slow(SlowPart::Cpus, _) => self.cpu_gains.twice_the_speed,
            Change::AllCpus => self.cpu_gains.every_cpu,
            _ => self.suspect.predicted_gain,
        }
    }

    /// A proof without an experiment.
    pub(super) fn untested(&self) -> Proof {
        let Candidate { suspect, intervention, .. } = self;
        Proof {
            cause: suspect.id,
            share: suspect.share,
            intervention: intervention.id.clone(),
            words: intervention.words.clone(),
            also: intervention.also.clone(),
            costs: intervention.costs,
            design: None,
            predicted_gain: self.predicted_gain(),
            measured_gain: None,
            slowed: Vec::new(),
            verdict: ProofVerdict::NotTestable,
            why: String::new(),
            undone: true,
        }
    }

    /// What an experiment with the same change showed.
    pub(super) fn proven_by(&self, other: &Proof) -> Proof {
        Proof {
            design: other.design,
            measured_gain: other.measured_gain,
            slowed: other.slowed.clone(),
            verdict: other.verdict,
            why: other.why.clone(),
            undone: other.undone,
            ..self.untested()
        }
    }

    /// What is changed, such as "innodb_flush_log_at_trx_commit=2"; empty where nothing can be.
    pub(super) fn change(&self) -> String {
        let Ok(side) = &self.variant else { return String::new() };
        let pairs = match &self.intervention.change {
            Change::Users(_) => return whyso_words::users(side.users),
            Change::Own(change) => return change.clone(),
            Change::LeaveOut(_) => return format!("without {}", side.left_out.join(", ")),
            Change::AllCpus => return "every CPU".to_string(),
            Change::NoQuota => return "without quota".to_string(),
            Change::Slow(part, speeds) => {
                let speeds: Vec<String> = speeds.iter().map(|percent| format!("{percent} %")).collect();
                return part.at(&speeds.join(" and "));
            }
            Change::PauseNeighbours => {
                return side.paused.iter().map(Neighbour::to_string).collect::<Vec<_>>().join(", ");
            }
            Change::Never(_) => return String::new(),
            Change::Options(_) => &side.options,
            Change::Set(_) | Change::Scale(_) => &side.set,
        };
        let own = pairs.iter().filter(|(name, _)| self.intervention.change.names(name));
        own.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }
}

/// How the suspects of a recording may be tested, the first one first. Where the user proposes a change, that alone.
pub(super) fn candidates(plan: &ProvePlan, case: &Case, baseline: &AbSide) -> Vec<Candidate> {
    let suspects = case.explanation.suspects.iter().take(SUSPECTS_MAX);
    let first = case.explanation.suspects.first().zip(plan.own.as_ref());
    let own = first.map(|(suspect, own)| own_candidate(suspect, own, baseline));
    let known = suspects.filter_map(|suspect| candidate(plan, case, suspect, baseline));
    if plan.own.is_some() { own.into_iter().collect() } else { known.collect() }
}

/// What the user proposes against the first suspect.
fn own_candidate(suspect: &Suspect, own: &SideChange, baseline: &AbSide) -> Candidate {
    let side = own.apply(baseline);
    let change = side.difference_from(baseline);
    Candidate {
        suspect: suspect.clone(),
        cpu_gains: CpuGains::default(),
        intervention: Intervention {
            cause: suspect.id,
            id: OWN.to_string(),
            words: change.clone(),
            costs: Cost::None,
            also: "what else your change does, whyso does not know".to_string(),
            change: Change::Own(change),
            where_grows: Vec::new(),
            is_partial: false,
        },
        variant: if side == *baseline { Err("it changes nothing".to_string()) } else { Ok(side) },
        next: None,
    }
}

/// The first intervention that can be tried; if there is none, the last one with its reason.
fn candidate(plan: &ProvePlan, case: &Case, suspect: &Suspect, baseline: &AbSide) -> Option<Candidate> {
    let each = of_cause(suspect.id).map(|intervention| Candidate {
        suspect: suspect.clone(),
        cpu_gains: case.explanation.cpu_gains,
        intervention: intervention.clone(),
        variant: check_counters(case, intervention)
            .and_then(|()| variant(plan, &case.run, intervention, baseline)),
        next: None,
    });
    let mut all: Vec<Candidate> = each.collect();
    let mut chosen = match all.iter().position(|candidate| candidate.variant.is_ok()) {
        Some(first) => all.split_off(first).into_iter(),
        None => return all.pop(),
    };
    let first = chosen.next()?;
    let next = chosen.find(|candidate| candidate.variant.is_ok()).filter(|_| first.intervention.is_partial);
    Some(Candidate { next: next.map(Box::new), ..first })
}

/// Refuses what can't help here.
fn check_counters(case: &Case, intervention: &Intervention) -> Result<(), String> {
    let counters = &intervention.where_grows;
    if counters.is_empty() || counters.iter().any(|name| case.growing.contains(name)) {
        return Ok(());
    }
    Err(format!("it can't help: {} did not grow with the load", counters.join(" and ")))
}

/// The baseline without the cause.
fn variant(
    plan: &ProvePlan,
    run: &RunInfo,
    intervention: &Intervention,
    baseline: &AbSide,
) -> Result<AbSide, String> {
    let mut side = baseline.clone();
    let variables = &run.server.variables;
    match &intervention.change {
        Change::Never(why) => return Err(why.clone()),
        Change::Own(_) => return Err("it is the user's".to_string()),
        Change::Set(set) => {
            for (name, value) in set {
                let now = variables.get(name).ok_or_else(|| no_setting(name))?;
                if !is_same_value(now, value) {
                    side.set.push((name.clone(), value.clone()));
                }
            }
            if side.set.len() == baseline.set.len() {
                return Err("the server is set so already".to_string());
            }
        }
        Change::Scale(scale) => {
            for (name, factor) in scale {
                let now = variables.get(name).ok_or_else(|| no_setting(name))?;
                let now: u64 =
                    now.parse().map_err(|_| format!("{name} is '{now}', which can't be multiplied"))?;
                side.set.push((name.clone(), now.saturating_mul(*factor).to_string()));
            }
        }
        Change::Options(options) => {
            if !matches!(baseline.source, Source::Builtin(_)) {
                return Err("only whyso's own workloads have such an option: change a copy of yours, and compare with whyso ab FILE.sql --versus \
                            --workload COPY.sql"
                    .to_string());
            }
            for (name, value) in options {
                if baseline.options.contains(&(name.clone(), value.clone())) {
                    return Err("the load does so already".to_string());
                }
                side.options.retain(|(known, _)| known != name);
                side.options.push((name.clone(), value.clone()));
            }
        }
        Change::LeaveOut(which) => {
            let kind = match which {
                LeftOut::Reconnects => RECONNECTS.to_string(),
                LeftOut::Slowest => slowest_statement(run, baseline, intervention.cause)?,
            };
            side.left_out.push(kind);
        }
        Change::AllCpus => match &mut side.server {
            ServerPlan::ThrowAway { cpus: cpus @ Some(_), .. } => *cpus = None,
            ServerPlan::ThrowAway { .. } => return Err("the server may use every CPU already".to_string()),
            ServerPlan::Dsn { .. } => return Err("CPUs are given only to servers of whyso's own".to_string()),
        },
        Change::NoQuota => match &mut side.server {
            ServerPlan::ThrowAway { is_without_quota, .. } => *is_without_quota = true,
            ServerPlan::Dsn { .. } => {
                return Err(
                    "only servers of whyso's own are taken out of a quota: raise yours and record again"
                        .to_string(),
                );
            }
        },
        Change::Slow(..) if !side.server.is_own() => {
            return Err("only servers of whyso's own are slowed".to_string());
        }
        // Each speed is a comparison of its own; this side is the first.
        Change::Slow(part, speeds) => {
            side = speeds.first().map_or(side.clone(), |speed| slowed_side(&side, *part, *speed));
        }
        Change::PauseNeighbours => {
            if plan.pause.is_empty() {
                return Err("programs of others are paused only where you name them: --pause PID, and top shows their numbers".to_string());
            }
            side.paused.extend_from_slice(&plan.pause);
        }
        Change::Users(factor) => {
            side.users = ((f64::from(baseline.users) * factor).round() as u32).max(1);
            if side.users == baseline.users {
                return Err("there is one user only".to_string());
            }
        }
    }
    if intervention.costs != Cost::None && !plan.accept.contains(&intervention.costs) {
        return Err(format!("it costs {0}: permit that with --accept {0}", intervention.costs));
    }
    Ok(side)
}

/// The side with a part of its server slowed.
pub(super) fn slowed_side(side: &AbSide, part: SlowPart, speed_percent: u8) -> AbSide {
    let mut slowed = side.clone();
    match part {
        SlowPart::Cpus => slowed.cpu_speed = Some(speed_percent),
        SlowPart::Storage => slowed.storage_speed = Some(speed_percent),
    }
    slowed
}

/// The kind of statement with the largest part of the response time at the baseline's users. Where the cause is work, at the fewest users: on
/// full CPUs, cheap statements wait longest for the others' work. Those that begin and end transactions are not
/// asked about.
fn slowest_statement(run: &RunInfo, baseline: &AbSide, cause: Cause) -> Result<String, String> {
    let is_work = matches!(cause, Cause::Cpu | Cause::FullScan | Cause::TmpTableSort);
    let fewest = run.levels.iter().map(|level| level.users).min().filter(|_| is_work);
    let users = fewest.unwrap_or(baseline.users);
    let level = run.levels.iter().find(|level| level.users == users);
    let kinds = level.map_or(&[][..], |level| &level.result.by_statement);
    let time_ms = |kind: &&StatementResult| kind.latency_ms.mean * kind.count as f64;
    let ends = |kind: &&StatementResult| ENDS.contains(&kind.kind.to_ascii_lowercase().as_str());
    let mut candidates: Vec<&StatementResult> = kinds.iter().filter(|kind| !ends(kind)).collect();
    candidates.sort_by(|one, other| time_ms(other).total_cmp(&time_ms(one)));
    match candidates[..] {
        [] => Err("the recording has no times of its statements".to_string()),
        [_] => Err("it is the only statement".to_string()),
        [slowest, ..] => Ok(slowest.kind.clone()),
    }
}

fn no_setting(name: &str) -> String {
    format!("the server has no setting {name}")
}

/// Whether two texts are one value of a setting.
fn is_same_value(one: &str, other: &str) -> bool {
    let plain = |text: &str| match text.to_ascii_uppercase().as_str() {
        "ON" | "1" | "YES" => "1".to_string(),
        "OFF" | "0" | "NO" => "0".to_string(),
        other => other.to_string(),
    };
    plain(one) == plain(other)
}

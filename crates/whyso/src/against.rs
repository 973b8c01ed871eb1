//! What a profile is compared with: another level, or another run.

use std::path::Path;

use anyhow::{Result, bail};
use whyso_control::Error;
use whyso_profile::ComparedBy;
use whyso_record::Recording;
use whyso_report::ProfilePair;

use crate::choice_args::{WindowArgs, choose_part};
use crate::profile_args::{AgainstArgs, ProfileArgs};
use crate::profile_data::{SampledProfile, sample_part, sampled_metrics};
use crate::recordings::open;

/// Two profiles, and what makes them comparable.
pub(crate) struct Pair {
    pub(crate) here: SampledProfile,
    pub(crate) there: SampledProfile,
    pub(crate) by: ComparedBy,
    unit: &'static str,
}

impl Pair {
    pub(crate) fn about(&self, inclusive: bool) -> ProfilePair<'_> {
        let Pair { here, there, by, unit } = self;
        ProfilePair { here: here.about(), there: there.about(), by: *by, unit, inclusive }
    }
}

impl AgainstArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.against.is_some() || self.against_users.is_some()
    }
}

/// Both sides; `metrics`: where none are asked for.
pub(crate) fn sample_both(
    run: &Path,
    args: &ProfileArgs,
    against: &AgainstArgs,
    metrics: &[&str],
) -> Result<Pair> {
    let (recording, _) = open(run, &args.runs)?;
    let ours = choose_part(&recording, &args.part)?;
    let our_users = ours.level.as_ref().map(|level| level.users);
    let (other, users) = match &against.against {
        Some(text) => {
            let (run, users) = run_and_users(text);
            (Some(open(Path::new(run), &args.runs)?.0), users)
        }
        None => (None, against.against_users),
    };
    let theirs = match (users, args.part.window) {
        (None, Some(window)) => WindowArgs { users: None, level: None, window: Some(window) },
        _ => {
            let has = |recording: &Recording, users: &u32| {
                recording.run().levels.iter().any(|level| level.users == *users)
            };
            let same = our_users.filter(|users| other.as_ref().is_some_and(|other| has(other, users)));
            WindowArgs { users: users.or(same), level: None, window: None }
        }
    };
    let their_recording = other.as_ref().unwrap_or(&recording);
    // What both have.
    let metrics = sampled_metrics(their_recording, args, sampled_metrics(&recording, args, metrics)?)?;
    let mut here = sample_part(&recording, ours, args, metrics)?;
    let mut there = sample_part(their_recording, choose_part(their_recording, &theirs)?, args, metrics)?;
    if other.is_none() && here.chosen.window == there.chosen.window {
        bail!(Error::Plan("that is the same level: give another with --against-users".to_string()));
    }
    if other.is_some() {
        for (side, recording) in [(&mut here, &recording), (&mut there, their_recording)] {
            side.chosen.words = format!("{} of run {}", side.chosen.words, recording.run().id);
        }
    }
    let count_transactions = |sampled: &SampledProfile| {
        let result = sampled.chosen.level.as_ref().map(|level| &level.result);
        result
            .filter(|result| result.transactions > 0)
            .map(|result| (result.transactions, result.is_recorded()))
    };
    let (by, unit) = match (count_transactions(&here), count_transactions(&there)) {
        (Some((here, is_recorded)), Some((there, theirs))) if is_recorded == theirs && !against.share => {
            let by = ComparedBy::Transactions { here: here as f64, there: there as f64 };
            (by, if is_recorded { "request" } else { "transaction" })
        }
        _ => (ComparedBy::Share, "transaction"),
    };
    Ok(Pair { here, there, by, unit })
}

/// "RUN:16" as the run and its users; a colon before anything else than a number is the run's own.
pub(crate) fn run_and_users(text: &str) -> (&str, Option<u32>) {
    let split = text.rsplit_once(':').and_then(|(run, users)| Some((run, users.parse().ok()?)));
    split.map_or((text, None), |(run, users)| (run, Some(users)))
}

//! A limit of concurrency, found from the sessions that run at the peak, and the study that tests it.

use std::collections::BTreeMap;

use whyso_inference::spread;

use crate::cells::Cell;
use crate::journal::{StartRecord, StoredStudy};
use crate::scalar::Scalar;
use crate::setup::Part;
use crate::spec::{Spec, Suggest};

/// Why there is no limit to test.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SuggestError {
    #[error("no server has the baseline")]
    NoBaseline,
    #[error("nothing was measured of the baseline")]
    NotMeasured,
    #[error("how many sessions ran at the peak was not measured")]
    NoSessions,
    #[error("throughput still grew up to {0} users, the most that were tried: give more users")]
    NoPeak(u32),
    #[error("less than one session ran on average at the peak of {0} users")]
    TooFewSessions(u32),
}

const RUNNING: &str = "threads_running";
/// Names of the follow-up's variants.
const AS_IT_IS: &str = "as it is";

impl StoredStudy {
    /// Returns the study that tests the limit: the baseline as it is, and with the limit, from the peak on. `None` where the study asks for none.
    ///
    /// # Errors
    /// There is nothing to test. No level has more users than the peak, or too few sessions ran at the peak for a limit to mean anything.
    pub fn suggested(&self, done: &[StartRecord]) -> Option<Result<StoredStudy, SuggestError>> {
        self.spec.suggest.as_ref().map(|suggest| self.tested(suggest, done))
    }

    fn tested(&self, suggest: &Suggest, done: &[StartRecord]) -> Result<StoredStudy, SuggestError> {
        let spec = &self.spec;
        let cells = spec.cells();
        let is_asked = |cell: &&Cell| {
            cell.variant == spec.baseline
                && suggest.server.as_ref().is_none_or(|server| *server == cell.server)
        };
        let baseline = cells.iter().find(is_asked).ok_or(SuggestError::NoBaseline)?;
        let is_comparable = |done: &&StartRecord| {
            !done.start.pair
                && cells.get(done.start.cell).is_some_and(|cell| cell.is_comparable_with(baseline))
        };
        let of: Vec<&StartRecord> = done.iter().filter(is_comparable).collect();
        // As the answer has it: the geometric mean.
        let mean = |users: u32, name: &str| {
            let levels = of.iter().flat_map(|done| &done.levels).filter(|level| level.users == users);
            let values: Vec<f64> = levels.filter_map(|level| level.measures.get(name).copied()).collect();
            spread(&values).map(|spread| spread.mean)
        };
        let peak = spec
            .users
            .iter()
            .filter_map(|users| Some((*users, mean(*users, &spec.metric)?)))
            .max_by(|one, other| one.1.total_cmp(&other.1))
            .ok_or(SuggestError::NotMeasured)?
            .0;
        let users: Vec<u32> = spec.users.iter().copied().filter(|users| *users >= peak).collect();
        if users.len() < 2 {
            return Err(SuggestError::NoPeak(peak));
        }
        let running = mean(peak, RUNNING).ok_or(SuggestError::NoSessions)?;
        let limit = running.round() as i64;
        if limit < 1 {
            return Err(SuggestError::TooFewSessions(peak));
        }
        let part = |name: &str, limit: i64| {
            let mut set: BTreeMap<String, Scalar> = baseline
                .setup
                .set
                .iter()
                .map(|(name, value)| (name.clone(), Scalar::Text(value.clone())))
                .collect();
            set.insert(suggest.knob.clone(), Scalar::Int(limit));
            let where_known = !baseline.setup.where_known.is_empty();
            Part { name: name.to_string(), set, where_known, ..Part::default() }
        };
        let with = format!("{} = {limit}", suggest.knob);
        let spec = Spec {
            title: format!("{}: the suggested limit, tested", spec.title),
            question: format!(
                "{limit} sessions ran on average at the peak of {peak} users. Does {with} keep throughput there when more users come?"
            ),
            servers: vec![baseline.server.clone()],
            conditions: spec
                .conditions
                .iter()
                .filter(|condition| condition.name == baseline.condition)
                .cloned()
                .collect(),
            variants: vec![part(AS_IT_IS, 0), part(&with, limit)],
            baseline: AS_IT_IS.to_string(),
            users,
            steps: Vec::new(),
            grid: BTreeMap::new(),
            best_of: BTreeMap::new(),
            set: BTreeMap::new(),
            pair: false,
            suggest: None,
            before: Vec::new(),
            ..spec.clone()
        };
        Ok(StoredStudy {
            spec,
            files: self.files.clone(),
            notes: Vec::new(),
            endpoint: self.endpoint.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::tests::finished_starts;

    fn stored() -> StoredStudy {
        let text = "title = 't'\nquestion = 'q'\nbaseline = 'a'\nrepeats = 2\nusers = [8, 64, 256, 1024]\n[suggest]\nknob = 'innodb_thread_concurrency'\n\
                    [[variant]]\nname = 'a'\nset = { x = 1 }\n[[variant]]\nname = 'b'\n[best_of]\nspin = [6, 96]\n";
        StoredStudy {
            spec: Spec::parse(text, false).unwrap(),
            files: BTreeMap::new(),
            notes: Vec::new(),
            endpoint: String::new(),
        }
    }

    fn measured(study: &StoredStudy, best: u32) -> Vec<StartRecord> {
        let value = |_, users: u32| Some(if users == best { 5000.0 } else { 3000.0 });
        let mut records = finished_starts(&study.spec, &study.spec.all_starts(), value);
        for level in records.iter_mut().flat_map(|record| &mut record.levels) {
            let running = if level.users == 64 { 30.4 } else { 9.0 };
            level.measures.insert(RUNNING.to_string(), running);
        }
        records
    }

    #[test]
    fn the_limit_is_what_ran_at_the_peak_and_is_tested_from_there_on() {
        let study = stored();
        let suggested = study.suggested(&measured(&study, 64)).unwrap().unwrap().spec;
        assert_eq!(suggested.users, [64, 256, 1024]);
        let cells = suggested.cells();
        assert_eq!(cells.len(), 2, "the first tuning stands for all");
        let own = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(
            cells[1].setup.set,
            [own("innodb_thread_concurrency", "30"), own("spin", "6"), own("x", "1")]
        );
        assert!(suggested.question.contains("30 sessions ran") && suggested.suggest.is_none());
    }

    #[test]
    fn without_users_beyond_the_peak_there_is_nothing_to_test() {
        let study = stored();
        let why = study.suggested(&measured(&study, 1024)).unwrap().unwrap_err().to_string();
        assert!(why.contains("still grew up to 1024 users"), "{why}");
        let why = study.suggested(&[]).unwrap().unwrap_err().to_string();
        assert!(why.contains("nothing was measured"), "{why}");
        let spec = Spec { suggest: None, ..study.spec.clone() };
        assert_eq!(StoredStudy { spec, ..study }.suggested(&[]), None);
    }
}

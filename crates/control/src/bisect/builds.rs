//! The build that makes the difference, among builds in order. Each test compares the two builds at the ends of a stretch, side by side.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use whyso_inference::{LogEffect, halving};
use whyso_remedy::{BuildSearch, BuildStep};

use super::{BisectPlan, Search, TEST, WHOLE, gain, is_small};
use crate::Error;
use crate::progress::News;
use crate::server_plan::ServerPlan;

impl Search<'_> {
    /// Searches for the step between two neighbours.
    pub(super) fn among_builds(&mut self, plan: &BisectPlan) -> Result<BuildSearch, Error> {
        let builds = &plan.builds;
        let mut found = BuildSearch { builds: builds.clone(), ..BuildSearch::default() };
        if builds.len() < 2 {
            return Err(Error::Plan("--builds needs two builds or more, the oldest first".to_string()));
        }
        let mut folders = Folders { command: plan.build_command.clone(), known: BTreeMap::new() };
        let whole = self.test_builds(&mut folders, builds, (0, builds.len() - 1), WHOLE)?;
        found.whole = Some(gain(whole));
        if is_small(whole) {
            return Ok(found);
        }
        // The step from each build to the next is one difference, so a stretch of them lies between two builds.
        let halved = halving(builds.len() - 1, whole.value, |part| {
            self.test_builds(&mut folders, builds, ends(part), TEST)
        })?;
        let step = |(part, effect): &(Vec<usize>, LogEffect)| {
            let (from, to) = ends(part);
            BuildStep { from: builds[from].clone(), to: builds[to].clone(), gain: gain(*effect) }
        };
        found.steps = halved.steps.iter().map(step).collect();
        if !halved.found.is_empty() {
            let (from, to) = ends(&halved.found);
            found.found = Some((builds[from].clone(), builds[to].clone()));
        }
        found.effect = halved.effect.map(gain);
        found.share = halved.effect.map(|effect| effect.value / whole.value);
        found.is_answer = halved.is_answer;
        Ok(found)
    }

    fn test_builds(
        &self,
        folders: &mut Folders,
        builds: &[String],
        (from, to): (usize, usize),
        length: std::time::Duration,
    ) -> Result<LogEffect, Error> {
        let mut sides = [self.baseline.clone(), self.baseline.clone()];
        for (side, build) in sides.iter_mut().zip([&builds[from], &builds[to]]) {
            let folder = folders.of(build, &|text| self.listener.hear(News::Step(text)))?;
            if let ServerPlan::ThrowAway { build, .. } = &mut side.server {
                *build = Some(folder);
            }
        }
        self.compare(sides, length, &format!("{} against {}", builds[to], builds[from]))
    }
}

/// The builds at the ends of a stretch of steps.
fn ends(part: &[usize]) -> (usize, usize) {
    let first = part.iter().copied().min().unwrap_or(0);
    (first, part.iter().copied().max().unwrap_or(0) + 1)
}

/// Where the builds are; those that a command makes, once it has made them.
struct Folders {
    command: Option<String>,
    known: BTreeMap<String, PathBuf>,
}

impl Folders {
    fn of(&mut self, build: &str, say: &dyn Fn(&str)) -> Result<PathBuf, Error> {
        let Some(command) = &self.command else { return Ok(PathBuf::from(build)) };
        if let Some(folder) = self.known.get(build) {
            return Ok(folder.clone());
        }
        say(&format!("building {build}"));
        let failed = |why: String| Error::Failed(format!("{command} {build}: {why}"));
        let made = Command::new(command).arg(build).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let made = made.map_err(|error| failed(error.to_string()))?;
        if !made.status.success() {
            return Err(failed(format!("it ended with {}", made.status)));
        }
        let printed = String::from_utf8_lossy(&made.stdout).into_owned();
        let folder = printed.lines().last().map(str::trim).filter(|line| !line.is_empty());
        let folder = folder.ok_or_else(|| failed("it printed no folder".to_string()))?;
        let folder = PathBuf::from(folder);
        self.known.insert(build.to_string(), folder.clone());
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_of_steps_lies_between_two_builds() {
        assert_eq!(ends(&[0, 1, 2]), (0, 3));
        assert_eq!(ends(&[5]), (5, 6));
    }

    #[test]
    fn a_command_makes_each_build_once() {
        let folder = tempfile::tempdir().unwrap();
        let command = folder.path().join("make");
        let count = folder.path().join("count");
        let script = format!("#!/bin/sh\necho x >> {}\necho building\necho /builds/$1\n", count.display());
        std::fs::write(&command, script).unwrap();
        std::fs::set_permissions(&command, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut folders = Folders { command: Some(command.display().to_string()), known: BTreeMap::new() };
        for _ in 0..2 {
            assert_eq!(folders.of("abc", &|_| ()).unwrap(), PathBuf::from("/builds/abc"));
        }
        assert_eq!(std::fs::read_to_string(count).unwrap().lines().count(), 1);
        std::fs::write(&command, "#!/bin/sh\nexit 3\n").unwrap();
        assert!(folders.of("def", &|_| ()).unwrap_err().to_string().contains("def: it ended with"));
        let mut named = Folders { command: None, known: BTreeMap::new() };
        assert_eq!(named.of("mysql-5.5", &|_| ()).unwrap(), PathBuf::from("mysql-5.5"));
    }
}

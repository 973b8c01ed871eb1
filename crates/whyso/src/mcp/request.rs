//! What an assistant asks for. Each text becomes one argument of a command; none may be taken for an option or for a path.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;

/// Which runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Find {
    /// Only runs whose id, name, tags, settings or finding contain these words.
    #[serde(default)]
    pub(super) find: Option<String>,
}

/// A run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfRun {
    /// The run's id, the begin of it, "latest" or "latest~1" for the one before. Default: latest.
    #[serde(default)]
    pub(super) run: Option<String>,
}

/// A part of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfPart {
    /// The run's id, the begin of it, "latest" or "latest~1" for the one before. Default: latest.
    #[serde(default)]
    pub(super) run: Option<String>,
    /// The level with this many users. Default: the last level.
    #[serde(default)]
    pub(super) users: Option<u32>,
    /// Any window in place of a level, in time since the load began, such as "10s-25s".
    #[serde(default)]
    pub(super) window: Option<String>,
    /// How many lines of a table. Default: 20.
    #[serde(default)]
    pub(super) limit: Option<u32>,
}

/// A view of the Performance Schema, over a part of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfView {
    /// The view, such as "digests", "waits", "files", "tables". Without one the views are listed.
    #[serde(default)]
    pub(super) view: Option<String>,
    /// The run's id, the begin of it, "latest" or "latest~1" for the one before. Default: latest.
    #[serde(default)]
    pub(super) run: Option<String>,
    /// The level with this many users. Default: the last level.
    #[serde(default)]
    pub(super) users: Option<u32>,
    /// How many lines of a table. Default: 20.
    #[serde(default)]
    pub(super) limit: Option<u32>,
}

/// Two sides.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Sides {
    /// Ids of the runs of the first side. Windows are possible: "ID@10:05-10:20".
    pub(super) first: Vec<String>,
    /// Ids of the runs of the second side, which is compared with the first.
    pub(super) second: Vec<String>,
    /// What is compared: transactions_per_s (default), queries_per_s, latency_mean_ms, latency_p95_ms or latency_p99_ms.
    #[serde(default)]
    pub(super) metric: Option<String>,
}

/// Two sides of a load that whyso drives, on a server that it starts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    /// The load, such as "oltp-read-write" (default), "oltp-read-only", "oltp-point-select", "oltp-update-index".
    #[serde(default)]
    pub(super) workload: Option<String>,
    /// Settings of the baseline, such as ["innodb_flush_log_at_trx_commit=1"].
    #[serde(default)]
    pub(super) settings: Vec<String>,
    /// Settings that the other side has instead.
    pub(super) versus_settings: Vec<String>,
    /// Users at work. Default: 8.
    #[serde(default)]
    pub(super) users: Option<u32>,
    /// Longest time, up to 600. Default: 60.
    #[serde(default)]
    pub(super) seconds: Option<u32>,
}

impl Experiment {
    /// The command line of `whyso ab`.
    ///
    /// # Errors
    /// A text could be taken for an option or for a path.
    pub(super) fn arguments(&self, seconds: u32) -> Result<Vec<String>, String> {
        let mut arguments = vec!["ab".to_string()];
        if let Some(workload) = &self.workload {
            if workload.contains('/') || workload.ends_with(".sql") {
                return Err(format!("{workload:?} is a file: give the name of one of whyso's own loads"));
            }
            arguments.push(plain_argument(workload)?);
        }
        let set = |setting: &String| Ok::<_, String>(["--set".to_string(), plain_argument(setting)?]);
        arguments.extend(["--seconds".to_string(), seconds.to_string()]);
        arguments.extend(["--users".to_string(), self.users.unwrap_or(8).to_string()]);
        for setting in &self.settings {
            arguments.extend(set(setting)?);
        }
        arguments.push("--versus".to_string());
        for setting in &self.versus_settings {
            arguments.extend(set(setting)?);
        }
        Ok(arguments)
    }
}

/// A run whose suspects are tested.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OfProof {
    /// The run's id, the begin of it, "latest" or "latest~1" for the one before. Default: latest.
    #[serde(default)]
    pub(super) run: Option<String>,
    /// What experiments may cost: "durability", "memory", "semantics". Default: nothing.
    #[serde(default)]
    pub(super) accept: Vec<String>,
    /// Longest time of all experiments, up to 600. Default: 300.
    #[serde(default)]
    pub(super) budget_seconds: Option<u32>,
    /// Only list what would be done.
    #[serde(default)]
    pub(super) dry_run: bool,
}

impl OfProof {
    /// The arguments of `whyso prove`.
    ///
    /// # Errors
    /// A text could be taken for an option.
    pub(super) fn arguments(&self, seconds: u32) -> Result<Vec<String>, String> {
        let mut arguments =
            vec![run_argument(self.run.as_deref())?, "--budget".to_string(), format!("{seconds}s")];
        for cost in &self.accept {
            arguments.extend(["--accept".to_string(), plain_argument(cost)?]);
        }
        if self.dry_run {
            arguments.push("--dry-run".to_string());
        }
        Ok(arguments)
    }
}

/// A run as an argument.
///
/// # Errors
/// It is an option or a path.
pub(super) fn run_argument(run: Option<&str>) -> Result<String, String> {
    let run = run.unwrap_or(crate::recordings::LATEST);
    if run.contains('/') || run == ".." || run == "." {
        return Err(format!("{run:?} is a path: give the id of a run, which list_runs shows"));
    }
    plain_argument(run)
}

/// A text as an argument.
///
/// # Errors
/// It could be taken for an option.
pub(super) fn plain_argument(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('-') || text.contains('\0') {
        return Err(format!("{text:?} is not understood: it may be neither empty nor begin with -"));
    }
    Ok(text.to_string())
}

impl OfPart {
    /// The arguments that choose the part, after the run.
    ///
    /// # Errors
    /// A text could be taken for an option.
    pub(super) fn arguments(&self) -> Result<Vec<String>, String> {
        let mut arguments = vec![run_argument(self.run.as_deref())?];
        if let Some(users) = self.users {
            arguments.extend(["--users".to_string(), users.to_string()]);
        }
        if let Some(window) = &self.window {
            arguments.extend(["--window".to_string(), plain_argument(window)?]);
        }
        Ok(arguments)
    }

    pub(super) fn limit(&self) -> [String; 2] {
        limit_arguments(self.limit)
    }
}

pub(super) fn limit_arguments(limit: Option<u32>) -> [String; 2] {
    ["--limit".to_string(), limit.unwrap_or(20).to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_taken_for_an_option_or_a_path() {
        for wrong in ["--output=/etc/passwd", "-o", "", "/etc", "../other", "..", "."] {
            assert!(run_argument(Some(wrong)).is_err(), "{wrong}");
        }
        for right in ["latest", "latest~2", "20261126-165511-4006", "ID@10:05-10:20"] {
            assert_eq!(run_argument(Some(right)).as_deref(), Ok(right));
        }
        assert_eq!(run_argument(None).as_deref(), Ok("latest"));
    }
}

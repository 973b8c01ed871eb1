//! The tools. Each is a command of this program that reads, so that an assistant reads what a user would.

use std::path::PathBuf;
use std::time::Duration;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};

use super::answer::answer;
use super::request::{
    Experiment, Find, OfPart, OfProof, OfRun, OfView, Sides, limit_arguments, plain_argument, run_argument,
};

const INSTRUCTIONS: &str = "Recordings of MySQL-compatible servers under load, and why they do not go faster. Begin with list_runs, then \
    explain_run. A share is of measured time; an estimated gain is untested unless it says so. Nothing here changes a server of the user or a recording; ab and prove, where they are offered, start servers of their own.";

/// No command that reads takes longer.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Tools that load servers.
const EXPERIMENTS: [&str; 2] = ["ab", "prove"];
/// What an experiment needs in addition to the time that it was given.
const START_TIME: Duration = Duration::from_secs(120);
/// Longest experiment that an assistant may ask for, in seconds.
const SECONDS_MAX: u32 = 600;

#[derive(Clone, Debug)]
pub(super) struct Tools {
    runs: PathBuf,
    router: ToolRouter<Tools>,
}

type Answer = Result<String, String>;

#[tool_router]
impl Tools {
    pub(super) fn new(runs: PathBuf, allow_experiments: bool) -> Tools {
        let mut router = Tools::tool_router();
        if !allow_experiments {
            EXPERIMENTS.iter().for_each(|name| router.remove_route(name));
        }
        Tools { runs, router }
    }

    async fn answer(&self, command: &str, arguments: Vec<String>) -> Answer {
        answer(&self.with_runs(command, arguments), TIME_MAX).await
    }

    fn with_runs(&self, command: &str, arguments: Vec<String>) -> Vec<String> {
        let runs = self.runs.to_string_lossy().into_owned();
        [command.to_string(), "--runs".to_string(), runs].into_iter().chain(arguments).collect()
    }

    /// The recorded runs, the oldest first: id, name, tags, what was set, throughput, first cause.
    #[tool(annotations(read_only_hint = true))]
    async fn list_runs(&self, Parameters(of): Parameters<Find>) -> Answer {
        let find = match of.find {
            Some(find) => vec!["--find".to_string(), plain_argument(&find)?],
            None => Vec::new(),
        };
        self.answer("runs", find).await
    }

    /// Why the server did not go faster in a run: limit, suspects with share, evidence and estimated gain, and the time budget level by level.
    #[tool(annotations(read_only_hint = true))]
    async fn explain_run(&self, Parameters(of): Parameters<OfRun>) -> Answer {
        self.answer("why", vec![run_argument(of.run.as_deref())?]).await
    }

    /// Where the time of a transaction went at one level of a run, part by part, and what was seen there.
    #[tool(annotations(read_only_hint = true))]
    async fn time_budget(&self, Parameters(of): Parameters<OfPart>) -> Answer {
        if of.window.is_some() || of.limit.is_some() {
            return Err("time_budget knows run and users only".to_string());
        }
        self.answer("why", of.arguments()?).await
    }

    /// What connections waited for when they waited for locks, by table, index and instrument, and who held them.
    #[tool(annotations(read_only_hint = true))]
    async fn locks(&self, Parameters(of): Parameters<OfPart>) -> Answer {
        self.answer("locks", of.arguments()?).await
    }

    /// The statements that took the time, of a run recorded with --trace-sql; of others ask performance_schema for digests.
    #[tool(annotations(read_only_hint = true))]
    async fn statements(&self, Parameters(of): Parameters<OfPart>) -> Answer {
        let arguments = of.arguments()?.into_iter().chain(of.limit()).collect();
        self.answer("statements", arguments).await
    }

    /// The functions in which the server's threads spent their time, on CPUs and waiting, of a run recorded with stacks.
    #[tool(annotations(read_only_hint = true))]
    async fn functions(&self, Parameters(of): Parameters<OfPart>) -> Answer {
        let arguments = of.arguments()?.into_iter().chain(of.limit()).collect();
        self.answer("functions", arguments).await
    }

    /// What the server's threads waited for, by wait class, of a run recorded with stacks.
    #[tool(annotations(read_only_hint = true))]
    async fn wait_classes(&self, Parameters(of): Parameters<OfPart>) -> Answer {
        self.answer("classes", of.arguments()?).await
    }

    /// What the Performance Schema counted: waits, statements, digests, files, tables, indexes, memory, locks.
    #[tool(annotations(read_only_hint = true))]
    async fn performance_schema(&self, Parameters(of): Parameters<OfView>) -> Answer {
        let mut arguments = vec![run_argument(of.run.as_deref())?];
        match &of.view {
            Some(view) => arguments.push(plain_argument(view)?),
            None => arguments.push("--list".to_string()),
        }
        if let Some(users) = of.users {
            arguments.extend(["--users".to_string(), users.to_string()]);
        }
        if of.view.is_some() {
            arguments.extend(limit_arguments(of.limit));
        }
        self.answer("pfs", arguments).await
    }

    /// Two sides of runs against each other: which is faster, how sure that is, which settings differ and what else differs.
    #[tool(annotations(read_only_hint = true))]
    async fn compare(&self, Parameters(of): Parameters<Sides>) -> Answer {
        let side =
            |runs: &[String]| runs.iter().map(|run| run_argument(Some(run))).collect::<Result<Vec<_>, _>>();
        let mut arguments = side(&of.first)?;
        arguments.push("--with".to_string());
        arguments.extend(side(&of.second)?);
        if let Some(metric) = &of.metric {
            arguments.extend(["--metric".to_string(), plain_argument(metric)?]);
        }
        self.answer("compare", arguments).await
    }

    /// Two settings against each other on a throw-away server under load: which is faster, and how sure that is. It takes a minute or so.
    #[tool(annotations(read_only_hint = false, destructive_hint = false))]
    async fn ab(&self, Parameters(of): Parameters<Experiment>) -> Answer {
        let seconds = of.seconds.unwrap_or(60).min(SECONDS_MAX);
        answer(&of.arguments(seconds)?, Duration::from_secs(u64::from(seconds)) + START_TIME).await
    }

    /// Each suspect of a run removed on a throw-away server like the recorded one: measured gains against predicted ones. It takes minutes.
    #[tool(annotations(read_only_hint = false, destructive_hint = false))]
    async fn prove(&self, Parameters(of): Parameters<OfProof>) -> Answer {
        let seconds = of.budget_seconds.unwrap_or(300).min(SECONDS_MAX);
        let arguments = self.with_runs("prove", of.arguments(seconds)?);
        answer(&arguments, Duration::from_secs(u64::from(seconds)) + START_TIME).await
    }
}

#[tool_handler(router = self.router)]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("whyso", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_string());
        info
    }
}

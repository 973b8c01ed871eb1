//! One run, start to end. The only place that knows in which order things happen.

use std::time::Duration;

use tokio::runtime::Runtime;
use whyso_load::{Endpoint, LoadSpec};
use whyso_model::{Missing, NotMeasured};
use whyso_record::private;
use whyso_record::run::{Purpose, RunEnd};
use whyso_server::answers::{log_out, time_max, within};
use whyso_server::dataset::Dataset;
use whyso_server::{CpuSet, Dsn};
use whyso_trace::Generator;
use whyso_watch::Watcher;
use whyso_workload::Workload;

use crate::Stop;
use crate::action::ActionKind;
use crate::action_runner::{ActionRunner, RestartTarget};
use crate::cluster_node;
use crate::engine::Engine;
use crate::facts;
use crate::hosts::{HostsPlan, HostsSession, WhatToRecord};
use crate::level::{Cut, silent_then_failed};
use crate::login::AskPassword;
use crate::other_nodes::OtherNodes;
use crate::own_data::{fill_dictionaries, set_up};
use crate::process::check_processes;
use crate::progress::{Listener, News};
use crate::put_back::put_everything_back;
use crate::recording::{Outcome, Recording, watch_spec};
use crate::runtime::{GOODBYE_TIME_MAX, RECONNECT_TIME_MAX, runtime};
use crate::server_setup::{ServerNeeds, prepare_server};
use crate::server_under_test::{self, ServerUnderTest};
use crate::service_level::check_kinds;
use crate::settle::{SETTLE_TIME_MAX, wait_until_settled};
use crate::several_servers::{self, Preparing};
use crate::source::WorkloadContext;
use crate::sweep::{PendingLevel, Sweep, find_best, list_levels};
use crate::{Error, Plan, statement_work};
use whyso_tracing::{FollowSpec, OtherStacks, Tracing, TracingSpec};

/// Carries out a plan: server, data, levels, recording. What was recorded before a failure is kept.
///
/// # Errors
/// Whatever keeps the first level from being run. A later failure is in the outcome.
pub fn run(
    plan: &Plan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Outcome, Error> {
    check_processes()?;
    let client_cpus = plan.client_cpus.as_deref().map(CpuSet::resolve).transpose()?;
    let (tested, runtime, workload) = set_up_run(plan, listener, stop, ask_password)?;
    let preparing = Preparing { runtime: &runtime, listener, stop, ask_password };
    let others = match preparing.others(&plan.other_servers, &needs(plan, &workload), &workload) {
        Ok(others) => others,
        Err(error) => {
            runtime.block_on(put_everything_back(tested, listener));
            return Err(error);
        }
    };
    let servers = (tested, others);
    let prepared = PreparedRun { plan, workload, client_cpus, servers, runtime, listener, stop };
    let outcome = prepared.record();
    prepared.put_everything_back();
    outcome
}

/// The plan's server with its data, and what is to be sent to it.
pub(crate) fn set_up_run(
    plan: &Plan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<(ServerUnderTest, Runtime, Workload), Error> {
    plan.check()?;
    let mut workload = workload(plan)?;
    check_kinds(&plan.slo, &workload)?;
    let runtime = runtime()?;
    let tested = prepare_server(&runtime, &needs(plan, &workload), listener, stop, ask_password)?;
    let brought = runtime.block_on(async {
        set_up(&tested, &workload, listener).await?;
        fill_dictionaries(&tested.dsn, &mut workload).await?;
        match tested.data_dir.as_deref().filter(|_| plan.cold) {
            Some(data_dir) => Ok(whyso_server::drop_page_cache(data_dir)?),
            None => Ok(()),
        }
    });
    if let Err(error) = brought {
        runtime.block_on(put_everything_back(tested, listener));
        return Err(error);
    }
    Ok((tested, runtime, workload))
}

/// What the servers of a plan need.
fn needs<'a>(plan: &'a Plan, workload: &Workload) -> ServerNeeds<'a> {
    let engine = plan.table_engine.clone();
    ServerNeeds {
        server: &plan.server,
        dataset: Dataset { tables: plan.tables, rows: plan.rows, seed: plan.seed, engine },
        data_wanted: workload.requirements().tables > 0,
        writes: !workload.only_reads() || workload.setup.is_some(),
        users_max: plan.users.iter().copied().max().unwrap_or(1),
        allow_writes: plan.allow_writes.as_deref(),
        pfs: plan.pfs.as_ref(),
        cold: plan.cold,
        can_be_slowed: false,
    }
}

/// The workload of a plan, checked against its data set.
pub(crate) fn workload(plan: &Plan) -> Result<Workload, Error> {
    plan.source.workload(&WorkloadContext {
        options: &plan.options,
        tables: plan.tables,
        rows: plan.rows,
        servers: std::slice::from_ref(&plan.server),
        allow_writes: plan.allow_writes.as_deref(),
    })
}

/// A run whose server is ready.
struct PreparedRun<'a> {
    plan: &'a Plan,
    workload: Workload,
    client_cpus: Option<CpuSet>,
    /// The first one, and those that are loaded with it.
    servers: (ServerUnderTest, Vec<ServerUnderTest>),
    runtime: Runtime,
    listener: &'a dyn Listener,
    stop: &'a Stop,
}

impl PreparedRun<'_> {
    fn record(&self) -> Result<Outcome, Error> {
        let separate = several_servers::nodes(&self.servers.0, &self.servers.1, &self.runtime)?;
        let nodes = if separate.is_empty() { &self.plan.nodes } else { &separate };
        self.listener.hear(News::Step("waiting for the server to settle"));
        let mut info = facts::run_info(
            self.plan,
            &self.workload,
            self.client_cpus.as_ref(),
            &self.servers.0,
            &self.runtime,
        )?;
        if self.plan.hosts.as_ref().is_some_and(|hosts| hosts.server_host().is_some()) {
            // Its own host traces it, even where this machine sees the process, too.
            info.server.pid = None;
        }
        let unsettled = self.settle()?;
        if let Some(what) = unsettled {
            let why = format!("when the first level began, {what}");
            info.not_measured.push(NotMeasured::new(Missing::Other, "a server at rest", why));
        }
        cluster_node::describe(nodes, &mut info);
        let executions = self.execute_each_statement();
        info.statement_work = executions.work;
        info.not_measured.extend(executions.not_measured);

        let users_max = self.plan.users.iter().copied().max().unwrap_or(1);
        let target = |dsn: &Dsn| {
            let dsn = Dsn { schema: self.servers.0.dsn.schema.clone(), ..dsn.clone() };
            server_under_test::target(&dsn)
        };
        let entry = cluster_node::entry(nodes);
        let first = entry.map_or_else(|| self.servers.0.target(), target);
        let mut spec = LoadSpec::new(first, users_max, self.plan.seed);
        let direct = cluster_node::loaded_others(&self.plan.nodes).filter(|_| entry.is_none());
        for dsn in direct.filter_map(|node| node.dsn.as_ref()) {
            spec.endpoints.push(Endpoint { target: target(dsn), weight: 1 });
        }
        // Each in the schema that it was prepared in.
        spec.endpoints
            .extend(self.servers.1.iter().map(|other| Endpoint { target: other.target(), weight: 1 }));
        spec.cpus = self.client_cpus.as_ref().map(|cpus| cpus.cpus().to_vec());
        spec.engine = self.plan.engine;
        spec.loops = self.plan.loops;
        spec.tuning = self.plan.tuning;
        if self
            .plan
            .actions
            .iter()
            .any(|a| matches!(a.what, ActionKind::Restart { .. } | ActionKind::Shell(_)))
        {
            spec.limits.reconnect = RECONNECT_TIME_MAX;
        }
        let connect = || {
            self.listener.hear(News::Step("connecting the users"));
            Engine::open(&spec, &self.workload)
        };
        // Whoever follows commands has to see what they prepare.
        let connects_first = self.plan.sql.is_none() && !self.plan.has_generators();
        let connected = connects_first.then(connect).transpose()?;

        let (pid, data_dir) = (info.server.pid, self.servers.0.data_dir.clone());
        let mut recording = Recording::begin(&self.plan.out, info)?;
        recording.label(&self.plan.labels)?;
        recording.relay(&self.plan.relay)?;
        let mut watched = watch_spec(Some(&self.servers.0.dsn), pid, data_dir, self.plan.interval);
        watched.add_ons.clone_from(&self.plan.add_ons);
        watched.access_logs.clone_from(&self.plan.access_logs);
        watched.other_node_pids = cluster_node::other_pids(nodes);
        if let Some(name) = self.plan.hosts.as_ref().and_then(HostsPlan::server_host) {
            // Its machine and its process are recorded there.
            watched.server_host = name.to_string();
            (watched.server_pid, watched.data_dir) = (None, None);
        }
        let watcher = Watcher::start(watched, recording.recorder.clone())?;
        let recorder = recording.recorder.clone();
        let Plan { interval, trace, stacks, stacks_of, .. } = *self.plan;
        let traced = (&self.runtime, trace.then_some(OtherStacks { sampling: stacks, of: stacks_of }));
        let others = OtherNodes::watch(nodes, interval, traced, &recorder, &mut recording.info)?;
        let wanted = TracingSpec {
            // Here is no part of a load that others send.
            trace: self.plan.trace && !self.plan.has_generators(),
            stacks: self.plan.stacks,
            stacks_of: self.plan.stacks_of,
            others: cluster_node::loaded_others(nodes)
                .filter_map(|node| Some((node.pid?, node.port)))
                .collect(),
            sql: self.plan.sql.map(|literals| FollowSpec { literals, opts: self.servers.0.dsn.opts() }),
            generator: Generator::Own,
        };
        let tracing = Tracing::begin(&mut recording.info, &recording.recorder, wanted);
        let hosts = match self.begin_hosts(&mut recording) {
            Ok(hosts) => hosts,
            Err(error) => {
                drop(tracing);
                others.stop(&mut recording.info);
                recording.discard(watcher)?;
                return Err(error);
            }
        };
        let engine = match hosts.as_ref().filter(|_| self.plan.has_generators()) {
            Some(hosts) => {
                self.listener.hear(News::Step("connecting the users on the hosts of the load"));
                let request = self.plan.load_request(spec.limits.reconnect);
                hosts.open_load(&request, &recording.recorder).map(|load| Engine::Hosts(Box::new(load)))
            }
            None => connected.map_or_else(connect, Ok),
        };
        let failure = match engine {
            Ok(engine) => self.levels(engine, &mut recording, (&watcher, &others), tracing.as_ref()),
            Err(error) => Some(error.to_string()),
        };
        drop(tracing);
        self.keep_log(&recording.path);
        let variables = facts::variables_now(&self.servers.0.dsn, &watcher, &self.runtime);
        others.stop(&mut recording.info);
        if let Some(hosts) = hosts {
            hosts.end(&mut recording.info, self.listener);
        }
        recording.finish(watcher, variables, failure, self.stop.is_asked())
    }

    /// Other machines begin to record.
    fn begin_hosts(&self, recording: &mut Recording) -> Result<Option<HostsSession>, Error> {
        let Some(hosts) = &self.plan.hosts else { return Ok(None) };
        let Plan { interval, trace, stacks, .. } = *self.plan;
        let length = Some(self.plan.length_max());
        let what = WhatToRecord { interval, trace, stacks, length, has_clients: false };
        let session =
            HostsSession::begin(hosts, what, (&recording.recorder, &recording.info), self.listener)?;
        session.describe(&mut recording.info);
        if let Some(there) = session.server_run() {
            recording.info.spec.server_cpus = there.server.cpus;
        }
        recording.recorder.set_run(&recording.info);
        Ok(Some(session))
    }

    /// Runs the sweep and the repeat. Gives why it was cut short by a failure.
    fn levels(
        &self,
        mut engine: Engine,
        recording: &mut Recording,
        (watcher, others): (&Watcher, &OtherNodes<'_>),
        tracing: Option<&Tracing>,
    ) -> Option<String> {
        let plan = self.plan;
        let dsn = self.servers.0.dsn.clone();
        let restarted = match (&plan.cluster, self.servers.0.throw_away.clone()) {
            (Some(cluster), _) => RestartTarget::Cluster(cluster.clone()),
            (None, Some(server)) => RestartTarget::Server(server),
            (None, None) => RestartTarget::Nothing,
        };
        let handle = self.runtime.handle().clone();
        let swept = plan.sweep();
        // At a fixed rate throughput is what was asked for, whatever the server has become.
        let repeats_best = plan.repeat_best && plan.rates_per_s.len() < 2;
        let repeats = u32::from(repeats_best && swept.len() > 1);
        let mut todo = list_levels(&swept, |users| engine.loops(users).filter(|_| plan.check_loops));
        let mut sweep = Sweep {
            plan,
            recorder: recording.recorder.clone(),
            watcher,
            others,
            tracing,
            listener: self.listener,
            stop: self.stop,
            actions: ActionRunner::new(&plan.actions, handle, dsn, self.servers.0.undo.clone(), restarted),
            levels_left: todo.len() as u32 + repeats,
            measured_before: Duration::ZERO,
        };
        todo.reverse();
        let mut repeated = false;
        let mut failure = None;
        let mut silent = None;
        loop {
            let next = match todo.pop() {
                Some(next) => next,
                None if repeats_best && !repeated && recording.info.levels.len() > 1 => {
                    repeated = true;
                    let Some(best) = find_best(&recording.info.levels) else { break };
                    PendingLevel {
                        users: best.users,
                        rate_per_s: best.result.rate_per_s,
                        purpose: Purpose::Repeat,
                        loops: None,
                    }
                }
                None => break,
            };
            sweep.levels_left = sweep.levels_left.saturating_sub(1);
            let (level, cut) = match sweep.level(&mut engine, recording.info.levels.len() as u32, next) {
                Ok(done) => done,
                Err(error) => {
                    failure = Some(self.with_death(error.to_string()));
                    break;
                }
            };
            let problem = recording.level(level);
            match cut {
                Cut::No => {}
                Cut::ByUser => break,
                Cut::Silent(why) => silent = silent.or(Some(why)),
                Cut::Failed(why) => {
                    let why = self.with_death(why);
                    if let Some(RunEnd::CutShort { why: of_level, .. }) =
                        recording.info.levels.last_mut().map(|level| &mut level.ended)
                    {
                        of_level.clone_from(&why);
                    }
                    failure = Some(why);
                    break;
                }
            }
            if problem.is_some() {
                failure = problem;
                break;
            }
        }
        recording.info.actions = sweep.actions.finish(&recording.recorder);
        silent_then_failed(silent, failure)
    }

    /// A failure's message, with how the throw-away server ended where that is why.
    fn with_death(&self, message: String) -> String {
        let Some(server) = &self.servers.0.throw_away else { return message };
        // The kernel may take a moment to tell that a process is gone.
        for _ in 0..20 {
            let death = self.runtime.block_on(server.lock()).died();
            if let Some(death) = death {
                let log = death.last_log_lines.join("\n  ");
                return format!(
                    "the server died under the load ({}); its log ends with:\n  {log}",
                    death.how
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        message
    }

    /// The throw-away server's own log becomes a part of the recording.
    fn keep_log(&self, path: &std::path::Path) {
        let Some(log) = &self.servers.0.log else { return };
        let copied = std::fs::File::open(log).and_then(|mut log| {
            let mut copy = private::create_file(&whyso_record::server_log_path(path))?;
            std::io::copy(&mut log, &mut copy)
        });
        if let Err(error) = copied {
            self.listener.hear(News::Warning(&format!("the server's log could not be kept: {error}")));
        }
    }

    /// With cold caches nothing is executed: the first level is to find them cold.
    fn execute_each_statement(&self) -> statement_work::Executions {
        if self.plan.cold {
            return statement_work::Executions::default();
        }
        self.listener.hear(News::Step("executing each statement once"));
        self.runtime.block_on(statement_work::measure(&self.servers.0.dsn, &self.workload, self.plan.seed))
    }

    fn settle(&self) -> Result<Option<String>, Error> {
        let dsn = &self.servers.0.dsn;
        let bound = SETTLE_TIME_MAX + time_max(dsn);
        self.runtime.block_on(within(bound, dsn, "waiting until it has settled", async {
            let mut conn = dsn.connect().await?;
            let unsettled = wait_until_settled(&mut conn, self.stop).await;
            log_out(conn).await;
            Ok::<_, Error>(unsettled)
        }))
    }

    /// Puts settings back and removes the throw-away server, whatever happened before.
    fn put_everything_back(self) {
        let PreparedRun { servers: (first, others), runtime, listener, .. } = self;
        several_servers::put_back(others, &runtime, listener);
        runtime.block_on(put_everything_back(first, listener));
        runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    }
}

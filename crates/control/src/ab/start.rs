//! One start of what is compared: its servers, the connections of both sides, and what is switched between them.

use mysql_async::prelude::Queryable;
use tokio::runtime::Runtime;
use whyso_load::LoadSpec;
use whyso_server::answers::{FILL_TIME_MAX, log_out, within};
use whyso_server::dataset::Dataset;
use whyso_server::{CpuSet, Dsn, Neighbour, Pauser};
use whyso_workload::Workload;

use super::guard::Bounds;
use super::plan::{AbPlan, AbSide};
use super::replicas::{LagRise, ReplicaWatch};
use super::slowed::SlowedServer;
use super::switch::{Switch, names_of, value_of};
use super::window::Side;
use crate::engine::Engine;
use crate::facts::server_now;
use crate::hosts::Loaders;
use crate::load::bring_data;
use crate::login::AskPassword;
use crate::progress::{Listener, News};
use crate::put_back::put_everything_back;
use crate::server_identity::server_identity;
use crate::server_plan::ServerPlan;
use crate::server_setup::{ServerNeeds, prepare_server};
use crate::server_under_test::ServerUnderTest;
use crate::{Error, Stop};

/// What a start is made with.
pub(super) struct Setup<'a> {
    pub(super) plan: &'a AbPlan,
    pub(super) runtime: &'a Runtime,
    pub(super) listener: &'a dyn Listener,
    pub(super) stop: &'a Stop,
    pub(super) ask_password: &'a AskPassword,
    /// Hosts that send the load, or permit the experiment; `None`: only this one takes part.
    pub(super) loaders: Option<&'a Loaders>,
}

/// Both sides, ready to be loaded.
pub(super) struct Start<'a> {
    runtime: &'a Runtime,
    listener: &'a dyn Listener,
    servers: Vec<ServerUnderTest>,
    pub(super) sides: [Side; 2],
    switch: Option<Switch>,
    /// Of each side, what pauses programs of others during its windows.
    pausers: [Option<Pauser>; 2],
    /// Of each side.
    slowed: [Option<SlowedServer>; 2],
    replicas: Option<ReplicaWatch>,
}

impl<'a> Setup<'a> {
    /// Both sides on one server, between whose settings the comparison switches.
    ///
    /// # Errors
    /// [`whyso_server::Error::ReadOnlyKnob`] where a setting can't be changed while the server runs; what keeps the server from being loaded.
    pub(super) fn one_server(&self) -> Result<Start<'a>, Error> {
        let plan = self.plan;
        let mut workloads = plan.workloads()?;
        let server = &plan.sides[0].server;
        let tested = self.prepare(server, plan.changes_server(), &plan.sides[0].data, &workloads)?;
        let servers = vec![tested];
        let prepared = self.runtime.block_on(async {
            bring_data(&servers, &mut workloads, self.listener).await?;
            let sets = plan.sides.each_ref().map(|side| side.set.as_slice());
            Switch::prepare(&servers[0], &sets, &mut workloads).await
        });
        match prepared {
            Ok(switch) => self.start(servers, switch, &workloads),
            Err(error) => Err(self.give_up(servers, error)),
        }
    }

    /// Each side on a server of its own; both stand ready.
    ///
    /// # Errors
    /// What keeps a server from being started or loaded.
    pub(super) fn two_servers(&self) -> Result<Start<'a>, Error> {
        let mut workloads = self.plan.workloads()?;
        let mut servers = Vec::new();
        for side in &self.plan.sides {
            let server = side.server.with_settings(&side.set);
            match self.prepare(&server, !side.set.is_empty(), &side.data, &workloads) {
                Ok(tested) => servers.push(tested),
                Err(error) => return Err(self.give_up(servers, error)),
            }
        }
        let prepared = self.runtime.block_on(async {
            bring_data(&servers, &mut workloads, self.listener).await?;
            for (tested, side) in servers.iter().zip(&self.plan.sides) {
                self.execute(&tested.dsn, &side.prepare).await?;
            }
            Ok(())
        });
        match prepared {
            Ok(()) => self.start(servers, None, &workloads),
            Err(error) => Err(self.give_up(servers, error)),
        }
    }

    /// Connects the users of both sides, once the servers are ready.
    fn start(
        &self,
        servers: Vec<ServerUnderTest>,
        switch: Option<Switch>,
        workloads: &[Workload; 2],
    ) -> Result<Start<'a>, Error> {
        let made = self.pausers(&servers).and_then(|pausers| {
            let slowed = self.slowed(&servers)?;
            let replicas = self.replicas(&servers)?;
            let lag = replicas.as_ref().map(ReplicaWatch::rise);
            let sides = self.sides(&servers, (workloads, switch.as_ref()), lag)?;
            Ok((pausers, slowed, replicas, sides))
        });
        match made {
            Ok((pausers, slowed, replicas, sides)) => {
                let Setup { runtime, listener, .. } = *self;
                Ok(Start { runtime, listener, servers, sides, switch, pausers, slowed, replicas })
            }
            Err(error) => {
                self.runtime.block_on(close(switch));
                Err(self.give_up(servers, error))
            }
        }
    }

    fn pausers(&self, servers: &[ServerUnderTest]) -> Result<[Option<Pauser>; 2], Error> {
        let pauser = |neighbours: &[Neighbour]| {
            let tested =
                |neighbour: &&Neighbour| servers.iter().any(|server| server.pid == Some(neighbour.pid()));
            if let Some(server) = neighbours.iter().find(tested) {
                return Err(Error::Plan(format!("{server} is the server itself: pause other programs")));
            }
            if neighbours.is_empty() { Ok(None) } else { Ok(Some(Pauser::start(neighbours)?)) }
        };
        let [baseline, variant] = &self.plan.sides;
        Ok([pauser(&baseline.paused)?, pauser(&variant.paused)?])
    }

    fn slowed(&self, servers: &[ServerUnderTest]) -> Result<[Option<SlowedServer>; 2], Error> {
        let of = |side: usize| {
            let tested = &servers[side.min(servers.len() - 1)];
            SlowedServer::prepare(&self.plan.sides[side], tested, self.runtime)
        };
        Ok([of(0)?, of(1)?])
    }

    /// Servers of whyso's own replicate nothing.
    fn replicas(&self, servers: &[ServerUnderTest]) -> Result<Option<ReplicaWatch>, Error> {
        let of_user = servers.iter().filter(|tested| tested.throw_away.is_none());
        let tested: Vec<Dsn> = of_user.map(|tested| tested.dsn.clone()).collect();
        ReplicaWatch::start(self.runtime, &tested, &self.plan.replicas)
    }

    /// `is_changed`: it is given settings, which the agent of its host has to permit.
    fn prepare(
        &self,
        server: &ServerPlan,
        is_changed: bool,
        data: &Dataset,
        workloads: &[Workload],
    ) -> Result<ServerUnderTest, Error> {
        let plan = self.plan;
        let needs = ServerNeeds {
            server,
            dataset: data.clone(),
            data_wanted: workloads.iter().any(|workload| workload.requirements().tables > 0),
            writes: workloads.iter().any(|workload| !workload.only_reads() || workload.setup.is_some()),
            // The sides have connections of their own.
            users_max: plan.sides.iter().map(|side| side.users).sum(),
            allow_writes: plan.allow_writes.as_deref(),
            pfs: None,
            cold: false,
            can_be_slowed: plan.sides.iter().any(AbSide::is_slowed),
        };
        let tested = prepare_server(self.runtime, &needs, self.listener, self.stop, self.ask_password)?;
        let loaders = self.loaders.filter(|_| is_changed);
        let checked = loaders.map_or(Ok(()), |loaders| {
            loaders.check_server(&self.runtime.block_on(server_identity(&tested.dsn))?)
        });
        match checked {
            Ok(()) => Ok(tested),
            Err(error) => Err(self.give_up(vec![tested], error)),
        }
    }

    /// Executes what a side asks for before the first window.
    async fn execute(&self, dsn: &Dsn, statements: &[String]) -> Result<(), Error> {
        if statements.is_empty() {
            return Ok(());
        }
        let mut conn = dsn.connect().await?;
        for sql in statements {
            self.listener.hear(News::Step(&format!("executing {sql}")));
            let execute = async {
                let done = conn.query_drop(sql).await;
                done.map_err(|error| Error::Plan(format!("the server refused --sql {sql}: {error}")))
            };
            within(FILL_TIME_MAX, dsn, "executing what --sql asks for", execute).await?;
        }
        log_out(conn).await;
        Ok(())
    }

    /// Puts back what was prepared, and returns why.
    fn give_up(&self, servers: Vec<ServerUnderTest>, error: Error) -> Error {
        for tested in servers {
            self.runtime.block_on(put_everything_back(tested, self.listener));
        }
        error
    }

    /// The connections of both sides. Of two servers, each side has its own.
    fn sides(
        &self,
        servers: &[ServerUnderTest],
        (workloads, switch): (&[Workload; 2], Option<&Switch>),
        lag: Option<LagRise>,
    ) -> Result<[Side; 2], Error> {
        let plan = self.plan;
        self.listener.hear(News::Step("connecting the users of both sides"));
        let cpus = plan.client_cpus.as_deref().map(CpuSet::resolve).transpose()?;
        let side = |number: usize| {
            let tested = &servers[number.min(servers.len() - 1)];
            let users = plan.sides[number].users;
            let engine = match self.loaders.filter(|loaders| loaders.sends_load()) {
                Some(loaders) => {
                    let side = &plan.sides[number];
                    // Where the hosts loaded another server, no setting would seem to matter.
                    let server = self.runtime.block_on(server_identity(&tested.dsn))?;
                    let request = plan.load_request(side, server, session(side, switch));
                    Engine::Hosts(Box::new(loaders.open(&request)?))
                }
                None => {
                    let mut spec = LoadSpec::new(tested.target(), users, plan.seed);
                    spec.cpus = cpus.as_ref().map(|cpus| cpus.cpus().to_vec());
                    Engine::open(&spec, &workloads[number])?
                }
            };
            let facts = server_now(&tested.dsn, tested.throw_away.is_some(), tested.pid, self.runtime)?;
            Ok::<_, Error>(Side {
                engine,
                users,
                think: plan.sides[number].think,
                rate_per_s: None,
                slow: plan.slow,
                pid: facts.pid,
                bounds: Bounds {
                    lag: lag.clone(),
                    is_users: tested.throw_away.is_none(),
                    ..Bounds::default()
                },
            })
        };
        Ok([side(0)?, side(1)?])
    }
}

impl Start<'_> {
    /// Gives the server the settings of a side, and pauses the programs that do not run in its windows.
    ///
    /// # Errors
    /// The server refuses, or does not answer; a program to pause has ended.
    pub(super) fn switch_to(&mut self, side: usize) -> Result<(), Error> {
        for slowed in self.slowed.iter_mut().flatten() {
            slowed.end()?;
        }
        // Those of the other side run first: a program may be paused on both.
        for number in [1 - side, side] {
            if let Some(pauser) = &mut self.pausers[number] {
                pauser.set_paused(number == side)?;
            }
        }
        if let Some(switch) = &mut self.switch {
            switch.switch_to(side, self.runtime)?;
        }
        match &mut self.slowed[side] {
            Some(slowed) => slowed.begin(),
            None => Ok(()),
        }
    }

    /// Ends the start: connections, settings, servers of whyso's own. Returns whether all settings are as they were.
    pub(super) fn end(self) -> bool {
        let Start { runtime, listener, servers, sides, switch, pausers, slowed, replicas } = self;
        drop((pausers, slowed, replicas));
        drop(sides);
        runtime.block_on(close(switch));
        let mut is_back = true;
        for tested in servers {
            is_back &= runtime.block_on(put_everything_back(tested, listener));
        }
        is_back
    }
}

/// Settings of a side that are given to each of its sessions.
fn session(side: &AbSide, switch: Option<&Switch>) -> Vec<(String, String)> {
    let of_session = |name: &&str| switch.is_none_or(|switch| !switch.has(name));
    let names = names_of(&[&side.set]).into_iter().filter(of_session);
    names.filter_map(|name| Some((name.to_string(), value_of(&side.set, name)?.to_string()))).collect()
}

async fn close(switch: Option<Switch>) {
    if let Some(switch) = switch {
        switch.close().await;
    }
}

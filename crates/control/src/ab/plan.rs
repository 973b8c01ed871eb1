//! What was asked of a comparison, checked before anything starts.

use std::time::Duration;

use whyso_hub::{LoadRequest, LoadSource};
use whyso_load::{EngineKind, Limits, Think, Tuning};
use whyso_server::Neighbour;
use whyso_server::dataset::Dataset;
use whyso_workload::Workload;

use super::switch::{names_of, value_of};
use crate::Error;
use crate::hosts::HostsPlan;
use crate::plan::{check_data_set, check_users};
use crate::server_plan::ServerPlan;
use crate::source::{Source, WorkloadContext};

/// Shortest and longest window that can be asked for.
const WINDOWS_S: std::ops::RangeInclusive<f64> = 0.2..=30.0;
/// Shortest and longest comparison that can be asked for.
const LENGTHS_S: std::ops::RangeInclusive<f64> = 10.0..=86_400.0;
const STARTS_MAX: u32 = 100;
/// Per cent of the time for which a slowed server may run.
const SPEEDS: std::ops::RangeInclusive<u8> = 10..=95;
/// Characters of a statement in the name of a side.
const QUERY_CHARS: usize = 60;

/// Two sides, and how long they may alternate.
#[derive(Clone, Debug)]
pub struct AbPlan {
    /// The baseline, and what is compared with it.
    pub sides: [AbSide; 2],
    pub seed: u64,
    /// Length of a window without what is cut off; `None`: chosen.
    pub window: Option<Duration>,
    /// Longest that the sides alternate, all starts together. It ends earlier when the answer is sure.
    pub length: Duration,
    /// Starts of the servers that are compared; `None`: chosen by the design.
    pub starts: Option<u32>,
    /// The smallest ratio that matters, above 1.
    pub matters: f64,
    /// It ends once it is sure on which side of this ratio the truth lies; `None`: once it is known how much the sides differ.
    pub threshold: Option<f64>,
    /// How long slow transactions are known to take: one in a hundred takes longer. Zero where nothing is known.
    pub slow: Duration,
    pub client_cpus: Option<String>,
    pub allow_writes: Option<String>,
    /// Replicas whose lag ends the comparison.
    pub replicas: Vec<String>,
    /// Hosts that send the load, and the server's own, whose agent has to allow experiments; `None`: this one alone.
    pub hosts: Option<HostsPlan>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct AbSide {
    /// Without the settings of `set`.
    pub server: ServerPlan,
    pub source: Source,
    /// Options of the workload, (name, value).
    pub options: Vec<(String, String)>,
    /// Its tables. Two sides that differ in it are on two servers.
    pub data: Dataset,
    pub users: u32,
    /// How long a user pauses between transactions.
    pub think: Think,
    pub set: Vec<(String, String)>,
    /// Statements that are executed once its server has its data, such as one that adds an index. Only a server of whyso's own.
    pub prepare: Vec<String>,
    /// Kinds of statements that its transactions do not send.
    pub left_out: Vec<String>,
    /// Programs of others that are paused during its windows.
    pub paused: Vec<Neighbour>,
    /// Speed at which its server computes, in per cent of what it is. Only a server of whyso's own.
    pub cpu_speed: Option<u8>,
    /// Speed of its server's storage, in per cent of what it is. Only a server of whyso's own.
    pub storage_speed: Option<u8>,
}

/// What makes a side from another one; the rest stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideChange {
    pub server: Option<ServerPlan>,
    pub source: Option<Source>,
    pub options: Vec<(String, String)>,
    pub tables: Option<u32>,
    pub rows: Option<u64>,
    pub table_engine: Option<String>,
    pub users: Option<u32>,
    pub set: Vec<(String, String)>,
    pub prepare: Vec<String>,
    pub left_out: Vec<String>,
    pub paused: Vec<Neighbour>,
    pub cpu_speed: Option<u8>,
    pub storage_speed: Option<u8>,
}

impl SideChange {
    /// The side that differs from `baseline` by self.
    pub fn apply(&self, baseline: &AbSide) -> AbSide {
        let mut side = baseline.clone();
        replace(&mut side.set, &self.set);
        replace(&mut side.options, &self.options);
        side.data.tables = self.tables.unwrap_or(side.data.tables);
        side.data.rows = self.rows.unwrap_or(side.data.rows);
        if let Some(engine) = &self.table_engine {
            side.data.engine.clone_from(engine);
        }
        side.users = self.users.unwrap_or(side.users);
        side.prepare.extend_from_slice(&self.prepare);
        side.left_out.extend_from_slice(&self.left_out);
        side.paused.extend_from_slice(&self.paused);
        side.cpu_speed = self.cpu_speed.or(side.cpu_speed);
        side.storage_speed = self.storage_speed.or(side.storage_speed);
        side.server = self.server.clone().unwrap_or(side.server);
        side.source = self.source.clone().unwrap_or(side.source);
        side
    }
}

/// Later values in the place of earlier ones.
fn replace(pairs: &mut Vec<(String, String)>, by: &[(String, String)]) {
    for (name, value) in by {
        pairs.retain(|(known, _)| known != name);
        pairs.push((name.clone(), value.clone()));
    }
}

impl AbSide {
    pub(super) fn is_slowed(&self) -> bool {
        self.cpu_speed.is_some() || self.storage_speed.is_some()
    }

    /// What distinguishes it from the other side, as short as it can be said.
    pub(crate) fn difference_from(&self, other: &AbSide) -> String {
        let mut parts = Vec::new();
        if self.server != other.server {
            parts.push(self.server.difference_from(&other.server));
        }
        if self.source != other.source {
            parts.push(match &self.source {
                Source::Query { sql, .. } => beginning(sql),
                source => source.name().to_string(),
            });
        }
        for (name, value) in self.options.iter().filter(|option| !other.options.contains(option)) {
            parts.push(format!("{name}={value}"));
        }
        if self.data.tables != other.data.tables {
            parts.push(whyso_words::count(u64::from(self.data.tables), "table"));
        }
        if self.data.rows != other.data.rows {
            parts.push(whyso_words::count(self.data.rows, "row"));
        }
        if self.data.engine != other.data.engine {
            parts.push(self.data.engine.clone());
        }
        if self.users != other.users {
            parts.push(whyso_words::users(self.users));
        }
        for sql in self.prepare.iter().filter(|sql| !other.prepare.contains(sql)) {
            parts.push(format!("after {}", beginning(sql)));
        }
        for kind in self.left_out.iter().filter(|kind| !other.left_out.contains(kind)) {
            parts.push(format!("without {kind}"));
        }
        for neighbour in self.paused.iter().filter(|neighbour| !other.paused.contains(neighbour)) {
            parts.push(format!("without {neighbour}"));
        }
        if let Some(percent) = self.cpu_speed.filter(|_| self.cpu_speed != other.cpu_speed) {
            parts.push(format!("CPUs at {percent} % of their speed"));
        }
        if let Some(percent) = self.storage_speed.filter(|_| self.storage_speed != other.storage_speed) {
            parts.push(format!("storage at {percent} % of its speed"));
        }
        for name in names_of(&[&self.set, &other.set]) {
            match (value_of(&self.set, name), value_of(&other.set, name)) {
                (Some(value), other) if Some(value) != other => {
                    parts.push(format!("{name}={}", whyso_watch::mask_variable(name, value)));
                }
                (None, Some(_)) => parts.push(format!("{name} as it is")),
                _ => {}
            }
        }
        if parts.is_empty() {
            parts.push("the load as it is".to_string());
        }
        parts.join(" ")
    }
}

impl AbPlan {
    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// One sentence for the first thing that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        check_users(&self.sides.each_ref().map(|side| side.users))?;
        for Dataset { tables, rows, .. } in self.sides.iter().map(|side| &side.data) {
            check_data_set(*tables, *rows)?;
        }
        let wrong = |text: String| Err(Error::Plan(text));
        if self.sides[0] == self.sides[1] {
            return wrong(
                "both sides are the same: after --versus, say what differs, such as --set KNOB=VALUE, --query SQL or --server NAME"
                    .to_string(),
            );
        }
        if self.sides.iter().any(|side| !side.prepare.is_empty() && !side.server.is_own()) {
            return wrong(
                "--sql changes data, and whyso changes those of its own servers only: leave out --dsn, or name two servers of yours that differ"
                    .to_string(),
            );
        }
        let [baseline, variant] = &self.sides;
        self.check_hosts()?;
        if baseline.data != variant.data && !(baseline.server.is_own() && variant.server.is_own()) {
            return wrong(
                "other tables, rows or engines need a server of their own for each side, and whyso fills its own only: leave out --dsn"
                    .to_string(),
            );
        }
        for side in &self.sides {
            let speeds = [("--cpu-speed", side.cpu_speed), ("--storage-speed", side.storage_speed)];
            for (option, percent) in speeds.into_iter().filter_map(|(option, speed)| Some((option, speed?))) {
                if !side.server.is_own() {
                    return wrong(format!(
                        "{option}: whyso slows servers of its own only, so leave out --dsn"
                    ));
                }
                if !SPEEDS.contains(&percent) {
                    return wrong(format!("{option} is out of range: give 10 to 95 per cent, such as 80"));
                }
            }
        }
        if self.window.is_some_and(|window| !WINDOWS_S.contains(&window.as_secs_f64())) {
            return wrong("--window is out of range: give 200ms to 30s".to_string());
        }
        if !LENGTHS_S.contains(&self.length.as_secs_f64()) {
            return wrong("--seconds is out of range: give 10s or more, such as 60s".to_string());
        }
        if self.starts.is_some_and(|starts| !(1..=STARTS_MAX).contains(&starts)) {
            return wrong(format!("--starts is out of range: give 1 to {STARTS_MAX}"));
        }
        if !(self.matters > 1.0 && self.matters <= 2.0) {
            return wrong(format!(
                "--matters {} is no difference that can matter: give a ratio above 1, such as 1.02 for 2 %",
                self.matters
            ));
        }
        Ok(())
    }

    fn check_hosts(&self) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::Plan(what.to_string()));
        match &self.hosts {
            None => Ok(()),
            Some(_) if self.sides.iter().any(|side| side.server.is_own()) => wrong(
                "other hosts can't reach a server of whyso's own, which has a socket only: name a server of their network by --dsn",
            ),
            Some(hosts) if hosts.has_generators() && !self.is_one_server() => wrong(
                "a load of several hosts goes to one server: compare settings or statements on it, or leave out load in the file of --hosts",
            ),
            Some(hosts) if hosts.has_generators() && self.client_cpus.is_some() => wrong(
                "--client-cpus is about a load of this machine, and other hosts send it: start their agents on those CPUs",
            ),
            Some(_) => Ok(()),
        }
    }

    /// Whether settings of the server differ between the sides.
    pub(super) fn changes_server(&self) -> bool {
        self.sides.iter().any(|side| !side.set.is_empty())
    }

    /// What all hosts are asked to send for a side, to the server of this identity. `session`: settings of its sessions.
    pub(super) fn load_request(
        &self,
        side: &AbSide,
        server: String,
        session: Vec<(String, String)>,
    ) -> LoadRequest {
        LoadRequest {
            target: String::new(),
            server: Some(server),
            source: LoadSource::from(&side.source),
            options: side.options.clone(),
            session,
            left_out: side.left_out.clone(),
            tables: side.data.tables,
            rows: side.data.rows,
            users_max: side.users,
            seed: self.seed,
            engine: EngineKind::Auto,
            loops: None,
            tuning: Tuning::default(),
            reconnect: Limits::default().reconnect,
        }
    }

    /// The workload of each side.
    pub(super) fn workloads(&self) -> Result<[Workload; 2], Error> {
        let servers = self.sides.each_ref().map(|side| side.server.clone());
        let workload = |side: &AbSide| {
            let mut workload = side.source.workload(&WorkloadContext {
                options: &side.options,
                tables: side.data.tables,
                rows: side.data.rows,
                servers: &servers,
                allow_writes: self.allow_writes.as_deref(),
            })?;
            for kind in &side.left_out {
                workload.leave_out(kind)?;
            }
            Ok::<_, Error>(workload)
        };
        let [baseline, variant] = &self.sides;
        Ok([workload(baseline)?, workload(variant)?])
    }

    /// Whether both sides can be had on one server: nothing but settings and what is sent differs.
    pub(super) fn is_one_server(&self) -> bool {
        let [baseline, variant] = &self.sides;
        baseline.server == variant.server
            && baseline.prepare == variant.prepare
            && baseline.data == variant.data
    }

    /// What distinguishes the sides, as short as it can be said.
    pub fn names(&self) -> [String; 2] {
        let [baseline, variant] = &self.sides;
        [baseline.difference_from(variant), variant.difference_from(baseline)]
    }
}

/// As much of a statement as the name of a side needs.
fn beginning(sql: &str) -> String {
    match sql.char_indices().nth(QUERY_CHARS) {
        Some((end, _)) => format!("{}…", sql[..end].trim_end()),
        None => sql.to_string(),
    }
}

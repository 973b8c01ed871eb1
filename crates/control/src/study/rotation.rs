//! Cells that take turns in short windows, each round in an order of its own: on servers that all stand ready, or on one that is switched.

use std::time::Duration;
use tokio::runtime::Runtime;

use whyso_load::{Histogram, LoadSpec};
use whyso_random::SplitMix64;
use whyso_server::CpuSet;
use whyso_server::dataset::Dataset;
use whyso_study::{DUET_CUT, DUET_WINDOW, LevelRecord};
use whyso_workload::Workload;

use super::measurement::Measurement;
use crate::ab::guard::Bounds;
use crate::ab::switch::{Switch, slow_name, value_of};
use crate::ab::window::{Lengths, Side, Window, window};
use crate::engine::Engine;
use crate::facts::server_now;
use crate::load::bring_data;
use crate::login::AskPassword;
use crate::progress::{Listener, News};
use crate::put_back::put_everything_back;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::server_plan::ServerPlan;
use crate::server_setup::{ServerNeeds, prepare_server};
use crate::server_under_test::ServerUnderTest;
use crate::source::WorkloadContext;
use crate::{Error, Plan, Stop};

const LENGTHS: Lengths = Lengths { cut: DUET_CUT, measured: DUET_WINDOW, begins_within: Duration::ZERO };

/// One cell, and what is known of its server.
struct Ready {
    /// Position of its server among those of the rotation.
    server: usize,
    workload: Workload,
    version: String,
    pid: Option<u32>,
}

/// Cells that take turns, their servers, and what is switched between them.
struct Rotation<'a> {
    plans: &'a [Plan],
    runtime: Runtime,
    listener: &'a dyn Listener,
    stop: &'a Stop,
    servers: Vec<ServerUnderTest>,
    ready: Vec<Ready>,
    switch: Option<Switch>,
}

/// Carries out the cells of `plans` together, in rounds that warm up and rounds that are measured. Returns what was measured of each, in their
/// order. `is_switched`: on one server, whose settings are switched; else each cell has a server of its own.
pub(super) fn rotate(
    plans: &[Plan],
    is_switched: bool,
    rounds: (u32, u32),
    seed: u64,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Vec<Measurement>, Error> {
    let (servers, ready) = (Vec::new(), Vec::new());
    let mut rotation = Rotation { plans, runtime: runtime()?, listener, stop, servers, ready, switch: None };
    let prepared = match is_switched {
        true => rotation.prepare_one(ask_password),
        false => rotation.prepare_each(ask_password),
    };
    let done = prepared.and_then(|()| rotation.measure(rounds, seed));
    rotation.end();
    done
}

impl Rotation<'_> {
    /// A server for each cell.
    fn prepare_each(&mut self, ask_password: &AskPassword) -> Result<(), Error> {
        for plan in self.plans {
            let mut workloads = [workload_of(plan)?];
            self.prepare_server(plan, &plan.server, &workloads, ask_password)?;
            self.bring_data(&mut workloads)?;
            let [workload] = workloads;
            self.add(workload)?;
        }
        Ok(())
    }

    /// One server for all cells, without the settings in which they differ.
    fn prepare_one(&mut self, ask_password: &AskPassword) -> Result<(), Error> {
        let Some(first) = self.plans.first() else { return Ok(()) };
        let sets: Vec<&[(String, String)]> = self.plans.iter().map(|plan| plan.server.settings()).collect();
        let (all, own) = divided(&sets);
        let own: Vec<&[(String, String)]> = own.iter().map(Vec::as_slice).collect();
        if let Some(name) = slow_name(&own) {
            return Err(Error::Plan(format!(
                "{name} takes effect over minutes, so a server can't be switched between its values in windows of a second: give design = \"duet\" \
                 or \"blocks\""
            )));
        }
        let mut workloads = self.plans.iter().map(workload_of).collect::<Result<Vec<Workload>, Error>>()?;
        self.prepare_server(first, &first.server.with_only(&all), &workloads, ask_password)?;
        self.bring_data(&mut workloads)?;
        let switch = self.runtime.block_on(Switch::prepare(&self.servers[0], &own, &mut workloads));
        self.switch = switch.map_err(|error| match error {
            Error::Server(whyso_server::Error::ReadOnlyKnob { name }) => Error::Plan(format!(
                "{name} can't be changed while the server runs: give design = \"duet\" or \"blocks\""
            )),
            other => other,
        })?;
        workloads.into_iter().try_for_each(|workload| self.add(workload))
    }

    fn prepare_server(
        &mut self,
        plan: &Plan,
        server: &ServerPlan,
        workloads: &[Workload],
        ask_password: &AskPassword,
    ) -> Result<(), Error> {
        let needs = ServerNeeds {
            server,
            dataset: Dataset {
                tables: plan.tables,
                rows: plan.rows,
                seed: plan.seed,
                engine: plan.table_engine.clone(),
            },
            data_wanted: workloads.iter().any(|workload| workload.requirements().tables > 0),
            writes: workloads.iter().any(|workload| !workload.only_reads() || workload.setup.is_some()),
            // Each cell has connections of its own.
            users_max: plan.users.iter().copied().max().unwrap_or(1) * workloads.len() as u32,
            allow_writes: None,
            pfs: plan.pfs.as_ref(),
            cold: false,
            can_be_slowed: false,
        };
        self.servers.push(prepare_server(&self.runtime, &needs, self.listener, self.stop, ask_password)?);
        Ok(())
    }

    /// On the server that was prepared last.
    fn bring_data(&self, workloads: &mut [Workload]) -> Result<(), Error> {
        let last = &self.servers[self.servers.len().saturating_sub(1)..];
        self.runtime.block_on(bring_data(last, workloads, self.listener))
    }

    /// A cell on the server that was prepared last.
    fn add(&mut self, workload: Workload) -> Result<(), Error> {
        let server = self.servers.len().saturating_sub(1);
        let tested = &self.servers[server];
        let facts = server_now(&tested.dsn, tested.throw_away.is_some(), tested.pid, &self.runtime)?;
        self.ready.push(Ready { server, workload, version: facts.version, pid: tested.pid });
        Ok(())
    }

    fn measure(&mut self, (warm, measured): (u32, u32), seed: u64) -> Result<Vec<Measurement>, Error> {
        let Some(first) = self.plans.first() else { return Ok(Vec::new()) };
        let mut random = SplitMix64::new(seed);
        let measurement =
            |one: &Ready| Measurement { version: one.version.clone(), ..Measurement::default() };
        let mut found: Vec<Measurement> = self.ready.iter().map(measurement).collect();
        for &users in &first.users {
            self.listener.hear(News::Step(&format!(
                "{}: {} cells take turns for {} rounds",
                whyso_words::users(users),
                self.ready.len(),
                warm + measured
            )));
            let mut sides = self
                .plans
                .iter()
                .zip(&self.ready)
                .map(|(plan, one)| connect(plan, one, &self.servers[one.server], users))
                .collect::<Result<Vec<Side>, Error>>()?;
            let mut sums: Vec<LevelSum> = sides.iter().map(|_| LevelSum::default()).collect();
            for round in 0..warm + measured {
                let mut order: Vec<usize> = (0..sides.len()).collect();
                random.shuffle(&mut order);
                for cell in order {
                    if let Some(switch) = &mut self.switch {
                        switch.switch_to(cell, &self.runtime)?;
                    }
                    let Some(one) = window(&mut sides[cell], LENGTHS, self.stop)? else {
                        return Err(Error::Interrupted);
                    };
                    if one.result.transactions == 0 {
                        return Err(LENGTHS.too_short());
                    }
                    found[cell].measured_s += LENGTHS.whole().as_secs_f64();
                    if round >= warm {
                        sums[cell].add(&one);
                    }
                }
            }
            for (measurement, sum) in found.iter_mut().zip(sums) {
                measurement.levels.push(sum.level(users));
            }
        }
        Ok(found)
    }

    /// Puts everything back.
    fn end(self) {
        let Rotation { runtime, listener, servers, switch, .. } = self;
        if let Some(switch) = switch {
            runtime.block_on(switch.close());
        }
        for tested in servers {
            runtime.block_on(put_everything_back(tested, listener));
        }
        runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    }
}

fn workload_of(plan: &Plan) -> Result<Workload, Error> {
    plan.source.workload(&WorkloadContext {
        options: &plan.options,
        tables: plan.tables,
        rows: plan.rows,
        servers: std::slice::from_ref(&plan.server),
        allow_writes: None,
    })
}

/// Names and values.
type SettingPairs = Vec<(String, String)>;

/// The settings that all have alike, and those that each has besides.
fn divided(sets: &[&[(String, String)]]) -> (SettingPairs, Vec<SettingPairs>) {
    let is_everywhere =
        |pair: &&(String, String)| sets.iter().all(|set| value_of(set, &pair.0) == Some(pair.1.as_str()));
    let all: SettingPairs =
        sets.first().copied().unwrap_or_default().iter().filter(is_everywhere).cloned().collect();
    let own = |set: &&[(String, String)]| set.iter().filter(|pair| !all.contains(pair)).cloned().collect();
    let each = sets.iter().map(own).collect();
    (all, each)
}

fn connect(plan: &Plan, one: &Ready, tested: &ServerUnderTest, users: u32) -> Result<Side, Error> {
    let mut spec = LoadSpec::new(tested.target(), users, plan.seed);
    let cpus = plan.client_cpus.as_deref().map(CpuSet::resolve).transpose()?;
    spec.cpus = cpus.map(|cpus| cpus.cpus().to_vec());
    let engine = Engine::open(&spec, &one.workload)?;
    let bounds = if plan.server.is_own() { Bounds::default() } else { Bounds::of_users_server() };
    Ok(Side {
        engine,
        users,
        think: plan.think,
        rate_per_s: None,
        slow: Duration::ZERO,
        pid: one.pid,
        bounds,
    })
}

/// The windows of one cell at one number of users.
#[derive(Default)]
struct LevelSum {
    seconds: f64,
    transactions: u64,
    queries: u64,
    errors: u64,
    server_cpu_s: Option<f64>,
    response: Histogram,
    /// Transactions per second of each window.
    rates: Vec<f64>,
    invalid_why: Option<String>,
}

impl LevelSum {
    fn add(&mut self, window: &Window) {
        let result = &window.result;
        self.seconds += result.seconds;
        self.transactions += result.transactions;
        self.queries += window.queries;
        self.errors += result.errors;
        self.server_cpu_s =
            result.server_cpu_s.map(|server_cpu_s| self.server_cpu_s.unwrap_or(0.0) + server_cpu_s);
        self.response.merge(&window.response);
        self.rates.push(result.transactions as f64 / result.seconds);
        self.invalid_why = self.invalid_why.take().or_else(|| window.invalid_why.clone());
    }

    fn level(self, users: u32) -> LevelRecord {
        let transactions = self.transactions as f64;
        let mut measures = std::collections::BTreeMap::new();
        let mut put = |name: &str, value: f64| {
            if value.is_finite() {
                measures.insert(name.to_string(), value);
            }
        };
        put("transactions_per_s", transactions / self.seconds);
        put("queries_per_s", self.queries as f64 / self.seconds);
        put("latency_mean_ms", self.response.mean_ns() / 1e6);
        put("latency_p99_ms", self.response.quantile_ns(0.99) as f64 / 1e6);
        put("errors_percent", 100.0 * self.errors as f64 / (transactions + self.errors as f64));
        if let Some(server_cpu_s) = self.server_cpu_s {
            put("server_cpus", server_cpu_s / self.seconds);
            put("server_cpu_us_per_transaction", server_cpu_s * 1e6 / transactions);
        }
        // By Student's t over the logarithms, as for the starts of a cell.
        let spread = whyso_inference::spread(&self.rates);
        let half_width_percent = spread
            .and_then(|spread| Some((spread.mean95?, spread.mean)))
            .map(|([low, high], mean)| 100.0 * (high / mean - 1.0).max(1.0 - low / mean));
        LevelRecord {
            users,
            measures,
            half_width_percent,
            invalid_why: self.invalid_why.unwrap_or_default(),
            ..LevelRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_explain::ab::WindowResult;

    #[test]
    fn what_all_cells_have_is_not_switched() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let (one, other) = (pairs(&[("a", "1"), ("b", "2")]), pairs(&[("a", "1"), ("b", "3"), ("c", "4")]));
        let (all, each) = divided(&[&one, &other]);
        assert_eq!(all, pairs(&[("a", "1")]));
        assert_eq!(each, [pairs(&[("b", "2")]), pairs(&[("b", "3"), ("c", "4")])]);
        assert_eq!(divided(&[]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn windows_add_up_to_a_level() {
        let mut sum = LevelSum::default();
        for (transactions, ms) in [(100, 2), (300, 4)] {
            let mut response = Histogram::new();
            (0..transactions).for_each(|_| response.record(ms * 1_000_000));
            let result = WindowResult {
                seconds: 1.0,
                transactions,
                errors: 10,
                server_cpu_s: Some(0.5),
                ..WindowResult::default()
            };
            let queries = 2 * transactions;
            sum.add(&Window { result, bins_100ms: Vec::new(), queries, response, invalid_why: None });
        }
        let level = sum.level(8);
        let measure = |name: &str| level.measures[name];
        assert_eq!(measure("transactions_per_s"), 200.0);
        assert_eq!(measure("queries_per_s"), 400.0);
        assert!((measure("latency_mean_ms") - 3.5).abs() < 0.1, "{}", measure("latency_mean_ms"));
        assert!((measure("latency_p99_ms") - 4.0).abs() < 0.2);
        assert!((measure("errors_percent") - 100.0 * 20.0 / 420.0).abs() < 1e-9);
        assert_eq!(measure("server_cpus"), 0.5);
        assert_eq!(measure("server_cpu_us_per_transaction"), 2500.0);
        assert!(
            level.half_width_percent.is_some_and(|percent| percent > 50.0),
            "two windows that differ by a factor of three"
        );
        assert_eq!((level.users, level.invalid_why.as_str()), (8, ""));
    }
}

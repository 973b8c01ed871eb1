//! Cells whose servers stand ready at the same time. The load takes turns between them in short windows, each round in an order of its own.

use tokio::runtime::Runtime;
use whyso_load::{Histogram, LoadSpec};
use whyso_random::SplitMix64;
use whyso_server::CpuSet;
use whyso_server::dataset::Dataset;
use whyso_study::{DUET_CUT, DUET_WINDOW, LevelRecord};
use whyso_workload::Workload;

use super::measurement::Measurement;
use crate::ab::window::{Lengths, Side, Window, window};
use crate::engine::Engine;
use crate::facts::server_now;
use crate::load::bring_data;
use crate::login::AskPassword;
use crate::progress::{Listener, News};
use crate::put_back::put_everything_back;
use crate::run::prepare_server;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::server_setup::ServerNeeds;
use crate::server_under_test::ServerUnderTest;
use crate::source::WorkloadContext;
use crate::{Error, Plan, Stop};

const LENGTHS: Lengths = Lengths { cut: DUET_CUT, measured: DUET_WINDOW };

/// One cell, and what is known of its server.
struct Ready {
    tested: ServerUnderTest,
    workload: Workload,
    version: String,
    pid: Option<u32>,
}

/// Carries out the cells of `plans` together, in rounds that warm up and rounds that are measured. Returns what was measured of each, in their order.
pub(super) fn rotate(
    plans: &[Plan],
    rounds: (u32, u32),
    seed: u64,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Vec<Measurement>, Error> {
    let runtime = runtime()?;
    let mut ready = Vec::new();
    let done = plans
        .iter()
        .try_for_each(|plan| {
            ready.push(prepare(plan, &runtime, listener, stop, ask_password)?);
            Ok(())
        })
        .and_then(|()| measure(plans, &ready, rounds, seed, listener, stop));
    for one in ready {
        runtime.block_on(put_everything_back(one.tested, listener));
    }
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    done
}

fn prepare(
    plan: &Plan,
    runtime: &Runtime,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Ready, Error> {
    let mut workload = plan.source.workload(&WorkloadContext {
        options: &plan.options,
        tables: plan.tables,
        rows: plan.rows,
        servers: std::slice::from_ref(&plan.server),
        allow_writes: None,
    })?;
    let needs = ServerNeeds {
        server: &plan.server,
        dataset: Dataset {
            tables: plan.tables,
            rows: plan.rows,
            seed: plan.seed,
            engine: plan.table_engine.clone(),
        },
        data_wanted: workload.requirements().tables > 0,
        writes: !workload.only_reads() || workload.setup.is_some(),
        users_max: plan.users.iter().copied().max().unwrap_or(1),
        allow_writes: None,
        pfs: plan.pfs.as_ref(),
        cold: false,
    };
    let tested = prepare_server(runtime, &needs, listener, stop, ask_password)?;
    let tested = [tested];
    let known = runtime
        .block_on(bring_data(&tested, std::slice::from_mut(&mut workload), listener))
        .and_then(|()| server_now(&tested[0].dsn, true, tested[0].pid, runtime));
    let [tested] = tested;
    match known {
        Ok(facts) => Ok(Ready { tested, workload, version: facts.version, pid: facts.pid }),
        Err(error) => {
            runtime.block_on(put_everything_back(tested, listener));
            Err(error)
        }
    }
}

fn measure(
    plans: &[Plan],
    ready: &[Ready],
    (warm, measured): (u32, u32),
    seed: u64,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Vec<Measurement>, Error> {
    let Some(first) = plans.first() else { return Ok(Vec::new()) };
    let mut random = SplitMix64::new(seed);
    let mut found: Vec<Measurement> = ready
        .iter()
        .map(|one| Measurement { version: one.version.clone(), ..Measurement::default() })
        .collect();
    for &users in &first.users {
        listener.hear(News::Step(&format!(
            "{}: {} servers take turns for {} rounds",
            whyso_words::users(users),
            ready.len(),
            warm + measured
        )));
        let mut sides = plans
            .iter()
            .zip(ready)
            .map(|(plan, one)| connect(plan, one, users))
            .collect::<Result<Vec<Side>, Error>>()?;
        let mut sums: Vec<LevelSum> = sides.iter().map(|_| LevelSum::default()).collect();
        for round in 0..warm + measured {
            let mut order: Vec<usize> = (0..sides.len()).collect();
            random.shuffle(&mut order);
            for cell in order {
                let Some(one) = window(&mut sides[cell], LENGTHS, stop)? else {
                    return Err(Error::Interrupted);
                };
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

fn connect(plan: &Plan, one: &Ready, users: u32) -> Result<Side, Error> {
    let mut spec = LoadSpec::new(one.tested.target(), users, plan.seed);
    let cpus = plan.client_cpus.as_deref().map(CpuSet::resolve).transpose()?;
    spec.cpus = cpus.map(|cpus| cpus.cpus().to_vec());
    Ok(Side { engine: Engine::open(&spec, &one.workload)?, users, rate_per_s: None, pid: one.pid })
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

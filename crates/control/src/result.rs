//! From what the load gives to what the recording holds.

use whyso_explain::slo::Requirement;
use whyso_load::{
    CONNECT, ClientUse, EndpointOutcome, EngineUse, GeneratorOutcome, Histogram, Interval, IntervalRow,
    KindOutcome, LevelOutcome, Times, TransactionOutcome, Tuning, UserTime,
};
use whyso_model::Pacing;
use whyso_record::data::LoadInterval;
use whyso_record::run::{
    ArrivalsResult, Client, EndpointResult, EngineResult, GeneratorResult, InFlight, Latency, LevelResult,
    OutageResult, PercentileResult, SloResult, StatementResult, TransactionResult, UserSeconds,
};

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;
/// Share of requests that may fail where a service level is held.
const ERRORS_SHARE_MAX: f64 = 0.01;

/// What a level's result has in addition to the measured numbers.
pub(crate) struct LevelRequest<'a> {
    pub(crate) workload: &'a str,
    /// Transactions due per second, if the rate is constant.
    pub(crate) rate_per_s: Option<f64>,
    /// When transactions began.
    pub(crate) pacing: &'a Pacing,
    /// Percentiles, above 0, at most 100.
    pub(crate) percentiles: &'a [f64],
    pub(crate) slo: &'a [Requirement],
    /// Whether too many errors ([`ERRORS_SHARE_MAX`]) break a service level too. Errors of SQL end a level, or are retried.
    pub(crate) bounds_errors: bool,
}

/// Returns the result of one level, only of its measured window.
pub(crate) fn level_result(outcome: &LevelOutcome, request: &LevelRequest<'_>) -> LevelResult {
    let seconds = (outcome.window_end_ns - outcome.window_begin_ns) as f64 / NS_PER_S;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let errors_by_code =
        outcome.errors_by_code.iter().map(|(code, count)| (code.to_string(), *count)).collect();
    let lost = outcome.lost_ns_by_code.iter();
    let response = Times { ended: &outcome.response, in_flight: &outcome.in_flight.ages };
    let percentiles = request.percentiles.iter().map(|&percentile| {
        let latency = response.quantile(percentile / 100.0);
        PercentileResult {
            percentile,
            latency_ms: latency.ns as f64 / NS_PER_MS,
            service_ms: outcome.service.quantile_ns(percentile / 100.0) as f64 / NS_PER_MS,
            is_lower_bound: latency.is_lower_bound,
        }
    });
    LevelResult {
        seconds,
        transactions: outcome.transactions,
        queries: outcome.queries,
        errors: outcome.errors_by_code.values().sum(),
        errors_by_code,
        retries: outcome.retries,
        transactions_per_s: per_second(outcome.transactions),
        queries_per_s: per_second(outcome.queries),
        latency_ms: latency_with_ages_ms(response),
        service_ms: latency_ms(&outcome.service),
        by_transaction: outcome
            .by_transaction
            .iter()
            .map(|transaction| transaction_result(transaction, &per_second))
            .collect(),
        by_statement: outcome.kinds.iter().map(statement_result).collect(),
        client: client(&outcome.client, outcome.queries, outcome.invalid_why()),
        bins_100ms: outcome.bins_100ms.clone(),
        workload: request.workload.to_string(),
        pacing: request.pacing.clone(),
        percentiles: percentiles.collect(),
        retried_ms: latency_ms(&outcome.retried),
        lost_ms_by_code: lost.map(|(code, ns)| (code.to_string(), *ns as f64 / NS_PER_MS)).collect(),
        reconnects: outcome.reconnects,
        engine: engine_result(&outcome.engine),
        rate_per_s: request.rate_per_s,
        arrivals: outcome.arrivals.as_ref().map(|arrivals| ArrivalsResult {
            due: arrivals.due,
            due_per_s: per_second(arrivals.due),
            backlog_begin: arrivals.backlog_begin,
            backlog_end: arrivals.backlog_end,
            backlog_max: arrivals.backlog_max,
            held: whyso_explain::rate_was_held(arrivals.due, arrivals.backlog_begin, arrivals.backlog_end),
            late_ms: latency_ms(&arrivals.late),
        }),
        endpoints: outcome.endpoints.iter().map(|endpoint| endpoint_result(endpoint, &per_second)).collect(),
        generators: outcome.generators.iter().map(|part| generator_result(part, &per_second)).collect(),
        client_limit: outcome.client_limit.clone().unwrap_or_default(),
        slo: slo_results(outcome, request),
        intervals_lost: outcome.intervals_lost,
        sessions: None,
        in_flight: Some(InFlight {
            transactions: outcome.in_flight.ages.count(),
            oldest_ms: outcome.in_flight.ages.max_ns() as f64 / NS_PER_MS,
            not_begun: outcome.in_flight.not_begun,
            older_than_ended: outcome.in_flight.older_than_ended,
        }),
        user_seconds: Some(user_seconds(&outcome.user_time)),
    }
}

fn user_seconds(time: &UserTime) -> UserSeconds {
    let seconds = |ns: u64| ns as f64 / NS_PER_S;
    UserSeconds {
        ended: seconds(time.ended_ns),
        in_flight: seconds(time.in_flight_ns),
        outside: seconds(time.outside_ns),
        before: seconds(time.before_ns),
        paused: seconds(time.paused_ns),
    }
}

/// For how long the server had answered nothing when the window ended, in a sentence's end; `None` where it answered, or had
/// nothing to answer.
pub(crate) fn describe_silence(outcome: &LevelOutcome) -> Option<String> {
    let seconds = |ns: i64| ns as f64 / NS_PER_S;
    let since_ns = outcome.last_answer_ns.unwrap_or(outcome.begin_ns);
    let (ages, longest_ns) = (&outcome.in_flight.ages, outcome.response.max_ns());
    let silent_s = whyso_explain::silence_s(
        seconds(outcome.window_end_ns - since_ns),
        seconds(ages.max_ns() as i64),
        seconds(longest_ns as i64),
    )?;
    let due = match ages.count() {
        1 => "1 transaction was".to_string(),
        count => format!("{} were", whyso_words::count(count, "transaction")),
    };
    Some(format!(
        "the server answered nothing in the last {} of the window, and {due} due and unanswered when it ended",
        whyso_words::seconds(silent_s)
    ))
}

fn transaction_result(
    transaction: &TransactionOutcome,
    per_second: &dyn Fn(u64) -> f64,
) -> TransactionResult {
    let times = Times { ended: &transaction.response, in_flight: &transaction.in_flight };
    TransactionResult {
        kind: transaction.kind.clone(),
        transactions: transaction.response.count(),
        transactions_per_s: per_second(transaction.response.count()),
        latency_ms: latency_with_ages_ms(times),
        p90_ms: times.quantile(0.9).ns as f64 / NS_PER_MS,
        service_ms: latency_ms(&transaction.service),
    }
}

fn statement_result(kind: &KindOutcome) -> StatementResult {
    StatementResult {
        kind: kind.kind.clone(),
        count: kind.count,
        errors: kind.errors,
        rows: kind.rows,
        latency_ms: latency_with_ages_ms(Times { ended: &kind.latency, in_flight: &kind.in_flight }),
        error_ms: latency_ms(&kind.error_latency),
    }
}

fn engine_result(engine: &EngineUse) -> EngineResult {
    let Tuning { min_complete, scheduling_policy, busy_poll } = engine.tuning;
    EngineResult {
        kind: engine.kind.to_string(),
        loops: engine.loops,
        why: engine.why.clone(),
        min_complete: min_complete.map_or(0, |wait| wait.completions),
        min_complete_at_most_ns: min_complete.map_or(0, |wait| wait.at_most.as_nanos() as u64),
        busy_poll_ns: busy_poll.as_nanos() as u64,
        scheduling_policy: scheduling_policy.map_or(String::new(), |policy| policy.to_string()),
    }
}

fn client(used: &ClientUse, queries: u64, invalid_why: Option<String>) -> Client {
    let cpu_s = used.threads_cpu_ns as f64 / NS_PER_S;
    let saturated_why = invalid_why.unwrap_or_default();
    let mean_us = |sum_ns: u64, count: u64| if count > 0 { sum_ns as f64 / 1e3 / count as f64 } else { 0.0 };
    Client {
        cpu_s,
        cpu_us_per_query: mean_us(used.threads_cpu_ns, queries),
        max_rss_kb: used.max_rss_kb,
        saturated: !saturated_why.is_empty(),
        saturated_why,
        run_delay_s: used.run_delay_ns as f64 / NS_PER_S,
        answer_delay_us: mean_us(used.answer_delay_ns, used.answers),
        threads: used.threads,
        cpus_allowed: used.cpus_allowed,
    }
}

fn generator_result(part: &GeneratorOutcome, per_second: &dyn Fn(u64) -> f64) -> GeneratorResult {
    GeneratorResult {
        host: part.host.clone(),
        users: part.users,
        transactions: part.transactions,
        transactions_per_s: per_second(part.transactions),
        errors: part.errors,
        latency_ms: latency_ms(&part.response),
        client: client(&part.client, part.queries, part.invalid_why.clone()),
    }
}

fn endpoint_result(endpoint: &EndpointOutcome, per_second: &dyn Fn(u64) -> f64) -> EndpointResult {
    let outages = endpoint.outages.iter().map(|outage| OutageResult {
        begin_ns: outage.begin_ns,
        seconds: outage.end_ns.map(|end_ns| (end_ns - outage.begin_ns) as f64 / NS_PER_S),
    });
    EndpointResult {
        address: endpoint.address.clone(),
        transactions: endpoint.transactions,
        transactions_per_s: per_second(endpoint.transactions),
        errors: endpoint.errors,
        latency_ms: latency_ms(&endpoint.response),
        outages: outages.collect(),
    }
}

/// The times of all transactions, or of a kind of them or of statements.
fn times_of<'o>(outcome: &'o LevelOutcome, required: &Requirement) -> Option<Times<'o>> {
    if required.is_of_all() {
        return Some(Times { ended: &outcome.response, in_flight: &outcome.in_flight.ages });
    }
    let of_transaction =
        outcome.by_transaction.iter().find(|transaction| required.is_of_transaction(&transaction.kind));
    if let Some(transaction) = of_transaction {
        return Some(Times { ended: &transaction.response, in_flight: &transaction.in_flight });
    }
    let of_statement = outcome.kinds.iter().find(|transaction| transaction.kind == required.kind)?;
    Some(Times { ended: &of_statement.latency, in_flight: &of_statement.in_flight })
}

fn slo_results(outcome: &LevelOutcome, request: &LevelRequest<'_>) -> Vec<SloResult> {
    let mut results = Vec::new();
    for required in request.slo {
        let mut result = slo_result(outcome, required);
        result.held &= !request.bounds_errors || !has_many_errors(outcome, required);
        results.push(result);
    }
    results
}

/// Whether too many requests failed: of the requirement's page, or of all pages. Connections that could not be opened count for each.
fn has_many_errors(outcome: &LevelOutcome, required: &Requirement) -> bool {
    let is_many = |errors: u64, all: u64| errors as f64 > all as f64 * ERRORS_SHARE_MAX;
    let (mut errors, mut all) = (0, 0);
    for kind in &outcome.kinds {
        let counts = required.is_of_all() || required.is_of_transaction(&kind.kind);
        if kind.kind == CONNECT && is_many(kind.errors, outcome.queries + kind.errors) {
            return true;
        }
        if counts && kind.kind != CONNECT {
            errors += kind.errors;
            all += kind.count + kind.errors;
        }
    }
    is_many(errors, all)
}

/// What was measured of a requirement's kind, and whether it holds. What is in flight enters by its age.
fn slo_result(outcome: &LevelOutcome, required: &Requirement) -> SloResult {
    let times = times_of(outcome, required).filter(|times| !times.is_empty());
    let ms = |quantile: f64| times.map_or(0.0, |times| times.quantile(quantile).ns as f64 / NS_PER_MS);
    let measured = times.map(|times| match required.measure.quantile() {
        Some(quantile) => {
            let time = times.quantile(quantile);
            (time.ns as f64 / NS_PER_MS, time.is_lower_bound)
        }
        None => {
            let (mean_ns, is_lower_bound) = times.mean_ns();
            (mean_ns / NS_PER_MS, is_lower_bound)
        }
    });
    // Where nothing ended, an age that is no longer than what is required shows nothing.
    let has_ended = times.is_some_and(|times| times.ended.count() > 0);
    let measured = measured.filter(|(ms, _)| has_ended || *ms > required.required_ms);
    SloResult {
        kind: required.kind.clone(),
        measure: required.measure.to_string(),
        required_ms: required.required_ms,
        measured_ms: measured.map(|(ms, _)| ms),
        is_lower_bound: measured.is_some_and(|(_, is_lower_bound)| is_lower_bound),
        mean_ms: times.map_or(0.0, |times| times.ended.mean_ns() / NS_PER_MS),
        p90_ms: ms(0.9),
        max_ms: ms(1.0),
        held: required.holds(measured.map(|(ms, _)| ms)),
    }
}

/// Percentiles and max with what was in flight entered by its age; the mean is of what ended.
fn latency_with_ages_ms(times: Times<'_>) -> Latency {
    let quantile = |quantile: f64| times.quantile(quantile).ns as f64 / NS_PER_MS;
    Latency {
        mean: times.ended.mean_ns() / NS_PER_MS,
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: times.max().ns as f64 / NS_PER_MS,
        lower_bounds_above: times.unknown_above().map(|share| share * 100.0),
    }
}

fn latency_ms(histogram: &Histogram) -> Latency {
    let quantile = |quantile: f64| histogram.quantile_ns(quantile) as f64 / NS_PER_MS;
    Latency {
        mean: histogram.mean_ns() / NS_PER_MS,
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: histogram.max_ns() as f64 / NS_PER_MS,
        lower_bounds_above: None,
    }
}

/// Returns what the load did in an interval, one row per statement kind.
pub(crate) fn load_intervals(level: u32, interval: &Interval) -> Vec<LoadInterval> {
    interval.rows.iter().map(|row| load_interval(level, interval, row)).collect()
}

fn load_interval(level: u32, interval: &Interval, row: &IntervalRow) -> LoadInterval {
    let mut errors = Vec::new();
    for (code, count) in &row.errors {
        errors.push((code.to_string(), *count));
    }
    LoadInterval {
        begin_ns: interval.begin_ns,
        end_ns: interval.end_ns,
        level,
        measured: interval.measured,
        statement: row.statement.clone(),
        count: row.count,
        rows: row.rows,
        errors,
        response_sum_ns: row.response_sum_ns,
        service_sum_ns: row.service_sum_ns,
        response_max_ns: row.response_max_ns,
        response: row.response.clone(),
        service: row.service.clone(),
    }
}

//! A variable of the session, swept within one start: its values in random order on one connection.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use whyso_connect::caught;
use whyso_server::answers::log_out;
use whyso_study::{PointRecord, SessionSweep};

use super::measurement::Measurement;
use crate::Stop;
use crate::login::AskPassword;
use crate::progress::{Listener, News};
use crate::put_back::put_everything_back;
use crate::run::set_up_run;
use crate::runtime::GOODBYE_TIME_MAX;
use crate::{Error, Plan};

/// Bound on one execution.
const STATEMENT_TIME_MAX: Duration = Duration::from_secs(600);
/// Executions before the first point, which nobody counts.
const WARM_UP: u32 = 3;
/// News come at most so often.
const NEWS_EVERY: Duration = Duration::from_millis(500);

pub(super) fn sweep(
    plan: &Plan,
    sweep: &SessionSweep,
    order: u64,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Measurement, Error> {
    let values = sweep.points().map_err(|error| Error::Plan(error.to_string()))?;
    let (tested, runtime, _) = set_up_run(plan, listener, stop, ask_password)?;
    let done = runtime.block_on(async {
        let mut conn = tested.dsn.connect().await?;
        let work = points(&mut conn, sweep, shuffled(values, order), listener, stop);
        let swept = caught(work).await.unwrap_or_else(|panic| {
            Err(Error::Failed(format!(
                "the server at {} cannot be understood: {panic}",
                tested.dsn.endpoint()
            )))
        });
        log_out(conn).await;
        swept
    });
    runtime.block_on(put_everything_back(tested, listener));
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    done
}

async fn points(
    conn: &mut Conn,
    sweep: &SessionSweep,
    values: Vec<i64>,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Measurement, Error> {
    let version: Option<String> = bounded(conn.query_first("SELECT VERSION()")).await?;
    for _ in 0..WARM_UP {
        execute(conn, &sweep.statement).await?;
    }
    let (began, all) = (Instant::now(), values.len());
    let mut news: Option<Instant> = None;
    let mut points = Vec::with_capacity(all);
    for (at, value) in values.into_iter().enumerate() {
        if stop.is_asked() {
            return Err(Error::Interrupted);
        }
        if news.is_none_or(|before| before.elapsed() >= NEWS_EVERY) {
            listener.hear(News::Step(&format!("value {} of {all}: {} = {value}", at + 1, sweep.knob)));
            news = Some(Instant::now());
        }
        points.push(point(conn, sweep, value).await?);
    }
    points.sort_by_key(|point| point.value);
    Ok(Measurement {
        version: version.unwrap_or_default(),
        measured_s: began.elapsed().as_secs_f64(),
        points,
        ..Measurement::default()
    })
}

async fn point(conn: &mut Conn, sweep: &SessionSweep, value: i64) -> Result<PointRecord, Error> {
    bounded(conn.query_drop(format!("SET SESSION {} = {value}", sweep.knob))).await?;
    let before = status(conn, &sweep.status).await?;
    let mut times = Vec::with_capacity(sweep.times as usize);
    for _ in 0..sweep.times {
        let began = Instant::now();
        execute(conn, &sweep.statement).await?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let after = status(conn, &sweep.status).await?;
    times.sort_by(f64::total_cmp);
    let middle = times.len() / 2;
    let ms = if times.len() % 2 == 1 { times[middle] } else { (times[middle - 1] + times[middle]) / 2.0 };
    let grown = after.into_iter().map(|(name, after)| {
        let before = before.get(&name).copied().unwrap_or(0.0);
        (name, (after - before) / f64::from(sweep.times))
    });
    Ok(PointRecord { value, ms, status: grown.collect() })
}

async fn execute(conn: &mut Conn, statement: &str) -> Result<(), Error> {
    bounded(conn.query_drop(statement)).await
}

async fn bounded<T>(work: impl Future<Output = Result<T, mysql_async::Error>>) -> Result<T, Error> {
    match tokio::time::timeout(STATEMENT_TIME_MAX, work).await {
        Ok(done) => done.map_err(refused),
        Err(_) => Err(Error::Failed(format!(
            "the statement took longer than {} s: try it on less data",
            STATEMENT_TIME_MAX.as_secs()
        ))),
    }
}

/// Counters of the session by their names as they were asked for.
async fn status(conn: &mut Conn, names: &[String]) -> Result<BTreeMap<String, f64>, Error> {
    let mut found = BTreeMap::new();
    for name in names {
        let row: Option<(String, String)> =
            bounded(conn.query_first(format!("SHOW SESSION STATUS LIKE '{name}'"))).await?;
        let value = row.and_then(|(_, value)| value.parse().ok()).ok_or_else(|| {
            Error::Failed(format!("this server has no status counter {name}: leave it out of [inside]"))
        })?;
        found.insert(name.clone(), value);
    }
    Ok(found)
}

fn refused(error: mysql_async::Error) -> Error {
    Error::Failed(format!("the server refused the sweep: {error}"))
}

/// In an order that the number alone decides.
fn shuffled(mut values: Vec<i64>, order: u64) -> Vec<i64> {
    whyso_random::SplitMix64::new(order).shuffle(&mut values);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_once_in_an_order_of_its_own() {
        let values: Vec<i64> = (0..200).collect();
        let order = shuffled(values.clone(), 1);
        assert_ne!(order, values);
        assert_eq!(order, shuffled(values.clone(), 1));
        assert_ne!(order, shuffled(values.clone(), 2));
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(sorted, values);
    }
}

//! The threads that apply a source's transactions, from the Performance Schema of servers that time them (MySQL 8).

use mysql_async::{Error, Row};
use whyso_record::data::Value;

use crate::metric::{Metric, gauge};
use crate::own_statements::ControlConnection;
use crate::samplers::status::text_of;
use crate::sql::{bounded_select, is_not_for_us};

pub(crate) const METRICS: [Metric; 3] = [
    gauge(
        "worker_lag_ns",
        "ns",
        "how long ago the transaction that the worker applies was committed where it began, by both servers' clocks",
    ),
    gauge("worker_applying_ns", "ns", "for how long the worker has applied its transaction"),
    gauge(
        "worker_last_lag_ns",
        "ns",
        "time from the commit of the worker's last transaction where it began to the end of its applying",
    ),
];

/// A metric of a worker, and its value.
pub(super) type Number = (&'static Metric, String, Value);

const NS_PER_US: i64 = 1000;

/// Microseconds each, in the order of [`METRICS`]; NULL where the worker applies nothing, or has not applied anything.
const QUESTION: &str = "CONCAT_WS(' ', NULLIF(CHANNEL_NAME, ''), CONCAT('worker-', WORKER_ID)), \
     IF(APPLYING_TRANSACTION = '', NULL, \
        TIMESTAMPDIFF(MICROSECOND, APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, NOW(6))), \
     IF(APPLYING_TRANSACTION = '', NULL, \
        TIMESTAMPDIFF(MICROSECOND, APPLYING_TRANSACTION_START_APPLY_TIMESTAMP, NOW(6))), \
     IF(LAST_APPLIED_TRANSACTION = '', NULL, \
        TIMESTAMPDIFF(MICROSECOND, LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP, \
                      LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP)) \
     FROM performance_schema.replication_applier_status_by_worker LIMIT 256";

#[derive(Debug, Default)]
pub(super) struct Workers {
    is_absent: bool,
}

impl Workers {
    /// Nothing where the server does not time them, or not for this user.
    pub(super) async fn ask(&mut self, conn: &mut ControlConnection<'_>) -> Result<Vec<Number>, Error> {
        if self.is_absent {
            return Ok(Vec::new());
        }
        match conn.query::<Row, _>(bounded_select(QUESTION)).await {
            Ok(rows) => Ok(rows
                .iter()
                .flat_map(|row| numbers([0, 1, 2, 3].map(|place| text_of(row, place))))
                .collect()),
            Err(Error::Server(error)) if is_not_for_us(error.code) => {
                self.is_absent = true;
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }
}

fn numbers([worker, times_us @ ..]: [Option<&str>; 4]) -> Vec<Number> {
    let Some(worker) = worker else { return Vec::new() };
    let numbers = METRICS.iter().zip(times_us).filter_map(|(metric, time_us)| {
        let time_us: i64 = time_us?.parse().ok()?;
        Some((metric, worker.to_string(), Value::Int(time_us.saturating_mul(NS_PER_US))))
    });
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_without_a_transaction_has_no_lag() {
        let lags = numbers([Some("east worker-2"), None, None, Some("1500")]);
        let expected = (&METRICS[2], "east worker-2".to_string(), Value::Int(1_500_000));
        assert_eq!(lags, [expected]);
        assert_eq!(numbers([None, Some("1"), Some("1"), Some("1")]), []);
        assert_eq!(numbers([Some("worker-1"), Some("12"), Some("late"), None]).len(), 1);
    }
}

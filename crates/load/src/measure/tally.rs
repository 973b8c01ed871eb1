//! Counts and histograms of a stretch of time, for every kind of statement.

use crate::measure::histogram::Histogram;
use crate::measure::ring::{Event, What};
use crate::outcome::{ErrorCode, IntervalRow, TRANSACTION};

/// How many of each are counted separately.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Of statements, whole transactions before and "connect" after them.
    pub(crate) kinds: usize,
    /// Kinds of transactions; 0 where there is only one.
    pub(crate) transactions: usize,
    pub(crate) endpoints: usize,
}

/// The names that go with a tally's places.
#[derive(Clone, Copy)]
pub(crate) struct Names<'n> {
    pub(crate) kinds: &'n [String],
    pub(crate) transactions: &'n [String],
}

/// Everything that is counted. The kinds are those of the work, whole transactions before and "connect" after them.
pub(crate) struct Tally {
    pub(crate) response: Histogram,
    pub(crate) service: Histogram,
    pub(crate) retried: Histogram,
    pub(crate) late: Histogram,
    pub(crate) retries: u64,
    pub(crate) lost: Vec<(ErrorCode, u64)>,
    /// The first, of whole transactions, stays empty.
    pub(crate) kinds: Vec<KindTally>,
    pub(crate) transactions: Vec<TransactionTally>,
    pub(crate) endpoints: Vec<EndpointTally>,
}

#[derive(Default)]
pub(crate) struct KindTally {
    pub(crate) rows: u64,
    pub(crate) errors: Vec<(ErrorCode, u64)>,
    pub(crate) latency: Histogram,
    pub(crate) error_latency: Histogram,
}

/// One kind of transaction.
#[derive(Default)]
pub(crate) struct TransactionTally {
    pub(crate) response: Histogram,
    pub(crate) service: Histogram,
}

#[derive(Default)]
pub(crate) struct EndpointTally {
    pub(crate) errors: u64,
    pub(crate) response: Histogram,
}

impl Tally {
    pub(crate) fn new(sizes: Sizes) -> Tally {
        Tally {
            response: Histogram::new(),
            service: Histogram::new(),
            retried: Histogram::new(),
            late: Histogram::new(),
            retries: 0,
            lost: Vec::new(),
            kinds: (0..sizes.kinds).map(|_| KindTally::default()).collect(),
            transactions: (0..sizes.transactions).map(|_| TransactionTally::default()).collect(),
            endpoints: (0..sizes.endpoints).map(|_| EndpointTally::default()).collect(),
        }
    }

    pub(crate) fn count(&mut self, event: Event) {
        let endpoint = self.endpoints.get_mut(usize::from(event.endpoint));
        match event.what {
            What::Statement { kind, latency_ns, rows } => {
                if let Some(kind) = self.kinds.get_mut(usize::from(kind)) {
                    kind.latency.record(latency_ns);
                    kind.rows += u64::from(rows);
                }
            }
            What::Error { kind, latency_ns, code } => {
                if let Some(endpoint) = endpoint {
                    endpoint.errors += 1;
                }
                if let Some(kind) = self.kinds.get_mut(usize::from(kind)) {
                    kind.error_latency.record(latency_ns);
                    add_errors(&mut kind.errors, code, 1);
                }
            }
            What::Transaction { transaction, response_ns, service_ns, was_retried, .. } => {
                self.response.record(response_ns);
                self.service.record(service_ns);
                if let Some(counts) = self.transactions.get_mut(usize::from(transaction)) {
                    counts.response.record(response_ns);
                    counts.service.record(service_ns);
                }
                if was_retried {
                    self.retried.record(response_ns);
                }
                if let Some(endpoint) = endpoint {
                    endpoint.response.record(response_ns);
                }
            }
            What::GivenUp { code, lost_ns } => {
                self.retries += 1;
                add_errors(&mut self.lost, code, lost_ns);
            }
            What::Late { late_ns } => self.late.record(late_ns),
            // The user's time is closed over the whole window: see `Closing`.
            What::Uncounted { .. } | What::Outside { .. } | What::Paused { .. } => {}
        }
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.retried.merge(&other.retried);
        self.late.merge(&other.late);
        self.retries += other.retries;
        for (code, lost_ns) in &other.lost {
            add_errors(&mut self.lost, *code, *lost_ns);
        }
        for (mine, theirs) in self.transactions.iter_mut().zip(&other.transactions) {
            mine.response.merge(&theirs.response);
            mine.service.merge(&theirs.service);
        }
        for (mine, theirs) in self.endpoints.iter_mut().zip(&other.endpoints) {
            mine.response.merge(&theirs.response);
            mine.errors += theirs.errors;
        }
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.latency.merge(&theirs.latency);
            mine.error_latency.merge(&theirs.error_latency);
            mine.rows += theirs.rows;
            for (code, count) in &theirs.errors {
                add_errors(&mut mine.errors, *code, *count);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.response.clear();
        self.service.clear();
        self.retried.clear();
        self.late.clear();
        self.retries = 0;
        self.lost.clear();
        for transaction in &mut self.transactions {
            transaction.response.clear();
            transaction.service.clear();
        }
        for endpoint in &mut self.endpoints {
            endpoint.response.clear();
            endpoint.errors = 0;
        }
        for kind in &mut self.kinds {
            kind.latency.clear();
            kind.error_latency.clear();
            kind.rows = 0;
            kind.errors.clear();
        }
    }

    /// As an interval shows it: whole transactions first, then each kind of them, and of statements, that something
    /// happened to.
    pub(crate) fn rows(&self, names: Names<'_>) -> Vec<IntervalRow> {
        let mut rows = Vec::new();
        let mut all_errors = Vec::new();
        for kind in &self.kinds {
            for (code, count) in &kind.errors {
                add_errors(&mut all_errors, *code, *count);
            }
        }
        let row_count = self.kinds.iter().map(|kind| kind.rows).sum();
        let whole = IntervalRow {
            rows: row_count,
            errors: all_errors,
            ..transactions(&self.response, &self.service)
        };
        rows.push(IntervalRow { statement: names.kinds.first().cloned().unwrap_or_default(), ..whole });
        for (name, transaction) in names.transactions.iter().zip(&self.transactions) {
            if transaction.response.count() > 0 {
                let statement = format!("{TRANSACTION}:{name}");
                rows.push(IntervalRow {
                    statement,
                    ..transactions(&transaction.response, &transaction.service)
                });
            }
        }
        for (name, kind) in names.kinds.iter().zip(&self.kinds).skip(1) {
            if kind.latency.count() == 0 && kind.errors.is_empty() {
                continue;
            }
            rows.push(IntervalRow {
                statement: name.clone(),
                count: kind.latency.count(),
                rows: kind.rows,
                errors: kind.errors.clone(),
                response_sum_ns: kind.latency.sum_ns(),
                service_sum_ns: kind.latency.sum_ns(),
                response_max_ns: kind.latency.max_ns(),
                response: kind.latency.buckets().collect(),
                service: Vec::new(),
            });
        }
        rows
    }
}

/// Transactions of one kind, or of all.
fn transactions(response: &Histogram, service: &Histogram) -> IntervalRow {
    IntervalRow {
        statement: String::new(),
        count: response.count(),
        rows: 0,
        errors: Vec::new(),
        response_sum_ns: response.sum_ns(),
        service_sum_ns: service.sum_ns(),
        response_max_ns: response.max_ns(),
        response: response.buckets().collect(),
        service: service.buckets().collect(),
    }
}

/// A handful of codes at most: a list is quicker than a map.
fn add_errors(errors: &mut Vec<(ErrorCode, u64)>, code: ErrorCode, count: u64) {
    match errors.iter_mut().find(|(counted_code, _)| *counted_code == code) {
        Some((_, sum)) => *sum += count,
        None => errors.push((code, count)),
    }
}

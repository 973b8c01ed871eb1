//! What threads are known to have been at, stretch by stretch of time.

use std::collections::HashMap;

/// A stretch of time in which a thread was at something; both ends belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Span<T> {
    pub begin_ns: i64,
    pub end_ns: i64,
    pub of: T,
}

/// Where it is known from which connection or which statement a thread worked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownBy {
    /// The server, asked every few seconds.
    #[default]
    Snapshots,
    /// The trace of its commands, each with its begin and its end.
    SqlTrace,
}

impl KnownBy {
    pub fn name(self) -> &'static str {
        match self {
            KnownBy::Snapshots => "looks",
            KnownBy::SqlTrace => "sql trace",
        }
    }
}

/// What each thread is known to have been at, stretch by stretch.
#[derive(Clone, Debug, PartialEq)]
pub struct Spans<T> {
    pub by: KnownBy,
    /// Ascending in time, none within another.
    by_tid: HashMap<u32, Vec<Span<T>>>,
}

impl<T> Default for Spans<T> {
    fn default() -> Spans<T> {
        Spans { by: KnownBy::default(), by_tid: HashMap::new() }
    }
}

impl<T> Spans<T> {
    /// From the stretches of thread by thread, ascending in time and none within another.
    pub fn new(by: KnownBy, spans: impl Iterator<Item = (u32, Span<T>)>) -> Spans<T> {
        let mut by_tid: HashMap<u32, Vec<Span<T>>> = HashMap::new();
        for (tid, span) in spans {
            by_tid.entry(tid).or_default().push(span);
        }
        Spans { by, by_tid }
    }

    /// What a thread was at, where it is known.
    pub fn at(&self, tid: u32, t_ns: i64) -> Option<&T> {
        let spans = self.by_tid.get(&tid)?;
        let span = spans.get(spans.partition_point(|span| span.end_ns < t_ns))?;
        (span.begin_ns <= t_ns).then_some(&span.of)
    }

    /// Everything that some thread is known to have been at.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.by_tid.values().flatten().map(|span| &span.of)
    }
}

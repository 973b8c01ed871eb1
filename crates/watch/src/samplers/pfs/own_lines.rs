//! Of each digest's executions, those that were whyso's own.
//!
//! The server counts executions, and so does whyso ([`OwnStatements`]), at slightly different times. What others executed only grows, and what whyso
//! executed lies between what it knows to be over and what it has begun. Both together are exact whenever none of whyso's own is in flight.

use std::collections::HashMap;

use crate::own_statements::{Digest, OwnStatements, SCHEMA, SentStatements};

/// The server may count as many executions a moment after it has answered them.
const COUNTED_LATE_MAX: i64 = 2;

/// A digest's number of executions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) instance: String,
    pub(crate) count: i64,
    /// At the reading before; 0 where the digest was not there. `None`: this is the first reading.
    pub(crate) before: Option<i64>,
}

/// What whyso executed of a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnCount {
    pub(super) instance: String,
    /// Since the digest was first read.
    pub(super) count: i64,
    /// At the reading before, where it was not recorded then.
    pub(super) was: Option<i64>,
}

/// What whyso had executed around a reading of the server's counts.
#[derive(Debug, Default)]
struct Around {
    before: SentStatements,
    after: SentStatements,
}

impl Around {
    /// The server's count holds at least as many own executions of this digest.
    fn least(&self, digest: &Digest) -> i64 {
        to_signed(self.before.of(digest).ended)
    }

    /// The server's count holds at most as many own executions of this digest.
    fn most(&self, digest: &Digest) -> i64 {
        to_signed(self.after.of(digest).begun)
    }
}

#[derive(Clone, Copy, Debug)]
struct KnownLine {
    /// Own executions when their counting began: at least, at most.
    base: (i64, i64),
    /// The server's count without own executions since then: it never falls.
    others: i64,
    count: i64,
    /// The reading at which own executions were recorded last, from 1; 0 for never.
    recorded_at: u64,
    /// Executions that whyso knows to be over are missing in the server's count: it is of another session's statements.
    is_others: bool,
}

#[derive(Debug, Default)]
pub(super) struct OwnLines {
    readings: u64,
    /// By instance.
    digests: HashMap<String, Digest>,
    lines: HashMap<String, KnownLine>,
    /// Taken before the reading that is under way.
    begun: SentStatements,
    last: Around,
    around_before: Around,
}

impl OwnLines {
    /// The server's counts are about to be read.
    pub(super) fn begin_reading(&mut self, statements: &OwnStatements) {
        self.begun = statements.sent();
    }

    /// The server's counts were read.
    pub(super) fn end_reading(&mut self, statements: &OwnStatements) {
        let around = Around { before: std::mem::take(&mut self.begun), after: statements.sent() };
        self.around_before = std::mem::replace(&mut self.last, around);
        self.readings += 1;
    }

    /// The text of a digest, and whether it was cut here.
    pub(super) fn learn(&mut self, instance: &str, schema: Option<&str>, text: &str, is_cut: bool) {
        let is_ours = schema.is_some_and(|schema| schema.eq_ignore_ascii_case(SCHEMA));
        if let Some(digest) = Digest::new(text, is_cut).filter(|_| is_ours) {
            self.digests.insert(instance.to_string(), digest);
        }
    }

    /// What is whyso's own of the counts that were read last, of all digests in the samplers' schema.
    pub(super) fn own(&mut self, counts: &[Count]) -> Vec<OwnCount> {
        counts.iter().filter_map(|count| self.own_of(count)).collect()
    }

    fn own_of(&mut self, count: &Count) -> Option<OwnCount> {
        let digest = self.digests.get(&count.instance)?;
        let (least, most) = (self.last.least(digest), self.last.most(digest));
        let base = match count.before {
            Some(_) => (self.around_before.least(digest), self.around_before.most(digest)),
            None => (least, most),
        };
        let fresh = |others| KnownLine { base, others, count: others, recorded_at: 0, is_others: false };
        let line = self.lines.entry(count.instance.clone());
        let line = line.or_insert_with(|| fresh(count.before.unwrap_or(count.count)));
        if count.count < line.count {
            // The server's table was emptied.
            *line = fresh(count.before.unwrap_or(0).min(count.count));
        }
        line.is_others |= count.count - line.others < least - line.base.1 - COUNTED_LATE_MAX;
        let own = line.count - line.others;
        let was_recorded = line.recorded_at + 1 == self.readings;
        let was = (!was_recorded && count.before.is_some()).then_some(own);
        line.others = match line.is_others {
            true => count.count - own,
            false => line.others.max(count.count - (most - line.base.0)),
        };
        line.count = count.count;
        line.recorded_at = self.readings;
        Some(OwnCount { instance: count.instance.clone(), count: count.count - line.others, was })
    }
}

fn to_signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "SHOW GLOBAL STATUS";
    const NAME: &str = "information_schema:abc";

    struct Server {
        statements: OwnStatements,
        lines: OwnLines,
        count: Option<i64>,
    }

    impl Server {
        fn new() -> Server {
            let mut lines = OwnLines::default();
            lines.learn(NAME, Some(SCHEMA), TEXT, false);
            Server { statements: OwnStatements::default(), lines, count: None }
        }

        /// Executions of whyso and of a client, which the server counts, and then a reading. Returns whyso's own, and what they were before.
        fn read(&mut self, own: i64, others: i64, counted: i64) -> Option<(i64, Option<i64>)> {
            let last = (self.lines.readings > 0).then_some(self.count.unwrap_or(0));
            for _ in 0..own {
                let words = self.statements.begin(TEXT);
                self.statements.end(&words);
            }
            self.lines.begin_reading(&self.statements);
            self.lines.end_reading(&self.statements);
            let count = self.count.unwrap_or(0) + counted + others;
            self.count = Some(count);
            let counts = [Count { instance: NAME.to_string(), count, before: last }];
            let own = self.lines.own(&counts).into_iter().next()?;
            Some((own.count, own.was))
        }
    }

    #[test]
    fn what_whyso_executed_is_its_own_from_the_first_execution_on() {
        let mut server = Server::new();
        // Numbers of a digest are recorded together: over any window, both cover the same time.
        assert_eq!(server.read(0, 0, 0), Some((0, None)));
        assert_eq!(server.read(3, 0, 3), Some((3, None)));
        assert_eq!(server.read(5, 0, 5), Some((8, None)));
    }

    #[test]
    fn a_clients_execution_of_the_same_text_is_never_whysos() {
        let mut server = Server::new();
        // Another watching, or a client, has executed it before.
        assert_eq!(server.read(2, 1000, 2), Some((0, None)));
        assert_eq!(server.read(10, 1, 10), Some((10, None)));
        assert_eq!(server.read(10, 0, 10), Some((20, None)));
        assert_eq!(server.read(0, 7, 0), Some((20, None)));
    }

    #[test]
    fn what_is_in_flight_is_counted_later_and_is_still_whysos() {
        let mut server = Server::new();
        server.read(1, 0, 1);
        let in_flight = server.statements.begin(TEXT);
        assert_eq!(server.read(4, 0, 4), Some((4, None)));
        server.statements.end(&in_flight);
        assert_eq!(server.read(0, 0, 1), Some((5, None)));
    }

    #[test]
    fn a_digest_that_does_not_count_whysos_executions_is_not_whysos() {
        let mut server = Server::new();
        server.read(1, 50, 0);
        // The account of the control connections is not instrumented.
        for _ in 0..3 {
            assert_eq!(server.read(10, 5, 0), Some((0, None)));
        }
        let mut elsewhere = OwnLines::default();
        elsewhere.learn("shop:abc", Some("shop"), TEXT, false);
        assert!(elsewhere.digests.is_empty());
    }

    #[test]
    fn a_table_that_was_emptied_counts_again() {
        let mut server = Server::new();
        server.read(1, 0, 1);
        server.read(10, 0, 10);
        server.count = Some(0);
        assert_eq!(server.read(2, 0, 2), Some((2, Some(0))));
        server.count = Some(0);
        assert_eq!(server.read(0, 1, 0), Some((0, Some(0))), "a client's only");
    }
}

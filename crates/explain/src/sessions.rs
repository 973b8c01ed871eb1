//! What clients' sessions did, by samples of the server's process list. A server shows it to any user with the right to see it, on its own
//! machine and from another one.
//!
//! Sampling sessions at even intervals estimates the time that they spent. Of all samples in a statement, the share in a state is the
//! share of the statements' time in it. Samples of one snapshot are not independent, since sessions wait for each other. So the interval
//! of a share counts snapshots, and not sessions.

use crate::model::{Counter, Gauge, SeriesName};

/// Sampler of the process list.
const SOURCE: &str = "sessions";
/// Fewer snapshots show nothing. A share's interval shows how uncertain a few are.
const SNAPSHOTS_MIN: f64 = 3.0;
/// Fewer samples name no wait.
pub(crate) const SAMPLES_MIN: f64 = 10.0;

/// What a session in a statement does or waits for, by its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SessionState {
    RowLock,
    MetadataLock,
    TableLock,
    UserLock,
    QueryCacheLock,
    Commit,
    OpenTables,
    SendToClient,
    SortAndTemporaryTables,
    Sleep,
    Login,
    /// A wait that has a name, and of which whyso knows no more.
    OtherWait,
    /// On a CPU, ready for one, or waiting for something that the process list does not show: a page, a latch.
    Executing,
}

impl SessionState {
    fn of(state: &str) -> SessionState {
        let state = state.to_lowercase();
        let is = |names: &[&str]| names.contains(&state.as_str());
        let has = |part: &str| state.contains(part);
        // Servers before MySQL 8.0 and MariaDB 10.4 commit a statement's own transaction in the state "query end".
        if is(&["waiting for row lock"]) {
            SessionState::RowLock
        } else if is(&["user lock"]) {
            SessionState::UserLock
        } else if is(&["user sleep"]) {
            SessionState::Sleep
        } else if is(&["login"]) {
            SessionState::Login
        } else if has("query cache") {
            SessionState::QueryCacheLock
        } else if state.starts_with("waiting for") && is_of_definitions(&state) {
            SessionState::MetadataLock
        } else if is(&["table lock", "system lock", "waiting for table level lock", "waiting for table"]) {
            SessionState::TableLock
        } else if is(&[
            "commit",
            "query end",
            "waiting for prior transaction to commit",
            "waiting for handler commit",
        ]) {
            SessionState::Commit
        } else if has("opening table") || has("closing table") {
            SessionState::OpenTables
        } else if is(&["writing to net", "sending to client", "reading from net"]) {
            SessionState::SendToClient
        } else if has("sort") || has("tmp table") || has("temporary table") || has("duplicates") {
            SessionState::SortAndTemporaryTables
        } else if state.starts_with("waiting") {
            SessionState::OtherWait
        } else {
            SessionState::Executing
        }
    }

    /// A session that is held up by others.
    pub(crate) fn is_wait(self) -> bool {
        !matches!(
            self,
            SessionState::Executing
                | SessionState::Sleep
                | SessionState::SortAndTemporaryTables
                | SessionState::OpenTables
        )
    }
}

/// Locks of the SQL layer on tables' and other objects' definitions, and on all of them.
fn is_of_definitions(state: &str) -> bool {
    let parts =
        ["metadata lock", "global read lock", "table flush", "backup lock", "commit lock", "schema lock"];
    parts.iter().any(|part| state.contains(part))
}

/// Samples in one state.
#[derive(Clone, Debug)]
pub(crate) struct InState {
    pub(crate) name: String,
    pub(crate) doing: SessionState,
    /// Sessions found in it, over all snapshots.
    pub(crate) samples: f64,
    pub(crate) series: SeriesName,
}

/// Samples of sessions in a statement, over a level.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    pub(crate) snapshots: f64,
    /// Clients' connections, on average; `None` where that was not recorded.
    pub(crate) clients_mean: Option<f64>,
    /// Those with the most samples first.
    pub(crate) states: Vec<InState>,
}

/// What sessions did for a share of the time that they were in a statement.
pub(crate) struct Share<'a> {
    pub(crate) value: f64,
    /// 95 %.
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) samples: f64,
    pub(crate) states: Vec<&'a InState>,
}

impl Sessions {
    /// `None` where the process list was read too seldom, or not at all.
    pub(crate) fn of(counters: &[Counter], gauges: &[Gauge]) -> Option<Sessions> {
        let named = |metric: &'static str| {
            counters.iter().filter(move |counter| {
                let series = &counter.series;
                series.source == SOURCE && series.metric == metric && (0.0..1e15).contains(&counter.increase)
            })
        };
        let snapshots = named("looks").map(|counter| counter.increase).sum::<f64>();
        if snapshots < SNAPSHOTS_MIN {
            return None;
        }
        let clients =
            gauges.iter().find(|gauge| gauge.series.source == SOURCE && gauge.series.metric == "clients");
        let mut states: Vec<InState> = named("in_statement")
            .filter(|counter| counter.increase > 0.0)
            .map(|counter| InState {
                name: counter.series.instance.clone(),
                doing: SessionState::of(&counter.series.instance),
                samples: counter.increase,
                series: counter.series.clone(),
            })
            .collect();
        states.sort_by(|a, b| b.samples.total_cmp(&a.samples).then(a.name.cmp(&b.name)));
        Some(Sessions { snapshots, clients_mean: clients.map(|gauge| gauge.mean), states })
    }

    /// Samples in a statement, over all snapshots.
    pub(crate) fn samples(&self) -> f64 {
        self.states.iter().map(|state| state.samples).sum()
    }

    /// Sessions in a statement, on average.
    pub(crate) fn active_mean(&self) -> f64 {
        self.samples() / self.snapshots
    }

    /// Seconds that all sessions together were in a statement. Where none was found in one it is what half a sample stands for: the time is
    /// short, and not 0.
    pub(crate) fn in_statement_s(&self, seconds: f64) -> f64 {
        self.samples().max(0.5) / self.snapshots * seconds
    }

    /// Whether enough sessions were found in a statement to say what they did.
    pub(crate) fn are_enough(&self) -> bool {
        self.samples() >= SAMPLES_MIN
    }

    pub(crate) fn share(&self, is_counted: impl Fn(&InState) -> bool) -> Share<'_> {
        let states: Vec<&InState> = self.states.iter().filter(|state| is_counted(state)).collect();
        let samples: f64 = states.iter().map(|state| state.samples).sum();
        let all = self.samples();
        let value = if all > 0.0 { (samples / all).clamp(0.0, 1.0) } else { 0.0 };
        let (low, high) = wilson(value, self.snapshots.min(all));
        Share { value, low, high, samples, states }
    }

    pub(crate) fn share_of(&self, doing: SessionState) -> Share<'_> {
        self.share(|state| state.doing == doing)
    }
}

impl Share<'_> {
    /// "98 % of the sampled time of statements (95 % interval 84 % to 100 % if snapshots are independent, 80 samples)"
    pub(crate) fn in_words(&self) -> String {
        format!(
            "{} of the sampled time of statements (95 % interval {} to {} if snapshots are independent, {} samples)",
            whyso_words::percent(self.value),
            whyso_words::percent(self.low),
            whyso_words::percent(self.high),
            whyso_words::whole(self.samples.round() as u64),
        )
    }

    /// "'Sending data' 40 %, 'Updating' 12 %" of all samples.
    pub(crate) fn names(&self, count: usize) -> String {
        let of_all = |state: &InState| state.samples * self.value / self.samples.max(1e-9);
        let named: Vec<String> = self.states[..self.states.len().min(count)]
            .iter()
            .map(|state| format!("'{}' {}", state.name, whyso_words::percent(of_all(state))))
            .collect();
        whyso_words::list(&named)
    }
}

/// E. B. Wilson's score interval (1927), 95 %.
fn wilson(share: f64, count: f64) -> (f64, f64) {
    const Z: f64 = 1.959_963_985;
    if count <= 0.0 {
        return (0.0, 1.0);
    }
    let z2 = Z * Z / count;
    let center = (share + z2 / 2.0) / (1.0 + z2);
    let half = Z / (1.0 + z2) * (share * (1.0 - share) / count + z2 / (4.0 * count)).sqrt();
    ((center - half).clamp(0.0, 1.0), (center + half).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_every_server_are_known_by_what_they_wait_for() {
        let cases = [
            ("Waiting for row lock", SessionState::RowLock),
            ("Waiting for table metadata lock", SessionState::MetadataLock),
            ("Waiting for global read lock", SessionState::MetadataLock),
            ("Waiting for backup lock", SessionState::MetadataLock),
            ("Waiting for table flush", SessionState::MetadataLock),
            ("Waiting for table level lock", SessionState::TableLock),
            ("User lock", SessionState::UserLock),
            ("User sleep", SessionState::Sleep),
            ("Commit", SessionState::Commit),
            ("waiting for handler commit", SessionState::Commit),
            ("query end", SessionState::Commit),
            ("Waiting for query cache lock", SessionState::QueryCacheLock),
            ("Opening tables", SessionState::OpenTables),
            ("Writing to net", SessionState::SendToClient),
            ("Sending to client", SessionState::SendToClient),
            ("Creating sort index", SessionState::SortAndTemporaryTables),
            ("Copying to tmp table on disk", SessionState::SortAndTemporaryTables),
            ("Waiting for semi-sync ACK from slave", SessionState::OtherWait),
            ("Sending data", SessionState::Executing),
            ("executing", SessionState::Executing),
            ("statistics", SessionState::Executing),
        ];
        for (state, doing) in cases {
            assert_eq!(SessionState::of(state), doing, "{state}");
        }
    }

    #[test]
    fn a_share_has_the_interval_of_its_snapshots() {
        let counter = |metric: &str, instance: &str, increase| Counter {
            series: SeriesName {
                source: SOURCE.to_string(),
                metric: metric.to_string(),
                instance: instance.to_string(),
                ..SeriesName::default()
            },
            increase,
            ..Counter::default()
        };
        let counters = [
            counter("looks", "", 20.0),
            counter("in_statement", "Waiting for row lock", 64.0),
            counter("in_statement", "Sending data", 16.0),
        ];
        let sessions = Sessions::of(&counters, &[]).unwrap();
        assert_eq!((sessions.active_mean(), sessions.samples()), (4.0, 80.0));
        let share = sessions.share_of(SessionState::RowLock);
        assert_eq!((share.value, share.samples), (0.8, 64.0));
        // 16 of 20, as published tables of Wilson's interval have it.
        assert!((share.low - 0.584).abs() < 0.001 && (share.high - 0.919).abs() < 0.001);
        assert_eq!(sessions.share_of(SessionState::Executing).names(3), "'Sending data' 20 %");
        assert!(Sessions::of(&counters[1..], &[]).is_none(), "there was no snapshot");
    }
}

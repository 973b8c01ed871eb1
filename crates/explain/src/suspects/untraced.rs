//! What the server itself reports of waits where nothing traced it. The states of sessions in its process list are samples of their time.
//! Its counters and the Performance Schema measured times.
//!
//! Any user with the privilege PROCESS can read these, on the server's machine and from another one.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use crate::model::{Evidence, Part};
use crate::pfs::{Line, Per, Table, View};
use crate::sessions::{SAMPLES_MIN, SessionState, Sessions, Share};
use whyso_model::LockKind;

/// How sure one is of waits that the server named itself.
const CERTAINTY: f64 = 0.95;
/// The same of work that goes with a state, some of which may be on a CPU.
const CERTAINTY_OF_WORK: f64 = 0.7;
/// A wait below this share of the sampled time is nobody's trouble.
const SHARE_MIN: f64 = 0.02;
/// Users that wait for each other for this share of the time want no more users.
const QUEUEING_MAX: f64 = 0.3;
/// A statement that took less of the statements' time does not stand out.
const STATEMENT_SHARE_MIN: f64 = 0.25;
/// Statements are cut to this many characters.
const STATEMENT_MAX: usize = 80;
/// States that a sentence names.
const STATES_MAX: usize = 3;

/// " (…)" at the end of a suspect's sentence: what it is based on, where the level was not traced.
pub(super) fn basis(case: &Case) -> &'static str {
    match case.sessions() {
        _ if case.is_traced() => "",
        Some(_) => " (not traced: from samples of the process list and from counters)",
        None => " (from counters only)",
    }
}

/// Gives the claims the time that samples of the process list show to be theirs, and adds claims that no counter led to. Claims
/// to a wait that the process list would have named, and did not, are dropped. A level that was traced does not change.
pub(super) fn settle(case: &Case, mut claims: Vec<Claim>) -> Vec<Claim> {
    let Some(sessions) = case.sessions().filter(|_| !case.is_traced()) else { return claims };
    let waiting = sessions.share(|state| state.doing.is_wait());
    let executing_ms = ms(case, sessions, sessions.share(|state| !state.doing.is_wait()).samples);
    for doing in WAITS {
        let share = sessions.share_of(doing);
        let Some((cause, what)) = cause_of(case, doing) else { continue };
        let counted = claims.iter().position(|claim| claim.cause == cause);
        let sampled_ms = ms(case, sessions, share.samples);
        let sampled_most_ms = ms(case, sessions, share.high * sessions.samples());
        if let Some(claim) = counted.map(|at| &mut claims[at]).filter(|claim| claim.ms > sampled_most_ms) {
            // A counter of time grows when a wait ends: most of this one's time lies before the window.
            claim.class = Class::Sampled;
            claim.ms = sampled_ms;
            claim.lock_ms = sampled_ms;
        }
        if share.samples < SAMPLES_MIN || share.value < SHARE_MIN {
            // The list was read, and hardly anybody was in this state: it is not what requests wait for.
            let is_ruled_out = |claim: &Claim| claim.ms <= sampled_ms && share.value < SHARE_MIN;
            if let Some(at) = counted.filter(|at| is_ruled_out(&claims[*at]) && is_always_named(doing)) {
                claims.remove(at);
            }
            continue;
        }
        let why = format!("sessions were found {}{}", described(doing, &share), detail(case, doing));
        match counted {
            Some(at) => merge(case, &mut claims[at], sampled_ms, &why, evidence(case, &share)),
            None => claims.push(
                Claim::new(cause, what, why)
                    .holds_lock(sampled_ms)
                    .certain(if doing.is_wait() { CERTAINTY } else { CERTAINTY_OF_WORK })
                    .by(Class::Sampled)
                    .rests_on(evidence(case, &share)),
            ),
        }
    }
    if !claims.iter().any(|claim| claim.cause == Cause::BufferPoolMiss && claim.ms > 0.0) {
        claims.retain(|claim| claim.cause != Cause::BufferPoolMiss);
        claims.extend(data_file_reads(case, executing_ms));
    }
    for claim in claims.iter_mut().filter(|claim| claim.cause == Cause::Unsaturated) {
        claim.ms = claim.ms.min(executing_ms);
    }
    claims
        .retain(|claim| claim.cause != Cause::Unsaturated || claim.is_first || waiting.value < QUEUEING_MAX);
    claims
}

/// Each is a cause, or work that goes with one.
pub(super) const WAITS: [SessionState; 11] = [
    SessionState::UserLock,
    SessionState::Sleep,
    SessionState::RowLock,
    SessionState::MetadataLock,
    SessionState::TableLock,
    SessionState::QueryCacheLock,
    SessionState::Commit,
    SessionState::OpenTables,
    SessionState::SendToClient,
    SessionState::SortAndTemporaryTables,
    SessionState::Login,
];

pub(super) fn cause_of(case: &Case, doing: SessionState) -> Option<(Cause, &'static str)> {
    Some(match doing {
        SessionState::RowLock => (Cause::RowLock, "waits for row locks hold"),
        SessionState::MetadataLock => (Cause::MetadataLock, "metadata locks hold"),
        SessionState::TableLock => (Cause::TableLock, "table locks hold"),
        SessionState::QueryCacheLock => (Cause::QueryCache, "the query cache's lock holds"),
        SessionState::Commit if flushes_binlog_only(case) => {
            (Cause::Binlog, "commits to the binary log hold")
        }
        SessionState::Commit => (Cause::RedoFlush, "commits, until their log is on disk, hold"),
        SessionState::OpenTables => (Cause::TableCache, "opening tables holds"),
        SessionState::SendToClient => (Cause::SlowReader, "sending answers to clients holds"),
        SessionState::UserLock => (Cause::UserLock, "locks that statements ask for by name hold"),
        SessionState::Sleep => (Cause::Sleep, "statements that sleep on purpose hold"),
        SessionState::SortAndTemporaryTables => (Cause::TmpTableSort, "sorting and temporary tables hold"),
        SessionState::Login => (Cause::ConnectionChurn, "logging in holds"),
        SessionState::OtherWait | SessionState::Executing => return None,
    })
}

/// Whether stacks of sleep on locks were sampled.
pub(super) fn has_stacks(case: &Case) -> bool {
    case.budget.is_some_and(|budget| budget.classes_of(Part::Lock).next().is_some())
}

/// States that a session has for the whole of such a wait. Short waits for a table or at a commit have none on some servers.
fn is_always_named(doing: SessionState) -> bool {
    matches!(
        doing,
        SessionState::RowLock
            | SessionState::MetadataLock
            | SessionState::TableLock
            | SessionState::QueryCacheLock
    )
}

/// Commits wait for the binary log and not for InnoDB's.
fn flushes_binlog_only(case: &Case) -> bool {
    let syncs_binlog = case.is_on("log_bin") && case.number("sync_binlog").is_some_and(|every| every >= 1.0);
    syncs_binlog && case.number("innodb_flush_log_at_trx_commit").is_some_and(|mode| mode != 1.0)
}

/// Time of a request that this number of samples stands for.
pub(super) fn ms(case: &Case, sessions: &Sessions, samples: f64) -> f64 {
    samples / sessions.snapshots * case.level.seconds * 1e3 / case.transactions
}

/// "waiting for a row lock in 67 % of the sampled time of statements (…)"
fn described(doing: SessionState, share: &Share) -> String {
    let what = match doing {
        SessionState::RowLock => "waiting for row locks".to_string(),
        _ => format!("in the state {}", names(share)),
    };
    format!("{what} for {}", share.in_words())
}

/// "'Waiting for table metadata lock'"
pub(super) fn names(share: &Share) -> String {
    let states = share.states.iter().take(STATES_MAX);
    whyso_words::list(&states.map(|state| format!("'{}'", state.name)).collect::<Vec<_>>())
}

/// Which object it was that sessions waited for.
fn detail(case: &Case, doing: SessionState) -> String {
    match doing {
        SessionState::RowLock => case.lock_object(LockKind::Row),
        SessionState::MetadataLock => case.lock_object(LockKind::Metadata),
        SessionState::TableLock => case.lock_object(LockKind::Table),
        _ => String::new(),
    }
}

fn evidence(case: &Case, share: &Share) -> Vec<Evidence> {
    share.states.iter().take(STATES_MAX).map(|state| case.series(&state.series)).collect()
}

/// Adds the samples to a claim from counters. Time that a counter measured stands, unless much of it was still in progress when the window
/// ended. A server counts a wait when it ends.
fn merge(case: &Case, claim: &mut Claim, sampled_ms: f64, why: &str, evidence: Vec<Evidence>) {
    // A state may be of a part of the work only: some servers fill temporary tables in another one than they sort in.
    if claim.cpu_share * super::pool::pool_ms(case) > sampled_ms {
        claim.evidence.extend(evidence);
        return;
    }
    let counted_ms = claim.ms;
    if counted_ms < sampled_ms {
        claim.class = Class::Sampled;
        claim.ms = sampled_ms;
        claim.lock_ms = sampled_ms;
    }
    // Work on a CPU that goes with the state is part of what was sampled.
    claim.cpu_share = 0.0;
    claim.certainty = claim.certainty.max(CERTAINTY);
    let short = why.split("; ").next().unwrap_or(why);
    claim.why = match counted_ms > 0.0 {
        true => format!("{}; {short}", claim.why),
        false => format!("{why}; {}", claim.why.split("; ").next().unwrap_or_default()),
    };
    claim.evidence.extend(evidence);
}

/// Reads of InnoDB's data files by the Performance Schema's clock, where it is on: most are a session's own, which executes meanwhile.
fn data_file_reads(case: &Case, executing_ms: f64) -> Option<Claim> {
    const DATA_FILES: &str = "wait/io/file/innodb/innodb_data_file";
    let read = case.measure("pfs_file_types", "read_ns", DATA_FILES)?;
    let read_ms = (read.per_transaction / 1e6).min(executing_ms);
    if case.share(read_ms) < SHARE_MIN {
        return None;
    }
    let why = format!(
        "reads of InnoDB's data files took {} per {} by the Performance Schema's clock",
        whyso_words::milliseconds(read_ms),
        case.unit()
    );
    let claim = Claim::new(Cause::BufferPoolMiss, "reads of pages hold", why);
    Some(claim.holds(read_ms).certain(CERTAINTY_OF_WORK).rests_on([case.series(&read.series)]))
}

/// The statement that most of the statements' time was of, by the Performance Schema; `None` where none stands out, or it is off. The statements of
/// whyso's own connections are left out.
pub(super) fn main_statement(case: &Case) -> Option<String> {
    let view = View::named("digests")?;
    let time = view.column("time")?;
    let mut table = Table::new(view, case.level.counters, &[], 1.0, None, None);
    table.sort(time);
    let ns = |line: &Line| table.value(line, time, Per::Window);
    let main = table.lines.first()?;
    let share = ns(main)? / ns(&table.total())?;
    let text: String = main.name.chars().take(STATEMENT_MAX).collect();
    // A digest whose text was not recorded is named by its hash, which no reader knows.
    let is_text = text.contains(' ') || text == "COMMIT";
    (share >= STATEMENT_SHARE_MIN && is_text).then(|| {
        format!(
            "by the Performance Schema {} of the statements' time was that of {text}",
            whyso_words::percent(share)
        )
    })
}

/// Why nobody claims the rest, where the process list was read; `None` where it was not.
pub(super) fn unknown(case: &Case) -> Option<String> {
    let sessions = case.sessions().filter(|_| !case.is_traced())?;
    let executing = sessions.share_of(SessionState::Executing);
    let named = sessions.share_of(SessionState::OtherWait);
    let mut parts = Vec::new();
    if executing.value >= 0.05 {
        parts.push(format!(
            "sessions executed statements for {} of the sampled time ({}), which the process list does not divide further: on a CPU, or \
             waiting for one, for a page or for a latch",
            whyso_words::percent(executing.value),
            executing.names(STATES_MAX)
        ));
        parts.extend(main_statement(case));
    }
    if named.value >= 0.05 {
        parts.push(format!(
            "they waited for {} of it in states that whyso has no cause for ({})",
            whyso_words::percent(named.value),
            named.names(STATES_MAX)
        ));
    }
    if case.cpus_used().is_none() {
        parts.push("the CPU of the server's machine is not known from here".to_string());
    }
    let next = match case.is_elsewhere || case.cpus_used().is_none() {
        true => "record the server on its own machine next",
        false => "trace the server next",
    };
    (!parts.is_empty()).then(|| format!("{}; {next}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::model::{
        Cause, Counter, CpuUse, Explanation, Gauge, Input, LevelInput, LockObject, LoopKind, Machine,
        SeriesName,
    };

    fn series(source: &str, metric: &str, instance: &str) -> SeriesName {
        SeriesName {
            host: "server".to_string(),
            source: source.to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
        }
    }

    /// Ten seconds of a server that nothing traced, with 20 snapshots of its process list, six clients, and 200 requests.
    fn level(states: &[(&str, f64)], status: &[(&str, f64)]) -> LevelInput {
        let mut counters = vec![(series("sessions", "looks", ""), 20.0)];
        counters.extend(
            states.iter().map(|(state, samples)| (series("sessions", "in_statement", state), *samples)),
        );
        counters.extend(status.iter().map(|(name, increase)| (series("status", name, ""), *increase)));
        LevelInput {
            users: 6,
            end_ns: 10_000_000_000,
            transactions: 200,
            queries: 200,
            pacing: LoopKind::Recorded,
            counters: counters
                .into_iter()
                .map(|(series, increase)| Counter { series, unit: "1".to_string(), increase })
                .collect(),
            gauges: vec![Gauge {
                series: series("sessions", "clients", ""),
                unit: "1".to_string(),
                mean: 6.0,
                max: 6.0,
            }],
            ..LevelInput::default()
        }
    }

    fn of(level: LevelInput) -> Explanation {
        explain(&Input { levels: vec![level], ..Input::default() })
    }

    /// The same on a machine whose CPUs are known.
    fn here(level: LevelInput, idle: f64) -> Explanation {
        let cpu = Some(CpuUse { user: 1.0 - idle, idle, ..CpuUse::default() });
        let level = LevelInput { cpu, server_cpu_s: Some(20.0 * (1.0 - idle)), ..level };
        let machine = Machine { server_cpus: 2, client_cpus: 2, shared: true, ..Machine::default() };
        explain(&Input { levels: vec![level], machine, ..Input::default() })
    }

    fn shares(explained: &Explanation) -> Vec<(Cause, f64)> {
        explained
            .suspects
            .iter()
            .map(|suspect| (suspect.id, (suspect.share * 100.0).round() / 100.0))
            .collect()
    }

    #[test]
    fn waits_that_no_counter_has_seen_end_are_suspected_by_samples() {
        let mut level =
            level(&[("Waiting for row lock", 80.0), ("User sleep", 20.0)], &[("Innodb_row_lock_time", 0.0)]);
        level.lock_objects = vec![LockObject {
            kind: whyso_model::LockKind::Row,
            object: "shop.orders".to_string(),
            index: "PRIMARY".to_string(),
            samples: 80,
            share: 1.0,
            ..LockObject::default()
        }];
        let explained = of(level);
        assert_eq!(shares(&explained)[0], (Cause::RowLock, 0.8), "{:#?}", explained.suspects);
        let text = &explained.suspects[0].text;
        for words in [
            "at 6 connected clients",
            "80 % of the sampled time of statements (95 % interval 58 % to 92 % if snapshots are independent, 80 samples)",
            "shop.orders (PRIMARY)",
            "not traced",
        ] {
            assert!(text.contains(words), "{words} is missing in {text}");
        }
        let peak = &explained.findings[0].text;
        assert_eq!(
            peak,
            "6 connected clients did 20 requests/s; 5 of them were in a statement, on average of 20 snapshots of the process list."
        );
        assert!(
            explained.findings.iter().all(|finding| !finding.text.contains("0 users")),
            "{:#?}",
            explained.findings
        );
    }

    #[test]
    fn time_that_a_counter_measured_stands_next_to_the_samples() {
        let explained = of(level(
            &[("Waiting for row lock", 76.0), ("Sending data", 24.0)],
            // 41 s of the 50 that sessions were in a statement.
            &[("Innodb_row_lock_time", 41_000.0), ("Innodb_row_lock_waits", 190.0)],
        ));
        let (first, share) = shares(&explained)[0];
        assert_eq!(first, Cause::RowLock);
        assert!((0.76..=0.83).contains(&share), "{:#?}", explained.suspects);
        assert!(explained.suspects[0].text.contains("76 samples"), "{}", explained.suspects[0].text);
    }

    #[test]
    fn waits_that_ended_as_the_window_began_are_not_its_own() {
        let explained = of(level(
            &[("Waiting for table metadata lock", 60.0), ("User sleep", 20.0)],
            &[("Innodb_row_lock_time", 39_000.0)],
        ));
        assert_eq!(shares(&explained)[0], (Cause::MetadataLock, 0.75), "{:#?}", explained.suspects);
        assert!(
            shares(&explained).iter().all(|(cause, _)| *cause != Cause::RowLock),
            "{:#?}",
            explained.suspects
        );
    }

    #[test]
    fn locks_by_name_sleep_and_slow_readers_are_known_by_their_states() {
        for (state, cause) in [
            ("User lock", Cause::UserLock),
            ("User sleep", Cause::Sleep),
            ("Writing to net", Cause::SlowReader),
        ] {
            let explained = of(level(&[(state, 80.0), ("executing", 20.0)], &[]));
            assert_eq!(shares(&explained)[0], (cause, 0.8), "{:#?}", explained.suspects);
        }
    }

    #[test]
    fn metadata_locks_are_known_by_their_state_and_a_statement_that_held_nobody_up_is_no_suspect() {
        let waiting = of(level(&[("Waiting for table metadata lock", 60.0), ("executing", 20.0)], &[]));
        assert_eq!(shares(&waiting)[0], (Cause::MetadataLock, 0.75), "{:#?}", waiting.suspects);

        let quiet =
            of(level(&[("Sending data", 60.0)], &[("Com_alter_table", 1.0), ("Table_locks_waited", 3.0)]));
        let is_of_locks =
            |cause: Cause| matches!(cause, Cause::MetadataLock | Cause::TableLock | Cause::RowLock);
        assert!(shares(&quiet).iter().all(|(cause, _)| !is_of_locks(*cause)), "{:#?}", quiet.suspects);
        assert!(quiet.possible.iter().all(|possible| !is_of_locks(possible.id)), "{:#?}", quiet.possible);
    }

    #[test]
    fn of_a_server_elsewhere_it_is_reported_that_its_cpu_is_not_known() {
        let explained = of(level(&[("Sending data", 60.0), ("statistics", 20.0)], &[]));
        assert_eq!(shares(&explained)[0].0, Cause::Unknown);
        let text = &explained.suspects[0].text;
        for words in ["'Sending data' 75 %", "the CPU of the server's machine is not known from here", "next"]
        {
            assert!(text.contains(words), "{words} is missing in {text}");
        }
        assert!(shares(&explained).iter().all(|(cause, _)| *cause != Cause::Cpu));
    }

    #[test]
    fn the_performance_schema_gives_the_time_of_reads_and_the_main_statement() {
        let mut level = level(&[("Sending data", 80.0)], &[]);
        for (series, ns) in [
            // 20 s of the 40 that sessions executed.
            (series("pfs_file_types", "read_ns", "wait/io/file/innodb/innodb_data_file"), 20e9),
            (series("pfs_digests", "time_ns", "SELECT `v` FROM `orders` WHERE `w` = ?"), 36e9),
            (series("pfs_digests", "time_ns", "COMMIT"), 2e9),
            (series("pfs_digests", "time_ns", "SHOW GLOBAL STATUS"), 90e9),
            (series("pfs_digests", "count", "SHOW GLOBAL STATUS"), 10.0),
            (series("pfs_digests", "own_count", "SHOW GLOBAL STATUS"), 10.0),
        ] {
            level.counters.push(Counter { series, unit: "ns".to_string(), increase: ns });
        }
        let explained = of(level);
        let mut named = shares(&explained);
        named.sort_by_key(|(cause, _)| *cause);
        assert_eq!(named, [(Cause::BufferPoolMiss, 0.5), (Cause::Unknown, 0.5)], "{:#?}", explained.suspects);
        let unknown = explained.suspects.iter().find(|suspect| suspect.id == Cause::Unknown).unwrap();
        let words = "95 % of the statements' time was that of SELECT `v` FROM `orders` WHERE `w` = ?";
        assert!(unknown.text.contains(words), "{}", unknown.text);
    }

    #[test]
    fn on_full_cpus_that_are_known_executing_is_work_and_the_wait_for_a_cpu() {
        let explained = here(level(&[("Sending data", 100.0)], &[]), 0.02);
        assert_eq!(shares(&explained)[0].0, Cause::Cpu, "{:#?}", explained.suspects);
    }

    #[test]
    fn clients_that_wait_for_locks_want_no_more_users_and_idle_ones_are_no_trouble() {
        let held_up = here(level(&[("Waiting for table metadata lock", 60.0)], &[]), 0.95);
        assert_eq!(shares(&held_up)[0].0, Cause::MetadataLock, "{:#?}", held_up.suspects);
        assert!(shares(&held_up).iter().all(|(cause, _)| *cause != Cause::Unsaturated));
        let idle = here(level(&[("executing", 2.0)], &[]), 0.95);
        assert_eq!(shares(&idle), [(Cause::Unsaturated, 1.0)], "{:#?}", idle.suspects);
    }

    #[test]
    fn user_locks_and_clients_that_read_slowly_are_named() {
        let explained = of(level(&[("User lock", 60.0), ("Writing to net", 20.0)], &[]));
        assert_eq!(shares(&explained), [(Cause::UserLock, 0.75), (Cause::SlowReader, 0.25)]);
    }

    #[test]
    fn commits_go_to_the_log_that_they_wait_for() {
        let level = level(&[("Commit", 60.0), ("Sending data", 20.0)], &[]);
        assert_eq!(shares(&of(level.clone()))[0], (Cause::RedoFlush, 0.75));
        let variables = [("log_bin", "ON"), ("sync_binlog", "1"), ("innodb_flush_log_at_trx_commit", "2")];
        let variables = variables.map(|(name, value)| (name.to_string(), value.to_string())).into();
        let explained = explain(&Input { levels: vec![level], variables, ..Input::default() });
        assert_eq!(shares(&explained)[0], (Cause::Binlog, 0.75));
    }
}

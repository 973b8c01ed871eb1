//! Transactions that had not ended when a level's window did, and the users' time that they took.

use whyso_series::{InFlight, UserSeconds};

use crate::level::{Level, levels_evidence};
use crate::model::{Finding, LevelInput, LoopKind};

/// Where throughput × (mean response time + think time) / users is below this, a warning reports it.
const EXPLAINED_SHARE_MIN: f64 = 0.95;
/// A server that answers nothing for a shorter time at a window's end is not held to hang.
const SILENCE_S_MIN: f64 = 1.0;

/// Throughput × (mean response time + think time) / users: near 1 where response times show what users wait for (the
/// interactive response time law: Lazowska and others, Quantitative System Performance, 1984, chapter 3).
///
/// The mean response time is of transactions that ended in the window, and the think time is the measured time between
/// transactions. `None` where nobody had any time.
pub fn explained_share(users: u32, seconds: f64, time: &UserSeconds) -> Option<f64> {
    let all_s = f64::from(users) * seconds;
    let share = (time.ended + time.before + time.outside) / all_s;
    (all_s > 0.0 && share.is_finite()).then_some(share)
}

/// For how long a server had answered nothing when a window ended, although something was due all that time; in seconds.
///
/// `None` where that is no sign of a server that hangs. It is then less than a second, or no longer than the longest time that a
/// transaction took. `oldest_s`: age of the oldest transaction in flight.
pub fn silence_s(since_answer_s: f64, oldest_s: f64, longest_s: f64) -> Option<f64> {
    let silent_s = since_answer_s.min(oldest_s);
    (silent_s >= SILENCE_S_MIN && silent_s > longest_s).then_some(silent_s)
}

/// Why a level's response times say nothing of a part of the users' time, in sentences; empty where that is not so. In an
/// open loop what is due and unanswered shows as the backlog.
pub(crate) fn stuck(input: &LevelInput, seconds: f64) -> String {
    let is_closed = matches!(input.pacing, LoopKind::Closed | LoopKind::ClosedWithPauses);
    let (true, Some(in_flight), Some(time)) = (is_closed, &input.in_flight, &input.user_seconds) else {
        return String::new();
    };
    let share = explained_share(input.users, seconds, time);
    if in_flight.transactions == 0 || share.is_none_or(|share| share >= EXPLAINED_SHARE_MIN) {
        return String::new();
    }
    let InFlight { transactions, oldest_ms, older_than_ended, .. } = *in_flight;
    let subject = match transactions {
        1 => "1 transaction was".to_string(),
        _ => format!("{} transactions were", whyso_words::whole(transactions)),
    };
    let older = match older_than_ended {
        0 => String::new(),
        _ => format!(", {} of them longer than any that ended took", whyso_words::whole(older_than_ended)),
    };
    format!(
        "{subject} in flight when the window ended{older}: the oldest for {}. Transactions in flight took {} of the \
         users' time, which is in no mean response time.",
        age(oldest_ms),
        whyso_words::percent(time.in_flight / (f64::from(input.users) * seconds)),
    )
}

fn age(ms: f64) -> String {
    if ms >= 1e3 { format!("{} s", whyso_words::number(ms / 1e3)) } else { whyso_words::amount(ms, "ms") }
}

/// Reports the levels with stuck users.
pub(crate) fn finding(levels: &[Level]) -> Option<Finding> {
    let shown: Vec<&Level> = levels.iter().filter(|level| !level.verdict.stuck.is_empty()).collect();
    let parts: Vec<String> =
        shown.iter().map(|level| format!("At {} {}", level.name(), level.verdict.stuck)).collect();
    if parts.is_empty() {
        return None;
    }
    Some(Finding {
        id: "in-flight".to_string(),
        text: format!(
            "{} Find out what holds these transactions up, or measure for longer than they take (--seconds).",
            parts.join(" ")
        ),
        evidence: vec![levels_evidence("in_flight", &shown)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Input, Machine};

    fn level(in_flight_s: f64, ended_s: f64, before_s: f64) -> LevelInput {
        LevelInput {
            users: 8,
            end_ns: 6_000_000_000,
            transactions: 6_000,
            bins_100ms: vec![100; 60],
            in_flight: Some(InFlight {
                transactions: 8,
                oldest_ms: 5_940.0,
                not_begun: 0,
                older_than_ended: 4,
            }),
            user_seconds: Some(UserSeconds {
                ended: ended_s,
                in_flight: in_flight_s,
                outside: 48.0 - ended_s - in_flight_s,
                before: before_s,
                paused: 0.0,
            }),
            ..LevelInput::default()
        }
    }

    #[test]
    fn users_in_transactions_that_do_not_end_are_reported() {
        let input = Input { levels: vec![level(23.9, 24.0, 0.0)], ..Input::default() };
        let explained = crate::explain(&input);
        let finding = explained.findings.iter().find(|finding| finding.id == "in-flight").unwrap();
        assert_eq!(
            finding.text,
            "At 8 users 8 transactions were in flight when the window ended, 4 of them longer than any that ended took: the \
             oldest for 5.94 s. Transactions in flight took 50 % of the users' time, which is in no mean response time. Find out what holds these transactions up, or measure for \
             longer than they take (--seconds)."
        );
        assert!(explained.levels[0].stuck.starts_with("8 transactions were in flight"));
    }

    #[test]
    fn what_began_before_the_window_makes_up_for_what_ends_after_it() {
        let stuck = |input: LevelInput| crate::verdict::judge(&input, &Machine::default()).verdict.stuck;
        // 6 of 48 user-seconds are in flight, and those that ended had begun 5 before the window.
        assert_eq!(stuck(level(6.0, 42.0, 5.0)), "");
        assert_ne!(stuck(level(6.0, 42.0, 0.0)), "");
        // Just at the bound, and thinking users.
        assert_eq!(stuck(level(2.4, 45.6, 0.0)), "");
        assert_eq!(stuck(level(0.1, 1.0, 0.0)), "");
        assert_eq!(stuck(LevelInput { pacing: LoopKind::Open, ..level(23.9, 24.0, 0.0) }), "");
        assert_eq!(stuck(LevelInput { in_flight: None, user_seconds: None, ..level(23.9, 24.0, 0.0) }), "");
    }

    #[test]
    fn a_server_that_falls_silent_differs_from_one_that_takes_long() {
        assert_eq!(silence_s(3.9, 3.8, 0.06), Some(3.8));
        // It answers others, nothing was due, it takes as long otherwise, and a moment is no sign.
        assert_eq!(silence_s(0.001, 5.9, 0.06), None);
        assert_eq!(silence_s(5.9, 0.0, 0.06), None);
        assert_eq!(silence_s(3.9, 3.8, 4.0), None);
        assert_eq!(silence_s(0.9, 0.9, 0.06), None);
    }
}

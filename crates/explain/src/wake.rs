//! The price of waking an idle CPU.
//!
//! One user alone leaves every CPU idle between two statements, and waking one, on a virtual machine
//! above all, may cost more than the statement. Two users then do far more than twice the work of
//! one. That is no super-linear scaling, and it would wreck a fit of the scalability law.

use crate::level::{Level, levels_evidence};
use crate::model::Finding;
use crate::regime::Shape;

/// The next level must do this many times the work of the lowest, a user.
const GAIN_A_USER_MIN: f64 = 1.25;

/// With less idle time than this, waking is not the reason.
const IDLE_MIN: f64 = 0.1;

/// Beyond these, idle CPUs are not what one thinks of first.
const FIRST_USERS_MAX: u32 = 2;
const NEXT_USERS_MAX: u32 = 8;

/// Position in the shape's points of a level that waking slowed down: the first, or none.
pub(crate) fn slowed_point(shape: &Shape, levels: &[Level]) -> Option<usize> {
    let [first, next, ..] = shape.points.as_slice() else {
        return None;
    };
    let is_low = first.users <= FIRST_USERS_MAX && next.users <= NEXT_USERS_MAX;
    let gain_a_user = (next.per_s / f64::from(next.users)) / (first.per_s / f64::from(first.users));
    let is_idle =
        first.positions.iter().all(|&position| levels[position].cpu.is_none_or(|cpu| cpu.idle >= IDLE_MIN));
    (is_low && is_idle && gain_a_user > GAIN_A_USER_MIN).then_some(0)
}

pub(crate) fn finding(shape: &Shape, levels: &[Level]) -> Option<Finding> {
    let at = slowed_point(shape, levels)?;
    let first = &shape.points[at];
    let next = &shape.points[at + 1];
    let shown: Vec<&Level> = [first, next]
        .iter()
        .flat_map(|point| point.positions.iter().map(|&position| &levels[position]))
        .collect();
    let idle = match shown.first().and_then(|level| level.cpu) {
        Some(cpu) => format!(" ({} of the CPU time was idle)", whyso_words::percent(cpu.idle.max(0.0))),
        None => String::new(),
    };
    let first_users = whyso_words::users(first.users);
    let text = format!(
        "{} did {} times the work of {} ({}/s against {}/s), more than their number explains. The likely reason is the price \
         of waking idle CPUs, which is high on virtual machines: {} alone{idle} pays it at every statement, more users keep \
         the CPUs awake. So this is no scaling better than linear, and the level of {first_users} is left out of the scalability law's fit.",
        whyso_words::users(next.users),
        whyso_words::number(next.per_s / first.per_s),
        whyso_words::users(first.users),
        whyso_words::number(next.per_s),
        whyso_words::number(first.per_s),
        if first.users == 1 { "one user".to_string() } else { first_users.clone() },
    );
    Some(Finding {
        id: "idle-wake".to_string(),
        text,
        evidence: vec![levels_evidence("transactions_per_s", &shown)],
    })
}

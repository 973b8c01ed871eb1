//! The made run's threads second by second: those of [`super::threads`], with a pause of all at 32 users and a purge that comes and goes.

use whyso_record::StateLooks;
use whyso_record::run::Level;
use whyso_series::{Stretch, Timeline};

use crate::made::threads::{BACKGROUND, FIRST_TID, STATES, at_work};
use crate::made::{HOSTILE, Noise, S};

const MS_PER_S: f64 = 1_000.0;

/// Each second from the first level's begin to the last one's end.
pub(crate) fn looks(levels: &[Level]) -> StateLooks {
    let (begin_ns, end_ns) = (levels[0].warmup.begin_ns, levels[levels.len() - 1].window.end_ns);
    let t_ns: Vec<i64> = (begin_ns..=end_ns).step_by(S as usize).collect();
    let cells = t_ns.len() * (BACKGROUND.len() + 8);
    StateLooks { t_ns, cells }
}

pub(crate) fn timeline(levels: &[Level], edges_ns: &[i64], hostile: bool) -> Timeline {
    let mut timeline = Timeline::new(STATES.map(str::to_string).to_vec(), edges_ns.to_vec());
    let mut noise = Noise::new(17);
    let mut connections = 0;
    for pair in looks(levels).t_ns.windows(2) {
        let (begin_ns, end_ns) = (pair[0], pair[1]);
        let level =
            levels.iter().find(|level| level.warmup.begin_ns <= begin_ns && begin_ns < level.window.end_ns);
        let users = level.map_or(0, |level| level.users);
        connections = connections.max(users as usize);
        let is_stalled =
            level.is_some_and(|level| users == 32 && (begin_ns - level.window.begin_ns) / S == 5);
        for (number, (name, role, shares)) in BACKGROUND.iter().enumerate() {
            let wanders = (begin_ns / S + number as i64 * 3) % 9 < 3 && *role == "purge";
            let shares = if wanders { &[(0, 0.35), (5, 0.45), (3, 0.2)] } else { *shares };
            enter(&mut timeline, number, name, role, (begin_ns, end_ns), shares);
        }
        for user in 0..connections {
            let number = BACKGROUND.len() + user;
            let name = if hostile && user == 0 { HOSTILE } else { "one_connection" };
            let shares = match () {
                () if user >= users as usize => vec![(9, 1.0)],
                () if is_stalled => vec![(3, 0.12), (7, 0.87), (0, 0.01)],
                () => at_work(users, &mut noise),
            };
            enter(&mut timeline, number, name, "connection", (begin_ns, end_ns), &shares);
        }
    }
    timeline
}

fn enter(
    timeline: &mut Timeline,
    number: usize,
    name: &str,
    role: &str,
    (begin_ns, end_ns): (i64, i64),
    shares: &[(usize, f64)],
) {
    let mut states_ms = [0.0; STATES.len()];
    for (state, share) in shares {
        states_ms[*state] = (MS_PER_S * share).round();
    }
    let tid = FIRST_TID + number as u32;
    timeline.enter(&Stretch { tid, born_ns: 1, name, role, begin_ns, end_ns, states_ms: &states_ms });
}

//! The threads of the made run's server: a thread a user, and those in the background.

use std::collections::HashMap;

use whyso_record::run::Level;
use whyso_series::{Look, Seen, ThreadTable, Told};

use crate::made::{HOSTILE, Noise};

pub(crate) const STATES: [&str; 14] = [
    "cpu",
    "runqueue",
    "wakeup",
    "lock",
    "kernel_lock",
    "file_read",
    "file_write",
    "file_sync",
    "net_send",
    "net_receive",
    "page_fault",
    "sleep",
    "aio",
    "other",
];
/// States that a thread spends its time in: place in [`STATES`], share.
pub(crate) type Shares = &'static [(usize, f64)];
/// Name and role.
pub(crate) const BACKGROUND: [(&str, &str, Shares); 7] = [
    ("mariadbd", "listener", &[(9, 1.0)]),
    ("ib_log_flush", "log flusher", &[(7, 0.93), (3, 0.05), (0, 0.02)]),
    ("ib_log_wr", "log writer", &[(3, 0.8), (6, 0.15), (0, 0.05)]),
    ("ib_page_cleaner", "page cleaner", &[(11, 0.7), (6, 0.2), (7, 0.08), (0, 0.02)]),
    ("ib_purge", "purge", &[(3, 0.7), (0, 0.3)]),
    ("ib_purge_wkr", "purge", &[(3, 0.95), (0, 0.05)]),
    ("ib_io_wr-1", "io", &[(12, 0.97), (0, 0.03)]),
];
pub(crate) const FIRST_TID: u32 = 4_000;

/// Looked at at both ends of every measured window; a thread for each user joins when the first level needs it.
pub(crate) fn table(levels: &[Level], hostile: bool) -> ThreadTable {
    let mut noise = Noise::new(11);
    let mut seen: Vec<Seen> =
        BACKGROUND.iter().enumerate().map(|(number, (name, role, _))| one(number, name, role)).collect();
    let (mut looks, mut told) = (Vec::new(), Vec::new());
    let mut before_ns = levels.first().map_or(0, |level| level.warmup.begin_ns);
    let edges = levels
        .iter()
        .flat_map(|level| [(level.window.begin_ns, level.users), (level.window.end_ns, level.users)]);
    looks.push(Look { t_ns: before_ns, threads: seen.clone() });
    for (t_ns, users) in edges {
        while seen.len() < BACKGROUND.len() + users as usize {
            let name = if hostile && seen.len() == BACKGROUND.len() { HOSTILE } else { "one_connection" };
            seen.push(one(seen.len(), name, "connection"));
        }
        let span = (t_ns - before_ns).max(0) as f64;
        for (number, thread) in seen.iter_mut().enumerate() {
            let shares: Vec<(usize, f64)> = match BACKGROUND.get(number) {
                Some((_, _, shares)) => shares.to_vec(),
                None if number < BACKGROUND.len() + users as usize => at_work(users, &mut noise),
                None => vec![(9, 1.0)],
            };
            for (state, share) in shares {
                thread.states_ns[state] += (span * share) as u64;
            }
            if thread.role == "connection" {
                thread.requests += (span / 2e6) as u64;
            }
        }
        looks.push(Look { t_ns, threads: seen.clone() });
        let statement = if hostile { HOSTILE } else { "UPDATE sbtest1 SET k=k+? WHERE id=?" };
        let says = |thread: &Seen| (thread.tid, (u64::from(thread.tid) - 3_990, Some(statement.to_string())));
        let by_tid: HashMap<_, _> =
            seen.iter().filter(|thread| thread.role == "connection").map(says).collect();
        told.push(Told { t_ns, by_tid });
        before_ns = t_ns;
    }
    ThreadTable::new(STATES.map(str::to_string).to_vec(), looks, &told)
}

fn one(number: usize, name: &str, role: &str) -> Seen {
    Seen {
        tid: FIRST_TID + number as u32,
        born_ns: 1,
        name: name.to_string(),
        role: role.to_string(),
        states_ns: vec![0; STATES.len()],
        ..Seen::default()
    }
}

/// A connection's shares: with many users it waits for locks most of the time.
pub(crate) fn at_work(users: u32, noise: &mut Noise) -> Vec<(usize, f64)> {
    let n = f64::from(users);
    let lock = 0.6 * (1.0 - (-n / 20.0).exp()) * (0.85 + 0.3 * noise.next());
    let cpu = (0.9 / n.max(2.0)) * (0.9 + 0.2 * noise.next());
    let runqueue = (1.0 - lock - cpu) * 0.4;
    let sync = (1.0 - lock - cpu) * 0.2;
    vec![(0, cpu), (1, runqueue), (3, lock), (7, sync), (9, 1.0 - lock - cpu - runqueue - sync)]
}

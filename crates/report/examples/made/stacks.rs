//! The stacks of the made run: a few paths, whose waits for locks grow with the users.

use whyso_record::data::{StackFrame, StackSample, StackWait};
use whyso_record::run::Level;
use whyso_report::Stacks;

use crate::made::threads::{BACKGROUND, FIRST_TID};
use crate::made::{HOSTILE, Noise};

const OUTER: &str = "start_thread@libc.so.6;handle_one_connection;do_command(THD*, bool);\
    dispatch_command(enum_server_command, THD*, char*, unsigned int, bool)";
/// State, and what stands above [`OUTER`]; a function is of the server where it names no module.
const PATHS: [(&str, &str); 8] = [
    (
        "cpu",
        "mysql_execute_command(THD*, bool);ha_innobase::index_read;row_search_mvcc;btr_cur_t::search_leaf;page_cur_search_with_match",
    ),
    (
        "cpu",
        "mysql_execute_command(THD*, bool);ha_innobase::index_read;row_search_mvcc;row_sel_store_mysql_rec;memcpy@libc.so.6",
    ),
    ("cpu", "mysql_execute_command(THD*, bool);parse_sql(THD*, Parser_state*);MYSQLlex"),
    ("cpu", "net_flush;vio_write;send@libc.so.6;__sys_sendto@[kernel];sock_sendmsg@[kernel]"),
    (
        "lock",
        "mysql_execute_command(THD*, bool);ha_innobase::update_row;lock_wait(que_thr_t*);pthread_cond_wait@libc.so.6;futex_wait@[kernel]",
    ),
    (
        "lock",
        "trans_commit(THD*);trx_commit_complete_for_mysql;log_write_up_to;group_commit_lock::acquire;futex_wait@[kernel]",
    ),
    (
        "file_sync",
        "trans_commit(THD*);trx_commit_complete_for_mysql;log_write_up_to;log_t::flush;fdatasync@libc.so.6;vfs_fsync_range@[kernel]",
    ),
    ("page_fault", "mysql_execute_command(THD*, bool);ha_innobase::index_read;exc_page_fault@[kernel]"),
];
const PURGE: &str = "start_thread@libc.so.6;srv_purge_coordinator_thread;trx_purge;row_purge_step";
/// Place of the purge thread in [`BACKGROUND`].
const PURGE_PLACE: u32 = 4;
/// Who lets a lock go.
const RELEASED: &str = "trans_commit(THD*);trx_commit_complete_for_mysql;lock_release(trx_t*);pthread_cond_signal@libc.so.6;futex_wake@[kernel]";
const RELEASE: u32 = PATHS.len() as u32 + 1;
const PER_LEVEL: usize = 400;

pub(crate) fn stacks(levels: &[Level], hostile: bool) -> Stacks {
    let mut noise = Noise::new(13);
    let mut stacks = Stacks::default();
    for (stack, (_, path)) in PATHS.iter().enumerate() {
        stacks.frames.extend(frames(stack as u32, &format!("{OUTER};{path}"), hostile));
    }
    let purge = PATHS.len() as u32;
    stacks.frames.extend(frames(purge, PURGE, hostile));
    stacks.frames.extend(frames(RELEASE, &format!("{OUTER};{RELEASED}"), hostile));
    for level in levels {
        let length = level.window.end_ns - level.window.begin_ns;
        let waits_more = (f64::from(level.users) / 8.0).min(4.0);
        for number in 0..PER_LEVEL {
            let tid_of = |of: usize| FIRST_TID + (BACKGROUND.len() + of % level.users as usize) as u32;
            let t_ns = level.window.begin_ns + (noise.next() * length as f64) as i64;
            let place = (noise.next() * PATHS.len() as f64) as usize;
            let (state, _) = PATHS[place];
            let (role, stack) =
                if number % 20 == 0 { ("purge", purge) } else { ("connection", place as u32) };
            let tid = if stack == purge { FIRST_TID + PURGE_PLACE } else { tid_of(number) };
            if state == "cpu" || stack == purge {
                let sample = StackSample { t_ns, tid, role: role.to_string(), stack, weight_ns: 10_101_010 };
                stacks.samples.push(sample);
                continue;
            }
            let length_ns = (noise.next() * 9e6 * if state == "lock" { waits_more } else { 1.0 }) as u64;
            stacks.waits.push(StackWait {
                t_ns,
                wait: number as u64,
                tid,
                role: role.to_string(),
                state: state.to_string(),
                length_ns,
                weight_ns: length_ns * 3,
                stack,
                waker_tid: if state == "lock" { tid_of(number * 7 + 1) } else { 0 },
                waker_stack: (state == "lock").then_some(RELEASE),
                waker_past: Vec::new(),
            });
        }
    }
    stacks
}

fn frames(stack: u32, path: &str, hostile: bool) -> Vec<StackFrame> {
    let frame = |(depth, told): (usize, &str)| {
        let (function, module) = told.split_once('@').unwrap_or((told, "mariadbd"));
        StackFrame {
            stack,
            depth: depth as u32,
            function: if hostile && depth == 0 { HOSTILE } else { function }.to_string(),
            module: module.to_string(),
            build_id: None,
            address: 0,
            source_file: None,
            line: None,
            inlined: false,
        }
    };
    path.split(';').rev().enumerate().map(frame).collect()
}

//! Looks for scripts that do not give way, and ends those that keep a run from ending or other users from working.
//!
//! sysbench lets a script compute or wait for as long as it likes, and so does this. A user on a
//! thread of its own, a command such as `prepare`, and the loading of a script may take any time. A script is ended only
//! in three cases, which [`judge`] distinguishes:
//!
//! - Other users of its loop cannot work because of it.
//! - The run's time is over, and the script shows no end.
//! - Somebody interrupted the run.
//!
//! A thread checks every loop. To end a turn it sets a hook in the loop's Lua state, which raises an error at the
//! script's next instruction. A script that catches it is struck again, and then at every instruction until its
//! coroutine has ended. Compiled traces look for hooks where LuaJIT was built with `LUAJIT_ENABLE_CHECKHOOK`, which
//! `.cargo/config.toml` asks for.

use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mlua::ffi::{self, lua_Debug, lua_State};
use whyso_clock::monotonic_ns;

use crate::error::ScriptError;
use crate::facts::Stage;
use crate::say::note;
use crate::state::State;

const CHECK_EVERY: Duration = Duration::from_millis(100);
/// What a script gets to end after it was struck.
const STRIKE_EVERY_NS: i64 = 1_000_000_000;
/// How long a script may take to end after the run was interrupted, or is to be abandoned.
const GRACE_NS: i64 = 1_000_000_000;

/// The error that is raised in a script that is struck.
pub(crate) const TOO_LONG: &std::ffi::CStr =
    c"the script ran for too long without a query: a loop that never ends? (--turn-timeout=SECONDS allows more)";

/// When the run's time is over, and when it is abandoned; in monotonic nanoseconds, `i64::MAX` where that is unknown.
static ENDS_NS: AtomicI64 = AtomicI64::new(i64::MAX);
static GIVEN_UP_NS: AtomicI64 = AtomicI64::new(i64::MAX);

/// Sets when the run's time is over; an earlier time that was set before stays.
pub(crate) fn run_ends_at(at_ns: i64) {
    ENDS_NS.fetch_min(at_ns, Relaxed);
}

/// Nothing that still runs is waited for any more.
pub(crate) fn give_up_now() {
    GIVEN_UP_NS.fetch_min(monotonic_ns(), Relaxed);
}

/// A turn that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    begin_ns: i64,
    /// The longest turn of this loop that has ended; resolved to [`CHECK_EVERY`].
    longest_ns: i64,
    /// Other users of the loop that have not left: they cannot work meanwhile.
    others: u32,
    stage: Stage,
}

/// When the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    ends_ns: i64,
    given_up_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    GoesOn,
    Warn,
    Strike,
}

/// Decides on a turn. `turn_max_ns`: `--turn-timeout`.
fn judge(turn: Turn, end: End, turn_max_ns: i64, now_ns: i64) -> Verdict {
    let ran_ns = now_ns - turn.begin_ns;
    let since = |at_ns: i64| now_ns.saturating_sub(at_ns.max(turn.begin_ns));
    if now_ns >= end.given_up_ns && since(end.given_up_ns) >= GRACE_NS {
        return Verdict::Strike;
    }
    // A script whose turns take long by nature gets as much again.
    let patience_ns = turn_max_ns.max(turn.longest_ns.saturating_mul(2));
    if now_ns >= end.ends_ns && since(end.ends_ns) > patience_ns {
        return Verdict::Strike;
    }
    match turn.stage {
        _ if turn.others == 0 || ran_ns <= turn_max_ns => Verdict::GoesOn,
        Stage::Prepares => Verdict::Warn,
        Stage::Runs => Verdict::Strike,
    }
}

/// What the watchdog sees of a loop.
#[derive(Debug, Default)]
struct LoopState {
    /// Turns that have begun or ended: odd within one.
    edges: AtomicU64,
    /// `None` once the loop's Lua state may be closed.
    lua: Mutex<Option<OpenState>>,
    /// How often the turn was struck.
    strikes: AtomicU32,
    /// Users that have not left.
    users: AtomicU32,
}

/// The main coroutine of a Lua state that is not closed.
#[derive(Debug)]
struct OpenState(NonNull<lua_State>);

// SAFETY: the pointer is used only to set a hook, which LuaJIT allows from elsewhere while the state runs.
unsafe impl Send for OpenState {}

impl LoopState {
    #[inline]
    fn pass_edge(&self) {
        // The loop's thread alone writes to it.
        self.edges.store(self.edges.load(Relaxed) + 1, Release);
    }

    fn lua(&self) -> MutexGuard<'_, Option<OpenState>> {
        self.lua.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the hook that raises an error in the script.
    fn strike(&self) {
        let lua = self.lua();
        let Some(OpenState(lua)) = &*lua else { return };
        // SAFETY: the state is open, and stays so while the lock is held. LuaJIT lets a hook be set at any time, to
        // interrupt what runs: it stores single words that hold for all coroutines of the state.
        unsafe { ffi::lua_sethook(lua.as_ptr(), Some(hook), ffi::LUA_MASKCOUNT, 1) };
    }
}

/// What the watchdog remembers of a loop between two checks.
#[derive(Debug)]
struct LoopWatch {
    loop_state: Arc<LoopState>,
    /// As they were found last, and when they had first been found so.
    edges: u64,
    since_ns: i64,
    longest_ns: i64,
    was_warned_of: bool,
}

/// A loop's side of the watchdog.
pub(crate) struct Watch {
    loop_state: Arc<LoopState>,
    /// Keeps the Lua state open for as long as it may be struck.
    _state: Rc<State>,
}

thread_local! {
    /// The loop of this thread, for the hook.
    static HERE: Cell<*const LoopState> = const { Cell::new(std::ptr::null()) };
}

impl Watch {
    #[inline]
    pub(crate) fn begin_turn(&self) {
        self.loop_state.pass_edge();
    }

    #[inline]
    pub(crate) fn end_turn(&self) {
        self.loop_state.pass_edge();
        if self.loop_state.strikes.load(Relaxed) != 0 {
            self.loop_state.strikes.store(0, Relaxed);
        }
    }

    /// Whether the present turn takes too long.
    pub(crate) fn was_struck(&self) -> bool {
        self.loop_state.strikes.load(Relaxed) != 0
    }

    /// A user of the loop has left.
    pub(crate) fn user_left(&self) {
        let users = self.loop_state.users.load(Relaxed);
        self.loop_state.users.store(users.saturating_sub(1), Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.loop_state.lua() = None;
        HERE.set(std::ptr::null());
    }
}

/// The watchdog of a run; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    loops: Arc<Mutex<Vec<LoopWatch>>>,
    is_over: Arc<AtomicBool>,
}

impl Watchdog {
    /// Begins to watch. `turn_max`: how long a turn may keep other users from working; `stage`: what is under way now.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn new(
        turn_max: Duration,
        stage: impl Fn() -> Stage + Send + 'static,
    ) -> Result<Watchdog, ScriptError> {
        let loops: Arc<Mutex<Vec<LoopWatch>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (watched, over) = (loops.clone(), is_over.clone());
        let turn_max_ns = i64::try_from(turn_max.as_nanos()).unwrap_or(i64::MAX);
        std::thread::Builder::new()
            .name("sb-watchdog".to_string())
            .spawn(move || {
                while !over.load(Acquire) {
                    std::thread::sleep(CHECK_EVERY);
                    check_loops(
                        &mut watched.lock().unwrap_or_else(PoisonError::into_inner),
                        turn_max_ns,
                        stage(),
                    );
                }
            })
            .map_err(ScriptError::Watchdog)?;
        Ok(Watchdog { loops, is_over })
    }

    /// Watches the loop of this thread: its Lua state, which runs nothing yet, and its number of users.
    pub(crate) fn watch(&self, state: &Rc<State>, users: usize) -> Rc<Watch> {
        let users = AtomicU32::new(u32::try_from(users).unwrap_or(u32::MAX));
        // Outside of a coroutine, the current one is the main one, which lives as long as the state.
        let main = state.lua.current_thread().state();
        let lua = Mutex::new(NonNull::new(main).map(OpenState));
        let loop_state = Arc::new(LoopState { users, lua, ..LoopState::default() });
        HERE.set(Arc::as_ptr(&loop_state));
        self.loops.lock().unwrap_or_else(PoisonError::into_inner).push(LoopWatch {
            loop_state: loop_state.clone(),
            edges: 0,
            since_ns: 0,
            longest_ns: 0,
            was_warned_of: false,
        });
        Rc::new(Watch { loop_state, _state: state.clone() })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.is_over.store(true, Release);
    }
}

/// A turn's time counts from the first check that found it, so that turns need read no clock.
fn check_loops(loops: &mut Vec<LoopWatch>, turn_max_ns: i64, stage: Stage) {
    loops.retain(|watched| watched.loop_state.lua().is_some());
    let now_ns = monotonic_ns();
    let end = End { ends_ns: ENDS_NS.load(Relaxed), given_up_ns: GIVEN_UP_NS.load(Relaxed) };
    for watched in loops.iter_mut() {
        let loop_state = &watched.loop_state;
        let edges = loop_state.edges.load(Acquire);
        if edges != watched.edges {
            if watched.edges % 2 == 1 {
                watched.longest_ns = watched.longest_ns.max(now_ns - watched.since_ns);
            }
            (watched.edges, watched.since_ns) = (edges, now_ns);
        }
        if edges % 2 == 0 {
            continue;
        }
        let strikes = loop_state.strikes.load(Relaxed);
        let begin_ns = watched.since_ns.saturating_add(i64::from(strikes) * STRIKE_EVERY_NS);
        let others = loop_state.users.load(Relaxed).saturating_sub(1);
        let turn = Turn { begin_ns, longest_ns: watched.longest_ns, others, stage };
        match judge(turn, end, turn_max_ns, now_ns) {
            Verdict::GoesOn => {}
            Verdict::Warn if watched.was_warned_of => {}
            Verdict::Warn => {
                watched.was_warned_of = true;
                let seconds = turn_max_ns / 1_000_000_000;
                note(&format!(
                    "whyso: warning: the script has run for {seconds} s without a query, and {others} other users wait \
                     for it; --engine=threads gives each user a thread of its own"
                ));
            }
            Verdict::Strike => {
                loop_state.strikes.store(strikes + 1, Relaxed);
                loop_state.strike();
            }
        }
    }
}

/// Raises an error in a script whose turn takes too long.
unsafe extern "C-unwind" fn hook(state: *mut lua_State, _activation: *mut lua_Debug) {
    // SAFETY: it is null, or of a watch of this thread that was not dropped, which holds it.
    let strikes = unsafe { HERE.get().as_ref() }.map_or(0, |loop_state| loop_state.strikes.load(Relaxed));
    // SAFETY: LuaJIT calls this with the coroutine that runs, whose stack has the room that every C function gets. Nothing in
    // this frame needs to be dropped, so that the error may unwind through it.
    unsafe {
        // The first error has to be reported, which takes instructions too.
        if strikes <= 1 {
            ffi::lua_sethook(state, None, 0, 0);
        }
        if strikes > 0 {
            // With the line at which the script is: within a hook, level 0 is the function that runs.
            ffi::luaL_where(state, 0);
            ffi::lua_pushstring(state, TOO_LONG.as_ptr());
            ffi::lua_concat(state, 2);
            ffi::lua_error(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const TURN_MAX_NS: i64 = 30 * S;
    const NEVER: End = End { ends_ns: i64::MAX, given_up_ns: i64::MAX };

    fn turn(stage: Stage, others: u32) -> Turn {
        Turn { begin_ns: 0, longest_ns: 0, others, stage }
    }

    fn judged(turn: Turn, end: End, after_s: i64) -> Verdict {
        judge(turn, end, TURN_MAX_NS, after_s * S)
    }

    #[test]
    fn a_script_that_keeps_nobody_waiting_may_run_for_ever() {
        for stage in [Stage::Prepares, Stage::Runs] {
            assert_eq!(judged(turn(stage, 0), NEVER, 100_000), Verdict::GoesOn);
        }
    }

    #[test]
    fn a_command_that_keeps_others_waiting_is_warned_of_and_never_ended() {
        assert_eq!(judged(turn(Stage::Prepares, 7), NEVER, 30), Verdict::GoesOn);
        assert_eq!(judged(turn(Stage::Prepares, 7), NEVER, 31), Verdict::Warn);
        assert_eq!(judged(turn(Stage::Prepares, 7), NEVER, 100_000), Verdict::Warn);
    }

    #[test]
    fn an_event_that_keeps_others_waiting_is_ended() {
        assert_eq!(judged(turn(Stage::Runs, 1), NEVER, 30), Verdict::GoesOn);
        assert_eq!(judged(turn(Stage::Runs, 1), NEVER, 31), Verdict::Strike);
    }

    #[test]
    fn an_event_without_end_does_not_outlive_the_run_and_a_long_one_does() {
        let end = End { ends_ns: 10 * S, ..NEVER };
        assert_eq!(judged(turn(Stage::Runs, 0), end, 40), Verdict::GoesOn);
        assert_eq!(judged(turn(Stage::Runs, 0), end, 41), Verdict::Strike);
        // Its turns took 50 s before: this one gets 100 s from the end on.
        let long = Turn { longest_ns: 50 * S, ..turn(Stage::Runs, 0) };
        assert_eq!(judged(long, end, 110), Verdict::GoesOn);
        assert_eq!(judged(long, end, 111), Verdict::Strike);
        // One that began after the end, such as thread_done(), gets the same from its own begin.
        let late = Turn { begin_ns: 20 * S, ..turn(Stage::Runs, 0) };
        assert_eq!(judged(late, end, 50), Verdict::GoesOn);
        assert_eq!(judged(late, end, 51), Verdict::Strike);
    }

    #[test]
    fn whatever_runs_is_ended_a_second_after_the_interruption() {
        for stage in [Stage::Prepares, Stage::Runs] {
            let end = End { given_up_ns: 5 * S, ..NEVER };
            assert_eq!(judged(turn(stage, 0), end, 5), Verdict::GoesOn);
            assert_eq!(judged(turn(stage, 0), end, 6), Verdict::Strike);
        }
    }
}

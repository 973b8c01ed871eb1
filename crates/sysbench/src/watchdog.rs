//! Ends scripts that do not give way.
//!
//! A thread looks at every loop; where a turn takes too long it sets a hook in the loop's Lua state, which raises an error
//! at the script's next instruction. A script that catches it is struck again, and then at every instruction until its
//! coroutine has ended. Compiled traces look for hooks where LuaJIT was built with `LUAJIT_ENABLE_CHECKHOOK`, which
//! `.cargo/config.toml` asks for.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mlua::ffi::{self, lua_Debug, lua_State};
use whyso_clock::monotonic_ns;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What a script gets to end after it was struck.
const STRIKE_EVERY_NS: i64 = 1_000_000_000;

/// What a script that is struck is told.
pub(crate) const TOO_LONG: &std::ffi::CStr =
    c"the script ran for too long without a query: a loop that never ends? (--turn-timeout=SECONDS allows more)";

/// What the watchdog sees of a loop.
#[derive(Debug, Default)]
struct Seen {
    /// Turns that have begun or ended: odd within one.
    edges: AtomicU64,
    coroutine: AtomicPtr<lua_State>,
    /// How often the turn was struck.
    strikes: AtomicU32,
    is_gone: AtomicBool,
}

impl Seen {
    #[inline]
    fn pass_edge(&self) {
        // The loop's thread alone writes to it.
        self.edges.store(self.edges.load(Relaxed) + 1, Release);
    }
}

/// What the watchdog remembers of a loop between two looks.
#[derive(Debug)]
struct Watched {
    seen: Arc<Seen>,
    /// As they were found last, and when they had first been found so.
    edges: u64,
    since_ns: i64,
}

/// A loop's side of the watchdog.
#[derive(Debug)]
pub(crate) struct Watch {
    seen: Arc<Seen>,
}

thread_local! {
    /// The loop of this thread, for the hook.
    static HERE: Cell<*const Seen> = const { Cell::new(std::ptr::null()) };
}

impl Watch {
    #[inline]
    pub(crate) fn begin_turn(&self, coroutine: *mut lua_State) {
        self.seen.coroutine.store(coroutine, Relaxed);
        self.seen.pass_edge();
    }

    #[inline]
    pub(crate) fn end_turn(&self) {
        self.seen.pass_edge();
        if self.seen.strikes.load(Relaxed) != 0 {
            self.seen.strikes.store(0, Relaxed);
        }
    }

    /// Whether the present turn takes too long.
    pub(crate) fn was_struck(&self) -> bool {
        self.seen.strikes.load(Relaxed) != 0
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.seen.is_gone.store(true, Release);
        HERE.set(std::ptr::null());
    }
}

/// The watchdog of a run; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    loops: Arc<Mutex<Vec<Watched>>>,
    is_over: Arc<AtomicBool>,
}

impl Watchdog {
    /// Begins to watch; turns may take as long as `turn_max`.
    ///
    /// # Errors
    /// No thread can be made.
    pub(crate) fn new(turn_max: Duration) -> Result<Watchdog, String> {
        let loops: Arc<Mutex<Vec<Watched>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (watched, over) = (loops.clone(), is_over.clone());
        let turn_max_ns = i64::try_from(turn_max.as_nanos()).unwrap_or(i64::MAX);
        std::thread::Builder::new()
            .name("sb-watchdog".to_string())
            .spawn(move || {
                while !over.load(Acquire) {
                    std::thread::sleep(LOOK_EVERY);
                    look(&mut watched.lock().unwrap_or_else(PoisonError::into_inner), turn_max_ns);
                }
            })
            .map_err(|error| format!("the thread that watches scripts can't be made: {error}"))?;
        Ok(Watchdog { loops, is_over })
    }

    /// Watches the loop of this thread.
    pub(crate) fn watch(&self) -> Rc<Watch> {
        let seen = Arc::new(Seen::default());
        HERE.set(Arc::as_ptr(&seen));
        self.loops.lock().unwrap_or_else(PoisonError::into_inner).push(Watched {
            seen: seen.clone(),
            edges: 0,
            since_ns: 0,
        });
        Rc::new(Watch { seen })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.is_over.store(true, Release);
    }
}

/// A turn's time counts from the first look that found it, so that turns need read no clock.
fn look(loops: &mut Vec<Watched>, turn_max_ns: i64) {
    loops.retain(|watched| !watched.seen.is_gone.load(Acquire));
    let now_ns = monotonic_ns();
    for watched in loops.iter_mut() {
        let seen = &watched.seen;
        let edges = seen.edges.load(Acquire);
        if edges != watched.edges {
            (watched.edges, watched.since_ns) = (edges, now_ns);
        }
        let is_within = edges % 2 == 1;
        let strikes = seen.strikes.load(Relaxed);
        let allowed_ns = turn_max_ns.saturating_add(i64::from(strikes) * STRIKE_EVERY_NS);
        if is_within && now_ns - watched.since_ns > allowed_ns {
            seen.strikes.store(strikes + 1, Relaxed);
            let coroutine = seen.coroutine.load(Acquire);
            // LuaJIT lets another thread set a hook, to interrupt one that runs.
            unsafe { ffi::lua_sethook(coroutine, Some(hook), ffi::LUA_MASKCOUNT, 1) };
        }
    }
}

/// Raises an error in a script whose turn takes too long.
unsafe extern "C-unwind" fn hook(state: *mut lua_State, _activation: *mut lua_Debug) {
    // The loop's watch lives as long as its state.
    let strikes = unsafe { HERE.get().as_ref() }.map_or(0, |seen| seen.strikes.load(Relaxed));
    unsafe {
        // The first error has to be told, which takes instructions too.
        if strikes <= 1 {
            ffi::lua_sethook(state, None, 0, 0);
        }
        if strikes > 0 {
            // With the line at which the script is.
            ffi::luaL_error(state, c"%s".as_ptr(), TOO_LONG.as_ptr());
        }
    }
}

//! The coroutine of a user's script: resumed until it wants something of the engine.

use std::os::raw::c_int;
use std::ptr::NonNull;
use std::rc::Rc;

use mlua::Thread;
use mlua::ffi::{self, lua_State};

use crate::error::{ScriptError, ScriptFailure};
use crate::state::{Body, State, Want};
use crate::user::User;
use crate::watchdog::{TOO_LONG, Watch};

/// What a coroutine is resumed with: after a command, what became of it; before an event, whether there is to be one.
/// The numbers are those in `lua/sql.lua` and `lua/runtime.lua`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumption {
    /// The command is done and gave no rows; the next event may begin.
    GoOn = 0,
    WithRows = 1,
    Failed = 2,
    /// No further event is begun.
    NoMore = 3,
    /// No further event is begun, and there is no connection any more.
    IsOver = 4,
}

pub(crate) struct Coroutine {
    state: Rc<State>,
    watch: Rc<Watch>,
    /// One of the state's; no other coroutine reaches it.
    user: NonNull<User>,
    /// Keeps `lua` alive.
    _thread: Thread,
    lua: *mut lua_State,
}

impl Coroutine {
    pub(crate) fn new(
        state: Rc<State>,
        watch: Rc<Watch>,
        user: User,
        number: u32,
        body: Body,
    ) -> Result<Coroutine, ScriptError> {
        let (user, thread) = state.add_user(user, number, body)?;
        let lua = thread.state();
        Ok(Coroutine { state, watch, user, _thread: thread, lua })
    }

    pub(crate) fn user(&mut self) -> &mut User {
        // SAFETY: it lives as long as the state, which this coroutine holds. Scripts reach it only within `resume`, which
        // holds no reference to it meanwhile.
        unsafe { self.user.as_mut() }
    }

    /// Runs the coroutine until it wants something. Returns that, and the number that it yielded with it.
    pub(crate) fn resume(&mut self, out: *mut Vec<u8>, resumption: Resumption) -> (Want, f64) {
        self.user().out = out;
        // SAFETY: nothing below refers to the user before the turn has ended.
        unsafe { self.state.begin_turn(self.user) };
        self.watch.begin_turn();
        let mut results: c_int = 0;
        // SAFETY: the coroutine is the state's own, kept alive by `_thread`, and not running. Between two turns its stack
        // has room for a number. Errors end in the status.
        let status = unsafe {
            ffi::lua_pushnumber(self.lua, f64::from(resumption as i32));
            ffi::lua_resume(self.lua, std::ptr::null_mut(), 1, &raw mut results)
        };
        let was_struck = self.watch.was_struck();
        self.watch.end_turn();
        self.state.end_turn();
        self.user().out = std::ptr::null_mut();
        if status != ffi::LUA_OK && status != ffi::LUA_YIELD {
            let message = if was_struck {
                format!("{}, and it caught the error that was to end it", TOO_LONG.to_string_lossy())
            } else {
                "the script's coroutine was ended by Lua: most likely it ran out of memory".to_string()
            };
            let trace = self.traceback();
            self.state.facts.fail(ScriptFailure { function: "thread_run".to_string(), message, trace });
            return (Want::Failed, 0.0);
        }
        // SAFETY: the coroutine yielded or returned, and what it yielded is on top of its stack. None of these calls raises
        // an error.
        let (want, number) = unsafe {
            let first = ffi::lua_gettop(self.lua) - results + 1;
            let want = if results > 0 { ffi::lua_tonumber(self.lua, first) } else { 0.0 };
            let number = if results > 1 { ffi::lua_tonumber(self.lua, first + 1) } else { 0.0 };
            ffi::lua_settop(self.lua, first - 1);
            (want, number)
        };
        match Want::from_number(want as i64) {
            Some(Want::Failed) => {
                self.state.facts.fail(ScriptFailure {
                    function: self.state.failure_field("name"),
                    message: self.state.failure_field("message"),
                    trace: self.state.failure_field("trace"),
                });
                (Want::Failed, 0.0)
            }
            Some(want) => (want, number),
            // A script's own coroutine.yield at its top level.
            None => {
                self.state.facts.fail(ScriptFailure {
                    function: "thread_run".to_string(),
                    message: "the script yielded outside a coroutine of its own".to_string(),
                    trace: String::new(),
                });
                (Want::Failed, 0.0)
            }
        }
    }

    /// Where a coroutine stands that Lua has ended: its frames are still there.
    fn traceback(&self) -> String {
        // SAFETY: the coroutine is alive and not running. The text is on its stack, and so stays until it is copied.
        unsafe {
            ffi::luaL_traceback(self.lua, self.lua, std::ptr::null(), 0);
            let text = ffi::lua_tostring(self.lua, -1);
            if text.is_null() {
                return String::new();
            }
            std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

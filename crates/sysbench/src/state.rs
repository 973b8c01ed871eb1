//! One Lua state for each loop, with the script's code compiled once for all its users.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, LightUserData, Lua, Table, Thread, Value};

use crate::bridge;
use crate::error::ScriptError;
use crate::facts::{Facts, Job, OptionValue, Source};
use crate::random::Samplers;
use crate::user::{Turnstile, User};

const DECLARATIONS: &str = include_str!("lua/declarations.h");
const SQL: &str = include_str!("lua/sql.lua");
const RUNTIME: &str = include_str!("lua/runtime.lua");

/// The version of sysbench whose behaviour is served.
pub(crate) const VERSION: &str = "1.0.20";

/// What a coroutine yields for, or has come to; the first value that it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Query = 1,
    Execute = 2,
    Prepare = 3,
    Nothing = 4,
    Pause = 5,
    Again = 6,
    Reconnect = 7,
    Ready = 8,
    Done = 9,
    Finished = 10,
    Failed = 11,
    Connect = 12,
    Errand = 13,
}

impl Want {
    const ALL: [(Want, &'static str); 13] = [
        (Want::Query, "QUERY"),
        (Want::Execute, "EXECUTE"),
        (Want::Prepare, "PREPARE"),
        (Want::Nothing, "NOTHING"),
        (Want::Pause, "PAUSE"),
        (Want::Again, "AGAIN"),
        (Want::Reconnect, "RECONNECT"),
        (Want::Ready, "READY"),
        (Want::Done, "DONE"),
        (Want::Finished, "FINISHED"),
        (Want::Failed, "FAILED"),
        (Want::Connect, "CONNECT"),
        (Want::Errand, "ERRAND"),
    ];

    pub(crate) fn from_number(number: i64) -> Option<Want> {
        Want::ALL.into_iter().map(|(want, _)| want).find(|want| *want as i64 == number)
    }
}

/// What a coroutine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Events, until the run is over.
    Worker,
    /// The run's command.
    Command,
    /// What the main thread wants called in its own environment, one function after the other.
    Caller,
}

/// A loop's state.
pub(crate) struct State {
    pub(crate) lua: Lua,
    pub(crate) facts: Arc<Facts>,
    /// At an address that scripts' functions know.
    turnstile: Rc<RefCell<Turnstile>>,
    pub(crate) samplers: Rc<RefCell<Samplers>>,
    runtime: Table,
    /// Scripts hold their addresses. So this stands after `lua`: fields are dropped in order.
    users: Users,
}

/// The users of a state.
#[derive(Default)]
struct Users(RefCell<Vec<NonNull<User>>>);

impl Drop for Users {
    fn drop(&mut self) {
        for user in self.0.get_mut().drain(..) {
            // SAFETY: it came from a box, is in the list once, and drivers, which hold the state, are gone.
            drop(unsafe { Box::from_raw(user.as_ptr()) });
        }
    }
}

impl State {
    /// A state with everything but the script in it.
    ///
    /// # Errors
    /// Lua's, which would be a fault of ours.
    pub(crate) fn new(facts: Arc<Facts>) -> Result<State, ScriptError> {
        State::build(facts).map_err(|error| ScriptError::State { message: error.to_string() })
    }

    fn build(facts: Arc<Facts>) -> mlua::Result<State> {
        // SAFETY: scripts use `ffi` and `debug`, so they can do what any C program can. A user who runs a script trusts it
        // as much as a program; sysbench demands no less.
        let lua = unsafe { Lua::unsafe_new() };
        let turnstile = Rc::new(RefCell::new(Turnstile::new()));
        let ffi: Table = lua.globals().get::<Function>("require")?.call("ffi")?;
        ffi.get::<Function>("cdef")?.call::<()>(DECLARATIONS)?;
        let cast: Function = ffi.get("cast")?;
        let native = lua.create_table()?;
        for (name, c_type, address) in bridge::functions() {
            let address = LightUserData(address as *mut std::ffi::c_void);
            native.set(name, cast.call::<Value>((c_type, address))?)?;
        }
        let address = LightUserData(turnstile.as_ptr().cast());
        native.set("loop", cast.call::<Value>(("struct whyso_loop *", address))?)?;
        native.set("user_type", ffi.get::<Function>("typeof")?.call::<Value>("struct whyso_user *")?)?;
        let wants = lua.create_table()?;
        for (want, name) in Want::ALL {
            wants.set(name, want as i64)?;
        }
        let sql: Table = lua.load(SQL).set_name("=whyso").call((&native, &wants, facts.dry_run))?;
        let facts_of_run = facts_table(&lua, &facts)?;
        let runtime: Table = lua.load(RUNTIME).set_name("=whyso").call((native, wants, sql, facts_of_run))?;
        let samplers = Rc::new(RefCell::new(Samplers::new(facts.random)));
        Ok(State { lua, facts, turnstile, samplers, runtime, users: Users::default() })
    }

    /// Begins the turn of one of this state's users.
    ///
    /// # Safety
    /// Until the turn ends, the caller holds no reference to the user.
    pub(crate) unsafe fn begin_turn(&self, user: NonNull<User>) {
        // SAFETY: it lives as long as this state, and the caller holds no reference to it.
        unsafe { self.turnstile.borrow_mut().begin_turn(user) };
    }

    pub(crate) fn end_turn(&self) {
        self.turnstile.borrow_mut().end_turn();
    }

    /// Adds a user, which lives as long as this state, and its coroutine.
    ///
    /// # Errors
    /// Lua's: no memory.
    pub(crate) fn add_user(
        &self,
        user: User,
        number: u32,
        body: Body,
    ) -> Result<(NonNull<User>, Thread), ScriptError> {
        let user = NonNull::from(Box::leak(Box::new(user)));
        self.users.0.borrow_mut().push(user);
        self.coroutine(user, number, body).map(|thread| (user, thread))
    }

    fn coroutine(&self, user: NonNull<User>, number: u32, body: Body) -> Result<Thread, ScriptError> {
        let body = match body {
            Body::Worker => "worker",
            Body::Command => "command",
            Body::Caller => "caller",
        };
        let make = || -> mlua::Result<Thread> {
            let start: Function = self.runtime.get("start")?;
            start.call((body, LightUserData(user.as_ptr().cast()), number))
        };
        make().map_err(|error| ScriptError::Coroutine { user: number, message: error.to_string() })
    }

    /// A value that the Lua side keeps: of the last failure.
    pub(crate) fn failure_field(&self, name: &str) -> String {
        let field = self.runtime.get::<Table>("failure").and_then(|failure| failure.get::<Value>(name));
        match field {
            Ok(Value::String(text)) => text.to_string_lossy().to_string(),
            _ => String::new(),
        }
    }

    pub(crate) fn runtime(&self) -> &Table {
        &self.runtime
    }
}

/// Everything that the Lua side knows about the run.
fn facts_table(lua: &Lua, facts: &Facts) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("version", VERSION)?;
    table.set("test", facts.test.as_str())?;
    table.set("percentile", facts.percentile)?;
    table.set("rate", facts.rate)?;
    table.set("dry_run", facts.dry_run)?;
    table.set("is_cpu_test", facts.is_cpu_test)?;
    table.set("package_path", facts.package_path.as_str())?;
    let command = match &facts.job {
        Job::Events => "run",
        Job::Command(name) => name.as_str(),
    };
    table.set("command", command)?;
    match &facts.source {
        Source::File(path) => table.set("script_file", path.to_string_lossy().as_ref())?,
        Source::Text(text) => table.set("script_text", text.as_str())?,
    }
    let cmdline = lua.create_table()?;
    if !command.is_empty() {
        cmdline.set("command", command)?;
    }
    let argv = lua.create_sequence_from(facts.argv.iter().map(String::as_str))?;
    argv.set(0, "sysbench")?;
    cmdline.set("argv", argv)?;
    cmdline.set("script_path", facts.test.as_str())?;
    table.set("cmdline", cmdline)?;
    table.set("options", options_table(lua, &facts.options)?)?;
    Ok(table)
}

pub(crate) fn options_table(lua: &Lua, options: &[(String, OptionValue)]) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, value) in options {
        let name = name.replace('-', "_");
        match value {
            OptionValue::Null => {}
            OptionValue::Bool(value) => table.set(name, *value)?,
            OptionValue::Number(value) => table.set(name, *value)?,
            OptionValue::Text(value) => table.set(name, value.as_str())?,
            OptionValue::List(values) => table.set(name, values.clone())?,
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_want_is_found_by_its_number() {
        for (want, _) in Want::ALL {
            assert_eq!(Want::from_number(want as i64), Some(want));
        }
        assert_eq!(Want::from_number(0), None);
    }
}

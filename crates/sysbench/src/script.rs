//! A script: where it is found, and its global state, which the main thread runs.

use std::io::Read;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, Table, Value};
use whyso_load::{Alone, LoadSpec};

use crate::cpu_test::{CPU, CPU_SCRIPT};
use crate::driver::ScriptDriver;
use crate::error::ScriptError;
use crate::facts::{Facts, OptionValue, Source, Stage};
use crate::options::{OptionSpec, Type};
use crate::report::Stat;
use crate::say::say;
use crate::state::{Body, State, options_table};
use crate::watchdog::Watchdog;

/// Where distributions put sysbench's own scripts.
const DATA_FOLDERS: [&str; 2] = ["/usr/share/sysbench", "/usr/local/share/sysbench"];
/// `package.path` of scripts.
pub(crate) fn package_path() -> String {
    let mut templates: Vec<String> =
        std::env::var("LUA_PATH").ok().into_iter().flat_map(|path| split_path(&path)).collect();
    templates.extend(["./?.lua", "./?/init.lua", "./src/lua/?.lua"].map(str::to_string));
    if let Ok(home) = std::env::var("HOME") {
        templates.push(format!("{home}/.luarocks/share/lua/5.1/?.lua"));
        templates.push(format!("{home}/.luarocks/share/lua/5.1/?/init.lua"));
    }
    for folder in ["/usr/local/share/lua/5.1", "/usr/share/lua/5.1"] {
        templates.push(format!("{folder}/?.lua"));
        templates.push(format!("{folder}/?/init.lua"));
    }
    templates.extend(DATA_FOLDERS.map(|folder| format!("{folder}/?.lua")));
    templates.join(";")
}

fn split_path(path: &str) -> Vec<String> {
    path.split(';').filter(|template| !template.is_empty()).map(str::to_string).collect()
}

/// Finds a test: a file, or a module on the path; standard input where there is no name.
///
/// # Errors
/// There is none of this name.
pub(crate) fn find(test: Option<&str>, package_path: &str) -> Result<Source, ScriptError> {
    let Some(test) = test.filter(|test| *test != "-") else {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(ScriptError::StandardInput)?;
        return Ok(Source::Text(text));
    };
    if test == CPU {
        return Ok(Source::Text(CPU_SCRIPT.to_string()));
    }
    let path = PathBuf::from(test);
    if path.is_file() {
        return Ok(Source::File(path));
    }
    let file_name = test.replace('.', "/");
    let found = split_path(package_path)
        .into_iter()
        .map(|template| PathBuf::from(template.replace('?', &file_name)))
        .find(|path| path.is_file());
    found.map(Source::File).ok_or_else(|| ScriptError::NotFound { test: test.to_string() })
}

/// The script as the main thread has it: its options, commands and hooks.
pub(crate) struct GlobalState {
    state: Rc<State>,
    env: Table,
    /// The connection of what it calls, opened when it is first used.
    connection: Alone,
    /// What calls the script's functions.
    caller: ScriptDriver,
    _watchdog: Watchdog,
}

impl GlobalState {
    /// Loads the script.
    ///
    /// # Errors
    /// What it raises, with file and line.
    pub(crate) fn load(facts: Facts, spec: LoadSpec) -> Result<GlobalState, ScriptError> {
        let state = Rc::new(State::new(Arc::new(facts))?);
        let make = || -> mlua::Result<Table> { state.runtime().get::<Function>("global_state")?.call(()) };
        let env = make().map_err(|error| lua_error(&error))?;
        let watchdog = Watchdog::new(state.facts.turn_max, || Stage::Prepares)?;
        let caller = ScriptDriver::new(state.clone(), watchdog.watch(&state, 1), u32::MAX, Body::Caller)?;
        let connection = Alone::new(&spec);
        let mut script = GlobalState { state, env, connection, caller, _watchdog: watchdog };
        let load = script.state.runtime().get("load_global_state");
        script.call_with("", load.map_err(|error| lua_error(&error))?, Value::Nil)?;
        Ok(script)
    }

    /// Carries out a command of the script.
    ///
    /// # Errors
    /// What it raises, with file and line.
    pub(crate) fn run_command(&mut self, name: &str) -> Result<(), ScriptError> {
        let find = || -> mlua::Result<(Function, String)> {
            self.state.runtime().get::<Function>("command_function")?.call(name)
        };
        let (function, full_name) = find().map_err(|error| lua_error(&error))?;
        self.call_with(&full_name, function, Value::Nil)
    }

    fn sysbench(&self) -> mlua::Result<Table> {
        self.env.get("sysbench")
    }

    /// What `sysbench.cmdline.options` declares.
    ///
    /// # Errors
    /// An entry that is no table.
    pub(crate) fn declared(&self) -> Result<Vec<OptionSpec>, ScriptError> {
        let read = || -> mlua::Result<Vec<OptionSpec>> {
            let cmdline: Table = self.sysbench()?.get("cmdline")?;
            let Ok(options) = cmdline.get::<Table>("options") else { return Ok(Vec::new()) };
            let mut declared = Vec::new();
            for pair in options.pairs::<Value, Value>() {
                let (Value::String(name), Value::Table(entry)) = pair? else {
                    return Err(mlua::Error::runtime("wrong table structure in sysbench.cmdline.options"));
                };
                declared.push(declaration(name.to_string_lossy().to_string(), &entry)?);
            }
            Ok(declared)
        };
        read().map_err(|error| ScriptError::Declaration { message: message_of(&error) })
    }

    /// Gives the script the values of its options.
    ///
    /// # Errors
    /// Lua's: no memory.
    pub(crate) fn know_options(&self, values: &[(String, OptionValue)]) -> Result<(), ScriptError> {
        let know = || -> mlua::Result<()> {
            let table = options_table(&self.state.lua, values)?;
            self.state.runtime().get::<Function>("know_options")?.call::<()>((&self.env, &table))
        };
        know().map_err(|error| lua_error(&error))
    }

    /// Whether the script has this command, and whether users may run it in parallel.
    pub(crate) fn command(&self, name: &str) -> Option<bool> {
        let ask = |what: &str| -> mlua::Result<bool> {
            let cmdline: Table = self.sysbench()?.get("cmdline")?;
            cmdline.get::<Function>(what)?.call(name)
        };
        let is_there = ask("command_defined").unwrap_or(false);
        is_there.then(|| ask("command_parallel").unwrap_or(false))
    }

    pub(crate) fn has_function(&self, name: &str) -> bool {
        matches!(self.env.get::<Value>(name), Ok(Value::Function(_)))
    }

    /// Calls a function of the script that takes nothing, where there is one.
    ///
    /// # Errors
    /// What it raises, with file and line.
    pub(crate) fn call(&mut self, name: &str) -> Result<(), ScriptError> {
        match self.env.get::<Value>(name) {
            Ok(Value::Function(function)) => self.call_with(name, function, Value::Nil),
            _ => Ok(()),
        }
    }

    /// Calls a function as users' functions are called, so that it may use a connection.
    fn call_with(&mut self, name: &str, function: Function, argument: Value) -> Result<(), ScriptError> {
        let to_call = self.state.lua.create_table();
        let is_set = to_call.and_then(|to_call| {
            to_call.set(1, name)?;
            to_call.set(2, function)?;
            to_call.set(3, argument)?;
            self.state.runtime().set("to_call", to_call)
        });
        is_set.map_err(|error| lua_error(&error))?;
        self.connection.carry_out(&mut self.caller).map_err(|error| match self.state.facts.failure() {
            Some(failure) => {
                failure.note_trace();
                ScriptError::Failed(failure)
            }
            None => ScriptError::Execution { function: name.to_string(), error },
        })
    }

    /// The help of the test: its own, or the list of its options.
    ///
    /// # Errors
    /// What its own help raises.
    pub(crate) fn help(&mut self, test: &str, list: &str) -> Result<(), ScriptError> {
        let has_options = self.state.runtime().set("test_help", list).is_ok();
        if self.has_function("help") && has_options {
            return self.call("help");
        }
        say(&format!("{test} options:\n{list}"));
        Ok(())
    }

    /// Gives the script's hook what is to be reported, where it has one; whether it was reported.
    ///
    /// # Errors
    /// What the hook raises.
    pub(crate) fn report(&mut self, hook: &str, stat: &Stat) -> Result<bool, ScriptError> {
        let find = || -> mlua::Result<Option<(Function, Table)>> {
            let hooks: Table = self.sysbench()?.get("hooks")?;
            let Value::Function(function) = hooks.get::<Value>(hook)? else { return Ok(None) };
            let table = self.state.lua.create_table()?;
            for (name, value) in stat.fields().iter().copied() {
                table.set(name, value)?;
            }
            Ok(Some((function, table)))
        };
        let Some((function, table)) = find().map_err(|error| lua_error(&error))? else { return Ok(false) };
        self.call_with(hook, function, Value::Table(table))?;
        Ok(true)
    }

    /// No further report comes from this hook.
    pub(crate) fn end_reports(&self, hook: &str) {
        let end = || self.state.runtime().get::<Function>("end_reports")?.call::<()>(hook);
        // It only prints the end of a list.
        let _: mlua::Result<()> = end();
    }
}

fn declaration(name: String, entry: &Table) -> mlua::Result<OptionSpec> {
    let description = entry.get::<Option<String>>(1)?.unwrap_or_default();
    let (mut kind, default) = match entry.get::<Value>(2)? {
        Value::Boolean(value) => (Type::Bool, OptionValue::Bool(value)),
        Value::Integer(value) => (Type::Double, OptionValue::Number(value as f64)),
        Value::Number(value) => (Type::Double, OptionValue::Number(value)),
        Value::String(value) => (Type::Text, OptionValue::Text(value.to_string_lossy().to_string())),
        Value::Table(items) => {
            let items = items.sequence_values::<String>().collect::<mlua::Result<Vec<String>>>()?;
            (Type::List, OptionValue::List(items))
        }
        _ => (Type::Text, OptionValue::Null),
    };
    // The numbers of sysbench.cmdline.ARG_….
    if let Ok(Some(number)) = entry.get::<Option<i64>>(3) {
        kind = match number {
            1 => Type::Bool,
            2 => Type::Int,
            3 => Type::Size,
            4 => Type::Double,
            6 => Type::List,
            7 => Type::File,
            _ => Type::Text,
        };
    }
    let has_default = !matches!(entry.get::<Value>(2)?, Value::Nil);
    let default = if has_default { default } else { OptionValue::Null };
    Ok(OptionSpec { name, kind, default, description })
}

fn lua_error(error: &mlua::Error) -> ScriptError {
    ScriptError::Lua { message: message_of(error) }
}

/// Lua's own message, with file and line.
fn message_of(error: &mlua::Error) -> String {
    match error {
        mlua::Error::RuntimeError(message) | mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::CallbackError { cause, .. } => message_of(cause),
        other => other.to_string(),
    }
}

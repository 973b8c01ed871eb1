//! The functions that scripts reach through LuaJIT's FFI: plain C functions by address, which compiled traces call
//! directly.
//!
//! Every one is called on the loop's own thread, inside [`Driver::next`](whyso_load::Driver::next), with the turnstile
//! that the loop's state holds. Only `lua/sql.lua` and `lua/runtime.lua` hold these functions, and they uphold what the
//! functions need:
//!
//! - The turnstile is `native.loop`.
//! - A text is a Lua string with its length.
//! - A parameter is a `struct whyso_param` that `bind_create` made.

use std::ffi::c_char;
use std::io::Write;
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use whyso_wire::{ExecuteTemplate, QueryTemplate, encode};

use crate::errand::Errand;
use crate::random;
use crate::say::{Priority, log};
use crate::user::{Form, Param, ParamValue, Statement, Turnstile};

/// Whether a script has asked for the database driver: only then are there SQL statistics.
pub(crate) static USES_SQL: AtomicBool = AtomicBool::new(false);

/// Name, C type, and address of each function.
pub(crate) fn functions() -> Vec<(&'static str, &'static str, usize)> {
    const TEXT: &str = "void (*)(struct whyso_loop *, const char *, size_t)";
    const ASK: &str = "int (*)(struct whyso_loop *)";
    const OF_STATEMENT: &str = "int (*)(struct whyso_loop *, uint32_t)";
    vec![
        ("query", TEXT, query as *const () as usize),
        ("prepare", TEXT, prepare as *const () as usize),
        ("free_result", ASK, free_result as *const () as usize),
        ("random_text", TEXT, random_text as *const () as usize),
        ("is_text_only", ASK, is_text_only as *const () as usize),
        ("more_results", ASK, more_results as *const () as usize),
        ("next_result", ASK, next_result as *const () as usize),
        ("next_row", ASK, next_row as *const () as usize),
        ("sql_state", ASK, sql_state as *const () as usize),
        ("sql_message", ASK, sql_message as *const () as usize),
        ("field", OF_STATEMENT, field as *const () as usize),
        ("statement_params", OF_STATEMENT, statement_params as *const () as usize),
        ("execute", OF_STATEMENT, execute as *const () as usize),
        ("close", OF_STATEMENT, close as *const () as usize),
        (
            "new_statement",
            "int (*)(struct whyso_loop *, const char *, size_t, int)",
            new_statement as *const () as usize,
        ),
        (
            "bind",
            "void (*)(struct whyso_loop *, uint32_t, uint32_t, struct whyso_param *)",
            bind as *const () as usize,
        ),
        (
            "random_text_into",
            "void (*)(struct whyso_loop *, struct whyso_param *, const char *, size_t)",
            random_text_into as *const () as usize,
        ),
        ("draw", "double (*)(struct whyso_loop *, int, int64_t, int64_t)", draw as *const () as usize),
        ("uniform", "double (*)(struct whyso_loop *, int64_t, int64_t)", uniform as *const () as usize),
        ("unique", "double (*)(struct whyso_loop *)", unique as *const () as usize),
        ("uniform_double", "double (*)(struct whyso_loop *)", uniform_double as *const () as usize),
        ("uniform_uint64", "uint64_t (*)(struct whyso_loop *)", uniform_uint64 as *const () as usize),
        ("count", "void (*)(struct whyso_loop *, int)", count as *const () as usize),
        ("start_errand", TEXT, start_errand as *const () as usize),
        ("errand_status", ASK, errand_status as *const () as usize),
        (
            "log_line",
            "int (*)(struct whyso_loop *, const char *, size_t, int)",
            log_line as *const () as usize,
        ),
        ("use_sql", ASK, use_sql as *const () as usize),
        ("fail_late", ASK, fail_late as *const () as usize),
        ("count_primes", OF_STATEMENT, count_primes as *const () as usize),
    ]
}

/// Bytes of a script's text.
///
/// # Safety
/// `text` points to `length` bytes, which stay as they are for `'a`.
unsafe fn bytes<'a>(text: *const c_char, length: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(text.cast(), length) }
}

/// # Safety
/// `text` points to `length` bytes.
unsafe extern "C" fn query(turnstile: &mut Turnstile, text: *const c_char, length: usize) {
    if let Some((_, out)) = turnstile.user_and_out() {
        // SAFETY: the caller's promise.
        encode::query(out, unsafe { bytes(text, length) });
    }
}

/// # Safety
/// `text` points to `length` bytes.
unsafe extern "C" fn prepare(turnstile: &mut Turnstile, text: *const c_char, length: usize) {
    if let Some((_, out)) = turnstile.user_and_out() {
        // SAFETY: the caller's promise.
        encode::prepare(out, unsafe { bytes(text, length) });
    }
}

/// Frees the current result; 1: there is none.
extern "C" fn free_result(turnstile: &mut Turnstile) -> i32 {
    let Some(user) = turnstile.user() else { return 1 };
    if user.view.has_rows == 0 {
        return 1;
    }
    user.forget_results();
    0
}

extern "C" fn is_text_only(turnstile: &mut Turnstile) -> i32 {
    turnstile.user().map_or(0, |user| i32::from(user.facts.text_only))
}

extern "C" fn more_results(turnstile: &mut Turnstile) -> i32 {
    turnstile.user().map_or(0, |user| i32::from(user.more_results()))
}

extern "C" fn next_result(turnstile: &mut Turnstile) -> i32 {
    turnstile.user().map_or(0, |user| i32::from(user.next_result()))
}

extern "C" fn next_row(turnstile: &mut Turnstile) -> i32 {
    let columns = turnstile.user().and_then(|user| user.next_row());
    columns.and_then(|columns| i32::try_from(columns).ok()).unwrap_or(-1)
}

extern "C" fn field(turnstile: &mut Turnstile, place: u32) -> i32 {
    turnstile.user().map_or(0, |user| i32::from(user.leave_field(place as usize)))
}

extern "C" fn sql_state(turnstile: &mut Turnstile) -> i32 {
    let Some(user) = turnstile.user() else { return 0 };
    let state = user.sqlstate;
    user.scratch.clear();
    user.scratch.extend_from_slice(&state);
    user.leave_scratch();
    1
}

extern "C" fn sql_message(turnstile: &mut Turnstile) -> i32 {
    let Some(user) = turnstile.user() else { return 0 };
    user.scratch.clone_from(&user.message);
    user.leave_scratch();
    1
}

/// The place of a statement that was just prepared, or is to be sent as text.
///
/// # Safety
/// `text` points to `length` bytes.
unsafe extern "C" fn new_statement(
    turnstile: &mut Turnstile,
    text: *const c_char,
    length: usize,
    as_text: i32,
) -> i32 {
    let Some(user) = turnstile.user() else { return -1 };
    let (form, params_wanted) = if as_text == 0 {
        let form = Form::Prepared {
            id: user.view.statement_id,
            template: ExecuteTemplate::new(&[]),
            types_known: false,
        };
        (form, user.view.params as usize)
    } else {
        // SAFETY: the caller's promise.
        let template = QueryTemplate::new(&String::from_utf8_lossy(unsafe { bytes(text, length) }));
        let params = template.params();
        (Form::Text(template), params)
    };
    let columns = if as_text == 0 { user.prepared_columns.as_slice().into() } else { Default::default() };
    let (generation, params) = (user.generation, Vec::new());
    let statement = Statement { form, generation, params_wanted, columns, params, is_open: true };
    // A closed statement's place is used again, so that reconnecting for hours takes no memory.
    let free = user.statements.iter().position(|statement| !statement.is_open);
    match free {
        Some(place) => {
            user.statements[place] = statement;
            place as i32
        }
        None => {
            user.statements.push(statement);
            (user.statements.len() - 1) as i32
        }
    }
}

extern "C" fn statement_params(turnstile: &mut Turnstile, place: u32) -> i32 {
    let Some(user) = turnstile.user() else { return -1 };
    user.statements.get(place as usize).map_or(-1, |statement| statement.params_wanted as i32)
}

/// Binds a parameter, which the script's statement keeps alive until it is bound again or closed.
extern "C" fn bind(turnstile: &mut Turnstile, place: u32, param_place: u32, param: *const Param) {
    let Some(user) = turnstile.user() else { return };
    let Some(statement) = user.statements.get_mut(place as usize) else { return };
    if param_place == 0 {
        statement.params.clear();
    }
    // A script can make a null pointer to a parameter: the statement then counts as not bound.
    statement.params.extend(NonNull::new(param.cast_mut()));
    if statement.params.len() == statement.params_wanted {
        statement.make_template();
    }
}

/// Encodes an execution: 0 as a prepared statement's, 1 as text; 2: it can't be executed.
extern "C" fn execute(turnstile: &mut Turnstile, place: u32) -> i32 {
    let Some((user, out)) = turnstile.user_and_out() else { return 2 };
    user.executes(place as usize);
    let generation = user.generation;
    let Some(statement) = user.statements.get_mut(place as usize) else { return 2 };
    let is_of_old = matches!(statement.form, Form::Prepared { .. }) && statement.generation != generation;
    if !statement.is_open || is_of_old || statement.params.len() != statement.params_wanted {
        return 2;
    }
    match &mut statement.form {
        Form::Prepared { id, template, types_known } => {
            let mut writer = template.begin(out, *id, std::mem::replace(types_known, true));
            for (at, param) in statement.params.iter().enumerate() {
                // SAFETY: the script's statement keeps its parameters alive, and the script does not run meanwhile.
                match unsafe { Param::value(*param) } {
                    ParamValue::Null => writer.null(at),
                    ParamValue::Integer(integer) => writer.int64(integer),
                    ParamValue::Real(real) => writer.double(real),
                    ParamValue::Text(text) => writer.text(text),
                }
            }
            writer.finish();
            0
        }
        Form::Text(template) => {
            let mut writer = template.begin(out);
            let mut digits = Vec::new();
            for param in &statement.params {
                digits.clear();
                // SAFETY: as above.
                match unsafe { Param::value(*param) } {
                    ParamValue::Null => writer.literal(b"NULL"),
                    ParamValue::Integer(integer) => {
                        // Writing to memory can't fail.
                        let _ = write!(digits, "{integer}");
                        writer.literal(&digits);
                    }
                    ParamValue::Real(real) => {
                        let _ = write!(digits, "{real:?}");
                        writer.literal(&digits);
                    }
                    ParamValue::Text(text) => writer.text(text),
                }
            }
            writer.finish();
            1
        }
    }
}

/// Closes a statement; returns whether the server must close it too.
extern "C" fn close(turnstile: &mut Turnstile, place: u32) -> i32 {
    let Some((user, out)) = turnstile.user_and_out() else { return 0 };
    let generation = user.generation;
    let Some(statement) = user.statements.get_mut(place as usize) else { return 0 };
    let was_open = std::mem::replace(&mut statement.is_open, false);
    let is_of_now = statement.generation == generation;
    statement.params.clear();
    match statement.form {
        Form::Prepared { id, .. } if was_open && is_of_now => {
            encode::close(out, id);
            1
        }
        _ => 0,
    }
}

/// # Safety
/// `format` points to `length` bytes.
unsafe extern "C" fn random_text(turnstile: &mut Turnstile, format: *const c_char, length: usize) {
    let Some(user) = turnstile.user() else { return };
    let scratch = &mut user.scratch;
    scratch.clear();
    // SAFETY: the caller's promise.
    random::write_text(unsafe { bytes(format, length) }, &mut user.rng, |byte| scratch.push(byte));
    user.leave_scratch();
}

/// # Safety
/// `param` is one that `bind_create` made, and `format` points to `length` bytes.
unsafe extern "C" fn random_text_into(
    turnstile: &mut Turnstile,
    param: *mut Param,
    format: *const c_char,
    length: usize,
) {
    let Some(user) = turnstile.user() else { return };
    // SAFETY: the parameter is alive while the script's call runs, and so in all blocks below.
    let room = unsafe { (*param).length_max } as usize;
    let length = length.min(room);
    // SAFETY: as above; no reference is made, so the pointer reaches what follows the head.
    let text: *mut u8 = unsafe { (&raw mut (*param).text).cast() };
    let mut at = 0;
    // SAFETY: `format` has at least the shortened length.
    random::write_text(unsafe { bytes(format, length) }, &mut user.rng, |byte| {
        // SAFETY: one byte is written for each of the format, which was cut to what fits.
        unsafe { text.add(at).write(byte) };
        at += 1;
    });
    // SAFETY: as above.
    unsafe { (*param).length = at as u32 };
}

extern "C" fn draw(turnstile: &mut Turnstile, number: i32, a: i64, b: i64) -> f64 {
    let Some(user) = turnstile.user() else { return a as f64 };
    user.samplers.borrow_mut().draw(number, a, b, &mut user.rng) as f64
}

extern "C" fn uniform(turnstile: &mut Turnstile, a: i64, b: i64) -> f64 {
    turnstile.user().map_or(a as f64, |user| random::uniform(a, b, &mut user.rng) as f64)
}

extern "C" fn unique(turnstile: &mut Turnstile) -> f64 {
    turnstile.user().map_or(0.0, |user| f64::from(user.facts.next_unique()))
}

extern "C" fn uniform_double(turnstile: &mut Turnstile) -> f64 {
    turnstile.user().map_or(0.0, |user| user.rng.unit_f64())
}

extern "C" fn uniform_uint64(turnstile: &mut Turnstile) -> u64 {
    turnstile.user().map_or(0, |user| user.rng.next_u64())
}

extern "C" fn count(turnstile: &mut Turnstile, counter: i32) {
    let Some(user) = turnstile.user() else { return };
    if let Ok(counter) = usize::try_from(counter) {
        user.facts.count(user.number, counter);
    }
}

/// Starts a shell command; its status is left once it has ended.
///
/// # Safety
/// `text` points to `length` bytes.
unsafe extern "C" fn start_errand(turnstile: &mut Turnstile, text: *const c_char, length: usize) {
    let Some(user) = turnstile.user() else { return };
    // SAFETY: the caller's promise.
    let command = String::from_utf8_lossy(unsafe { bytes(text, length) }).into_owned();
    user.errand = Some(Errand::start(&command));
}

extern "C" fn errand_status(turnstile: &mut Turnstile) -> i32 {
    turnstile.user().map_or(-1, |user| user.errand_status)
}

/// Prints a line of the log; `priority` as `--verbosity` counts.
///
/// # Safety
/// `text` points to `length` bytes.
unsafe extern "C" fn log_line(
    _turnstile: &mut Turnstile,
    text: *const c_char,
    length: usize,
    priority: i32,
) -> i32 {
    let priority = match priority {
        0 => Priority::Fatal,
        1 => Priority::Alert,
        2 => Priority::Warning,
        _ => Priority::Notice,
    };
    // SAFETY: the caller's promise.
    log(priority, &String::from_utf8_lossy(unsafe { bytes(text, length) }));
    0
}

/// Notes that the script has asked for the database driver.
extern "C" fn use_sql(_turnstile: &mut Turnstile) -> i32 {
    USES_SQL.store(true, Relaxed);
    0
}

/// Something failed at the end of a user, whose events count all the same.
extern "C" fn fail_late(turnstile: &mut Turnstile) -> i32 {
    if let Some(user) = turnstile.user() {
        user.facts.has_failed_late.store(true, Relaxed);
    }
    0
}

/// Counts the primes from 3 to below `limit` by dividing by everything up to the root: the work of the test `cpu`.
extern "C" fn count_primes(_turnstile: &mut Turnstile, limit: u32) -> i32 {
    let mut primes = 0;
    for candidate in 3..u64::from(limit) {
        let root = (candidate as f64).sqrt();
        let mut divisor = 2;
        while divisor as f64 <= root && !std::hint::black_box(candidate).is_multiple_of(divisor) {
            divisor += 1;
        }
        primes += i32::from(divisor as f64 > root);
    }
    primes
}

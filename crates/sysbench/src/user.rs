//! What one user's coroutine and its driver share: seen by scripts through C declarations (`lua/declarations.h`), so the
//! layouts of both must stay the same.

use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use whyso_wire::{
    CapturedResult, ColumnType, ExecuteTemplate, ParamType, QueryTemplate, ResultRows, RowFormat,
};
use whyso_workload::Rng;

use crate::errand::Errand;
use crate::facts::Facts;
use crate::random::Samplers;

/// No error; as scripts see it in `con.error`.
pub(crate) const STATUS_NONE: i32 = 0;
/// An error after which the event is begun again.
pub(crate) const STATUS_IGNORABLE: i32 = 1;
/// An error that ends the run.
pub(crate) const STATUS_FATAL: i32 = 2;

/// `sql_result`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct ResultView {
    pub(crate) nrows: u32,
    pub(crate) nfields: u32,
}

/// `struct whyso_user`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct View {
    pub(crate) status: i32,
    pub(crate) errno: i32,
    /// Whether the current result has rows.
    pub(crate) has_rows: u32,
    pub(crate) statement_id: u32,
    pub(crate) params: u32,
    /// Whether the connection was lost.
    pub(crate) is_lost: u32,
    pub(crate) text: *const u8,
    pub(crate) text_length: u32,
    pub(crate) result: ResultView,
}

/// `struct whyso_loop`: whose turn it is on a loop.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Turnstile {
    user: *mut User,
}

impl Turnstile {
    /// A turnstile at which it is nobody's turn.
    pub(crate) const fn new() -> Turnstile {
        Turnstile { user: std::ptr::null_mut() }
    }

    /// Begins a user's turn.
    ///
    /// # Safety
    /// Until the turn ends, the user lives and is reached only by this turnstile and by the script whose turn it is.
    pub(crate) unsafe fn begin_turn(&mut self, user: NonNull<User>) {
        self.user = user.as_ptr();
    }

    pub(crate) fn end_turn(&mut self) {
        self.user = std::ptr::null_mut();
    }

    /// The user whose turn it is.
    pub(crate) fn user(&mut self) -> Option<&mut User> {
        // SAFETY: it is null, or the caller of `begin_turn` promised that it lives and that nothing else refers to it.
        // The script waits meanwhile, and the borrow of the turnstile allows no second reference.
        unsafe { self.user.as_mut() }
    }

    /// The user whose turn it is, and the buffer for its next command. Commands that close statements may already be
    /// in it.
    pub(crate) fn user_and_out(&mut self) -> Option<(&mut User, &mut Vec<u8>)> {
        let user = self.user()?;
        // SAFETY: it is null, or the buffer of this turn, which the one who runs the script has borrowed for the turn. It is
        // no part of the user, and the borrow of the turnstile allows no second reference.
        let out = unsafe { user.out.as_mut() }?;
        Some((user, out))
    }
}

/// `struct whyso_param`: `text` goes on for `length_max` bytes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Param {
    pub(crate) kind: i32,
    pub(crate) is_null: i32,
    pub(crate) integer: i64,
    pub(crate) real: f64,
    pub(crate) length: u32,
    pub(crate) length_max: u32,
    pub(crate) text: [u8; 0],
}

const PARAM_INTEGER: i32 = 1;
const PARAM_REAL: i32 = 2;

/// What a parameter is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ParamValue<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
}

impl Param {
    /// What a parameter is set to.
    ///
    /// # Safety
    /// `param` was made by `bind_create`, so with room for `length_max` bytes. It lives, and stays as it is for `'a`.
    pub(crate) unsafe fn value<'a>(param: NonNull<Param>) -> ParamValue<'a> {
        let param = param.as_ptr();
        // SAFETY: the caller's promise. No reference to the head is made, so the pointer reaches the text after it.
        unsafe {
            match (*param).kind {
                _ if (*param).is_null != 0 => ParamValue::Null,
                PARAM_INTEGER => ParamValue::Integer((*param).integer),
                PARAM_REAL => ParamValue::Real((*param).real),
                _ => {
                    let length = (*param).length.min((*param).length_max) as usize;
                    ParamValue::Text(std::slice::from_raw_parts((&raw const (*param).text).cast(), length))
                }
            }
        }
    }
}

/// A statement that a script has prepared.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) form: Form,
    /// Of the connection on which it was prepared.
    pub(crate) generation: u32,
    pub(crate) params_wanted: usize,
    /// Of its rows, as the server sent them last: it need not send them again at every execution.
    pub(crate) columns: Rc<[ColumnType]>,
    /// In order; kept alive by the script's statement.
    pub(crate) params: Vec<NonNull<Param>>,
    pub(crate) is_open: bool,
}

#[derive(Debug)]
pub(crate) enum Form {
    Prepared {
        id: u32,
        template: ExecuteTemplate,
        types_known: bool,
    },
    /// Sent as text with its parameters put in.
    Text(QueryTemplate),
}

impl Statement {
    /// Works out what every execution has in common, once all parameters are bound.
    pub(crate) fn make_template(&mut self) {
        let types: Vec<ParamType> = self
            .params
            .iter()
            // SAFETY: the script's statement keeps its parameters alive, and `bind_create` has set the kind.
            .map(|param| match unsafe { param.as_ref() }.kind {
                PARAM_INTEGER => ParamType::Int64,
                PARAM_REAL => ParamType::Double,
                _ => ParamType::Text,
            })
            .collect();
        if let Form::Prepared { template, types_known, .. } = &mut self.form {
            *template = ExecuteTemplate::new(&types);
            *types_known = false;
        }
    }
}

/// One user; [`View`] comes first, so that a pointer to it is one to the view.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct User {
    pub(crate) view: View,
    pub(crate) facts: Arc<Facts>,
    pub(crate) samplers: Rc<std::cell::RefCell<Samplers>>,
    pub(crate) rng: Rng,
    /// Where commands are encoded to: a buffer that the one who runs the script has borrowed for the turn; null outside one.
    pub(crate) out: *mut Vec<u8>,
    /// The last command's results: the engine's, valid until the turn ends, or our own copy in `copied`; null where there
    /// are none.
    pub(crate) captured: *const ResultRows,
    /// Results that a script may read after the turn in which they arrived.
    copied: Box<ResultRows>,
    result_place: usize,
    row_place: usize,
    /// Fields of the row that was fetched last, `None` for NULL.
    fields: Vec<Option<(*const u8, u32)>>,
    pub(crate) statements: Vec<Statement>,
    /// Columns of the statement that was prepared last.
    pub(crate) prepared_columns: Vec<ColumnType>,
    /// Place of the statement that was executed last, and the columns of its rows.
    executed: usize,
    row_columns: Rc<[ColumnType]>,
    pub(crate) generation: u32,
    pub(crate) scratch: Vec<u8>,
    pub(crate) sqlstate: [u8; 5],
    pub(crate) message: Vec<u8>,
    pub(crate) number: u32,
    /// The shell command that it waits for.
    pub(crate) errand: Option<Errand>,
    pub(crate) errand_status: i32,
}

impl User {
    pub(crate) fn new(
        facts: Arc<Facts>,
        samplers: Rc<std::cell::RefCell<Samplers>>,
        rng: Rng,
        number: u32,
    ) -> User {
        let view = View {
            status: STATUS_NONE,
            errno: 0,
            has_rows: 0,
            statement_id: 0,
            params: 0,
            is_lost: 0,
            text: std::ptr::null(),
            text_length: 0,
            result: ResultView::default(),
        };
        User {
            view,
            facts,
            samplers,
            rng,
            out: std::ptr::null_mut(),
            captured: std::ptr::null(),
            copied: Box::default(),
            result_place: 0,
            row_place: 0,
            fields: Vec::new(),
            statements: Vec::new(),
            prepared_columns: Vec::new(),
            executed: 0,
            row_columns: Rc::default(),
            generation: 0,
            scratch: Vec::new(),
            sqlstate: *b"HY000",
            message: Vec::new(),
            number,
            errand: None,
            errand_status: 0,
        }
    }

    /// A statement is executed: rows that come are its own.
    pub(crate) fn executes(&mut self, place: usize) {
        if let Some(statement) = self.statements.get(place) {
            self.executed = place;
            self.row_columns = statement.columns.clone();
        }
    }

    /// Shows the script the first result of what was captured.
    pub(crate) fn show_results(&mut self, captured: &ResultRows) {
        self.captured = captured;
        self.result_place = 0;
        self.show_result();
    }

    pub(crate) fn forget_results(&mut self) {
        self.captured = std::ptr::null();
        self.view.has_rows = 0;
        self.view.result = ResultView::default();
    }

    /// Takes a copy of results that a script may still read after the turn.
    pub(crate) fn keep_results(&mut self) {
        // SAFETY: valid, as the field's comment says.
        let Some(captured) = (unsafe { self.captured.as_ref() }) else { return };
        let has_unread_rows = self.view.has_rows != 0 && self.row_place < self.view.result.nrows as usize;
        let has_more = self.result_place + 1 < captured.len();
        if std::ptr::eq(captured, &*self.copied) {
            return;
        }
        if has_unread_rows || has_more {
            *self.copied = captured.clone();
            self.captured = &*self.copied;
        } else {
            self.captured = std::ptr::null();
        }
    }

    fn show_result(&mut self) {
        self.row_place = 0;
        // SAFETY: valid, as the field's comment says.
        let captured = unsafe { self.captured.as_ref() };
        let set = match captured.and_then(|captured| captured.get(self.result_place)) {
            Some(CapturedResult::Rows(set)) => set,
            _ => {
                self.view.has_rows = 0;
                self.view.result = ResultView::default();
                return;
            }
        };
        self.view.has_rows = 1;
        self.view.result =
            ResultView { nrows: set.len() as u32, nfields: u32::try_from(set.columns()).unwrap_or(0) };
        let columns = set.types();
        if set.format() == RowFormat::Binary && !columns.is_empty() && *columns != *self.row_columns {
            self.row_columns = columns.into();
            if let (0, Some(statement)) = (self.result_place, self.statements.get_mut(self.executed)) {
                statement.columns = self.row_columns.clone();
            }
        }
    }

    pub(crate) fn more_results(&self) -> bool {
        // SAFETY: valid, as the field's comment says.
        let captured = unsafe { self.captured.as_ref() };
        captured.is_some_and(|captured| self.result_place + 1 < captured.len())
    }

    /// Moves to the next result. Returns whether there is one.
    pub(crate) fn next_result(&mut self) -> bool {
        let has_more = self.more_results();
        if has_more {
            self.result_place += 1;
            self.show_result();
        } else {
            self.view.has_rows = 0;
        }
        has_more
    }

    /// Moves to the next row. Returns its number of columns.
    pub(crate) fn next_row(&mut self) -> Option<usize> {
        // SAFETY: valid, as the field's comment says.
        let captured = unsafe { self.captured.as_ref() }?;
        let CapturedResult::Rows(set) = captured.get(self.result_place)? else { return None };
        let row = set.row(self.row_place)?;
        self.row_place += 1;
        self.fields.clear();
        if set.format() == RowFormat::Text {
            self.fields
                .extend(row.fields().map(|field| field.map(|field| (field.as_ptr(), field.len() as u32))));
            return Some(self.fields.len());
        }
        let mut text = whyso_wire::RowText::new();
        if row.decode(&self.row_columns, &mut text).is_err() || text.is_empty() {
            return None;
        }
        self.scratch.clear();
        let fields: Vec<Option<(usize, usize)>> = text
            .fields()
            .map(|field| {
                field.map(|field| {
                    let begin = self.scratch.len();
                    self.scratch.extend_from_slice(field);
                    (begin, field.len())
                })
            })
            .collect();
        let base = self.scratch.as_ptr();
        self.fields.extend(fields.into_iter().map(|field| {
            // SAFETY: within the scratch buffer, to which nothing is added any more. It stays as it is until the script has
            // read the row's fields, which it does at once.
            field.map(|(begin, length)| (unsafe { base.add(begin) }, length as u32))
        }));
        Some(self.fields.len())
    }

    /// Leaves a field of the fetched row for the script; whether it is not NULL.
    pub(crate) fn leave_field(&mut self, place: usize) -> bool {
        match self.fields.get(place) {
            Some(Some((text, length))) => {
                self.view.text = *text;
                self.view.text_length = *length;
                true
            }
            _ => false,
        }
    }

    /// Leaves the scratch buffer's content for the script.
    pub(crate) fn leave_scratch(&mut self) {
        self.view.text = self.scratch.as_ptr();
        self.view.text_length = self.scratch.len() as u32;
    }
}

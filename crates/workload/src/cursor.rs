//! Walks through one transaction, statement by statement.

use std::time::Duration;

use thiserror::Error;

use crate::arrival::ARRIVALS_USER;
use crate::dictionary::{DictionaryValues, Order};
use crate::expr::{EvalError, Scalar, Scope, ValueType};
use crate::program::{Op, Program};
use crate::rng::Rng;
use crate::variables::Variables;
use crate::workload::{CLIENT_ID, DIGIT_GROUPS_MAX, DRAWS_MAX, LocalRows, Param, ROW_COUNT, Source};

const DIGITS_PER_GROUP: usize = 11;
const DIGITS_BYTES_MAX: usize = DIGIT_GROUPS_MAX * (DIGITS_PER_GROUP + 1) - 1;

/// Most steps between one thing to do and the next, so that a loop without statements ends.
const STEPS_MAX: u32 = 1_000_000;

/// Bytes of generated lines that are handed out at once, roughly.
const LOCAL_BYTES: usize = 64 * 1024;

/// The next statement to send.
#[derive(Clone, Copy, Debug)]
pub struct Call<'p> {
    /// Index into [`Program::statements`].
    pub statement: usize,
    /// Number of the table, from 1; 1 too where the statement names no table.
    pub table: u32,
    /// Ask [`Cursor::value`] for each, in order.
    pub params: &'p [Param],
}

/// The next thing to do.
#[derive(Clone, Copy, Debug)]
pub enum Turn<'p> {
    /// Send it; [`Cursor::answered`] takes the outcome.
    Send(Call<'p>),
    Pause(Duration),
    Reconnect,
    /// The transaction has ended.
    End,
}

/// Why a transaction can't continue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Stuck {
    #[error("{variable} can't be worked out: {error}")]
    Eval { variable: String, error: EvalError },
    #[error(
        "{STEPS_MAX} steps went by without a statement or a pause: a loop in the transaction does not end"
    )]
    EndlessLoop,
    #[error(
        "the dictionary's {values} values are used up, and unique_from takes each once: give more values, or use next_from"
    )]
    UsedUp { values: usize },
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Int(i32),
    Int64(i64),
    Double(f64),
    Text(&'a [u8]),
    Null,
}

/// Walks through one transaction at a time; allocates nothing once it has held the longest values.
#[derive(Clone, Debug)]
pub struct Cursor {
    rng: Rng,
    user: u64,
    k: u64,
    /// Index of the next step; [`BEFORE`] until the transaction is drawn.
    next: usize,
    transaction: usize,
    table: u32,
    slots: [i32; DRAWS_MAX],
    digits: [u8; DIGITS_BYTES_MAX],
    variables: Variables,
    counters: Vec<i64>,
    local_rows_left: u64,
    /// For values that are written as text and are none.
    written: Vec<u8>,
}

const BEFORE: usize = usize::MAX;

impl Cursor {
    /// A cursor that stands before transaction `k` of user `user` (see [`Rng::for_transaction`]).
    pub fn new(seed: u64, user: u64, k: u64) -> Cursor {
        Cursor {
            rng: Rng::for_transaction(seed, user, k),
            user,
            k,
            next: BEFORE,
            transaction: 0,
            table: 1,
            slots: [1; DRAWS_MAX],
            digits: [b'-'; DIGITS_BYTES_MAX],
            variables: Variables::default(),
            counters: Vec::new(),
            local_rows_left: 0,
            written: Vec::new(),
        }
    }

    /// Goes to the beginning of transaction `k` of user `user`; of arrival `k` of an open loop where `user` is
    /// [`ARRIVALS_USER`]. A retry starts the same one again.
    #[inline]
    pub fn start(&mut self, seed: u64, user: u64, k: u64) {
        self.rng = Rng::for_transaction(seed, user, k);
        self.user = user;
        self.k = k;
        self.next = BEFORE;
    }

    /// The next thing to do.
    ///
    /// # Errors
    /// An expression without a value, a loop without end, a dictionary that is used up.
    #[inline]
    pub fn next<'p>(&mut self, program: &'p Program) -> Result<Turn<'p>, Stuck> {
        if self.next == BEFORE {
            self.enter(program);
        }
        let mut steps_left = STEPS_MAX;
        loop {
            let Some(step) = program.steps.get(self.next) else { return Ok(Turn::End) };
            match step {
                Op::End => return Ok(Turn::End),
                Op::Send(statement) => {
                    self.next += 1;
                    return Ok(Turn::Send(self.call(program, *statement)));
                }
                Op::DrawTable => self.table = 1 + self.rng.below(u64::from(program.tables())) as u32,
                Op::DrawRows(count) => {
                    for slot in &mut self.slots[..*count] {
                        *slot = i32::try_from(program.sampler.sample(&mut self.rng)).unwrap_or(i32::MAX);
                    }
                }
                Op::SetRandom { variable, low, sampler } => {
                    let row = sampler.sample(&mut self.rng);
                    self.variables.set(*variable, Scalar::Int(low.wrapping_add_unsigned(row - 1)));
                }
                Op::Jump(target) => {
                    self.next = *target;
                    steps_left = spend(steps_left)?;
                    continue;
                }
                Op::JumpIfCounted { counter, target } => {
                    if self.counters[*counter] <= 0 {
                        self.next = *target;
                        continue;
                    }
                    self.counters[*counter] -= 1;
                }
                other => {
                    if let Some(turn) = self.rare(program, other)? {
                        return Ok(turn);
                    }
                    continue;
                }
            }
            self.next += 1;
        }
    }

    /// Carries out what the built-in workloads' steps seldom are, and continues.
    fn rare<'p>(&mut self, program: &'p Program, step: &'p Op) -> Result<Option<Turn<'p>>, Stuck> {
        let Cursor { rng, variables, .. } = self;
        let failed = |what: &'static str| move |error| Stuck::Eval { variable: what.to_string(), error };
        match step {
            Op::Set { variable, source } => {
                self.set_from(program, *variable, source)?;
            }
            Op::Pause(seconds) => {
                let seconds =
                    seconds.eval(variables, rng).map_err(failed("a pause"))?.double().unwrap_or(0.0);
                self.next += 1;
                let pause = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
                return Ok(Some(Turn::Pause(pause)));
            }
            Op::Reconnect => {
                self.next += 1;
                return Ok(Some(Turn::Reconnect));
            }
            Op::JumpUnless { condition, target } => {
                let value = condition.eval(variables, rng).map_err(failed("a condition"))?;
                if !value.holds() {
                    self.next = *target;
                    return Ok(None);
                }
            }
            Op::StartCount { counter, times } => {
                let times = times.eval(variables, rng).map_err(failed("the number of a repetition"))?;
                self.counters[*counter] = times.whole().unwrap_or(0);
            }
            _ => {}
        }
        self.next += 1;
        Ok(None)
    }

    fn set_from(&mut self, program: &Program, variable: usize, source: &Source) -> Result<(), Stuck> {
        match source {
            Source::Expr(expr) => {
                let failed = |error| Stuck::Eval {
                    variable: format!(":{}", program.variables()[variable].name),
                    error,
                };
                // A text may stand in the variable that is written.
                self.written.clear();
                let value = match expr.eval(&self.variables, &mut self.rng).map_err(failed)? {
                    Scalar::Text(text) => {
                        self.written.extend_from_slice(text);
                        None
                    }
                    Scalar::Null => Some(Scalar::Null),
                    Scalar::Int(value) => Some(Scalar::Int(value)),
                    Scalar::Double(value) => Some(Scalar::Double(value)),
                };
                self.variables.set(variable, value.unwrap_or(Scalar::Text(&self.written)));
            }
            Source::Template(template) => {
                self.written.clear();
                fill_template(template, &mut self.rng, &mut self.written);
                self.variables.set(variable, Scalar::Text(&self.written));
            }
            Source::Dictionary { dictionary, order } => {
                let value = self.pick(program, usize::from(*dictionary), *order)?;
                self.variables.set(variable, value);
            }
        }
        Ok(())
    }

    /// A dictionary's value.
    fn pick<'p>(
        &mut self,
        program: &'p Program,
        dictionary: usize,
        order: Order,
    ) -> Result<Scalar<'p>, Stuck> {
        let values = &program.dictionaries[dictionary];
        let count = values.len();
        if count == 0 {
            return Ok(Scalar::Null);
        }
        let place = match order {
            Order::Random => self.rng.below(count as u64) as usize,
            Order::Sequential => (self.k % count as u64) as usize,
            Order::Unique => {
                let place = if self.user == ARRIVALS_USER {
                    self.k
                } else {
                    self.k.saturating_mul(u64::from(program.users())).saturating_add(self.user)
                };
                match usize::try_from(place) {
                    Ok(place) if place < count => place,
                    _ => return Err(Stuck::UsedUp { values: count }),
                }
            }
        };
        Ok(match values {
            DictionaryValues::Ints(values) => Scalar::Int(values[place]),
            DictionaryValues::Texts(values) => Scalar::Text(&values[place]),
        })
    }

    /// Draws the transaction and empties what the one before left.
    fn enter(&mut self, program: &Program) {
        if !program.variables().is_empty() {
            self.variables.clear(program.variables().len());
            let client = if self.user == ARRIVALS_USER { 0 } else { self.user as i64 };
            self.variables.set(usize::from(CLIENT_ID), Scalar::Int(client));
            self.variables.set(usize::from(ROW_COUNT), Scalar::Int(0));
        }
        if self.counters.len() < program.counters {
            self.counters.resize(program.counters, 0);
        }
        self.transaction = program.draw(&mut self.rng);
        self.next = program.entries.get(self.transaction).map_or(0, |(_, entry)| *entry);
    }

    #[inline]
    fn call<'p>(&mut self, program: &'p Program, statement: usize) -> Call<'p> {
        let statement_spec = &program.statements()[statement];
        self.local_rows_left = statement_spec.local_rows.as_ref().map_or(0, |local| local.rows);
        Call { statement, table: self.table, params: &statement_spec.params }
    }

    /// Place in [`Workload::transactions`](crate::Workload::transactions) of the one that was drawn; set from the first
    /// [`next`](Cursor::next) after [`start`](Cursor::start) on.
    #[inline]
    pub fn transaction(&self) -> usize {
        self.transaction
    }

    /// Takes what became of the statement that was sent last, for [`ROW_COUNT`].
    #[inline]
    pub fn answered(&mut self, rows: u64, affected_rows: u64) {
        let count = if rows > 0 { rows } else { affected_rows };
        self.variables.set(usize::from(ROW_COUNT), Scalar::Int(i64::try_from(count).unwrap_or(i64::MAX)));
    }

    /// Sets a variable to a value that the server returned.
    pub fn keep(&mut self, variable: u16, value: Scalar<'_>) {
        self.variables.set(usize::from(variable), value);
    }

    /// The value of a parameter of the statement that [`next`](Cursor::next) gave last.
    #[inline]
    pub fn value(&mut self, program: &Program, param: Param) -> Value<'_> {
        match param {
            Param::Drawn { slot, plus } => {
                let row = self.slots.get(usize::from(slot)).copied().unwrap_or(1);
                Value::Int(row.saturating_add(plus))
            }
            Param::Digits { groups } => {
                let groups = usize::from(groups).clamp(1, DIGIT_GROUPS_MAX);
                for group in 0..groups {
                    let begin = group * (DIGITS_PER_GROUP + 1);
                    let number = self.rng.below(100_000_000_000);
                    write_digits(number, &mut self.digits[begin..begin + DIGITS_PER_GROUP]);
                }
                Value::Text(&self.digits[..groups * (DIGITS_PER_GROUP + 1) - 1])
            }
            Param::Int(value) => Value::Int(value),
            Param::Inline(place) => Value::Int64(self.variables.variable(place).whole().unwrap_or(0)),
            Param::Variable(place) => {
                let value_type =
                    program.variables().get(usize::from(place)).map_or(ValueType::Text, |v| v.value_type);
                self.variable_as(place, value_type)
            }
        }
    }

    fn variable_as(&mut self, place: u16, value_type: ValueType) -> Value<'_> {
        let value = self.variables.variable(place);
        if value == Scalar::Null {
            return Value::Null;
        }
        match value_type {
            ValueType::Int => value.whole().map_or(Value::Null, Value::Int64),
            ValueType::Double => value.double().map_or(Value::Null, Value::Double),
            ValueType::Text => {
                self.written.clear();
                write_scalar(value, &mut self.written);
                Value::Text(&self.written)
            }
        }
    }

    /// Appends some 64 KiB of the lines that the statement sent last is to load, and says whether more are to come.
    ///
    /// # Errors
    /// As for [`next`](Cursor::next).
    pub fn local_lines(
        &mut self,
        program: &Program,
        local: &LocalRows,
        out: &mut Vec<u8>,
    ) -> Result<bool, Stuck> {
        let end = out.len() + LOCAL_BYTES;
        while self.local_rows_left > 0 && out.len() < end {
            self.local_rows_left -= 1;
            for (i, field) in local.fields.iter().enumerate() {
                if i > 0 {
                    out.push(b'\t');
                }
                self.write_field(program, field, out)?;
            }
            out.push(b'\n');
        }
        Ok(self.local_rows_left > 0)
    }

    fn write_field(&mut self, program: &Program, field: &Source, out: &mut Vec<u8>) -> Result<(), Stuck> {
        match field {
            Source::Expr(expr) => {
                let failed = |error| Stuck::Eval { variable: "a field of \\rows".to_string(), error };
                let value = expr.eval(&self.variables, &mut self.rng).map_err(failed)?;
                write_field_value(value, out);
            }
            Source::Template(template) => fill_template(template, &mut self.rng, out),
            Source::Dictionary { dictionary, order } => {
                write_field_value(self.pick(program, usize::from(*dictionary), *order)?, out);
            }
        }
        Ok(())
    }
}

fn spend(steps_left: u32) -> Result<u32, Stuck> {
    steps_left.checked_sub(1).ok_or(Stuck::EndlessLoop)
}

/// A field in the form that LOAD DATA reads by default.
fn write_field_value(value: Scalar<'_>, out: &mut Vec<u8>) {
    let Scalar::Text(text) = value else { return write_scalar(value, out) };
    for byte in text {
        match byte {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            _ => out.push(*byte),
        }
    }
}

fn write_scalar(value: Scalar<'_>, out: &mut Vec<u8>) {
    use std::io::Write;
    // Writing to memory does not fail.
    let _ = match value {
        Scalar::Null => out.write_all(b"\\N"),
        Scalar::Int(value) => write!(out, "{value}"),
        Scalar::Double(value) => write!(out, "{value}"),
        Scalar::Text(text) => out.write_all(text),
    };
}

fn fill_template(template: &str, rng: &mut Rng, out: &mut Vec<u8>) {
    out.extend(template.bytes().map(|byte| match byte {
        b'#' => b'0' + rng.below(10) as u8,
        b'@' => b'a' + rng.below(26) as u8,
        other => other,
    }));
}

/// Writes `number` in decimal, with leading zeros, over the whole of `out`.
#[inline]
fn write_digits(mut number: u64, out: &mut [u8]) {
    for place in out.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;

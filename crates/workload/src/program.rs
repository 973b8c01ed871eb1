//! A workload made ready to run, and the cursor that walks through one transaction.

use crate::distribution::Sampler;
use crate::rng::Rng;
use crate::value::{DIGIT_GROUPS_MAX, DRAWS_MAX, Param, Statement, Workload};

const DIGITS_PER_GROUP: usize = 11;
const DIGITS_BYTES_MAX: usize = DIGIT_GROUPS_MAX * (DIGITS_PER_GROUP + 1) - 1;

/// A workload flattened for quick walking. Statements are numbered in the order of [`Workload::statements`].
#[derive(Clone, Debug)]
pub struct Program {
    tables: u32,
    sampler: Sampler,
    groups: Vec<ProgramGroup>,
    statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
struct ProgramGroup {
    repeat: u32,
    draws: usize,
    draws_table: bool,
    first: usize,
    end: usize,
}

impl Program {
    /// Works out all constants. Counts beyond the documented bounds are cut to them.
    pub fn new(workload: &Workload) -> Program {
        let statements: Vec<Statement> = workload.statements().cloned().collect();
        let mut groups = Vec::new();
        let mut first = 0;
        for group in &workload.groups {
            let end = first + group.statements.len();
            if group.repeat > 0 && end > first {
                let draws_table = group.statements.iter().any(Statement::is_per_table);
                let draws = usize::from(group.draws).min(DRAWS_MAX);
                groups.push(ProgramGroup { repeat: group.repeat, draws, draws_table, first, end });
            }
            first = end;
        }
        let tables = workload.tables.max(1);
        Program { tables, sampler: Sampler::new(workload.distribution, workload.rows), groups, statements }
    }

    /// Its statements, in the numbering that [`Call::statement`] uses.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// Number of tables.
    pub fn tables(&self) -> u32 {
        self.tables
    }
}

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

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Int(i32),
    Text(&'a [u8]),
}

/// Walks through one transaction at a time; allocates nothing.
#[derive(Clone, Debug)]
pub struct Cursor {
    rng: Rng,
    group: usize,
    repeats_left: u32,
    next: usize,
    table: u32,
    slots: [i32; DRAWS_MAX],
    digits: [u8; DIGITS_BYTES_MAX],
}

impl Cursor {
    /// A cursor that stands before transaction `k` of user `user` (see [`Rng::for_transaction`]).
    pub fn new(seed: u64, user: u64, k: u64) -> Cursor {
        Cursor {
            rng: Rng::for_transaction(seed, user, k),
            group: 0,
            repeats_left: 0,
            next: 0,
            table: 1,
            slots: [1; DRAWS_MAX],
            digits: [b'-'; DIGITS_BYTES_MAX],
        }
    }

    /// Goes to the beginning of transaction `k` of user `user`. A retry starts the same one again.
    #[inline]
    pub fn start(&mut self, seed: u64, user: u64, k: u64) {
        self.rng = Rng::for_transaction(seed, user, k);
        self.group = 0;
        self.repeats_left = 0;
        self.next = 0;
    }

    /// The next statement, or `None` at the transaction's end.
    #[inline]
    pub fn next<'p>(&mut self, program: &'p Program) -> Option<Call<'p>> {
        let group = program.groups.get(self.group)?;
        let enters = self.repeats_left == 0;
        if enters {
            self.repeats_left = group.repeat;
            self.next = group.first;
            if group.draws_table {
                self.table = 1 + self.rng.below(u64::from(program.tables)) as u32;
            }
        }
        let begins_repetition = self.next == group.first;
        if begins_repetition {
            for slot in &mut self.slots[..group.draws] {
                *slot = i32::try_from(program.sampler.sample(&mut self.rng)).unwrap_or(i32::MAX);
            }
        }
        let statement = self.next;
        self.next += 1;
        if self.next == group.end {
            self.next = group.first;
            self.repeats_left -= 1;
            if self.repeats_left == 0 {
                self.group += 1;
            }
        }
        Some(Call { statement, table: self.table, params: &program.statements[statement].params })
    }

    /// The value of a parameter of the statement that [`next`](Cursor::next) gave last.
    #[inline]
    pub fn value(&mut self, param: Param) -> Value<'_> {
        match param {
            Param::Drawn { slot, plus } => {
                let row = self.slots.get(usize::from(slot)).copied().unwrap_or(1);
                Value::Int(row.saturating_add(plus))
            }
            Param::Digits { groups } => {
                let groups = usize::from(groups).clamp(1, DIGIT_GROUPS_MAX);
                for group in 0..groups {
                    let begin = group * (DIGITS_PER_GROUP + 1);
                    write_digits(
                        self.rng.below(100_000_000_000),
                        &mut self.digits[begin..begin + DIGITS_PER_GROUP],
                    );
                }
                Value::Text(&self.digits[..groups * (DIGITS_PER_GROUP + 1) - 1])
            }
            Param::Int(value) => Value::Int(value),
        }
    }
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
mod tests {
    use super::*;
    use crate::options::Options;

    /// "kind@table(values)" for each statement of a transaction.
    fn transaction(workload: &Workload, seed: u64, user: u64, k: u64) -> Vec<String> {
        let program = Program::new(workload);
        let mut cursor = Cursor::new(0, 0, 0);
        cursor.start(seed, user, k);
        let mut sent = Vec::new();
        while let Some(call) = cursor.next(&program) {
            let kind = &program.statements()[call.statement].kind;
            let mut values = Vec::new();
            for param in call.params {
                values.push(match cursor.value(*param) {
                    Value::Int(value) => value.to_string(),
                    Value::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                });
            }
            sent.push(format!("{kind}@{}({})", call.table, values.join(",")));
        }
        sent
    }

    fn workload(name: &str, set: &[(&str, &str)]) -> Workload {
        let mut options = Options::default();
        for (name, value) in set {
            options.set(name, value).unwrap();
        }
        Workload::builtin(name, &options).unwrap()
    }

    #[test]
    fn a_transaction_is_a_function_of_seed_user_and_number_alone() {
        let workload = workload("oltp-read-write", &[("tables", "8")]);
        let first = transaction(&workload, 1, 2, 3);
        assert_eq!(first.len(), 20);
        assert_eq!(first, transaction(&workload, 1, 2, 3));
        assert_ne!(first, transaction(&workload, 1, 2, 4));
        assert_ne!(first, transaction(&workload, 1, 3, 3));
        assert_ne!(first, transaction(&workload, 2, 2, 3));
    }

    #[test]
    fn statements_of_a_group_share_one_table_and_groups_differ() {
        let workload = workload("oltp-read-write", &[("tables", "100")]);
        let mut tables_of_groups_differed = false;
        for k in 0..20 {
            let sent = transaction(&workload, 1, 1, k);
            let table = |i: usize| sent[i].split(['@', '(']).nth(1).unwrap().to_string();
            assert!((1..=10).all(|i| table(i) == table(1)), "{sent:?}");
            assert_eq!(table(17), table(18), "{sent:?}");
            tables_of_groups_differed |= table(1) != table(11);
        }
        assert!(tables_of_groups_differed);
    }

    #[test]
    fn a_range_spans_its_size_and_a_delete_is_inserted_again() {
        let workload = workload("oltp-read-write", &[("range_size", "50")]);
        let sent = transaction(&workload, 9, 9, 9);
        let numbers = |i: usize| -> Vec<i64> {
            let inside = sent[i].split(['(', ')']).nth(1).unwrap();
            inside.split(',').take(2).map(|n| n.parse().unwrap()).collect()
        };
        for range in 11..=14 {
            assert_eq!(numbers(range)[1] - numbers(range)[0], 49);
        }
        let deleted = sent[17].strip_prefix("delete@1(").unwrap().trim_end_matches(')');
        let inserted = sent[18].strip_prefix("insert@1(").unwrap();
        assert!(inserted.starts_with(&format!("{deleted},")), "{sent:?}");
    }

    #[test]
    fn digits_look_like_sysbench_s_and_every_digit_is_as_likely() {
        let workload = workload("oltp-insert", &[]);
        let mut counts = [0u32; 10];
        for k in 0..2000 {
            let sent = &transaction(&workload, 5, 0, k)[0];
            let values: Vec<&str> = sent.split(['(', ')']).nth(1).unwrap().split(',').collect();
            assert_eq!(values[0], "0");
            assert_eq!((values[2].len(), values[3].len()), (119, 59));
            let groups: Vec<&str> = values[2].split('-').collect();
            assert!(groups.len() == 10 && groups.iter().all(|group| group.len() == 11));
            for digit in values[2].bytes().filter(u8::is_ascii_digit) {
                counts[usize::from(digit - b'0')] += 1;
            }
        }
        let expected = 2000.0 * 110.0 / 10.0;
        let chi_square: f64 = counts.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
        assert!(chi_square < 30.0, "chi-square {chi_square} with 9 degrees of freedom");
    }

    #[test]
    fn tables_are_drawn_uniformly() {
        let workload = workload("oltp-point-select", &[("tables", "4")]);
        let mut counts = [0u32; 4];
        for k in 0..40_000 {
            let sent = &transaction(&workload, 5, 0, k)[0];
            let table: usize = sent.split(['@', '(']).nth(1).unwrap().parse().unwrap();
            counts[table - 1] += 1;
        }
        assert!(counts.iter().all(|n| (9_600..=10_400).contains(n)), "{counts:?}");
    }
}

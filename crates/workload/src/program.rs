//! A workload prepared to run: its steps as a flat list that a cursor walks.

use crate::dictionary::{DictionaryValues, Order};
use crate::distribution::Sampler;
use crate::expr::{Expr, count_of_range};
use crate::rng::Rng;
use crate::workload::{DRAWS_MAX, Source, Statement, Step, Variable, Workload};

/// A workload flattened for quick walking. Statements are numbered in the order of [`Workload::statements`].
#[derive(Clone, Debug)]
pub struct Program {
    tables: u32,
    users: u32,
    pub(crate) sampler: Sampler,
    statements: Vec<Statement>,
    variables: Vec<Variable>,
    pub(crate) dictionaries: Vec<DictionaryValues>,
    pub(crate) steps: Vec<Op>,
    /// Where each transaction begins, with the sum of the weights up to and including its own.
    pub(crate) entries: Vec<(u64, usize)>,
    pub(crate) counters: usize,
}

/// One thing to do; targets are places in [`Program::steps`].
#[derive(Clone, Debug)]
pub(crate) enum Op {
    DrawTable,
    /// The number of [`Param::Drawn`](crate::Param::Drawn)'s slots.
    DrawRows(usize),
    Set {
        variable: usize,
        source: Source,
    },
    /// A random number between constants, the constants worked out.
    SetRandom {
        variable: usize,
        low: i64,
        sampler: Sampler,
    },
    Send(usize),
    Pause(Expr),
    Reconnect,
    Jump(usize),
    JumpUnless {
        condition: Expr,
        target: usize,
    },
    StartCount {
        counter: usize,
        times: Expr,
    },
    /// Jumps where the counter is 0, and counts down where it is not.
    JumpIfCounted {
        counter: usize,
        target: usize,
    },
    End,
}

impl Program {
    /// Works out all constants. Counts beyond the documented bounds are cut to them. `users`: of the whole load, which
    /// [`Order::Unique`](crate::Order::Unique) shares a dictionary among.
    pub fn new(workload: &Workload, users: u32) -> Program {
        let mut program = Program {
            tables: workload.tables.max(1),
            users: users.max(1),
            sampler: Sampler::new(workload.distribution, workload.rows),
            statements: Vec::new(),
            variables: workload.variables.clone(),
            dictionaries: workload.dictionaries.iter().map(|dictionary| dictionary.values.clone()).collect(),
            steps: Vec::new(),
            entries: Vec::new(),
            counters: 0,
        };
        let mut weights = 0;
        for transaction in &workload.transactions {
            weights += u64::from(transaction.weight);
            program.entries.push((weights, program.steps.len()));
            program.add_steps(&transaction.steps);
            program.steps.push(Op::End);
        }
        program
    }

    /// Which of the workload's transactions number `k` of this user is; that of an arrival where the user is
    /// [`ARRIVALS_USER`](crate::ARRIVALS_USER).
    pub fn transaction_of(&self, seed: u64, user: u64, k: u64) -> usize {
        self.draw(&mut Rng::for_transaction(seed, user, k))
    }

    /// Draws one of the transactions by their weights: the first thing that a transaction draws.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> usize {
        match self.entries.as_slice() {
            [] | [_] => 0,
            entries => {
                let total = entries[entries.len() - 1].0;
                let drawn = rng.below(total);
                entries.iter().position(|(weights, _)| drawn < *weights).unwrap_or(0)
            }
        }
    }

    /// Its statements, in the numbering that [`Call::statement`](crate::Call::statement) uses.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// Number of tables; at least 1.
    pub fn tables(&self) -> u32 {
        self.tables
    }

    /// Number of users of the whole load.
    pub fn users(&self) -> u32 {
        self.users
    }

    /// Whether it takes values that no other transaction of the load takes, and so depends on the number of users.
    pub fn takes_unique_values(&self) -> bool {
        let is_unique = |source: &Source| matches!(source, Source::Dictionary { order: Order::Unique, .. });
        let in_local_rows = |statement: &Statement| {
            statement.local_rows.as_ref().is_some_and(|local| local.fields.iter().any(is_unique))
        };
        self.steps.iter().any(|step| matches!(step, Op::Set { source, .. } if is_unique(source)))
            || self.statements.iter().any(in_local_rows)
    }

    /// Whether a transaction makes connections.
    pub fn reconnects(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Op::Reconnect))
    }

    /// What a transaction remembers.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    fn add_steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Group(group) => {
                    if group.statements.iter().any(Statement::is_per_table) {
                        self.steps.push(Op::DrawTable);
                    }
                    self.add_repeated(&Expr::Int(i64::from(group.repeat)), |program| {
                        if group.draws > 0 {
                            program.steps.push(Op::DrawRows(usize::from(group.draws).min(DRAWS_MAX)));
                        }
                        for statement in &group.statements {
                            program.add_statement(statement);
                        }
                    });
                }
                Step::Send(statement) => self.add_statement(statement),
                Step::Set { variable, source } => self.add_set(usize::from(*variable), source),
                Step::Pause { seconds } => self.steps.push(Op::Pause(seconds.clone())),
                Step::Reconnect => self.steps.push(Op::Reconnect),
                Step::If { condition, then, otherwise } => {
                    let branch = self.add_jump_unless(condition);
                    self.add_steps(then);
                    if otherwise.is_empty() {
                        self.land(branch);
                    } else {
                        let skip = self.steps.len();
                        self.steps.push(Op::Jump(0));
                        self.land(branch);
                        self.add_steps(otherwise);
                        self.land(skip);
                    }
                }
                Step::Repeat { times, steps } => self.add_repeated(times, |program| program.add_steps(steps)),
                Step::While { condition, steps } => {
                    let again = self.steps.len();
                    let exit = self.add_jump_unless(condition);
                    self.add_steps(steps);
                    self.steps.push(Op::Jump(again));
                    self.land(exit);
                }
            }
        }
    }

    fn add_statement(&mut self, statement: &Statement) {
        self.steps.push(Op::Send(self.statements.len()));
        self.statements.push(statement.clone());
    }

    fn add_set(&mut self, variable: usize, source: &Source) {
        if let Source::Expr(Expr::Random { distribution, low, high }) = source
            && let (Expr::Int(low), Expr::Int(high)) = (&**low, &**high)
            && let Some(count) = count_of_range(*low, *high)
        {
            self.steps.push(Op::SetRandom {
                variable,
                low: *low,
                sampler: Sampler::new(*distribution, count),
            });
            return;
        }
        self.steps.push(Op::Set { variable, source: source.clone() });
    }

    fn add_repeated(&mut self, times: &Expr, add_body: impl FnOnce(&mut Program)) {
        if *times == Expr::Int(1) {
            add_body(self);
            return;
        }
        let counter = self.counters;
        self.counters += 1;
        self.steps.push(Op::StartCount { counter, times: times.clone() });
        let again = self.steps.len();
        self.steps.push(Op::JumpIfCounted { counter, target: 0 });
        add_body(self);
        self.steps.push(Op::Jump(again));
        self.land(again);
    }

    fn add_jump_unless(&mut self, condition: &Expr) -> usize {
        self.steps.push(Op::JumpUnless { condition: condition.clone(), target: 0 });
        self.steps.len() - 1
    }

    /// The jump at `place` goes to what is added next.
    fn land(&mut self, place: usize) {
        let here = self.steps.len();
        match &mut self.steps[place] {
            Op::Jump(target) | Op::JumpUnless { target, .. } | Op::JumpIfCounted { target, .. } => {
                *target = here
            }
            _ => {}
        }
    }
}

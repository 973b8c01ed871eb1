//! What is sent: workloads as values, and the parameters of every transaction.
//!
//! A [`Workload`] says which transactions there are and what each consists of: statements, how often each is repeated,
//! branches, pauses, and how parameters are drawn. It can be printed, stored and compared. A [`Program`] is a workload
//! made ready to run; a [`Cursor`] walks through one transaction of it, statement by statement.
//!
//! A workload comes from one of three places:
//! - [`Workload::builtin`]. Those with sysbench's names send the same statements in the same order over the same
//!   tables, with the same options and defaults. So either tool can drive the same data. The others bring their own
//!   tables ([`Setup`]).
//! - [`Workload::from_sql_file`]: a user's own SQL, with directives in comments as pgbench has them.
//! - [`Workload::from_query`]: one query.
//!
//! Transaction `k` of user `u` is a function of `(seed, u, k)` and the server's answers only. So a retry sends the same
//! parameters, and any engine, in any order, sends the same load. The times at which transactions of a schedule are due
//! come from [`ArrivalClock`].
//!
//! This crate never opens a socket, reads no clock and no file.
//!
//! ```
//! use whyso_workload::{Cursor, Options, Program, Turn, Value, Workload};
//!
//! let mut options = Options::default();
//! options.set("tables", "4")?;
//! options.set("rand-type", "uniform")?;
//! let workload = Workload::builtin("oltp-point-select", &options)?;
//! println!("{}", workload.describe());
//!
//! let program = Program::new(&workload, 1);
//! let mut cursor = Cursor::new(42, 0, 0);
//! let Turn::Send(call) = cursor.next(&program)? else { panic!("a transaction has a first statement") };
//! assert_eq!(program.statements()[call.statement].sql_for_table(2), "SELECT c FROM sbtest2 WHERE id=?");
//! assert!(matches!(cursor.value(&program, call.params[0]), Value::Int(1..=10_000)));
//! assert!(matches!(cursor.next(&program)?, Turn::End));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arrival;
mod builtin;
mod cursor;
mod describe;
mod dictionary;
mod distribution;
mod error;
mod examples;
mod expr;
mod leave_out;
mod options;
mod program;
mod rng;
mod seeds;
mod sql;
mod statement;
mod suggest;
mod text;
mod variables;
mod workload;

pub use arrival::{ARRIVALS_USER, ArrivalClock, ArrivalProcess, exponential_think};
pub use builtin::builtin_names;
pub use cursor::{Call, Cursor, Stuck, Turn, Value};
pub use dictionary::{Dictionary, DictionarySource, DictionaryValues, Order};
pub use distribution::{Distribution, Sampler};
pub use error::{RatesProblem, WorkloadError};
pub use examples::Example;
pub use expr::{EvalError, Expr, Function, Operator, Scalar, ValueType};
pub use leave_out::RECONNECTS;
pub use options::{Options, ROWS_MAX, RandType};
pub use program::Program;
pub use rng::Rng;
pub use sql::{ExpressionError, SqlFileError, SqlOptions};
pub use suggest::nearest_name;
pub use text::SqlText;
pub use workload::{
    CLIENT_ID, Capture, DIGIT_GROUPS_MAX, DRAWS_MAX, Group, LocalRows, Param, Protocol, ROW_COUNT,
    Requirements, Setup, Source, Statement, Step, TABLE_NUMBER, Transaction, Variable, Workload,
};

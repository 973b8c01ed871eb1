//! What is sent: workloads as values, and the parameters of every transaction.
//!
//! A [`Workload`] says what a transaction consists of: groups of statements, how often each is repeated, and how
//! parameters are drawn. It can be printed, stored and compared. A [`Program`] is a workload made ready to run; a
//! [`Cursor`] walks through one transaction of it, statement by statement.
//!
//! The built-in workloads and their options bear sysbench's names, send the same statements in the same order over
//! the same tables, and have the same defaults, so that either tool can drive the same data.
//!
//! Transaction `k` of user `u` is a function of `(seed, u, k)` alone: a retry sends the same parameters, and any
//! engine, in any order, sends the same load.
//!
//! This crate never opens a socket, reads no clock and no file.
//!
//! ```
//! use whyso_workload::{Cursor, Options, Program, Value, Workload};
//!
//! let mut options = Options::default();
//! options.set("tables", "4")?;
//! options.set("rand-type", "uniform")?;
//! let workload = Workload::builtin("oltp-point-select", &options)?;
//! println!("{}", workload.describe());
//!
//! let program = Program::new(&workload);
//! let mut cursor = Cursor::new(42, 0, 0);
//! let call = cursor.next(&program).expect("a transaction has a first statement");
//! assert_eq!(program.statements()[call.statement].sql_for_table(2), "SELECT c FROM sbtest2 WHERE id=?");
//! assert!(matches!(cursor.value(call.params[0]), Value::Int(1..=10_000)));
//! assert!(cursor.next(&program).is_none());
//! # Ok::<(), whyso_workload::WorkloadError>(())
//! ```

mod arrival;
mod builtin;
mod distribution;
mod error;
mod options;
mod program;
mod rng;
mod suggest;
mod value;

pub use arrival::{ARRIVALS_USER, ArrivalClock, ArrivalProcess, exponential_think};
pub use builtin::builtin_names;
pub use distribution::{Distribution, Sampler};
pub use error::WorkloadError;
pub use options::{Options, ROWS_MAX, RandType};
pub use program::{Call, Cursor, Program, Value};
pub use rng::Rng;
pub use suggest::nearest_name;
pub use value::{
    DIGIT_GROUPS_MAX, DRAWS_MAX, Group, Param, Protocol, Requirements, Statement, TABLE_NUMBER, Workload,
};

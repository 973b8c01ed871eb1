//! sysbench, served: its command line, its Lua interface and its reports, on the load engine.
//!
//! [`main`] takes sysbench's arguments and gives an exit status. Scripts run unmodified: each user is a coroutine that
//! yields for every query. Users share an event loop, or each has a thread. Each loop or thread has one Lua state, in which the script's
//! code is compiled once, and runs in an environment per user. What a script may call is in `lua/runtime.lua` and `lua/sql.lua`; what they
//! call in turn is in `bridge.rs`.
//!
//! None of sysbench's code is in here. Its bundled scripts are found where distributions put them; the test `cpu` is
//! a script of this crate (`cpu_test.rs`).
//!
//! ```no_run
//! # fn surroundings() -> Box<dyn whyso_sysbench::Surroundings> { unimplemented!() }
//! let arguments = ["oltp_point_select", "--threads=4", "--time=10", "run"].map(str::to_string);
//! std::process::exit(i32::from(whyso_sysbench::main(&arguments, &*surroundings())));
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod bridge;
mod command_line;
mod coroutine;
mod cpu_test;
mod driver;
mod errand;
mod error;
mod facts;
mod interrupt;
mod options;
mod program;
mod random;
mod report;
mod run;
mod say;
mod script;
mod settings;
mod state;
mod surroundings;
mod user;
mod watchdog;
mod work;

pub use error::RecordingError;
pub use interrupt::{interrupt, was_interrupted};
pub use program::main;
pub use surroundings::{Recording, Run, Surroundings};

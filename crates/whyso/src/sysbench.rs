//! `whyso sysbench`: all arguments go to the library that serves them.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::INTERRUPTED;
use crate::args::SysbenchArgs;

const PASSWORD: &str = "--mysql-password=";

pub(crate) fn run(args: &SysbenchArgs) -> Result<ExitCode> {
    let passwords = args.arguments.iter().filter_map(|argument| argument.strip_prefix(PASSWORD));
    for password in passwords {
        if whyso_server::overwrite_in_arguments(password) {
            eprintln!(
                "whyso: warning: a password on the command line can be seen by others; MYSQL_PWD is safer"
            );
        }
    }
    ctrlc::set_handler(whyso_sysbench::interrupt).context("can't prepare for Ctrl-C")?;
    let status = whyso_sysbench::main(&args.arguments);
    Ok(ExitCode::from(if whyso_sysbench::was_interrupted() { INTERRUPTED } else { status }))
}

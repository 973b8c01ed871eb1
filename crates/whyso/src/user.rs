//! The user at the terminal: Ctrl-C, questions for passwords, and the command line.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use whyso_model::Stop;

use crate::exit_codes::INTERRUPTED;

static STOP: Stop = Stop::new();

/// Installs the handler of Ctrl-C. The first Ctrl-C ends the level and still reports, the second ends at once.
pub(crate) fn handle_ctrl_c() -> Result<&'static Stop> {
    ctrlc::set_handler(|| {
        if STOP.ask() > 1 {
            // The throw-away server is ended and removed by its supervisor once this process is gone.
            std::process::exit(i32::from(INTERRUPTED));
        }
        print_stderr!("\nwhyso: ending the level; Ctrl-C again ends at once");
    })
    .context("can't take Ctrl-C")?;
    Ok(&STOP)
}

/// Asks for a password. Returns `None` if standard input is no terminal.
pub(crate) fn ask_password(question: &str) -> Option<String> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    rpassword::prompt_password(format!("{question}: ")).ok()
}

/// The command line without passwords. The process's own arguments are overwritten in part.
static COMMAND_LINE: OnceLock<Vec<String>> = OnceLock::new();

/// Keeps the command line as it may be recorded. An argument need not be UTF-8.
pub(crate) fn keep_command_line(arguments: &[OsString]) {
    let arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    COMMAND_LINE.get_or_init(|| whyso_control::masked_command_line(arguments));
}

/// Returns the command line as it may be recorded.
pub(crate) fn command_line() -> Vec<String> {
    COMMAND_LINE.get().cloned().unwrap_or_default()
}

/// A folder of whyso's own, for what outlives a run.
pub(crate) fn state_folder(name: &str) -> Result<PathBuf> {
    let folder = whyso_server::state_dir().context("there is no home folder: give --folder")?;
    Ok(folder.join(name))
}

//! Fills an empty data folder with a server's system tables.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::child::{ChildProcess, how_it_ended};
use super::home::Home;
use super::{log, wrappers};
use crate::error::{Error, Result, io};
use crate::find::{Binary, Flavor, is_program};
use crate::snapshot::copy::copy_folder;

/// The scripts say much after the error that matters.
const LAST_OUTPUT_LINES: usize = 200;
const SCRIPTS: [&str; 2] = ["mariadb-install-db", "mysql_install_db"];
const FOLDERS: [&str; 4] = ["bin", "scripts", "sbin", ""];

/// Initialises `home`'s data folder. `options` are those of the server's start, so that what the data
/// depends on (page size, files, case of names) is the same.
pub(super) async fn initialise(
    binary: &Binary,
    home: &Home,
    options: &[String],
    bound: Duration,
) -> Result<()> {
    let output_path = home.folder.join("init.log");
    let mut command = match way(binary)? {
        Way::CopyFolder(ready) => return copy_folder(&ready, &home.data(), |_| false).map(|_| ()),
        Way::Initialize => initialize(binary, options),
        Way::Script(script) => run_script(binary, &script, home, options)?,
    };
    let output = File::create(&output_path).map_err(io("cannot write", &output_path))?;
    let errors = output.try_clone().map_err(io("cannot write", &output_path))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    command.current_dir(&home.folder).env("TMPDIR", home.folder.join("tmp")).env_remove("MYSQL_PWD");
    let program = PathBuf::from(command.get_program());
    let mut child = ChildProcess::spawn(command, home, None).map_err(io("cannot run", &program))?;
    let status = child.wait(bound).await;
    child.bury(home);
    let why = match status {
        Some(status) if status.success() => return Ok(()),
        Some(status) => {
            format!("its data folder can't be prepared by '{}': {}", program.display(), how_it_ended(status))
        }
        None => format!(
            "its data folder was not prepared by '{}' within {} s",
            program.display(),
            bound.as_secs()
        ),
    };
    let mut lines = log::last_lines(&output_path, LAST_OUTPUT_LINES);
    lines.extend(log::last_lines(&home.log(), LAST_OUTPUT_LINES));
    let server = format!("{} {}", binary.flavor, binary.version);
    Err(super::with_nearest_of(log::explain(&lines, &server, &why), binary))
}

/// How a server's data folder is prepared.
enum Way {
    /// `--initialize-insecure`: MySQL since 5.7.6.
    Initialize,
    /// A ready data folder that the build brings along: MySQL 5.5 and before.
    CopyFolder(PathBuf),
    /// `mariadb-install-db` or `mysql_install_db`.
    Script(PathBuf),
}

fn way(binary: &Binary) -> Result<Way> {
    if binary.flavor == Flavor::MySQL && binary.version_numbers() >= (5, 7, 6) {
        return Ok(Way::Initialize);
    }
    if let Some(script) = find_script(&binary.basedir) {
        return Ok(Way::Script(script));
    }
    let ready = binary.basedir.join("data");
    if ready.join("mysql").is_dir() {
        return Ok(Way::CopyFolder(ready));
    }
    Err(Error::Binary(format!(
        "there is no mariadb-install-db or mysql_install_db in '{}' (bin, scripts), and no ready data folder: one is needed to prepare a data folder for '{}'",
        binary.basedir.display(),
        binary.path.display()
    )))
}

/// Options that say where options are read must come first; and the rest.
fn split(options: &[String]) -> (Vec<&String>, Vec<&String>) {
    options
        .iter()
        .partition(|option| option.starts_with("--no-defaults") || option.starts_with("--defaults-file"))
}

fn initialize(binary: &Binary, options: &[String]) -> Command {
    let (first, rest) = split(options);
    let mut command = binary.command();
    command.args(first).arg("--initialize-insecure").args(rest);
    command
}

fn run_script(binary: &Binary, script: &Path, home: &Home, options: &[String]) -> Result<Command> {
    let (first, rest) = split(options);
    let text = std::fs::read(script).map_err(io("cannot read", script))?;
    let understands = |option: &str| text.windows(option.len()).any(|window| window == option.as_bytes());
    let mut command = Command::new(script);
    if let Some(path) = binary.launch.library_path() {
        command.env("LD_LIBRARY_PATH", path);
    }
    command.args(first);
    if understands("--auth-root-authentication-method") {
        command.arg("--auth-root-authentication-method=normal");
    }
    if understands("--skip-test-db") {
        command.arg("--skip-test-db");
    }
    if understands("--skip-name-resolve") {
        command.arg("--skip-name-resolve");
    }
    // no look-ups of this machine's name; the first of the two also in old versions
    command.arg("--force").arg(format!("--datadir={}", home.data().display()));
    command.args(rest.into_iter().filter(|option| !option.starts_with("--datadir")));
    if binary.launch.loader.is_some() {
        // of two, the last counts
        let wrapped = wrappers::tree(binary, &home.folder.join("install"))?;
        command.arg(format!("--basedir={}", wrapped.display()));
    }
    Ok(command)
}

fn find_script(basedir: &Path) -> Option<PathBuf> {
    let candidates =
        SCRIPTS.iter().flat_map(|name| FOLDERS.iter().map(move |folder| basedir.join(folder).join(name)));
    candidates.into_iter().find(|path| is_program(path))
}

//! The manual pages, from the same definitions as the help. Packages contain them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// What the page `whyso(1)` has after the commands: title and text of each section.
const SECTIONS: [(&str, &[(&str, &str)]); 2] = [
    (
        "FILES",
        &[
            ("~/.config/whyso/config.toml", "Your own defaults: dsn, runs, users and color."),
            ("~/.my.cnf", "User, password, host, port and socket of the server, from its section [client]."),
            ("runs/", "The recordings, one folder each, in the folder where the command runs."),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            ("MYSQL_PWD", "The password, where the DSN has none."),
            ("XDG_CONFIG_HOME", "The folder that replaces ~/.config."),
            ("NO_COLOR", "Where it is set, nothing is coloured."),
        ],
    ),
];

#[derive(Args, Debug)]
pub(crate) struct ManPagesArgs {
    /// Folder for the pages, which is made where it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes one page per command, of which `command` is the topmost.
pub(crate) fn write_man_pages(args: &ManPagesArgs, command: Command) -> Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let count = write_with_subcommands(&command, folder)?;
    writeln!(crate::out::stdout(), "{count} pages in {}", folder.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a command and of those below it. Returns their number.
fn write_with_subcommands(command: &Command, folder: &Path) -> Result<usize> {
    let path = folder.join(format!("{}.1", name_of(command)));
    let file = File::create(&path).with_context(|| format!("can't write {}", path.display()))?;
    let mut out = BufWriter::new(file);
    render(command, &mut out)
        .and_then(|()| out.flush())
        .with_context(|| format!("can't write {}", path.display()))?;
    let mut count = 1;
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        count += write_with_subcommands(below, folder)?;
    }
    Ok(count)
}

/// The name of a command's page, such as `whyso-runs-prune`.
fn name_of(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn render(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    // The synopsis would list each option once more.
    let usage = command.clone().render_usage().to_string();
    let short = command.clone().override_usage(usage.trim_start_matches("Usage: ").to_string());
    let man = Man::new(short.subcommand_help_heading("COMMANDS"))
        .source(format!("whyso {version}"))
        .manual("whyso");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if command.get_subcommands().any(|one| !one.is_hide_set()) {
        man.render_subcommands_section(out)?;
    }
    let mut rest = Roff::new();
    if name_of(command) == "whyso" {
        for (title, entries) in SECTIONS {
            rest.control("SH", [title]);
            for (name, meaning) in entries {
                rest.control("TP", []);
                rest.text([bold(*name)]);
                rest.text([roman(*meaning)]);
            }
        }
    } else {
        rest.control("SH", ["SEE ALSO"]);
        rest.text([bold("whyso"), roman("(1)")]);
    }
    rest.to_writer(out)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn each_command_has_a_page_with_its_options() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManPagesArgs { folder: folder.path().join("man1") };
        write_man_pages(&args, Cli::command()).unwrap();
        let page = |name: &str| fs::read_to_string(args.folder.join(format!("{name}.1"))).expect(name);

        let all = Cli::command();
        let shown = all.get_subcommands().filter(|one| !one.is_hide_set());
        let mut expected: BTreeSet<String> = shown.map(|one| format!("whyso-{}.1", one.get_name())).collect();
        expected.insert("whyso.1".to_string());
        let written: BTreeSet<String> = fs::read_dir(&args.folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(expected.is_subset(&written), "{expected:?} {written:?}");
        assert!(written.contains("whyso-runs-prune.1"), "{written:?}");
        assert!(
            !written.iter().any(|name| name.contains("help") || name.contains("man-pages")),
            "{written:?}"
        );

        let record = page("whyso-record");
        assert!(record.contains(r"\-\-disk\-max") && record.contains("OpenMetrics"), "{record}");
        assert!(record.starts_with(".ie") || record.starts_with(".TH"), "{record}");
        assert!(page("whyso").contains("MYSQL_PWD") && page("whyso").contains(env!("CARGO_PKG_VERSION")));
    }
}

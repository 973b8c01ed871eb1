//! What of a study's file would run or load code. A file from somebody else runs nothing before the user has read it.

use std::collections::BTreeSet;
use std::path::Path;

use whyso_study::{Cell, Spec};

/// Options of a server that name code to load or statements to run, without "loose_".
pub(super) const KNOBS: [&str; 7] = [
    "plugin_dir",
    "plugin_load",
    "plugin_load_add",
    "early_plugin_load",
    "init_file",
    "init_connect",
    "lc_messages_dir",
];

/// Returns the programs that a study would run or load, one line each. Builds of whyso's own, the server on the
/// PATH, add-ons that ship and libraries of this machine don't count. Reads no file and starts nothing.
pub fn study_programs(spec: &Spec) -> Vec<String> {
    let mut programs = BTreeSet::new();
    for cell in spec.cells() {
        programs.extend(of_cell(&cell));
    }
    let add_ons = spec.add_ons.iter().filter(|add_on| is_file(add_on) || add_on.ends_with(".toml"));
    programs.extend(add_ons.map(|add_on| format!("the add-on {add_on}")));
    programs.into_iter().collect()
}

fn of_cell(cell: &Cell) -> Vec<String> {
    let mut programs = Vec::new();
    if is_file(&cell.server) {
        programs.push(format!("the server in {}", cell.server));
    }
    if let Some(library) = cell.setup.preload.as_ref().filter(|library| is_file(library)) {
        programs.push(format!("the library {library}"));
    }
    for (name, value) in &cell.setup.set {
        if names_any(name, &KNOBS) {
            programs.push(format!("what the server's option {name} = {value} names"));
        }
    }
    programs
}

/// Whether a server takes a name for one of these options: the beginning of an option's name is enough for it.
pub(super) fn names_any(name: &str, options: &[&str]) -> bool {
    let plain = name.to_lowercase().replace('-', "_");
    let plain = plain.strip_prefix("loose_").unwrap_or(&plain);
    options.iter().any(|option| option.starts_with(plain))
}

/// Whether a text names a file or a folder, and no build. A folder in the current one comes before a build of its name.
fn is_file(text: &str) -> bool {
    !text.is_empty() && (text.contains('/') || Path::new(text).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(more: &str) -> Vec<String> {
        let text = format!(
            "title = \"t\"\nquestion = \"q\"\nworkload = \"oltp-point-select\"\nbaseline = \"one\"\n{more}\n[[variant]]\nname = \"one\"\n"
        );
        study_programs(&Spec::parse(&text, false).unwrap())
    }

    #[test]
    fn builds_shipped_add_ons_and_ordinary_knobs_run_nothing_of_the_file() {
        assert_eq!(
            programs("servers = [\"\", \"mysql-sid\"]\nset = { sync_binlog = 1 }"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn servers_libraries_add_ons_and_plugins_that_the_file_names_are_listed() {
        assert_eq!(programs("servers = [\"./evil\"]"), ["the server in ./evil"]);
        assert_eq!(programs("add_ons = [\"evil.toml\"]"), ["the add-on evil.toml"]);
        let knobs = programs("set = { plugin-dir = \"/tmp/evil\", loose_init_file = \"/tmp/evil.sql\" }");
        assert_eq!(knobs.len(), 2, "{knobs:?}");
        assert_eq!(
            programs("set = { plugin_di = \"/tmp/evil\" }").len(),
            1,
            "the beginning of a name is enough"
        );
        let of_variant = "[[variant]]\nname = \"two\"\npreload = \"./evil.so\"\nserver = \"/tmp/evil\"";
        assert_eq!(programs(of_variant), ["the library ./evil.so", "the server in /tmp/evil"]);
    }
}

//! The part of a study that is carried out on one machine as a whole: a block, or the pair.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use whyso_record::{backup_to, import_from};
use whyso_study::{Journal, StartRecord, StoredStudy};

use super::plan::KnownKnobs;
use super::programs::{KNOBS, names_any};
use super::{carry_out_next, study_programs, wrong_study};
use crate::progress::Listener;
use crate::{Error, Stop};

/// The most bytes of what was measured, without the recordings.
const RECORDS_BYTES_MAX: u64 = 16 << 20;

/// Refuses a study of another machine that would run a program, or use a path, of this one.
///
/// # Errors
/// It names one.
pub fn check_study_of_others(study: &StoredStudy) -> Result<(), Error> {
    let mut found = study_programs(&study.spec);
    let spec = &study.spec;
    found.extend(spec.app.iter().map(|app| format!("the sample application {app}")));
    found.extend(spec.add_ons.iter().map(|add_on| format!("the add-on {add_on}")));
    found.extend(spec.data_dir.iter().map(|folder| format!("the folder {folder}")));
    if !study.endpoint.is_empty() {
        found.push(format!("the server {}", study.endpoint));
    }
    for cell in spec.cells() {
        found.extend(cell.setup.preload.iter().map(|library| format!("the library {library}")));
        if !whyso_workload::builtin_names().contains(&cell.setup.workload.as_str()) {
            found.push(format!("the SQL of {}", cell.setup.workload));
        }
        let code = cell.setup.set.iter().filter(|(name, _)| may_name_code(name));
        found.extend(code.map(|(name, value)| format!("{name} = {value}")));
        let paths = cell.setup.set.iter().filter(|(_, value)| value.to_string().contains('/'));
        found.extend(paths.map(|(name, value)| format!("{name} = {value}")));
    }
    match found.first() {
        None => Ok(()),
        Some(first) => Err(Error::Plan(format!(
            "a study that names programs, paths or SQL is carried out on its own machine only, and this one names {first}: leave out --hosts"
        ))),
    }
}

/// Options of a server by which code could be run or files be written, in addition to [`KNOBS`].
const OTHERS_TOO: [&str; 7] = [
    "init_slave",
    "init_replica",
    "wsrep_notify_cmd",
    "wsrep_provider",
    "general_log_file",
    "slow_query_log_file",
    "log_error",
];

/// A server also takes the beginning of an option's name.
fn may_name_code(name: &str) -> bool {
    names_any(name, &KNOBS) || names_any(name, &OTHERS_TOO)
}

/// Carries out one unit of a study on servers of whyso's own. `folder`: a new one for its recordings. Returns what was measured.
///
/// # Errors
/// A start failed, or the user broke off.
pub fn study_unit(
    study: StoredStudy,
    unit: u32,
    folder: &Path,
    command: &[String],
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Vec<StartRecord>, Error> {
    check_study_of_others(&study)?;
    let mut journal = Journal::create(folder, study).map_err(wrong_study)?;
    let cells = journal.spec().cells();
    let mut knobs = KnownKnobs::of_study(None);
    loop {
        let todo: Vec<_> = journal.todo(unit).into_iter().filter(|start| start.unit() == unit).collect();
        if todo.is_empty() {
            return Ok(journal.finished_starts().to_vec());
        }
        let asks = (listener, stop, &(|_: &str| None) as &crate::login::AskPassword);
        carry_out_next(&mut journal, &todo, &cells, None, &mut knobs, command, asks)?;
    }
}

/// Writes what was measured, and the recordings in `runs`, into one file.
///
/// # Errors
/// A recording can't be read, or the file can't be written.
pub fn pack_unit(records: &[StartRecord], runs: &Path, file: &Path) -> Result<(), Error> {
    let failed = |error: io::Error| Error::Failed(format!("can't write {}: {error}", file.display()));
    let json = serde_json::to_vec(records).map_err(|error| Error::Failed(error.to_string()))?;
    let names = records.iter().filter(|record| !record.run.is_empty());
    let runs: Vec<_> = names.map(|record| runs.join(&record.run)).collect();
    let mut out = BufWriter::new(File::create(file).map_err(failed)?);
    out.write_all(&(json.len() as u64).to_le_bytes()).and_then(|()| out.write_all(&json)).map_err(failed)?;
    if !runs.is_empty() {
        backup_to(&runs, &mut out)?;
    }
    out.flush().map_err(failed)
}

/// Reads such a file, and brings its recordings into `runs`. `taken`: names of recordings that belong to other starts.
///
/// # Errors
/// It is damaged, or a recording can't be written.
pub(super) fn unpack_unit(
    file: &Path,
    runs: &Path,
    taken: &HashSet<String>,
) -> Result<Vec<StartRecord>, Error> {
    let damaged = |what: &str| Error::Failed(format!("the result in {} is damaged: {what}", file.display()));
    let io = |error: io::Error| damaged(&error.to_string());
    let mut input = BufReader::new(File::open(file).map_err(io)?);
    let mut length = [0; 8];
    input.read_exact(&mut length).map_err(io)?;
    let length = u64::from_le_bytes(length);
    if length > RECORDS_BYTES_MAX {
        return Err(damaged("what was measured is too long"));
    }
    let mut json = Vec::new();
    input.by_ref().take(length).read_to_end(&mut json).map_err(io)?;
    let records: Vec<StartRecord> =
        serde_json::from_slice(&json).map_err(|error| damaged(&error.to_string()))?;
    let named: Vec<&str> =
        records.iter().map(|record| record.run.as_str()).filter(|run| !run.is_empty()).collect();
    if named.iter().any(|run| taken.contains(*run)) {
        // Two machines may begin one in the same second, by processes of the same number.
        return Err(damaged("a recording of its name is there already"));
    }
    if !named.is_empty() {
        let (imported, known) = import_from(input, "a result", runs)?;
        let is_there = |run: &&str| imported.iter().chain(&known).any(|there| there == run);
        if !named.iter().all(is_there) {
            return Err(damaged("a recording is missing"));
        }
    }
    Ok(records)
}

/// Hears what a study does, for a worker's log.
pub(super) fn describe_unit(unit: u32) -> String {
    match unit {
        0 => "the pair".to_string(),
        block => format!("block {block}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use whyso_study::Spec;

    use super::*;

    fn checked(more: &str) -> Result<(), String> {
        let text = format!(
            "title = \"t\"\nquestion = \"q\"\nbaseline = \"one\"\n{more}\n[[variant]]\nname = \"one\"\n"
        );
        let spec = Spec::parse(&text, false).unwrap();
        let study = StoredStudy { spec, files: BTreeMap::new(), notes: Vec::new(), endpoint: String::new() };
        check_study_of_others(&study).map_err(|error| error.to_string())
    }

    #[test]
    fn a_study_of_another_machine_runs_and_writes_nothing_of_its_own() {
        assert_eq!(checked("workload = \"oltp-point-select\"\nset = { sync_binlog = 1 }"), Ok(()));
        for (more, word) in [
            ("servers = [\"./evil\"]", "evil"),
            ("workload = \"evil.sql\"", "SQL of evil.sql"),
            ("set = { plugin_load_ad = \"evil\" }", "plugin_load_ad"),
            ("set = { loose-wsrep-notify-cmd = \"sh\" }", "wsrep-notify-cmd"),
            ("set = { tmpdir = \"/etc\" }", "tmpdir"),
            ("add_ons = [\"linux\"]", "linux"),
            ("data_dir = \"/etc\"", "/etc"),
            ("app = \"calendar\"\nworkload = \"/index.php\"", "the sample application"),
        ] {
            assert!(checked(more).unwrap_err().contains(word), "{more}");
        }
    }
}

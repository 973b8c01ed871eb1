//! Small files: notes, journals of settings, snapshots, studies.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use whyso_record::{add_note, notes_of};
use whyso_server::knobs;
use whyso_server::snapshot::{DEFAULT_MAX_BYTES, Store};
use whyso_study::{Journal, Spec, answer};

use super::change::damage;
use super::{folders, json};
use crate::choices::Choices;

const CHANGES_MAX: usize = 5;

const STUDY: &str = r#"
title = "Flush at commit"
question = "What does a flush at every commit cost?"
users = [1, 8]
repeats = 3
seconds = 5
baseline = "flush"

[[variant]]
name = "flush"
set = { innodb_flush_log_at_trx_commit = 1 }

[[variant]]
name = "no flush"
set = { innodb_flush_log_at_trx_commit = 2 }

[quick]
users = [1]
"#;

/// A small file is read or refused.
pub fn small_files(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let folder = folders::temporary();
    match choices.byte() % 5 {
        0 => notes(&mut choices, folder.path()),
        1 => journal_of_settings(&mut choices, folder.path()),
        2 => snapshot(&mut choices, folder.path()),
        3 => study_file(&mut choices),
        _ => study(&mut choices, folder.path()),
    }
}

fn changed(choices: &mut Choices<'_>, mut value: Value) -> Vec<u8> {
    for _ in 0..choices.below(CHANGES_MAX) {
        json::change(choices, &mut value);
    }
    let mut text = value.to_string().into_bytes();
    if choices.once_in(4) {
        damage(choices, &mut text);
    }
    text
}

fn notes(choices: &mut Choices<'_>, dir: &Path) {
    let mut lines = Vec::new();
    for _ in 0..choices.below(4) {
        lines.extend(changed(choices, json!({ "t_ns": 5, "text": "a disk was added" })));
        lines.push(b'\n');
    }
    let (path, before) = (dir.join("notes.jsonl"), lines.clone());
    fs::write(&path, lines).expect("a file");
    fs::write(dir.join("run.json"), "{}").expect("a file");
    let count = notes_of(dir).len();
    let text = String::from_utf8_lossy(choices.some(50)).into_owned();
    add_note(dir, choices.u64() as i64, &text).expect("a note is added to whatever is there");
    let is_whole = before.last().is_none_or(|last| *last == b'\n');
    assert!(!is_whole || notes_of(dir).len() == count + 1, "a note that was added is lost");
}

fn journal_of_settings(choices: &mut Choices<'_>, dir: &Path) {
    let journal = json!({
        "server": { "identity": "vm:3306", "started_s": 1_750_000_000 },
        "changes": [{ "name": "innodb_io_capacity", "before": "200", "after": "300" }, { "name": "a", "before": "", "after": null }],
        "setup": [],
    });
    fs::write(dir.join("undo-1.json"), changed(choices, journal)).expect("a file");
    let _ = knobs::changes_in(dir);
}

fn snapshot(choices: &mut Choices<'_>, dir: &Path) {
    let facts = json!({
        "format": 1,
        "binary": { "path": "/usr/sbin/mariadbd", "version": "10.11.14-MariaDB", "flavor": "MariaDb" },
        "binary_bytes": 25_000_000,
        "binary_changed_s": 1_750_000_000,
        "dataset": { "tables": 4, "rows": 25_000 },
        "knobs": [["innodb_page_size", "16384"]],
    });
    let snapshot = dir.join("0123abcd");
    fs::create_dir_all(snapshot.join("data")).expect("a folder");
    fs::write(snapshot.join("snapshot.json"), changed(choices, facts)).expect("a file");
    let store = Store { folder: dir.to_path_buf(), max_bytes: DEFAULT_MAX_BYTES };
    let _ = store.list();
}

fn study_file(choices: &mut Choices<'_>) {
    let mut text = STUDY.as_bytes().to_vec();
    if choices.once_in(2) {
        let table: toml::Table = STUDY.parse().expect("the study above");
        let mut value = serde_json::to_value(table).expect("JSON");
        for _ in 0..=choices.below(CHANGES_MAX) {
            json::change(choices, &mut value);
        }
        let lines = value.as_object().into_iter().flatten();
        let lines =
            lines.map(|(name, value)| format!("{} = {}\n", Value::from(name.as_str()), toml_of(value)));
        text = lines.collect::<String>().into_bytes();
    } else {
        for _ in 0..=choices.below(CHANGES_MAX) {
            damage(choices, &mut text);
        }
    }
    let text = String::from_utf8_lossy(&text);
    let _ = Spec::parse(&text, true);
    if let Ok(spec) = Spec::parse(&text, false) {
        plan(&spec);
    }
}

/// JSON's texts and numbers are TOML's; tables are written in one line.
fn toml_of(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(toml_of).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{} = {}", Value::from(name.as_str()), toml_of(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

/// What `--dry-run` shows.
fn plan(spec: &Spec) {
    let _ = spec.cells().iter().map(|cell| cell.name()).collect::<Vec<_>>();
    let _ = (spec.pair(), spec.block(0), spec.block(u32::MAX), spec.blocks_least(), spec.blocks_max());
    let _ = (spec.measured_s_max(), spec.measured_s_of_start(), spec.all_starts().len());
}

fn study(choices: &mut Choices<'_>, dir: &Path) {
    let spec = Spec::parse(STUDY, false).expect("the study above");
    let starts: Vec<_> = spec.pair().into_iter().chain((0..3).flat_map(|block| spec.block(block))).collect();
    let study = json!({ "spec": spec, "files": {}, "notes": ["a note"] });
    fs::write(dir.join("study.json"), changed(choices, study)).expect("a file");
    let mut lines = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        let done = json!({
            "start": start,
            "run": format!("run-{number}"),
            "version": "10.11.14",
            "seconds": 20.0,
            "levels": [
                { "users": 1, "measures": { "transactions_per_s": 100.0 + number as f64, "latency_p95_ms": 10.0 }, "half_width_percent": 2.0 },
                { "users": 8, "measures": { "transactions_per_s": 500.0 + number as f64 }, "over_time": [{ "at_s": 1.0, "measures": { "transactions_per_s": 90.0 } }] },
            ],
            "peak": { "users": 8, "users_interval": [1, 8], "suspect": "row locks" },
        });
        match choices.once_in(3) {
            true => lines.extend(changed(choices, done)),
            false => lines.extend(done.to_string().into_bytes()),
        }
        lines.push(b'\n');
    }
    fs::write(dir.join("starts.jsonl"), lines).expect("a file");
    let Ok(journal) = Journal::open(dir) else { return };
    plan(journal.spec());
    let _ = (journal.todo(3).len(), journal.seconds(), journal.suggested().is_ok());
    let answer = answer(journal.spec(), journal.finished_starts(), journal.notes());
    let _ = (whyso_report::study(&answer), whyso_report::study_markdown(&answer));
    let _ = whyso_report::study_html(&answer, &mut io::sink());
    let _ = journal.stored().suggested(journal.finished_starts());
}

//! Names of types, functions and files: nouns and verbs, none that could mean eight things.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// No function, module or file has one of these names.
const VAGUE: [&str; 22] = [
    "told", "said", "made", "given", "taken", "seen", "known", "kept", "held", "came", "left", "leave",
    "beside", "besides", "inside", "found", "heard", "meant", "wanted", "asked", "shown", "gone",
];

/// Participles that do not end in "ed".
const IRREGULAR: [&str; 25] = [
    "Told", "Said", "Made", "Given", "Taken", "Seen", "Known", "Kept", "Held", "Came", "Left", "Found",
    "Heard", "Meant", "Shown", "Gone", "Done", "Drawn", "Begun", "Sent", "Built", "Written", "Read",
    "Hidden", "Chosen",
];

/// Nouns that end in "ed".
const NOUNS: [&str; 5] = ["Seed", "Speed", "Feed", "Need", "Deed"];

fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(|letter| letter.is_ascii_lowercase());
    is_one_word && !NOUNS.contains(&name) && (name.ends_with("ed") || IRREGULAR.contains(&name))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["node_modules", "dist", "data", "target"].contains(&name.as_str()) {
            files(&path, found);
        } else if ["rs", "ts", "svelte", "py"]
            .iter()
            .any(|extension| path.extension().is_some_and(|own| own == *extension))
        {
            found.push(path);
        }
    }
}

/// The name after one of the keywords, where a line defines something.
fn defined<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let mut words =
        line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty());
    words.find(|word| keywords.contains(word))?;
    words.next()
}

#[test]
fn names_are_nouns_and_verbs() {
    let mut all = Vec::new();
    let top = root();
    for folder in ["crates", "tests", "web/src", "web/tests", "scripts"] {
        files(&top.join(folder), &mut all);
    }
    let mut hits = Vec::new();
    for path in &all {
        let shown = path.strip_prefix(&top).unwrap().display();
        let stem = path.file_name().unwrap().to_string_lossy();
        if VAGUE.contains(&stem.split('.').next().unwrap()) {
            hits.push(format!("{shown}: file"));
        }
        if path
            .parent()
            .and_then(Path::file_name)
            .is_some_and(|name| VAGUE.contains(&name.to_string_lossy().as_ref()))
        {
            hits.push(format!("{shown}: folder"));
        }
        for (at, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
            let code = line.trim_start();
            if code.starts_with("//") || code.starts_with('*') || code.starts_with('#') {
                continue;
            }
            let is_type =
                ["pub ", "pub(", "struct ", "enum ", "trait ", "type ", "class ", "interface ", "export "]
                    .iter()
                    .any(|keyword| code.starts_with(keyword));
            if is_type
                && let Some(name) = defined(code, &["struct", "enum", "trait", "type", "class", "interface"])
                && is_participle(name)
            {
                hits.push(format!("{shown}:{}: type {name}", at + 1));
            }
            let is_function = ["pub ", "pub(", "fn ", "async ", "const fn", "function ", "export ", "def "]
                .iter()
                .any(|keyword| code.starts_with(keyword));
            if is_function
                && let Some(name) = defined(code, &["fn", "function", "def"])
                && VAGUE.contains(&name)
            {
                hits.push(format!("{shown}:{}: function {name}", at + 1));
            }
        }
    }
    assert!(all.len() > 500);
    assert!(hits.is_empty(), "{} names that say too little:\n{}", hits.len(), hits.join("\n"));
}

//! The names that results of statements get, where the file names none.

use super::build::Builder;
use super::lexer::name_at;

impl Builder {
    /// Such as "select_account"; another statement with the same words gets a number.
    pub(super) fn derived_kind(&mut self, sql: &str) -> String {
        if let Some((kind, _)) = self.kinds.iter().find(|(_, statement)| statement == sql) {
            return kind.clone();
        }
        let base = kind_of(sql);
        let mut kind = base.clone();
        let mut number = 1;
        while self.kinds.iter().any(|(existing, _)| *existing == kind) {
            number += 1;
            kind = format!("{base}_{number}");
        }
        self.kinds.push((kind.clone(), sql.to_string()));
        kind
    }
}

/// The first word and the table or routine that it is about, such as "select_account", as far as the text shows.
fn kind_of(sql: &str) -> String {
    let words: Vec<String> = sql
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | ';' | '='))
        .filter(|word| !word.is_empty())
        .map(|word| word.trim_matches('`').to_ascii_lowercase())
        .collect();
    let Some(verb) = words.first() else { return "statement".to_string() };
    let is_name = |word: &&String| !name_at(word).is_empty();
    let after = |keyword: &str| words.iter().skip_while(|word| *word != keyword).nth(1).filter(is_name);
    let object = match verb.as_str() {
        "select" | "delete" | "with" => after("from"),
        "insert" | "replace" | "load" => {
            after("into").or_else(|| after("table")).filter(|word| *word != "table")
        }
        "update" | "call" | "set" => words.get(1).filter(is_name),
        _ => None,
    };
    let object = if verb == "load" { after("table") } else { object };
    let verb: String = verb.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let verb = if verb.is_empty() { "statement".to_string() } else { verb };
    match object {
        Some(name) => {
            let name = name.rsplit('.').next().unwrap_or(name).trim_matches('`');
            let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            format!("{verb}_{plain}")
        }
        None => verb,
    }
}

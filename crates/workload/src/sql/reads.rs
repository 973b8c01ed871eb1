//! Separates statements that only read from those that may change something.

use super::lexer::name_at;

/// First words of statements that change no data, where nothing of the lists below stands in them.
const READS: [&str; 20] = [
    "select",
    "with",
    "values",
    "table",
    "show",
    "describe",
    "desc",
    "explain",
    "set",
    "do",
    "use",
    "begin",
    "start",
    "commit",
    "rollback",
    "savepoint",
    "release",
    "handler",
    "help",
    "checksum",
];

/// Words that make any statement one that changes something: a common table expression before a DELETE, SELECT … INTO
/// OUTFILE, a sequence's next number.
const CHANGES: [&str; 7] = ["insert", "update", "delete", "replace", "into", "nextval", "setval"];

/// Words that make a SET or START one that reaches beyond the session, or ends its being read-only.
const SET_CHANGES: [&str; 8] = [
    "global",
    "persist",
    "persist_only",
    "password",
    "role",
    "write",
    "transaction_read_only",
    "tx_read_only",
];

/// Whether a statement (or several, with `;` between them) only reads, as far as its text shows. The text does not show
/// what functions of the user's own do. What is not understood counts as writing.
pub(crate) fn only_reads(sql: &str) -> bool {
    let words = words_outside_quotes(sql);
    let mut first = "";
    for (i, word) in words.iter().enumerate() {
        let word = word.as_str();
        match word {
            ";" => first = "",
            "(" => {}
            "/*!" => return false,
            _ if first.is_empty() && !READS.contains(&word) => return false,
            _ if first.is_empty() => first = word,
            // FOR UPDATE only locks, and the functions INSERT() and REPLACE() change texts.
            "update" if words[i - 1] == "for" => {}
            "insert" | "replace" if words.get(i + 1).is_some_and(|next| next == "(") => {}
            _ if CHANGES.contains(&word) => return false,
            _ if matches!(first, "set" | "start") && SET_CHANGES.contains(&word) => return false,
            _ => {}
        }
    }
    true
}

/// Words of statements that lock rows, wait, or reach beyond the session.
const LOCKS_AND_WAITS: [&str; 9] = [
    "for",
    "lock",
    "share",
    "get_lock",
    "release_lock",
    "sleep",
    "benchmark",
    "master_pos_wait",
    "master_gtid_wait",
];

/// Whether it is one SELECT that reads rows, locks none of them and waits for nothing, as far as its text shows.
pub(crate) fn only_reads_rows(sql: &str) -> bool {
    let words = words_outside_quotes(sql);
    let first = words.iter().find(|word| *word != "(").map_or("", String::as_str);
    matches!(first, "select" | "with")
        && only_reads(sql)
        && !words.iter().any(|word| word == ";" || LOCKS_AND_WAITS.contains(&word.as_str()))
}

/// Names, `;`, `(` and the begin of executable comments, in small letters.
fn words_outside_quotes(sql: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut quote = None;
    let mut escaped = false;
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match quote {
            Some(_) if escaped => escaped = false,
            Some(open) if first == '\\' && open != '`' => escaped = true,
            Some(open) if first == open => quote = None,
            Some(_) => {}
            None if matches!(first, '\'' | '"' | '`') => quote = Some(first),
            None if matches!(first, ';' | '(') => words.push(first.to_string()),
            None if rest.starts_with("/*!") || rest.starts_with("/*M!") => words.push("/*!".to_string()),
            None => {
                let word = name_at(rest);
                if !word.is_empty() {
                    words.push(word.to_ascii_lowercase());
                    length = word.len();
                }
            }
        }
        rest = &rest[length..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_read_are_distinguished_from_those_that_may_write() {
        for reads in [
            "SELECT * FROM t WHERE note = 'delete; update'",
            "select `update` from t for update",
            "(SELECT 1) UNION (SELECT 2)",
            "SELECT REPLACE(a, 'x', 'y') FROM t",
            "SHOW TABLES; SELECT 1",
            "SET @x = 1, sort_buffer_size = 32768; SELECT @x",
            "WITH c AS (SELECT 1) SELECT * FROM c",
            "START TRANSACTION READ ONLY",
            "EXPLAIN SELECT 1",
            "SELECT 1;",
            "SELECT password, role, `into` FROM account",
        ] {
            assert!(only_reads(reads), "{reads}");
        }
        for writes in [
            "INSERT INTO t VALUES (1)",
            "SELECT 1; DROP TABLE t",
            "SELECT * FROM t INTO OUTFILE '/tmp/x'",
            "WITH c AS (SELECT 1) DELETE FROM t",
            "SET GLOBAL read_only = 0",
            "SET @@global.sort_buffer_size = 1",
            "SET SESSION transaction_read_only = 0",
            "START TRANSACTION READ WRITE",
            "SELECT 1 /*! INTO OUTFILE 'x' */",
            "CALL p()",
            "ANALYZE UPDATE t SET a = 1",
            "LOCK TABLES t WRITE",
            "XA START 'a'",
            "SELECT NEXTVAL(s)",
        ] {
            assert!(!only_reads(writes), "{writes}");
        }
    }
}

//! Whether a statement only reads. What this lets pass by mistake, the read-only transaction around it refuses.

use super::error::StatementError;

static FIRST: [&str; 5] = ["SELECT", "SHOW", "WITH", "TABLE", "VALUES"];
/// Within a statement that begins as one that reads: these would write, or lock.
const REFUSED: [&str; 9] =
    ["INTO", "INSERT", "UPDATE", "DELETE", "OUTFILE", "DUMPFILE", "PROCEDURE", "GET_LOCK", "SHARE"];

/// Returns the statement without its last semicolon.
///
/// # Errors
/// It writes or locks, or it is more than one.
pub(super) fn parse_read_only(sql: &str) -> Result<String, StatementError> {
    let sql = sql.trim().trim_end_matches(';').trim_end();
    let words = bare_words(sql)?;
    let Some(first) = words.first().filter(|first| FIRST.contains(&first.as_str())) else {
        return Err(StatementError::ReadsNothing(&FIRST));
    };
    // SHOW CREATE PROCEDURE and the like only show.
    if first != "SHOW"
        && let Some(word) = words.iter().find(|word| REFUSED.contains(&word.as_str()))
    {
        return Err(StatementError::Refused(word.clone()));
    }
    Ok(sql.to_string())
}

/// Returns its bare words in capitals, without quoted texts and names, and without comments.
fn bare_words(sql: &str) -> Result<Vec<String>, StatementError> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_part = first.is_alphanumeric() || first == '_' || first == '$';
        if is_part {
            word.push(first.to_ascii_uppercase());
            rest = &rest[first.len_utf8()..];
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        rest = match first {
            ';' => return Err(StatementError::Semicolon),
            '\'' | '"' | '`' => after_quote(rest, first)?,
            '#' => rest.split_once('\n').map_or("", |(_, after)| after),
            '-' if rest.starts_with("-- ") => rest.split_once('\n').map_or("", |(_, after)| after),
            '/' if rest.starts_with("/*!") || rest.starts_with("/*M!") => {
                return Err(StatementError::ExecutedComment);
            }
            '/' if rest.starts_with("/*") => {
                rest[2..].split_once("*/").map(|(_, after)| after).ok_or(StatementError::OpenComment)?
            }
            other => &rest[other.len_utf8()..],
        };
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

fn after_quote(rest: &str, quote: char) -> Result<&str, StatementError> {
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        if char == '\\' && quote != '`' {
            chars.next();
        } else if char == quote {
            return Ok(&rest[at + 1..]);
        }
    }
    Err(StatementError::OpenQuote(quote))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statements_that_read_pass() {
        for sql in [
            "SELECT 1;",
            "show engine innodb status",
            "WITH a AS (SELECT 1 AS x) SELECT x FROM a",
            "SELECT 'delete; from', `update`, COUNT(*) FROM t -- insert\n",
            "SELECT /* into */ 1",
        ] {
            assert!(parse_read_only(sql).is_ok(), "{sql}");
        }
    }

    #[test]
    fn statements_that_write_or_lock_are_refused() {
        for sql in [
            "DELETE FROM t",
            "",
            "SELECT 1; DROP TABLE t",
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM t LOCK IN SHARE MODE",
            "SELECT 1 INTO OUTFILE '/tmp/x'",
            "WITH a AS (SELECT 1) DELETE FROM t",
            "SELECT /*!50000 1 INTO OUTFILE '/tmp/x' */",
            "SELECT GET_LOCK('a', 1)",
            "SELECT 'open",
            "SET GLOBAL x = 1",
        ] {
            assert!(parse_read_only(sql).is_err(), "{sql}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(sql in "(SELECT|'|\"|`|/\\*|\\*/|--|#|;|\\\\|é| |[a-z]){0,30}") {
            let _ = parse_read_only(&sql);
        }
    }
}

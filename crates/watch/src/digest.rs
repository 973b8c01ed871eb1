//! Statements as they may be recorded: without what they say it of.

use std::iter::Peekable;
use std::str::Chars;

/// Stands for one or more of what lies before it.
const MORE: &str = ", …";
/// Statements that give an account its rights or its password, by the words that they begin with.
const ACCOUNT_STATEMENTS: [&[&str]; 12] = [
    &["CREATE", "USER"],
    &["CREATE", "OR", "REPLACE", "USER"],
    &["ALTER", "USER"],
    &["GRANT"],
    &["SET", "PASSWORD"],
    &["CHANGE", "MASTER"],
    &["CHANGE", "REPLICATION"],
    &["START", "SLAVE"],
    &["START", "REPLICA"],
    &["CREATE", "SERVER"],
    &["CREATE", "OR", "REPLACE", "SERVER"],
    &["ALTER", "SERVER"],
];
/// A statement with one of these words may hold a secret anywhere.
const SECRET_WORDS: [&str; 2] = ["password", "identified"];

/// One way to read a text. Which one is right depends on the session's SQL mode, its character set and the server's version.
#[derive(Clone, Copy)]
struct Reading {
    /// In a string, a backslash takes what comes next into it; not so in the SQL mode NO_BACKSLASH_ESCAPES.
    backslashes_escape: bool,
    /// In SJIS, GBK and Big5 the second byte of a character may be a backslash or a backtick. A first byte that is no UTF-8 was read as U+FFFD.
    takes_second_bytes: bool,
    executed: Executed,
}

/// What is made of a comment such as `/*!99999 … */`, which only some servers execute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Executed {
    Kept,
    /// Its strings are read, and nothing of it is kept.
    LeftOut,
    /// It ends where any comment would.
    Skipped,
}

/// What a statement says without its literals, which are somebody's data: each is `?`, several are `?, …`, and rows that look the same are one and
/// `, …`. Comments are left out, but for those that the server executes; blanks are one. Of statements about accounts only the first
/// words are kept. Where two ways to read the text disagree, only their common beginning is kept, with `…` after it: it holds no literal in either.
pub fn digest(statement: &str) -> String {
    let digest = in_common(&readings(statement));
    match words_of_account_statement(&digest) {
        Some(words) => format!("{} …", words.join(" ")),
        None => digest,
    }
}

/// Whether a statement may be recorded as it was sent, where the user wants that: none that may hold a password.
pub fn may_be_kept(statement: &str) -> bool {
    let lower = statement.to_lowercase();
    let is_of_account = |digest: &String| words_of_account_statement(digest).is_some();
    !SECRET_WORDS.iter().any(|word| lower.contains(word)) && !readings(statement).iter().any(is_of_account)
}

/// Returns the digests of all ways to read a text.
fn readings(statement: &str) -> Vec<String> {
    let has_backslashes = statement.contains('\\');
    let has_second_bytes = statement.contains('\u{fffd}');
    let has_executed = statement.contains("/*!") || statement.contains("/*M!");
    let mut digests = Vec::new();
    for (takes_second_bytes, backslashes_escape) in
        [(false, true), (false, false), (true, true), (true, false)]
    {
        if (!backslashes_escape && !has_backslashes) || (takes_second_bytes && !has_second_bytes) {
            continue;
        }
        let read = |executed| {
            without_literals(statement, Reading { backslashes_escape, takes_second_bytes, executed })
        };
        digests.push(read(Executed::Kept));
        if has_executed && read(Executed::LeftOut) != read(Executed::Skipped) {
            digests.push(read(Executed::Skipped));
        }
    }
    digests
}

/// Returns what all have in common from the beginning on, with a mark where that is not all of them.
fn in_common(digests: &[String]) -> String {
    let Some((first, others)) = digests.split_first() else { return String::new() };
    if others.iter().all(|other| other == first) {
        return first.clone();
    }
    let length = |other: &String| {
        let same = first.chars().zip(other.chars()).take_while(|(one, two)| one == two);
        same.map(|(one, _)| one.len_utf8()).sum::<usize>()
    };
    let common = others.iter().map(length).min().unwrap_or(0);
    format!("{} …", first[..common].trim_end()).trim_start().to_string()
}

fn words_of_account_statement(digest: &str) -> Option<&'static [&'static str]> {
    let begins_with = |words: &&&[&str]| {
        let mut those_of_digest = digest.split_whitespace();
        words.iter().all(|word| those_of_digest.next().is_some_and(|one| one.eq_ignore_ascii_case(word)))
    };
    ACCOUNT_STATEMENTS.iter().find(begins_with).copied()
}

fn without_literals(statement: &str, reading: Reading) -> String {
    let mut digest = Digest {
        text: String::with_capacity(statement.len().min(1024)),
        open: Vec::new(),
        blank: false,
        is_left_out: false,
    };
    let mut rest = statement.chars().peekable();
    let mut in_word = false;
    // Within a comment that the server executes.
    let mut executed = false;
    while let Some(one) = rest.next() {
        let was_in_word = std::mem::take(&mut in_word);
        digest.is_left_out = executed && reading.executed == Executed::LeftOut;
        match one {
            '\'' | '"' => {
                skip_quoted(&mut rest, one, reading);
                digest.literal();
            }
            '0'..='9' if !was_in_word => {
                skip_number(&mut rest);
                digest.literal();
            }
            '`' => {
                digest.push('`');
                copy_name(&mut rest, &mut digest, reading);
                in_word = true;
            }
            '/' if rest.peek() == Some(&'*') => {
                rest.next();
                if reading.executed != Executed::Skipped && begins_executed(&mut rest) {
                    executed = true;
                } else {
                    skip_comment(&mut rest);
                }
                digest.blank = true;
            }
            '*' if executed && rest.peek() == Some(&'/') => {
                rest.next();
                executed = false;
                digest.blank = true;
            }
            '#' => skip_line(&mut rest, &mut digest),
            '-' if begins_line_comment(&rest) => skip_line(&mut rest, &mut digest),
            _ if one.is_whitespace() || one.is_control() => digest.blank = true,
            _ => {
                reading.take_second_byte(one, &mut rest);
                in_word = one.is_alphanumeric() || one == '_' || one == '$';
                digest.push(one);
            }
        }
    }
    digest.text
}

struct Digest {
    text: String,
    /// Where parentheses were opened.
    open: Vec<usize>,
    /// A blank is due before what comes next.
    blank: bool,
    /// What comes next is read and not kept.
    is_left_out: bool,
}

impl Reading {
    /// Takes the second byte of a character whose first one was read just now.
    fn take_second_byte(self, first: char, rest: &mut Peekable<Chars<'_>>) {
        if self.takes_second_bytes && first == '\u{fffd}' {
            rest.next_if(|next| matches!(next, '\\' | '`'));
        }
    }
}

impl Digest {
    fn push(&mut self, one: char) {
        if self.is_left_out {
            return;
        }
        if std::mem::take(&mut self.blank) && !self.text.is_empty() {
            self.text.push(' ');
        }
        match one {
            '(' => self.open.push(self.text.len()),
            ')' => {
                self.text.push(one);
                if let Some(open) = self.open.pop() {
                    self.fold_row(open);
                }
                return;
            }
            _ => {}
        }
        self.text.push(one);
    }

    fn literal(&mut self) {
        if self.is_left_out {
            return;
        }
        // The sign of a number is not an operation where no operand is before it.
        if let Some(before) = self.text.strip_suffix(['-', '+'])
            && before.trim_end().ends_with(['(', ',', '=', '<', '>'])
        {
            self.text.truncate(before.len());
            self.blank = self.text.ends_with(' ');
            self.text.truncate(self.text.trim_end().len());
        }
        if let Some(before) = self.text.trim_end().strip_suffix(',') {
            let before = before.trim_end();
            if before.ends_with(MORE) {
                self.text.truncate(before.len());
                self.blank = false;
                return;
            }
            if before.ends_with('?') {
                self.text.truncate(before.len());
                self.text.push_str(MORE);
                self.blank = false;
                return;
            }
        }
        self.push('?');
    }

    /// A row that looks as the one before it is told once.
    fn fold_row(&mut self, open: usize) {
        let (before, row) = self.text.split_at(open);
        let Some(before) = before.trim_end().strip_suffix(',') else { return };
        let before = before.trim_end();
        if before.strip_suffix(MORE).is_some_and(|first| first.ends_with(row)) {
            let length = before.len();
            self.text.truncate(length);
        } else if before.ends_with(row) {
            let length = before.len();
            self.text.truncate(length);
            self.text.push_str(MORE);
        }
    }
}

fn skip_quoted(rest: &mut Peekable<Chars<'_>>, quote: char, reading: Reading) {
    while let Some(one) = rest.next() {
        reading.take_second_byte(one, rest);
        if one == '\\' && reading.backslashes_escape {
            rest.next();
        } else if one == quote {
            if rest.peek() != Some(&quote) {
                return;
            }
            rest.next();
        }
    }
}

fn skip_number(rest: &mut Peekable<Chars<'_>>) {
    while let Some(one) = rest.next_if(|next| next.is_ascii_alphanumeric() || *next == '.') {
        if matches!(one, 'e' | 'E') {
            // The sign of an exponent.
            rest.next_if(|next| matches!(next, '-' | '+'));
        }
    }
}

fn copy_name(rest: &mut Peekable<Chars<'_>>, digest: &mut Digest, reading: Reading) {
    while let Some(one) = rest.next() {
        reading.take_second_byte(one, rest);
        if !digest.is_left_out {
            digest.text.push(if one.is_control() { ' ' } else { one });
        }
        if one == '`' {
            return;
        }
    }
}

/// `/*!`, or MariaDB's `/*M!`, with a version after it.
fn begins_executed(rest: &mut Peekable<Chars<'_>>) -> bool {
    let mut ahead = rest.clone();
    ahead.next_if(|next| *next == 'M');
    if ahead.next() != Some('!') {
        return false;
    }
    while ahead.next_if(char::is_ascii_digit).is_some() {}
    *rest = ahead;
    true
}

fn skip_comment(rest: &mut Peekable<Chars<'_>>) {
    while let Some(one) = rest.next() {
        if one == '*' && rest.next_if(|next| *next == '/').is_some() {
            return;
        }
    }
}

/// After a `-`: another, and a blank or the end.
fn begins_line_comment(rest: &Peekable<Chars<'_>>) -> bool {
    let mut ahead = rest.clone();
    ahead.next() == Some('-') && ahead.next().is_none_or(|next| next.is_whitespace() || next.is_control())
}

fn skip_line(rest: &mut Peekable<Chars<'_>>, digest: &mut Digest) {
    while rest.next_if(|next| *next != '\n').is_some() {}
    digest.blank = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(statement: &str, expected: &str) {
        assert_eq!(digest(statement), expected, "{statement}");
    }

    #[test]
    fn a_statement_is_told_without_its_literals() {
        check(
            "SELECT c FROM sbtest1 WHERE id = 42 AND name = 'O''Hara' AND x=1.5e3",
            "SELECT c FROM sbtest1 WHERE id = ? AND name = ? AND x=?",
        );
        check("SET x = \"a'b\", y='never ends", "SET x = ?, y=?");
        check(
            "SELECT 'it''s', `a'b1` FROM t1 WHERE k > -1.5E-7 AND h = 0x1F",
            "SELECT ?, `a'b1` FROM t1 WHERE k > ? AND h = ?",
        );
        check("SELECT 5-3, a - 7", "SELECT ?-?, a - ?");
    }

    #[test]
    fn where_readings_of_a_text_disagree_no_more_is_kept_than_they_have_in_common() {
        assert_eq!(digest("SELECT 'a\\', 'secret' FROM t"), "SELECT ? …");
        assert_eq!(digest("SELECT 'a\\' secret'"), "SELECT ? …");
        assert_eq!(
            digest("SELECT a FROM t WHERE b = 'c\\n' AND d = 1"),
            "SELECT a FROM t WHERE b = ? AND d = ?"
        );
        // A character of SJIS whose second byte is a backslash; the first one is no UTF-8.
        assert_eq!(digest("SELECT '\u{fffd}\\' AND pin = '4711' -- '"), "SELECT ? …");
        assert_eq!(digest("SELECT `\u{fffd}``, 'secret' FROM t -- `"), "SELECT `\u{fffd}` …");
        // A server of before does not execute it, and its comment ends within what others read as a string.
        assert_eq!(digest("SELECT /*!99999 'open */ secret, 4711, 'x' FROM t"), "SELECT …");
        assert_eq!(digest("SELECT /*!50000 'x' */ a FROM t"), "SELECT ? a FROM t");
        assert!(!may_be_kept("/*!99999 ' */ CREATE USER u -- '"));
    }

    #[test]
    fn comments_hide_nothing_and_tell_nothing() {
        check(
            "SELECT /* don't */ 'secret' FROM t -- it's over\n WHERE a = 'b' # it's\n",
            "SELECT ? FROM t WHERE a = ?",
        );
        check("/*!40101 SET NAMES */ 'utf8' /* never ends", "SET NAMES ?");
        check("SELECT 1--1", "SELECT ?--?");
        check("/*M!100100 ALTER USER u */ IDENTIFIED BY 'x'", "ALTER USER …");
    }

    #[test]
    fn lists_and_rows_are_told_once() {
        check("SELECT * FROM t WHERE id IN (1, 2,3 , -4)", "SELECT * FROM t WHERE id IN (?, …)");
        check(
            "INSERT INTO t VALUES (1,'a',f(2)), (3,'b',f(4)),\n(5,'c',f(6))",
            "INSERT INTO t VALUES (?, …,f(?)), …",
        );
        check("INSERT INTO t VALUES (1, NOW()), (2, NULL)", "INSERT INTO t VALUES (?, NOW()), (?, NULL)");
        check("UPDATE t SET a = 1, b = 2 LIMIT 3", "UPDATE t SET a = ?, b = ? LIMIT ?");
    }

    #[test]
    fn statements_about_accounts_tell_no_more_than_what_they_are() {
        check("create  user 'u'@'%' identified by 'secret'", "CREATE USER …");
        check("SET PASSWORD FOR u = PASSWORD('secret')", "SET PASSWORD …");
        check("CHANGE MASTER TO MASTER_HOST='h', MASTER_PASSWORD='secret'", "CHANGE MASTER …");
        for kept in ["SELECT 'x'", "CREATE TABLE user (a INT)"] {
            assert!(may_be_kept(kept), "{kept}");
        }
        for hidden in ["GRANT ALL ON *.* TO u", "SELECT PaSSWORD('secret')", "/* */ Alter /* */ User u"] {
            assert!(!may_be_kept(hidden), "{hidden}");
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic_and_told_without_quotes() {
        let alphabet: Vec<char> = "'\"`\\/*!-#(), ?1.=\n…".chars().collect();
        let mut state = 1u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push(alphabet[(state >> 33) as usize % alphabet.len()]);
            }
            let told = digest(&text.replace('`', ""));
            assert!(!told.contains(['\'', '"', '1']), "{text:?}: {told}");
        }
    }
}

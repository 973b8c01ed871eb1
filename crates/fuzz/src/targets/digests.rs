//! Statements without their literals.

use whyso_watch::digest;

use crate::choices::Choices;

const PIECES_MAX: usize = 60;

/// What decides where a literal begins and ends, and what surrounds it.
const PIECES: [&str; 56] = [
    "'",
    "'",
    "'",
    "'",
    "\"",
    "\"",
    "\"",
    "`",
    "\\",
    "\\",
    "\\",
    "''",
    "\"\"",
    "``",
    "\\'",
    "\\\"",
    "\\\\",
    "/*",
    "*/",
    "/*!",
    "/*!50000 ",
    "/*!99999 ",
    "/*M!",
    "/*M!100100 ",
    "-- ",
    "--",
    "#",
    "\n",
    " ",
    " ",
    ",",
    ",",
    ", ",
    "(",
    ")",
    "=",
    "-",
    "+",
    ".",
    "\u{fffd}",
    "\u{fffd}\\",
    "\u{fffd}`",
    "ä",
    "中\\",
    "SELECT ",
    " FROM t ",
    "INSERT INTO t VALUES ",
    "_utf8",
    "N",
    "x",
    "0x",
    "1",
    "e",
    "$$",
    "@",
    "\u{0}",
];

/// How one session on one server reads a text.
#[derive(Clone, Copy, Debug)]
struct Session {
    backslashes_escape: bool,
    /// The SQL mode ANSI_QUOTES: `"` quotes names.
    ansi_quotes: bool,
    /// The second byte of a character may be a backslash or a backtick.
    two_bytes: bool,
    /// Of `/*!` comments, those up to this version are executed.
    version: u32,
    /// Of `/*M!` comments likewise; `None`: they are comments, as in MySQL.
    mariadb_version: Option<u32>,
}

/// No literal of a statement survives in its digest, whichever session sends it to whichever server.
///
/// # Panics
/// One does.
pub fn digests(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut text = String::new();
    let mut marks = Vec::new();
    for _ in 0..PIECES_MAX {
        if choices.is_empty() {
            break;
        }
        match choices.byte() % 5 {
            0 => {
                // No mark is a part of another.
                let mark = format!("Zq{}z", char::from(b'a' + marks.len() as u8));
                marks.push((text.len(), mark.clone()));
                text.push_str(&mark);
            }
            1 if choices.once_in(3) => {
                let mark = format!("7{:02}7", marks.len());
                marks.push((text.len(), mark.clone()));
                text.push_str(&mark);
            }
            _ => text.push_str(PIECES[choices.below(PIECES.len())]),
        }
    }
    let digest_text = digest(&text);
    for session in sessions(&text) {
        let literals = literals(&text, session);
        for (at, mark) in &marks {
            let is_literal = literals.iter().any(|(begin, end)| begin <= at && at < end);
            assert!(
                !is_literal || !digest_text.contains(mark.as_str()),
                "{mark} of {text:?} in {digest_text:?}: {session:?}"
            );
        }
    }
}

fn sessions(text: &str) -> Vec<Session> {
    let mut sessions = Vec::new();
    let has = |what: &str| text.contains(what);
    for backslashes_escape in [true, false] {
        for ansi_quotes in [false, true] {
            for two_bytes in [false, true] {
                for version in [0, 60_000, u32::MAX] {
                    for mariadb_version in [None, Some(0), Some(u32::MAX)] {
                        let differs = (backslashes_escape || has("\\"))
                            && (!ansi_quotes || has("\""))
                            && (!two_bytes || !text.is_ascii())
                            && (version == 0 || has("/*!"))
                            && (mariadb_version.is_none() || has("/*M!"));
                        if differs {
                            sessions.push(Session {
                                backslashes_escape,
                                ansi_quotes,
                                two_bytes,
                                version,
                                mariadb_version,
                            });
                        }
                    }
                }
            }
        }
    }
    sessions
}

/// Where strings, numbers and plain comments lie, as the servers' lexers read them. What a comment with a version holds is no
/// literal of a server that leaves it out: nobody can know which server that is.
fn literals(text: &str, session: Session) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut in_executed = false;
    let bytes = text.as_bytes();
    let letter = |at: usize| text[at..].chars().next();
    let mut before = ' ';
    while let Some(char) = letter(at) {
        let begin = at;
        at += char.len_utf8();
        let rest = &text[begin..];
        match char {
            '\'' | '"' | '`' => {
                let is_name = char == '`' || (char == '"' && session.ansi_quotes);
                at = quoted_end(text, at, char, session.backslashes_escape && !is_name, session.two_bytes);
                if !is_name {
                    found.push((begin, at));
                }
            }
            '#' => at = line_end(text, begin),
            '-' if is_line_comment(rest) => at = line_end(text, begin),
            '*' if in_executed && rest.starts_with("*/") => {
                in_executed = false;
                at += 1;
            }
            '/' if rest.starts_with("/*") => {
                let is_mariadb = rest.starts_with("/*M!");
                let mark = if is_mariadb { 4 } else { 3 };
                let has_version = is_mariadb || rest.starts_with("/*!");
                if !has_version {
                    at = comment_end(text, begin + 2, false);
                    found.push((begin, at));
                } else {
                    let digits =
                        bytes[begin + mark..].iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
                    let version = if digits >= 5 {
                        text[begin + mark..begin + mark + digits].parse().unwrap_or(0)
                    } else {
                        0
                    };
                    let digits = if digits >= 5 { digits } else { 0 };
                    let newest = if is_mariadb { session.mariadb_version } else { Some(session.version) };
                    if newest.is_some_and(|newest| version <= newest) {
                        in_executed = true;
                        at = begin + mark + digits;
                    } else {
                        at = comment_end(text, begin + mark, newest.is_some());
                    }
                }
            }
            '0'..='9' if !is_of_word(before) => {
                at = begin + rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
                found.push((begin, at));
            }
            _ if session.two_bytes
                && is_first_byte(&text[..at])
                && matches!(letter(at), Some('\\' | '`')) =>
            {
                at += 1
            }
            _ => {}
        }
        before = text[..at].chars().next_back().unwrap_or(' ');
        if matches!(char, '\'' | '"' | '`') {
            before = ' ';
        }
    }
    found
}

/// Whether `before` ends with the first byte of one of GBK's characters, which is then no valid UTF-8.
fn is_first_byte(before: &str) -> bool {
    let run = || before.chars().rev().take_while(|letter| !letter.is_ascii());
    run().any(|letter| letter == '\u{fffd}') || run().map(char::len_utf8).sum::<usize>() % 2 == 1
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

fn is_line_comment(rest: &str) -> bool {
    rest.strip_prefix("--").is_some_and(|after| {
        after.chars().next().is_none_or(|next| next.is_ascii_whitespace() || next.is_ascii_control())
    })
}

fn line_end(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |length| from + length)
}

fn quoted_end(text: &str, mut at: usize, quote: char, escapes: bool, two_bytes: bool) -> usize {
    while let Some(char) = text[at..].chars().next() {
        at += char.len_utf8();
        let next = text[at..].chars().next();
        if two_bytes && is_first_byte(&text[..at]) && matches!(next, Some('\\' | '`')) {
            at += 1;
        } else if char == '\\' && escapes {
            at += next.map_or(0, char::len_utf8);
        } else if char == quote {
            if next != Some(quote) {
                return at;
            }
            at += 1;
        }
    }
    at
}

/// A comment that is left out for its version may hold a comment.
fn comment_end(text: &str, mut at: usize, nests: bool) -> usize {
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"*/") {
            return at + 2;
        }
        at = if nests && rest.starts_with(b"/*") { comment_end(text, at + 2, false) } else { at + 1 };
    }
    text.len()
}

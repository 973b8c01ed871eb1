//! Cuts a SQL file into statements and directives.

use super::error::{LineError, SqlFileError};

/// What stands in a file, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Directive { line: usize, name: String, arguments: String },
    Statement(Text),
}

/// One statement, without comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// Line of its first word.
    pub line: usize,
    /// With `?` where a variable stands.
    pub sql: String,
    pub marks: Vec<Mark>,
    /// It ended at a `;`, or at the end of the file.
    pub ended: bool,
    /// It is several statements, with `\;` between them.
    pub multiple: bool,
}

/// A variable in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub line: usize,
    pub name: String,
    /// `{name}`, a part of the text, and not `:name`, a value.
    pub inline: bool,
}

pub(super) fn lex(text: &str) -> Result<Vec<Item>, LineError> {
    let mut lexer = Lexer { rest: text, line: 1, previous: ' ', items: Vec::new(), statement: Text::new() };
    while lexer.step()? {}
    lexer.finish_statement(true);
    Ok(lexer.items)
}

/// The name at the begin of a text: letters, digits and underscores, no digit first.
pub(super) fn name_at(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return "";
    }
    &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())]
}

struct Lexer<'t> {
    rest: &'t str,
    line: usize,
    previous: char,
    items: Vec<Item>,
    statement: Text,
}

impl Text {
    fn new() -> Text {
        Text { line: 0, sql: String::new(), marks: Vec::new(), ended: false, multiple: false }
    }
}

impl<'t> Lexer<'t> {
    /// Takes what comes next; `false` at the end.
    fn step(&mut self) -> Result<bool, LineError> {
        let Some(first) = self.rest.chars().next() else { return Ok(false) };
        let after = &self.rest[first.len_utf8()..];
        match first {
            '\'' | '"' | '`' => {
                let quoted = self.quoted(first)?;
                self.push_text(quoted);
            }
            '-' if self.rest.starts_with("--") && begins_comment(&self.rest[2..]) => {
                let comment = self.take_line()[2..].trim_start();
                match comment.strip_prefix('\\') {
                    Some(directive) if !name_at(directive).is_empty() => self.directive(directive),
                    _ => self.push_text(" "),
                }
            }
            '#' => {
                self.take_line();
            }
            '/' if self.rest.starts_with("/*") => {
                let is_code = ["/*!", "/*+", "/*M!"].iter().any(|begin| self.rest.starts_with(begin));
                let Some(end) = self.rest.find("*/") else {
                    return Err(LineError::at(self.line, SqlFileError::UnclosedComment));
                };
                let comment = &self.rest[..end + 2];
                self.push_text(if is_code { comment } else { " " });
                self.advance(comment);
            }
            '\\' if after.starts_with(';') => {
                self.push_text(";");
                self.statement.multiple = true;
                self.advance("\\;");
            }
            '\\' if !name_at(after).is_empty() => {
                let line = self.take_line();
                self.directive(&line[1..]);
            }
            ';' => {
                self.advance(";");
                self.finish_statement(true);
            }
            ':' if self.previous != ':' && !name_at(after).is_empty() => {
                let name = name_at(after);
                self.mark(name, false);
                self.advance(&self.rest[..1 + name.len()]);
            }
            '{' if !name_at(after).is_empty() && after[name_at(after).len()..].starts_with('}') => {
                let name = name_at(after);
                self.mark(name, true);
                self.advance(&self.rest[..2 + name.len()]);
            }
            '?' => return Err(LineError::at(self.line, SqlFileError::NamelessParameter)),
            _ => {
                let end = first.len_utf8();
                self.push_text(&self.rest[..end]);
                self.advance(&self.rest[..end]);
            }
        }
        Ok(true)
    }

    /// A literal or a quoted name with its quotes.
    fn quoted(&mut self, quote: char) -> Result<&'t str, LineError> {
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            if escaped {
                escaped = false;
            } else if c == '\\' && quote != '`' {
                escaped = true;
            } else if c == quote {
                let quoted = &self.rest[..=at];
                // A doubled quote continues as another literal right after, which is the same text.
                self.statement.begin_at(self.line);
                self.advance(quoted);
                return Ok(quoted);
            }
        }
        Err(LineError::at(self.line, SqlFileError::UnclosedQuote { quote }))
    }

    fn mark(&mut self, name: &str, inline: bool) {
        self.push_text("?");
        self.statement.marks.push(Mark { line: self.line, name: name.to_string(), inline });
    }

    fn directive(&mut self, text: &str) {
        // What comes after a line's end counts as the next line.
        let line = self.line - usize::from(self.previous == '\n');
        self.finish_statement(false);
        let name = name_at(text);
        let arguments = text[name.len()..].trim().to_string();
        self.items.push(Item::Directive { line, name: name.to_string(), arguments });
    }

    fn finish_statement(&mut self, ended: bool) {
        let mut statement = std::mem::replace(&mut self.statement, Text::new());
        statement.sql.truncate(statement.sql.trim_end().len());
        statement.ended = ended;
        if !statement.sql.is_empty() {
            self.items.push(Item::Statement(statement));
        }
    }

    /// Adds to the statement; blanks become one space.
    fn push_text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.statement.begin_at(self.line);
            self.statement.sql.push_str(text);
        } else if !self.statement.sql.is_empty() && !self.statement.sql.ends_with(' ') {
            self.statement.sql.push(' ');
        }
    }

    /// The rest of the line without its end, which is passed.
    fn take_line(&mut self) -> &'t str {
        let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
        let line = &self.rest[..end];
        self.advance(line);
        line.trim_end()
    }

    fn advance(&mut self, text: &str) {
        self.line += text.matches('\n').count();
        self.previous = text.chars().next_back().unwrap_or(' ');
        self.rest = &self.rest[text.len()..];
    }
}

impl Text {
    fn begin_at(&mut self, line: usize) {
        if self.line == 0 {
            self.line = line;
        }
    }
}

/// As MySQL has it, `--` begins a comment where a blank follows; a directive may follow at once.
fn begins_comment(after: &str) -> bool {
    after.is_empty() || after.starts_with(|c: char| c.is_whitespace() || c == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens_of(text: &str) -> Vec<String> {
        let show = |item| match item {
            Item::Directive { line, name, arguments } => format!("{line} \\{name} [{arguments}]"),
            Item::Statement(statement) => {
                let marks: Vec<String> = statement.marks.iter().map(|m| m.name.clone()).collect();
                let end = if statement.ended { ";" } else { "…" };
                format!("{} {}{end} [{}]", statement.line, statement.sql, marks.join(","))
            }
        };
        lex(text).unwrap().into_iter().map(show).collect()
    }

    #[test]
    fn statements_end_at_semicolons_outside_quotes_and_comments() {
        let text = "SELECT ';', \"a\\\";\" -- not; this\n FROM t /* nor ; this */ WHERE x='it''s'; # nor;\nSELECT `a;b`";
        assert_eq!(
            tokens_of(text),
            ["1 SELECT ';', \"a\\\";\" FROM t WHERE x='it''s'; []", "3 SELECT `a;b`; []"]
        );
    }

    #[test]
    fn variables_are_marked_outside_quotes_only() {
        let text = "SELECT ':no', @x := 1, 'a:b', c FROM t{n} WHERE id=:id AND t > '12:30' AND a::b = {d '2020-01-01'}";
        assert_eq!(
            tokens_of(text),
            [
                "1 SELECT ':no', @x := 1, 'a:b', c FROM t? WHERE id=? AND t > '12:30' AND a::b = {d '2020-01-01'}; [n,id]"
            ]
        );
    }

    #[test]
    fn directives_stand_in_comments_or_bare_and_keep_their_line() {
        let text = "-- \\set id random(1, 5)\n\\sleep 1 ms\n--\\text\nSELECT 1; -- \\gset p_\n-- words\nSELECT 2 \\gset\n";
        assert_eq!(
            tokens_of(text),
            [
                "1 \\set [id random(1, 5)]",
                "2 \\sleep [1 ms]",
                "3 \\text []",
                "4 SELECT 1; []",
                "4 \\gset [p_]",
                "6 SELECT 2… []",
                "6 \\gset []"
            ]
        );
    }

    #[test]
    fn hints_and_code_in_comments_are_kept() {
        assert_eq!(
            tokens_of("SELECT /*+ NO_ICP(t) */ 1 /*!80000 , 2 */"),
            ["1 SELECT /*+ NO_ICP(t) */ 1 /*!80000 , 2 */; []"]
        );
    }

    #[test]
    fn statements_can_be_sent_as_one() {
        let Item::Statement(statement) = lex("SELECT 1\\; SELECT 2;").unwrap().remove(0) else { panic!() };
        assert_eq!((statement.sql.as_str(), statement.multiple), ("SELECT 1; SELECT 2", true));
    }

    #[test]
    fn what_is_left_open_is_named_with_its_line() {
        for (text, line, part) in [
            ("SELECT 1;\n'a", 2, "close it with another '"),
            ("\n/* a", 2, "*/"),
            ("SELECT ?", 1, "such as :id"),
        ] {
            let wrong = lex(text).unwrap_err();
            assert_eq!(wrong.line, line);
            let message = wrong.problem.to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}

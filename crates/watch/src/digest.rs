//! Statements as they may be recorded: without their literals.

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

const VERSION_DIGITS: usize = 5;

/// One way to read a text. Which one is right depends on the session's SQL mode and its character set.
#[derive(Clone, Copy)]
struct Reading<'t> {
    /// In a string, a backslash takes what comes next into it; not so in the SQL mode NO_BACKSLASH_ESCAPES.
    backslashes_escape: bool,
    /// The SQL mode ANSI_QUOTES: `"` quotes names, in which a backslash is one of their characters.
    ansi_quotes: bool,
    /// Where a backslash or a backtick is the second byte of a character.
    second_bytes: &'t [usize],
}

/// Returns a statement without its literals, which are somebody's data. Each is `?`, several are `?, …`, and rows that look the same are
/// one and `, …`. Comments are left out, except for those that the server executes; blanks are one. Of statements about accounts only the
/// first words are kept. Where two ways to read the text disagree, only their common beginning is kept, with `…` after it: it holds no literal in either.
pub fn digest(statement: &str) -> String {
    let digest = common_beginning(&readings(statement));
    match words_of_account_statement(&digest) {
        Some(words) => format!("{} …", words.join(" ")),
        None => digest,
    }
}

/// Whether a statement may be recorded as it was sent, where the user wants that: none that may hold a password.
pub fn may_be_recorded(statement: &str) -> bool {
    let lower = statement.to_lowercase();
    let is_of_account =
        |read: &DigestReading| read.is_cut || words_of_account_statement(&read.text).is_some();
    !SECRET_WORDS.iter().any(|word| lower.contains(word)) && !readings(statement).iter().any(is_of_account)
}

/// What a reading makes of a text.
#[derive(PartialEq, Eq)]
struct DigestReading {
    text: String,
    /// What comes next can't be read with certainty.
    is_cut: bool,
}

/// Reads a text in each way that may differ from the others.
fn readings(statement: &str) -> Vec<DigestReading> {
    let has_backslashes = statement.contains('\\');
    let mut modes = vec![(true, false)];
    if has_backslashes {
        modes.push((false, false));
    }
    if has_backslashes && statement.contains('"') {
        modes.push((true, true));
    }
    let mut read = Vec::new();
    for second_bytes in second_bytes(statement) {
        for (backslashes_escape, ansi_quotes) in &modes {
            let reading = Reading {
                backslashes_escape: *backslashes_escape,
                ansi_quotes: *ansi_quotes,
                second_bytes: &second_bytes,
            };
            read.push(Lexer { text: statement, at: 0, reading, is_cut: false }.read());
        }
    }
    read
}

/// Returns what all have in common from the beginning on, with a mark where that is not all of them.
fn common_beginning(read: &[DigestReading]) -> String {
    let Some((first, others)) = read.split_first() else { return String::new() };
    if !first.is_cut && others.iter().all(|other| other == first) {
        return first.text.clone();
    }
    let length = |other: &DigestReading| {
        let same = first.text.chars().zip(other.text.chars()).take_while(|(left, right)| left == right);
        same.map(|(letter, _)| letter.len_utf8()).sum::<usize>()
    };
    let common = others.iter().map(length).min().unwrap_or(first.text.len());
    format!("{} …", first.text[..common].trim_end()).trim_start().to_string()
}

fn words_of_account_statement(digest: &str) -> Option<&'static [&'static str]> {
    let begins_with = |words: &&&[&str]| {
        let mut digest_words = digest.split_whitespace();
        words.iter().all(|word| digest_words.next().is_some_and(|next| next.eq_ignore_ascii_case(word)))
    };
    ACCOUNT_STATEMENTS.iter().find(begins_with).copied()
}

struct Digest {
    text: String,
    /// Where parentheses were opened.
    open: Vec<usize>,
    /// A blank is due before what comes next.
    blank: bool,
}

impl Digest {
    fn push(&mut self, letter: char) {
        if std::mem::take(&mut self.blank) && !self.text.is_empty() {
            self.text.push(' ');
        }
        match letter {
            '(' => self.open.push(self.text.len()),
            ')' => {
                self.text.push(letter);
                if let Some(open) = self.open.pop() {
                    self.fold_row(open);
                }
                return;
            }
            _ => {}
        }
        self.text.push(letter);
    }

    fn literal(&mut self) {
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

    /// Removes a row that looks like the one before it.
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

/// Reads a text as servers do.
struct Lexer<'t> {
    text: &'t str,
    at: usize,
    reading: Reading<'t>,
    /// What comes next can't be read with certainty.
    is_cut: bool,
}

impl Lexer<'_> {
    fn read(mut self) -> DigestReading {
        let mut digest =
            Digest { text: String::with_capacity(self.text.len().min(1024)), open: Vec::new(), blank: false };
        self.code(&mut digest, false);
        DigestReading { text: digest.text, is_cut: self.is_cut }
    }

    /// Reads up to the end of the text, or of a comment that the server executes.
    fn code(&mut self, digest: &mut Digest, only_comment: bool) {
        let mut in_word = false;
        let mut executed = only_comment;
        while let Some(letter) = self.next() {
            let was_in_word = std::mem::take(&mut in_word);
            match letter {
                '\'' | '"' => {
                    self.skip_quoted(letter);
                    digest.literal();
                }
                '0'..='9' if !was_in_word => {
                    self.skip_number();
                    digest.literal();
                }
                '`' if self.may_be_second_byte(self.at - 1) => self.is_cut = true,
                '`' => {
                    digest.push('`');
                    self.copy_name(digest);
                }
                '/' if self.peek() == Some('*') => {
                    digest.blank = true;
                    executed |= self.comment(only_comment);
                }
                '*' if executed && self.peek() == Some('/') => {
                    self.next();
                    executed = false;
                    digest.blank = true;
                    if only_comment {
                        return;
                    }
                }
                '#' => self.skip_line(digest),
                '-' if self.peek() == Some('-') => match self.rest()[1..].chars().next() {
                    // In some character sets it is a blank.
                    Some(next) if !next.is_ascii() => self.is_cut = true,
                    Some(next) if !next.is_ascii_whitespace() && !next.is_ascii_control() => {
                        digest.push(letter)
                    }
                    _ => self.skip_line(digest),
                },
                _ if letter.is_whitespace() || letter.is_control() => digest.blank = true,
                _ => {
                    in_word = letter.is_alphanumeric() || letter == '_' || letter == '$';
                    digest.push(letter);
                    if self.takes_second_byte() {
                        self.next();
                    }
                }
            }
            if self.is_cut {
                return;
            }
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn next_if(&mut self, is_wanted: impl Fn(char) -> bool) -> Option<char> {
        self.peek().filter(|next| is_wanted(*next))?;
        self.next()
    }

    fn takes_second_byte(&self) -> bool {
        self.reading.second_bytes.binary_search(&self.at).is_ok()
    }

    /// Whether what is at this place may be the second byte of a character that is no UTF-8. How many bytes such a character has is
    /// not known.
    fn may_be_second_byte(&self, at: usize) -> bool {
        let mut before = self.text[..at].chars().rev().take_while(|letter| !letter.is_ascii());
        before.any(|letter| letter == '\u{fffd}')
    }

    fn skip_quoted(&mut self, quote: char) {
        let escapes = self.reading.backslashes_escape && !(quote == '"' && self.reading.ansi_quotes);
        loop {
            let is_second = self.takes_second_byte();
            let is_unsure = self.peek() == Some('\\') && escapes && self.may_be_second_byte(self.at);
            if is_unsure {
                self.is_cut = true;
                return;
            }
            let Some(letter) = self.next() else { return };
            if is_second {
                continue;
            }
            if letter == '\\' && escapes {
                self.next();
            } else if letter == quote && self.next_if(|next| next == quote).is_none() {
                return;
            }
        }
    }

    fn skip_number(&mut self) {
        while let Some(letter) = self.next_if(|next| next.is_ascii_alphanumeric() || next == '.') {
            if matches!(letter, 'e' | 'E') {
                // The sign of an exponent.
                self.next_if(|next| matches!(next, '-' | '+'));
            }
        }
    }

    fn copy_name(&mut self, digest: &mut Digest) {
        loop {
            let is_second = self.takes_second_byte();
            if self.peek() == Some('`') && self.may_be_second_byte(self.at) {
                self.is_cut = true;
                return;
            }
            let Some(letter) = self.next() else { return };
            digest.text.push(if letter.is_control() { ' ' } else { letter });
            if letter == '`' && !is_second {
                return;
            }
        }
    }

    /// Skips a comment, or the beginning of one that servers from some version on execute. Returns whether it is one of these.
    ///
    /// Which servers execute it is not known. So it has to end at the same place for all. Servers do not agree either on such a comment
    /// within another one (`is_nested`). Reading each of them twice would also double the time with each level.
    fn comment(&mut self, is_nested: bool) -> bool {
        let begin = self.at;
        self.next();
        self.next_if(|next| next == 'M');
        if self.next_if(|next| next == '!').is_none() {
            self.at = comment_end(self.text, begin + 1, false);
            return false;
        }
        if is_nested {
            self.is_cut = true;
            return true;
        }
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += digits;
        // A version has five digits, or six. What is no version is a number.
        if digits > 0 && digits != VERSION_DIGITS {
            self.skip_number();
        }
        let content = self.at;
        let mut left_out = Digest { text: String::new(), open: Vec::new(), blank: false };
        let mut executed = Lexer { text: self.text, at: content, reading: self.reading, is_cut: false };
        executed.code(&mut left_out, true);
        let is_same =
            [false, true].iter().all(|nests| comment_end(self.text, content, *nests) == executed.at);
        self.is_cut |= executed.is_cut || !is_same;
        true
    }

    fn skip_line(&mut self, digest: &mut Digest) {
        // A server's lexer also ends it at a NUL.
        while let Some(letter) = self.next_if(|next| next != '\n') {
            self.is_cut |= letter == '\0';
        }
        digest.blank = true;
    }
}

/// Returns where a comment ends that is not executed. One that is left out for its version may hold another one.
fn comment_end(text: &str, mut at: usize, nests: bool) -> usize {
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at..].starts_with(b"*/") {
            return at + 2;
        }
        at = if nests && bytes[at..].starts_with(b"/*") { comment_end(text, at + 2, false) } else { at + 1 };
    }
    bytes.len()
}

/// Returns where the second bytes of characters look like backslashes or backticks, in each character set in which they can; nowhere in all
/// others.
fn second_bytes(text: &str) -> Vec<Vec<usize>> {
    /// The ranges of first bytes, and the least second byte above 0x7f.
    const SETS: [(&[(u8, u8)], u8); 3] = [
        // GBK, Big5, SJIS.
        (&[(0x81, 0xfe)], 0x80),
        (&[(0xa1, 0xf9)], 0xa1),
        (&[(0x81, 0x9f), (0xe0, 0xfc)], 0x80),
    ];
    let mut places = vec![Vec::new()];
    if text.is_ascii() {
        return places;
    }
    for (first_bytes, second_byte) in SETS {
        let mut found = Vec::new();
        let mut bytes = text.bytes().enumerate().peekable();
        while let Some((_, first)) = bytes.next() {
            if !first_bytes.iter().any(|(from, to)| (*from..=*to).contains(&first)) {
                continue;
            }
            let second = bytes.next_if(|(_, byte)| matches!(byte, 0x40..=0x7e) || *byte >= second_byte);
            found.extend(second.filter(|(_, byte)| matches!(byte, b'\\' | b'`')).map(|(at, _)| at));
        }
        if !found.is_empty() && !places.contains(&found) {
            places.push(found);
        }
    }
    places
}

#[cfg(test)]
mod tests;

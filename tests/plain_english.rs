//! The words of the pages and of doc comments: none of `tests/words.txt`, and sentences that a reader can keep in mind.
//!
//! Pages and doc comments use none of these words.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Words of a sentence of the book, code not counted as more than one word each.
const WORDS_MAX: usize = 25;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A word of a text, or a mark between words.
#[derive(Clone, Debug, PartialEq)]
struct Token {
    /// In small letters; of a mark, the mark.
    text: String,
    line: usize,
}

/// Splits a text into words and marks. Code spans and addresses of links become marks: their words are not ours.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut is_code = false;
    let mut word = String::new();
    for letter in text.chars().chain(['\n']) {
        if !is_code && (letter.is_alphanumeric() || letter == '\'' || letter == '-' && !word.is_empty()) {
            word.extend(letter.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            tokens.push(Token { text: std::mem::take(&mut word), line });
        }
        if letter == '`' {
            is_code = !is_code;
            if !is_code {
                tokens.push(Token { text: "`".to_string(), line });
            }
        } else if letter == '\n' {
            line += 1;
        } else if !is_code && !letter.is_whitespace() {
            tokens.push(Token { text: letter.to_string(), line });
        }
    }
    tokens
}

/// A line of `words.txt`.
#[derive(Debug)]
struct Phrase {
    words: Vec<String>,
    is_at_end: bool,
    instead: String,
}

/// After these words and after marks, a noun phrase has ended.
const AFTER: [&str; 27] = [
    "and", "or", "but", "on", "in", "at", "for", "with", "without", "of", "per", "by", "that", "than", "as",
    "from", "to", "is", "are", "was", "were", "it", "while", "if", "when", "where", "which",
];

impl Phrase {
    fn matches(&self, tokens: &[Token]) -> bool {
        let is_same = |word: &String, token: &Token| {
            let is_word = token.text.starts_with(char::is_alphanumeric);
            match word.strip_prefix('*') {
                Some(end) => is_word && token.text.ends_with(end),
                None => word.split('/').any(|alternative| alternative == token.text),
            }
        };
        if tokens.len() < self.words.len()
            || !self.words.iter().zip(tokens).all(|(word, token)| is_same(word, token))
        {
            return false;
        }
        let Some(next) = tokens.get(self.words.len()) else { return true };
        !self.is_at_end
            || !next.text.starts_with(char::is_alphanumeric)
            || AFTER.contains(&next.text.as_str())
    }
}

fn phrases() -> Vec<Phrase> {
    let mut phrases = Vec::new();
    for line in read("tests/words.txt").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (written, instead) =
            line.split_once('\t').unwrap_or_else(|| panic!("no tab in tests/words.txt: {line}"));
        let bare = written.strip_suffix('|');
        phrases.push(Phrase {
            words: bare.unwrap_or(written).split(' ').map(str::to_string).collect(),
            is_at_end: bare.is_some(),
            instead: instead.to_string(),
        });
    }
    assert!(!phrases.is_empty());
    phrases
}

/// Says for each hit its line, the words, and what to write instead.
fn hits(text: &str, phrases: &[Phrase]) -> Vec<String> {
    let tokens = tokens(text);
    let mut hits = Vec::new();
    for at in 0..tokens.len() {
        for phrase in phrases {
            if phrase.matches(&tokens[at..]) {
                let matched: Vec<&str> =
                    tokens[at..at + phrase.words.len()].iter().map(|token| token.text.as_str()).collect();
                hits.push(format!("{}: \"{}\": {}", tokens[at].line, matched.join(" "), phrase.instead));
            }
        }
    }
    hits
}

/// A page without its blocks of code, its addresses of links and its comments; lines stay where they are.
fn prose(page: &str) -> String {
    let mut prose = String::new();
    let mut is_block = false;
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence {
            is_block = !is_block;
        } else if !is_block {
            prose.push_str(&without_addresses(line));
        }
        prose.push('\n');
    }
    assert!(!is_block, "a block of code does not end");
    prose
}

fn without_addresses(line: &str) -> String {
    let mut left = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        left.push_str(&rest[..=at]);
        rest = rest[at..].split_once(')').map_or("", |(_, after)| after);
    }
    left + rest
}

/// The pages that follow the rules: the book without its journal, and the pages of the top folder.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "PRINCIPLES.md", "CONTRIBUTING.md"]
        .iter()
        .map(|page| root().join(page))
        .collect();
    let journal = root().join("docs/journal");
    pages.extend(files(&root().join("docs"), "md").into_iter().filter(|page| !page.starts_with(&journal)));
    pages
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

#[test]
fn pages_use_plain_words() {
    let phrases = phrases();
    let mut found = String::new();
    for page in pages() {
        for hit in hits(&prose(&fs::read_to_string(&page).unwrap()), &phrases) {
            writeln!(found, "{}:{hit}", name(&page)).unwrap();
        }
    }
    assert!(found.is_empty(), "replace these words:\n{found}");
}

/// The sentences of a page with their number of words. Tables, headings and blocks of code are left out. A colon or a semicolon ends a sentence: what
/// follows can be read by itself.
fn sentences(page: &str) -> Vec<(String, usize)> {
    let mut paragraphs = vec![String::new()];
    for line in prose(page).lines() {
        let line = line.trim();
        let number = line.find(". ").filter(|at| line[..*at].chars().all(|letter| letter.is_ascii_digit()));
        let item = line.strip_prefix("- ").or_else(|| number.map(|at| &line[at + 2..]));
        if line.is_empty() || line.starts_with('#') || line.starts_with('|') || item.is_some() {
            paragraphs.push(item.unwrap_or_default().to_string());
        } else {
            let last = paragraphs.last_mut().unwrap();
            last.push(' ');
            last.push_str(line);
        }
    }
    let mut sentences = Vec::new();
    for paragraph in paragraphs {
        let mut words: Vec<&str> = Vec::new();
        let mut is_code = false;
        for word in paragraph.split_whitespace() {
            let was_code = is_code;
            if word.matches('`').count() % 2 == 1 {
                is_code = !is_code;
            }
            // A code span counts as one word.
            if !was_code {
                words.push(word);
            }
            let end = word.trim_end_matches(['*', ')', '"', '`']);
            if !is_code && end.ends_with(['.', ':', ';', '?', '!']) {
                sentences.push(words.join(" "));
                words.clear();
            }
        }
        sentences.push(words.join(" "));
    }
    sentences
        .into_iter()
        .map(|sentence| {
            let count = sentence
                .split(' ')
                .filter(|word| word.contains(char::is_alphanumeric) || word.contains('`'))
                .count();
            (sentence, count)
        })
        .collect()
}

#[test]
fn sentences_of_the_pages_are_short() {
    let mut found = String::new();
    for page in pages() {
        for (sentence, words) in sentences(&fs::read_to_string(&page).unwrap()) {
            if words > WORDS_MAX {
                writeln!(found, "{}: {words} words: {sentence}", name(&page)).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "make two sentences of each of these ({WORDS_MAX} words at most):\n{found}");
}

/// The doc comments of a source file that users and readers of the crate see, without code blocks. These are those of its
/// modules and public items. In the program they are all, since clap prints them.
fn doc_comments(source: &str, is_program: bool) -> String {
    let private = [
        "fn ",
        "const ",
        "static ",
        "struct ",
        "enum ",
        "trait ",
        "type ",
        "mod ",
        "unsafe ",
        "async ",
        "pub(",
        "impl",
        "macro_rules",
        "let ",
        "use ",
        "#[test]",
    ];
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let mut comments = vec![String::new(); lines.len()];
    for (at, line) in lines.iter().enumerate() {
        if let Some(comment) = line.strip_prefix("//!") {
            comments[at] = comment.to_string();
        } else if let Some(comment) = line.strip_prefix("///") {
            let item = lines[at..].iter().find(|line| !line.starts_with("//") && !line.starts_with("#["));
            let is_field = item.is_some_and(|item| {
                let before = item.split(':').next().unwrap();
                item.contains(':')
                    && before.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
            });
            let is_private =
                is_field || item.is_none_or(|item| private.iter().any(|begin| item.starts_with(begin)));
            if is_program || !is_private {
                comments[at] = comment.to_string();
            }
        }
    }
    let text = comments.join("\n");
    if text.matches("```").count().is_multiple_of(2) { prose(&text) } else { text }
}

#[test]
fn doc_comments_use_plain_words() {
    let phrases = phrases();
    let mut found = String::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let is_program = folder.ends_with("whyso");
        for file in files(&folder.join("src"), "rs") {
            let comments = doc_comments(&fs::read_to_string(&file).unwrap(), is_program);
            for hit in hits(&comments, &phrases) {
                writeln!(found, "{}:{hit}", name(&file)).unwrap();
            }
        }
    }
    assert!(found.is_empty(), "replace these words:\n{found}");
}

#[test]
fn sentences_of_doc_comments_are_short() {
    let mut found = String::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        for file in files(&entry.unwrap().path().join("src"), "rs") {
            let comments = doc_comments(&fs::read_to_string(&file).unwrap(), true);
            // What is quoted, such as the title of an article, counts as one word, as code does.
            for (sentence, words) in sentences(&comments.replace('"', "`")) {
                if words > WORDS_MAX {
                    writeln!(found, "{}: {words} words: {sentence}", name(&file)).unwrap();
                }
            }
        }
    }
    assert!(found.is_empty(), "make two sentences of each of these ({WORDS_MAX} words at most):\n{found}");
}

#[test]
fn words_are_found_in_a_made_text() {
    let phrases = phrases();
    let words = |text: &str| -> Vec<String> {
        hits(text, &phrases).into_iter().map(|hit| hit.split('"').nth(1).unwrap().to_string()).collect()
    };
    assert_eq!(words("It Tells what it was told."), ["tells", "told"]);
    assert_eq!(
        words("1,000 queries a second, and\nrows a\ntransaction."),
        ["queries a second", "rows a transaction"]
    );
    assert_eq!(words("One of the server's, lest it goes on."), ["of the server's", "lest", "goes on"]);
    // What only resembles one of them.
    assert_eq!(words("A second run takes a second round, and waits a second time."), Vec::<String>::new());
    assert_eq!(words("It marks a level, holds a row, and prepares a statement."), Vec::<String>::new());
    assert_eq!(words("The runs a second user made; the besieged, the beholder."), Vec::<String>::new());
    assert_eq!(words("The speed of the server's disk; leave a value alone."), Vec::<String>::new());
    assert_eq!(
        words("`told`, `where_at_hand` and [here](told.md)".replace("](told.md)", "").as_str()),
        Vec::<String>::new()
    );
    // Lines are those of the text.
    assert!(hits("\n\ntold", &phrases)[0].starts_with("3: "));
}

#[test]
fn the_parts_of_a_made_page_are_found() {
    let page = "# Told\n\nText `told`\n\n```sh\ntold\n```\n[a](told.md) b\n";
    assert_eq!(prose(page).lines().count(), 8);
    assert!(!prose(page).contains("told.md") && !prose(page).contains("```"));
    let long = format!("Short. {}end. Short again.\n\n| {} |\n", "word ".repeat(30), "word ".repeat(40));
    let lengths: Vec<usize> =
        sentences(&long).into_iter().map(|(_, words)| words).filter(|words| *words > 0).collect();
    assert_eq!(lengths, [1, 31, 2]);
}

#[test]
fn the_doc_comments_of_a_made_file_are_found() {
    let source = "//! Module.\n\n/// Public.\npub fn a() {}\n\n/// Private.\nfn b() {}\n\npub struct C {\n    /// Field.\n    pub d: u8,\n    /// Own.\n    e: u8,\n}\n// told\n";
    let words = |is_program| {
        doc_comments(source, is_program).split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(words(false), ["Module.", "Public.", "Field."]);
    assert_eq!(words(true), ["Module.", "Public.", "Private.", "Field.", "Own."]);
}

//! What a recording keeps of commands and statements that may hold passwords. Where it is not clear what is one, more is left out rather than less.

use crate::dsn;

const HIDDEN: &str = "***";

/// Parts of the names of options and variables whose value nobody else is to read.
const SECRET_NAMES: [&str; 6] = ["password", "passwd", "pwd", "secret", "token", "passphrase"];

/// Programs whose option -p is a password.
const CLIENTS: [&str; 8] = [
    "mysql",
    "mariadb",
    "mysqldump",
    "mariadb-dump",
    "mysqladmin",
    "mariadb-admin",
    "mysqlslap",
    "mysqlbinlog",
];

/// Words of statements after which quoted text is a password.
const SECRET_WORDS: [&str; 2] = ["identified", "password"];

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // Such as --token-file: a path is none.
    !name.ends_with("-file") && SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

fn is_client(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    CLIENTS.contains(&name)
}

fn begins_with_dsn(argument: &str) -> bool {
    ["--dsn=", "mysql://", "mariadb://"].iter().any(|beginning| argument.starts_with(beginning))
}

/// The arguments of a program, without passwords.
pub fn arguments(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let (mut hidden, mut is_value_of_secret, mut is_for_client) = (Vec::new(), false, false);
    let mut is_dsn = false;
    for argument in arguments {
        let is_option = argument.starts_with('-');
        if std::mem::replace(&mut is_dsn, argument == "--dsn") || begins_with_dsn(&argument) {
            // As a whole: a password may hold a space.
            hidden.push(dsn::mask(&argument));
            continue;
        }
        if std::mem::take(&mut is_value_of_secret) && !is_option {
            hidden.push(HIDDEN.to_string());
            continue;
        }
        is_for_client |= is_client(&argument);
        is_value_of_secret = is_option && !argument.contains('=') && is_secret_name(&argument);
        let named = argument.split_once('=').filter(|(name, _)| !name.contains(char::is_whitespace));
        hidden.push(match (argument.strip_prefix("-p"), named) {
            (Some(value), _) if is_for_client && !value.is_empty() => format!("-p{HIDDEN}"),
            // As a whole, too.
            (_, Some((name, value))) if is_secret_name(name) && !value.is_empty() => {
                format!("{name}={HIDDEN}")
            }
            _ => text(&argument),
        });
    }
    hidden
}

/// A statement or a command of the shell, without passwords.
pub fn text(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let (mut is_value_of_secret, mut is_for_client) = (false, false);
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let space = &piece[word.len()..];
        let plain = word.trim_matches(|character| character == '\'' || character == '"' || character == '!');
        let is_option = plain.starts_with('-');
        let shown = if std::mem::take(&mut is_value_of_secret) && !is_option && !word.is_empty() {
            HIDDEN.to_string()
        } else if is_for_client && plain.len() > 2 && plain.starts_with("-p") {
            format!("-p{HIDDEN}")
        } else {
            word_without_secret(word)
        };
        is_for_client |= is_client(plain);
        is_value_of_secret = is_option && !plain.contains('=') && is_secret_name(plain);
        hidden.push_str(&shown);
        hidden.push_str(space);
    }
    without_literals(&hidden)
}

/// `--password=x`, `MYSQL_PWD=x`, and a DSN.
fn word_without_secret(word: &str) -> String {
    match word.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret_name(name) => format!("{name}={HIDDEN}"),
        _ if word.contains("://") => dsn::mask(word),
        _ => word.to_string(),
    }
}

/// Quoted text after a word that says that a password follows. To the end of the text: what ends a statement within quotes is not looked into.
fn without_literals(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let is_end = |character: Option<char>| {
        character.is_none_or(|character| character.is_whitespace() || "(;'\"".contains(character))
    };
    let stands_alone = |at: usize, word: &str| {
        is_end(lower[..at].chars().next_back()) && is_end(lower[at + word.len()..].chars().next())
    };
    let found = |word: &&str| lower.match_indices(*word).map(|(at, _)| at).find(|at| stands_alone(*at, word));
    let Some(from) = SECRET_WORDS.iter().filter_map(found).min() else { return text.to_string() };
    let mut hidden = text[..from].to_string();
    let mut quote = None;
    for character in text[from..].chars() {
        match quote {
            None => {
                hidden.push(character);
                if character == '\'' || character == '"' {
                    quote = Some(character);
                    hidden.push_str(HIDDEN);
                }
            }
            Some(open) if open == character => {
                hidden.push(character);
                quote = None;
            }
            Some(_) => {}
        }
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_go_and_the_rest_stays() {
        let cases = [
            ("SET GLOBAL innodb_io_capacity = 2000", "SET GLOBAL innodb_io_capacity = 2000"),
            ("SET PASSWORD FOR 'app'@'%' = 'geheim'", "SET PASSWORD FOR '***'@'***' = '***'"),
            ("create user u identified by 'geheim'", "create user u identified by '***'"),
            ("ALTER USER u IDENTIFIED WITH x AS \"geheim\"", "ALTER USER u IDENTIFIED WITH x AS \"***\""),
            ("mariadb --password=geheim -e 'SELECT 1'", "mariadb --password=*** -e 'SELECT 1'"),
            ("mysql -pgeheim -u root", "mysql -p*** -u root"),
            ("mysqldump --password geheim db", "mysqldump --password *** db"),
            ("MYSQL_PWD=geheim mysql", "MYSQL_PWD=*** mysql"),
            ("psql -p 5432", "psql -p 5432"),
            ("load mysql://u:geheim@h/s", "load mysql://u:***@h/s"),
        ];
        for (text_given, expected) in cases {
            assert_eq!(text(text_given), expected);
        }
        let command_line = [
            "whyso",
            "record",
            "--",
            "/usr/bin/mariadb",
            "-pgeheim",
            "--password",
            "geheim",
            "-e",
            "SET PASSWORD = 'geheim'",
        ];
        let hidden = arguments(command_line.map(str::to_string).into_iter());
        assert!(!hidden.concat().contains("geheim"), "{hidden:?}");
        assert_eq!(hidden[..4], command_line[..4]);
        for odd in ["é '", "password", "=", "-p", "--password", "://@", "identified \u{1F511}'"] {
            let _ = text(odd);
        }
    }
}

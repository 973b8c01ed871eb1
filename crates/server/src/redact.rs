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

/// Whole names of parameters of web addresses whose value nobody else is to read.
const SECRET_PARAMETERS: [&str; 9] =
    ["auth", "authorization", "jwt", "key", "apikey", "api_key", "api-key", "sig", "signature"];

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
        if let Some((before, address)) = split_web_address(&argument)
            && !before.contains(char::is_whitespace)
        {
            hidden.push(text(&format!("{before}{}", mask_web_address(address))));
            is_value_of_secret = false;
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

/// `--password=x`, `MYSQL_PWD=x`, a web address, and a DSN.
fn word_without_secret(word: &str) -> String {
    if let Some((before, address)) = split_web_address(word) {
        return format!("{before}{}", mask_web_address(address));
    }
    match word.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret_name(name) => format!("{name}={HIDDEN}"),
        _ if word.contains("://") => dsn::mask(word),
        _ => word.to_string(),
    }
}

/// Splits `--url=http://shop/?id=7` before the address. `None` where the first address is none of the web, or is itself a secret's value.
fn split_web_address(text: &str) -> Option<(&str, &str)> {
    let colon = text.find("://")?;
    let is_letter = |character: char| character.is_ascii_alphanumeric();
    let begin = text[..colon].trim_end_matches(is_letter).len();
    let scheme = &text[begin..colon];
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let name = text[..begin].split('=').next().unwrap_or_default();
    // Of several addresses, any may have a password.
    let is_only = !text[colon + 3..].contains("://");
    (is_only && is_web && !(begin > 0 && is_secret_name(name))).then(|| text.split_at(begin))
}

/// A web address without its password and without the values of parameters that have a secret's name.
fn mask_web_address(address: &str) -> String {
    let begin = address.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = address.split_at(begin);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A password that is not encoded may hold what ends a host, and begin as a port does. A path whose part begins with the sign is none.
    let path = &rest[end..rest.find(['?', '#']).unwrap_or(rest.len()).max(end)];
    let has_sign_within =
        path.split('/').any(|part| part.char_indices().any(|(at, letter)| at > 0 && letter == '@'));
    let looks_cut = !rest.starts_with('[')
        && rest[..end].split_once(':').is_some_and(|(_, port)| !is_port(port) || has_sign_within);
    let login = if looks_cut { rest.rfind('@') } else { rest[..end].rfind('@') };
    let Some(at_sign) = login else {
        let (host, after) = rest.split_at(end);
        let host = match host.split_once(':') {
            Some((host, _)) if looks_cut => format!("{host}:{HIDDEN}"),
            _ => host.to_string(),
        };
        return format!("{scheme}{host}{}", mask_web_parameters(after));
    };
    let (user_info, after) = rest.split_at(at_sign);
    let user_info = match user_info.split_once(':') {
        Some((_, "")) => user_info.to_string(),
        Some((user, _)) => format!("{user}:{HIDDEN}"),
        // A token in the place of a user.
        None => HIDDEN.to_string(),
    };
    format!("{scheme}{user_info}{}", mask_web_parameters(after))
}

fn mask_web_parameters(text: &str) -> String {
    let Some(begin) = text.find(['?', '#']) else { return text.to_string() };
    let mut masked = text[..begin].to_string();
    for parameter in text[begin..].split_inclusive(['?', '&', ';', '#']) {
        let plain = parameter.trim_end_matches(['?', '&', ';', '#']);
        match plain.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret_parameter(name) => {
                masked.push_str(&format!("{name}={HIDDEN}{}", &parameter[plain.len()..]));
            }
            _ => masked.push_str(parameter),
        }
    }
    masked
}

fn is_secret_parameter(name: &str) -> bool {
    is_secret_name(name) || SECRET_PARAMETERS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
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
    fn a_web_address_hides_its_password_and_secret_parameters_and_nothing_else() {
        for shown in [
            "http://127.0.0.1:8080/item?id=7",
            "--url=http://127.0.0.1:8080/item?id=7&q=a;b=c#top",
            "https://shop.example/reset-password?id=7&author=me",
            "http://shop.example:8080/@user/?at=a@b",
            "HTTP://[::1]:8080/?page=2",
            "http://shop.example",
            "http://me:@shop.example/",
        ] {
            assert_eq!(text(shown), shown);
            assert_eq!(arguments(["load", "--url", shown].map(str::to_string).into_iter())[2], shown);
        }
        for (address, expected) in [
            ("http://me:geheim@shop/?id=7", "http://me:***@shop/?id=7"),
            ("http://geheim@shop/?id=7", "http://***@shop/?id=7"),
            ("http://me:ge/he?im@shop/?id=7", "http://me:***@shop/?id=7"),
            ("http://me:geheim", "http://me:***"),
            ("http://me:2024/geheim@shop/", "http://me:***@shop/"),
            ("--url=https://shop/?id=7&token=geheim&q=1", "--url=https://shop/?id=7&token=***&q=1"),
            ("http://shop/?Access_Token=geheim", "http://shop/?Access_Token=***"),
            ("http://shop/a?x#key=geheim", "http://shop/a?x#key=***"),
            ("--token=http://geheim/", "--token=***"),
            ("mysql://u:geheim@h/s?x=http://a/", "mysql://u:***@h/s?x=***"),
        ] {
            assert_eq!(text(address), expected);
            assert_eq!(arguments([address.to_string()].into_iter())[0], expected);
        }
        let hidden = arguments(["http://me:ge heim@shop/".to_string()].into_iter());
        assert_eq!(hidden[0], "http://me:***@shop/");
        for odd in ["http://", "http://@", "http://:@", "é://", "http://é:é@é?é=é&key=é"] {
            let _ = (text(odd), arguments([odd.to_string()].into_iter()));
        }
    }

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

//! What `~/.my.cnf` and the environment say about logging in.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result, io};

/// The `[client]` part of an option file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientOptions {
    pub user: Option<String>,
    pub password: Option<String>,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub socket: Option<PathBuf>,
}

/// What completes a DSN.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    /// `MYSQL_PWD`.
    pub(crate) mysql_pwd: Option<String>,
    pub(crate) client: ClientOptions,
    /// Name of the user that runs the process.
    pub(crate) os_user: Option<String>,
    /// The first of the usual sockets that exists.
    pub(crate) usual_socket: Option<PathBuf>,
}

const USUAL_SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

impl Environment {
    pub(crate) fn of_this_process() -> Result<Environment> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let client = match variable("HOME") {
            Some(home) => read(&Path::new(&home).join(".my.cnf"))?,
            None => ClientOptions::default(),
        };
        let usual_socket = USUAL_SOCKETS.iter().map(PathBuf::from).find(|path| path.exists());
        Ok(Environment {
            mysql_pwd: variable("MYSQL_PWD"),
            client,
            os_user: variable("USER").or_else(|| variable("LOGNAME")),
            usual_socket,
        })
    }
}

/// Reads the client's options from an option file; one that does not exist says nothing.
pub(crate) fn read(path: &Path) -> Result<ClientOptions> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(ClientOptions::default()),
        Err(error) => Err(io("cannot read the option file", path)(error)),
    }
}

fn parse(text: &str, path: &Path) -> Result<ClientOptions> {
    let mut options = ClientOptions::default();
    let mut in_client = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with(';') || line.starts_with('!') {
            continue;
        }
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            in_client = matches!(group.trim(), "client" | "client-server" | "client-mariadb");
            continue;
        }
        if !in_client {
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let value = unquote(value.trim());
        match name.trim().replace('_', "-").as_str() {
            "user" => options.user = Some(value),
            "password" => options.password = Some(value),
            "host" => options.host = Some(value),
            "socket" => options.socket = Some(PathBuf::from(value)),
            "port" => {
                let port = value.parse().map_err(|_| {
                    Error::Dsn(format!(
                        "line {} of '{}': the port is no number from 0 to 65535",
                        index + 1,
                        path.display()
                    ))
                })?;
                options.port = Some(port);
            }
            _ => {}
        }
    }
    Ok(options)
}

/// Parses the value of an option as the servers' own clients do. It removes quotes, cuts a comment after an unquoted
/// value, and resolves `\b \t \n \r \\ \s \" \'`.
pub(crate) fn unquote(value: &str) -> String {
    let quote = value.chars().next().filter(|first| *first == '"' || *first == '\'');
    let inner = match quote {
        Some(quote) => {
            let rest = &value[1..];
            &rest[..closing_quote(rest, quote).unwrap_or(rest.len())]
        }
        None => value.split(" #").next().unwrap_or(value).trim_end(),
    };
    let mut resolved = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            resolved.push(character);
            continue;
        }
        match characters.next() {
            Some('b') => resolved.push('\u{8}'),
            Some('t') => resolved.push('\t'),
            Some('n') => resolved.push('\n'),
            Some('r') => resolved.push('\r'),
            Some('s') => resolved.push(' '),
            Some(other @ ('\\' | '"' | '\'')) => resolved.push(other),
            Some(other) => {
                resolved.push('\\');
                resolved.push(other);
            }
            None => resolved.push('\\'),
        }
    }
    resolved
}

fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_group_is_read_and_others_are_not() {
        let text = "# mine\n[mysqld]\nuser=server\n[client]\nuser = bench\npassword=\"p#a's \\\"s\\\\\"\nhost=db1 # the big one\n\
            port=3307\n[mysqldump]\npassword=other\n[client-mariadb]\nsocket='/run/x y.sock'\n";
        let options = parse(text, Path::new("my.cnf")).unwrap();
        assert_eq!(options.user.as_deref(), Some("bench"));
        assert_eq!(options.password.as_deref(), Some("p#a's \"s\\"));
        assert_eq!(options.host.as_deref(), Some("db1"));
        assert_eq!(options.port, Some(3307));
        assert_eq!(options.socket.as_deref(), Some(Path::new("/run/x y.sock")));
    }

    #[test]
    fn a_port_that_is_no_number_names_its_line() {
        let error = parse("[client]\nport=many\n", Path::new("/home/me/.my.cnf")).unwrap_err_text();
        assert_eq!(error, "line 2 of '/home/me/.my.cnf': the port is no number from 0 to 65535");
    }

    #[test]
    fn unquoted_backslashes_and_empty_values_survive() {
        assert_eq!(unquote(""), "");
        assert_eq!(unquote("a\\qb\\"), "a\\qb\\");
        assert_eq!(unquote("\"never closed"), "never closed");
    }

    trait ErrorText {
        fn unwrap_err_text(self) -> String;
    }

    impl<T> ErrorText for Result<T> {
        fn unwrap_err_text(self) -> String {
            match self {
                Ok(_) => "no error".to_string(),
                Err(error) => error.to_string(),
            }
        }
    }
}

//! From the text of a DSN to its parts.

use std::path::PathBuf;
use std::time::Duration;

use super::option_file::Environment;
use super::parse_error::DsnError;
use super::{DEFAULT_CONNECT_TIMEOUT, DEFAULT_SCHEMA, Dsn, Tls};
use crate::error::{Error, Result};

const SHAPE: &str = "mysql://user@host:port/schema or mysql://user@localhost/schema?socket=/path";

/// Parameters whose values hide nothing.
const PARAMETERS: [&str; 5] = ["socket", "tls", "ssl-ca", "connect-timeout", "container"];

/// Returns the text of a DSN with whatever may be a password replaced by `***`, also where the rest can't be
/// understood. That covers:
///
/// - what follows the user
/// - a port that is no number
/// - the values of parameters that no DSN has
/// - what other programs separate by `;` or `=`
pub fn mask(text: &str) -> String {
    let mut masked = text.to_string();
    let start = text.find("://").map_or(0, |at| at + 3);
    let mut host = start;
    if let Some(at_sign) = text[start..].rfind('@').map(|at| start + at) {
        let login = &text[start..at_sign];
        let password = match login.find(':') {
            Some(colon) => start + colon + 1,
            // A slash in the place of the colon.
            None if login.contains('/') => start,
            None => at_sign,
        };
        if password < at_sign {
            masked.replace_range(password..at_sign, HIDDEN);
        }
        // What is behind the '@' is as long as before.
        host = masked.len() - (text.len() - at_sign - 1);
    }
    let after_host = masked.split_off(host);
    masked + &mask_after_login(&after_host, start > 0)
}

const HIDDEN: &str = "***";

/// What follows the login, or all where there is none.
fn mask_after_login(text: &str, has_scheme: bool) -> String {
    let query_at = text.find('?').unwrap_or(text.len());
    let (mut before, query) = (text[..query_at].to_string(), &text[query_at..]);
    let bracket = before.find(']').unwrap_or(0);
    let host_end = before.find('/').unwrap_or(before.len()).max(bracket);
    if let Some(colon) = before[bracket..host_end].find(':').map(|at| bracket + at)
        && !before[colon + 1..host_end].bytes().all(|byte| byte.is_ascii_digit())
    {
        before.replace_range(colon + 1..host_end, HIDDEN);
    }
    let ends_name: &[char] = if has_scheme { &[';'] } else { &[';', '='] };
    if let Some(at) = before.find(ends_name) {
        before.replace_range(at + 1.., HIDDEN);
    }
    if let Some(pairs) = query.strip_prefix('?') {
        let pairs: Vec<String> = pairs.split('&').map(mask_parameter).collect();
        return format!("{before}?{}", pairs.join("&"));
    }
    before
}

fn mask_parameter(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, value))
            if PARAMETERS.contains(&name.replace('_', "-").as_str()) && !value.contains(['?', ';']) =>
        {
            pair.to_string()
        }
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None if pair.is_empty() => String::new(),
        None => HIDDEN.to_string(),
    }
}

pub(super) fn resolve(text: &str, environment: &Environment) -> Result<Dsn> {
    let wrong = |why: DsnError| Error::Dsn(format!("cannot understand the DSN '{}': {why}", mask(text)));
    let rest = text
        .strip_prefix("mysql://")
        .or_else(|| text.strip_prefix("mariadb://"))
        .ok_or_else(|| wrong(DsnError::Shape(SHAPE)))?;

    let (user_info, after_user) = match rest.rfind('@') {
        Some(at_sign) => (&rest[..at_sign], &rest[at_sign + 1..]),
        None => ("", rest),
    };
    let (before_query, query) = after_user.split_once('?').unwrap_or((after_user, ""));
    let (host_and_port, schema) = before_query.split_once('/').unwrap_or((before_query, ""));

    let (user, password) = match user_info.split_once(':') {
        Some((user, password)) => (user, Some(decode(password).map_err(&wrong)?)),
        None => (user_info, None),
    };
    if user.contains(['/', '?']) {
        return Err(wrong(DsnError::LateAt));
    }
    let user = decode(user).map_err(&wrong)?;
    let schema = decode(schema.trim_end_matches('/')).map_err(&wrong)?;
    check_schema(&schema).map_err(&wrong)?;
    let (host, port) = split_host(host_and_port).map_err(&wrong)?;
    let parameters = Parameters::parse(query).map_err(&wrong)?;

    let client = &environment.client;
    let user = Some(user)
        .filter(|user| !user.is_empty())
        .or_else(|| client.user.clone())
        .or_else(|| environment.os_user.clone())
        .ok_or_else(|| wrong(DsnError::NoUser))?;
    let password = password.or_else(|| environment.mysql_pwd.clone()).or_else(|| client.password.clone());
    let host_given = !host.is_empty();
    let host = if host_given { host } else { client.host.clone().unwrap_or_else(|| "localhost".to_string()) };
    let mut socket = parameters.socket;
    if let Some(container) = &parameters.container {
        socket = Some(crate::containers::server_in(container)?.socket);
    }
    // "localhost" without a port means the socket, as for the servers' own clients
    if socket.is_none() && host == "localhost" && port.is_none() {
        socket = client.socket.clone().or_else(|| environment.usual_socket.clone());
    }
    let port = port.or_else(|| client.port.filter(|_| !host_given)).unwrap_or(3306);

    Ok(Dsn {
        user,
        password,
        host,
        port,
        socket,
        schema_given: !schema.is_empty(),
        schema: if schema.is_empty() { DEFAULT_SCHEMA.to_string() } else { schema },
        tls: parameters.tls,
        connect_timeout: parameters.connect_timeout,
    })
}

struct Parameters {
    socket: Option<PathBuf>,
    container: Option<String>,
    tls: Tls,
    connect_timeout: Duration,
}

impl Parameters {
    fn parse(query: &str) -> std::result::Result<Parameters, DsnError> {
        let (mut socket, mut container) = (None, None);
        let mut tls: Option<Tls> = None;
        let mut ca: Option<PathBuf> = None;
        let mut connect_timeout = DEFAULT_CONNECT_TIMEOUT;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(DsnError::NoValue)?;
            if value.contains(['?', ';']) {
                return Err(DsnError::Separator);
            }
            let value = decode(value)?;
            match name.replace('_', "-").as_str() {
                "socket" if value.starts_with('/') => socket = Some(PathBuf::from(value)),
                "socket" => return Err(DsnError::RelativeSocket),
                "container" => container = Some(value),
                "ssl-ca" => ca = Some(PathBuf::from(value)),
                "tls" => {
                    tls = Some(match value.as_str() {
                        "disabled" | "off" | "false" => Tls::Disabled,
                        "verify" | "required" | "on" | "true" => Tls::Verify { ca: None },
                        "insecure" => Tls::Insecure,
                        _ => return Err(DsnError::Tls(value)),
                    });
                }
                "connect-timeout" => {
                    connect_timeout = match value.parse::<u64>() {
                        Ok(seconds @ 1..=3600) => Duration::from_secs(seconds),
                        _ => return Err(DsnError::ConnectTimeout(value)),
                    };
                }
                "password" | "passwd" | "pwd" => {
                    return Err(DsnError::PasswordParameter);
                }
                _ => {
                    return Err(DsnError::UnknownParameter(name.to_string()));
                }
            }
        }
        let tls = match (tls, ca) {
            (None, None) => Tls::Disabled,
            (Some(Tls::Disabled | Tls::Insecure), Some(_)) => {
                return Err(DsnError::CaWithoutVerify);
            }
            (Some(tls), None) => tls,
            (_, Some(ca)) => Tls::Verify { ca: Some(ca) },
        };
        if container.is_some() && socket.is_some() {
            return Err(DsnError::ContainerAndSocket);
        }
        Ok(Parameters { socket, container, tls, connect_timeout })
    }
}

fn split_host(text: &str) -> std::result::Result<(String, Option<u16>), DsnError> {
    let (host, port) = if let Some(bracketed) = text.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']').ok_or(DsnError::NoBracket)?;
        (host, rest.strip_prefix(':').unwrap_or(""))
    } else {
        text.split_once(':').unwrap_or((text, ""))
    };
    let host = decode(host)?;
    if port.is_empty() {
        return Ok((host, None));
    }
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok((host, Some(port))),
        _ => Err(DsnError::Port),
    }
}

fn check_schema(schema: &str) -> std::result::Result<(), DsnError> {
    if schema.chars().count() > 64 {
        return Err(DsnError::LongSchema);
    }
    if schema.chars().any(|character| character.is_control() || character == '/' || character == '`') {
        return Err(DsnError::SchemaName(schema.escape_default().to_string()));
    }
    Ok(())
}

/// Resolves `%XX`.
fn decode(text: &str) -> std::result::Result<String, DsnError> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            decoded.push(bytes[at]);
            at += 1;
            continue;
        }
        let digits = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(digits.ok_or(DsnError::Escape)?);
        at += 3;
    }
    String::from_utf8(decoded).map_err(|_| DsnError::Encoding)
}

#[cfg(test)]
mod tests {
    use super::super::option_file::ClientOptions;
    use super::*;

    fn parsed(text: &str) -> String {
        parsed_in(text, &Environment { os_user: Some("me".to_string()), ..Environment::default() })
    }

    fn parsed_in(text: &str, environment: &Environment) -> String {
        match resolve(text, environment) {
            Ok(dsn) => format!(
                "{} | password {} | {} s",
                dsn.display_masked(),
                dsn.password.as_deref().unwrap_or("-"),
                dsn.connect_timeout.as_secs()
            ),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_dsn_comes_apart_into_its_parts() {
        assert_eq!(parsed("mysql://bench@db1:3307/shop"), "mysql://bench@db1:3307/shop | password - | 10 s");
        assert_eq!(parsed("mysql://db1"), "mysql://me@db1:3306/whyso | password - | 10 s");
        assert_eq!(
            parsed("mysql://u:p%40:s%2Fs@[::1]:3306/x?tls=insecure&connect_timeout=3"),
            "mysql://u:***@[::1]:3306/x?tls=insecure | password p@:s/s | 3 s"
        );
        assert_eq!(
            parsed("mysql://root@localhost/x?socket=/tmp/a%20b.sock"),
            "mysql://root@localhost/x?socket=/tmp/a b.sock | password - | 10 s"
        );
        assert_eq!(
            parsed("mysql://u@h/x?ssl-ca=/etc/ca.pem"),
            "mysql://u@h:3306/x?tls=verify&ssl-ca=/etc/ca.pem | password - | 10 s"
        );
        assert_eq!(parsed("mysql://u:p@ss@h/"), "mysql://u:***@h:3306/whyso | password p@ss | 10 s");
    }

    #[test]
    fn a_dsn_that_makes_no_sense_is_refused_without_its_password() {
        let wrong = |why: &str, dsn: &str| format!("cannot understand the DSN '{dsn}': {why}");
        assert_eq!(parsed("db1:3306"), wrong(&format!("it does not have the form {SHAPE}"), "db1:3306"));
        assert!(parsed("mysql://u:secret/x@h:port/").contains("'mysql://u:***@h:***/'"));
        assert!(parsed("mysql://u:sec:ret@h:99999").contains("u:***@h:99999': the port is no number"));
        assert!(parsed("mysql://u@h/x?color=red").contains("it has no parameter 'color'"));
        assert!(parsed("mysql://u@h/x?tls=maybe").contains("disabled, verify or insecure, not 'maybe'"));
        assert!(parsed("mysql://u@h/x?tls=insecure&ssl-ca=/ca").contains("ssl-ca needs tls=verify"));
        assert!(parsed("mysql://u@h/x?connect_timeout=0").contains("1 to 3600 seconds"));
        assert!(parsed("mysql://u@h/x?socket=here").contains("no absolute path"));
        assert!(parsed("mysql://u@h/a`b").contains("no name for a schema"));
        assert!(parsed("mysql://u:%zz@h/").contains("two hexadecimal digits"));
        assert!(parsed("mysql://u@[::1/").contains("closing bracket"));
        assert!(parsed_in("mysql://h/", &Environment::default()).contains("names no user"));
    }

    #[test]
    fn what_the_dsn_leaves_open_comes_from_the_environment() {
        let mut environment = Environment {
            mysql_pwd: Some("from environment".to_string()),
            client: ClientOptions {
                user: Some("file".to_string()),
                password: Some("from file".to_string()),
                host: Some("db9".to_string()),
                port: Some(3399),
                socket: Some(PathBuf::from("/run/file.sock")),
            },
            os_user: Some("me".to_string()),
            usual_socket: Some(PathBuf::from("/run/usual.sock")),
        };
        assert_eq!(
            parsed_in("mysql:///x", &environment),
            "mysql://file:***@db9:3399/x | password from environment | 10 s"
        );
        // the file's port belongs to the file's host
        assert_eq!(
            parsed_in("mysql://a:b@db1/x", &environment),
            "mysql://a:***@db1:3306/x | password b | 10 s"
        );
        environment.mysql_pwd = None;
        assert!(parsed_in("mysql://db1/x", &environment).ends_with("password from file | 10 s"));
        assert!(parsed_in("mysql://localhost/x", &environment).contains("?socket=/run/file.sock"));
        environment.client.socket = None;
        assert!(parsed_in("mysql://localhost/x", &environment).contains("?socket=/run/usual.sock"));
        // a port means TCP
        assert!(parsed_in("mysql://localhost:3306/x", &environment).contains("@localhost:3306/x"));
    }

    #[test]
    fn only_the_password_is_masked() {
        assert_eq!(mask("mysql://u:p%40:s@h/x"), "mysql://u:***@h/x");
        assert_eq!(mask("mysql://u@h:3306/x"), "mysql://u@h:3306/x");
        assert_eq!(mask("mysql://u:@h/x"), "mysql://u:@h/x");
        assert_eq!(mask("mysql://u:a@b@h"), "mysql://u:***@h");
        assert_eq!(mask("u:secret@h"), "u:***@h");
        assert_eq!(mask("mysql://[::1]:3306/x?tls=verify"), "mysql://[::1]:3306/x?tls=verify");
        assert_eq!(mask("mysql://u:a?b=c@h/x?socket=/a:b"), "mysql://u:***@h/x?socket=/a:b");
    }

    #[test]
    fn a_password_in_the_wrong_place_is_not_repeated() {
        for dsn in [
            "mysql://u@h/x?password=secret",
            "mysql://u@h/x?tls=verify&passwd=secret",
            "mysql://u@h/x?secret",
            "mysql://u@h/x?password=secret@h",
            "mysql://root:secret",
            "mysql://root:secret/x?tls=verify",
            "mysql://u@h:secret/x",
            "mysql://[::1]:secret/x",
            "mysql://u@[::1]:secret",
            "mysql://u@h/x?tls=verify?password=secret",
            "mysql://u/secret@h",
            "u/secret@h",
            "mysql:/root:secret@h",
            "Server=h;Uid=u;Pwd=secret;",
            "jdbc:mysql://h/x?user=u&password=secret",
            "postgres://u:secret@h/x",
        ] {
            let message = parsed(dsn);
            assert!(message.starts_with("cannot understand"), "{dsn}: {message}");
            assert!(!message.contains("secret"), "{message}");
        }
        assert!(parsed("mysql://u@h/x?password=secret").contains("set MYSQL_PWD"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(mysql://)?[a-z:@/?&=%\\[\\].é0-9]{0,40}") {
            let _ = parsed(&text);
            let _ = mask(&text);
        }
    }
}

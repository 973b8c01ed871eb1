//! Why no connection can be opened, in the numbers and texts of MariaDB's C client: scripts and people know them.

use std::io;

use crate::error::LoadError;
use crate::outcome::ErrorCode;

/// A socket that nobody listens on.
const CONNECTION_ERROR: u16 = 2002;
/// A host without an address.
const UNKNOWN_HOST: u16 = 2005;
/// The server ended the login.
const SERVER_LOST: u16 = 2013;
/// What the C client reports for a port that refuses: it checks before the kernel knows why.
const IN_PROGRESS: i32 = libc::EINPROGRESS;
/// `EAI_NONAME`: what a resolver gives for an unknown name.
const NO_NAME: i32 = -2;

/// The error's number and text; the SQLSTATE is the general one.
pub(crate) fn as_client_error(error: &LoadError) -> (ErrorCode, String) {
    let (errno, message) = match error {
        LoadError::Connect { address, source } => not_connected(address, source),
        LoadError::Refused { message, .. } => refused(message),
        LoadError::Broken { source, .. } => (SERVER_LOST, format!("Lost connection to server: {source}")),
        other => (CONNECTION_ERROR, other.to_string()),
    };
    (ErrorCode { errno, sqlstate: *b"HY000" }, message)
}

fn not_connected(address: &str, source: &io::Error) -> (u16, String) {
    let errno = source.raw_os_error();
    if address.starts_with('/') {
        let errno = errno.unwrap_or(0);
        let message = format!("Can't connect to local server through socket '{address}' ({errno})");
        return (CONNECTION_ERROR, message);
    }
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
    match errno {
        None => (UNKNOWN_HOST, format!("Unknown server host '{host}' ({NO_NAME})")),
        Some(libc::ECONNREFUSED) => {
            (CONNECTION_ERROR, format!("Can't connect to server on '{host}' ({IN_PROGRESS})"))
        }
        Some(errno) => (CONNECTION_ERROR, format!("Can't connect to server on '{host}' ({errno})")),
    }
}

/// Takes "error 1045: Access denied …" apart.
fn refused(message: &str) -> (u16, String) {
    let parts = message.strip_prefix("error ").and_then(|rest| rest.split_once(": "));
    match parts.and_then(|(number, text)| Some((number.parse().ok()?, text))) {
        Some((errno, text)) => (errno, text.to_string()),
        None => (CONNECTION_ERROR, message.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(address: &str, source: io::Error) -> (u16, String) {
        let (code, text) = as_client_error(&LoadError::Connect { address: address.to_string(), source });
        (code.errno, text)
    }

    #[test]
    fn a_failed_connection_has_the_number_and_text_of_the_c_client() {
        let none = || io::Error::from_raw_os_error(libc::ENOENT);
        let text = "Can't connect to local server through socket '/tmp/none' (2)";
        assert_eq!(connect("/tmp/none", none()), (2002, text.to_string()));
        let refuses = io::Error::from_raw_os_error(libc::ECONNREFUSED);
        assert_eq!(
            connect("db1:3306", refuses),
            (2002, "Can't connect to server on 'db1' (115)".to_string())
        );
        let unknown = io::Error::other("failed to lookup address information");
        assert_eq!(
            connect("nowhere:3306", unknown),
            (2005, "Unknown server host 'nowhere' (-2)".to_string())
        );
        let error = LoadError::Refused {
            address: "db1:3306".to_string(),
            user: "nobody".to_string(),
            message: "error 1045: Access denied for user 'nobody'".to_string(),
        };
        let (code, text) = as_client_error(&error);
        assert_eq!((code.errno, text.as_str()), (1045, "Access denied for user 'nobody'"));
    }
}
